/* What leads calls of functions outside of the project's code to their counts: library.c finds the functions, thunks.c counts. */
#ifndef PD_THUNKS_H
#define PD_THUNKS_H

#include "../runtime.h"

#define PD_THUNKS 1024 /* large programs call some hundred functions of libraries */
#define PD_THUNK_BYTES 128

/* A function outside, from the first object that calls it on. Two of one name, of several versions, are two. */
struct pd_function {
	const void *target; /* NULL: not counted */
	const char *name;
};

/* By number, each with its thunk. Hidden, as the thunks find it by its distance from them. */
extern struct pd_function pd_functions[PD_THUNKS] __attribute__((visibility("hidden")));
extern char pd_thunks[] __attribute__((visibility("hidden")));

static inline uintptr_t pd_thunk(uint32_t number)
{
	return (uintptr_t)(pd_thunks + number * PD_THUNK_BYTES);
}

static inline bool pd_is_thunk(uintptr_t address)
{
	return address - pd_thunk(0) < PD_THUNKS * PD_THUNK_BYTES;
}

void pd_thunks_begin(void); /* before any call comes to a thunk */

/* library.c: names new functions in the recording; under the slow path's lock */
void pd_functions_publish(void);

#endif
