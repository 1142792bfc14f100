/* Coherence: which cores have a line, and what happens to their copies when another core reads or writes it (MESI). */
#include "pmu.h"

static inline uint64_t sharer_bit(uint32_t core)
{
	return UINT64_C(1) << core % 64;
}

static enum pd_state take(struct pd_cache *cache, uintptr_t line, uintptr_t place, bool all, uint64_t *written)
{
	enum pd_state state;

	pd_lock(&cache->lock);
	state = pd_private_take(cache, line, place, all, written);
	pd_unlock(&cache->lock);
	return state;
}

/* The line leaves the LLC, and with it all cores; modified bytes go to memory. */
void pd_directory_drop(uintptr_t line, uint64_t sharers)
{
	uint32_t cores = atomic_load_explicit(&pd_pmu.cores, memory_order_acquire);
	uintptr_t place = pd_place_of(line, pd_page_of(line, 0));
	uint64_t written;

	for (; sharers; sharers &= sharers - 1)
		for (uint32_t core = (uint32_t)__builtin_ctzll(sharers); core < cores; core += 64)
			take(pd_pmu.caches[core], line, place, true, &written);
}

/* Takes the line, or the right to write it, from all cores but one. Returns those that still may have it. */
static uint64_t take_from_others(const struct pd_cache *cache, uint64_t sharers, uintptr_t place, struct pd_conflict *conflict)
{
	uint32_t cores = atomic_load_explicit(&pd_pmu.cores, memory_order_acquire);
	uint64_t left = 0, written = 0;

	for (; sharers; sharers &= sharers - 1) {
		for (uint32_t core = (uint32_t)__builtin_ctzll(sharers); core < cores; core += 64) {
			enum pd_state state;

			if (core == cache->core)
				continue;
			state = take(pd_pmu.caches[core], conflict->line, place, conflict->write, &written);
			if (state == PD_MODIFIED) {
				conflict->other = core;
				conflict->written = written;
			}
			if (state != PD_INVALID && !conflict->write)
				left |= sharer_bit(core);
		}
	}
	return left;
}

static void note(struct pd_core *core, const struct pd_conflict *conflict)
{
	core->events[PD_EVENT_HITM]++;
	if (!(conflict->bytes & conflict->written))
		core->events[PD_EVENT_HITM_FALSE]++;
	if (pd_lines_note)
		pd_lines_note(conflict);
}

/* Brings a line to a core, or gives it the right to write one that it has. */
void pd_directory_fetch(struct pd_cache *cache, uintptr_t line, uint64_t bytes, bool write)
{
	struct pd_conflict conflict = {.line = line, .bytes = bytes, .core = cache->core, .other = cache->core, .write = write};
	struct pd_page page = pd_page_of(line, cache->node);
	uintptr_t place = pd_place_of(line, page);
	struct pd_core *core = cache->owner;
	struct pd_shared shared;
	uint64_t others;

	if (!pd_shared_take(&shared, line, place)) {
		core->events[PD_EVENT_LLC_MISS]++;
		core->events[PD_EVENT_REMOTE_DRAM] += page.node != cache->node;
	}
	others = take_from_others(cache, *shared.sharers, place, &conflict);
	*shared.sharers = others | sharer_bit(cache->core);
	pd_lock(&cache->lock);
	pd_private_install(cache, line, place, write ? PD_MODIFIED : others ? PD_SHARED : PD_EXCLUSIVE, bytes);
	pd_unlock(&cache->lock);
	pd_shared_release(&shared);
	if (conflict.other != cache->core)
		note(core, &conflict);
}
