/* Counting of lines in a Python process: what the parts share. */
#ifndef PD_LINES_H
#define PD_LINES_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

#include "../../interpreted/lines/code_lines.h"
#include "../../interpreted/lines/counts.h"

/* Codes that stand in no file of the sheet. */
extern struct pd_lines pd_foreign;

#ifdef PD_PER_CALL
/* Lines that the thread has begun: probes read it at a call's start and end. */
extern __thread uint64_t pd_lines_begun;

/* Count a call from the frame `caller` of the project's code: of what it names, or of code that is not the project's, with its globals. */
void pd_calls_begin(PyObject *callable, const void *caller);
void pd_calls_begin_code(PyCodeObject *code, PyObject *globals, const void *caller);

/* Such a call has ended: of a callable that is no Python function, without its caller, or of a code object. */
void pd_calls_end(const void *callee, const void *caller);

/* The frame that runs, and the one that is behind it, from 3.12 on. */
const void *pd_frame_running(void);
const void *pd_frame_behind(void);

/* Have the end of a code object's calls told, from 3.12 on. */
void pd_events_follow(PyCodeObject *code);
#endif

/* The file of the sheet that a code's name of its file means, NULL where it is none. */
const struct pd_listed_file *pd_lines_sheet_named(PyObject *name);

struct pd_lines *pd_lines_sheet_find(PyCodeObject *code); /* never NULL */

/* What is kept of a code object. `loops` has, for each instruction that jumps back within its line, that line: 0 where it is not known yet. */
struct pd_code {
	struct pd_lines *lines;
	int *loops;
	Py_ssize_t units; /* of two bytes: instructions and what belongs to them */
};

int pd_codes_begin(void);
struct pd_code *pd_codes_find(PyCodeObject *code); /* never NULL; looked up at the first call of each code */
int *pd_codes_loop(struct pd_code *kept, PyCodeObject *code, Py_ssize_t unit); /* NULL where there is no room */

static inline bool pd_codes_is_foreign(const struct pd_code *kept)
{
	return kept->lines == &pd_foreign;
}

int pd_events_begin(void); /* has every line of the sheet's files counted from here on, in all threads */

#if PY_VERSION_HEX < 0x030c0000
bool pd_events_stand(void); /* whether nobody has put another evaluator of frames in front of ours */
#endif

static inline void pd_lines_count(const struct pd_lines *lines, long line)
{
	uint32_t place = pd_lines_place(lines, (uint32_t)line);

	if (place == PD_NO_PLACE)
		return;
#ifdef PD_PER_CALL
	pd_lines_begun++;
#else
	if (pd_counts)
		pd_counts[place]++;
#endif
}

#endif
