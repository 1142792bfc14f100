/* What the parts share that count what calls do. */
#ifndef PD_COUNTING_H
#define PD_COUNTING_H

#include "../../c/runtime/runtime.h"
#undef pd_likely
#undef pd_unlikely
#include "../lines/lines.h"

/* What the process has asked the engine's allocator for so far. */
struct pd_allocations {
	uint64_t count;
	uint64_t bytes;
	uint64_t highest; /* bytes in use at once, since this was last asked for */
};

extern struct pd_allocations pd_allocations;

void pd_allocations_begin(void); /* in each request: its memory is given back by the engine's own allocator */
void pd_allocations_end(void);
uint64_t pd_memory_in_use(void); /* PD_ABSENT outside of requests, and where the engine's own allocator does not serve */

/* calls.c */
void pd_calls_begin(void);

#endif
