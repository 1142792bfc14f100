/* What is kept of single calls: which ones, their inputs, their counters, and the record of each. */
#include <string.h>

#include "call.h"

/*
 * Goes over to the plan's new epoch: the reservoir begins anew, and the period may be another. What is kept of calls stays until others take
 * its place; who reads tells by their numbers which are new. Returns whether the call that noticed is like those that come.
 */
__attribute__((cold)) bool pd_epoch_begin(struct pd_local *local, uint32_t epoch)
{
	const struct pd_plan_entry *plan = &pd_process.plan[local->probe];
	uint32_t period = plan->period, before = local->period;

	local->epoch = epoch;
	local->considered = 0;
	if (!period || period == before)
		return true;
	local->period = period;
	local->position = local->position < period ? local->position : period - 1;
	local->countdown = local->countdown && local->countdown <= period ? local->countdown : 1;
	local->flags = (uint8_t)((local->flags & ~PD_FLAG_PASSING) | (plan->flags & PD_FLAG_PASSING));
	return false;
}

static inline uint64_t *record_at(struct pd_thread *thread, struct pd_local *local, uint32_t record)
{
	uint32_t level = 27 - (uint32_t)__builtin_clz(record + PD_SEGMENT_FIRST);
	uint32_t first = (PD_SEGMENT_FIRST << level) - PD_SEGMENT_FIRST;
	struct pd_samples *segment = local->segments[level];
	size_t words = sizeof(struct pd_sample) / 8 + pd_process.counter_count + (local->cells + 63) / 64 + local->cells;

	if (pd_unlikely(!segment)) {
		segment = pd_segment_open(thread, local, level, first);
		if (!segment)
			return NULL;
	}
	return segment->records + (record - first) * words;
}

/* Makes room for the call's counters: at the start, absent until they are read; at entry; of probed callees; and notes the probes so far. */
static bool counters_open(struct pd_thread *thread, struct pd_entry *entry)
{
	uint64_t *counters = thread->values;
	uint32_t count = pd_process.counter_count;

	if (pd_unlikely(counters + 3 * count + PD_LEVELS > thread->values_limit))
		return false;
	thread->values = counters + 3 * count + PD_LEVELS;
	pd_order();
	memcpy(counters + 3 * count, thread->probed, sizeof(thread->probed));
	for (uint32_t i = 0; i < count; i++) {
		counters[i] = PD_ABSENT;
		counters[count + i] = counters[2 * count + i] = 0;
	}
	entry->counters = counters;
	return true;
}

/* Puts what a call has counted down to callees of the nearest caller whose counters are read. */
void pd_call_charge(const struct pd_entry *entry, const uint64_t *counted)
{
	const struct pd_entry *payer = entry->parent;

	while (payer->parent && !payer->counters)
		payer = payer->parent;
	if (payer->counters)
		for (uint32_t i = 0; i < pd_process.counter_count; i++)
			payer->counters[2 * pd_process.counter_count + i] += counted[i];
}

/* A call's peak begins at its level now; the highest level of its caller so far is kept in the place of its own at entry. */
static inline void peak_begin(struct pd_entry *entry)
{
	if (pd_unlikely(pd_process.peak != NULL))
		entry->counters[pd_process.counter_count + pd_process.peak_counter] = pd_process.peak(0);
}

/* Returns how far a call's peak is above the level at its start. The caller's goes on, as what callees hold is held within it. */
static uint64_t peak_end(const struct pd_entry *entry)
{
	uint64_t start = entry->counters[pd_process.peak_counter], highest = pd_process.peak(0);
	uint64_t callers = entry->counters[pd_process.counter_count + pd_process.peak_counter];

	pd_process.peak(highest > callers ? highest : callers);
	return start == PD_ABSENT ? PD_ABSENT : highest > start ? highest - start : 0;
}

/* Reads the counters of a call whose cells nobody asks for. */
void pd_counters_begin(struct pd_thread *thread, struct pd_entry *entry)
{
	if (!counters_open(thread, entry))
		return;
	pd_counters_read(thread, entry->counters);
	for (uint32_t i = 0; i < pd_process.counter_count; i++)
		entry->counters[pd_process.counter_count + i] = entry->counters[i];
	peak_begin(entry);
}

/* Makes room for the call's cells; branch cells start as read, feature cells as absent. */
static bool cells_open(struct pd_thread *thread, struct pd_entry *entry, struct pd_local *local)
{
	uint32_t words = (local->cells + 63) / 64;
	uint64_t *cells = thread->values + words;

	if (pd_unlikely(cells + local->cells > thread->values_limit))
		return false;
	thread->values = cells + local->cells;
	pd_order();
	memset(cells - words, 0, (words + local->cells) * sizeof(*cells));
	for (uint32_t cell = local->features; cell < local->cells; cell++)
		*(cells - 1 - cell / 64) |= UINT64_C(1) << cell % 64;
	entry->cells = cells;
	return true;
}

int pd_sampled_begin(struct pd_thread *thread, struct pd_entry *entry, struct pd_frame *frame)
{
	struct pd_local *local = entry->local;

	entry->start = entry->entered; /* should reading a feature throw */
	if (!cells_open(thread, entry, local)) {
		entry->record = 0;
		return 0;
	}
	pd_gates_turn(thread);
	frame->cells = (uintptr_t)entry->cells;
	entry->guard = PD_GUARD_UNKNOWN;
	if (local->flags & (PD_FLAG_COUNTERS | PD_FLAG_OWN) && counters_open(thread, entry) && local->flags & PD_FLAG_OWN) {
		pd_counters_read(thread, entry->counters + pd_process.counter_count);
		peak_begin(entry);
	}
	return 1;
}

PD_API int pd_start(struct pd_frame *frame)
{
	struct pd_entry *entry = (struct pd_entry *)frame->entry;
	uint64_t before;

	if (pd_unlikely(entry->counters != NULL))
		pd_counters_read(pd_self.thread, entry->counters);
	entry->start = pd_worked_until(pd_self.thread, entry->local, entry->parent, entry->entered);
	before = pd_lost(pd_self.thread);
	entry->missed = (before - entry->preempted) >> PD_TIME_FRACTION;
	if (pd_unlikely(entry->missed > entry->start - entry->entered)) /* a clock that is not read goes nowhere */
		entry->missed = entry->start - entry->entered;
	entry->preempted = before;
	if (pd_likely(!pd_is_brief(entry->local))) { /* else the mean would hold calls whose texts were left out */
		entry->local->totals->read++;
		entry->local->totals->reading += entry->start - entry->entered - entry->missed;
	}
	return 1;
}

static __attribute__((noinline)) void record_write(struct pd_thread *thread, struct pd_entry *entry, int64_t wall, int64_t self,
						    const uint64_t resources[PD_RESOURCES], const uint64_t counters[PD_COUNTERS])
{
	struct pd_local *local = entry->local;
	uint32_t masks = (local->cells + 63) / 64, count = pd_process.counter_count;
	struct pd_sample *sample;

	if (thread->writing)
		return;
	thread->writing = 1;
	pd_order();
	sample = (struct pd_sample *)record_at(thread, local, entry->record - 1);
	if (pd_likely(sample)) {
		sample->call = 0;
		pd_order();
		sample->wall = wall;
		sample->self = self;
		sample->callee_calls = entry->callee_calls;
		memcpy(sample->resources, resources, sizeof(sample->resources));
		memcpy(sample->counters, counters, count * sizeof(*counters));
		sample->weight = entry->weight;
		memcpy(sample->counters + count, entry->cells - masks, (masks + local->cells) * sizeof(uint64_t));
		pd_order();
		sample->call = entry->call;
	}
	pd_order();
	thread->writing = 0;
}

/* What the probes of calls inside this one have counted of counter `i`. */
static uint64_t counted_by_probes(const struct pd_thread *thread, const struct pd_entry *entry, uint32_t i)
{
	const uint64_t *before = entry->counters + 3 * pd_process.counter_count;
	uint64_t sum = 0;

	for (int level = 0; level < PD_LEVELS; level++)
		sum += (thread->probed[level] - before[level]) * pd_process.level_costs[level][i];
	return sum;
}

/* Reads a call's counters at its end; with PD_FLAG_OWN, takes off what probed callees have counted, else what their probes have. */
static void counters_close(struct pd_thread *thread, struct pd_entry *entry, uint64_t counted[PD_COUNTERS])
{
	const uint64_t *start = entry->counters, *entered = start + pd_process.counter_count, *callees = entered + pd_process.counter_count;
	struct pd_totals *totals = entry->local->totals;
	bool own = entry->local->flags & PD_FLAG_OWN;
	uint64_t now[PD_COUNTERS], whole[PD_COUNTERS];

	pd_counters_read(thread, now);
	for (uint32_t i = 0; i < pd_process.counter_count; i++) {
		bool peaks = pd_unlikely(own && pd_process.peak != NULL) && i == pd_process.peak_counter;
		uint64_t others = pd_process.counter_costs[i] + (own ? callees[i] : counted_by_probes(thread, entry, i));

		whole[i] = own && !peaks ? now[i] - entered[i] : 0;
		if (peaks)
			counted[i] = peak_end(entry);
		else if (now[i] == PD_ABSENT || start[i] == PD_ABSENT || now[i] < start[i]) /* an event may be a level, which falls */
			counted[i] = PD_ABSENT;
		else
			counted[i] = now[i] - start[i] > others ? now[i] - start[i] - others : 0;
		if (counted[i] == PD_ABSENT || totals->counters[i] == PD_ABSENT)
			totals->counters[i] = PD_ABSENT;
		else
			totals->counters[i] += counted[i];
	}
	totals->flagged++;
	if (own)
		pd_call_charge(entry, whole);
}

/*
 * The part of leaving that sampled, flagged and long calls have beyond the others. Returns what it cost since the call ended, `now`, when `gone`
 * had been lost, in time's unit: that differs from call to call, as records go to memory that nobody has touched before.
 */
uint64_t pd_extras_close(struct pd_thread *thread, struct pd_entry *entry, uint64_t now, uint64_t gone, int64_t wall,
							const uint64_t resources[PD_RESOURCES])
{
	uint64_t counted[PD_COUNTERS], ended, took, missed;

	if (entry->counters && thread == pd_self.thread)
		counters_close(thread, entry, counted);
	else
		memset(counted, 0xff, sizeof(counted));
	/* A call of a thread that runs on while the process ends may have its record, and not yet its cells. */
	if (entry->record && (entry->cells || thread == pd_self.thread))
		record_write(thread, entry, wall, wall - entry->callee_time, resources, counted);
	ended = thread == pd_self.thread ? pd_worked_until(thread, entry->local, entry->parent, now) : pd_moment(entry->local);
	took = (ended - now) << PD_TIME_FRACTION;
	missed = pd_lost(thread) - gone; /* some of it perhaps before the call ended, where nobody has looked since */
	return missed < took ? took - missed : 0;
}
