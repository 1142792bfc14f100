/* What the parts of the runtime share. */
#ifndef PD_RUNTIME_H
#define PD_RUNTIME_H

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "perfdiff_probe.h"
#include "recording.h"

#if !defined(__linux__) || !(defined(__x86_64__) || defined(__aarch64__)) || !defined(__LP64__)
#error "perfdiff's runtime supports 64-bit Linux on x86-64 and aarch64"
#endif

#define PD_API __attribute__((visibility("default")))
#define PD_TLS __thread __attribute__((tls_model("initial-exec")))
#define pd_likely(condition) __builtin_expect(!!(condition), 1)
#define pd_unlikely(condition) __builtin_expect(!!(condition), 0)
#define PD_GENERAL __attribute__((target("general-regs-only"))) /* vector registers are a caller's */
/* Orders our stores for a signal handler on the same thread, and for whoever reads the file of a killed process. */
#define pd_order() atomic_signal_fence(memory_order_seq_cst)

enum pd_mode { PD_OFF, PD_COUNT, PD_TIME, PD_SAMPLE };
enum pd_flag {
	PD_FLAG_COUNTERS = 1, /* of sampled calls, callees included */
	PD_FLAG_PASSING = 2,
	PD_FLAG_OWN = 4, /* counters of all calls, without those of probed callees */
	PD_FLAG_LENGTHS = 8, /* calls by length, which tell how few of them hold the time */
	PD_FLAG_RECURSIVE = 16, /* sums come from the outermost calls; calls inside pass, but for one in `inner` */
	PD_FLAG_BRIEF = 32, /* texts are read until it is known what that takes */
	PD_FLAG_MARKED = 64, /* calls between two timed ones have no entry, but a mark, by which callees know their caller */
};

/* A probe's line of the plan file. */
struct pd_plan_entry {
	uint8_t mode;
	uint8_t flags;
	uint16_t features;
	uint16_t branches;
	uint16_t inner;
	uint32_t period;
	uint32_t reservoir;
};
_Static_assert(sizeof(struct pd_plan_entry) == 16, "the plan file's layout");

/* From here on the clocks of a call are asked whether the thread was preempted: two reads, about 0.5 % of its time. */
#define PD_LONG_NS 100000u
/* So many first calls of a probe are timed in each thread, whatever its period: few calls must not mean none. */
#define PD_FIRST_CALLS 32u
/* So many first callees of a sampled call are timed, then one in 2, 4, 8 …: its own time is exact, or nearly so. */
#define PD_CLOSE_CALLEES 16u
/* So many bytes of texts are read of a probe with PD_FLAG_BRIEF in each thread: eight of the longest, about 5 ms. */
#define PD_BRIEF_BYTES ((uint64_t)8 << 20)
/* So many of a sampled call's callees that would pass the gate are timed: then it is open again, and the period's calls stand for them. */
#define PD_CLOSE_PASSING 64u
#define PD_GATE_SHUT UINT32_MAX /* of a probe that is off */

#define PD_SEGMENTS 20
#define PD_SEGMENT_FIRST 16u /* records of a reservoir's first segment; each next one is twice as large */

/* A probe in one thread. */
struct pd_local {
	struct pd_totals *totals; /* NULL until the first call */
	struct pd_edge *edge;     /* of the last caller */
	uint32_t probe;
	uint32_t active; /* calls open now */
	uint8_t mode;
	uint8_t flags;
	uint16_t features;
	uint32_t cells;
	uint32_t is_long; /* the last timed call was */
	uint32_t period;
	uint32_t reservoir;
	uint32_t position;  /* of the timed call within its period */
	uint32_t countdown; /* calls until the next timed one */
	uint32_t granted;   /* calls that may pass the gate, or have passed it, since the last one that was counted */
	uint32_t inner;           /* with PD_FLAG_RECURSIVE: the period of the calls inside others */
	uint32_t inner_position;
	uint32_t inner_countdown;
	uint64_t text_bytes;      /* read so far */
	uint64_t finished_before; /* calls that had ended when the outermost one began */
	uint64_t considered; /* timed calls that the reservoir has seen in this epoch of the plan */
	uint32_t epoch;
	struct pd_samples *segments[PD_SEGMENTS];
};

/* An open call. */
struct pd_entry {
	struct pd_entry *parent;
	const void *frame; /* what tells it from all others that are open: its frame's address, or a key */
	uintptr_t stack;   /* stack pointer at entry */
	struct pd_local *local;
	struct pd_edge *edge;
	uint64_t entered; /* sampled calls: before the cells were read */
	uint64_t start;
	uint64_t missed; /* ticks between these two that were lost */
	int64_t callee_time; /* direct callees' inclusive time, times their shares */
	uint64_t preempted;  /* what the thread had lost at the start */
	uint64_t debt;       /* cost of all probes that ran inside */
	uint32_t weight;     /* calls it stands for in its function's sums; 0: none */
	uint32_t share;      /* calls it stands for in its caller's own time; not timed where both are 0 */
	uint32_t close_callees; /* of a sampled call: callees with a period, so far */
	uint32_t close_pick;    /* which one of as many as they stand for is timed */
	uint32_t close_passing; /* callees that would have passed the gate, so far */
	uint32_t callee_calls;
	uint32_t record; /* 1 + index in the reservoir; 0: not sampled */
	uint32_t guard;  /* enum pd_guard */
	uint64_t call;
	uint64_t *cells;
	uint64_t resources[PD_RESOURCES];
	uint64_t *values;   /* the thread's free values at entry */
	uint64_t *counters; /* at the start, at entry, and of probed callees, one array each, then the thread's `probed`; NULL: not read */
};

/* How much a call's probe did. Where a caller's counters are read, what its callees' probes count is taken off. */
enum pd_level { PD_LEVEL_PASSED, PD_LEVEL_MARKED, PD_LEVEL_COUNTED, PD_LEVEL_TIMED, PD_LEVEL_SAMPLED, PD_LEVEL_READ, PD_LEVELS };

struct pd_arena {
	char *cursor;
	char *end;
	uint32_t thread;
	uint32_t extents;
};

#define PD_HELD 16 /* locks a thread holds at once whose hold time is known */

struct pd_held {
	const void *lock;
	uint64_t since;
};

/* The innermost open call without an entry: its frame's address, 0: none. Where the top entry stands further down the stack, it is outside. */
struct pd_mark {
	uintptr_t frame;
	uint32_t probe;
};

/* A moment of a thread in all its clocks. */
struct pd_presence {
	uint64_t ticks;
	uint64_t ns;     /* CLOCK_MONOTONIC */
	uint64_t cpu_ns; /* CLOCK_THREAD_CPUTIME_ID */
	uint64_t blocked; /* times that the thread gave up the CPU by itself */
	uint64_t paused; /* what the process had paused, in time's unit */
};

struct pd_thread {
	struct pd_entry *top;
	char *next; /* free part of the shadow stack */
	char *limit;
	uint64_t *values; /* free part of the value stack */
	uint64_t *values_limit;
	struct pd_local *locals;
	uint32_t *gates; /* what pd_gates points to, but right below a sampled call */
	uint32_t *shut;  /* what it points to there: no call passes */
	uint64_t random;
	struct pd_mark mark;
	uint32_t closed; /* timed calls, for refreshing the clock pair */
	uint64_t probed[PD_LEVELS]; /* calls that have ended */
	struct pd_presence presence;
	uint64_t preempted; /* time that other threads had while this one could have run, as far as it was noticed */
	uint32_t writing; /* a record is being written: a signal handler's calls keep none */
	struct pd_edge **edges; /* index by caller and callee */
	struct pd_edge **outside; /* of a counted build, by number: the edge of the last caller to each function outside; NULL: none yet */
	uint32_t edges_mask;
	uint32_t edges_used;
	struct pd_edges *edges_block;
	uint32_t edges_block_used;
	uint32_t held_count;
	struct pd_held held[PD_HELD];
	struct pd_arena arena;
	const uint64_t *resources;     /* the thread's own counters, in its TLS */
	/* Of calls that one thread of the system leaves and another goes on with (carried.c): */
	bool waits;                    /* since they were left, for a lock */
	uint64_t waiting;              /* as in pd_local_state, while nobody carries them */
	uint64_t stood[PD_COUNTERS];   /* their counters as they were left */
	bool is_moved;                 /* their counters are ahead of the carrying thread's: */
	uint64_t offsets[PD_COUNTERS]; /* by so much; PD_ABSENT: not known */
	struct pd_thread *next_thread; /* of all threads of the process */
	struct pd_thread *next_free;   /* of those that ended */
	struct pd_entry root;
};

/* What the hot path and the interposed functions reach without a call. */
struct pd_local_state {
	struct pd_thread *thread;
	uint64_t waiting; /* since then for a lock that an interpreter tells of; 0: it does not wait */
	uint64_t resources[PD_RESOURCES];
};

extern PD_TLS struct pd_local_state pd_self;
extern unsigned char *pd_modes; /* one mode a probe, and an enum pd_known */

/* Where the counters of calls come from: all sources are read together, for the calling thread, at a call's start and end. */
struct pd_counter_source {
	uint32_t (*open)(struct pd_counter *counters, uint32_t room); /* once a process: names its counters, returns their number */
	void (*thread_open)(struct pd_thread *thread);                /* NULL where threads need nothing */
	void (*thread_close)(struct pd_thread *thread);               /* NULL where threads need nothing */
	void (*read)(struct pd_thread *thread, uint64_t *values);     /* PD_ABSENT where one cannot be had now */
	/*
	 * NULL where no counter is a level; else the last one is, of which a call's peak is counted. Returns the highest level since it was last
	 * asked, and goes on from `highest`, or from the level now where that is higher.
	 */
	uint64_t (*peak)(uint64_t highest);
};

extern const struct pd_counter_source pd_system_counters;
extern const struct pd_counter_source pd_kernel_counters __attribute__((weak));
extern const struct pd_counter_source pd_papi_counters __attribute__((weak));
extern const struct pd_counter_source pd_pmu_counters __attribute__((weak)); /* of the counted build, which reads no others */

#define PD_SOURCES 3

struct pd_process {
	struct pd_header *header; /* NULL: no recording yet */
	const struct pd_plan_entry *plan;
	_Atomic uint32_t *epoch; /* of the plan */
	uint64_t most_bytes;           /* of the file, from which on no more calls are kept than before */
	const struct pd_counter_source *sources[PD_SOURCES];
	uint32_t source_first[PD_SOURCES]; /* place of its first counter */
	uint32_t source_count;
	uint32_t counter_count;
	uint64_t (*peak)(uint64_t highest); /* of the source that has one, of the counter `peak_counter` */
	uint32_t peak_counter;
	struct pd_counter counters[PD_COUNTERS];
	uint64_t counter_costs[PD_COUNTERS]; /* what a call's probe itself counts between the two readings */
	uint64_t level_costs[PD_LEVELS][PD_COUNTERS]; /* what a call's probe counts as its caller sees it */
	uint32_t probes;
	uint64_t seed;
	uint64_t costs[PD_COSTS];
	uint64_t pass_cost; /* of a call that passes the gate, as its caller sees it */
	uint64_t mark_cost; /* of one that leaves a mark */
	_Atomic uint64_t paused; /* for so long all threads stood still, in time's unit */
	struct pd_arena arena;
	struct pd_thread *threads;
	struct pd_thread *free_threads;
	uint32_t thread_count;
	uint32_t sees; /* header flags */
	bool counter_clock; /* the CPU's counter is invariant */
	uint64_t long_ticks; /* PD_LONG_NS, roughly */
	char folder[3072];
};

extern struct pd_process pd_process;

static inline uint64_t pd_clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline uint64_t pd_ticks(void)
{
#if defined(__x86_64__)
	if (pd_likely(pd_process.counter_clock))
		return __builtin_ia32_rdtsc();
	return pd_clock_ns(CLOCK_MONOTONIC);
#else
	uint64_t ticks;

	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
	return ticks;
#endif
}

/* Slow paths run with all signals blocked, under one lock, and keep errno. */
struct pd_slow {
	sigset_t signals;
	int error;
};

void pd_slow_begin(struct pd_slow *slow);
void pd_slow_end(struct pd_slow *slow);
bool pd_slow_is_ours(void);
void pd_lock_reset(void);

/*
 * The functions behind interposed ones are looked up as the library is loaded: the linker's lock, which a look-up takes, may be held for
 * ever in the child of a fork. What runs still earlier, such as constructors of libraries, has them looked up at its first call.
 */
#define PD_RESOLVE __attribute__((constructor(101), cold))

/* file.c: called inside a slow path, but for the first two */
bool pd_is_recorded_process(void);
void pd_clock_refresh(void);
bool pd_file_create(void);
bool pd_recording(void);
void *pd_arena_take(struct pd_arena *arena, size_t size);
void pd_block_publish(struct pd_block *block, uint32_t kind, uint64_t size);
void pd_stop(void);
void *pd_memory(size_t size);

/* thread.c */
struct pd_thread *pd_thread_open(void);
bool pd_thread_bind(struct pd_thread *thread); /* inside a slow path; NULL: none */
void pd_thread_free(struct pd_thread *thread); /* inside a slow path */
bool pd_local_open(struct pd_thread *thread, struct pd_local *local, uint32_t probe);
struct pd_samples *pd_segment_open(struct pd_thread *thread, struct pd_local *local, uint32_t level, uint32_t first);
PD_GENERAL struct pd_edge *pd_edge_known(const struct pd_thread *thread, uint32_t caller, uint32_t callee); /* NULL: not yet */
struct pd_edge *pd_edge_find(struct pd_thread *thread, uint32_t caller, uint32_t callee);
bool pd_threads_begin(void);
void pd_threads_forget(void);

/* preemption.c */
void pd_presence_begin(struct pd_thread *thread);
uint64_t pd_presence_ticks(const struct pd_thread *thread, uint64_t ns);
void pd_presence_mark(struct pd_thread *thread, struct pd_entry *caller);
uint64_t pd_presence_check(struct pd_thread *thread, struct pd_entry *entry, uint64_t ended);

/* Time for which the whole process stood still, in time's unit. */
static inline uint64_t pd_paused(void)
{
	return atomic_load_explicit(&pd_process.paused, memory_order_relaxed);
}

/* periods.c */
void pd_thread_count_passed(struct pd_thread *thread);
void pd_thread_settle(struct pd_thread *thread);

/* probe.c */
void pd_thread_close_calls(struct pd_thread *thread, uint64_t now, const uint64_t resources[PD_RESOURCES]);

/* counters.c */
void pd_counters_open(void);
void pd_counters_thread_open(struct pd_thread *thread);
void pd_counters_thread_close(struct pd_thread *thread);
void pd_counters_read(struct pd_thread *thread, uint64_t *values);

/* outside.c: calls that leave the project's code, told by an interpreter; those of machine code are pmu/thunks.c's */
#define PD_UNNAMED UINT32_MAX
PD_API uint32_t pd_outside_name(const char *name); /* its number, PD_UNNAMED where there is no room */
PD_API void pd_outside_call(uint32_t number);      /* one call from the innermost open one */
PD_API uint64_t pd_outside_clock(void); /* in ticks */
PD_API void pd_outside_took(uint32_t number, uint64_t ticks); /* how long one of these took */
PD_API void pd_outside_calls(uint32_t number, uint64_t calls); /* several */

/* calibration.c */
void pd_calibrate(struct pd_thread *thread);

/* features.c */
void pd_types_forget(void);

/* guard.c */
enum pd_guard { PD_GUARD_UNKNOWN, PD_GUARD_HANDLER, PD_GUARD_SYSCALL };
enum pd_guard pd_guard_find(void);
bool pd_peek(enum pd_guard guard, uintptr_t address, size_t size, uint64_t *value);
#define PD_PEEK_BLOCK 16u /* bytes */
uintptr_t pd_peek_blocks(enum pd_guard guard, uintptr_t address, uintptr_t end);
void pd_guard_begin(void);

/* process.c */
struct pd_child { /* what a child has to begin with, whether fork made it or _Fork; each part of the runtime keeps its own */
	void (*begin)(void);
	struct pd_child *next;
};
bool pd_child_add(struct pd_child *child);

enum pd_known { PD_UNTOLD_CHILD, PD_CHILD_BEGINS, PD_KNOWN_PROCESS };

/* Whether nobody told us of this child, as of a raw clone, so that nothing of what it has is its own yet. */
static inline bool pd_is_untold_child(void)
{
	return __atomic_load_n(&pd_modes[pd_process.probes], __ATOMIC_ACQUIRE) != PD_KNOWN_PROCESS;
}

/* Such a child begins as that of a fork does, once. */
void pd_child_find(void);

/* interposed functions */
void *pd_next_function(const char *name);
bool pd_allocations_seen(void);
bool pd_locks_seen(void);

static inline bool pd_is_brief(const struct pd_local *local) /* whether enough texts were read */
{
	return local->flags & PD_FLAG_BRIEF && local->text_bytes >= PD_BRIEF_BYTES;
}

static inline uint64_t pd_random(uint64_t *state) /* splitmix64 (Steele, Lea, Flood 2014) */
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

static inline uint64_t pd_random_below(uint64_t *state, uint64_t bound)
{
	return (uint64_t)((unsigned __int128)pd_random(state) * bound >> 64);
}

#endif
