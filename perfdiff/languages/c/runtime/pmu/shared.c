/* The LLC, which all cores share. It holds all lines of their private caches: one that must go is taken from them, too. */
#include <sys/mman.h>

#include "pmu.h"
#include "ways.h"

/* Of a set: the tags, the LRU order, the lock, then the cores that may have each line. */
static char *memory;
static size_t set_size, order_offset, lock_offset, sharers_offset;

bool pd_shared_begin(void)
{
	uint32_t stride = pd_pmu.llc.stride;
	size_t size;

	order_offset = stride * sizeof(uint32_t);
	lock_offset = order_offset + stride;
	sharers_offset = (lock_offset + sizeof(uint32_t) + PD_LINE - 1) & ~(size_t)(PD_LINE - 1);
	set_size = sharers_offset + stride * sizeof(uint64_t);
	size = (pd_pmu.llc.sets_mask + (size_t)1) * set_size;
	memory = pd_memory(size);
	if (memory)
		madvise(memory, size, MADV_HUGEPAGE); /* neighbouring places lie in neighbouring sets: little is touched in vain */
	return memory != NULL;
}

void pd_shared_forget(void)
{
	if (memory && madvise(memory, (pd_pmu.llc.sets_mask + (size_t)1) * set_size, MADV_DONTNEED))
		pd_lose(PD_LOST_MEMORY);
}

static inline char *set_of(uint32_t place)
{
	return memory + (place & pd_pmu.llc.sets_mask) * set_size;
}

/* Locks the line's set, and brings the line in where it is missing. Returns whether it was there. */
bool pd_shared_take(struct pd_shared *shared, uint32_t place)
{
	char *set = set_of(place);
	uint32_t *tags = (uint32_t *)set, found, way;
	uint8_t *recency = (uint8_t *)(set + order_offset);
	uint64_t *sharers = (uint64_t *)(set + sharers_offset);

	shared->lock = (_Atomic uint32_t *)(set + lock_offset);
	pd_lock(shared->lock);
	found = pd_ways_find(tags, pd_pmu.llc.stride, place);
	way = found ? found - 1 : pd_ways_oldest(recency);
	if (!found) {
		if (tags[way])
			pd_directory_drop(tags[way], sharers[way]);
		tags[way] = place;
		sharers[way] = 0;
	}
	pd_ways_use(recency, pd_pmu.llc.ways, way);
	shared->sharers = &sharers[way];
	return found;
}
