/* Which calls are timed, and how many calls each of these stands for. */
#include "call.h"

/* As pd_weigh, of recursive calls: those inside the outermost one have a period of their own, and pass between those that are timed. */
uint32_t pd_weigh_recursive(struct pd_thread *thread, struct pd_local *local)
{
	uint32_t weight = local->inner, position;

	if (local->active > 1) {
		position = (uint32_t)pd_random_below(&thread->random, local->inner);
		local->inner_countdown = local->inner - local->inner_position + position;
		local->inner_position = position;
	} else {
		local->finished_before = local->totals->finished;
		weight = pd_weigh(thread, local);
	}
	thread->gates[local->probe] = local->granted = local->inner_countdown - 1;
	return weight;
}

/* How many callees of a sampled call the one of this number stands for, or is stood for with: 1 of the first ones, then 2, 4, and so on. */
static uint32_t share_of(uint32_t number)
{
	return number < PD_CLOSE_CALLEES ? 1 : 1u << (31 - __builtin_clz(number / PD_CLOSE_CALLEES));
}

/*
 * How many callees a callee of a sampled call stands for in that one's own time. Before its period begins it stands for itself. As those
 * that the period leaves out would be taken for the caller's own time, it is timed for this alone: each of the first ones, then one at
 * random in each 2, in each 4, and so on. Of those that pass the gate, the first ones are timed, then their period's.
 */
uint32_t pd_share_below(struct pd_thread *thread, struct pd_entry *caller, const struct pd_entry *entry)
{
	uint32_t number, share;

	if (entry->local->flags & PD_FLAG_PASSING)
		return caller->close_passing < PD_CLOSE_PASSING ? 1 : entry->weight;
	if (entry->weight == 1)
		return 1;
	number = caller->close_callees++;
	share = share_of(number);
	if (!(number & (share - 1)))
		caller->close_pick = (uint32_t)pd_random_below(&thread->random, share);
	return (number & (share - 1)) == caller->close_pick ? share : 0;
}

/*
 * Whether the next callee of a sampled call with a period is one of those that are left out of its own time, as others stand for them. The first
 * one of as many as one stands for is never known to be, as it is then that it is drawn which one.
 */
bool pd_stand_aside(struct pd_entry *caller)
{
	uint32_t place = caller->close_callees & (share_of(caller->close_callees) - 1);

	if (!place || place == caller->close_pick)
		return false;
	caller->close_callees++;
	caller->callee_calls++;
	return true;
}

/*
 * A call that would have passed the gate, but for its caller, which is sampled. Returns whether it passes all the same: the caller has timed enough
 * of them, or is not the sampled one, but a marked one below.
 */
bool pd_passes_anyway(struct pd_thread *thread, struct pd_local *local, bool is_below_mark)
{
	struct pd_entry *caller = thread->top;

	if (is_below_mark) {
		pd_gates_open(thread);
	} else {
		if (caller->record && ++caller->close_passing < PD_CLOSE_PASSING && !(local->flags & PD_FLAG_RECURSIVE))
			return false;
		pd_gates_turn(thread);
	}
	thread->gates[local->probe]--;
	return true;
}

/* Counts what has passed inside a recursive call. Behind the outermost one, which is the next to be looked at, the gate is closed. */
void pd_recursion_leave(struct pd_thread *thread, struct pd_local *local, struct pd_entry *payer)
{
	if (local->granted != thread->gates[local->probe])
		pd_count_passed(thread, local, pd_edge_find(thread, local->probe, local->probe), payer);
	if (!local->active) {
		local->inner_countdown = local->granted + 1;
		local->granted = thread->gates[local->probe] = 0;
	}
}

/* Counts what has passed the gates of a thread that goes on behind them. */
void pd_thread_settle(struct pd_thread *thread)
{
	for (uint32_t probe = 1; probe < pd_process.probes; probe++) {
		struct pd_local *local = &thread->locals[probe];

		if (local->granted != thread->gates[probe] && local->totals)
			pd_count_passed(thread, local, local->edge, &thread->root);
	}
}

/* Counts what has passed the gates of a thread that ends. */
void pd_thread_count_passed(struct pd_thread *thread)
{
	for (uint32_t probe = 1; probe < pd_process.probes; probe++) {
		struct pd_local *local = &thread->locals[probe];

		if (local->granted)
			pd_count_passed(thread, local, local->edge, &thread->root);
		local->granted = 0;
		thread->gates[probe] = 0;
	}
}
