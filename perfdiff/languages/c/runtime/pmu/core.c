/* A thread's core: its private caches, their opening at its first access and their end with the thread. */
#include "pmu.h"

PD_TLS struct pd_core pd_core;
struct pd_pmu pd_pmu;

void pd_core_touch(uintptr_t line, uint64_t bytes __attribute__((unused)), bool write)
{
	size_t index = pd_recent_index(line);

	pd_core.events[PD_EVENT_L1D_MISS]++;
	pd_core.readable[index] = line;
	pd_core.writable[index] = write ? line : 0;
}
