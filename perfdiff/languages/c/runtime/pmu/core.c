/* A thread's core: opened at its first access, given back when the thread ends. */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "pmu.h"

#define SPINS 100u /* before the processor is given up: the holder of a lock may have been preempted */

PD_API PD_TLS struct pd_core pd_core;

static _Atomic uint32_t opening;
static bool begun, usable;
static struct pd_cache *free_caches;
static pthread_key_t key;

static void relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#else
	__asm__ volatile("yield");
#endif
}

__attribute__((noinline, cold)) void pd_lock_wait(_Atomic uint32_t *lock)
{
	uint32_t spins = 0;

	while (atomic_load_explicit(lock, memory_order_relaxed) || atomic_exchange_explicit(lock, 1, memory_order_acquire)) {
		relax();
		if (++spins % SPINS == 0)
			syscall(SYS_sched_yield);
	}
}

static void opening_begin(void)
{
	if (atomic_exchange_explicit(&opening, 1, memory_order_acquire))
		pd_lock_wait(&opening);
}

static void opening_end(void)
{
	atomic_store_explicit(&opening, 0, memory_order_release);
}

static void core_close(struct pd_core *core)
{
	struct pd_cache *cache = core->cache;

	core->busy = 1;
	pd_order();
	opening_begin();
	pd_lock(&cache->lock);
	cache->owner = NULL;
	core->cache = NULL;
	for (size_t index = 0; index < PD_RECENT; index++)
		core->readable[index] = core->writable[index] = 0;
	pd_private_forget(cache);
	pd_unlock(&cache->lock);
	cache->next_free = free_caches;
	free_caches = cache;
	opening_end();
	pd_order();
	core->busy = 0;
}

/* Other destructors of the thread still access memory: the core is given back in the last round. */
static void thread_end(void *data)
{
	struct pd_core *core = data;

	if (++core->ending < PTHREAD_DESTRUCTOR_ITERATIONS && !pthread_setspecific(key, core))
		return;
	core->ending = PTHREAD_DESTRUCTOR_ITERATIONS;
	if (core->cache)
		core_close(core);
}

/* The child of a fork is one core with empty caches; its pages are where they were. */
static void child_begin(void)
{
	free_caches = NULL;
	for (uint32_t i = 0; i < pd_pmu.cores; i++) {
		struct pd_cache *cache = pd_pmu.caches[i];

		pd_private_forget(cache);
		cache->owner = NULL;
		cache->lock = 0;
		cache->next_free = free_caches;
		free_caches = cache;
	}
	pd_shared_forget();
	opening = 0;
	pd_core = (struct pd_core){.ending = pd_core.ending};
}

static bool begin(void)
{
	static struct pd_child child = {.begin = child_begin};

	begun = true;
#ifdef PD_STATIC
	pd_pmu.many = true; /* nobody tells when a thread is made */
#endif
	if (!pd_machine_begin())
		return false;
	if (!pd_shared_begin() || pthread_key_create(&key, thread_end) || !pd_child_add(&child)) {
		pd_lose(PD_LOST_MEMORY);
		return false;
	}
	return true;
}

static struct pd_cache *cache_new(void)
{
	uint32_t number = pd_pmu.cores;
	struct pd_cache *cache;

	if (number == PD_CORES_MOST) {
		pd_lose(PD_LOST_CORES);
		return NULL;
	}
	cache = pd_memory(sizeof(*cache));
	if (!cache || !pd_private_begin(cache)) {
		pd_lose(PD_LOST_MEMORY);
		return NULL;
	}
	cache->core = number;
	cache->node = number % pd_pmu.nodes;
	pd_pmu.caches[number] = cache;
	atomic_store_explicit(&pd_pmu.cores, number + 1, memory_order_release);
	return cache;
}

static bool core_open(struct pd_core *core)
{
	struct pd_cache *cache = NULL;
	int error = errno;

	opening_begin();
	if (!begun)
		usable = begin();
	if (usable) {
		cache = free_caches;
		if (cache)
			free_caches = cache->next_free;
		else
			cache = cache_new();
	}
	if (cache && pthread_setspecific(key, core)) {
		cache->next_free = free_caches;
		free_caches = cache;
		cache = NULL;
		pd_lose(PD_LOST_MEMORY);
	}
	if (cache) {
		pd_pmu.many |= pd_pmu.cores > 1;
		pd_lock(&cache->lock);
		cache->owner = core;
		pd_unlock(&cache->lock);
	}
	core->cache = cache;
	opening_end();
	errno = error;
	return cache != NULL;
}

static inline void access_line(struct pd_core *core, uintptr_t line, uint64_t bytes, bool write)
{
	struct pd_cache *cache = core->cache;
	bool done;

	pd_lock(&cache->lock);
	done = pd_private_use(cache, core, line, bytes, write);
	pd_unlock(&cache->lock);
	if (!done)
		pd_directory_fetch(cache, line, bytes, write);
}

static __attribute__((noinline, cold)) void defer(struct pd_core *core, uintptr_t line, uint64_t bytes, bool write)
{
	struct pd_cache *cache = core->cache;

	if (cache && cache->deferred_count < PD_DEFERRED)
		cache->deferred[cache->deferred_count++] = (struct pd_deferred){line, bytes, write};
	else
		core->unseen++;
}

/* What handlers did meanwhile; more may come while this runs. */
static __attribute__((noinline, cold)) void deferred_run(struct pd_core *core)
{
	struct pd_cache *cache = core->cache;
	uint32_t done = 0, count;

	core->busy = 1;
	pd_order();
	do {
		for (; done < cache->deferred_count; done++)
			access_line(core, cache->deferred[done].line, cache->deferred[done].bytes, cache->deferred[done].write);
		count = done;
	} while (!__atomic_compare_exchange_n(&cache->deferred_count, &count, 0, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	pd_order();
	core->busy = 0;
}

/* An access to a line that is not among the recent ones. */
void pd_core_touch(uintptr_t line, uint64_t bytes, bool write)
{
	struct pd_core *core = &pd_core;

	if (pd_unlikely(core->busy)) {
		defer(core, line, bytes, write);
		return;
	}
	core->busy = 1;
	pd_order();
	if (pd_likely(core->cache) || (core->ending < PTHREAD_DESTRUCTOR_ITERATIONS && core_open(core)))
		access_line(core, line, bytes, write);
	else
		core->unseen++;
	pd_order();
	core->busy = 0;
	pd_order();
	if (pd_unlikely(core->cache && core->cache->deferred_count))
		deferred_run(core);
}
