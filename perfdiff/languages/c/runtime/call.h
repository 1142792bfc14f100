/* What probe.c, which enters and leaves calls, shares with the parts that choose, keep and drop them. */
#ifndef PD_CALL_H
#define PD_CALL_H

#include "runtime.h"

/* periods.c: which calls are timed, and how many each stands for */
uint32_t pd_weigh_recursive(struct pd_thread *thread, struct pd_local *local);
uint32_t pd_share_below(struct pd_thread *thread, struct pd_entry *caller, const struct pd_entry *entry);
bool pd_stand_aside(struct pd_entry *caller);
bool pd_passes_anyway(struct pd_thread *thread, struct pd_local *local, bool is_below_mark);
void pd_recursion_leave(struct pd_thread *thread, struct pd_local *local, struct pd_entry *payer);

/* samples.c: what is kept of single calls */
bool pd_epoch_begin(struct pd_local *local, uint32_t epoch);
int pd_sampled_begin(struct pd_thread *thread, struct pd_entry *entry, struct pd_frame *frame);
void pd_counters_begin(struct pd_thread *thread, struct pd_entry *entry);
void pd_call_charge(const struct pd_entry *entry, const uint64_t *counted);
uint64_t pd_extras_close(struct pd_thread *thread, struct pd_entry *entry, uint64_t now, uint64_t gone, int64_t wall,
			 const uint64_t resources[PD_RESOURCES]);

/* stale.c: calls that were left without their end */
struct pd_entry *pd_drop_stale(struct pd_thread *thread, const void *frame, uintptr_t stack);
bool pd_unwind_to(struct pd_thread *thread, const struct pd_frame *frame);
struct pd_entry *pd_unwind_to_key(struct pd_thread *thread, unsigned probe, const void *key);

/* Right below a sampled call no gate is open, until enough of its callees were timed. */
static inline void pd_gates_turn(struct pd_thread *thread)
{
	const struct pd_entry *top = thread->top;

	if (pd_likely(thread == pd_self.thread))
		pd_gates = top->record && top->close_passing < PD_CLOSE_PASSING ? thread->shut : thread->gates;
}

/* Below a marked call gates are open, also where that one is right below a sampled call. */
static inline void pd_gates_open(struct pd_thread *thread)
{
	if (pd_likely(thread == pd_self.thread))
		pd_gates = thread->gates;
}

static inline void pd_call_pop(struct pd_thread *thread, struct pd_entry *entry)
{
	thread->top = entry->parent;
	if (pd_unlikely(entry->record | entry->parent->record))
		pd_gates_turn(thread);
	pd_order();
	thread->values = entry->values;
	thread->next = (char *)entry;
}

/* The time, but in counted builds, whose times say nothing: there, reading the clock would be half of a probe's cost. */
static inline uint64_t pd_moment(const struct pd_local *local)
{
	return pd_unlikely(local->flags & PD_FLAG_OWN) ? 0 : pd_ticks();
}

/* Time of the clock that is no call's of this thread: other threads had the CPU, or the whole process stood still. */
static inline uint64_t pd_lost(const struct pd_thread *thread)
{
	return thread->preempted + pd_paused();
}

/*
 * Returns the time now, for a probe that has been at work since then. If that is long, it may have lost the CPU: it is looked at, for the calls
 * around the probe from `caller` on, as what was lost would be taken off them twice else, as the probe's cost and as lost.
 */
static inline uint64_t pd_worked_until(struct pd_thread *thread, const struct pd_local *local, struct pd_entry *caller, uint64_t since)
{
	uint64_t now = pd_moment(local);

	if (pd_likely(now - since < pd_process.long_ticks))
		return now;
	pd_presence_mark(thread, caller);
	return pd_moment(local);
}

/*
 * Counts the calls that have passed the gate since the last that was counted, as made over `edge`: each caller's number becomes an
 * estimate, but of calls inside a recursion, which its own calls make. What they cost is taken off `payer`.
 */
static inline void pd_count_passed(struct pd_thread *thread, struct pd_local *local, struct pd_edge *edge, struct pd_entry *payer)
{
	uint32_t left = thread->gates[local->probe];
	uint64_t passed = local->granted - left;

	local->granted = left;
	thread->probed[PD_LEVEL_PASSED] += passed;
	local->totals->calls += passed;
	local->totals->finished += passed;
	if (!(local->flags & PD_FLAG_RECURSIVE))
		local->totals->outer_finished += passed;
	edge->calls += passed;
	payer->debt += passed * pd_process.pass_cost;
}

/* How many calls this one stands for; 0: it is not timed. After the first calls, one in each `period`, at a random place among them. */
static inline uint32_t pd_weigh(struct pd_thread *thread, struct pd_local *local)
{
	uint32_t weight = 0, position;

	if (pd_likely(local->period == 1) || local->totals->calls <= PD_FIRST_CALLS)
		return 1;
	if (!--local->countdown) {
		position = (uint32_t)pd_random_below(&thread->random, local->period);
		local->countdown = local->period - local->position + position;
		local->position = position;
		weight = local->period;
	}
	if (local->flags & PD_FLAG_PASSING) {
		thread->gates[local->probe] = local->granted = local->countdown - 1;
		local->countdown = 1;
	}
	return weight;
}

/* Algorithm R (Vitter 1985): 1 + the record this call goes to, or 0. */
static inline uint32_t pd_reservoir_choose(struct pd_thread *thread, struct pd_local *local)
{
	uint32_t epoch = atomic_load_explicit(pd_process.epoch, memory_order_relaxed);
	uint64_t chosen;

	if (pd_unlikely(local->epoch != epoch) && !pd_epoch_begin(local, epoch))
		return 0; /* it stands for another number of calls */
	chosen = local->considered++;
	if (chosen >= local->reservoir) {
		chosen = pd_random_below(&thread->random, chosen + 1);
		if (pd_likely(chosen >= local->reservoir))
			return 0;
	}
	return (uint32_t)chosen + 1;
}

#endif
