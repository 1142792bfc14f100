/* Coherence: which cores have a line, and what happens to their copies when another core reads or writes it (MESI). */
#include "pmu.h"

/* lines.c: told of every REMOTE_DRAM event, outside of all locks. */
void pd_lines_note_remote(uintptr_t line, uint32_t core) __attribute__((weak));

static inline uint64_t sharer_bit(uint32_t core)
{
	return UINT64_C(1) << core % 64;
}

static enum pd_state take(struct pd_cache *cache, uint32_t place, bool all, uint64_t *written)
{
	enum pd_state state;

	pd_lock(&cache->lock);
	state = pd_private_take(cache, place, all, written);
	pd_unlock(&cache->lock);
	return state;
}

/* The line leaves the LLC, and with it all cores; modified bytes go to memory. */
void pd_directory_drop(uint32_t place, uint64_t sharers)
{
	uint32_t cores = atomic_load_explicit(&pd_pmu.cores, memory_order_acquire);
	uint64_t written;

	for (; sharers; sharers &= sharers - 1)
		for (uint32_t core = (uint32_t)__builtin_ctzll(sharers); core < cores; core += 64)
			take(pd_pmu.caches[core], place, true, &written);
}

/* Takes the line, or the right to write it, from all cores but one. Returns those that still may have it. */
static uint64_t take_from_others(const struct pd_cache *cache, uint64_t sharers, uint32_t place, struct pd_conflict *conflict)
{
	uint32_t cores = atomic_load_explicit(&pd_pmu.cores, memory_order_acquire);
	uint64_t left = 0, written = 0;

	for (; sharers; sharers &= sharers - 1) {
		for (uint32_t core = (uint32_t)__builtin_ctzll(sharers); core < cores; core += 64) {
			enum pd_state state;

			if (core == cache->core)
				continue;
			state = take(pd_pmu.caches[core], place, conflict->write, &written);
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
	uint32_t place = pd_place_of(cache, line);
	struct pd_core *core = cache->owner;
	struct pd_shared shared;
	bool remote = false;
	uint64_t others;

	if (!pd_shared_take(&shared, place)) {
		core->events[PD_EVENT_LLC_MISS]++;
		remote = pd_pmu.nodes > 1 && pd_page_node(line / PD_PAGE) != cache->node;
		core->events[PD_EVENT_REMOTE_DRAM] += remote;
	}
	others = take_from_others(cache, *shared.sharers, place, &conflict);
	*shared.sharers = others | sharer_bit(cache->core);
	pd_lock(&cache->lock);
	pd_private_install(cache, line, place, write ? PD_MODIFIED : others ? PD_SHARED : PD_EXCLUSIVE, bytes);
	pd_unlock(&cache->lock);
	pd_unlock(shared.lock);
	if (conflict.other != cache->core)
		note(core, &conflict);
	if (remote && pd_lines_note_remote)
		pd_lines_note_remote(line, cache->core);
}
