/* The LLC, which all cores share. It holds all lines of their private caches: one that must go is taken from them, too. */
#include <sys/mman.h>

#include "pmu.h"

struct pd_shared_set {
	_Atomic uint32_t lock;
	uint64_t clock;
	uint64_t words[]; /* `ways` line addresses, then clocks at the last use, then cores that may have the line */
};

static char *memory;

static size_t set_size(void)
{
	return (sizeof(struct pd_shared_set) + 3 * pd_pmu.llc.ways * sizeof(uint64_t) + PD_LINE - 1) & ~(size_t)(PD_LINE - 1);
}

bool pd_shared_begin(void)
{
	memory = pd_memory((pd_pmu.llc.sets_mask + 1) * set_size());
	return memory != NULL;
}

void pd_shared_forget(void)
{
	if (memory && madvise(memory, (pd_pmu.llc.sets_mask + 1) * set_size(), MADV_DONTNEED))
		pd_lose(PD_LOST_MEMORY);
}

/* Locks the line's set, and brings the line in where it is missing. Returns whether it was there. */
bool pd_shared_take(struct pd_shared *shared, uintptr_t line, uintptr_t place)
{
	struct pd_shared_set *set = (struct pd_shared_set *)(memory + (place & pd_pmu.llc.sets_mask) * set_size());
	uint32_t ways = pd_pmu.llc.ways, way = 0, oldest = 0;
	uint64_t *lines = set->words, *used = lines + ways, *sharers = used + ways;
	bool found;

	pd_lock(&set->lock);
	while (way < ways && lines[way] != line)
		way++;
	found = way < ways;
	if (!found) {
		for (way = 1; way < ways; way++)
			if (used[way] < used[oldest])
				oldest = way;
		way = oldest;
		if (lines[way])
			pd_directory_drop(lines[way], sharers[way]);
		lines[way] = line;
		sharers[way] = 0;
	}
	used[way] = ++set->clock;
	shared->set = set;
	shared->sharers = &sharers[way];
	return found;
}

void pd_shared_release(struct pd_shared *shared)
{
	pd_unlock(&shared->set->lock);
}
