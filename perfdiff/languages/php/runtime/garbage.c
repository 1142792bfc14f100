/* Collections of cycles: they come when enough has gathered, whoever runs then, so that no call pays for them. What runs in one does. */
#include "php_probe.h"

bool pd_collects;

static int (*next)(void);

static int collect(void)
{
	int collected;

	if (pd_collects)
		return next();
	pd_collects = true;
	pd_pause_begin();
	collected = next();
	pd_pause_end();
	pd_collects = false;
	return collected;
}

void pd_garbage_begin(void)
{
	next = gc_collect_cycles;
	gc_collect_cycles = collect;
}
