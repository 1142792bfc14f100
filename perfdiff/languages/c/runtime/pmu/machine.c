/* The machine that the software PMU models: read once from PERFDIFF_PMU, `l1d=32768/8,l2=1048576/16,llc=33554432/16,line=64,nodes=1`. */
#include <stdlib.h>
#include <string.h>

#include "pmu.h"
#include "ways.h"

#define SIZE_MOST (UINT64_C(1) << 34)
#define WAYS_MOST 64u
#define NODES_MOST 1024u

struct pd_pmu pd_pmu;

static bool number_read(const char **text, uint64_t most, uint64_t *number)
{
	const char *start = *text;

	*number = 0;
	for (; **text >= '0' && **text <= '9' && *number <= most; ++*text)
		*number = *number * 10 + (uint64_t)(**text - '0');
	return *text != start && *number > 0 && *number <= most;
}

static struct pd_geometry geometry_of(uint64_t sets, uint64_t ways)
{
	return (struct pd_geometry){.sets_mask = (uint32_t)sets - 1, .ways = (uint32_t)ways};
}

/* Sets become a power of two, with more ways where that would lose capacity. */
static bool cache_read(const char **text, struct pd_geometry *geometry)
{
	uint64_t size, ways, sets;

	if (!number_read(text, SIZE_MOST, &size) || *(*text)++ != '/' || !number_read(text, WAYS_MOST, &ways) || size / PD_LINE < ways)
		return false;
	sets = UINT64_C(1) << (63 - __builtin_clzll(size / PD_LINE / ways));
	*geometry = geometry_of(sets, size / PD_LINE / sets);
	return geometry->ways <= WAYS_MOST;
}

static bool named(const char **text, const char *name)
{
	const char *rest = *text;

	while (*name && *rest == *name)
		rest++, name++;
	if (*name)
		return false;
	*text = rest;
	return true;
}

static bool setting_read(const char **text)
{
	uint64_t number;

	if (named(text, "l1d="))
		return cache_read(text, &pd_pmu.l1);
	if (named(text, "l2="))
		return cache_read(text, &pd_pmu.l2);
	if (named(text, "llc="))
		return cache_read(text, &pd_pmu.llc);
	if (named(text, "line="))
		return number_read(text, PD_LINE, &number) && number == PD_LINE;
	if (!named(text, "nodes=") || !number_read(text, NODES_MOST, &number))
		return false;
	pd_pmu.nodes = (uint32_t)number;
	return true;
}

/* Each level must hold what lies above it, and one word the marks of an L1D set. */
static bool levels_fit(void)
{
	uint64_t l1 = (pd_pmu.l1.sets_mask + UINT64_C(1)) * pd_pmu.l1.ways;
	uint64_t l2 = (pd_pmu.l2.sets_mask + UINT64_C(1)) * pd_pmu.l2.ways;

	return pd_pmu.l1.ways < 32 && l1 <= l2 && l2 <= (pd_pmu.llc.sets_mask + UINT64_C(1)) * pd_pmu.llc.ways;
}

/* False, with the loss marked, where the environment describes no machine. */
bool pd_machine_begin(void)
{
	const char *text = secure_getenv("PERFDIFF_PMU");

	pd_pmu.l1 = geometry_of(64, 8);
	pd_pmu.l2 = geometry_of(1024, 16);
	pd_pmu.llc = geometry_of(32768, 16);
	pd_pmu.nodes = 1;
	while (text && *text) {
		if (!setting_read(&text) || (*text && *text++ != ',')) {
			pd_lose(PD_LOST_CONFIGURATION);
			return false;
		}
	}
	if (!levels_fit()) {
		pd_lose(PD_LOST_CONFIGURATION);
		return false;
	}
	pd_pmu.l1.stride = pd_ways_stride(pd_pmu.l1.ways, PD_WAYS_TAGS);
	pd_pmu.l2.stride = pd_ways_stride(pd_pmu.l2.ways, PD_WAYS_ORDER);
	pd_pmu.llc.stride = pd_ways_stride(pd_pmu.llc.ways, PD_WAYS_ORDER);
	return true;
}
