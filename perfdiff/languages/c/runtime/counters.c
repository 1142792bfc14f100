/* The counters of calls and where they come from; and what the system itself counts of a thread. */
#include <errno.h>
#include <string.h>
#include <sys/resource.h>

#include "runtime.h"

enum { CPU_NS, PAGE_FAULTS, SWITCHES, SYSTEM_COUNTERS };

static uint32_t system_open(struct pd_counter *counters, uint32_t room)
{
	static const char *const names[SYSTEM_COUNTERS] = {"cpu_ns", "page_faults", "switches"};

	if (room < SYSTEM_COUNTERS)
		return 0;
	for (int i = 0; i < SYSTEM_COUNTERS; i++)
		strcpy(counters[i].name, names[i]);
	return SYSTEM_COUNTERS;
}

static __attribute__((cold)) void system_read(struct pd_thread *thread __attribute__((unused)), uint64_t *values)
{
	int error = errno;
	struct rusage now;

	if (getrusage(RUSAGE_THREAD, &now)) {
		memset(values, 0xff, sizeof(*values) * SYSTEM_COUNTERS);
	} else {
		values[PAGE_FAULTS] = (uint64_t)now.ru_minflt + (uint64_t)now.ru_majflt;
		values[SWITCHES] = (uint64_t)now.ru_nvcsw + (uint64_t)now.ru_nivcsw;
		values[CPU_NS] = pd_clock_ns(CLOCK_THREAD_CPUTIME_ID);
	}
	errno = error;
}

const struct pd_counter_source pd_system_counters = {.open = system_open, .read = system_read};

static void add(const struct pd_counter_source *source)
{
	uint32_t first = pd_process.counter_count;
	uint32_t counters = source ? source->open(pd_process.counters + first, PD_COUNTERS - first) : 0;

	if (!counters)
		return;
	pd_process.sources[pd_process.source_count] = source;
	pd_process.source_first[pd_process.source_count++] = first;
	pd_process.counter_count = first + counters;
	if (source->peak) {
		pd_process.peak = source->peak;
		pd_process.peak_counter = first + counters - 1;
	}
}

void pd_counters_open(void)
{
	if (&pd_pmu_counters) {
		add(&pd_pmu_counters);
	} else {
		add(&pd_system_counters);
		add(&pd_kernel_counters);
		add(&pd_papi_counters);
	}
}

void pd_counters_thread_open(struct pd_thread *thread)
{
	for (uint32_t i = 0; i < pd_process.source_count; i++)
		if (pd_process.sources[i]->thread_open)
			pd_process.sources[i]->thread_open(thread);
}

void pd_counters_thread_close(struct pd_thread *thread)
{
	for (uint32_t i = 0; i < pd_process.source_count; i++)
		if (pd_process.sources[i]->thread_close)
			pd_process.sources[i]->thread_close(thread);
}

void pd_counters_read(struct pd_thread *thread, uint64_t *values)
{
	for (uint32_t i = 0; i < pd_process.source_count; i++)
		pd_process.sources[i]->read(thread, values + pd_process.source_first[i]);
	for (uint32_t i = 0; pd_unlikely(thread->is_moved) && i < pd_process.counter_count; i++)
		values[i] = values[i] == PD_ABSENT || thread->offsets[i] == PD_ABSENT ? PD_ABSENT : values[i] + thread->offsets[i];
}
