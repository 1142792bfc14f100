/*
 * Measures what probes cost here and now, with the probe that no function has (number 0). The least of several batches is
 * taken: whatever disturbs a batch only makes it slower.
 */
#include <string.h>
#include <sys/mman.h>

#include "runtime.h"

#define BATCHES 5
#define CALLS 64u
#define COUNTED_CALLS 8u
#define SEGMENT_BYTES 32768u /* more than the largest one used */
#define LEVELS 3             /* segments that hold CALLS records */
_Static_assert((PD_SEGMENT_FIRST << LEVELS) - PD_SEGMENT_FIRST >= CALLS, "all records have a place");
_Static_assert((PD_SEGMENT_FIRST << (LEVELS - 1)) * (sizeof(struct pd_sample) + 8 * PD_COUNTERS) + sizeof(struct pd_samples) <= SEGMENT_BYTES, "room");

static __attribute__((noinline)) void bare(void)
{
	__asm__ volatile("");
}

static __attribute__((noinline)) void probed(void)
{
	PD_FRAME(0);
	int sampled __attribute__((unused)) = pd_enter(&pd_frame_) ? pd_start(&pd_frame_) : 0;

	__asm__ volatile("");
}

static uint64_t batch(void (*function)(void))
{
	uint64_t start = pd_ticks();

	for (uint32_t i = 0; i < CALLS; i++)
		function();
	return (pd_ticks() - start) << PD_TIME_FRACTION;
}

static uint64_t lesser(uint64_t value, uint64_t other)
{
	return value < other ? value : other;
}

/* The reading of cells is measured in each sampled call, and left out here. */
static void measure(struct pd_thread *thread, enum pd_mode mode, uint64_t *outside, uint64_t *inside)
{
	struct pd_local *local = thread->locals;
	uint64_t without = UINT64_MAX, with = UINT64_MAX, inner = UINT64_MAX;

	local->mode = (uint8_t)mode;
	pd_modes[0] = (unsigned char)mode;
	for (int i = 0; i < BATCHES; i++) {
		uint64_t spent;

		local->considered = 0;
		local->totals->self = 0;
		thread->root.debt = 0;
		without = lesser(without, batch(bare));
		spent = batch(probed);
		with = lesser(with, spent - lesser(spent, thread->root.debt));
		inner = lesser(inner, (uint64_t)local->totals->self);
	}
	*outside = (with - lesser(with, without)) / CALLS;
	if (inside)
		*inside = inner / CALLS;
}

/* A call that passes the gate. */
static uint64_t measure_passing(struct pd_thread *thread)
{
	uint64_t without = UINT64_MAX, with = UINT64_MAX;

	for (int i = 0; i < BATCHES; i++) {
		thread->gates[0] = CALLS;
		without = lesser(without, batch(bare));
		with = lesser(with, batch(probed));
	}
	return (with - lesser(with, without)) / CALLS;
}

/* A call that leaves a mark. */
static uint64_t measure_marking(struct pd_thread *thread)
{
	struct pd_local *local = thread->locals;
	uint64_t without = UINT64_MAX, with = UINT64_MAX;

	local->flags = PD_FLAG_MARKED;
	local->totals->calls = PD_FIRST_CALLS;
	for (int i = 0; i < BATCHES; i++) {
		local->countdown = CALLS + 1;
		without = lesser(without, batch(bare));
		with = lesser(with, batch(probed));
	}
	local->flags = 0;
	return (with - lesser(with, without)) / CALLS;
}

/* What is counted between the two readings of an empty call. */
static void measure_counters(struct pd_local *local)
{
	uint64_t costs[PD_COUNTERS];

	local->flags = PD_FLAG_COUNTERS;
	memset(costs, 0xff, sizeof(costs));
	for (uint32_t call = 0; call < COUNTED_CALLS; call++) {
		memset(local->totals->counters, 0, sizeof(costs));
		local->considered = 0;
		probed();
		for (uint32_t i = 0; i < pd_process.counter_count; i++)
			costs[i] = lesser(costs[i], local->totals->counters[i]);
	}
	for (uint32_t i = 0; i < pd_process.counter_count; i++)
		pd_process.counter_costs[i] = costs[i] == PD_ABSENT ? 0 : costs[i];
}

static void count(struct pd_thread *thread, void (*function)(void), uint64_t least[PD_COUNTERS])
{
	uint64_t before[PD_COUNTERS], after[PD_COUNTERS];

	memset(before, 0, sizeof(before));
	memset(after, 0, sizeof(after));
	pd_counters_read(thread, before);
	for (uint32_t call = 0; call < COUNTED_CALLS; call++)
		function();
	pd_counters_read(thread, after);
	for (uint32_t i = 0; i < pd_process.counter_count; i++)
		least[i] = lesser(least[i], after[i] - before[i]);
}

/* What is counted of an empty call's probe by its caller. */
static void measure_level(struct pd_thread *thread, enum pd_level level)
{
	static const enum pd_mode modes[PD_LEVELS] = {PD_SAMPLE, PD_SAMPLE, PD_COUNT, PD_TIME, PD_SAMPLE, PD_SAMPLE};
	uint64_t without[PD_COUNTERS], with[PD_COUNTERS];

	memset(without, 0xff, sizeof(without));
	memset(with, 0xff, sizeof(with));
	thread->locals->mode = pd_modes[0] = (unsigned char)modes[level];
	thread->locals->flags = level == PD_LEVEL_READ ? PD_FLAG_COUNTERS : level == PD_LEVEL_MARKED ? PD_FLAG_MARKED : 0;
	for (int i = 0; i < BATCHES; i++) {
		thread->locals->considered = 0;
		thread->gates[0] = level == PD_LEVEL_PASSED ? COUNTED_CALLS : 0;
		thread->locals->countdown = COUNTED_CALLS + 1;
		count(thread, bare, without);
		count(thread, probed, with);
	}
	for (uint32_t i = 0; i < pd_process.counter_count; i++)
		pd_process.level_costs[level][i] = (with[i] - lesser(with[i], without[i])) / COUNTED_CALLS;
}

/* Where no call's counters are read, what probes count is taken off none: asking the system for it 200 times is a good part of a start. */
static bool counters_are_read(void)
{
	for (uint32_t probe = 1; probe < pd_process.probes; probe++)
		if (pd_process.plan[probe].flags & (PD_FLAG_COUNTERS | PD_FLAG_OWN))
			return true;
	return false;
}

/* Probe 0's totals, edge and records are in no file. */
void pd_calibrate(struct pd_thread *thread)
{
	union {
		struct pd_totals totals;
		char room[sizeof(struct pd_totals) + PD_COUNTERS * sizeof(uint64_t)];
	} own = {0};
	struct pd_edge edge = {0};
	struct pd_local *local = thread->locals;
	char *segments = pd_memory(LEVELS * SEGMENT_BYTES);
	uint64_t costs[PD_COSTS] = {0};

	if (!segments)
		return;
	for (int level = 0; level < LEVELS; level++)
		local->segments[level] = (struct pd_samples *)(segments + level * SEGMENT_BYTES);
	local->totals = &own.totals;
	local->edge = &edge;
	local->period = 1;
	local->reservoir = CALLS;
	measure(thread, PD_COUNT, &costs[PD_COST_COUNTED], NULL);
	measure(thread, PD_TIME, &costs[PD_COST_TIMED], &costs[PD_COST_TIMED_INNER]);
	measure(thread, PD_SAMPLE, &costs[PD_COST_SAMPLED], &costs[PD_COST_SAMPLED_INNER]);
	memcpy(pd_process.costs, costs, sizeof(costs));
	pd_process.pass_cost = measure_passing(thread);
	pd_process.mark_cost = measure_marking(thread);
	if (counters_are_read()) {
		measure_counters(local);
		for (int level = 0; level < PD_LEVELS; level++)
			measure_level(thread, (enum pd_level)level);
	}
	memset(local, 0, sizeof(*local));
	pd_modes[0] = PD_OFF;
	thread->root.callee_time = 0;
	thread->root.debt = 0;
	thread->root.callee_calls = 0;
	munmap(segments, LEVELS * SEGMENT_BYTES);
}
