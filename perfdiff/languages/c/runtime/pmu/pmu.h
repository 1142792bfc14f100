/*
 * The software PMU: what the counted build's objects do in memory, counted by a model of the machine.
 *
 * Each thread is a core with an L1D and an L2 that holds all lines of the L1D; all cores share an LLC that holds all lines of
 * the L2s. L2 and LLC replace the least recently used line, the L1D one of those not used since all of its set's others were
 * (bit-PLRU). Coherence is MESI: the LLC's entry of a line knows the cores that may have it.
 *
 * Locks, where there is more than one core: an LLC set's, then one core's, never two of a kind.
 */
#ifndef PD_PMU_H
#define PD_PMU_H

#include "../runtime.h"

/* From glibc 2.43 on these are macros as well, in newer dialects of C; here they are the names of functions. */
#include <string.h>
#undef memchr
#undef strchr
#undef strrchr
#undef strstr

#define PD_LINE 64u
#define PD_RECENT_BITS 8
#define PD_RECENT (1u << PD_RECENT_BITS) /* entries of a core's table of recent lines */
#define PD_DEFERRED 64u

enum pd_event {
	PD_EVENT_BLOCKS,
	PD_EVENT_LOADS,
	PD_EVENT_STORES,
	PD_EVENT_ATOMICS,    /* operations that a processor orders among its others: updates, fences, sequentially consistent stores */
	PD_EVENT_DIVISIONS,  /* and square roots */
	PD_EVENT_L1D_MISS,
	PD_EVENT_L2_MISS,
	PD_EVENT_LLC_MISS,
	PD_EVENT_HITM,       /* a line that another core held modified */
	PD_EVENT_HITM_FALSE, /* of these: that core had written other bytes of it than those accessed here */
	PD_EVENT_REMOTE_DRAM,
	PD_EVENTS
};

/* Why the caches' counts, from PD_EVENT_L1D_MISS on, are not to be trusted. What comes before is counted, divisions apart (see library.c). */
enum pd_lost {
	PD_LOST_CONFIGURATION = 1, /* PERFDIFF_PMU does not describe a machine */
	PD_LOST_MEMORY = 2,        /* for a core's caches, for the LLC or for the table of pages */
	PD_LOST_CORES = 4,         /* more threads at once than PD_CORES_MOST */
};

struct pd_cache;

/* A line access that a signal handler made while its thread was at work on the caches. */
struct pd_deferred {
	uintptr_t line;
	uint64_t bytes;
	bool write;
};

/* Blocks, loads, stores and divisions that perfdiff_inline.h counts: sites take turns, as adding to one word over and over would wait for itself. */
struct pd_lane {
	uint64_t blocks;
	uint64_t loads;
	uint64_t stores;
	uint64_t divisions;
};

#define PD_LANES 8

/*
 * The running thread's core. The tables of recent lines hold lines of the L1D that are marked as used: accessing them changes
 * nothing in the model. Other cores clear an entry when they take the line away.
 */
struct pd_core {
	uint64_t events[PD_EVENTS];
	uintptr_t readable[PD_RECENT]; /* address of the line; 0: none */
	uintptr_t writable[PD_RECENT]; /* the same, where the core holds it modified */
	uint64_t written[PD_RECENT];   /* which bytes of the writable line it wrote since it became so */
	struct pd_lane lanes[PD_LANES];
	struct pd_cache *cache;        /* NULL until the first access, and when the thread has ended */
	uint32_t busy;                 /* at work on the caches */
	uint32_t ending;               /* rounds of thread destructors seen */
	uint64_t unseen;               /* line accesses that the caches did not see: of handlers beyond PD_DEFERRED, of an ended thread */
};

extern PD_API PD_TLS struct pd_core pd_core;

/* perfdiff_inline.h counts on it. */
_Static_assert(offsetof(struct pd_core, readable) == 88, "readable in perfdiff_inline.h");
_Static_assert(offsetof(struct pd_core, writable) == 88 + 2048, "writable in perfdiff_inline.h");
_Static_assert(offsetof(struct pd_core, written) == 88 + 4096, "written in perfdiff_inline.h");
_Static_assert(offsetof(struct pd_core, lanes) == 88 + 6144 && sizeof(struct pd_lane) == 32, "lanes in perfdiff_inline.h");

/* A line found modified in another core. */
struct pd_conflict {
	uintptr_t line;
	uint64_t bytes;   /* accessed now, one bit a byte */
	uint64_t written; /* by the other core since it owned the line */
	uint32_t core;
	uint32_t other;
	bool write;
};

/* lines.c: told of every HITM event, in the accessing thread, outside of all locks but not to access counted memory. */
void pd_lines_note(const struct pd_conflict *conflict) __attribute__((weak));

/* An access of any size and alignment: one load or store, and an access to the caches for each line that it touches. */
void pd_access_read(const void *address, size_t size);
void pd_access_write(const void *address, size_t size);
void pd_access_update(const void *address, size_t size); /* read-modify-write: both, with the line held exclusively */
void pd_access_atomic(const void *address, size_t size); /* the same as one atomic operation */

/* enum pd_lost flags of this process; 0: all is counted. */
uint32_t pd_pmu_lost(void);

/* Copies the calling thread's counts; those of the caches are PD_ABSENT where they are lost, divisions where an object does not count them. */
PD_API void pd_pmu_read(uint64_t events[PD_EVENTS]);

/* library.c: called as each counted object is loaded. */
void pd_library_begin(void);
bool pd_divisions_seen(void);

/* What follows is shared by the parts of the model alone. */

#define PD_CORES_MOST 4096u
#define PD_NO_SLOT UINT32_MAX

enum pd_state { PD_INVALID, PD_SHARED, PD_EXCLUSIVE, PD_MODIFIED }; /* in the low bits of a line's address in the L2 */
#define PD_STATES ((uintptr_t)3)

struct pd_geometry {
	uint32_t sets_mask; /* sets, a power of two, less one */
	uint32_t ways;
	uint32_t stride; /* ways that a set has room for, a power of two */
};

/* A line in the L2. */
struct pd_line {
	uintptr_t line;   /* address, and enum pd_state in the low bits */
	uint64_t written; /* of a modified line, unless it is a recent one: which bytes */
};

#define PD_PAGE 4096u
#define PD_PAGES 64u

/* Where a page's lines are in physical memory. */
struct pd_page {
	uintptr_t number; /* of the page in the program's memory */
	uint32_t place;   /* of its first line; 0: this is no page */
};

/*
 * A core's private caches. They outlive its thread: a later one takes them over, emptied.
 *
 * Programs know a line by its address, the L2 and the LLC by its place: its number in physical memory, never 0. So where the
 * system maps the program's pages does not matter to them.
 */
struct pd_cache {
	_Atomic uint32_t lock;
	uint32_t core; /* its number, from 0 */
	uint32_t node;
	struct pd_core *owner; /* NULL: no thread's now */
	struct pd_cache *next_free;
	uint32_t *l1_tags;    /* low bits of the line's number, which the L2's slot confirms */
	uint32_t *l1_slots;   /* where they are in the L2 */
	uint32_t *l1_used;    /* a set's ways that are marked as used, one bit each */
	uint32_t *l2_tags;    /* places; 0: empty */
	uint8_t *l2_recency;
	struct pd_line *l2_lines;
	uint32_t recent_slots[PD_RECENT]; /* where the recent lines are in the L2 */
	struct pd_page pages[PD_PAGES];   /* looked up last */
	uint32_t deferred_count;
	struct pd_deferred deferred[PD_DEFERRED];
};

struct pd_pmu {
	struct pd_geometry l1, l2, llc;
	uint32_t nodes;
	_Atomic uint32_t cores; /* numbers given so far */
	bool many;              /* a second core may run: locks are taken */
	_Atomic uint32_t lost;
	struct pd_cache *caches[PD_CORES_MOST]; /* by number */
};

extern struct pd_pmu pd_pmu;

static inline void pd_lose(enum pd_lost why)
{
	atomic_fetch_or_explicit(&pd_pmu.lost, why, memory_order_relaxed);
}

void pd_lock_wait(_Atomic uint32_t *lock);

/* Locks of the model: no thread sleeps with one, and none is asked for by a handler whose thread may hold it. */
static inline void pd_lock(_Atomic uint32_t *lock)
{
	if (pd_unlikely(pd_pmu.many) && atomic_exchange_explicit(lock, 1, memory_order_acquire))
		pd_lock_wait(lock);
}

static inline void pd_unlock(_Atomic uint32_t *lock)
{
	if (pd_unlikely(pd_pmu.many))
		atomic_store_explicit(lock, 0, memory_order_release);
}

static inline uintptr_t pd_line_of(uintptr_t address)
{
	return address & ~(uintptr_t)(PD_LINE - 1);
}

/* One bit a byte of the line, of `size` bytes from `address` on; those beyond the line are left out. */
static inline uint64_t pd_bytes_of(uintptr_t address, size_t size)
{
	return (size >= PD_LINE ? UINT64_MAX : (UINT64_C(1) << size) - 1) << address % PD_LINE;
}

/* Multiplicative hashing (Knuth, by the golden ratio): neighbours spread, and arrays that lie in step do not meet. */
static inline size_t pd_recent_index(uintptr_t line)
{
	return (uint32_t)line * 0x278dde7u >> (32 - PD_RECENT_BITS);
}

/* core.c */
void pd_core_touch(uintptr_t line, uint64_t bytes, bool write);

/* machine.c */
bool pd_machine_begin(void);

/* private.c: under the core's lock */
bool pd_private_begin(struct pd_cache *cache);
void pd_private_forget(struct pd_cache *cache);
bool pd_private_use(struct pd_cache *cache, struct pd_core *owner, uintptr_t line, uint64_t bytes, bool write);
void pd_private_install(struct pd_cache *cache, uintptr_t line, uint32_t place, enum pd_state state, uint64_t bytes);
enum pd_state pd_private_take(struct pd_cache *cache, uint32_t place, bool all, uint64_t *written);

/* directory.c */
void pd_directory_fetch(struct pd_cache *cache, uintptr_t line, uint64_t bytes, bool write);
void pd_directory_drop(uint32_t place, uint64_t sharers);

/* shared.c: a line of the LLC, whose set is locked until it is released */
struct pd_shared {
	_Atomic uint32_t *lock;
	uint64_t *sharers; /* bit i: cores i, i + 64, i + 128, … may have it */
};

bool pd_shared_begin(void);
void pd_shared_forget(void);
bool pd_shared_take(struct pd_shared *shared, uint32_t place);

/* pages.c */
uint32_t pd_page_touch(uintptr_t page, uint32_t node);
uint32_t pd_page_node(uintptr_t page);

static inline uint32_t pd_place_of(struct pd_cache *cache, uintptr_t line)
{
	struct pd_page *page = &cache->pages[line / PD_PAGE % PD_PAGES];

	if (pd_unlikely(page->number != line / PD_PAGE || !page->place))
		*page = (struct pd_page){line / PD_PAGE, pd_page_touch(line / PD_PAGE, cache->node) * (PD_PAGE / PD_LINE)};
	return page->place + (uint32_t)(line % PD_PAGE / PD_LINE);
}

#endif
