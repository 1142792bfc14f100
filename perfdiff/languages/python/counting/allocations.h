/* What the calling thread has asked the interpreter for so far. */
#ifndef PD_ALLOCATIONS_H
#define PD_ALLOCATIONS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

struct pd_allocations {
	uint64_t count;
	uint64_t bytes;
};

extern __thread struct pd_allocations pd_allocations;

#define PD_COLLECTED_HEAD (2 * sizeof(uintptr_t)) /* before an object that the collector follows */

void pd_allocations_begin(void);

/* For what tells of events, in this folder and in others: these are known to the module that counts alone. */
void pd_allocations_pause(bool pauses) __attribute__((weak, visibility("hidden")));
void pd_allocations_forget(const void *object, size_t head) __attribute__((weak, visibility("hidden")));

#endif
