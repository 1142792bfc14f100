/* Counts what each thread allocates, in requested bytes. The next allocator in link order still does the work. */
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "runtime.h"

void *pd_next_function(const char *name)
{
	return dlsym(RTLD_NEXT, name);
}

#ifdef PD_STATIC /* a static libc's malloc cannot be replaced and used */

bool pd_allocations_seen(void)
{
	return false;
}

#else

#define EARLY_BYTES 16384u

static void *(*next_malloc)(size_t);
static void *(*next_calloc)(size_t, size_t);
static void *(*next_realloc)(void *, size_t);
static void *(*next_memalign)(size_t, size_t);
static int (*next_posix_memalign)(void **, size_t, size_t);
static void *(*next_aligned_alloc)(size_t, size_t);
static void (*next_free)(void *);

/* Serves the linker while it looks up the next allocator. */
static _Alignas(16) char early[EARLY_BYTES];
static _Atomic size_t early_used;
static PD_TLS bool finding;

static void *early_take(size_t size)
{
	size_t place = atomic_fetch_add(&early_used, (size + 31) & ~(size_t)15);

	if (size > EARLY_BYTES || place + size + 16 > EARLY_BYTES)
		return NULL;
	memcpy(early + place, &size, sizeof(size));
	return early + place + 16;
}

static bool is_early(const void *memory)
{
	return (uintptr_t)memory - (uintptr_t)early < EARLY_BYTES;
}

static __attribute__((noinline, cold)) void find_next(void)
{
	if (finding)
		return;
	finding = true;
	next_calloc = (void *(*)(size_t, size_t))pd_next_function("calloc");
	next_realloc = (void *(*)(void *, size_t))pd_next_function("realloc");
	next_memalign = (void *(*)(size_t, size_t))pd_next_function("memalign");
	next_posix_memalign = (int (*)(void **, size_t, size_t))pd_next_function("posix_memalign");
	next_aligned_alloc = (void *(*)(size_t, size_t))pd_next_function("aligned_alloc");
	next_free = (void (*)(void *))pd_next_function("free");
	next_malloc = (void *(*)(size_t))pd_next_function("malloc");
	finding = false;
}

static PD_RESOLVE void find_early(void)
{
	if (!next_malloc)
		find_next();
}

static inline bool ready(void)
{
	if (pd_unlikely(!next_malloc))
		find_next();
	return pd_likely(next_malloc != NULL);
}

/* Of the counted library, which knows where allocations were made. */
void pd_allocated(void *memory, size_t size, const void *site) __attribute__((weak, visibility("hidden")));
void pd_freed(void *memory) __attribute__((weak, visibility("hidden")));

static __attribute__((noinline, cold)) void *allocated(void *memory, size_t size, const void *site)
{
	pd_allocated(memory, size, site);
	return memory;
}

/* What is allocated by `call`; the ordinary library leaves by it. */
#define ALLOCATE(size, call) return pd_unlikely(pd_allocated != NULL) ? allocated(call, size, __builtin_return_address(0)) : call

/* Apart, so that the ordinary library needs no stack frame for it. */
static __attribute__((noinline, cold)) void *noted_malloc(size_t size, const void *site)
{
	return allocated(next_malloc(size), size, site);
}

static __attribute__((noinline, cold)) void noted_free(void *memory)
{
	pd_freed(memory);
	next_free(memory);
}

static inline void count(size_t size)
{
	pd_self.resources[PD_ALLOC_BYTES] += size;
	pd_self.resources[PD_ALLOC_COUNT]++;
}

PD_API void *malloc(size_t size)
{
	if (!ready())
		return early_take(size);
	count(size);
	if (pd_unlikely(pd_allocated != NULL))
		return noted_malloc(size, __builtin_return_address(0));
	return next_malloc(size);
}

PD_API void *calloc(size_t number, size_t size)
{
	if (!ready()) /* `early` is zero and never used twice */
		return early_take(number * size);
	count(number * size);
	ALLOCATE(number * size, next_calloc(number, size));
}

/* The former allocation goes first: once it is freed, another thread may get its place. Where there is no memory it is unnamed from then on. */
static __attribute__((noinline, cold)) void *reallocated(void *memory, size_t size, const void *site)
{
	void *moved;

	pd_freed(memory);
	moved = next_realloc(memory, size);
	pd_allocated(moved, size, site);
	return moved;
}

PD_API void *realloc(void *memory, size_t size)
{
	size_t former;
	void *moved;

	if (!ready())
		return NULL;
	count(size);
	if (pd_likely(!is_early(memory))) {
		if (pd_unlikely(pd_freed != NULL))
			return reallocated(memory, size, __builtin_return_address(0));
		return next_realloc(memory, size);
	}
	moved = next_malloc(size);
	if (moved) {
		memcpy(&former, (char *)memory - 16, sizeof(former));
		memcpy(moved, memory, former < size ? former : size);
	}
	return moved;
}

PD_API void *memalign(size_t alignment, size_t size)
{
	if (!ready())
		return NULL;
	count(size);
	ALLOCATE(size, next_memalign(alignment, size));
}

PD_API void *aligned_alloc(size_t alignment, size_t size)
{
	if (!ready())
		return NULL;
	count(size);
	ALLOCATE(size, next_aligned_alloc(alignment, size));
}

PD_API int posix_memalign(void **memory, size_t alignment, size_t size)
{
	int result;

	if (!ready())
		return ENOMEM;
	count(size);
	result = next_posix_memalign(memory, alignment, size);
	if (pd_unlikely(pd_allocated != NULL) && !result)
		pd_allocated(*memory, size, __builtin_return_address(0));
	return result;
}

PD_API void free(void *memory)
{
	if (pd_unlikely(memory == NULL) || is_early(memory) || !ready())
		return;
	if (pd_unlikely(pd_freed != NULL))
		noted_free(memory);
	else
		next_free(memory);
}

/* False where the program brings its own malloc, or where we were loaded too late to stand before it. */
bool pd_allocations_seen(void)
{
	Dl_info ours, first;
	void *found = dlsym(RTLD_DEFAULT, "malloc");

	return found && dladdr((void *)pd_enter_call, &ours) && dladdr(found, &first) && ours.dli_fbase == first.dli_fbase;
}

#endif
