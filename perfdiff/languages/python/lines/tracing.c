/*
 * Lines by the interpreter's tracing, below 3.12. Tracing slows all frames down, so that an evaluator of frames (PEP 523) turns it on for
 * those of the sheet's files alone; it also meets every thread, whoever started it.
 */
#include <pthread.h>

#include "lines.h"

#if PY_VERSION_HEX < 0x030c0000

#include <frameobject.h>

#ifdef PD_PER_CALL
#include "../counting/allocations.h"
#endif

#if PY_VERSION_HEX >= 0x030b0000
#define Py_BUILD_CORE
#include <internal/pycore_frame.h>
#undef Py_BUILD_CORE
typedef struct _PyInterpreterFrame frame_t;
#define CALLER(thread) ((thread)->cframe->current_frame)
#define IS_RESUMED(frame) ((frame)->owner == FRAME_OWNED_BY_GENERATOR)
#define CODE_OF_FRAME(object) ((object)->f_frame->f_code)
#define ON 255
#else
typedef PyFrameObject frame_t;
#define CALLER(thread) ((thread)->frame)
#define IS_RESUMED(frame) ((frame)->f_lasti >= 0)
#define CODE_OF_FRAME(object) ((object)->f_code)
#define ON 1
#endif

/* From here to the end of a thread's C stack the interpreter goes on without an evaluator. */
#define STACK_LEFT ((size_t)256 << 10)

static _PyFrameEvalFunction next; /* of whoever stood there before us, as a rule the interpreter's own */

/* Also told of other files' frames: the interpreter turns tracing on in those that an exception passes. */
static int event(PyObject *unused, PyFrameObject *frame, int what, PyObject *argument)
{
	struct pd_code *kept;

	(void)unused;
	(void)argument;
#ifdef PD_PER_CALL
	pd_allocations_forget(frame, PD_COLLECTED_HEAD); /* from 3.11 on, calls that are not traced have no object of theirs */
#endif
	if (what != PyTrace_LINE && what != PyTrace_C_CALL && what != PyTrace_C_RETURN && what != PyTrace_C_EXCEPTION)
		return 0;
	kept = pd_codes_find(CODE_OF_FRAME(frame));
	if (pd_codes_is_foreign(kept))
		return 0;
	if (what == PyTrace_LINE)
		pd_lines_count(kept->lines, PyFrame_GetLineNumber(frame));
#ifdef PD_PER_CALL
	else if (what == PyTrace_C_CALL)
		pd_calls_begin(argument, NULL);
	else
		pd_calls_end(argument, NULL);
#endif
	return 0;
}

#ifdef PD_PER_CALL

/* Tells of a frame of other code that one of ours has called; returns the caller, NULL where it is none of ours. */
static const frame_t *count_frame(const PyThreadState *thread, const frame_t *frame)
{
	const frame_t *caller = CALLER(thread);

	if (!caller || IS_RESUMED(frame) || pd_codes_is_foreign(pd_codes_find(caller->f_code)))
		return NULL;
	pd_calls_begin_code(frame->f_code, frame->f_globals, caller);
	return caller;
}

#endif

/* Whether tracing is ours to turn on and off: neither a debugger nor a profiler has it. */
static bool is_ours(const PyThreadState *thread)
{
	return thread->c_tracefunc == event && (!thread->c_profilefunc || thread->c_profilefunc == event) && !thread->tracing;
}

static void set_tracing(PyThreadState *thread, bool on)
{
	if (is_ours(thread))
		thread->cframe->use_tracing = on ? ON : 0;
}

static PyObject *evaluate(PyThreadState *thread, frame_t *frame, int throwing);

#if PY_VERSION_HEX >= 0x030b0000

/* Whether little is left of the thread's C stack. */
static inline bool is_deep(void)
{
	static __thread uintptr_t end; /* 0: not known yet */

	if (!end) {
		pthread_attr_t attributes;
		void *lowest = NULL;
		size_t size;

		if (!pthread_getattr_np(pthread_self(), &attributes)) {
			pthread_attr_getstack(&attributes, &lowest, &size);
			pthread_attr_destroy(&attributes);
		}
		end = (uintptr_t)lowest + STACK_LEFT;
	}
	return (uintptr_t)__builtin_frame_address(0) < end;
}

/* Without an evaluator, calls from Python to Python take no C stack: there, every frame below is traced. */
static PyObject *evaluate_deep(PyThreadState *thread, frame_t *frame, int throwing)
{
	PyObject *result;

	set_tracing(thread, true);
	_PyInterpreterState_SetEvalFrameFunc(thread->interp, next);
	result = next(thread, frame, throwing);
	_PyInterpreterState_SetEvalFrameFunc(thread->interp, evaluate);
	return result;
}

#else /* calls take C stack in any case */

static inline bool is_deep(void)
{
	return false;
}

#define evaluate_deep next

#endif

static PyObject *evaluate(PyThreadState *thread, frame_t *frame, int throwing)
{
	bool counted = !pd_codes_is_foreign(pd_codes_find(frame->f_code));
	bool before = thread->cframe->use_tracing;
	PyObject *result;
#ifdef PD_PER_CALL
	PyCodeObject *code = frame->f_code; /* the frame is gone, once it has ended */
	const frame_t *caller = NULL;
#endif

	if (counted && !thread->c_tracefunc)
		thread->c_tracefunc = event; /* as PyEval_SetTrace, but for the program's audit hooks */
#ifdef PD_PER_CALL
	if (counted && !thread->c_profilefunc)
		thread->c_profilefunc = event; /* which is told of C functions */
	if (!counted && !throwing)
		caller = count_frame(thread, frame);
#endif
	if (counted && thread->c_tracefunc != event)
		pd_counts_flag(PD_DISTURBED);
	set_tracing(thread, counted);
	result = is_deep() ? evaluate_deep(thread, frame, throwing) : next(thread, frame, throwing);
#ifdef PD_PER_CALL
	if (caller)
		pd_calls_end(code, caller);
#endif
	set_tracing(thread, before);
	return result;
}

bool pd_events_stand(void)
{
	return _PyInterpreterState_GetEvalFrameFunc(PyInterpreterState_Main()) == evaluate;
}

int pd_events_begin(void)
{
	PyInterpreterState *interpreter = PyInterpreterState_Get();

	next = _PyInterpreterState_GetEvalFrameFunc(interpreter);
	_PyInterpreterState_SetEvalFrameFunc(interpreter, evaluate);
	return 0;
}

#endif
