/* Calls that were left without their end: by longjmp, or by an exception or cancellation through code without unwind tables. */
#include <errno.h>

#include "call.h"

/* Drops a call that was left without its cleanup: when it ended is not known. */
static void abandon(struct pd_thread *thread, struct pd_entry *entry)
{
	entry->local->active--;
	if (pd_unlikely(entry->local->flags & PD_FLAG_RECURSIVE))
		pd_recursion_leave(thread, entry->local, entry->parent);
	entry->local->totals->unfinished++;
	entry->parent->debt += entry->debt;
	if (entry->counters)
		pd_call_charge(entry, entry->counters + 2 * pd_process.counter_count);
	pd_call_pop(thread, entry);
}

/*
 * Drops the calls that were left without their cleanup: by longjmp, or by an exception or cancellation through code without
 * unwind tables. A call is gone when a new one enters from further up the stack, or with the very same frame. Calls of the
 * interrupted stack are not gone when a signal handler enters on its alternate stack.
 */
__attribute__((cold)) struct pd_entry *pd_drop_stale(struct pd_thread *thread, const void *frame, uintptr_t stack)
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

/* Drops the calls above an entry. Returns false for the root, which is no call's. */
static bool drop_above(struct pd_thread *thread, const struct pd_entry *entry)
{
	if (!entry->parent)
		return false;
	while (thread->top != entry)
		abandon(thread, thread->top);
	return true;
}

/* Finds an entry that is not on top: calls above it were left without their cleanup, or it was dropped itself. */
__attribute__((cold)) bool pd_unwind_to(struct pd_thread *thread, const struct pd_frame *frame)
{
	struct pd_entry *entry = thread->top;

	while (entry->parent && ((uintptr_t)entry != frame->entry || entry->frame != frame))
		entry = entry->parent;
	return drop_above(thread, entry);
}

/*
 * Finds a keyed call that is open, and drops those above it. Of a probe's calls, those that have passed the gate have no entry; only below an
 * open one of the same probe is it looked for. Returns NULL where there is none.
 */
__attribute__((cold)) struct pd_entry *pd_unwind_to_key(struct pd_thread *thread, unsigned probe, const void *key)
{
	struct pd_entry *entry = thread->top;

	if (!thread->locals[probe].active)
		return NULL;
	while (entry->parent && entry->frame != key)
		entry = entry->parent;
	return drop_above(thread, entry) ? entry : NULL;
}

/* Says that a keyed call goes on: those inside it have ended, also where they could not tell. */
PD_API void pd_resume_keyed(unsigned probe, const void *key)
{
	if (pd_self.thread && pd_self.thread->top->frame != key)
		pd_unwind_to_key(pd_self.thread, probe, key);
}

/* Drops all calls of this thread that are open: an interpreter has left them without an end, as where it gives a request up. */
PD_API void pd_drop_calls(void)
{
	struct pd_thread *thread = pd_self.thread;

	while (thread && thread->top->parent)
		abandon(thread, thread->top);
}
