/*
 * A set of a cache: tags, searched four at a time, and an exact LRU order.
 *
 * The order is a byte a way: the most recent one has the highest. Zeros are an empty set; a way with 0 is the next to be given
 * away. Arrays have room for pd_ways_stride(ways) ways; the surplus stays zero.
 */
#ifndef PD_WAYS_H
#define PD_WAYS_H

#include <stdint.h>
#include <string.h>

#define PD_WAYS_GROUP 16u

typedef uint32_t pd_tags __attribute__((vector_size(16), may_alias));
typedef uint64_t pd_halves __attribute__((vector_size(16)));
typedef uint8_t pd_order_bytes __attribute__((vector_size(PD_WAYS_GROUP), may_alias));

/* A power of two, so that a way's number is found in its slot's. */
static inline uint32_t pd_ways_stride(uint32_t ways)
{
	uint32_t stride = PD_WAYS_GROUP;

	while (stride < ways)
		stride *= 2;
	return stride;
}

/* 1 + the way of a tag that at most one way has; 0: none. */
static inline uint32_t pd_ways_find(const uint32_t *tags, uint32_t ways, uint32_t tag)
{
	pd_tags wanted = {tag, tag, tag, tag}, numbers = {1, 2, 3, 4}, four = {4, 4, 4, 4}, found = {0};
	pd_halves halves;

	for (uint32_t way = 0; way < ways; way += 4) {
		found |= (pd_tags)(*(const pd_tags *)(tags + way) == wanted) & numbers;
		numbers += four;
	}
	halves = (pd_halves)found;
	halves[0] |= halves[1];
	return (uint32_t)(halves[0] | halves[0] >> 32);
}

static inline void pd_ways_use(uint8_t *recency, uint32_t ways, uint32_t way)
{
	pd_order_bytes mine = (pd_order_bytes){0} + recency[way];

	for (uint32_t first = 0; first < ways; first += PD_WAYS_GROUP)
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
	for (uint32_t first = 0;; first += PD_WAYS_GROUP) {
		pd_halves zeros = (pd_halves)(*(const pd_order_bytes *)(recency + first) == 0);

		if (zeros[0])
			return first + (uint32_t)__builtin_ctzll(zeros[0]) / 8;
		if (zeros[1])
			return first + 8 + (uint32_t)__builtin_ctzll(zeros[1]) / 8;
	}
}

#endif
