/*
 * The software PMU: what the counted build's objects do in memory, counted by a model of the machine.
 *
 * Each thread is a core with an L1D and an L2 that holds all lines of the L1D; all cores share an LLC that holds all lines of
 * the L2s. Replacement is LRU, coherence MESI: the LLC's entry of a line knows the cores that may have it.
 *
 * Locks, where there is more than one core: an LLC set's, then one core's, never two of a kind.
 */
#ifndef PD_PMU_H
#define PD_PMU_H

#include "../runtime.h"

#define PD_LINE 64u
#define PD_RECENT 64u /* entries of a core's table of recent lines */
#define PD_DEFERRED 64u

enum pd_event {
	PD_EVENT_BLOCKS,
	PD_EVENT_LOADS,
	PD_EVENT_STORES,
	PD_EVENT_L1D_MISS,
	PD_EVENT_L2_MISS,
	PD_EVENT_LLC_MISS,
	PD_EVENT_HITM,       /* a line that another core held modified */
	PD_EVENT_HITM_FALSE, /* of these: that core had written other bytes of it than those accessed here */
	PD_EVENT_REMOTE_DRAM,
	PD_EVENTS
};

/* Why the caches' counts, from PD_EVENT_L1D_MISS on, are not to be trusted. Blocks, loads and stores are always counted. */
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

/*
 * The running thread's core. An entry of the tables of recent lines stands for the most recent line of its L1D set, whose
 * access changes nothing in the model; other cores clear it when they take the line away.
 */
struct pd_core {
	uint64_t events[PD_EVENTS];
	uintptr_t readable[PD_RECENT]; /* address of the line; 0: none */
	uintptr_t writable[PD_RECENT]; /* the same, where the core holds it modified */
	uint64_t written[PD_RECENT];   /* which bytes of the writable line it wrote since it became so */
	struct pd_cache *cache;        /* NULL until the first access, and when the thread has ended */
	uint32_t busy;                 /* at work on the caches */
	uint32_t ending;               /* rounds of thread destructors seen */
	uint32_t deferred_count;
	uint64_t unseen;               /* line accesses that the caches did not see: of handlers beyond PD_DEFERRED, of an ended thread */
	struct pd_deferred deferred[PD_DEFERRED];
};

extern PD_TLS struct pd_core pd_core;

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

/* enum pd_lost flags of this process; 0: all is counted. */
uint32_t pd_pmu_lost(void);

/* Copies the calling thread's counts; those of the caches are PD_ABSENT where they are lost. */
PD_API void pd_pmu_read(uint64_t events[PD_EVENTS]);

/* What follows is shared by the parts of the model alone. */

#define PD_CORES_MOST 4096u

enum pd_state { PD_INVALID, PD_SHARED, PD_EXCLUSIVE, PD_MODIFIED }; /* in the low bits of a line address in the L2 */
#define PD_STATES ((uintptr_t)3)

struct pd_geometry {
	uintptr_t sets_mask; /* sets, a power of two, less one */
	uint32_t ways;
};

struct pd_pmu {
	struct pd_geometry l1, l2, llc;
	uint32_t nodes;
	uint32_t cores; /* opened so far; the tables below have no holes */
	bool many;      /* a second core may run: locks are taken */
	_Atomic uint32_t lost;
	_Atomic(struct pd_cache *) caches[PD_CORES_MOST];
};

extern struct pd_pmu pd_pmu;

static inline uintptr_t pd_line_of(uintptr_t address)
{
	return address & ~(uintptr_t)(PD_LINE - 1);
}

/* One bit a byte of the line, of `size` bytes from `address` on; those beyond the line are left out. */
static inline uint64_t pd_bytes_of(uintptr_t address, size_t size)
{
	return (size >= PD_LINE ? UINT64_MAX : (UINT64_C(1) << size) - 1) << address % PD_LINE;
}

static inline size_t pd_recent_index(uintptr_t address)
{
	return address / PD_LINE % PD_RECENT;
}

/* core.c */
void pd_core_touch(uintptr_t line, uint64_t bytes, bool write);

#endif
