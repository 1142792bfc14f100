/* Memory of threads' own for what they count: PerfdiffCounts.java writes it without a call of ours. */
#ifndef PERFDIFF_JAVA_COUNTS_H
#define PERFDIFF_JAVA_COUNTS_H

#include <jni.h>
#include <stdbool.h>
#include <stdint.h>

/* Of a thread. What follows depends on what is counted. Its offsets are PerfdiffCounts.java's. */
struct pd_counted {
	uint64_t thread; /* its number in Java */
	uint64_t pending; /* functions that were called since the calls were last put down to a probe */
	uint64_t blocks;
	uint64_t objects;
	uint64_t object_bytes;
	uint64_t reserved[3];
	uint64_t rest[]; /* calls by function, then the pending functions; or counts of lines */
};

/* threads' memory: memory.c */
bool pd_memory_begin(JNIEnv *environment, size_t rest);
struct pd_counted *pd_memory_own(void); /* NULL while the thread has counted nothing */

/* What makes it, and is told that a thread has ended: calls.c, or ../lines/file.c */
struct pd_counted *pd_counted_make(size_t bytes);
void pd_counted_empty(struct pd_counted *counted); /* another thread takes it */
#define PD_NOT_COUNTED "counts leave out calls in virtual threads"
void pd_counted_virtual(void); /* a virtual thread, whose counts are not kept */

/* calls.c */
bool pd_calls_open(const char *path);
bool pd_calls_begin(JNIEnv *environment);
void pd_calls_settle(void); /* the calls so far were made by the probed call that is open */
void pd_collection_count(void);

/* heap.c */
bool pd_heap_open(void);
void pd_heap_begin(JNIEnv *environment);
void pd_heap_find(JNIEnv *environment);
uint64_t pd_heap_bytes(void);
void pd_heap_lose(void); /* the thread ends */

#endif
