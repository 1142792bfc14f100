/* What the system itself counts of a thread: its CPU time, page faults and context switches. */
#include <errno.h>
#include <string.h>
#include <sys/resource.h>

#include "runtime.h"

static __attribute__((cold)) void system_read(uint64_t usage[PD_USAGES])
{
	int error = errno;
	struct rusage now;

	if (getrusage(RUSAGE_THREAD, &now)) {
		memset(usage, 0xff, sizeof(uint64_t) * PD_USAGES);
	} else {
		usage[PD_PAGE_FAULTS] = (uint64_t)now.ru_minflt + (uint64_t)now.ru_majflt;
		usage[PD_SWITCHES] = (uint64_t)now.ru_nvcsw + (uint64_t)now.ru_nivcsw;
		usage[PD_CPU_NS] = pd_clock_ns(CLOCK_THREAD_CPUTIME_ID);
	}
	errno = error;
}

const struct pd_counter_source pd_system_counters = {.read = system_read};
