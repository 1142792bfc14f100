/*
 * What calls do, counted without a clock: basic blocks that they execute, objects and arrays that they make, collections of garbage, and calls
 * of what is not the project's, by name; their probed callees' left out. As the runtime's only source of counters it stands where the software
 * PMU stands in counted C programs.
 */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../c/runtime/runtime.h"
#include "counts.h"

enum { BLOCKS, OBJECTS, BYTES, COLLECTIONS, HEAP, COUNTERS }; /* the last one not of every JVM */

static const char **names; /* of functions, by their numbers in the sheet */
static uint32_t *numbers;  /* by which the runtime knows them */
static size_t count;
static _Atomic uint64_t collections;
static bool has_heap;

static uint32_t source_open(struct pd_counter *counters, uint32_t room)
{
	static const char *const counted[COUNTERS] = {"bytecode_blocks", "objects", "object_bytes", "collections", "heap_bytes"};

	if (room < COUNTERS)
		return 0;
	for (int i = 0; i < COUNTERS; i++) {
		strcpy(counters[i].name, counted[i]);
		counters[i].flags = i >= COLLECTIONS ? 0 : PD_COUNTER_EXACT;
	}
	has_heap = pd_heap_open();
	return has_heap ? COUNTERS : HEAP;
}

/* Collections are the process's: those that other threads set off meanwhile are among them. */
static void source_read(struct pd_thread *thread __attribute__((unused)), uint64_t *values)
{
	const struct pd_counted *own = pd_memory_own();

	values[BLOCKS] = own ? own->blocks : 0;
	values[OBJECTS] = own ? own->objects : 0;
	values[BYTES] = own ? own->object_bytes : 0;
	values[COLLECTIONS] = atomic_load_explicit(&collections, memory_order_relaxed);
	if (has_heap)
		values[HEAP] = pd_heap_bytes();
}

PD_API const struct pd_counter_source pd_pmu_counters = {.open = source_open, .read = source_read};

void pd_collection_count(void)
{
	atomic_fetch_add_explicit(&collections, 1, memory_order_relaxed);
}

void pd_calls_settle(void)
{
	struct pd_counted *own = pd_memory_own();

	if (!own)
		return;
	for (uint64_t i = 0; i < own->pending; i++) {
		uint64_t function = own->rest[count + i];

		if (!numbers[function])
			numbers[function] = pd_outside_name(names[function]);
		pd_outside_calls(numbers[function], own->rest[function]);
		own->rest[function] = 0;
	}
	own->pending = 0;
}

struct pd_counted *pd_counted_make(size_t bytes)
{
	void *mapped = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return mapped == MAP_FAILED ? NULL : mapped;
}

/* What a thread has left that ended without telling is nobody's. */
void pd_counted_empty(struct pd_counted *counted)
{
	for (uint64_t i = 0; i < counted->pending; i++)
		counted->rest[counted->rest[count + i]] = 0;
	counted->pending = counted->blocks = counted->objects = counted->object_bytes = 0;
}

/* It is told where threads are. */
void pd_counted_virtual(void)
{
}

static bool names_split(char *text, size_t size)
{
	for (size_t i = 0; i < size; i++)
		count += text[i] == '\n';
	names = calloc(count + 1, sizeof(*names));
	numbers = calloc(count + 1, sizeof(*numbers));
	if (!names || !numbers)
		return false;
	for (size_t i = 0, from = 0, line = 0; i < size; i++)
		if (text[i] == '\n') {
			text[i] = '\0';
			names[line++] = text + from;
			from = i + 1;
		}
	return true;
}

/* Reads the names of functions that are not the project's, a line each. */
bool pd_calls_open(const char *path)
{
	int file = open(path, O_RDONLY | O_CLOEXEC);
	struct stat status;
	char *text = NULL;
	bool is_read;

	if (file < 0)
		return false;
	if (!fstat(file, &status))
		text = malloc((size_t)status.st_size + 1);
	is_read = text && read(file, text, (size_t)status.st_size) == status.st_size;
	close(file);
	return is_read && names_split(text, (size_t)status.st_size);
}

bool pd_calls_begin(JNIEnv *environment)
{
	if (has_heap)
		pd_heap_begin(environment);
	return pd_memory_begin(environment, 2 * count);
}
