/*
 * The evaluator of frames (PEP 523): executions of probed code are calls on the runtime's shadow stack, as those of C functions are.
 */
#include <pthread.h>

#include "frames.h"

/* From here to the end of a thread's C stack the interpreter goes on alone, as its own calls from Python to Python take no C stack. */
#define STACK_LEFT ((size_t)256 << 10)
/* In 3.12 and 3.13 calls on the C stack are counted. Calls from Python to Python take none of them without us, so we give back what they take. */
#define PD_COUNTS_C_CALLS (PY_VERSION_HEX >= 0x030c0000 && PY_VERSION_HEX < 0x030e0000)
#define RECURSION_LEFT 200
#define RECURSION_CREDIT 400

static PyInterpreterState *probed_interpreter;

/* Whether this execution only makes the generator, whose resumptions are the calls. */
static inline bool only_makes(const struct pd_plan *plan, const pd_python_frame *frame)
{
#if PY_VERSION_HEX >= 0x030b0000
	return plan->generates && frame->owner != FRAME_OWNED_BY_GENERATOR;
#else
	(void)plan, (void)frame; /* made without an execution */
	return false;
#endif
}

static __attribute__((noinline)) PyObject *evaluate_probed(PyThreadState *thread, pd_python_frame *frame, int throwing, struct pd_plan *plan)
{
	struct pd_frame call __attribute__((cleanup(pd_leave))) = {plan->number, 0, 0, 0};

	if (pd_enter(&call)) {
		if (!throwing) /* with an error set, nothing can be looked up */
			pd_features_read(&call, plan, frame);
		pd_start(&call);
	}
	return _PyEval_EvalFrameDefault(thread, frame, throwing);
}

static PyObject *evaluate(PyThreadState *thread, pd_python_frame *frame, int throwing);

#if PY_VERSION_HEX >= 0x030b0000

/* Above all places until it is known. Of the kind that is found without a call, as every Python call asks for it. */
static __thread uintptr_t stack_end __attribute__((tls_model("initial-exec"))) = UINTPTR_MAX;

static void stack_end_find(void)
{
	pthread_attr_t attributes;
	void *lowest = NULL;
	size_t size = 0;

	if (!pthread_getattr_np(pthread_self(), &attributes)) {
		pthread_attr_getstack(&attributes, &lowest, &size);
		pthread_attr_destroy(&attributes);
	}
	stack_end = (uintptr_t)lowest + (size / 4 < STACK_LEFT ? size / 4 : STACK_LEFT);
}

static inline bool is_deep(void)
{
	return pd_unlikely((uintptr_t)__builtin_frame_address(0) < stack_end);
}

/* Lets the interpreter go on alone below a frame: with our evaluator, calls that take no C stack without it would use it up. */
static __attribute__((noinline, cold)) PyObject *evaluate_deep(PyThreadState *thread, pd_python_frame *frame, int throwing)
{
	static bool is_told;
	PyObject *result;

	if (stack_end == UINTPTR_MAX) {
		stack_end_find();
		return evaluate(thread, frame, throwing);
	}
	if (!is_told)
		pd_note("deep", "calls below a deep recursion are not recorded");
	is_told = true;
	_PyInterpreterState_SetEvalFrameFunc(probed_interpreter, _PyEval_EvalFrameDefault);
	result = _PyEval_EvalFrameDefault(thread, frame, throwing);
	_PyInterpreterState_SetEvalFrameFunc(probed_interpreter, evaluate);
	return result;
}

#endif

/* The first execution of a code object. */
static __attribute__((noinline, cold)) PyObject *evaluate_new(PyThreadState *thread, pd_python_frame *frame, int throwing)
{
	struct pd_plan *plan = pd_plan_find(PD_CODE(frame), frame->f_globals);

	if (!plan->number || only_makes(plan, frame))
		return _PyEval_EvalFrameDefault(thread, frame, throwing);
	return evaluate_probed(thread, frame, throwing, plan);
}

/* All that calls without a probe do not need is behind a jump, so that they need no stack frame of ours. */
static inline PyObject *evaluate_as_planned(PyThreadState *thread, pd_python_frame *frame, int throwing)
{
	struct pd_plan *plan = pd_plan_known(PD_CODE(frame));

	if (pd_unlikely(!plan))
		return evaluate_new(thread, frame, throwing);
	if (pd_likely(!plan->number) || only_makes(plan, frame))
		return _PyEval_EvalFrameDefault(thread, frame, throwing);
	return evaluate_probed(thread, frame, throwing, plan);
}

#if PD_COUNTS_C_CALLS

static __attribute__((noinline, cold)) PyObject *evaluate_on_credit(PyThreadState *thread, pd_python_frame *frame, int throwing)
{
	PyObject *result;

	thread->c_recursion_remaining += RECURSION_CREDIT;
	result = evaluate_as_planned(thread, frame, throwing);
	thread->c_recursion_remaining -= RECURSION_CREDIT;
	return result;
}

#endif

static PyObject *evaluate(PyThreadState *thread, pd_python_frame *frame, int throwing)
{
#if PY_VERSION_HEX >= 0x030b0000
	if (is_deep())
		return evaluate_deep(thread, frame, throwing);
#endif
#if PD_COUNTS_C_CALLS
	if (pd_unlikely(thread->c_recursion_remaining < RECURSION_LEFT))
		return evaluate_on_credit(thread, frame, throwing);
#endif
	return evaluate_as_planned(thread, frame, throwing);
}

void pd_evaluator_begin(PyInterpreterState *interpreter)
{
	probed_interpreter = interpreter;
	_PyInterpreterState_SetEvalFrameFunc(interpreter, evaluate);
}

/* False where another tool has put its own evaluator in the place of ours. */
bool pd_evaluator_stands(void)
{
	return !probed_interpreter || _PyInterpreterState_GetEvalFrameFunc(probed_interpreter) == evaluate;
}
