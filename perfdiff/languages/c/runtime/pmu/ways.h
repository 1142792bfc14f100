/*
 * A set of a cache: tags, searched eight at a time, and an exact LRU order.
 *
 * The order is a byte a way: the most recent one has the highest. Zeros are an empty set; a way with 0 is the next to be given
 * away. Arrays have room for pd_ways_stride() ways; the surplus stays zero.
 */
#ifndef PD_WAYS_H
#define PD_WAYS_H

#include <stdint.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#define PD_WAYS_TAGS 8u   /* looked at together */
#define PD_WAYS_ORDER 16u

typedef uint64_t pd_halves __attribute__((vector_size(16)));
typedef uint8_t pd_order_bytes __attribute__((vector_size(PD_WAYS_ORDER), may_alias));

/* The room of a set, at least `group` ways: a power of two, so that a way's number is found in its slot's. */
static inline uint32_t pd_ways_stride(uint32_t ways, uint32_t group)
{
	uint32_t stride = group;

	while (stride < ways)
		stride *= 2;
	return stride;
}

#if defined(__SSE2__)

/* Which of eight tags are the wanted one: two bits each. */
static inline uint32_t pd_ways_equal(const uint32_t *tags, __m128i wanted)
{
	const __m128i *four = (const __m128i *)tags;

	return (uint32_t)_mm_movemask_epi8(_mm_packs_epi32(_mm_cmpeq_epi32(four[0], wanted), _mm_cmpeq_epi32(four[1], wanted)));
}

/* 1 + the way of a tag that at most one way has; 0: none. Sixteen are looked at together: which half has it cannot be foretold. */
static inline uint32_t pd_ways_find(const uint32_t *tags, uint32_t stride, uint32_t tag)
{
	__m128i wanted = _mm_set1_epi32((int)tag);
	uint32_t equal, way = 0;

	if (stride == PD_WAYS_TAGS) {
		equal = pd_ways_equal(tags, wanted);
		return equal ? (uint32_t)__builtin_ctz(equal) / 2 + 1 : 0;
	}
	do {
		equal = pd_ways_equal(tags + way, wanted) | pd_ways_equal(tags + way + PD_WAYS_TAGS, wanted) << 16;
		if (equal)
			return way + (uint32_t)__builtin_ctz(equal) / 2 + 1;
		way += 2 * PD_WAYS_TAGS;
	} while (way < stride);
	return 0;
}

#else

static inline uint32_t pd_ways_find(const uint32_t *tags, uint32_t stride, uint32_t tag)
{
	uint32_t found = 0;

	for (uint32_t way = 0; way < stride; way++)
		found |= tags[way] == tag ? way + 1 : 0;
	return found;
}

#endif

static inline void pd_ways_use(uint8_t *recency, uint32_t ways, uint32_t way)
{
	pd_order_bytes mine = (pd_order_bytes){0} + recency[way];

	for (uint32_t first = 0; first < ways; first += PD_WAYS_ORDER)
		*(pd_order_bytes *)(recency + first) += (pd_order_bytes)(*(pd_order_bytes *)(recency + first) > mine);
	recency[way] = (uint8_t)(ways - 1);
}

/* The way becomes the next to be given away. */
static inline void pd_ways_empty(uint8_t *recency, uint32_t ways, uint32_t way)
{
	uint8_t mine = recency[way];

	for (uint32_t other = 0; other < ways; other++)
		recency[other] += recency[other] < mine;
	recency[way] = 0;
}

static inline uint32_t pd_ways_oldest(const uint8_t *recency)
{
	for (uint32_t first = 0;; first += PD_WAYS_ORDER) {
		pd_halves zeros = (pd_halves)(*(const pd_order_bytes *)(recency + first) == 0);

		if (zeros[0])
			return first + (uint32_t)__builtin_ctzll(zeros[0]) / 8;
		if (zeros[1])
			return first + 8 + (uint32_t)__builtin_ctzll(zeros[1]) / 8;
	}
}

#endif
