/*
 * How long calls take that leave the project's code, by the clock: C code and Python code of others runs as fast in a counted run as ever, but for
 * what it allocates (docs/howto/python.md has figures). Calls in which code of the project runs are not timed, as lines are counted there; so
 * one place a thread is enough: whatever begins within a call comes from such code.
 */
#include "../runtime/frames.h"

#include "../../c/runtime/runtime.h"
#include "../lines/lines.h"
#include "spans.h"

static __thread struct {
	const void *callee; /* NULL: no call */
	const void *caller;
	uint32_t number;
	uint64_t lines; /* that the thread had begun */
	uint64_t start;
} span;

void pd_span_begin(uint32_t number, const void *callee, const void *caller)
{
	span.callee = callee;
	span.caller = caller;
	span.number = number;
	span.lines = pd_lines_begun;
	span.start = pd_outside_clock();
}

void pd_span_end(const void *callee, const void *caller)
{
	uint64_t now;

	if (span.callee != callee || span.caller != caller)
		return;
	now = pd_outside_clock();
	if (span.lines == pd_lines_begun && now > span.start)
		pd_outside_took(span.number, now - span.start);
	span.callee = NULL;
}

#if PY_VERSION_HEX >= 0x030c0000

const void *pd_frame_running(void)
{
	return frame_current();
}

const void *pd_frame_behind(void)
{
	return frame_current()->previous;
}

#endif
