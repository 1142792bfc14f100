/*
 * Counters of PAPI, loaded at run time and only where events are asked for.
 *
 * Hardware events (component perf_event) are counted by an event set of each thread's own, in user mode. Software-defined events (sde) are
 * values of the whole process, or of the thread that reads them; starting an event set resets them for all threads, so there is one,
 * started once. No other component is used: what they count is the machine's, not a thread's.
 *
 * An event that cannot be counted is not named; a thread whose event set cannot be had has absent values.
 */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "descriptors.h"
#include "runtime.h"

#ifdef PD_STATIC /* a static program cannot load libraries of other C libraries' making */

static uint32_t papi_open(struct pd_counter *counters __attribute__((unused)), uint32_t room __attribute__((unused)))
{
	return 0;
}

static void papi_read(struct pd_thread *thread __attribute__((unused)), uint64_t *values __attribute__((unused)))
{
}

const struct pd_counter_source pd_papi_counters = {.open = papi_open, .read = papi_read};

#else

/* Of papi.h, which is the same in 6.x and 7.x as far as it is used here. */
#define PAPI_OK 0
#define PAPI_ECNFLCT (-8)
#define PAPI_ECOUNT (-23)
#define PAPI_NULL (-1)
#define PAPI_LIB_VERSION 21
#define PAPI_INTERFACE 0xffff0000u /* major and minor version, which a caller must name exactly */

#define FUNCTIONS(X) \
	X(int, get_opt, (int, void *)) \
	X(int, is_initialized, (void)) \
	X(int, num_components, (void)) \
	X(const char *, get_component_info, (int)) /* a structure that begins with the name */ \
	X(int, library_init, (int)) \
	X(int, thread_init, (unsigned long (*)(void))) \
	X(int, multiplex_init, (void)) \
	X(int, register_thread, (void)) \
	X(int, unregister_thread, (void)) \
	X(int, create_eventset, (int *)) \
	X(int, assign_eventset_component, (int, int)) \
	X(int, set_multiplex, (int)) \
	X(int, add_named_event, (int, const char *)) \
	X(int, start, (int)) \
	X(int, stop, (int, long long *)) \
	X(int, read, (int, long long *)) \
	X(int, cleanup_eventset, (int)) \
	X(int, destroy_eventset, (int *))

#define DECLARE(type, name, arguments) type (*name) arguments;
static struct {
	FUNCTIONS(DECLARE)
} papi;

#define NAME_BYTES sizeof(((struct pd_counter *)0)->name)
#define SOFTWARE_PREFIX "sde:::"
/* A thread's event set may take a descriptor an event, and two for an event that is derived from others. */
#define DESCRIPTORS_AN_EVENT 2u

/* Events of one component. */
struct events {
	const char *component;
	char names[PD_COUNTERS][NAME_BYTES];
	uint32_t count;
	int index; /* of the component */
	bool multiplexed;
};

static struct events hardware = {.component = "perf_event"}, software = {.component = "sde"};
static int software_set = PAPI_NULL;
static atomic_flag software_lock = ATOMIC_FLAG_INIT; /* the set's values lie in one place for all threads */
static pid_t owner; /* a child of a fork starts anew */

static PD_TLS struct {
	int set;
	bool running;
	uint64_t last[PD_COUNTERS];
} here;

static bool load(bool sde)
{
	static const char *const libraries[] = {"libpapi.so.7.2", "libpapi.so.7.1", "libpapi.so.7.0", "libpapi.so.7",
						"libpapi.so.6.0", "libpapi.so.6",   "libpapi.so"};
	void *library = NULL;

	/* A program that has PAPI already counts for itself; two event sets of one thread and component cannot run. */
	for (size_t i = 0; i < sizeof(libraries) / sizeof(*libraries); i++)
		if (dlopen(libraries[i], RTLD_LAZY | RTLD_NOLOAD))
			return false;
	if (dlsym(RTLD_DEFAULT, "PAPI_library_init"))
		return false;
	if (sde && !dlopen("libsde.so.1", RTLD_NOW | RTLD_GLOBAL)) /* libpapi looks its functions up in the global scope */
		dlopen("libsde.so", RTLD_NOW | RTLD_GLOBAL);
	for (size_t i = 0; i < sizeof(libraries) / sizeof(*libraries) && !library; i++)
		library = dlopen(libraries[i], RTLD_NOW | RTLD_LOCAL);
	if (!library)
		return false;
#define FIND(type, name, arguments) \
	papi.name = (type (*) arguments)dlsym(library, "PAPI_" #name); \
	if (!papi.name) \
		return false;
	FUNCTIONS(FIND)
	return true;
}

/* Whether the first `malloc` is of an object that has probes: PAPI's own use of it could then come out of a probed malloc. */
static bool malloc_is_probed(void)
{
	struct link_map *map;
	const char *strings = NULL;
	Dl_info info;

	if (!dladdr1(dlsym(RTLD_DEFAULT, "malloc"), &info, (void **)&map, RTLD_DL_LINKMAP) || !map->l_ld)
		return false;
	for (const ElfW(Dyn) *entry = map->l_ld; entry->d_tag != DT_NULL; entry++)
		if (entry->d_tag == DT_STRTAB)
			strings = (const char *)entry->d_un.d_ptr;
	for (const ElfW(Dyn) *entry = map->l_ld; strings && entry->d_tag != DT_NULL; entry++)
		if (entry->d_tag == DT_NEEDED && !strncmp(strings + entry->d_un.d_val, "libperfdiff", strlen("libperfdiff")))
			return true;
	return false;
}

static unsigned long thread_id(void)
{
	return (unsigned long)pthread_self();
}

static bool initialise(void)
{
	int version = papi.get_opt(PAPI_LIB_VERSION, NULL);
	int interface = (int)((unsigned)version & PAPI_INTERFACE);

	owner = getpid();
	return version > 0 && papi.library_init(interface) == interface && papi.thread_init(thread_id) == PAPI_OK &&
	       papi.multiplex_init() == PAPI_OK;
}

static bool component_find(struct events *events)
{
	for (events->index = 0; events->index < papi.num_components(); events->index++) {
		const char *name = papi.get_component_info(events->index);

		if (name && !strcmp(name, events->component))
			return true;
	}
	return false;
}

static void set_close(int set)
{
	papi.cleanup_eventset(set);
	papi.destroy_eventset(&set);
}

static int set_create(const struct events *events)
{
	int set = PAPI_NULL;

	if (papi.create_eventset(&set) != PAPI_OK)
		return PAPI_NULL;
	if (papi.assign_eventset_component(set, events->index) != PAPI_OK ||
	    (events->multiplexed && papi.set_multiplex(set) != PAPI_OK)) {
		set_close(set);
		return PAPI_NULL;
	}
	return set;
}

/* Returns a set of all events that can be added, and keeps the names of these. Tells whether some do not go together with others. */
static int set_fill(struct events *events, bool *conflict)
{
	int set = set_create(events);
	uint32_t kept = 0;

	*conflict = false;
	for (uint32_t i = 0; i < events->count && set != PAPI_NULL; i++) {
		int result = papi.add_named_event(set, events->names[i]);
		bool refused = result == PAPI_ECNFLCT || result == PAPI_ECOUNT;

		*conflict |= refused;
		if (result == PAPI_OK || (refused && !events->multiplexed))
			memmove(events->names[kept++], events->names[i], NAME_BYTES);
	}
	events->count = set == PAPI_NULL ? 0 : kept;
	return set;
}

/* Finds out which events can be counted, one after the other only where not all can be at once. */
static void events_try(struct events *events)
{
	bool conflict;
	int set;

	if (!events->count || !component_find(events)) {
		events->count = 0;
		return;
	}
	set = set_fill(events, &conflict);
	if (conflict) {
		set_close(set);
		events->multiplexed = true;
		set = set_fill(events, &conflict);
	}
	if (set != PAPI_NULL)
		set_close(set);
}

/* Returns a running set of all events, or PAPI_NULL. */
static int set_start(const struct events *events)
{
	int set = set_create(events);

	for (uint32_t i = 0; i < events->count && set != PAPI_NULL; i++)
		if (papi.add_named_event(set, events->names[i]) != PAPI_OK) {
			set_close(set);
			set = PAPI_NULL;
		}
	if (set != PAPI_NULL && papi.start(set) != PAPI_OK) {
		set_close(set);
		set = PAPI_NULL;
	}
	return set;
}

static void software_take(void)
{
	while (atomic_flag_test_and_set_explicit(&software_lock, memory_order_acquire))
		sched_yield();
}

static void software_release(void)
{
	atomic_flag_clear_explicit(&software_lock, memory_order_release);
}

static void events_parse(const char *list)
{
	while (*list) {
		size_t length = strcspn(list, ",");
		struct events *events = strncmp(list, SOFTWARE_PREFIX, strlen(SOFTWARE_PREFIX)) ? &hardware : &software;

		if (length > 0 && length < NAME_BYTES && hardware.count + software.count < PD_COUNTERS) {
			memcpy(events->names[events->count], list, length);
			events->names[events->count++][length] = '\0';
		}
		list += length + (list[length] == ',');
	}
}

static uint32_t events_name(const struct events *events, struct pd_counter *counters)
{
	for (uint32_t i = 0; i < events->count; i++) {
		memcpy(counters[i].name, events->names[i], NAME_BYTES);
		counters[i].flags = events->multiplexed ? PD_COUNTER_MULTIPLEXED : 0;
	}
	return events->count;
}

static uint32_t papi_open(struct pd_counter *counters, uint32_t room)
{
	const char *list = secure_getenv("PERFDIFF_EVENTS");
	int error = errno;

	if (!list || !*list)
		return 0;
	events_parse(list);
	if (hardware.count + software.count > room || malloc_is_probed() || !load(software.count > 0) || !initialise()) {
		hardware.count = software.count = 0;
	} else {
		events_try(&hardware);
		events_try(&software);
	}
	if (software.count) {
		software_set = set_start(&software);
		if (software_set == PAPI_NULL || pthread_atfork(software_take, software_release, software_release))
			software.count = 0;
	}
	errno = error;
	return events_name(&hardware, counters) + events_name(&software, counters + hardware.count);
}

/* In the child of a fork: the sets of its parent count its parent. */
static bool begin_anew(void)
{
	software_set = PAPI_NULL;
	pd_descriptors_forget();
	if (!initialise())
		return false;
	if (software.count)
		software_set = set_start(&software);
	return true;
}

/* Ends the set that this thread counts by, if it has one. */
static void hardware_close(void)
{
	long long values[PD_COUNTERS];

	if (here.set != PAPI_NULL) {
		papi.stop(here.set, values); /* one that runs cannot be closed */
		set_close(here.set);
	}
	papi.unregister_thread();
}

static bool hardware_open(void)
{
	uint32_t wanted = hardware.count * DESCRIPTORS_AN_EVENT;
	struct pd_descriptors before;

	if (!hardware.count || pd_descriptors_lost() || !pd_descriptors_take(wanted))
		return false;
	if (pd_descriptors_list(&before) && papi.register_thread() == PAPI_OK) {
		here.set = set_start(&hardware);
		if (here.set != PAPI_NULL && pd_descriptors_adopt(&before))
			return true;
		hardware_close();
	}
	pd_descriptors_give(wanted);
	return false;
}

static void papi_thread_open(struct pd_thread *thread __attribute__((unused)))
{
	int error = errno;

	if (here.running && owner == getpid()) /* this one's calls were carried elsewhere, and others come */
		return;
	pd_inside_papi = true;
	pd_order();
	memset(&here, 0, sizeof(here));
	here.running = (owner == getpid() || begin_anew()) && hardware_open();
	pd_order();
	pd_inside_papi = false;
	errno = error;
}

static void papi_thread_close(struct pd_thread *thread __attribute__((unused)))
{
	int error = errno;

	pd_inside_papi = true;
	pd_order();
	if (here.running && !pd_descriptors_lost()) {
		hardware_close();
		pd_descriptors_give(hardware.count * DESCRIPTORS_AN_EVENT);
	}
	here.running = false;
	pd_order();
	pd_inside_papi = false;
	errno = error;
}

/* Multiplexed values are estimates, which may go back: those at a call's end must not lie below those at its start. */
static void hold(uint64_t *values)
{
	for (uint32_t i = 0; i < hardware.count; i++) {
		if (values[i] > here.last[i])
			here.last[i] = values[i];
		values[i] = here.last[i];
	}
}

static bool hardware_read(uint64_t *values)
{
	if (!here.running || pd_descriptors_lost() || papi.read(here.set, (long long *)values) != PAPI_OK)
		return false;
	if (hardware.multiplexed)
		hold(values);
	return true;
}

/* An event that no library has registered yet reads as -1; a level below zero is no count either. */
static bool software_read(uint64_t *values)
{
	bool read;

	software_take();
	read = software_set != PAPI_NULL && papi.read(software_set, (long long *)values) == PAPI_OK;
	software_release();
	for (uint32_t i = 0; read && i < software.count; i++)
		if (values[i] > INT64_MAX)
			values[i] = PD_ABSENT;
	return read;
}

static void papi_read(struct pd_thread *thread __attribute__((unused)), uint64_t *values)
{
	bool busy = pd_inside_papi; /* a signal handler must not meet PAPI's locks */
	int error = errno;

	pd_inside_papi = true;
	pd_order();
	if (hardware.count && (busy || !hardware_read(values)))
		memset(values, 0xff, hardware.count * sizeof(*values));
	if (software.count && (busy || !software_read(values + hardware.count)))
		memset(values + hardware.count, 0xff, software.count * sizeof(*values));
	pd_order();
	pd_inside_papi = busy;
	errno = error;
}

const struct pd_counter_source pd_papi_counters = {
	.open = papi_open,
	.thread_open = papi_thread_open,
	.thread_close = papi_thread_close,
	.read = papi_read,
};

#endif
