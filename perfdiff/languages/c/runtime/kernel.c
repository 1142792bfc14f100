/*
 * Events that the kernel itself counts of a thread (perf_event_open(2), PERF_TYPE_SOFTWARE): page faults, switches, migrations, its clocks.
 * They need neither a PMU nor PAPI. Each is read by itself: of a group that is led by another event, the kernel (6.18) does not bring its
 * clocks up to date.
 *
 * The kernel's part is counted as well where that is permitted: switches and migrations happen there. Otherwise events count what user
 * mode causes, and who asks for them knows which of them that leaves at 0.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "descriptors.h"
#include "runtime.h"

#ifdef PD_STATIC /* nothing keeps a static program from closing our descriptors */

static uint32_t kernel_open(struct pd_counter *counters __attribute__((unused)), uint32_t room __attribute__((unused)))
{
	return 0;
}

static void kernel_read(struct pd_thread *thread __attribute__((unused)), uint64_t *values __attribute__((unused)))
{
}

const struct pd_counter_source pd_kernel_counters = {.open = kernel_open, .read = kernel_read};

#else

#define NAME_BYTES sizeof(((struct pd_counter *)0)->name)

static struct {
	char name[NAME_BYTES];
	uint64_t number; /* the kernel's, PERF_COUNT_SW_… */
} events[PD_COUNTERS];
static uint32_t event_count;
static pid_t owner; /* a child of a fork starts anew */

static PD_TLS struct {
	bool running;
	int descriptors[PD_COUNTERS];
} here;

/* The list is `NAME=NUMBER,…`. */
static void events_parse(const char *list, uint32_t room)
{
	while (*list && event_count < room) {
		size_t length = strcspn(list, ",");
		const char *equals = memchr(list, '=', length);

		if (equals && equals > list && (size_t)(equals - list) < NAME_BYTES) {
			memcpy(events[event_count].name, list, (size_t)(equals - list));
			events[event_count++].number = strtoul(equals + 1, NULL, 10);
		}
		list += length + (list[length] == ',');
	}
}

static int event_open(uint64_t number)
{
	struct perf_event_attr attribute;
	int descriptor;

	memset(&attribute, 0, sizeof(attribute));
	attribute.size = sizeof(attribute);
	attribute.type = PERF_TYPE_SOFTWARE;
	attribute.config = number;
	attribute.exclude_hv = 1;
	descriptor = (int)syscall(SYS_perf_event_open, &attribute, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (descriptor < 0 && (errno == EACCES || errno == EPERM)) {
		attribute.exclude_kernel = 1;
		descriptor = (int)syscall(SYS_perf_event_open, &attribute, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	}
	return descriptor;
}

static void events_close(uint32_t opened)
{
	while (opened--)
		close(here.descriptors[opened]);
	pd_descriptors_give(event_count);
}

static bool events_open(void)
{
	if (pd_descriptors_lost() || !pd_descriptors_take(event_count))
		return false;
	for (uint32_t i = 0; i < event_count; i++) {
		here.descriptors[i] = event_open(events[i].number);
		if (here.descriptors[i] < 0 || !pd_descriptors_own(here.descriptors[i])) {
			events_close(here.descriptors[i] < 0 ? i : i + 1);
			return false;
		}
	}
	return true;
}

static uint32_t kernel_open(struct pd_counter *counters, uint32_t room)
{
	const char *list = secure_getenv("PERFDIFF_KERNEL_EVENTS");

	if (!list)
		return 0;
	events_parse(list, room);
	owner = getpid();
	for (uint32_t i = 0; i < event_count; i++)
		memcpy(counters[i].name, events[i].name, NAME_BYTES);
	return event_count;
}

static void kernel_thread_open(struct pd_thread *thread __attribute__((unused)))
{
	bool busy = pd_inside_papi;
	int error = errno;

	if (here.running && owner == getpid()) /* this one's calls were carried elsewhere, and others come */
		return;
	pd_inside_papi = true;
	pd_order();
	if (owner != getpid()) {
		if (here.running && !pd_descriptors_lost()) /* they count the parent's thread */
			events_close(event_count);
		pd_descriptors_forget();
		owner = getpid();
	}
	here.running = events_open();
	pd_order();
	pd_inside_papi = busy;
	errno = error;
}

static void kernel_thread_close(struct pd_thread *thread __attribute__((unused)))
{
	bool busy = pd_inside_papi;
	int error = errno;

	pd_inside_papi = true;
	pd_order();
	if (here.running && !pd_descriptors_lost())
		events_close(event_count);
	here.running = false;
	pd_order();
	pd_inside_papi = busy;
	errno = error;
}

static void kernel_read(struct pd_thread *thread __attribute__((unused)), uint64_t *values)
{
	bool readable = here.running && !pd_descriptors_lost();
	int error = errno;

	for (uint32_t i = 0; i < event_count; i++)
		if (!readable || syscall(SYS_read, here.descriptors[i], values + i, sizeof(*values)) != sizeof(*values))
			values[i] = PD_ABSENT;
	errno = error;
}

const struct pd_counter_source pd_kernel_counters = {
	.open = kernel_open,
	.thread_open = kernel_thread_open,
	.thread_close = kernel_thread_close,
	.read = kernel_read,
};

#endif
