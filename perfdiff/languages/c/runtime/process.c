/* A probed process from its start to its end: environment, plan, fork, exit. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "runtime.h"

#define PLAN_MAGIC "PDPLAN1\0"
#define WITH_ID (CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID)
#define CONSTRUCTOR_FIRST 101 /* the first that is not the C library's own */

struct plan_header {
	char magic[8];
	uint32_t probes;
	_Atomic uint32_t epoch; /* raised while the process runs: from then on other periods hold, and other calls are kept */
};

/* One cpuid only (all 64-bit CPUs have this leaf): in a virtual machine it takes as long as a thousand probes. */
static bool counter_is_invariant(void)
{
#if defined(__x86_64__)
	unsigned a, b, c, d;

	__cpuid(0x80000007, a, b, c, d);
	return d & 1u << 8;
#else
	return true;
#endif
}

static void modes_set(void)
{
	for (uint32_t probe = 1; probe < pd_process.probes; probe++)
		pd_modes[probe] = pd_process.plan[probe].mode <= PD_SAMPLE ? pd_process.plan[probe].mode : PD_OFF;
}

/* The plan stays mapped; its modes are copied, for calibration and for quick access. */
static bool plan_read(const char *path)
{
	int file = open(path, O_RDONLY | O_CLOEXEC);
	struct plan_header *header = MAP_FAILED;
	struct stat status;
	uint32_t probes;

	if (file < 0)
		return false;
	if (!fstat(file, &status) && status.st_size >= (off_t)sizeof(*header))
		header = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_SHARED, file, 0);
	close(file);
	if (header == MAP_FAILED || memcmp(header->magic, PLAN_MAGIC, sizeof(header->magic)))
		return false;
	probes = header->probes;
	if (!probes || ((uint64_t)status.st_size - sizeof(*header)) / sizeof(struct pd_plan_entry) < probes)
		return false;
	pd_modes = pd_memory(probes + (size_t)1);
	if (!pd_modes)
		return false;
	/* Off in a child of which nobody tells us, as of a raw clone, until its first call finds that. Before Linux 4.14 it counts as its parent. */
	madvise(pd_modes, probes + (size_t)1, MADV_WIPEONFORK);
	pd_process.plan = (const struct pd_plan_entry *)(header + 1);
	pd_process.epoch = &header->epoch;
	pd_process.probes = probes;
	modes_set();
	pd_modes[probes] = PD_KNOWN_PROCESS;
	return true;
}

static bool plan_samples(void)
{
	for (uint32_t probe = 1; probe < pd_process.probes; probe++)
		if (pd_modes[probe] == PD_SAMPLE)
			return true;
	return false;
}

/* Whether the plan has nothing to do for a probe, so that who can leave it out may do so. */
PD_API int pd_is_off(unsigned probe)
{
	return probe >= pd_process.probes || pd_process.plan[probe].mode == PD_OFF || pd_process.plan[probe].mode > PD_SAMPLE;
}

/* A child starts a recording of its own at its first probed call; many children only exec. */
static void child_begin(void)
{
	pd_lock_reset();
	pd_threads_forget();
	pd_types_forget();
	pd_process.header = NULL;
	modes_set();
}

static struct pd_child *children; /* in the order in which they were added */

static void children_begin(void)
{
	for (const struct pd_child *child = children; child; child = child->next)
		child->begin();
	if (pd_modes)
		__atomic_store_n(&pd_modes[pd_process.probes], PD_KNOWN_PROCESS, __ATOMIC_RELEASE);
}

void pd_child_find(void)
{
	unsigned char untold = PD_UNTOLD_CHILD;

	if (!pd_probes || !pd_is_untold_child())
		return;
	if (__atomic_compare_exchange_n(&pd_modes[pd_process.probes], &untold, PD_CHILD_BEGINS, false, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE))
		children_begin();
	while (pd_is_untold_child()) /* another of its threads was first */
		sched_yield();
}

bool pd_child_add(struct pd_child *child)
{
	struct pd_child **end = &children;

	if (!children && pthread_atfork(NULL, NULL, children_begin))
		return false;
	while (*end)
		end = &(*end)->next;
	*end = child;
	return true;
}

static __attribute__((constructor(CONSTRUCTOR_FIRST))) void begin(void)
{
	/* Not in a program that runs with more rights than who started it: it would write where that one says. */
	const char *folder = secure_getenv("PERFDIFF_OUT"), *plan = secure_getenv("PERFDIFF_PLAN"), *seed = secure_getenv("PERFDIFF_SEED"),
		   *most = secure_getenv("PERFDIFF_MOST_BYTES");
	static struct pd_child child = {.begin = child_begin};
	struct pd_thread *thread;

	if (!folder || !plan || strlen(folder) >= sizeof(pd_process.folder))
		return;
	pd_counters_open();
	pd_process.counter_clock = counter_is_invariant();
	pd_process.long_ticks = UINT64_MAX; /* until the probes' cost is known */
	if (!plan_read(plan) || !pd_threads_begin() || !pd_child_add(&child) || at_quick_exit(pd_end))
		return;
	strcpy(pd_process.folder, folder);
	pd_process.seed = seed ? strtoull(seed, NULL, 10) : 0;
	pd_process.most_bytes = most ? strtoull(most, NULL, 10) : UINT64_MAX;
	if (plan_samples())
		pd_guard_begin();
	pd_process.sees = (pd_allocations_seen() ? PD_SEES_ALLOCATIONS : 0) | (pd_locks_seen() ? PD_SEES_LOCKS : 0);
	pd_probes = pd_process.probes;
	thread = pd_thread_open();
	if (!thread)
		return;
	pd_calibrate(thread);
	if (!&pd_pmu_counters) /* whose calls are counted however long they were interrupted, and whose times nobody reads */
		pd_process.long_ticks = pd_presence_ticks(thread, PD_LONG_NS);
	memcpy(pd_process.header->costs, pd_process.costs, sizeof(pd_process.costs));
	pd_clock_refresh();
}

/* A thread's counters lie in its TLS, which may vanish while the thread ends: absent ones count as they stood at the last call. */
static void resources_of(const struct pd_thread *thread, uint64_t resources[PD_RESOURCES])
{
	for (int i = 0; i < PD_RESOURCES; i++)
		if (!pd_peek(PD_GUARD_SYSCALL, (uintptr_t)&thread->resources[i], sizeof(resources[i]), &resources[i]))
			resources[i] = thread->top->resources[i];
}

/* Of the counted library: writes what is known of hot lines, and what is still allocated. */
void pd_lines_end(void) __attribute__((weak, visibility("hidden")));
bool pd_lasting_end(void) __attribute__((weak, visibility("hidden")));

/*
 * Ends the recording: closes the calls that are open. Other threads still run: a call that one of them leaves at this moment may count twice.
 * Where the process does not end `by_exit`, nothing of the program had a chance to free what it holds.
 */
static void end(bool by_exit)
{
	struct pd_header *header = pd_process.header;
	uint64_t now;

	if (!pd_is_recorded_process() || header->flags & PD_ENDED)
		return;
	pd_probes = 0;
	if (pd_self.thread)
		pd_presence_mark(pd_self.thread, pd_self.thread->top);
	now = pd_ticks();
	for (struct pd_thread *thread = pd_process.threads; thread; thread = thread->next_thread) {
		uint64_t resources[PD_RESOURCES];

		pd_thread_count_passed(thread);
		if (!thread->top->parent)
			continue;
		resources_of(thread, resources);
		pd_thread_close_calls(thread, now, resources);
	}
	if (pd_lines_end)
		pd_lines_end();
	if (by_exit && &pd_pmu_counters)
		pd_open_tell();
	if (by_exit && pd_lasting_end && header->flags & PD_SEES_ALLOCATIONS && pd_lasting_end())
		header->flags |= PD_KNOWS_LASTING;
	pd_clock_refresh();
	pd_order();
	header->flags |= PD_ENDED;
}

PD_API void pd_end(void)
{
	end(false);
}

static __attribute__((destructor(CONSTRUCTOR_FIRST))) void end_by_exit(void)
{
	end(true);
}

#ifndef PD_STATIC

/* Children of a fork end this way. */
PD_API __attribute__((noreturn)) void _exit(int status)
{
	pd_end();
	for (;;)
		syscall(SYS_exit_group, status);
}

PD_API __attribute__((noreturn)) void _Exit(int status)
{
	_exit(status);
}

static pid_t (*next_fork)(void);
static __typeof__(clone) *next_clone;

static PD_RESOLVE void find_all(void)
{
	next_fork = (pid_t (*)(void))pd_next_function("_Fork");
	next_clone = (__typeof__(clone) *)pd_next_function("clone");
}

/* fork without its handlers, ours included, for children that do next to nothing. */
PD_API pid_t _Fork(void)
{
	pid_t child;

	if (!next_fork)
		find_all();
	if (!next_fork) { /* before glibc 2.34 */
		errno = ENOSYS;
		return -1;
	}
	child = next_fork();
	if (!child)
		children_begin();
	return child;
}

struct start {
	int (*function)(void *);
	void *argument;
};

static int child_run(void *data)
{
	const struct start *start = data;
	int status = start->function(start->argument);

	pd_end();
	return status;
}

/* The C library ends a child without a word when its function returns. One that has our memory, not a copy of it, has no recording to end. */
PD_API int clone(int (*function)(void *), void *stack, int flags, void *argument, ...)
{
	struct start start = {function, argument}; /* in the child's copy of our stack */
	pid_t *parent_id, *child_id;
	bool is_copy = !(flags & CLONE_VM);
	va_list rest;
	void *tls;

	va_start(rest, argument);
	parent_id = flags & (CLONE_PARENT_SETTID | CLONE_PIDFD | CLONE_SETTLS | WITH_ID) ? va_arg(rest, pid_t *) : NULL;
	tls = flags & (CLONE_SETTLS | WITH_ID) ? va_arg(rest, void *) : NULL;
	child_id = flags & WITH_ID ? va_arg(rest, pid_t *) : NULL;
	va_end(rest);
	if (!next_clone)
		find_all();
	return next_clone(is_copy && function ? child_run : function, stack, flags, is_copy ? &start : argument, parent_id, tls, child_id);
}

#endif
