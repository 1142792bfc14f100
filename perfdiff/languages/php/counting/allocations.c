/*
 * Memory that calls ask the engine's allocator for: how often, how many bytes, and how many of them are in use at once. What is asked for during
 * a collection of garbage is left out, and extensions that call malloc themselves, as libraries behind them do, are not seen.
 */
#include "../runtime/php_probe.h"
#include "counting.h"

struct pd_allocations pd_allocations;

static zend_mm_heap *heap; /* NULL outside of requests */
static void *(*next_allocate)(size_t); /* NULL where the engine's own allocator serves */
static void (*next_release)(void *);
static void *(*next_reallocate)(void *, size_t);

static void *allocate(size_t size);
static void release(void *memory);
static void *reallocate(void *memory, size_t size);

/* The engine's own allocator serves as long as it has no other. */
static void stand_aside(void)
{
	zend_mm_set_custom_handlers(heap, NULL, NULL, NULL);
}

static void stand_before(void)
{
	zend_mm_set_custom_handlers(heap, allocate, release, reallocate);
}

static void count(size_t size)
{
	if (pd_collects)
		return;
	pd_allocations.count++;
	pd_allocations.bytes += size;
}

uint64_t pd_memory_in_use(void)
{
	return heap && !next_allocate ? zend_memory_usage(false) : PD_ABSENT;
}

/* Blocks that are moved are not in use twice, as in the engine's own peak. */
static void climb(void)
{
	uint64_t now = zend_memory_usage(false);

	if (now > pd_allocations.highest)
		pd_allocations.highest = now;
}

static void *allocate(size_t size)
{
	void *memory;

	count(size);
	if (next_allocate)
		return next_allocate(size);
	stand_aside();
	memory = zend_mm_alloc(heap, size);
	stand_before();
	climb();
	return memory;
}

static void release(void *memory)
{
	if (next_release) {
		next_release(memory);
		return;
	}
	stand_aside();
	zend_mm_free(heap, memory);
	stand_before();
}

static void *reallocate(void *memory, size_t size)
{
	void *moved;

	count(size);
	if (next_reallocate)
		return next_reallocate(memory, size);
	stand_aside();
	moved = zend_mm_realloc(heap, memory, size);
	stand_before();
	climb();
	return moved;
}

void pd_allocations_begin(void)
{
	heap = zend_mm_get_heap();
	zend_mm_get_custom_handlers(heap, &next_allocate, &next_release, &next_reallocate);
	stand_before();
}

/* Gives back what stood there before, so that the engine empties its own memory at once. */
void pd_allocations_end(void)
{
	if (heap)
		zend_mm_set_custom_handlers(heap, next_allocate, next_release, next_reallocate);
	heap = NULL;
}
