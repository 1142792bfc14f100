/* What a process has open as it ends, as the kernel lists it. */
#include <fcntl.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime.h"

struct entry { /* `struct linux_dirent64` */
	uint64_t inode;
	int64_t offset;
	uint16_t size;
	uint8_t type;
	char name[];
};

/* The entries of a folder but for `.` and `..`; 0 where it cannot be read. */
static uint64_t entries(const char *folder)
{
	_Alignas(struct entry) char room[4096];
	uint64_t count = 0;
	long size;
	int descriptor = (int)syscall(SYS_openat, AT_FDCWD, folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (descriptor < 0)
		return 0;
	while ((size = syscall(SYS_getdents64, descriptor, room, sizeof(room))) > 0)
		for (long at = 0; at < size; at += ((struct entry *)(room + at))->size)
			count += ((struct entry *)(room + at))->name[0] != '.';
	syscall(SYS_close, descriptor);
	return size < 0 ? 0 : count;
}

/* Tells it at the first call: what an interpreter closes behind that is its own. */
PD_API void pd_open_tell(void)
{
	static bool is_told;
	uint64_t descriptors = entries("/proc/self/fd"), threads = entries("/proc/self/task");
	struct pd_open_block *block;
	struct pd_slow slow;

	if (is_told || !descriptors || !threads)
		return;
	is_told = true;
	pd_slow_begin(&slow);
	block = pd_recording() ? pd_arena_take(&pd_process.arena, sizeof(*block)) : NULL;
	if (block) {
		block->descriptors = descriptors - 1; /* without that of the folder */
		block->threads = threads;
		pd_block_publish(&block->block, PD_BLOCK_OPEN, sizeof(*block));
	}
	pd_slow_end(&slow);
}
