/*
 * Memory that calls ask the interpreter for, in all of its domains (`PyMem_SetAllocator`): how often, and how many bytes. What is served from
 * lists of free objects asks for nothing, and modules that call malloc themselves are not seen, but for NumPy (arrays.c). What counting itself
 * asks for is left out, and so is what is asked for during a collection of garbage.
 */
#include "allocations.h"
#include "garbage.h"

#define RECENT 2u /* an event of ours is told with two new numbers at most */

__thread struct pd_allocations pd_allocations;

static __thread unsigned inside; /* a domain serves what it cannot from the one below; and while we ourselves allocate */
static __thread struct {
	const void *memory;
	size_t size;
} recent[RECENT];
static __thread unsigned newest;

/* Counts what this thread was given, unless one of ours asked, or another domain for it. */
static inline void *counted(void *memory, size_t size)
{
	if (memory && !inside && !pd_garbage_collects()) {
		pd_allocations.count++;
		pd_allocations.bytes += size;
		newest = (newest + 1) % RECENT;
		recent[newest].memory = memory;
		recent[newest].size = size;
	}
	return memory;
}

static void *allocate(void *next, size_t size)
{
	const PyMemAllocatorEx *allocator = next;
	void *memory;

	inside++;
	memory = allocator->malloc(allocator->ctx, size);
	inside--;
	return counted(memory, size);
}

static void *allocate_zeroed(void *next, size_t number, size_t size)
{
	const PyMemAllocatorEx *allocator = next;
	void *memory;

	inside++;
	memory = allocator->calloc(allocator->ctx, number, size);
	inside--;
	return counted(memory, number * size);
}

static void *reallocate(void *next, void *former, size_t size)
{
	const PyMemAllocatorEx *allocator = next;
	void *memory;

	inside++;
	memory = allocator->realloc(allocator->ctx, former, size);
	inside--;
	return counted(memory, size);
}

static void release(void *next, void *memory)
{
	const PyMemAllocatorEx *allocator = next;

	allocator->free(allocator->ctx, memory);
}

/* Leaves out what this thread asks for until it is told otherwise. */
void pd_allocations_pause(bool pauses)
{
	inside += pauses ? 1 : -1u;
}

/* Leaves out an object that the interpreter has just made to tell us of an event; one that it had already stays. */
void pd_allocations_forget(const void *object, size_t head)
{
	const void *memory = (const char *)object - head;

	for (unsigned i = 0; i < RECENT; i++)
		if (recent[i].memory == memory) {
			recent[i].memory = NULL;
			pd_allocations.count--;
			pd_allocations.bytes -= recent[i].size;
			return;
		}
}

PyMemAllocatorEx pd_allocations_before(PyMemAllocatorEx *next)
{
	return (PyMemAllocatorEx){next, allocate, allocate_zeroed, reallocate, release};
}

void pd_allocations_begin(void)
{
	static PyMemAllocatorEx next[PYMEM_DOMAIN_OBJ + 1];

	for (int domain = PYMEM_DOMAIN_RAW; domain <= PYMEM_DOMAIN_OBJ; domain++) {
		PyMemAllocatorEx ours = pd_allocations_before(&next[domain]);

		PyMem_GetAllocator((PyMemAllocatorDomain)domain, &next[domain]);
		PyMem_SetAllocator((PyMemAllocatorDomain)domain, &ours);
	}
}
