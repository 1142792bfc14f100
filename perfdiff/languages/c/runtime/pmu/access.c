/*
 * Plain memory accesses, as gcc and clang report them: the hot path of the counted build.
 *
 * An access to a recent line is a comparison in thread-local memory. The line's address is compared together with those low
 * bits of the access's own that are zero where it is aligned, so that one that may reach into the next line fails, too.
 */
#include "pmu.h"

/* The line's address, unless the access is not aligned. */
static inline __attribute__((always_inline)) uintptr_t line_if_aligned(uintptr_t address, size_t alignment)
{
	return address & ~(uintptr_t)(PD_LINE - alignment);
}

static inline __attribute__((always_inline)) bool readable(uintptr_t line)
{
	return pd_core.readable[pd_recent_index(line)] == line;
}

static inline __attribute__((always_inline)) bool write_recent(uintptr_t line, uint64_t bytes)
{
	if (pd_unlikely(pd_core.writable[pd_recent_index(line)] != line))
		return false;
	pd_core.written[pd_recent_index(line)] |= bytes;
	return true;
}

/* What the first line of an access from `address` on has of it. */
static inline size_t part_of(uintptr_t address, size_t size)
{
	size_t room = PD_LINE - address % PD_LINE;

	return size < room ? size : room;
}

static __attribute__((noinline)) void read_lines(uintptr_t address, size_t size)
{
	for (size_t part; size; address += part, size -= part) {
		part = part_of(address, size);
		if (!readable(pd_line_of(address)))
			pd_core_touch(pd_line_of(address), pd_bytes_of(address, part), false);
	}
}

static __attribute__((noinline)) void write_lines(uintptr_t address, size_t size)
{
	for (size_t part; size; address += part, size -= part) {
		part = part_of(address, size);
		if (!write_recent(pd_line_of(address), pd_bytes_of(address, part)))
			pd_core_touch(pd_line_of(address), pd_bytes_of(address, part), true);
	}
}

void pd_access_read(const void *address, size_t size)
{
	pd_core.events[PD_EVENT_LOADS]++;
	read_lines((uintptr_t)address, size);
}

void pd_access_write(const void *address, size_t size)
{
	pd_core.events[PD_EVENT_STORES]++;
	write_lines((uintptr_t)address, size);
}

void pd_access_update(const void *address, size_t size)
{
	pd_core.events[PD_EVENT_LOADS]++;
	pd_core.events[PD_EVENT_STORES]++;
	write_lines((uintptr_t)address, size);
}

void pd_access_atomic(const void *address, size_t size)
{
	pd_core.events[PD_EVENT_ATOMICS]++;
	pd_access_update(address, size);
}

/* Of a line that is not among the recent ones, or not aligned. */
static inline __attribute__((always_inline)) void load_other(uintptr_t address, size_t size)
{
	if (pd_likely(address % size == 0))
		pd_core_touch(pd_line_of(address), pd_bytes_of(address, size), false);
	else
		read_lines(address, size);
}

static inline __attribute__((always_inline)) void store_other(uintptr_t address, size_t size)
{
	if (pd_likely(address % size == 0))
		pd_core_touch(pd_line_of(address), pd_bytes_of(address, size), true);
	else
		write_lines(address, size);
}

static inline __attribute__((always_inline)) void load(uintptr_t address, size_t size)
{
	pd_core.events[PD_EVENT_LOADS]++;
	if (pd_unlikely(!readable(line_if_aligned(address, size))))
		load_other(address, size);
}

static inline __attribute__((always_inline)) void store(uintptr_t address, size_t size)
{
	pd_core.events[PD_EVENT_STORES]++;
	if (pd_unlikely(!write_recent(line_if_aligned(address, size), ((UINT64_C(1) << size) - 1) << address % PD_LINE)))
		store_other(address, size);
}

#define HOT PD_API __attribute__((hot, aligned(64)))

#define ACCESSES(size) \
	HOT void __tsan_read##size(uintptr_t address); \
	HOT void __tsan_write##size(uintptr_t address); \
	HOT void __tsan_volatile_read##size(uintptr_t address); \
	HOT void __tsan_volatile_write##size(uintptr_t address); \
	HOT void __tsan_read_write##size(uintptr_t address); \
	HOT void __tsan_unaligned_read##size(uintptr_t address); \
	HOT void __tsan_unaligned_write##size(uintptr_t address); \
	HOT void __tsan_unaligned_volatile_read##size(uintptr_t address); \
	HOT void __tsan_unaligned_volatile_write##size(uintptr_t address); \
	HOT void __tsan_unaligned_read_write##size(uintptr_t address); \
	\
	HOT void __tsan_read##size(uintptr_t address) { load(address, size); } \
	HOT void __tsan_write##size(uintptr_t address) { store(address, size); } \
	HOT void __tsan_volatile_read##size(uintptr_t address) { load(address, size); } \
	HOT void __tsan_volatile_write##size(uintptr_t address) { store(address, size); } \
	HOT void __tsan_unaligned_read##size(uintptr_t address) { load(address, size); } \
	HOT void __tsan_unaligned_write##size(uintptr_t address) { store(address, size); } \
	HOT void __tsan_unaligned_volatile_read##size(uintptr_t address) { load(address, size); } \
	HOT void __tsan_unaligned_volatile_write##size(uintptr_t address) { store(address, size); } \
	HOT void __tsan_read_write##size(uintptr_t address) { pd_access_update((void *)address, size); } \
	HOT void __tsan_unaligned_read_write##size(uintptr_t address) { pd_access_update((void *)address, size); }

ACCESSES(1)
ACCESSES(2)
ACCESSES(4)
ACCESSES(8)
ACCESSES(16)

/* What perfdiff_inline.h calls for other lines than recent ones; it has counted the access. */
#define OTHERS(size) \
	PD_API void pd_read##size(uintptr_t address); \
	PD_API void pd_write##size(uintptr_t address); \
	\
	PD_API void pd_read##size(uintptr_t address) { load_other(address, size); } \
	PD_API void pd_write##size(uintptr_t address) { store_other(address, size); }

OTHERS(1)
OTHERS(2)
OTHERS(4)
OTHERS(8)
OTHERS(16)

/* Aggregates, and what gcc knows to be unaligned. */
PD_API void __tsan_read_range(void *address, size_t size);
PD_API void __tsan_write_range(void *address, size_t size);

PD_API void __tsan_read_range(void *address, size_t size)
{
	pd_access_read(address, size);
}

PD_API void __tsan_write_range(void *address, size_t size)
{
	pd_access_write(address, size);
}

PD_API void __tsan_vptr_read(void **vptr);
PD_API void __tsan_vptr_update(void **vptr, void *value);

PD_API void __tsan_vptr_read(void **vptr)
{
	load((uintptr_t)vptr, sizeof(*vptr));
}

PD_API void __tsan_vptr_update(void **vptr, void *value __attribute__((unused)))
{
	store((uintptr_t)vptr, sizeof(*vptr));
}

/* Of the race detector's interface: nothing is to be done here, but as objects are loaded. */
HOT void __tsan_func_entry(void *caller);
HOT void __tsan_func_exit(void);
PD_API void __tsan_init(void);
PD_API void __tsan_ignore_thread_begin(void);
PD_API void __tsan_ignore_thread_end(void);

HOT void __tsan_func_entry(void *caller __attribute__((unused)))
{
}

HOT void __tsan_func_exit(void)
{
}

PD_API void __tsan_init(void)
{
	pd_library_begin();
}

PD_API void __tsan_ignore_thread_begin(void)
{
}

PD_API void __tsan_ignore_thread_end(void)
{
}
