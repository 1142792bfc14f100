/* What is still allocated when a process ends by exit: blocks and bytes, summed by the call that allocated them. */
#include <string.h>
#include <sys/mman.h>

#include "lines.h"

#ifndef PD_STATIC

#define SITES 16384u /* of a process; where there are more, what lasts is not known */
#define PATH_BYTES 1024u

struct site {
	uintptr_t address; /* where the call returns to */
	uint32_t probe;	   /* of the innermost open call */
	uint64_t blocks;   /* 0: empty */
	uint64_t bytes;
};

static struct site *sites;
static uint32_t used;

static void sum(const struct pd_allocation *allocation)
{
	uint32_t place = (uint32_t)((allocation->site * UINT64_C(0x9e3779b97f4a7c15) >> 40) + allocation->probe) % SITES;

	if (allocation->process != pd_allocations_process() || used > SITES / 2)
		return;
	while (sites[place].blocks && (sites[place].address != allocation->site || sites[place].probe != allocation->probe))
		place = (place + 1) % SITES;
	used += !sites[place].blocks;
	sites[place].address = allocation->site;
	sites[place].probe = allocation->probe;
	sites[place].blocks++;
	sites[place].bytes += allocation->size;
}

static bool write_site(const struct site *site)
{
	struct pd_lasting_block *block;
	struct pd_slow slow;
	char path[PATH_BYTES];
	uint64_t offset = 0;
	size_t length = 0, size;

	if (pd_object_of(site->address - 1, &offset, path, PATH_BYTES)) /* the call is in front of where it returns to */
		length = strlen(path);
	size = sizeof(*block) + ((length + 7) & ~(size_t)7);
	pd_slow_begin(&slow);
	block = pd_recording() ? pd_arena_take(&pd_process.arena, size) : NULL;
	if (block) {
		block->probe = site->probe;
		block->blocks = site->blocks;
		block->bytes = site->bytes;
		block->offset = offset;
		block->length = length;
		memcpy(block + 1, path, length);
		pd_block_publish(&block->block, PD_BLOCK_LASTING, size);
	}
	pd_slow_end(&slow);
	return block != NULL;
}

/* False where not all could be written. */
bool pd_lasting_end(void)
{
	bool written = true;

	sites = pd_memory(SITES * sizeof(*sites));
	if (!sites)
		return false;
	pd_allocations_visit(sum);
	for (uint32_t place = 0; place < SITES && written; place++)
		if (sites[place].blocks)
			written = write_site(&sites[place]);
	munmap(sites, SITES * sizeof(*sites));
	return written && used <= SITES / 2;
}

#endif
