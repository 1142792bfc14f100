/* How long calls take that leave the project's code. */
#ifndef PD_SPANS_H
#define PD_SPANS_H

#include <stdint.h>

/*
 * Begins a call from the frame `caller`, NULL where the end is told of this call alone. `work` is what the thread has counted of the
 * project's code so far.
 */
void pd_span_begin(uint32_t number, const void *callee, const void *caller, uint64_t work);

/* Ends the call that has begun last, where it is this one. */
void pd_span_end(const void *callee, const void *caller, uint64_t work);

#endif
