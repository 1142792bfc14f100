/* The live allocations of a counted program, and where they were made. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lines.h"

#ifndef PD_STATIC

#define SHARDS 64u
#define ENTRIES_FIRST 256u
#define SPINS 100u /* before the processor is given up: the holder may have been preempted */

/* Open addressing; address 0: empty. */
static struct shard {
	_Atomic uintptr_t holder; /* the thread that holds it, by the address of its `at_work`; 0: none */
	uint32_t used;
	uint32_t mask; /* entries less one; 0: none yet */
	struct pd_allocation *entries;
} shards[SHARDS];

static PD_TLS bool at_work;	     /* a handler that interrupts this does without */
static PD_TLS uint32_t forks_below; /* forks of such handlers that are under way */
static uint32_t process;	     /* forks that lie between the first process and this one */

uint32_t pd_allocations_process(void)
{
	return process;
}

static uint64_t hash_of(uintptr_t address)
{
	return (address / 16) * UINT64_C(0x9e3779b97f4a7c15);
}

static struct shard *shard_of(uintptr_t address)
{
	return &shards[hash_of(address) >> 58];
}

static uint32_t home(const struct shard *shard, uintptr_t address)
{
	return (uint32_t)(hash_of(address) >> 24) & shard->mask;
}

static bool is_held(const struct shard *shard, uintptr_t holder)
{
	return atomic_load_explicit(&shard->holder, memory_order_relaxed) == holder;
}

static bool try_lock(struct shard *shard)
{
	uintptr_t nobody = 0;

	return atomic_compare_exchange_strong_explicit(&shard->holder, &nobody, (uintptr_t)&at_work, memory_order_acquire, memory_order_relaxed);
}

static void lock(struct shard *shard)
{
	for (uint32_t spins = 1; !try_lock(shard); spins++)
		if (spins % SPINS == 0)
			syscall(SYS_sched_yield);
}

static void unlock(struct shard *shard)
{
	atomic_store_explicit(&shard->holder, 0, memory_order_release);
}

static void insert(struct shard *shard, const struct pd_allocation *allocation)
{
	uint32_t place = home(shard, allocation->address);

	while (shard->entries[place].address)
		place = (place + 1) & shard->mask;
	shard->entries[place] = *allocation;
}

/* False where there is no memory for more: the allocation stays without a name. */
static bool grow(struct shard *shard)
{
	struct pd_allocation *former = shard->entries;
	uint32_t entries = former ? shard->mask + 1 : 0, wanted = former ? 2 * entries : ENTRIES_FIRST;
	struct pd_allocation *larger = pd_memory(wanted * sizeof(*larger));

	if (!larger)
		return false;
	shard->entries = larger;
	shard->mask = wanted - 1;
	for (uint32_t i = 0; i < entries; i++)
		if (former[i].address)
			insert(shard, &former[i]);
	if (former)
		munmap(former, entries * sizeof(*former));
	return true;
}

/* Closes the gap that an entry leaves, so that those behind it are still found. */
static void erase(struct shard *shard, uint32_t gap)
{
	for (uint32_t place = (gap + 1) & shard->mask; shard->entries[place].address; place = (place + 1) & shard->mask) {
		uint32_t from = home(shard, shard->entries[place].address);

		if (((place - from) & shard->mask) >= ((place - gap) & shard->mask)) {
			shard->entries[gap] = shard->entries[place];
			gap = place;
		}
	}
	shard->entries[gap].address = 0;
	shard->used--;
}

static uint32_t open_probe(void)
{
	const struct pd_local *local = pd_self.thread ? pd_self.thread->top->local : NULL; /* NULL in a child of which nobody tells us */

	return local ? local->probe : 0;
}

void pd_allocated(void *memory, size_t size, const void *site)
{
	struct pd_allocation allocation = {(uintptr_t)memory, size, (uintptr_t)site, open_probe(), process};
	struct shard *shard = shard_of(allocation.address);

	if (!memory || at_work)
		return;
	at_work = true;
	pd_order();
	lock(shard);
	if (shard->used * 2 < shard->mask || grow(shard)) {
		insert(shard, &allocation);
		shard->used++;
	}
	unlock(shard);
	pd_order();
	at_work = false;
}

/* Its place in the shard, or UINT32_MAX. */
static uint32_t place_of(const struct shard *shard, uintptr_t address)
{
	if (!shard->entries)
		return UINT32_MAX;
	for (uint32_t place = home(shard, address); shard->entries[place].address; place = (place + 1) & shard->mask)
		if (shard->entries[place].address == address)
			return place;
	return UINT32_MAX;
}

void pd_freed(void *memory)
{
	struct shard *shard = shard_of((uintptr_t)memory);
	struct pd_allocation freed = {0};
	uint32_t place;

	if (!memory || at_work)
		return;
	at_work = true;
	pd_order();
	lock(shard);
	place = place_of(shard, (uintptr_t)memory);
	if (place != UINT32_MAX) {
		freed = shard->entries[place];
		erase(shard, place);
	}
	unlock(shard);
	if (freed.address)
		pd_lines_attach(&freed);
	pd_order();
	at_work = false;
}

void pd_allocated_for(void *memory, const void *site)
{
	struct shard *shard = shard_of((uintptr_t)memory);
	uint32_t place;

	if (at_work)
		return;
	at_work = true;
	pd_order();
	lock(shard);
	place = place_of(shard, (uintptr_t)memory);
	if (place != UINT32_MAX)
		shard->entries[place].site = (uintptr_t)site;
	unlock(shard);
	pd_order();
	at_work = false;
}

/* Not below a handler that interrupted this thread at work: what it holds, it would never give back. */
void pd_allocations_visit(void (*visit)(const struct pd_allocation *allocation))
{
	if (at_work)
		return;
	at_work = true;
	pd_order();
	for (uint32_t i = 0; i < SHARDS; i++) {
		lock(&shards[i]);
		for (uint32_t place = 0; shards[i].entries && place <= shards[i].mask; place++)
			if (shards[i].entries[place].address)
				visit(&shards[i].entries[place]);
		unlock(&shards[i]);
	}
	pd_order();
	at_work = false;
}

/*
 * A child gets the tables as they are between two changes; but below a handler that interrupted this thread at work, as others may wait for
 * what it holds.
 */
static void before_fork(void)
{
	if (at_work) {
		forks_below++;
		return;
	}
	at_work = true;
	pd_order();
	for (uint32_t i = 0; i < SHARDS; i++)
		lock(&shards[i]);
}

static void after_fork(void)
{
	if (forks_below) {
		forks_below--;
		return;
	}
	for (uint32_t i = 0; i < SHARDS; i++)
		unlock(&shards[i]);
	pd_order();
	at_work = false;
}

/* Tables that other threads were changing are lost: these threads are not here to end it. */
static void begin_child(void)
{
	uint32_t held = 0;

	process++;
	for (uint32_t i = 0; i < SHARDS; i++) {
		if (is_held(&shards[i], (uintptr_t)&at_work))
			held++;
		else if (!is_held(&shards[i], 0))
			memset(&shards[i], 0, sizeof(shards[i]));
	}
	if (forks_below || held == SHARDS) /* else it was no fork that we are told of before */
		after_fork();
}

static __attribute__((constructor(102))) void begin(void)
{
	static struct pd_child child = {.begin = begin_child};

	pthread_atfork(before_fork, after_fork, NULL);
	pd_child_add(&child);
}

/* In a C program that loads a C++ library, the C++ library is not behind us in link order. NULL where there is none yet. */
static __attribute__((noinline, cold)) void *next_new(const char *name)
{
	static const char *const libraries[] = {"libstdc++.so.6", "libc++.so.1", "libc++abi.so.1"};
	void *found = pd_next_function(name);

	for (size_t i = 0; i < sizeof(libraries) / sizeof(*libraries) && !found; i++) {
		void *library = dlopen(libraries[i], RTLD_LAZY | RTLD_NOLOAD);

		found = library ? dlsym(library, name) : NULL;
	}
	return found;
}

/*
 * C++'s `new`, by its mangled names: the C++ library calls malloc from one place for all. Where a program has its own `new`, that is
 * what is called, and ours are not.
 */
#define NEW(name, declared, passed) \
	static void *(*next##name) declared; \
\
	static PD_RESOLVE void find##name(void) \
	{ \
		next##name = (void *(*) declared)next_new(#name); \
	} \
\
	PD_API void *name declared; \
	PD_API void *name declared \
	{ \
		void *memory; \
\
		if (pd_unlikely(!next##name)) \
			find##name(); \
		if (pd_unlikely(!next##name)) \
			abort(); /* somebody has compiled a call of it, and nobody has it */ \
		memory = next##name passed; \
		pd_allocated_for(memory, __builtin_return_address(0)); \
		return memory; \
	}

NEW(_Znwm, (size_t size), (size))
NEW(_Znam, (size_t size), (size))
NEW(_ZnwmSt11align_val_t, (size_t size, size_t alignment), (size, alignment))
NEW(_ZnamSt11align_val_t, (size_t size, size_t alignment), (size, alignment))
NEW(_ZnwmRKSt9nothrow_t, (size_t size, const void *nothrow), (size, nothrow))
NEW(_ZnamRKSt9nothrow_t, (size_t size, const void *nothrow), (size, nothrow))

#endif
