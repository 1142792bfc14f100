/*
 * Time that a thread spent waiting for a CPU is not its code's: it is taken off.
 *
 * Between two looks at a thread's clocks, elapsed time beyond its CPU time is time off the CPU. If the thread did not give up the
 * CPU by itself meanwhile (a lock, a read, a sleep), it was preempted. Only long calls are looked at: whoever is preempted is. While the whole
 * process stands still a thread is off the CPU, too: that is taken off already, and not once more.
 */
#include <errno.h>
#include <sys/resource.h>

#include "runtime.h"

#define NOTICED_NS 20000u /* shorter absences are within what reading the clocks one after the other may show */
#define MOST_LOOKS 4
#define MOST_CALLERS 1000 /* that are told of a loss: below so many calls nobody waits for more */

static inline uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t times_blocked(void)
{
	struct rusage usage;

	return getrusage(RUSAGE_THREAD, &usage) ? UINT64_MAX : (uint64_t)usage.ru_nvcsw;
}

/*
 * Reads the clocks at one moment. Who is preempted between them, most likely as the system returns from telling CPU time, would seem to be so
 * during what comes next: then it looks again.
 */
static void look(struct pd_presence *presence)
{
	for (int looks = 0; looks < MOST_LOOKS; looks++) {
		presence->ns = pd_clock_ns(CLOCK_MONOTONIC);
		presence->cpu_ns = pd_clock_ns(CLOCK_THREAD_CPUTIME_ID);
		presence->ticks = pd_ticks();
		presence->paused = pd_paused();
		if (pd_clock_ns(CLOCK_MONOTONIC) - presence->ns < NOTICED_NS)
			return;
	}
}

void pd_presence_begin(struct pd_thread *thread)
{
	look(&thread->presence);
	thread->presence.blocked = times_blocked();
}

/* Returns `ns` in ticks, roughly: by the clocks' way since the thread's last look. */
uint64_t pd_presence_ticks(const struct pd_thread *thread, uint64_t ns)
{
	struct pd_presence now;

	look(&now);
	return ns * (now.ticks - thread->presence.ticks) / (now.ns - thread->presence.ns + 1);
}

/* Returns how many of the ticks of `whole` ns are those of `ns`, which times ticks may be more than 64 bits hold after some seconds. */
static uint64_t part_of(uint64_t ticks, uint64_t ns, uint64_t whole)
{
	return (uint64_t)((double)ticks * ((double)ns / (double)whole));
}

/* Returns the ticks that the thread was off the CPU against its will since the last look, beyond the process' pauses, and looks anew. */
static uint64_t absence(struct pd_presence *before)
{
	struct pd_presence now;
	uint64_t elapsed, worked, paused;

	look(&now);
	elapsed = now.ns - before->ns;
	worked = now.cpu_ns - before->cpu_ns;
	now.blocked = times_blocked(); /* also where nothing was lost: a short wait would hide the next loss */
	elapsed = elapsed < worked + NOTICED_NS || now.blocked != before->blocked ? 0 : part_of(now.ticks - before->ticks, elapsed - worked, elapsed);
	paused = (now.paused - before->paused) >> PD_TIME_FRACTION;
	*before = now;
	return elapsed - least(elapsed, paused);
}

/*
 * Notes what was lost since the last look, when `seen` was the time, for a call that is closed or begins, and its callers. Of these, who was not
 * looked at as it began may have begun after the loss. That is so where it is longer than the call and the call is short, as nobody is short who
 * lost the CPU: then it is not taken off. Of a long one it is not known.
 */
static void lose(struct pd_thread *thread, struct pd_entry *caller, uint64_t seen, uint64_t ticks)
{
	thread->preempted += ticks << PD_TIME_FRACTION;
	if (!ticks)
		return;
	for (int i = 0; i < MOST_CALLERS && caller->parent; i++, caller = caller->parent) {
		uint64_t lasted = thread->presence.ticks - caller->start;

		if (!(caller->weight | caller->share))
			continue;
		if (caller->entered <= seen)
			break;
		if (ticks <= lasted)
			continue;
		if (lasted < pd_process.long_ticks)
			caller->preempted += ticks << PD_TIME_FRACTION;
		else
			caller->weight = caller->share = 0;
	}
}

/* Notes what was lost until now: before a call that may be long, as it is not lost in it, and before all calls are closed. */
__attribute__((noinline, cold)) void pd_presence_mark(struct pd_thread *thread, struct pd_entry *caller)
{
	uint64_t seen = thread->presence.ticks;
	int error = errno;

	lose(thread, caller, seen, absence(&thread->presence));
	errno = error;
}

/*
 * After a long call, which has `ended`: what was lost since the last look is put down to it, but for what may have been lost before it started,
 * or since it ended. Returns what had been lost when it ended, in time's unit.
 */
__attribute__((noinline, cold)) uint64_t pd_presence_check(struct pd_thread *thread, struct pd_entry *entry, uint64_t ended)
{
	uint64_t paused = pd_paused(), seen = thread->presence.ticks, lost, before, after;
	int error = errno;

	lost = absence(&thread->presence);
	after = least(thread->presence.ticks - ended, lost);
	before = seen >= entry->entered && entry->start > seen ? least(entry->start - seen, lost - after) : 0; /* if it looked as it began */
	lose(thread, entry->parent, seen, lost);
	entry->preempted += before << PD_TIME_FRACTION;
	entry->missed += before;
	errno = error;
	return thread->preempted - (after << PD_TIME_FRACTION) + paused;
}
