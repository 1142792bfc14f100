/*
 * What an interpreter tells beside its calls: what these cost on their way to us, that all threads stand still, that one waits for a lock, and
 * that the process waits for work.
 */
#include <string.h>

#include "runtime.h"

static uint64_t paused_since; /* one pause at a time */

/* The ticks of a ns since the process began, as one that reads the recording will find. */
static double ticks_a_ns(const struct pd_header *header)
{
	const struct pd_instant *now = &header->latest[header->newest];

	return now->ns > header->started.ns ? (double)(now->ticks - header->started.ticks) / (double)(now->ns - header->started.ns) : 0;
}

/*
 * Adds what a call's probe costs beyond what calibration sees, in ns: one that is counted, timed, and passes, as its caller sees it; `inside` is
 * the part between the time stamps. Called before the first call.
 */
PD_API void pd_costs_add(double counted, double timed, double inside, double passed)
{
	double unit;

	if (!pd_process.header)
		return;
	pd_clock_refresh();
	unit = ticks_a_ns(pd_process.header) * (1 << PD_TIME_FRACTION);
	pd_process.costs[PD_COST_COUNTED] += (uint64_t)(counted * unit);
	pd_process.costs[PD_COST_TIMED] += (uint64_t)(timed * unit);
	pd_process.costs[PD_COST_TIMED_INNER] += (uint64_t)(inside * unit);
	pd_process.costs[PD_COST_SAMPLED] += (uint64_t)(timed * unit);
	pd_process.costs[PD_COST_SAMPLED_INNER] += (uint64_t)(inside * unit);
	pd_process.pass_cost += (uint64_t)(passed * unit);
	memcpy(pd_process.header->costs, pd_process.costs, sizeof(pd_process.costs));
}

/* The process waits for its next piece of work, with no call open: whatever ends it here, SIGKILL too, its recording is whole. */
PD_API void pd_rest_begin(void)
{
	if (!pd_is_recorded_process() || !pd_self.thread || pd_self.thread->top->parent)
		return;
	pd_thread_settle(pd_self.thread);
	pd_clock_refresh();
	pd_order();
	pd_process.header->flags |= PD_ENDED;
}

PD_API void pd_rest_end(void)
{
	if (pd_is_recorded_process() && pd_probes)
		pd_process.header->flags &= ~(uint32_t)PD_ENDED;
}

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
	pd_process.sees |= PD_SEES_WAITS;
	if (pd_process.header)
		pd_process.header->flags |= PD_SEES_WAITS;
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
