/*
 * Calls that one thread of the system leaves open and another one ends, as an interpreter's own threads do that wait: while nobody carries them,
 * they keep their stack, and a call's time goes on. What a thread of the system counts of itself is put down to the calls that it carried then.
 */
#include <string.h>

#include "runtime.h"

static const uint64_t none[PD_RESOURCES]; /* of calls that nobody carries */

/*
 * What calls counted so far is kept as the difference to `resources`, of the thread that carries them: `sign` says whether it takes them over
 * or leaves them. They may come to stand anywhere on another stack. Returns whether counters of any are read.
 */
static bool calls_move(struct pd_thread *thread, int sign, const uint64_t resources[PD_RESOURCES])
{
	bool are_read = false;

	for (struct pd_entry *entry = thread->top; entry->parent; entry = entry->parent) {
		for (int i = 0; i < PD_RESOURCES; i++)
			entry->resources[i] += sign > 0 ? resources[i] : -resources[i];
		entry->stack = UINTPTR_MAX;
		are_read |= entry->counters != NULL;
	}
	return are_read;
}

/* Whether a call is open in this thread of the system. */
PD_API int pd_is_open(void)
{
	return pd_self.thread && pd_self.thread->top->parent;
}

/*
 * Takes the open calls off this thread of the system; `waits` says that they wait for a lock from now on. Returns what pd_attach takes, once;
 * NULL where no call is open.
 */
PD_API void *pd_detach(int waits)
{
	struct pd_thread *thread = pd_self.thread;
	uint64_t waiting = pd_self.waiting;
	struct pd_slow slow;

	pd_self.waiting = 0;
	if (!pd_is_open() || !pd_is_recorded_process())
		return NULL;
	pd_presence_mark(thread, thread->top);
	thread->waits = waits && !waiting;
	thread->waiting = thread->waits ? pd_ticks() : waiting;
	memset(thread->stood, 0xff, sizeof(thread->stood));
	if (calls_move(thread, -1, pd_self.resources))
		pd_counters_read(thread, thread->stood);
	thread->held_count = 0;
	thread->resources = none;
	pd_slow_begin(&slow);
	pd_thread_bind(NULL);
	pd_slow_end(&slow);
	return thread;
}

/* Lets this thread of the system, which has no call open, go on with calls that another one has left. */
PD_API void pd_attach(void *calls)
{
	struct pd_thread *thread = calls, *idle = pd_self.thread;
	uint64_t now[PD_COUNTERS];
	struct pd_slow slow;

	if (!pd_is_recorded_process())
		return;
	pd_slow_begin(&slow);
	if (idle)
		pd_thread_free(idle);
	pd_thread_bind(thread);
	pd_slow_end(&slow);
	if (!idle)
		pd_counters_thread_open(thread);
	pd_presence_begin(thread);
	pd_self.waiting = thread->waiting;
	if (calls_move(thread, 1, pd_self.resources)) {
		thread->is_moved = false;
		pd_counters_read(thread, now);
		for (uint32_t i = 0; i < pd_process.counter_count; i++)
			thread->offsets[i] = now[i] == PD_ABSENT || thread->stood[i] == PD_ABSENT ? PD_ABSENT : thread->stood[i] - now[i];
		thread->is_moved = true;
	}
	if (thread->waits)
		pd_wait_end();
}
