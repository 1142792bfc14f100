/* Basic blocks: both compilers call this at the start of each, clang where it cannot tell the count from those of others. */
#include "pmu.h"

PD_API __attribute__((hot, aligned(64))) void __sanitizer_cov_trace_pc(void);

PD_API __attribute__((hot, aligned(64))) void __sanitizer_cov_trace_pc(void)
{
	pd_core.events[PD_EVENT_BLOCKS]++;
}
