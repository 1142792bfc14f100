/* Functions outside of the project that an interpreter calls: edges of the recording, by name. */
#include <string.h>

#include "runtime.h"

#define FIRST 1024u /* below are the functions that machine code calls */
#define MOST 4096u  /* large programs call some hundred functions of libraries */
#define NAMES_BYTES 262144u

static const char *functions[MOST];
static char *names; /* NAMES_BYTES */
static size_t names_used;
static uint32_t function_count;
static uint32_t published; /* of these, the recording names so many */

/* The child's recording names them anew. */
static void child_begin(void)
{
	published = 0;
}

static uint32_t named(const char *name)
{
	static struct pd_child child = {.begin = child_begin};
	size_t size = strlen(name) + 1;

	for (uint32_t i = 0; i < function_count; i++)
		if (!strcmp(functions[i], name))
			return FIRST + i;
	if (!names && (!pd_child_add(&child) || !(names = pd_memory(NAMES_BYTES))))
		return PD_UNNAMED;
	if (function_count == MOST || size > NAMES_BYTES - names_used)
		return PD_UNNAMED;
	functions[function_count] = memcpy(names + names_used, name, size);
	names_used += size;
	return FIRST + function_count++;
}

PD_API uint32_t pd_outside_name(const char *name)
{
	struct pd_slow slow;
	uint32_t number;

	pd_slow_begin(&slow);
	number = named(name);
	pd_slow_end(&slow);
	return number;
}

static void publish(void)
{
	for (; published < function_count; published++) {
		size_t length = strlen(functions[published]), size = (sizeof(struct pd_function_block) + length + 7) & ~(size_t)7;
		struct pd_function_block *block = pd_recording() ? pd_arena_take(&pd_process.arena, size) : NULL;

		if (!block)
			return;
		block->number = FIRST + published;
		block->unseen = 0;
		block->length = length;
		memcpy(block->name, functions[published], length);
		pd_block_publish(&block->block, PD_BLOCK_FUNCTION, size);
	}
}

/* The edge from the innermost open call; NULL where there is none. */
static struct pd_edge *edge_of(uint32_t number, uint32_t kind)
{
	struct pd_thread *thread = pd_self.thread;
	uint32_t callee = kind | number;
	struct pd_edge *edge;

	if (number == PD_UNNAMED || !thread || !pd_is_recorded_process())
		return NULL;
	edge = pd_edge_known(thread, thread->top->local->probe, callee);
	if (pd_unlikely(!edge)) {
		struct pd_slow slow;

		pd_slow_begin(&slow);
		publish();
		pd_slow_end(&slow);
		edge = pd_edge_find(thread, thread->top->local->probe, callee);
	}
	return edge;
}

PD_API void pd_outside_calls(uint32_t number, uint64_t calls)
{
	struct pd_edge *edge = edge_of(number, PD_LIBRARY);

	if (edge)
		edge->calls += calls;
}

PD_API void pd_outside_call(uint32_t number)
{
	pd_outside_calls(number, 1);
}

PD_API uint64_t pd_outside_clock(void)
{
	return pd_ticks();
}

PD_API void pd_outside_took(uint32_t number, uint64_t ticks)
{
	struct pd_edge *edge = edge_of(number, PD_LIBRARY | PD_TIMED);

	if (!edge)
		return;
	edge->calls++;
	edge->wall += (int64_t)(ticks << PD_TIME_FRACTION);
}
