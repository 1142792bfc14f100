/*
 * Atomic operations, as gcc and clang hand them over: each is reported and done.
 *
 * All are sequentially consistent, which is at least what any memory order asks for. A compare-and-exchange counts as an update whether
 * it succeeds or not: the processor takes the line for itself before it compares. Loads are plain ones on all that we run on.
 */
#include "pmu.h"

#define FUNCTION(type, name, arguments) \
	PD_API type name arguments; \
	PD_API type name arguments
#define ORDER int order __attribute__((unused))
#define ORDERS int succeeded __attribute__((unused)), int failed __attribute__((unused))

/* Stores and fences wait for what comes before only where sequential consistency is asked for; else they are plain. */
static inline void count_if_ordered(int order)
{
	if (order == __ATOMIC_SEQ_CST)
		pd_core.events[PD_EVENT_ATOMICS]++;
}

#define UPDATE(bits, type, name, builtin) \
	FUNCTION(type, __tsan_atomic##bits##_##name, (volatile type *place, type value, ORDER)) \
	{ \
		pd_access_atomic((const void *)place, sizeof(type)); \
		return builtin(place, value, __ATOMIC_SEQ_CST); \
	}

#define EXCHANGE(bits, type, name) \
	FUNCTION(int, __tsan_atomic##bits##_compare_exchange_##name, (volatile type *place, type *expected, type desired, ORDERS)) \
	{ \
		pd_access_atomic((const void *)place, sizeof(type)); \
		return __atomic_compare_exchange_n(place, expected, desired, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); \
	}

#define OPERATIONS(bits, type) \
	FUNCTION(type, __tsan_atomic##bits##_load, (const volatile type *place, ORDER)) \
	{ \
		pd_access_read((const void *)place, sizeof(type)); \
		return __atomic_load_n(place, __ATOMIC_SEQ_CST); \
	} \
	FUNCTION(void, __tsan_atomic##bits##_store, (volatile type *place, type value, int order)) \
	{ \
		count_if_ordered(order); \
		pd_access_write((const void *)place, sizeof(type)); \
		__atomic_store_n(place, value, __ATOMIC_SEQ_CST); \
	} \
	UPDATE(bits, type, exchange, __atomic_exchange_n) \
	UPDATE(bits, type, fetch_add, __atomic_fetch_add) \
	UPDATE(bits, type, fetch_sub, __atomic_fetch_sub) \
	UPDATE(bits, type, fetch_and, __atomic_fetch_and) \
	UPDATE(bits, type, fetch_or, __atomic_fetch_or) \
	UPDATE(bits, type, fetch_xor, __atomic_fetch_xor) \
	UPDATE(bits, type, fetch_nand, __atomic_fetch_nand) \
	EXCHANGE(bits, type, strong) \
	EXCHANGE(bits, type, weak) \
	FUNCTION(type, __tsan_atomic##bits##_compare_exchange_val, (volatile type *place, type expected, type desired, ORDERS)) \
	{ \
		pd_access_atomic((const void *)place, sizeof(type)); \
		__atomic_compare_exchange_n(place, &expected, desired, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); \
		return expected; \
	}

OPERATIONS(8, uint8_t)
OPERATIONS(16, uint16_t)
OPERATIONS(32, uint32_t)
OPERATIONS(64, uint64_t)

/*
 * 16 bytes: by the processor's own compare-and-exchange, as libatomic does, whose operations may meet ours at one place. Even a
 * load is one there, and faults in read-only memory.
 */
typedef unsigned __int128 wide;

static wide wide_swap(volatile wide *place, wide expected, wide desired)
{
#if defined(__x86_64__) /* clang would call a library for it */
	uint64_t low = (uint64_t)expected, high = (uint64_t)(expected >> 64);

	__asm__ volatile("lock cmpxchg16b %0"
			 : "+m"(*place), "+a"(low), "+d"(high)
			 : "b"((uint64_t)desired), "c"((uint64_t)(desired >> 64))
			 : "memory", "cc");
	return (wide)high << 64 | low;
#else
	return __sync_val_compare_and_swap(place, expected, desired);
#endif
}

#define WIDE_UPDATE(name, next) \
	FUNCTION(wide, __tsan_atomic128_##name, (volatile wide *place, wide value, ORDER)) \
	{ \
		wide old = 0, seen; \
\
		pd_access_atomic((const void *)place, sizeof(wide)); \
		while ((seen = wide_swap(place, old, next)) != old) \
			old = seen; \
		return old; \
	}

#define WIDE_EXCHANGE(name) \
	FUNCTION(int, __tsan_atomic128_compare_exchange_##name, (volatile wide *place, wide *expected, wide desired, ORDERS)) \
	{ \
		wide old = *expected; \
\
		pd_access_atomic((const void *)place, sizeof(wide)); \
		*expected = wide_swap(place, old, desired); \
		return *expected == old; \
	}

FUNCTION(wide, __tsan_atomic128_load, (const volatile wide *place, ORDER))
{
	pd_access_read((const void *)place, sizeof(wide));
	return wide_swap((volatile wide *)place, 0, 0);
}

FUNCTION(void, __tsan_atomic128_store, (volatile wide *place, wide value, int order))
{
	wide old = 0, seen;

	count_if_ordered(order);
	pd_access_write((const void *)place, sizeof(wide));
	while ((seen = wide_swap(place, old, value)) != old)
		old = seen;
}

WIDE_UPDATE(exchange, value)
WIDE_UPDATE(fetch_add, old + value)
WIDE_UPDATE(fetch_sub, old - value)
WIDE_UPDATE(fetch_and, old & value)
WIDE_UPDATE(fetch_or, old | value)
WIDE_UPDATE(fetch_xor, old ^ value)
WIDE_UPDATE(fetch_nand, ~(old & value))
WIDE_EXCHANGE(strong)
WIDE_EXCHANGE(weak)

FUNCTION(wide, __tsan_atomic128_compare_exchange_val, (volatile wide *place, wide expected, wide desired, ORDERS))
{
	pd_access_atomic((const void *)place, sizeof(wide));
	return wide_swap(place, expected, desired);
}

FUNCTION(void, __tsan_atomic_thread_fence, (int order))
{
	count_if_ordered(order);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

FUNCTION(void, __tsan_atomic_signal_fence, (ORDER))
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}
