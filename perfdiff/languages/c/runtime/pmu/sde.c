/*
 * The counts as PAPI's software-defined events (`sde:::perfdiff::BLOCKS`, …) for programs that use PAPI themselves: where its library for
 * them is there, it is told of ours. Each thread reads its own counts, from its start on.
 */
#include "pmu.h"

#ifndef PD_STATIC

#include <dlfcn.h>
#include <errno.h>

/* Of sde_lib.h, which is the same in all versions of libsde. */
#define READ_ONLY 0x00
#define AS_IT_IS 0x10 /* else a start would be subtracted, which is one thread's alone */
#define LONG_LONG 0x0

typedef void *init_function(const char *library);
typedef int register_function(void *library, const char *event, int mode, int type, long long (*callback)(void *), void *data);
typedef int describe_function(void *library, const char *event, const char *says);

static const struct event {
	const char *name, *says;
} events[PD_EVENTS] = {
	[PD_EVENT_BLOCKS] = {"BLOCKS", "Basic blocks executed"},
	[PD_EVENT_LOADS] = {"LOADS", "Loads"},
	[PD_EVENT_STORES] = {"STORES", "Stores"},
	[PD_EVENT_ATOMICS] = {"ATOMICS", "Atomic updates, sequentially consistent stores and fences, calls on locks"},
	[PD_EVENT_DIVISIONS] = {"DIVISIONS", "Divisions and square roots, integer and floating"},
	[PD_EVENT_L1D_MISS] = {"L1D_MISS", "Lines that were not in the thread's first-level data cache"},
	[PD_EVENT_L2_MISS] = {"L2_MISS", "Lines that were not in the thread's second-level cache"},
	[PD_EVENT_LLC_MISS] = {"LLC_MISS", "Lines that were not in the last-level cache"},
	[PD_EVENT_HITM] = {"HITM", "Lines that another thread's cache held modified"},
	[PD_EVENT_HITM_FALSE] = {"HITM_FALSE", "Of HITM: the other thread had written other bytes of the line"},
	[PD_EVENT_REMOTE_DRAM] = {"REMOTE_DRAM", "Lines that came from the memory of another node"},
};

static const struct resource {
	struct event event;
	enum pd_resource resource;
} resources[] = {
	{{"ALLOC_BYTES", "Bytes allocated"}, PD_ALLOC_BYTES},
	{{"ALLOC_COUNT", "Allocations"}, PD_ALLOC_COUNT},
};

static long long event_read(void *data)
{
	uint64_t counts[PD_EVENTS];

	pd_pmu_read(counts);
	return (long long)counts[(const struct event *)data - events];
}

static long long resource_read(void *data)
{
	return (long long)pd_self.resources[((const struct resource *)data)->resource];
}

static void publish(void *libsde)
{
	init_function *init = (init_function *)dlsym(libsde, "papi_sde_init");
	register_function *add = (register_function *)dlsym(libsde, "papi_sde_register_counter_cb");
	describe_function *describe = (describe_function *)dlsym(libsde, "papi_sde_describe_counter");
	void *ours = init && add && describe ? init("perfdiff") : NULL;

	if (!ours)
		return;
	for (size_t i = 0; i < PD_EVENTS; i++) {
		add(ours, events[i].name, READ_ONLY | AS_IT_IS, LONG_LONG, event_read, (void *)&events[i]);
		describe(ours, events[i].name, events[i].says);
	}
	for (size_t i = 0; i < sizeof(resources) / sizeof(*resources); i++) {
		add(ours, resources[i].event.name, READ_ONLY | AS_IT_IS, LONG_LONG, resource_read, (void *)&resources[i]);
		describe(ours, resources[i].event.name, resources[i].event.says);
	}
}

/* Loading takes memory, so it is left where that would come from an allocator of the program's own, which may not be ready. */
static __attribute__((constructor(102))) void begin(void)
{
	int error = errno;
	void *libsde = pd_allocations_seen() ? dlopen("libsde.so.1", RTLD_NOW | RTLD_GLOBAL) : NULL;

	if (libsde)
		publish(libsde);
	dlerror();
	errno = error;
}

#endif
