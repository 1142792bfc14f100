/* What the parts of the agent share: a JVMTI agent that puts woven classes in the place of a project's own, by way of perfdiff's runtime. */
#ifndef PERFDIFF_JAVA_PROBE_H
#define PERFDIFF_JAVA_PROBE_H

#include <jni.h>
#include <jvmti.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <perfdiff_probe.h>

#define pd_likely(condition) __builtin_expect(!!(condition), 1)
#define pd_unlikely(condition) __builtin_expect(!!(condition), 0)

/* A class as it is loaded, and what is loaded in its place. */
struct pd_woven {
	const char *name; /* internal, `com/acme/Box`, without an end */
	size_t name_length;
	uint64_t digest; /* of the class file */
	size_t length;
	const unsigned char *bytes; /* of the woven one */
	size_t bytes_length;
	const struct pd_woven *next; /* of the same place in the table */
};

/* sheet.c */
bool pd_sheet_open(const char *path);
const struct pd_woven *pd_sheet_named(const char *name, const struct pd_woven *after);
uint64_t pd_class_digest(const unsigned char *bytes, size_t length);

/* events.c */
bool pd_events_begin(JavaVM *machine);

/* upkeep.c */
void pd_upkeep_tell(uint64_t run_ns, uint64_t collected_ns);

/* threads.c */
bool pd_threads_begin(JNIEnv *environment);
bool pd_thread_is_recorded(JNIEnv *environment, const char *left_out);

/* mounting.c */
extern bool pd_virtual_are_followed;
void pd_virtual_follow(jvmtiEnv *tools);
void pd_virtual_begin(JNIEnv *environment);

/* probes.c */
void pd_reading_drop(void);

#endif
