/*
 * The lines that cores take from each other most often, and the pages that they read from other nodes' memory.
 *
 * Each set of a table keeps the most frequent of its addresses: a new one takes the place of the rarest and is told how many events it
 * may have missed (Space-Saving; Metwally, Agrawal, El Abbadi 2005). The process's end writes the first of all to the recording.
 */
#include <pthread.h>
#include <string.h>

#include "lines.h"

#define WAYS 8u
#define LINE_SETS 256u
#define PAGE_SETS 32u
#define PAGE 4096u
#define CORES 8u  /* of a line; the last stands for all others */
#define PLACES 4u /* of a line: small allocations share it */
#define STACK_EVENTS 8u /* when a line is worth a look at the memory map; at the end, threads and their stacks are gone */
#define LINES_WRITTEN 64u
#define PAGES_WRITTEN 16u
#define PATH_BYTES 1024u
#define PROBES 8u /* an allocation of more lines is compared with every watched one */

struct entry {
	_Atomic uintptr_t address; /* 0: empty */
	uint64_t hitm;
	uint64_t hitm_false;
	uint64_t remote;
	uint64_t missed;
	uint32_t stack; /* whose it is; PD_OTHER_CORES: nobody's */
	uint32_t cores;
	uint32_t places;
	struct pd_line_core core[CORES];
	struct pd_allocation place[PLACES];
};

struct set {
	_Atomic uint32_t lock;
	struct entry entries[WAYS];
};

struct table {
	struct set *sets;
	uint32_t count;
	uint32_t span; /* bytes that an address stands for */
	_Atomic bool used;
};

static struct set line_sets[LINE_SETS], page_sets[PAGE_SETS];
static struct table lines = {line_sets, LINE_SETS, PD_LINE, false}, pages = {page_sets, PAGE_SETS, PAGE, false};

static struct set *set_of(const struct table *table, uintptr_t address)
{
	return &table->sets[((address / table->span * UINT64_C(0x9e3779b97f4a7c15)) >> 32) % table->count];
}

static struct entry *find(struct set *set, uintptr_t address)
{
	for (uint32_t way = 0; way < WAYS; way++)
		if (atomic_load_explicit(&set->entries[way].address, memory_order_relaxed) == address)
			return &set->entries[way];
	return NULL;
}

static uint64_t events(const struct entry *entry)
{
	return entry->hitm + entry->remote + entry->missed;
}

static struct entry *watch(struct table *table, struct set *set, uintptr_t address)
{
	struct entry *entry = find(set, address), *rarest = &set->entries[0];
	uint64_t missed;

	if (entry)
		return entry;
	for (uint32_t way = 1; way < WAYS; way++)
		if (events(&set->entries[way]) < events(rarest))
			rarest = &set->entries[way];
	missed = events(rarest);
	memset(rarest, 0, sizeof(*rarest));
	rarest->address = address;
	rarest->missed = missed;
	rarest->stack = PD_OTHER_CORES;
	table->used = true;
	return rarest;
}

static void core_note(struct entry *entry, uint32_t core, uint64_t read, uint64_t written)
{
	uint32_t place = 0;

	while (place < entry->cores && entry->core[place].core != core)
		place++;
	if (place == CORES) {
		place--;
		entry->core[place].core = PD_OTHER_CORES;
	} else if (place == entry->cores) {
		entry->core[entry->cores++].core = core;
	}
	entry->core[place].events++;
	entry->core[place].read |= read;
	entry->core[place].written |= written;
}

void pd_lines_note(const struct pd_conflict *conflict)
{
	struct set *set = set_of(&lines, conflict->line);
	uint32_t stack = PD_OTHER_CORES;
	struct entry *entry;
	bool ask;

	pd_lock(&set->lock);
	entry = watch(&lines, set, conflict->line);
	entry->hitm++;
	entry->hitm_false += !(conflict->bytes & conflict->written);
	core_note(entry, conflict->core, conflict->write ? 0 : conflict->bytes, conflict->write ? conflict->bytes : 0);
	core_note(entry, conflict->other, 0, conflict->written);
	ask = entry->hitm == STACK_EVENTS;
	pd_unlock(&set->lock);
	if (pd_likely(!ask))
		return;
	stack = pd_stack_owner(conflict->line);
	pd_lock(&set->lock);
	entry = find(set, conflict->line);
	if (entry)
		entry->stack = stack;
	pd_unlock(&set->lock);
}

void pd_lines_note_remote(uintptr_t line, uint32_t core)
{
	uintptr_t page = line & ~(uintptr_t)(PAGE - 1);
	struct set *set = set_of(&pages, page);
	struct entry *entry;

	pd_lock(&set->lock);
	entry = watch(&pages, set, page);
	entry->remote++;
	core_note(entry, core, 0, 0);
	pd_unlock(&set->lock);
}

static void attach(struct entry *entry, uint32_t span, const struct pd_allocation *allocation)
{
	if (entry->address >= allocation->address + allocation->size || allocation->address >= entry->address + span)
		return;
	for (uint32_t i = 0; i < entry->places; i++)
		if (!memcmp(&entry->place[i], allocation, sizeof(*allocation)))
			return;
	if (entry->places < PLACES)
		entry->place[entry->places++] = *allocation;
}

static void attach_one(const struct table *table, uintptr_t address, const struct pd_allocation *allocation)
{
	struct set *set = set_of(table, address);
	struct entry *entry;

	if (!find(set, address))
		return;
	pd_lock(&set->lock);
	entry = find(set, address);
	if (entry)
		attach(entry, table->span, allocation);
	pd_unlock(&set->lock);
}

static void attach_all(const struct table *table, const struct pd_allocation *allocation)
{
	for (uint32_t i = 0; i < table->count; i++) {
		pd_lock(&table->sets[i].lock);
		for (uint32_t way = 0; way < WAYS; way++)
			if (table->sets[i].entries[way].address)
				attach(&table->sets[i].entries[way], table->span, allocation);
		pd_unlock(&table->sets[i].lock);
	}
}

static void attach_in(const struct table *table, const struct pd_allocation *allocation)
{
	uintptr_t from = allocation->address & ~(uintptr_t)(table->span - 1), end = allocation->address + allocation->size;

	if (!table->used)
		return;
	if ((end - from) / table->span > PROBES)
		attach_all(table, allocation);
	else
		for (uintptr_t address = from; address < end; address += table->span)
			attach_one(table, address, allocation);
}

/* What handlers touch meanwhile waits; below a handler that interrupted this thread at work on a set, the allocation stays without its lines. */
void pd_lines_attach(const struct pd_allocation *allocation)
{
	struct pd_core *core = &pd_core;

	if (pd_unlikely(core->busy) || !(lines.used || pages.used))
		return;
	core->busy = 1;
	pd_order();
	attach_in(&lines, allocation);
	attach_in(&pages, allocation);
	pd_order();
	core->busy = 0;
}

/* What a block is made of before its size is known. */
static struct {
	struct pd_line_place place;
	char path[PATH_BYTES];
} written[PLACES];

static size_t padded(uint64_t length)
{
	return (length + 7) & ~(size_t)7;
}

static uint32_t places_of(const struct entry *entry)
{
	struct pd_line_place place = {.kind = PD_PLACE_OBJECT, .core = PD_OTHER_CORES};

	if (pd_object_of(entry->address, &place.offset, written[0].path, PATH_BYTES)) {
		place.length = strlen(written[0].path);
		written[0].place = place;
		return 1;
	}
	for (uint32_t i = 0; i < entry->places; i++) {
		place = (struct pd_line_place){
			.kind = PD_PLACE_HEAP, .core = PD_OTHER_CORES, .address = entry->place[i].address, .size = entry->place[i].size};
		/* The call is in front of where it returns to, perhaps the last instruction of its function. */
		if (pd_object_of(entry->place[i].site - 1, &place.offset, written[i].path, PATH_BYTES))
			place.length = strlen(written[i].path);
		written[i].place = place;
	}
	if (entry->places || entry->stack == PD_OTHER_CORES)
		return entry->places;
	written[0].place = (struct pd_line_place){.kind = PD_PLACE_STACK, .core = entry->stack};
	return 1;
}

static void write_entry(const struct table *table, const struct entry *entry)
{
	uint32_t places = places_of(entry);
	size_t cores = entry->cores * sizeof(*entry->core), size = sizeof(struct pd_line_block) + cores;
	struct pd_line_block *block;
	struct pd_slow slow;
	char *end;

	for (uint32_t i = 0; i < places; i++)
		size += sizeof(written[i].place) + padded(written[i].place.length);
	pd_slow_begin(&slow);
	block = pd_recording() ? pd_arena_take(&pd_process.arena, size) : NULL;
	if (block) {
		block->address = entry->address;
		block->size = table->span;
		block->hitm = entry->hitm;
		block->hitm_false = entry->hitm_false;
		block->remote = entry->remote;
		block->missed = entry->missed;
		block->cores = entry->cores;
		block->places = places;
		end = memcpy(block + 1, entry->core, cores);
		end += cores;
		for (uint32_t i = 0; i < places; i++) {
			memcpy(end, &written[i].place, sizeof(written[i].place));
			memcpy(end + sizeof(written[i].place), written[i].path, written[i].place.length);
			end += sizeof(written[i].place) + padded(written[i].place.length);
		}
		pd_block_publish(&block->block, PD_BLOCK_LINE, size);
	}
	pd_slow_end(&slow);
}

/* The entry with the most events that were seen, of those with fewer than `below`, or with as many at a higher place. */
static const struct entry *next_most(const struct table *table, const struct entry *former)
{
	const struct entry *most = NULL;
	uint64_t below = former ? former->hitm + former->remote : UINT64_MAX;

	for (uint32_t i = 0; i < table->count; i++) {
		for (uint32_t way = 0; way < WAYS; way++) {
			const struct entry *entry = &table->sets[i].entries[way];
			uint64_t seen = entry->hitm + entry->remote;

			if (seen && (seen < below || (seen == below && entry > former)) && (!most || seen > most->hitm + most->remote))
				most = entry;
		}
	}
	return most;
}

static void write_most(const struct table *table, uint32_t number)
{
	const struct entry *entry = NULL;

	while (number-- && (entry = next_most(table, entry)))
		write_entry(table, entry);
}

/* Other threads may still run, and count on. */
void pd_lines_end(void)
{
	if (!lines.used && !pages.used)
		return;
#ifndef PD_STATIC
	pd_allocations_visit(pd_lines_attach);
#endif
	write_most(&lines, LINES_WRITTEN);
	write_most(&pages, PAGES_WRITTEN);
}

/* The child of a fork begins anew. */
static void forget(void)
{
	memset(line_sets, 0, sizeof(line_sets));
	memset(page_sets, 0, sizeof(page_sets));
	lines.used = pages.used = false;
}

static __attribute__((constructor(102))) void begin(void)
{
	static struct pd_child child = {.begin = forget};

	pd_child_add(&child);
}
