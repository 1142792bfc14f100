/* Physical memory: pages get their frames, and their nodes, at the first touch. */
#include "pmu.h"

#define PAGE_BITS 12
#define LEAF_BITS 18 /* pages of a leaf: 1 GiB */
#define ADDRESS_BITS 48

union word {
	struct pd_page page;
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

static __attribute__((noinline)) struct pd_page first_touch(_Atomic uint64_t *entry, uint32_t node)
{
	union word touched = {.page = {.frame = atomic_fetch_add_explicit(&frames, 1, memory_order_relaxed) + 1, .node = node}}, now = {0};

	return atomic_compare_exchange_strong(entry, &now.word, touched.word) ? touched.page : now.page;
}

/* The page that a line lies in; if this is its first touch, it comes to `node`. */
struct pd_page pd_page_of(uintptr_t line, uint32_t node)
{
	uintptr_t page = (line & ((UINT64_C(1) << ADDRESS_BITS) - 1)) >> PAGE_BITS;
	_Atomic(_Atomic uint64_t *) *place = &leaves[page >> LEAF_BITS];
	_Atomic uint64_t *leaf = atomic_load_explicit(place, memory_order_acquire);
	union word found;

	if (pd_unlikely(!leaf) && !(leaf = leaf_open(place)))
		return (struct pd_page){.frame = (uint32_t)page, .node = node};
	leaf += page & ((1u << LEAF_BITS) - 1);
	found.word = atomic_load_explicit(leaf, memory_order_relaxed);
	return pd_likely(found.word) ? found.page : first_touch(leaf, node);
}
