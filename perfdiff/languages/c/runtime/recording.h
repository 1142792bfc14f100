/* The recording of a process, as it lies in its file. docs/architecture/records.md describes it; perfdiff/records/recording.py reads it. */
#ifndef PD_RECORDING_H
#define PD_RECORDING_H

#include <stdint.h>

#define PD_RECORDING_MAGIC "PDREC1\0"
#define PD_RECORDING_VERSION 3u
#define PD_BYTE_ORDER 0x01020304u
#define PD_EXTENT_MAGIC 0x58454450u /* "PDEX" */
#define PD_TIME_FRACTION 8          /* times are ticks with this many binary places */
#define PD_LENGTHS 32               /* classes of calls by length; the last one has all that are longer */
#define PD_COUNTERS 24              /* of a process, at most */
#define PD_ABSENT UINT64_MAX        /* the value of a counter that could not be read */

enum pd_recording_flag {
	PD_ENDED = 1,     /* the process ended by exit, _exit or return from main */
	PD_FULL = 2,      /* recording stopped: no space, or no access to the file any more */
	PD_SEES_ALLOCATIONS = 4,
	PD_SEES_LOCKS = 8,
	PD_SEES_WAITS = 16, /* for locks, not how long they are held */
	PD_KNOWS_LASTING = 32, /* what was still allocated at its end by exit */
};

enum pd_cost {
	PD_COST_COUNTED,       /* a counted call, as its caller sees it */
	PD_COST_TIMED,         /* a timed call, as its caller sees it */
	PD_COST_TIMED_INNER,   /* between the two time stamps of an empty timed call */
	PD_COST_SAMPLED,       /* a sampled call, as its caller sees it, reading of cells apart */
	PD_COST_SAMPLED_INNER,
	PD_COSTS,
};

struct pd_instant {
	uint64_t ticks;
	uint64_t ns; /* CLOCK_MONOTONIC */
};

enum pd_counter_flag {
	PD_COUNTER_EXACT = 1,       /* the same whenever the same work is done */
	PD_COUNTER_MULTIPLEXED = 2, /* counted part of the time, and scaled */
};

struct pd_counter {
	char name[56];
	uint32_t flags;
	uint32_t reserved;
};

struct pd_header {
	char magic[8];
	uint32_t version;
	uint32_t byte_order;
	uint32_t header_size; /* where the first extent begins */
	uint32_t flags;
	uint32_t pid;
	uint32_t parent_pid;
	uint32_t probes;
	uint32_t newest;             /* which of `latest` is whole */
	struct pd_instant started;
	struct pd_instant latest[2]; /* taken in turn, so that a killed process has a whole one */
	uint64_t started_unix_ns;
	uint64_t end;                /* where the last extent ends */
	uint64_t costs[PD_COSTS];    /* already taken off all times */
	char program[1024];
	char argv0[1024];
	uint32_t counter_count;
	uint32_t reserved;
	struct pd_counter counters[PD_COUNTERS];
};

struct pd_extent {
	uint32_t magic;
	uint32_t thread; /* from 1; 0: the process */
	uint64_t size;   /* this header included */
};

enum pd_block_kind { PD_NO_BLOCK, PD_BLOCK_TOTALS, PD_BLOCK_EDGES, PD_BLOCK_SAMPLES, PD_BLOCK_TYPE };

struct pd_block {
	uint32_t kind; /* written last */
	uint32_t reserved;
	uint64_t size; /* this header included, a multiple of 8 */
};

/* One probe in one thread. "Outer" calls are those with no other call of the same probe below them on the stack. */
struct pd_totals {
	struct pd_block block;
	uint32_t probe;
	uint32_t mode;
	uint64_t calls;
	uint64_t finished;
	uint64_t outer_finished;
	uint64_t timed;
	uint64_t weight;       /* calls that the timed ones stand for */
	uint64_t outer_weight; /* the same of outer calls */
	uint64_t unfinished;   /* left by longjmp and the like, or still open when the thread or process ended */
	int64_t wall;          /* of timed outer calls, times their weights */
	int64_t self;          /* of timed calls, times their weights */
	uint64_t resources[4]; /* of timed outer calls, times their weights, by enum pd_resource */
	uint32_t lengths[PD_LENGTHS]; /* calls that timed ones stand for, by log2 of their wall time in ticks, with PD_FLAG_LENGTHS */
	uint64_t read;         /* calls whose cells were read */
	uint64_t reading;      /* ticks that this took */
	uint64_t flagged;    /* calls whose counters were read */
	uint64_t counters[]; /* of these; PD_ABSENT where one was absent in any of them */
};

enum pd_resource { PD_ALLOC_BYTES, PD_ALLOC_COUNT, PD_LOCK_WAIT, PD_LOCK_HOLD, PD_RESOURCES }; /* locks: in ticks */

struct pd_edge {
	uint32_t caller; /* 0: the start of the thread */
	uint32_t callee;
	uint64_t calls;
	int64_t wall;    /* of timed outer calls of the callee, times their weights */
};

struct pd_edges {
	struct pd_block block;
	uint32_t capacity;
	uint32_t reserved;
	struct pd_edge edges[]; /* those with calls are in use */
};

/* Memory that is allocated as a process ends, by the call that allocated it. Those with PD_KNOWS_LASTING in the header are complete. */
#define PD_BLOCK_LASTING 8u

struct pd_lasting_block {
	struct pd_block block;
	uint32_t probe; /* of the innermost call that was open; 0: none */
	uint32_t is_line;
	uint64_t blocks;
	uint64_t bytes;
	uint64_t offset; /* of the call, as the object's symbols count; the line of a source file where it `is_line` */
	uint64_t length; /* of the path of the object, or of the source file, which follows, filled up to 8 bytes */
};

/* What a process has open as it ends: file descriptors, those of the runtime among them, and threads, the one that ends it among them. */
#define PD_BLOCK_OPEN 9u

struct pd_open_block {
	struct pd_block block;
	uint64_t descriptors;
	uint64_t threads;
};

#define PD_BLOCK_FUNCTION 7u
#define PD_LIBRARY (UINT32_C(1) << 31) /* edges lead to `PD_LIBRARY | number` */
#define PD_TIMED (UINT32_C(1) << 30)   /* beside it: an edge of those of its calls that were timed, with their time */

/* Names a function outside of the project. */
struct pd_function_block {
	struct pd_block block;
	uint32_t number;
	uint32_t unseen; /* some of its calls are not counted */
	uint64_t length;
	char name[];
};

struct pd_samples {
	struct pd_block block;
	uint32_t probe;
	uint32_t first;    /* index of the first record in the thread's reservoir */
	uint32_t capacity; /* records */
	uint32_t cells;    /* of a record */
	uint64_t records[];
};

/* A record: struct pd_sample with its counters, (cells + 63) / 64 mask words (the word of cells 0 to 63 last), then the cells. */
struct pd_sample {
	uint64_t call; /* which call of the probe in the thread, from 1; 0: empty; written last */
	int64_t wall;
	int64_t self;
	uint64_t callee_calls;
	uint64_t resources[PD_RESOURCES];
	uint64_t weight; /* calls it stands for, before the reservoir's choice */
	uint64_t counters[];
};

struct pd_type_name {
	struct pd_block block;
	uint64_t vtable;
	uint32_t length;
	uint32_t reserved;
	char name[];
};

#endif
