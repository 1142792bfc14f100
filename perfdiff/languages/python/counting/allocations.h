/* What the calling thread has asked the interpreter for so far. */
#ifndef PD_ALLOCATIONS_H
#define PD_ALLOCATIONS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>

#include "../runtime/pause.h"

struct pd_allocations {
	uint64_t count;
	uint64_t bytes;
};

extern __thread struct pd_allocations pd_allocations;

#define PD_COLLECTED_HEAD (2 * sizeof(uintptr_t)) /* before an object that the collector follows */

void pd_allocations_begin(void);
PyMemAllocatorEx pd_allocations_before(PyMemAllocatorEx *next); /* one that counts what `next`, its context, gives */
void pd_arrays_look(void); /* arrays.c */
void pd_lasting_begin(void); /* lasting.c */

#endif
