/* Physical memory: pages get their frames, and their nodes, at the first touch. */
#include "pmu.h"

#define PAGE_BITS 12
#define LEAF_BITS 18 /* pages of a leaf: 1 GiB */
#define ADDRESS_BITS 48
#define FRAMES_MOST (UINT32_MAX / (PD_PAGE / PD_LINE)) /* 256 GiB: a place is a word of 32 bits */

struct page {
	uint32_t frame; /* from 1, in the order of first touch; 0: not touched */
	uint32_t node;
};

union entry {
	struct page page;
	uint64_t word;
};

static _Atomic(_Atomic uint64_t *) leaves[1u << (ADDRESS_BITS - PAGE_BITS - LEAF_BITS)];
static _Atomic uint32_t frames;

/* A leaf that loses the race to be installed stays unused: nothing of it was touched. */
static __attribute__((noinline, cold)) _Atomic uint64_t *leaf_open(_Atomic(_Atomic uint64_t *) *place)
{
	_Atomic uint64_t *leaf = pd_memory(sizeof(*leaf) << LEAF_BITS), *first = NULL;

	if (!leaf) {
		pd_lose(PD_LOST_MEMORY);
		return NULL;
	}
	return atomic_compare_exchange_strong(place, &first, leaf) ? leaf : first;
}

static inline _Atomic uint64_t *entry_of(uintptr_t page)
{
	_Atomic(_Atomic uint64_t *) *place = &leaves[page >> LEAF_BITS & (sizeof(leaves) / sizeof(*leaves) - 1)];
	_Atomic uint64_t *leaf = atomic_load_explicit(place, memory_order_acquire);

	if (pd_unlikely(!leaf) && !(leaf = leaf_open(place)))
		return NULL;
	return leaf + (page & ((1u << LEAF_BITS) - 1));
}

static __attribute__((noinline)) uint32_t first_touch(_Atomic uint64_t *entry, uint32_t node)
{
	uint32_t frame = atomic_fetch_add_explicit(&frames, 1, memory_order_relaxed) + 1;
	union entry touched = {.page = {frame, node}}, now = {.word = 0};

	if (frame >= FRAMES_MOST)
		pd_lose(PD_LOST_MEMORY);
	return atomic_compare_exchange_strong(entry, &now.word, touched.word) ? frame : now.page.frame;
}

/* The frame of a page; if this is its first touch, it comes to `node`. */
uint32_t pd_page_touch(uintptr_t page, uint32_t node)
{
	_Atomic uint64_t *entry = entry_of(page);
	union entry found;

	if (!entry)
		return (uint32_t)(page % FRAMES_MOST) + 1;
	found.word = atomic_load_explicit(entry, memory_order_relaxed);
	return pd_likely(found.page.frame) ? found.page.frame : first_touch(entry, node);
}

uint32_t pd_page_node(uintptr_t page)
{
	_Atomic uint64_t *entry = entry_of(page);
	union entry found = {.word = entry ? atomic_load_explicit(entry, memory_order_relaxed) : 0};

	return found.page.node;
}
