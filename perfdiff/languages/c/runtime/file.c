/* The file of a recording: extents of real blocks, mapped into the process. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime.h"

#define EXTENT 65536u /* a multiple of every page size in use */
#define EXTENT_DOUBLINGS 4
#define INSTANT_TRIES 5

struct pd_process pd_process;

static atomic_flag slow_lock = ATOMIC_FLAG_INIT, refreshing = ATOMIC_FLAG_INIT;
static _Atomic(const void *) slow_holder; /* what is local to the thread that holds it */
static char path[sizeof(pd_process.folder) + 64];
static dev_t device;
static ino_t inode;

void pd_slow_begin(struct pd_slow *slow)
{
	sigset_t all;

	slow->error = errno;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &slow->signals);
	while (atomic_flag_test_and_set_explicit(&slow_lock, memory_order_acquire))
		sched_yield();
	atomic_store_explicit(&slow_holder, &pd_self, memory_order_relaxed);
}

void pd_slow_end(struct pd_slow *slow)
{
	atomic_store_explicit(&slow_holder, NULL, memory_order_relaxed);
	atomic_flag_clear_explicit(&slow_lock, memory_order_release);
	pthread_sigmask(SIG_SETMASK, &slow->signals, NULL);
	errno = slow->error;
}

/* Whether a slow path of this thread is what led here: a program may have functions of the C library of its own, which we call. */
bool pd_slow_is_ours(void)
{
	return atomic_load_explicit(&slow_holder, memory_order_relaxed) == &pd_self;
}

/* For the child of a fork, whose locks may be held by a thread it does not have. */
void pd_lock_reset(void)
{
	atomic_store(&slow_holder, NULL);
	atomic_flag_clear(&slow_lock);
	atomic_flag_clear(&refreshing);
}

/* Whether the file still takes blocks; at the process's end it does, though no call enters any more. */
bool pd_recording(void)
{
	return pd_process.header && !(pd_process.header->flags & PD_FULL);
}

/* Not so in the child of a vfork, of a clone or of a raw system call, which has our memory or a copy of it, and the file mapped. */
bool pd_is_recorded_process(void)
{
	return pd_process.header && pd_process.header->pid == (uint32_t)getpid();
}

void pd_stop(void)
{
	pd_probes = 0;
	if (pd_process.header)
		pd_process.header->flags |= PD_FULL;
}

/* Zeroed memory of our own, without the target's allocator; pages come as they are touched. */
void *pd_memory(size_t size)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

/* Allocates and maps [offset, offset + size). A limit is looked up first: reaching it would send SIGXFSZ. */
static void *file_map(int file, uint64_t offset, size_t size)
{
	struct rlimit limit;
	void *mapped;

	if (getrlimit(RLIMIT_FSIZE, &limit) || offset + size > limit.rlim_cur)
		return NULL;
	if (posix_fallocate(file, (off_t)offset, (off_t)size))
		return NULL;
	mapped = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, (off_t)offset);
	return mapped == MAP_FAILED ? NULL : mapped;
}

/* Both clocks at one time: of several tries the one least disturbed. */
static struct pd_instant instant(void)
{
	struct pd_instant best = {0, 0};
	uint64_t least = UINT64_MAX;

	for (int i = 0; i < INSTANT_TRIES; i++) {
		uint64_t before = pd_ticks(), ns = pd_clock_ns(CLOCK_MONOTONIC), taken = pd_ticks() - before;

		if (taken < least) {
			least = taken;
			best = (struct pd_instant){before + taken / 2, ns};
		}
	}
	return best;
}

void pd_clock_refresh(void)
{
	struct pd_header *header = pd_process.header;
	uint32_t other;

	if (atomic_flag_test_and_set(&refreshing))
		return;
	other = !header->newest;
	header->latest[other] = instant();
	pd_order();
	header->newest = other;
	atomic_flag_clear(&refreshing);
}

/* Appends a text, and returns its end. By hand: a program's own snprintf may stand before the C library's, and know no long numbers. */
static char *append(char *end, const char *text)
{
	while (*text)
		*end++ = *text++;
	*end = '\0';
	return end;
}

static char *append_number(char *end, uint64_t number)
{
	char digits[21], *first = digits + sizeof(digits) - 1;

	*first = '\0';
	do {
		*--first = (char)('0' + number % 10);
		number /= 10;
	} while (number);
	return append(end, first);
}

static void describe_program(struct pd_header *header)
{
	if (readlink("/proc/self/exe", header->program, sizeof(header->program) - 1) < 0)
		header->program[0] = '\0';
	strncpy(header->argv0, program_invocation_name, sizeof(header->argv0) - 1);
}

bool pd_file_create(void)
{
	size_t size = (size_t)sysconf(_SC_PAGESIZE);
	struct pd_instant started = instant();
	struct pd_header *header;
	struct stat status;
	int file;

	append(append_number(append(append_number(append(append(path, pd_process.folder), "/"), (uint64_t)getpid()), "-"), started.ticks), ".pdrec");
	file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (file < 0)
		return false;
	header = fstat(file, &status) ? NULL : file_map(file, 0, size);
	close(file);
	if (!header) {
		unlink(path);
		return false;
	}
	device = status.st_dev;
	inode = status.st_ino;
	header->version = PD_RECORDING_VERSION;
	header->byte_order = PD_BYTE_ORDER;
	header->header_size = (uint32_t)size;
	header->pid = (uint32_t)getpid();
	header->parent_pid = (uint32_t)getppid();
	header->probes = pd_process.probes;
	header->started = started;
	header->latest[0] = started;
	header->started_unix_ns = pd_clock_ns(CLOCK_REALTIME);
	header->end = size;
	header->flags = pd_process.sees;
	memcpy(header->costs, pd_process.costs, sizeof(header->costs));
	header->counter_count = pd_process.counter_count;
	memcpy(header->counters, pd_process.counters, sizeof(header->counters));
	describe_program(header);
	pd_order();
	memcpy(header->magic, PD_RECORDING_MAGIC, sizeof(header->magic));
	pd_process.header = header;
	pd_process.arena = (struct pd_arena){0};
	return true;
}

/*
 * Adds an extent to the file. The file is opened anew each time: a descriptor of ours might be closed by a target that
 * closes all it inherits, and its number be given to a file of the target's.
 */
static struct pd_extent *extent_add(uint32_t thread, size_t size)
{
	int file = open(path, O_RDWR | O_CLOEXEC);
	struct pd_extent *extent = NULL;
	struct stat status;

	if (file >= 0 && !fstat(file, &status) && status.st_dev == device && status.st_ino == inode)
		extent = file_map(file, pd_process.header->end, size);
	if (file >= 0)
		close(file);
	if (!extent) {
		pd_stop();
		return NULL;
	}
	extent->thread = thread;
	extent->size = size;
	extent->magic = PD_EXTENT_MAGIC;
	pd_order();
	pd_process.header->end += size;
	return extent;
}

/* Returns `size` zeroed bytes of the file, or NULL where recording had to stop. */
void *pd_arena_take(struct pd_arena *arena, size_t size)
{
	void *taken;

	size = (size + 7) & ~(size_t)7;
	if (size > (size_t)(arena->end - arena->cursor)) {
		size_t room = (size_t)EXTENT << (arena->extents < EXTENT_DOUBLINGS ? arena->extents : EXTENT_DOUBLINGS);
		size_t needed = (size + sizeof(struct pd_extent) + EXTENT - 1) / EXTENT * EXTENT;
		struct pd_extent *extent = extent_add(arena->thread, needed > room ? needed : room);

		if (!extent)
			return NULL;
		arena->cursor = (char *)(extent + 1);
		arena->end = (char *)extent + extent->size;
		arena->extents++;
		pd_clock_refresh();
	}
	taken = arena->cursor;
	arena->cursor += size;
	return taken;
}

void pd_block_publish(struct pd_block *block, uint32_t kind, uint64_t size)
{
	block->size = (size + 7) & ~(uint64_t)7;
	pd_order();
	block->kind = kind;
}
