/* What an interpreter tells beside its calls: that all of its threads stand still, and that one of them waits for a lock. */
#include "runtime.h"

static uint64_t paused_since; /* one pause at a time */

PD_API void pd_pause_begin(void)
{
	paused_since = pd_ticks();
}

PD_API void pd_pause_end(void)
{
	if (paused_since)
		atomic_fetch_add_explicit(&pd_process.paused, (pd_ticks() - paused_since) << PD_TIME_FRACTION, memory_order_relaxed);
	paused_since = 0;
}

/* Says that the waits for locks will be told: then a process without any is one that did not wait. */
PD_API void pd_waits_tell(void)
{
	pd_process.sees |= PD_SEES_LOCKS;
	if (pd_process.header)
		pd_process.header->flags |= PD_SEES_LOCKS;
}

PD_API void pd_wait_begin(void)
{
	if (pd_self.thread)
		pd_self.waiting = pd_ticks();
}

PD_API void pd_wait_end(void)
{
	if (pd_self.waiting)
		pd_self.resources[PD_LOCK_WAIT] += pd_ticks() - pd_self.waiting;
	pd_self.waiting = 0;
}
