/* What an interpreter's program still has allocated as it ends, by the line of its source that asked for it, as the interpreter tells. */
#include <string.h>

#include "runtime.h"

/* Returns 0 where it could not be written. */
PD_API int pd_lasting_line(const char *path, unsigned int line, unsigned long blocks, unsigned long bytes)
{
	size_t length = strlen(path), size = sizeof(struct pd_lasting_block) + ((length + 7) & ~(size_t)7);
	struct pd_lasting_block *block;
	struct pd_slow slow;

	pd_slow_begin(&slow);
	block = pd_recording() ? pd_arena_take(&pd_process.arena, size) : NULL;
	if (block) {
		block->is_line = 1;
		block->blocks = blocks;
		block->bytes = bytes;
		block->offset = line;
		block->length = length;
		memcpy(block + 1, path, length);
		pd_block_publish(&block->block, PD_BLOCK_LASTING, size);
	}
	pd_slow_end(&slow);
	return block != NULL;
}

/* All lines are written. */
PD_API void pd_lasting_known(void)
{
	if (pd_is_recorded_process())
		pd_process.header->flags |= PD_KNOWS_LASTING;
}
