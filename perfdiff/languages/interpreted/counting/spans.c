/*
 * How long calls take that leave the project's code, by the clock: C code and code of others runs nearly as fast in a counted run as ever
 * (docs/howto/python.md has figures). Calls in which code of the project runs are not timed, as that is counted; so one place a thread is
 * enough: whatever begins within a call comes from such code. Compiled into what counts calls in Python and PHP.
 */
#include <sys/resource.h>

#include "../../c/runtime/runtime.h"
#include "spans.h"

#define NUMBERS 8192u /* of functions outside, more than there can be */
#define FIRST_CALLS 200u /* of a function are timed, then one in PERIOD: what is called more often is short */
#define PERIOD 7u

static uint32_t made[NUMBERS]; /* calls, by number */

/* What the system says of a thread. */
struct standing {
	uint64_t ns;
	uint64_t cpu_ns;
	long waits;    /* times that it gave up the CPU by itself */
	long removals; /* times that the CPU was taken from it */
};

static __thread struct {
	const void *callee; /* NULL: no call */
	const void *caller;
	uint32_t number;
	bool is_watched; /* `before` is known */
	uint64_t work; /* of the project, so far */
	uint64_t start;
	struct standing before;
} span;
static __thread long removals_seen;

/* By number: whether the last call was so short that the system is not asked about the next one. */
static bool is_short[NUMBERS];
static uint64_t long_ticks = UINT64_MAX; /* PD_LONG_NS, once it is known */

static struct standing standing_now(void)
{
	struct rusage usage = {0};

	getrusage(RUSAGE_THREAD, &usage);
	removals_seen = usage.ru_nivcsw;
	return (struct standing){pd_clock_ns(CLOCK_MONOTONIC), pd_clock_ns(CLOCK_THREAD_CPUTIME_ID), usage.ru_nvcsw, usage.ru_nivcsw};
}

/* Returns the ticks of a call that took so many: without those that other processes had; 0 where these are not known. */
static uint64_t undisturbed(uint64_t ticks)
{
	long seen = removals_seen;
	struct standing after;
	uint64_t ns, cpu_ns;

	if (!span.is_watched && ticks < long_ticks)
		return ticks;
	after = standing_now();
	if (!span.is_watched) {
		is_short[span.number] = false;
		return after.removals == seen ? ticks : 0;
	}
	ns = after.ns - span.before.ns;
	cpu_ns = after.cpu_ns - span.before.cpu_ns;
	is_short[span.number] = ns < PD_LONG_NS;
	if (ns)
		long_ticks = (uint64_t)((double)ticks * PD_LONG_NS / (double)ns);
	if (after.removals == span.before.removals || after.waits != span.before.waits || cpu_ns >= ns)
		return ticks;
	return (uint64_t)((double)ticks * (double)cpu_ns / (double)ns);
}

void pd_span_begin(uint32_t number, const void *callee, const void *caller, uint64_t work)
{
	span.callee = NULL; /* one that has not ended is not timed */
	if (number >= NUMBERS || (made[number]++ >= FIRST_CALLS && made[number] % PERIOD))
		return;
	span.callee = callee;
	span.caller = caller;
	span.number = number;
	span.work = work;
	span.is_watched = !is_short[number];
	if (span.is_watched)
		span.before = standing_now();
	span.start = pd_outside_clock();
}

void pd_span_end(const void *callee, const void *caller, uint64_t work)
{
	uint64_t ticks;

	if (span.callee != callee || span.caller != caller)
		return;
	ticks = pd_outside_clock() - span.start;
	span.callee = NULL;
	if (span.work == work && (ticks = undisturbed(ticks)))
		pd_outside_took(span.number, ticks);
}
