/* Entering and leaving a probed call: the hot path. No allocation, no lock, no stdio, no system call but for flagged calls. */
#include <errno.h>
#include <string.h>

#include "runtime.h"

/* How far above the function that enters a call the one that interprets it may have its own frame: a few functions lie between. */
#define INTERPRETER_STACK 4096u
/* How far up the stack a call may come to stand while it is open, when its frame is laid anew in another size. */
#define MOVING_STACK 65536u

PD_API unsigned int pd_probes;
PD_API PD_TLS unsigned int *pd_gates;
unsigned char *pd_modes;
PD_TLS struct pd_local_state pd_self;

/* Right below a sampled call no gate is open, until enough of its callees were timed. */
static inline void gates_turn(struct pd_thread *thread)
{
	const struct pd_entry *top = thread->top;

	if (pd_likely(thread == pd_self.thread))
		pd_gates = top->record && top->close_passing < PD_CLOSE_PASSING ? thread->shut : thread->gates;
}

static inline void pop(struct pd_thread *thread, struct pd_entry *entry)
{
	thread->top = entry->parent;
	if (pd_unlikely(entry->record | entry->parent->record))
		gates_turn(thread);
	pd_order();
	thread->values = entry->values;
	thread->next = (char *)entry;
}

/* The time, but in counted builds, whose times say nothing: there, reading the clock would be half of a probe's cost. */
static inline uint64_t moment(const struct pd_local *local)
{
	return pd_unlikely(local->flags & PD_FLAG_OWN) ? 0 : pd_ticks();
}

/* Puts what a call has counted down to callees of the nearest caller whose counters are read. */
static void charge(const struct pd_entry *entry, const uint64_t *counted)
{
	const struct pd_entry *payer = entry->parent;

	while (payer->parent && !payer->counters)
		payer = payer->parent;
	if (payer->counters)
		for (uint32_t i = 0; i < pd_process.counter_count; i++)
			payer->counters[2 * pd_process.counter_count + i] += counted[i];
}

/*
 * Counts the calls that have passed the gate since the last that was counted, as made over `edge`: each caller's number becomes an
 * estimate, but of calls inside a recursion, which its own calls make. What they cost is taken off `payer`.
 */
static inline void count_passed(struct pd_thread *thread, struct pd_local *local, struct pd_edge *edge, struct pd_entry *payer)
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

/* Counts what has passed inside a recursive call. Behind the outermost one, which is the next to be looked at, the gate is closed. */
static __attribute__((noinline)) void recursion_leave(struct pd_thread *thread, struct pd_local *local, struct pd_entry *payer)
{
	if (local->granted != thread->gates[local->probe])
		count_passed(thread, local, pd_edge_find(thread, local->probe, local->probe), payer);
	if (!local->active) {
		local->inner_countdown = local->granted + 1;
		local->granted = thread->gates[local->probe] = 0;
	}
}

/* Drops a call that was left without its cleanup: when it ended is not known. */
static void abandon(struct pd_thread *thread, struct pd_entry *entry)
{
	entry->local->active--;
	if (pd_unlikely(entry->local->flags & PD_FLAG_RECURSIVE))
		recursion_leave(thread, entry->local, entry->parent);
	entry->local->totals->unfinished++;
	entry->parent->debt += entry->debt;
	if (entry->counters)
		charge(entry, entry->counters + 2 * pd_process.counter_count);
	pop(thread, entry);
}

/*
 * Drops the calls that were left without their cleanup: by longjmp, or by an exception or cancellation through code without
 * unwind tables. A call is gone when a new one enters from further up the stack, or with the very same frame. Calls of the
 * interrupted stack are not gone when a signal handler enters on its alternate stack.
 */
static __attribute__((noinline, cold)) struct pd_entry *drop_stale(struct pd_thread *thread, const void *frame, uintptr_t stack)
{
	struct pd_entry *entry = thread->top;
	int error = errno;
	stack_t alternate;

	if (sigaltstack(NULL, &alternate) || !(alternate.ss_flags & SS_ONSTACK) ||
	    entry->stack - (uintptr_t)alternate.ss_sp < alternate.ss_size) {
		while (entry->parent && (entry->stack < stack || entry->frame == frame)) {
			abandon(thread, entry);
			entry = thread->top;
		}
	}
	errno = error;
	return entry;
}

/* How many calls this one stands for; 0: it is not timed. After the first calls, one in each `period`, at a random place among them. */
static inline uint32_t weigh(struct pd_thread *thread, struct pd_local *local)
{
	uint32_t position;

	uint32_t weight = 0;

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

/* The same for recursive calls: calls inside the outermost one have a period of their own, and pass between those that are timed. */
static __attribute__((noinline)) uint32_t weigh_recursive(struct pd_thread *thread, struct pd_local *local)
{
	uint32_t weight = local->inner, position;

	if (local->active > 1) {
		position = (uint32_t)pd_random_below(&thread->random, local->inner);
		local->inner_countdown = local->inner - local->inner_position + position;
		local->inner_position = position;
	} else {
		local->finished_before = local->totals->finished;
		weight = weigh(thread, local);
	}
	thread->gates[local->probe] = local->granted = local->inner_countdown - 1;
	return weight;
}

/*
 * How many callees a callee of a sampled call stands for in that one's own time. Before its period begins it stands for itself. As those
 * that the period leaves out would be taken for the caller's own time, it is timed for this alone: each of the first ones, then one at
 * random in each 2, in each 4, and so on. Of those that pass the gate, the first ones are timed, then their period's.
 */
static __attribute__((noinline)) uint32_t share_below(struct pd_thread *thread, struct pd_entry *caller, const struct pd_entry *entry)
{
	uint32_t number, share;

	if (entry->local->flags & PD_FLAG_PASSING)
		return caller->close_passing < PD_CLOSE_PASSING ? 1 : entry->weight;
	if (entry->weight == 1)
		return 1;
	number = caller->close_callees++;
	share = number < PD_CLOSE_CALLEES ? 1 : 1u << (31 - __builtin_clz(number / PD_CLOSE_CALLEES));
	if (!(number & (share - 1)))
		caller->close_pick = (uint32_t)pd_random_below(&thread->random, share);
	return (number & (share - 1)) == caller->close_pick ? share : 0;
}

/* A call that would have passed the gate, but for its caller, which is sampled. Returns whether it passes all the same. */
static __attribute__((noinline)) bool passes_anyway(struct pd_thread *thread, struct pd_local *local)
{
	struct pd_entry *caller = thread->top;

	if (caller->record && ++caller->close_passing < PD_CLOSE_PASSING && !(local->flags & PD_FLAG_RECURSIVE))
		return false;
	thread->gates[local->probe]--;
	gates_turn(thread);
	return true;
}

/*
 * Goes over to the plan's new epoch: the reservoir begins anew, and the period may be another. What is kept of calls stays until others take
 * its place; who reads tells by their numbers which are new. Returns whether the call that noticed is like those that come.
 */
static __attribute__((noinline, cold)) bool epoch_begin(struct pd_local *local, uint32_t epoch)
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

/* Algorithm R (Vitter 1985): 1 + the record this call goes to, or 0. */
static inline uint32_t reservoir_choose(struct pd_thread *thread, struct pd_local *local)
{
	uint32_t epoch = atomic_load_explicit(pd_process.epoch, memory_order_relaxed);
	uint64_t chosen;

	if (pd_unlikely(local->epoch != epoch) && !epoch_begin(local, epoch))
		return 0; /* it stands for another number of calls */
	chosen = local->considered++;
	if (chosen >= local->reservoir) {
		chosen = pd_random_below(&thread->random, chosen + 1);
		if (pd_likely(chosen >= local->reservoir))
			return 0;
	}
	return (uint32_t)chosen + 1;
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
static __attribute__((noinline)) void counters_begin(struct pd_thread *thread, struct pd_entry *entry)
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

static __attribute__((noinline)) int sampled_begin(struct pd_thread *thread, struct pd_entry *entry, struct pd_frame *frame)
{
	struct pd_local *local = entry->local;

	entry->start = entry->entered; /* should reading a feature throw */
	if (!cells_open(thread, entry, local)) {
		entry->record = 0;
		return 0;
	}
	gates_turn(thread);
	frame->cells = (uintptr_t)entry->cells;
	entry->guard = PD_GUARD_UNKNOWN;
	if (local->flags & (PD_FLAG_COUNTERS | PD_FLAG_OWN) && counters_open(thread, entry) && local->flags & PD_FLAG_OWN) {
		pd_counters_read(thread, entry->counters + pd_process.counter_count);
		peak_begin(entry);
	}
	return 1;
}

/* Time of the clock that is no call's of this thread: other threads had the CPU, or the whole process stood still. */
static inline uint64_t lost(const struct pd_thread *thread)
{
	return thread->preempted + pd_paused();
}

/*
 * Returns the time now, for a probe that has been at work since then. If that is long, it may have lost the CPU: it is looked at, for the calls
 * around the probe from `caller` on, as what was lost would be taken off them twice else, as the probe's cost and as lost.
 */
static inline uint64_t worked_until(struct pd_thread *thread, const struct pd_local *local, struct pd_entry *caller, uint64_t since)
{
	uint64_t now = moment(local);

	if (pd_likely(now - since < pd_process.long_ticks))
		return now;
	pd_presence_mark(thread, caller);
	return moment(local);
}

/*
 * Whether the innermost open call around one that stands so far down the stack, at `key`, is the marked one. A mark below is of a call that was
 * left without its end.
 */
static inline bool is_marked(struct pd_thread *thread, const void *key, uintptr_t stack)
{
	uintptr_t marked = thread->mark.frame;

	if (pd_likely(!marked))
		return false;
	if (pd_unlikely(marked <= stack || marked == (uintptr_t)key)) {
		thread->mark.frame = 0;
		return false;
	}
	return marked < thread->top->stack;
}

/*
 * Counts a call between two timed ones by its caller, and leaves a mark in place of an entry: what its callees take, the timed ones stand for.
 * Returns false where it has to be looked at: it is timed, one of the first, or from another caller than the last one, or its caller is sampled.
 */
static inline bool mark(struct pd_thread *thread, struct pd_local *local, struct pd_frame *frame, uintptr_t stack)
{
	struct pd_entry *top = thread->top;
	struct pd_edge *edge = local->edge;

	if (pd_modes[frame->probe] == PD_OFF || local->countdown < 2 || top->record || top->stack <= stack || local->totals->calls < PD_FIRST_CALLS)
		return false;
	if (edge->caller != (is_marked(thread, frame, stack) ? thread->mark.probe : top->local->probe))
		return false;
	local->countdown--;
	edge->calls++;
	local->totals->calls++;
	local->totals->finished++;
	local->totals->outer_finished++;
	thread->probed[PD_LEVEL_MARKED]++;
	top->debt += pd_process.mark_cost;
	frame->reserved = thread->mark.probe;
	frame->entry = thread->mark.frame | 1;
	pd_order();
	thread->mark.probe = frame->probe;
	thread->mark.frame = (uintptr_t)frame;
	return true;
}

/* `key` tells the call from all that are open, `stack` says how far down the stack it is, and `height` how far up it may come to stand. */
static inline __attribute__((always_inline)) int enter(struct pd_frame *frame, const void *key, uintptr_t stack, uintptr_t height)
{
	struct pd_thread *thread = pd_self.thread;
	struct pd_entry *entry, *parent;
	struct pd_local *local;
	struct pd_edge *edge;
	bool is_extra, is_below_mark;
	uint32_t caller;

	if (pd_unlikely(!thread)) {
		thread = pd_thread_open();
		if (!thread)
			return 0;
	}
	if (pd_unlikely(pd_modes[frame->probe] == PD_OFF)) {
		thread->gates[frame->probe] = PD_GATE_SHUT;
		return 0;
	}
	local = &thread->locals[frame->probe];
	if (pd_unlikely(!local->totals) && !pd_local_open(thread, local, frame->probe))
		return 0;
	parent = thread->top;
	if (pd_unlikely(parent->stack < stack || parent->frame == key))
		parent = drop_stale(thread, key, stack);
	is_extra = thread->gates[frame->probe] != 0;
	if (pd_unlikely(is_extra) && passes_anyway(thread, local))
		return 0;

	entry = (struct pd_entry *)thread->next;
	if (pd_unlikely((char *)(entry + 1) > thread->limit)) {
		local->totals->calls++;
		return 0;
	}
	thread->next = (char *)(entry + 1);
	pd_order();
	is_below_mark = is_marked(thread, key, stack);
	caller = is_below_mark ? thread->mark.probe : parent->local->probe;
	edge = local->edge;
	if (pd_unlikely(edge->caller != caller))
		local->edge = edge = pd_edge_find(thread, caller, local->probe);
	edge->calls++;
	if (local->granted && !is_extra)
		count_passed(thread, local, edge, parent);
	entry->parent = parent;
	entry->frame = key;
	entry->stack = height;
	entry->local = local;
	entry->edge = edge;
	entry->callee_time = 0;
	entry->debt = 0;
	entry->weight = 0;
	entry->share = 0;
	entry->close_callees = 0;
	entry->close_passing = 0;
	entry->callee_calls = 0;
	entry->record = 0;
	entry->cells = NULL;
	entry->values = thread->values;
	entry->counters = NULL;
	entry->call = ++local->totals->calls;
	parent->callee_calls += !(local->flags & PD_FLAG_PASSING) && !(local->flags & PD_FLAG_RECURSIVE && local->active);
	local->active++;
	frame->entry = (uintptr_t)entry;
	pd_order();
	thread->top = entry;
	if (pd_unlikely(parent->record))
		gates_turn(thread);

	if (local->mode < PD_TIME)
		return 0;
	if (pd_likely(!is_extra))
		entry->weight = pd_unlikely(local->flags & PD_FLAG_RECURSIVE) ? weigh_recursive(thread, local) : weigh(thread, local);
	if (pd_unlikely(parent->record && local->period > 1))
		entry->share = share_below(thread, parent, entry);
	else
		entry->share = pd_unlikely(is_below_mark) ? 0 : entry->weight;
	if (!(entry->weight | entry->share))
		return 0;
	memcpy(entry->resources, pd_self.resources, sizeof(entry->resources));
	entry->entered = moment(local);
	entry->missed = 0;
	if (pd_unlikely(local->is_long))
		pd_presence_mark(thread, parent);
	entry->preempted = lost(thread);
	if (local->mode == PD_SAMPLE && entry->weight) {
		entry->record = reservoir_choose(thread, local);
		if (entry->record)
			return sampled_begin(thread, entry, frame);
	}
	if (pd_unlikely(local->flags & PD_FLAG_OWN))
		counters_begin(thread, entry);
	entry->start = pd_unlikely(local->is_long || entry->counters) ? moment(local) : entry->entered;
	return 0;
}

/* These two are jumped to, so that their frames lie where that of pd_enter_call would. */
static __attribute__((noinline)) int enter_framed(struct pd_frame *frame)
{
	uintptr_t stack = (uintptr_t)__builtin_frame_address(0);

	return enter(frame, frame, stack, stack);
}

static __attribute__((noinline)) int enter_marked(struct pd_frame *frame, struct pd_thread *thread, struct pd_local *local)
{
	return mark(thread, local, frame, (uintptr_t)__builtin_frame_address(0)) ? 0 : enter_framed(frame);
}

PD_API int pd_enter_call(struct pd_frame *frame)
{
	struct pd_thread *thread = pd_self.thread;

	if (pd_likely(thread) && thread->locals[frame->probe].flags & PD_FLAG_MARKED)
		return enter_marked(frame, thread, &thread->locals[frame->probe]);
	return enter_framed(frame);
}

/*
 * The same for calls that have no frame on the C stack, as an interpreter's. They stand as far down as the C function that interprets them,
 * about: what it calls is below, and calls inside one another that it interprets are at one height.
 */
PD_API int pd_enter_keyed(struct pd_frame *frame, const void *key)
{
	uintptr_t stack = (uintptr_t)__builtin_frame_address(0) + INTERPRETER_STACK;

	if (pd_self.thread && stack > pd_self.thread->top->stack)
		stack = pd_self.thread->top->stack;
	return enter(frame, key, stack, stack);
}

/*
 * The same for calls that have a frame on the C stack, which is laid anew while they are open, as where a compiled one takes an interpreted
 * one's place: what a call made stands below it at all times, or little above.
 */
PD_API int pd_enter_moving(struct pd_frame *frame, const void *key)
{
	uintptr_t stack = (uintptr_t)__builtin_frame_address(0);

	return enter(frame, key, stack, stack + MOVING_STACK);
}

PD_API int pd_start(struct pd_frame *frame)
{
	struct pd_entry *entry = (struct pd_entry *)frame->entry;
	uint64_t before;

	if (pd_unlikely(entry->counters != NULL))
		pd_counters_read(pd_self.thread, entry->counters);
	entry->start = worked_until(pd_self.thread, entry->local, entry->parent, entry->entered);
	before = lost(pd_self.thread);
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
		charge(entry, whole);
}

/*
 * The part of leaving that sampled, flagged and long calls have beyond the others. Returns what it cost since the call ended, `now`, when `gone`
 * had been lost, in time's unit: that differs from call to call, as records go to memory that nobody has touched before.
 */
static __attribute__((noinline)) uint64_t extras_close(struct pd_thread *thread, struct pd_entry *entry, uint64_t now, uint64_t gone, int64_t wall,
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
	ended = thread == pd_self.thread ? worked_until(thread, entry->local, entry->parent, now) : moment(entry->local);
	took = (ended - now) << PD_TIME_FRACTION;
	missed = lost(thread) - gone; /* some of it perhaps before the call ended, where nobody has looked since */
	return missed < took ? took - missed : 0;
}

/* Counts the `calls` that one of this length stands for; more than there is room for are as many as there is. */
static void count_length(struct pd_totals *totals, int64_t wall, uint32_t calls)
{
	uint64_t ticks = wall > 0 ? (uint64_t)wall >> PD_TIME_FRACTION : 0;
	unsigned length = ticks ? 63 - (unsigned)__builtin_clzll(ticks) : 0;
	uint32_t *counted = &totals->lengths[length < PD_LENGTHS ? length : PD_LENGTHS - 1];

	*counted = calls < UINT32_MAX - *counted ? *counted + calls : UINT32_MAX;
}

static inline __attribute__((always_inline)) void close_timed(struct pd_thread *thread, struct pd_entry *entry, uint64_t now, uint64_t gone,
							       const uint64_t counted[PD_RESOURCES], bool outer)
{
	struct pd_totals *totals = entry->local->totals;
	struct pd_entry *parent = entry->parent;
	uint32_t cost = entry->record ? PD_COST_SAMPLED : PD_COST_TIMED;
	bool recursive = entry->local->flags & PD_FLAG_RECURSIVE;
	uint64_t debt = entry->debt + pd_process.costs[cost] + ((entry->start - entry->entered - entry->missed) << PD_TIME_FRACTION);
	uint64_t resources[PD_RESOURCES];
	int64_t wall = (int64_t)(((now - entry->start) << PD_TIME_FRACTION) - entry->debt - pd_process.costs[cost + 1] -
				 (gone - entry->preempted));

	for (int i = 0; i < PD_RESOURCES; i++)
		resources[i] = counted[i] - entry->resources[i];
	totals->timed += entry->weight != 0;
	if (pd_unlikely(recursive)) {
		/* The outermost call's own time is that of all inside, which it stands for. */
		totals->weight += outer ? entry->weight * (totals->finished - entry->local->finished_before) : 0;
		totals->self += outer ? (wall - entry->callee_time) * entry->weight : 0;
	} else {
		totals->weight += entry->weight;
		totals->self += (wall - entry->callee_time) * entry->weight;
	}
	if (pd_unlikely(entry->local->flags & PD_FLAG_LENGTHS))
		count_length(totals, wall, entry->weight);
	if (pd_likely(outer)) {
		totals->outer_weight += entry->weight;
		totals->wall += wall * entry->weight;
		entry->edge->wall += wall * entry->weight;
		for (int i = 0; i < PD_RESOURCES; i++)
			totals->resources[i] += resources[i] * entry->weight;
	}
	if (entry->record || pd_unlikely(entry->counters != NULL || entry->local->is_long))
		debt += extras_close(thread, entry, now, gone, wall, resources);
	parent->callee_time += pd_unlikely(recursive && !outer) ? entry->callee_time : wall * entry->share;
	parent->debt += debt;
	thread->probed[entry->counters ? PD_LEVEL_READ : entry->record ? PD_LEVEL_SAMPLED : PD_LEVEL_TIMED]++;
	if (pd_unlikely(!(++thread->closed & 0xffff)))
		pd_clock_refresh();
}

/* Closes a call that ended `now`, when `gone` had been lost. */
static inline __attribute__((always_inline)) void close_call(struct pd_thread *thread, struct pd_entry *entry, uint64_t now, uint64_t gone,
							      const uint64_t counted[PD_RESOURCES])
{
	struct pd_local *local = entry->local;
	bool outer = --local->active == 0;

	local->totals->finished++;
	local->totals->outer_finished += outer;
	if (pd_unlikely(local->flags & PD_FLAG_RECURSIVE))
		recursion_leave(thread, local, entry);
	if (entry->weight | entry->share) {
		close_timed(thread, entry, now, gone, counted, outer);
	} else {
		entry->parent->debt += entry->debt + pd_process.costs[PD_COST_COUNTED];
		thread->probed[PD_LEVEL_COUNTED]++;
		/* A call that is never timed is transparent; one left out by the period is stood for by those that are timed. */
		if (local->mode == PD_COUNT)
			entry->parent->callee_time += entry->callee_time;
	}
	pop(thread, entry);
}

/* Finds an entry that is not on top: calls above it were left without their cleanup, or it was dropped itself. */
static __attribute__((noinline, cold)) bool unwind_to(struct pd_thread *thread, const struct pd_frame *frame)
{
	struct pd_entry *entry = thread->top;

	while (entry->parent && ((uintptr_t)entry != frame->entry || entry->frame != frame))
		entry = entry->parent;
	if (!entry->parent)
		return false;
	while (thread->top != entry)
		abandon(thread, thread->top);
	return true;
}

static inline __attribute__((always_inline)) void leave(struct pd_thread *thread, struct pd_entry *entry, uint64_t now)
{
	uint64_t gone = lost(thread);

	if (entry->weight | entry->share) {
		entry->local->is_long = now - entry->start >= pd_process.long_ticks && !(entry->local->flags & PD_FLAG_OWN);
		if (pd_unlikely(entry->local->is_long))
			gone = pd_presence_check(thread, entry, now);
		/* More was lost than it lasted, some of it thus earlier, in code that is not looked at: it counts as not timed. */
		if (pd_unlikely(gone - entry->preempted > (now - entry->start) << PD_TIME_FRACTION && now))
			entry->weight = entry->share = 0;
	}
	close_call(thread, entry, now, gone, pd_self.resources);
}

/* Goes back to the mark before a call's. In the child of a fork, whose thread has none, there is nothing to go back to. */
static inline void unmark(struct pd_thread *thread, const struct pd_frame *frame)
{
	if (pd_likely(thread && thread->mark.frame && thread->mark.frame <= (uintptr_t)frame)) {
		thread->mark.frame = frame->entry & ~(uintptr_t)1;
		thread->mark.probe = frame->reserved;
	}
}

static __attribute__((noinline)) void leave_framed(struct pd_frame *frame)
{
	struct pd_entry *entry = (struct pd_entry *)frame->entry; /* perhaps no longer ours, but mapped as long as the process lives */
	uint64_t now = entry->weight | entry->share ? moment(entry->local) : 0;
	struct pd_thread *thread = pd_self.thread;

	if (pd_unlikely(!thread))
		return;
	if (pd_unlikely(thread->top != entry || entry->frame != frame) && !unwind_to(thread, frame))
		return;
	leave(thread, entry, now);
}

PD_API void pd_leave_call(struct pd_frame *frame)
{
	if (frame->entry & 1)
		unmark(pd_self.thread, frame);
	else
		leave_framed(frame);
}

/*
 * Finds a keyed call that is open, and drops those above it. Of a probe's calls, those that have passed the gate have no entry; only below an
 * open one of the same probe is it looked for. Returns NULL where there is none.
 */
static __attribute__((noinline, cold)) struct pd_entry *unwind_to_key(struct pd_thread *thread, unsigned probe, const void *key)
{
	struct pd_entry *entry = thread->top;

	if (!thread->locals[probe].active)
		return NULL;
	while (entry->parent && entry->frame != key)
		entry = entry->parent;
	if (!entry->parent)
		return NULL;
	while (thread->top != entry)
		abandon(thread, thread->top);
	return entry;
}

PD_API void pd_leave_keyed(unsigned probe, const void *key)
{
	struct pd_thread *thread = pd_self.thread;
	struct pd_entry *entry;
	uint64_t now;

	if (pd_unlikely(!thread))
		return;
	entry = thread->top;
	now = pd_likely(entry->frame == key) && entry->weight | entry->share ? moment(entry->local) : 0;
	if (pd_unlikely(entry->frame != key)) {
		entry = unwind_to_key(thread, probe, key);
		if (!entry)
			return;
		now = moment(entry->local);
	}
	leave(thread, entry, now);
}

/* Adds to how often a condition was met in the innermost open call, and how often it held, if that call was entered by this key. */
PD_API void pd_outcomes_keyed(const void *key, unsigned branch, pd_cell_t met, pd_cell_t held)
{
	struct pd_entry *entry = pd_self.thread ? pd_self.thread->top : NULL;
	uint32_t cell;

	if (!entry || entry->frame != key || !entry->cells)
		return;
	cell = entry->local->features + 2 * branch;
	if (pd_unlikely(cell + 1 >= entry->local->cells))
		return;
	entry->cells[cell] += met;
	entry->cells[cell + 1] += held;
}

PD_API void pd_branch_keyed(const void *key, unsigned branch, int outcome)
{
	pd_outcomes_keyed(key, branch, 1, outcome != 0);
}

/* Says that a keyed call goes on: those inside it have ended, also where they could not tell. */
PD_API void pd_resume_keyed(unsigned probe, const void *key)
{
	if (pd_self.thread && pd_self.thread->top->frame != key)
		unwind_to_key(pd_self.thread, probe, key);
}

/* Drops all calls of this thread that are open: an interpreter has left them without an end, as where it gives a request up. */
PD_API void pd_drop_calls(void)
{
	struct pd_thread *thread = pd_self.thread;

	while (thread && thread->top->parent)
		abandon(thread, thread->top);
}

/* Counts what has passed the gates of a thread that goes on behind them. */
void pd_thread_settle(struct pd_thread *thread)
{
	for (uint32_t probe = 1; probe < pd_process.probes; probe++) {
		struct pd_local *local = &thread->locals[probe];

		if (local->granted != thread->gates[probe] && local->totals)
			count_passed(thread, local, local->edge, &thread->root);
	}
}

/* Counts what has passed the gates of a thread that ends. */
void pd_thread_count_passed(struct pd_thread *thread)
{
	for (uint32_t probe = 1; probe < pd_process.probes; probe++) {
		struct pd_local *local = &thread->locals[probe];

		if (local->granted)
			count_passed(thread, local, local->edge, &thread->root);
		local->granted = 0;
		thread->gates[probe] = 0;
	}
}

/* Closes what is open when a thread or the process ends: the calls lasted until now. `resources` are the thread's counters. */
void pd_thread_close_calls(struct pd_thread *thread, uint64_t now, const uint64_t resources[PD_RESOURCES])
{
	while (thread->top->parent) {
		thread->top->local->totals->unfinished++;
		close_call(thread, thread->top, now, lost(thread), resources);
	}
}
