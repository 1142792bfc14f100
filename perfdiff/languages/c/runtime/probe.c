/* Entering and leaving a probed call: the hot path. No allocation, no lock, no stdio, no system call but for flagged calls. */
#include <string.h>

#include "call.h"

/* How far above the function that enters a call the one that interprets it may have its own frame: a few functions lie between. */
#define INTERPRETER_STACK 4096u
/* How far up the stack a call may come to stand while it is open, when its frame is laid anew in another size. */
#define MOVING_STACK 65536u

PD_API unsigned int pd_probes;
PD_API PD_TLS unsigned int *pd_gates;
unsigned char *pd_modes;
PD_TLS struct pd_local_state pd_self;

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
 * Returns false where it has to be looked at: it is timed, one of the first, or from a caller that is new, or that is sampled and wants it.
 */
static inline bool mark(struct pd_thread *thread, struct pd_local *local, struct pd_frame *frame, uintptr_t stack)
{
	struct pd_entry *top = thread->top;
	struct pd_edge *edge = local->edge;
	bool is_below_mark;
	uint32_t caller;

	if (pd_modes[frame->probe] == PD_OFF || local->countdown < 2 || top->stack <= stack || local->totals->calls < PD_FIRST_CALLS)
		return false;
	is_below_mark = is_marked(thread, frame, stack);
	caller = is_below_mark ? thread->mark.probe : top->local->probe;
	if (pd_unlikely(edge->caller != caller)) {
		edge = pd_edge_known(thread, caller, local->probe);
		if (!edge)
			return false;
		local->edge = edge;
	}
	if (pd_unlikely(top->record)) {
		if (!is_below_mark && !pd_stand_aside(top))
			return false;
		pd_gates_open(thread);
	}
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

/* Goes back to the mark before a call's. In the child of a fork, whose thread has none, there is nothing to go back to. */
static inline void unmark(struct pd_thread *thread, const struct pd_frame *frame)
{
	if (pd_likely(thread && thread->mark.frame && thread->mark.frame <= (uintptr_t)frame)) {
		thread->mark.frame = frame->entry & ~(uintptr_t)1;
		thread->mark.probe = frame->reserved;
		if (pd_unlikely(thread->top->record))
			pd_gates_turn(thread);
	}
}

/* An entry for a call that is not in the way of `parent`, the innermost open one; `is_extra`: it is looked at for its caller's sake. */
static inline __attribute__((always_inline)) struct pd_entry *push(struct pd_thread *thread, struct pd_local *local, struct pd_entry *parent,
								    const void *key, uintptr_t height, uint32_t caller, bool is_extra)
{
	struct pd_entry *entry = (struct pd_entry *)thread->next;
	struct pd_edge *edge = local->edge;

	thread->next = (char *)(entry + 1);
	pd_order();
	if (pd_unlikely(edge->caller != caller))
		local->edge = edge = pd_edge_find(thread, caller, local->probe);
	edge->calls++;
	if (local->granted && !is_extra)
		pd_count_passed(thread, local, edge, parent);
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
	return entry;
}

/* Starts the clock of a call that is timed, last of all. Returns whether its inputs are asked for. */
static inline __attribute__((always_inline)) int start_clock(struct pd_thread *thread, struct pd_local *local, struct pd_entry *entry,
							      struct pd_frame *frame)
{
	memcpy(entry->resources, pd_self.resources, sizeof(entry->resources));
	entry->entered = pd_moment(local);
	entry->missed = 0;
	if (pd_unlikely(local->is_long))
		pd_presence_mark(thread, entry->parent);
	entry->preempted = pd_lost(thread);
	if (local->mode == PD_SAMPLE && entry->weight) {
		entry->record = pd_reservoir_choose(thread, local);
		if (entry->record)
			return pd_sampled_begin(thread, entry, frame);
	}
	if (pd_unlikely(local->flags & PD_FLAG_OWN))
		pd_counters_begin(thread, entry);
	entry->start = pd_unlikely(local->is_long || entry->counters) ? pd_moment(local) : entry->entered;
	return 0;
}

/* The thread that a probe's call is recorded in; NULL where it is not. */
static __attribute__((noinline, cold)) struct pd_thread *find_thread(uint32_t probe)
{
	struct pd_thread *thread;

	if (pd_slow_is_ours())
		return NULL;
	pd_child_find();
	thread = pd_self.thread ? pd_self.thread : pd_thread_open();
	if (!thread || pd_modes[probe] != PD_OFF)
		return thread;
	thread->gates[probe] = PD_GATE_SHUT;
	return NULL;
}

/* `key` tells the call from all that are open, `stack` says how far down the stack it is, and `height` how far up it may come to stand. */
static inline __attribute__((always_inline)) int enter(struct pd_frame *frame, const void *key, uintptr_t stack, uintptr_t height)
{
	struct pd_thread *thread = pd_self.thread;
	struct pd_entry *entry, *parent;
	struct pd_local *local;
	bool is_extra, is_below_mark;

	if (pd_unlikely(!thread || pd_modes[frame->probe] == PD_OFF)) {
		thread = find_thread(frame->probe);
		if (!thread)
			return 0;
	}
	local = &thread->locals[frame->probe];
	if (pd_unlikely(!local->totals) && !pd_local_open(thread, local, frame->probe))
		return 0;
	parent = thread->top;
	if (pd_unlikely(parent->stack < stack || parent->frame == key))
		parent = pd_drop_stale(thread, key, stack);
	is_below_mark = is_marked(thread, key, stack);
	is_extra = thread->gates[frame->probe] != 0;
	if (pd_unlikely(is_extra) && pd_passes_anyway(thread, local, is_below_mark))
		return 0;
	if (pd_unlikely(thread->next + sizeof(struct pd_entry) > thread->limit)) {
		local->totals->calls++;
		return 0;
	}
	entry = push(thread, local, parent, key, height, is_below_mark ? thread->mark.probe : parent->local->probe, is_extra);
	parent->callee_calls += !is_below_mark && !(local->flags & PD_FLAG_PASSING) && !(local->flags & PD_FLAG_RECURSIVE && local->active);
	local->active++;
	frame->entry = (uintptr_t)entry;
	pd_order();
	thread->top = entry;
	if (pd_unlikely(parent->record))
		pd_gates_turn(thread);

	if (local->mode < PD_TIME)
		return 0;
	if (pd_likely(!is_extra))
		entry->weight = pd_unlikely(local->flags & PD_FLAG_RECURSIVE) ? pd_weigh_recursive(thread, local) : pd_weigh(thread, local);
	if (pd_likely(!is_below_mark))
		entry->share = pd_unlikely(parent->record && local->period > 1) ? pd_share_below(thread, parent, entry) : entry->weight;
	return entry->weight | entry->share ? start_clock(thread, local, entry, frame) : 0;
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
		debt += pd_extras_close(thread, entry, now, gone, wall, resources);
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
		pd_recursion_leave(thread, local, entry);
	if (entry->weight | entry->share) {
		close_timed(thread, entry, now, gone, counted, outer);
	} else {
		entry->parent->debt += entry->debt + pd_process.costs[PD_COST_COUNTED];
		thread->probed[PD_LEVEL_COUNTED]++;
		/* A call that is never timed is transparent; one left out by the period is stood for by those that are timed. */
		if (local->mode == PD_COUNT)
			entry->parent->callee_time += entry->callee_time;
	}
	pd_call_pop(thread, entry);
}

static inline __attribute__((always_inline)) void leave(struct pd_thread *thread, struct pd_entry *entry, uint64_t now)
{
	uint64_t gone = pd_lost(thread);

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

static __attribute__((noinline)) void leave_framed(struct pd_frame *frame)
{
	struct pd_entry *entry = (struct pd_entry *)frame->entry; /* perhaps no longer ours, but mapped as long as the process lives */
	uint64_t now = entry->weight | entry->share ? pd_moment(entry->local) : 0;
	struct pd_thread *thread = pd_self.thread;

	if (pd_unlikely(!thread))
		return;
	if (pd_unlikely(thread->top != entry || entry->frame != frame) && !pd_unwind_to(thread, frame))
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

PD_API void pd_leave_keyed(unsigned probe, const void *key)
{
	struct pd_thread *thread = pd_self.thread;
	struct pd_entry *entry;
	uint64_t now;

	if (pd_unlikely(!thread))
		return;
	entry = thread->top;
	now = pd_likely(entry->frame == key) && entry->weight | entry->share ? pd_moment(entry->local) : 0;
	if (pd_unlikely(entry->frame != key)) {
		entry = pd_unwind_to_key(thread, probe, key);
		if (!entry)
			return;
		now = pd_moment(entry->local);
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

/*
 * Closes what is open when a thread or the process ends: the calls lasted until now. `resources` are the thread's counters. A thread that
 * still runs may leave a call meanwhile, and with its last one the root is the innermost.
 */
void pd_thread_close_calls(struct pd_thread *thread, uint64_t now, const uint64_t resources[PD_RESOURCES])
{
	for (;;) {
		struct pd_entry *entry = __atomic_load_n(&thread->top, __ATOMIC_RELAXED);

		if (!entry->parent)
			return;
		entry->local->totals->unfinished++;
		close_call(thread, entry, now, pd_lost(thread), resources);
	}
}
