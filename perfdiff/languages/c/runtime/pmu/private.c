/* A core's private caches: the L1D, and the L2 that holds all lines of the L1D and knows their coherence state. */
#include <sys/mman.h>

#include "pmu.h"

static size_t l1_size(void)
{
	return (pd_pmu.l1.sets_mask + 1) * pd_pmu.l1.ways;
}

static size_t l2_size(void)
{
	return (pd_pmu.l2.sets_mask + 1) * pd_pmu.l2.ways;
}

static size_t memory_size(void)
{
	return l1_size() * (sizeof(uintptr_t) + sizeof(uint32_t)) + l2_size() * (sizeof(uintptr_t) + 2 * sizeof(uint64_t));
}

bool pd_private_begin(struct pd_cache *cache)
{
	uint64_t *memory = pd_memory(memory_size());

	if (!memory)
		return false;
	cache->l2_lines = memory;
	cache->l2_used = memory + l2_size();
	cache->l2_written = memory + 2 * l2_size();
	cache->l1_lines = memory + 3 * l2_size();
	cache->l1_slots = (uint32_t *)(cache->l1_lines + l1_size());
	return true;
}

/* Empties them, and gives their memory back. */
void pd_private_forget(struct pd_cache *cache)
{
	cache->clock = 0;
	if (madvise(cache->l2_lines, memory_size(), MADV_DONTNEED))
		pd_lose(PD_LOST_MEMORY);
}

static inline size_t l1_set(uintptr_t line)
{
	return (line / PD_LINE & pd_pmu.l1.sets_mask) * pd_pmu.l1.ways;
}

/* Takes the entry of the table of recent lines at `line`'s index out, whatever line it stands for. */
static inline void recent_drop(struct pd_cache *cache, uintptr_t line)
{
	struct pd_core *owner = cache->owner;
	size_t index = pd_recent_index(line);
	uintptr_t writable = owner->writable[index];

	if (writable) {
		cache->l2_written[cache->l1_slots[l1_set(writable)]] = owner->written[index];
		owner->writable[index] = 0;
	}
	owner->readable[index] = 0;
}

/* `line` is the most recent of its set. */
static inline void recent_set(struct pd_cache *cache, uintptr_t line, uint32_t slot, uint64_t bytes)
{
	struct pd_core *owner = cache->owner;
	size_t index = pd_recent_index(line);

	if (owner->readable[index] != line) {
		recent_drop(cache, line);
		owner->readable[index] = line;
	}
	if ((cache->l2_lines[slot] & PD_STATES) == PD_MODIFIED) {
		owner->written[index] = (owner->writable[index] ? owner->written[index] : cache->l2_written[slot]) | bytes;
		owner->writable[index] = line;
	}
}

/* Moves the first `way` lines of a set down by one, over the line at `way`, and puts `line` in front. */
static inline void l1_front(struct pd_cache *cache, size_t set, uint32_t way, uintptr_t line, uint32_t slot)
{
	uintptr_t *lines = cache->l1_lines + set;
	uint32_t *slots = cache->l1_slots + set;

	if (lines[0] && cache->owner->readable[pd_recent_index(lines[0])] == lines[0])
		recent_drop(cache, lines[0]);
	for (; way; way--) {
		lines[way] = lines[way - 1];
		slots[way] = slots[way - 1];
	}
	lines[0] = line;
	slots[0] = slot;
}

static inline uint32_t l1_find(struct pd_cache *cache, uintptr_t line)
{
	size_t set = l1_set(line);
	uint32_t slot;

	for (uint32_t way = 0; way < pd_pmu.l1.ways; way++) {
		if (cache->l1_lines[set + way] != line)
			continue;
		slot = cache->l1_slots[set + way];
		if (way)
			l1_front(cache, set, way, line, slot);
		return slot;
	}
	return PD_NO_SLOT;
}

static void l1_insert(struct pd_cache *cache, uintptr_t line, uint32_t slot)
{
	l1_front(cache, l1_set(line), pd_pmu.l1.ways - 1, line, slot);
}

static void l1_remove(struct pd_cache *cache, uintptr_t line)
{
	uintptr_t *lines = cache->l1_lines + l1_set(line);
	uint32_t *slots = cache->l1_slots + l1_set(line);
	uint32_t way = 0, last = pd_pmu.l1.ways - 1;

	while (way <= last && lines[way] != line)
		way++;
	if (way > last)
		return;
	for (; way < last; way++) {
		lines[way] = lines[way + 1];
		slots[way] = slots[way + 1];
	}
	lines[last] = 0;
}

static inline uint32_t l2_find(const struct pd_cache *cache, uintptr_t line, uintptr_t place)
{
	uint32_t first = (uint32_t)(place & pd_pmu.l2.sets_mask) * pd_pmu.l2.ways;

	for (uint32_t slot = first; slot < first + pd_pmu.l2.ways; slot++)
		if ((cache->l2_lines[slot] & ~PD_STATES) == line)
			return slot;
	return PD_NO_SLOT;
}

/* Takes a line out. Other threads' cores do so, too: its owner sees a recent line vanish by whole words. */
static void slot_clear(struct pd_cache *cache, uint32_t slot)
{
	uintptr_t line = cache->l2_lines[slot] & ~PD_STATES;
	size_t index = pd_recent_index(line);

	if (cache->owner->readable[index] == line) {
		__atomic_store_n(&cache->owner->writable[index], 0, __ATOMIC_RELAXED);
		__atomic_store_n(&cache->owner->readable[index], 0, __ATOMIC_RELAXED);
	}
	l1_remove(cache, line);
	cache->l2_lines[slot] = 0;
	cache->l2_used[slot] = 0;
}

/* An empty slot of the place's set; the least recently used line makes room. */
static uint32_t l2_make_room(struct pd_cache *cache, uintptr_t place)
{
	uint32_t first = (uint32_t)(place & pd_pmu.l2.sets_mask) * pd_pmu.l2.ways;
	uint32_t oldest = first;

	for (uint32_t slot = first + 1; slot < first + pd_pmu.l2.ways; slot++)
		if (cache->l2_used[slot] < cache->l2_used[oldest])
			oldest = slot;
	if (cache->l2_lines[oldest])
		slot_clear(cache, oldest);
	return oldest;
}

/* False where the directory must be asked: the line is not here, or to be written and perhaps elsewhere, too. */
bool pd_private_use(struct pd_cache *cache, uintptr_t line, uint64_t bytes, bool write)
{
	uint64_t *events = cache->owner->events;
	uint32_t slot = l1_find(cache, line);
	enum pd_state state;

	if (slot == PD_NO_SLOT) {
		events[PD_EVENT_L1D_MISS]++;
		slot = l2_find(cache, line, pd_place_of(line, pd_page_of(line, cache->node)));
		if (slot == PD_NO_SLOT) {
			events[PD_EVENT_L2_MISS]++;
			return false;
		}
		cache->l2_used[slot] = ++cache->clock;
		l1_insert(cache, line, slot);
	}
	state = cache->l2_lines[slot] & PD_STATES;
	if (write) {
		if (state == PD_SHARED)
			return false;
		if (state == PD_EXCLUSIVE)
			cache->l2_written[slot] = 0;
		cache->l2_lines[slot] = line | PD_MODIFIED;
	}
	recent_set(cache, line, slot, write ? bytes : 0);
	return true;
}

/* Gives the core a line in the state that the directory grants. */
void pd_private_install(struct pd_cache *cache, uintptr_t line, uintptr_t place, enum pd_state state, uint64_t bytes)
{
	uint32_t slot = l2_find(cache, line, place);

	if (slot == PD_NO_SLOT)
		slot = l2_make_room(cache, place);
	cache->l2_lines[slot] = line | state;
	cache->l2_used[slot] = ++cache->clock;
	cache->l2_written[slot] = 0;
	if (l1_find(cache, line) == PD_NO_SLOT)
		l1_insert(cache, line, slot);
	recent_set(cache, line, slot, state == PD_MODIFIED ? bytes : 0);
}

/* For another core: takes the line away, or but the right to write it. Returns the state that it was in, and what was written. */
enum pd_state pd_private_take(struct pd_cache *cache, uintptr_t line, uintptr_t place, bool all, uint64_t *written)
{
	uint32_t slot = cache->owner ? l2_find(cache, line, place) : PD_NO_SLOT;
	size_t index = pd_recent_index(line);
	enum pd_state state;

	if (slot == PD_NO_SLOT)
		return PD_INVALID;
	state = cache->l2_lines[slot] & PD_STATES;
	if (state == PD_MODIFIED)
		*written = cache->owner->writable[index] == line ? cache->owner->written[index] : cache->l2_written[slot];
	if (all) {
		slot_clear(cache, slot);
		return state;
	}
	if (cache->owner->writable[index] == line)
		__atomic_store_n(&cache->owner->writable[index], 0, __ATOMIC_RELAXED);
	cache->l2_lines[slot] = line | PD_SHARED;
	return state;
}
