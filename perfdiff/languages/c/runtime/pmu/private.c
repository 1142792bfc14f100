/* A core's private caches: the L1D, and the L2 that holds all lines of the L1D and knows their coherence state. */
#include <sys/mman.h>

#include "pmu.h"
#include "ways.h"

static size_t l1_size(void)
{
	return (pd_pmu.l1.sets_mask + (size_t)1) * pd_pmu.l1.stride;
}

static size_t l2_size(void)
{
	return (pd_pmu.l2.sets_mask + (size_t)1) * pd_pmu.l2.stride;
}

static size_t memory_size(void)
{
	size_t l1 = l1_size() * 2 * sizeof(uint32_t) + (pd_pmu.l1.sets_mask + (size_t)1) * sizeof(uint32_t);

	return l1 + l2_size() * (sizeof(struct pd_line) + sizeof(uint32_t) + 1);
}

bool pd_private_begin(struct pd_cache *cache)
{
	char *memory = pd_memory(memory_size());

	if (!memory)
		return false;
	cache->l2_lines = (struct pd_line *)memory;
	cache->l2_tags = (uint32_t *)(cache->l2_lines + l2_size());
	cache->l1_tags = cache->l2_tags + l2_size();
	cache->l1_slots = cache->l1_tags + l1_size();
	cache->l2_recency = (uint8_t *)(cache->l1_slots + l1_size());
	cache->l1_used = (uint32_t *)(cache->l2_recency + l2_size());
	return true;
}

/* Empties them, and gives their memory back. */
void pd_private_forget(struct pd_cache *cache)
{
	for (size_t page = 0; page < PD_PAGES; page++)
		cache->pages[page].place = 0;
	if (madvise(cache->l2_lines, memory_size(), MADV_DONTNEED))
		pd_lose(PD_LOST_MEMORY);
}

static inline uintptr_t line_at(const struct pd_cache *cache, uint32_t slot)
{
	return cache->l2_lines[slot].line & ~PD_STATES;
}

static inline uint32_t l1_set(uintptr_t line)
{
	return (uint32_t)(line / PD_LINE) & pd_pmu.l1.sets_mask;
}

/* Takes an entry out of the table of recent lines, whatever line it stands for. */
static inline void recent_drop(struct pd_cache *cache, struct pd_core *owner, size_t index)
{
	if (owner->writable[index]) {
		cache->l2_lines[cache->recent_slots[index]].written = owner->written[index];
		owner->writable[index] = 0;
	}
	owner->readable[index] = 0;
}

static inline void recent_set(struct pd_cache *cache, struct pd_core *owner, uintptr_t line, uint32_t slot, uint64_t bytes)
{
	size_t index = pd_recent_index(line);

	if (owner->readable[index] != line) {
		recent_drop(cache, owner, index);
		owner->readable[index] = line;
		cache->recent_slots[index] = slot;
	}
	if ((cache->l2_lines[slot].line & PD_STATES) == PD_MODIFIED) {
		owner->written[index] = (owner->writable[index] ? owner->written[index] : cache->l2_lines[slot].written) | bytes;
		owner->writable[index] = line;
	}
}

/* Takes a line out of the table of recent lines, if it is there. Without branches that depend on it: none could be foretold. */
static inline void recent_forget(struct pd_cache *cache, struct pd_core *owner, uint32_t slot)
{
	uintptr_t line = line_at(cache, slot);
	size_t index = pd_recent_index(line);

	if (owner->writable[index] == line) {
		cache->l2_lines[slot].written = owner->written[index];
		owner->writable[index] = 0;
	}
	owner->readable[index] &= -(uintptr_t)(owner->readable[index] != line);
}

/* When all ways of a set are marked as used, all but the last one are so no longer, and leave the table of recent lines. */
static __attribute__((noinline)) void l1_unmark(struct pd_cache *cache, struct pd_core *owner, uint32_t set, uint32_t last)
{
	uint32_t *slots = cache->l1_slots + set * pd_pmu.l1.stride;

	cache->l1_used[set] = 1u << last;
	for (uint32_t way = 0; way < pd_pmu.l1.ways; way++)
		if (way != last)
			recent_forget(cache, owner, slots[way]);
}

static inline void l1_mark(struct pd_cache *cache, struct pd_core *owner, uint32_t set, uint32_t way)
{
	cache->l1_used[set] |= 1u << way;
	if (pd_unlikely(cache->l1_used[set] == (1u << pd_pmu.l1.ways) - 1))
		l1_unmark(cache, owner, set, way);
}

/* 1 + the way of a line; 0: it is not in the L1D. */
static inline uint32_t l1_find(struct pd_cache *cache, uintptr_t line)
{
	uint32_t first = l1_set(line) * pd_pmu.l1.stride;
	uint32_t found = pd_ways_find(cache->l1_tags + first, pd_pmu.l1.stride, (uint32_t)(line / PD_LINE));

	return found && line_at(cache, cache->l1_slots[first + found - 1]) == line ? found : 0;
}

/* In the first way that is empty or not marked as used, whose line is not among the recent ones. */
static inline void l1_insert(struct pd_cache *cache, struct pd_core *owner, uintptr_t line, uint32_t slot)
{
	uint32_t set = l1_set(line), first = set * pd_pmu.l1.stride;
	uint32_t way = (uint32_t)__builtin_ctz(~cache->l1_used[set]);

	if (pd_unlikely(way == pd_pmu.l1.ways)) /* the only one */
		recent_forget(cache, owner, cache->l1_slots[first + --way]);
	cache->l1_tags[first + way] = (uint32_t)(line / PD_LINE);
	cache->l1_slots[first + way] = slot;
	l1_mark(cache, owner, set, way);
}

static void l1_remove(struct pd_cache *cache, uintptr_t line)
{
	uint32_t found = l1_find(cache, line);

	if (!found)
		return;
	cache->l1_tags[l1_set(line) * pd_pmu.l1.stride + found - 1] = 0;
	cache->l1_used[l1_set(line)] &= ~(1u << (found - 1));
}

static inline uint32_t l2_find(const struct pd_cache *cache, uint32_t place)
{
	uint32_t first = (place & pd_pmu.l2.sets_mask) * pd_pmu.l2.stride;
	uint32_t found = pd_ways_find(cache->l2_tags + first, pd_pmu.l2.stride, place);

	return found ? first + found - 1 : PD_NO_SLOT;
}

static inline void l2_use(struct pd_cache *cache, uint32_t slot)
{
	uint32_t way = slot & (pd_pmu.l2.stride - 1), first = slot - way;

	pd_ways_use(cache->l2_recency + first, pd_pmu.l2.ways, way);
}

/* Takes a line out. Other threads' cores do so, too: its owner sees a recent line vanish by whole words. */
static void slot_clear(struct pd_cache *cache, uint32_t slot)
{
	uintptr_t line = line_at(cache, slot);
	size_t index = pd_recent_index(line);

	if (cache->owner->readable[index] == line) {
		__atomic_store_n(&cache->owner->writable[index], 0, __ATOMIC_RELAXED);
		__atomic_store_n(&cache->owner->readable[index], 0, __ATOMIC_RELAXED);
	}
	l1_remove(cache, line);
	cache->l2_tags[slot] = 0;
	cache->l2_lines[slot].line = 0;
}

/* An empty slot of the place's set; the least recently used line makes room. */
static uint32_t l2_make_room(struct pd_cache *cache, uint32_t place)
{
	uint32_t first = (place & pd_pmu.l2.sets_mask) * pd_pmu.l2.stride;
	uint32_t slot = first + pd_ways_oldest(cache->l2_recency + first);

	if (cache->l2_tags[slot])
		slot_clear(cache, slot);
	return slot;
}

/* Looks a line up that is not in the L1D, and brings it there if the L2 has it. */
static inline uint32_t l2_use_line(struct pd_cache *cache, struct pd_core *owner, uintptr_t line)
{
	uint32_t place = pd_place_of(cache, line), slot;

	slot = l2_find(cache, place);
	owner->events[PD_EVENT_L1D_MISS]++;
	if (slot == PD_NO_SLOT) {
		owner->events[PD_EVENT_L2_MISS]++;
		return PD_NO_SLOT;
	}
	l2_use(cache, slot);
	l1_insert(cache, owner, line, slot);
	return slot;
}

/* The line's slot, after marking it as used where it is; PD_NO_SLOT: it is neither in the L1D nor in the L2. */
static inline uint32_t use_line(struct pd_cache *cache, struct pd_core *owner, uintptr_t line)
{
	uint32_t found = l1_find(cache, line), set = l1_set(line);

	if (!found)
		return l2_use_line(cache, owner, line);
	if (!(cache->l1_used[set] & 1u << (found - 1)))
		l1_mark(cache, owner, set, found - 1);
	return cache->l1_slots[set * pd_pmu.l1.stride + found - 1];
}

/* False where the directory must be asked: the line is not here, or to be written and perhaps elsewhere, too. */
bool pd_private_use(struct pd_cache *cache, struct pd_core *owner, uintptr_t line, uint64_t bytes, bool write)
{
	uint32_t slot = use_line(cache, owner, line);
	enum pd_state state;

	if (slot == PD_NO_SLOT)
		return false;
	state = cache->l2_lines[slot].line & PD_STATES;
	if (write) {
		if (state == PD_SHARED)
			return false;
		if (state == PD_EXCLUSIVE)
			cache->l2_lines[slot].written = 0;
		cache->l2_lines[slot].line = line | PD_MODIFIED;
	}
	recent_set(cache, owner, line, slot, write ? bytes : 0);
	return true;
}

/* Gives the core a line in the state that the directory grants. */
void pd_private_install(struct pd_cache *cache, uintptr_t line, uint32_t place, enum pd_state state, uint64_t bytes)
{
	uint32_t slot = l2_find(cache, place);

	if (slot == PD_NO_SLOT)
		slot = l2_make_room(cache, place);
	cache->l2_tags[slot] = place;
	cache->l2_lines[slot] = (struct pd_line){.line = line | state};
	l2_use(cache, slot);
	if (!l1_find(cache, line))
		l1_insert(cache, cache->owner, line, slot);
	recent_set(cache, cache->owner, line, slot, state == PD_MODIFIED ? bytes : 0);
}

static void downgrade(struct pd_cache *cache, uint32_t slot)
{
	uintptr_t line = line_at(cache, slot);

	if (cache->owner->writable[pd_recent_index(line)] == line)
		__atomic_store_n(&cache->owner->writable[pd_recent_index(line)], 0, __ATOMIC_RELAXED);
	cache->l2_lines[slot].line = line | PD_SHARED;
}

/* For another core: takes the line away, or but the right to write it. Returns the state that it was in, and what was written. */
enum pd_state pd_private_take(struct pd_cache *cache, uint32_t place, bool all, uint64_t *written)
{
	uint32_t slot = cache->owner ? l2_find(cache, place) : PD_NO_SLOT;
	enum pd_state state;
	uintptr_t line;

	if (slot == PD_NO_SLOT)
		return PD_INVALID;
	line = line_at(cache, slot);
	state = cache->l2_lines[slot].line & PD_STATES;
	if (state == PD_MODIFIED && cache->owner->writable[pd_recent_index(line)] == line)
		*written = cache->owner->written[pd_recent_index(line)];
	else
		*written = cache->l2_lines[slot].written;
	if (all) {
		uint32_t way = slot & (pd_pmu.l2.stride - 1);

		slot_clear(cache, slot);
		pd_ways_empty(cache->l2_recency + (slot - way), pd_pmu.l2.ways, way);
	} else {
		downgrade(cache, slot);
	}
	return state;
}
