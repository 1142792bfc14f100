/* Threads: their buffers, their probes' places, their edges. First calls only; everything blocks signals and takes the lock. */
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime.h"

#define STACK_BYTES ((size_t)32 << 20)  /* reserved, not used: an entry is about three times the least stack frame, stacks are 8 MiB */
#define STACK_BYTES_LEAST ((size_t)1 << 20)
#define VALUE_BYTES ((size_t)4 << 20)
#define VALUE_SLACK 4096u /* cells; what a call's readers may write beyond the limit that cells_open keeps to */
#define EDGES_FIRST 64u
#define EDGES_BLOCK 64u
#define RESERVOIR_LARGEST ((PD_SEGMENT_FIRST << PD_SEGMENTS) - PD_SEGMENT_FIRST)

static pthread_key_t key;
static struct pd_edge no_edge = {.caller = UINT32_MAX};

static void thread_end(void *data)
{
	struct pd_thread *thread = data;
	struct pd_slow slow;

	if (!pd_is_recorded_process())
		return;
	pd_presence_mark(thread, thread->top);
	pd_thread_close_calls(thread, pd_ticks(), pd_self.resources);
	pd_thread_count_passed(thread);
	pd_counters_thread_close(thread);
	pd_slow_begin(&slow);
	pd_thread_bind(NULL);
	pd_thread_free(thread);
	pd_slow_end(&slow);
}

/* Lets a thread's calls be those of the running thread of the system. */
bool pd_thread_bind(struct pd_thread *thread)
{
	if (pthread_setspecific(key, thread))
		return false;
	if (thread)
		thread->resources = pd_self.resources;
	pd_self.thread = thread;
	pd_gates = thread ? thread->gates : NULL;
	return true;
}

/* Keeps one that has no calls open for a thread of the system that begins. */
void pd_thread_free(struct pd_thread *thread)
{
	thread->held_count = 0;
	thread->is_moved = false;
	thread->next_free = pd_process.free_threads;
	pd_process.free_threads = thread;
}

bool pd_threads_begin(void)
{
	return pthread_key_create(&key, thread_end) == 0;
}

/* In the child of a fork: the parent's threads and their buffers are not ours. */
void pd_threads_forget(void)
{
	pthread_setspecific(key, NULL);
	pd_self.thread = NULL;
	pd_gates = NULL;
	pd_process.threads = NULL;
	pd_process.free_threads = NULL;
	pd_process.thread_count = 0;
}

static struct pd_thread *thread_new(void)
{
	size_t locals = (sizeof(struct pd_thread) + 63 + (pd_process.probes + (size_t)1) * sizeof(struct pd_local)) & ~(size_t)63;
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t gates = (locals + VALUE_BYTES + EDGES_FIRST * sizeof(struct pd_edge *) + page - 1) & ~(page - 1);
	size_t fixed = (gates + 2 * pd_process.probes * sizeof(uint32_t) + 63) & ~(size_t)63;
	size_t stack = STACK_BYTES;
	char *memory = pd_memory(fixed + stack);
	struct pd_thread *thread;

	if (!memory) {
		stack = STACK_BYTES_LEAST;
		memory = pd_memory(fixed + stack);
		if (!memory)
			return NULL;
	}
	madvise(memory, fixed + stack, MADV_NOHUGEPAGE); /* a little of each part is touched */
	/* In a child of which nobody tells us the calls that are open are its parent's, whose frames find no entries; all gates are open. */
	madvise(memory + gates, fixed - gates + stack, MADV_WIPEONFORK);
	thread = (struct pd_thread *)memory;
	thread->locals = (struct pd_local *)((uintptr_t)(memory + sizeof(*thread) + 63) & ~(uintptr_t)63);
	thread->values = (uint64_t *)(memory + locals);
	thread->values_limit = thread->values + VALUE_BYTES / 8 - VALUE_SLACK;
	thread->edges = (struct pd_edge **)(memory + locals + VALUE_BYTES);
	thread->edges_mask = EDGES_FIRST - 1;
	thread->gates = (uint32_t *)(memory + gates);
	thread->shut = thread->gates + pd_process.probes;
	thread->next = memory + fixed;
	thread->limit = memory + fixed + stack;
	thread->top = &thread->root;
	thread->root.stack = UINTPTR_MAX;
	thread->root.local = thread->locals; /* probe 0 */
	thread->arena.thread = ++pd_process.thread_count;
	thread->random = pd_process.seed ^ (uint64_t)thread->arena.thread << 32;
	thread->next_thread = pd_process.threads;
	pd_process.threads = thread;
	return thread;
}

struct pd_thread *pd_thread_open(void)
{
	struct pd_thread *thread = NULL;
	bool opened = false;
	struct pd_slow slow;

	pd_slow_begin(&slow);
	if (pd_self.thread || !pd_probes)
		goto end;
	if (!pd_process.header && !pd_file_create()) {
		pd_stop();
		goto end;
	}
	thread = pd_process.free_threads;
	if (thread)
		pd_process.free_threads = thread->next_free;
	else
		thread = thread_new();
	opened = thread && pd_thread_bind(thread);
	if (opened) {
		pd_presence_begin(thread);
	} else {
		pd_stop();
		thread = NULL;
	}
	pd_clock_refresh();
end:
	pd_slow_end(&slow);
	if (opened)
		pd_counters_thread_open(thread);
	return thread;
}

static void local_plan(struct pd_thread *thread, struct pd_local *local, uint32_t probe)
{
	const struct pd_plan_entry *plan = &pd_process.plan[probe];

	local->probe = probe;
	local->mode = pd_modes[probe];
	local->flags = plan->flags;
	local->features = plan->features;
	local->cells = plan->features + 2u * plan->branches;
	local->period = plan->period ? plan->period : 1;
	local->reservoir = plan->reservoir < RESERVOIR_LARGEST ? plan->reservoir : RESERVOIR_LARGEST;
	local->edge = &no_edge;
	local->epoch = atomic_load_explicit(pd_process.epoch, memory_order_relaxed);
	/* For all that is known; the look at the clocks costs little once. Where work is counted, nobody asks who had the CPU. */
	local->is_long = !(plan->flags & PD_FLAG_OWN);
	local->position = (uint32_t)pd_random_below(&thread->random, local->period);
	local->countdown = local->position + 1;
	local->inner = plan->inner ? plan->inner : 1;
	local->inner_position = (uint32_t)pd_random_below(&thread->random, local->inner);
	local->inner_countdown = local->inner_position + 1;
}

bool pd_local_open(struct pd_thread *thread, struct pd_local *local, uint32_t probe)
{
	size_t size = sizeof(struct pd_totals) + pd_process.counter_count * sizeof(uint64_t);
	struct pd_totals *totals;
	struct pd_slow slow;

	if (pd_slow_is_ours())
		return false;
	pd_slow_begin(&slow);
	totals = pd_recording() ? pd_arena_take(&thread->arena, size) : NULL;
	if (totals) {
		local_plan(thread, local, probe);
		totals->probe = probe;
		totals->mode = local->mode;
		pd_block_publish(&totals->block, PD_BLOCK_TOTALS, size);
		local->totals = totals;
	}
	pd_slow_end(&slow);
	return totals != NULL;
}

struct pd_samples *pd_segment_open(struct pd_thread *thread, struct pd_local *local, uint32_t level, uint32_t first)
{
	uint64_t words = sizeof(struct pd_sample) / 8 + pd_process.counter_count + (local->cells + 63) / 64 + local->cells;
	uint64_t capacity = PD_SEGMENT_FIRST << level;
	struct pd_samples *segment = NULL;
	struct pd_slow slow;

	if (capacity > local->reservoir - first)
		capacity = local->reservoir - first;
	pd_slow_begin(&slow);
	if (pd_recording() && pd_process.header->end < pd_process.most_bytes)
		segment = pd_arena_take(&thread->arena, sizeof(*segment) + capacity * words * 8);
	else
		local->reservoir = first; /* those that there is room for */
	if (segment) {
		segment->probe = local->probe;
		segment->first = first;
		segment->capacity = (uint32_t)capacity;
		segment->cells = local->cells;
		pd_block_publish(&segment->block, PD_BLOCK_SAMPLES, sizeof(*segment) + capacity * words * 8);
		local->segments[level] = segment;
	}
	pd_slow_end(&slow);
	return segment;
}

static PD_GENERAL uint32_t edge_hash(uint32_t caller, uint32_t callee)
{
	uint64_t hash = ((uint64_t)caller << 32 | callee) * 0x9e3779b97f4a7c15u;

	return (uint32_t)(hash >> 32);
}

static void edges_insert(struct pd_edge **edges, uint32_t mask, struct pd_edge *edge)
{
	uint32_t place = edge_hash(edge->caller, edge->callee) & mask;

	while (edges[place])
		place = (place + 1) & mask;
	edges[place] = edge;
}

static bool edges_grow(struct pd_thread *thread)
{
	uint32_t mask = thread->edges_mask * 2 + 1;
	struct pd_edge **edges = pd_memory((mask + (size_t)1) * sizeof(*edges));

	if (!edges)
		return false;
	for (uint32_t i = 0; i <= thread->edges_mask; i++)
		if (thread->edges[i])
			edges_insert(edges, mask, thread->edges[i]);
	thread->edges = edges; /* the old index stays mapped: a lookup may be under way below a signal handler */
	thread->edges_mask = mask;
	return true;
}

static struct pd_edge *edge_new(struct pd_thread *thread, uint32_t caller, uint32_t callee)
{
	size_t size = sizeof(struct pd_edges) + EDGES_BLOCK * sizeof(struct pd_edge);
	struct pd_edge *edge;

	if (!thread->edges_block || thread->edges_block_used == EDGES_BLOCK) {
		struct pd_edges *block = pd_recording() ? pd_arena_take(&thread->arena, size) : NULL;

		if (!block)
			return NULL;
		block->capacity = EDGES_BLOCK;
		pd_block_publish(&block->block, PD_BLOCK_EDGES, size);
		thread->edges_block = block;
		thread->edges_block_used = 0;
	}
	if (thread->edges_used * 2 > thread->edges_mask && !edges_grow(thread))
		return NULL;
	edge = &thread->edges_block->edges[thread->edges_block_used++];
	edge->caller = caller;
	edge->callee = callee;
	edges_insert(thread->edges, thread->edges_mask, edge);
	thread->edges_used++;
	return edge;
}

PD_GENERAL struct pd_edge *pd_edge_known(const struct pd_thread *thread, uint32_t caller, uint32_t callee)
{
	uint32_t mask = thread->edges_mask;
	struct pd_edge *edge;

	for (uint32_t place = edge_hash(caller, callee) & mask; (edge = thread->edges[place]); place = (place + 1) & mask)
		if (edge->caller == caller && edge->callee == callee)
			return edge;
	return NULL;
}

/* Never NULL: where recording has stopped, an edge that nobody reads takes the counts. */
struct pd_edge *pd_edge_find(struct pd_thread *thread, uint32_t caller, uint32_t callee)
{
	static struct pd_edge lost;
	struct pd_edge *edge = pd_edge_known(thread, caller, callee);
	struct pd_slow slow;

	if (edge)
		return edge;
	pd_slow_begin(&slow);
	edge = edge_new(thread, caller, callee);
	pd_slow_end(&slow);
	return edge ? edge : &lost;
}
