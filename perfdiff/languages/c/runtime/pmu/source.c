/* The software PMU's counts as counters of calls. */
#include <string.h>

#include "pmu.h"

static const char *const names[PD_EVENTS] = {
	[PD_EVENT_BLOCKS] = "blocks",
	[PD_EVENT_LOADS] = "loads",
	[PD_EVENT_STORES] = "stores",
	[PD_EVENT_ATOMICS] = "atomics",
	[PD_EVENT_DIVISIONS] = "divisions",
	[PD_EVENT_L1D_MISS] = "l1d_misses",
	[PD_EVENT_L2_MISS] = "l2_misses",
	[PD_EVENT_LLC_MISS] = "llc_misses",
	[PD_EVENT_HITM] = "hitm",
	[PD_EVENT_HITM_FALSE] = "hitm_false",
	[PD_EVENT_REMOTE_DRAM] = "remote_dram",
};

uint32_t pd_pmu_lost(void)
{
	return atomic_load_explicit(&pd_pmu.lost, memory_order_relaxed);
}

PD_API void pd_pmu_read(uint64_t events[PD_EVENTS])
{
	struct pd_lane all = {0};

	for (int lane = 0; lane < PD_LANES; lane++) {
		all.blocks += pd_core.lanes[lane].blocks;
		all.loads += pd_core.lanes[lane].loads;
		all.stores += pd_core.lanes[lane].stores;
		all.divisions += pd_core.lanes[lane].divisions;
	}
	events[PD_EVENT_BLOCKS] = pd_core.events[PD_EVENT_BLOCKS] + all.blocks;
	events[PD_EVENT_LOADS] = pd_core.events[PD_EVENT_LOADS] + all.loads;
	events[PD_EVENT_STORES] = pd_core.events[PD_EVENT_STORES] + all.stores;
	events[PD_EVENT_ATOMICS] = pd_core.events[PD_EVENT_ATOMICS];
	events[PD_EVENT_DIVISIONS] = pd_divisions_seen() ? all.divisions : PD_ABSENT;
	if (pd_unlikely(pd_pmu_lost()))
		memset(events + PD_EVENT_L1D_MISS, 0xff, (PD_EVENTS - PD_EVENT_L1D_MISS) * sizeof(*events));
	else
		memcpy(events + PD_EVENT_L1D_MISS, pd_core.events + PD_EVENT_L1D_MISS, (PD_EVENTS - PD_EVENT_L1D_MISS) * sizeof(*events));
}

static uint32_t source_open(struct pd_counter *counters, uint32_t room)
{
	if (room < PD_EVENTS)
		return 0;
	for (int event = 0; event < PD_EVENTS; event++) {
		strcpy(counters[event].name, names[event]);
		counters[event].flags = PD_COUNTER_EXACT;
	}
	return PD_EVENTS;
}

static void source_read(struct pd_thread *thread __attribute__((unused)), uint64_t *values)
{
	pd_pmu_read(values);
}

const struct pd_counter_source pd_pmu_counters = {.open = source_open, .read = source_read};
