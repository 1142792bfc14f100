/* Collections of cycles: they come when enough has gathered, whoever runs then, so that no call pays for them. What runs in one does. */
#include <time.h>

#include "php_probe.h"

bool pd_collects;
uint64_t pd_collections, pd_collecting_ns;

static int (*next)(void);

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static int collect(void)
{
	uint64_t begun = now_ns();
	int collected;

	if (pd_collects)
		return next();
	pd_collects = true;
	pd_collections++;
	pd_pause_begin();
	collected = next();
	pd_pause_end();
	pd_collects = false;
	pd_collecting_ns += now_ns() - begun;
	return collected;
}

void pd_garbage_begin(void)
{
	next = gc_collect_cycles;
	gc_collect_cycles = collect;
}
