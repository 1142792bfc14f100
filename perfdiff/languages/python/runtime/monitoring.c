/*
 * Calls by the interpreter's own monitoring, from 3.12 on: code without a probe has no events but a first one, and runs as it does without
 * us. A call stands on the runtime's shadow stack under the address of its frame. That a frame is left by an exception, or entered by one,
 * is told of all frames or of none.
 */
#include "frames.h"

#if PY_VERSION_HEX >= 0x030c0000

enum event { EVENT_START, EVENT_RESUME, EVENT_RETURN, EVENT_YIELD, EVENT_UNWIND, EVENT_THROW, EVENT_BRANCH, EVENTS };

static const char *const names[EVENTS] = {"PY_START", "PY_RESUME", "PY_RETURN", "PY_YIELD", "PY_UNWIND", "PY_THROW", "BRANCH"};
/* A conditional jump that does not jump goes on behind itself, from 3.13 on behind its cache, from 3.14 on behind NOT_TAKEN; none jumps to there. */
#define NEXT (PY_VERSION_HEX >= 0x030e0000 ? 6 : PY_VERSION_HEX >= 0x030d0000 ? 4 : 2)
/* Tools of these numbers have no name in the documentation of sys.monitoring. */
static const int numbers[] = {4, 3};

static PyObject *disable, *set_local_events, *tool_number, *local_events, *branch_events;
static int tool = -1;
static long global_events;

/* An execution of probed code begins, or goes on. One that an exception is thrown into reads no features, as with the evaluator. */
static void call_begin(struct pd_plan *plan, pd_python_frame *frame, bool reads)
{
	struct pd_frame call = {plan->number, 0, 0, 0};

	if (pd_passes(plan->number) || !pd_enter_keyed(&call, frame))
		return;
	if (reads)
		pd_features_read(&call, plan, frame);
	pd_start(&call);
}

/* Leaves out the place in the code that an event was told with, where allocations are counted. */
static inline void leave_out(PyObject *const *arguments, Py_ssize_t count)
{
	if (pd_allocations_forget && count > 1)
		pd_allocations_forget(arguments[1], 0);
}

static PyObject *code_starts(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
	pd_python_frame *frame = frame_current();
	struct pd_plan *plan = pd_plan_of(frame);
	PyObject *done;

	(void)self;
	leave_out(arguments, count);
	if (!plan->number)
		return Py_NewRef(disable);
	if (pd_unlikely(!plan->is_watched)) {
		if (pd_allocations_pause)
			pd_allocations_pause(true);
		done = PyObject_CallFunctionObjArgs(set_local_events, tool_number, arguments[0], plan->outcomes ? branch_events : local_events, NULL);
		if (pd_allocations_pause)
			pd_allocations_pause(false);
		if (!done)
			return NULL;
		Py_DECREF(done);
		plan->is_watched = true;
	}
	call_begin(plan, frame, true);
	Py_RETURN_NONE;
}

static PyObject *code_resumes(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
	pd_python_frame *frame = frame_current();
	struct pd_plan *plan = pd_plan_of(frame);

	(void)self;
	leave_out(arguments, count);
	if (plan->number)
		call_begin(plan, frame, true);
	Py_RETURN_NONE;
}

static PyObject *code_is_thrown_into(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
	pd_python_frame *frame = frame_current();
	struct pd_plan *plan = pd_plan_of(frame);

	(void)self;
	leave_out(arguments, count);
	if (plan->number)
		call_begin(plan, frame, false);
	Py_RETURN_NONE;
}

static PyObject *code_is_left(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
	pd_python_frame *frame = frame_current();
	const struct pd_plan *plan = pd_plan_of(frame);

	(void)self;
	leave_out(arguments, count);
	if (plan->number)
		pd_leave_keyed(plan->number, frame);
	Py_RETURN_NONE;
}

/* A jump that decides no condition of ours is not told of again. */
static PyObject *code_branches(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
	const struct pd_plan *plan = count == 3 ? pd_plan_known((PyCodeObject *)arguments[0]) : NULL;
	Py_ssize_t from = plan && plan->outcomes ? PyLong_AsSsize_t(arguments[1]) : -1;
	unsigned outcome = from >= 0 && from / 2 < plan->units ? plan->outcomes[from / 2] : 0;
	bool jumps;

	(void)self;
	if (!outcome)
		return Py_NewRef(disable);
	jumps = PyLong_AsSsize_t(arguments[2]) > from + NEXT;
	pd_branch_keyed(frame_current(), outcome / 2 - 1, jumps == (outcome & 1));
	Py_RETURN_NONE;
}

static PyMethodDef callbacks[EVENTS] = {
	[EVENT_START] = {"code_starts", (PyCFunction)(void (*)(void))code_starts, METH_FASTCALL, NULL},
	[EVENT_RESUME] = {"code_resumes", (PyCFunction)(void (*)(void))code_resumes, METH_FASTCALL, NULL},
	[EVENT_RETURN] = {"code_returns", (PyCFunction)(void (*)(void))code_is_left, METH_FASTCALL, NULL},
	[EVENT_YIELD] = {"code_yields", (PyCFunction)(void (*)(void))code_is_left, METH_FASTCALL, NULL},
	[EVENT_UNWIND] = {"code_unwinds", (PyCFunction)(void (*)(void))code_is_left, METH_FASTCALL, NULL},
	[EVENT_THROW] = {"code_is_thrown_into", (PyCFunction)(void (*)(void))code_is_thrown_into, METH_FASTCALL, NULL},
	[EVENT_BRANCH] = {"code_branches", (PyCFunction)(void (*)(void))code_branches, METH_FASTCALL, NULL},
};

/* Takes the first of our numbers that no other tool has; -1 where all are taken. */
static int use_tool(PyObject *monitoring)
{
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
		PyObject *used = PyObject_CallMethod(monitoring, "use_tool_id", "is", numbers[i], "perfdiff");

		Py_XDECREF(used);
		if (used)
			return numbers[i];
		PyErr_Clear();
	}
	return -1;
}

/* Registers a callback; returns its event's bit, 0 where that fails. */
static long callback_register(PyObject *monitoring, PyObject *events, enum event event)
{
	PyObject *bit = PyObject_GetAttrString(events, names[event]), *function = PyCFunction_New(&callbacks[event], NULL), *former = NULL;
	long value = bit ? PyLong_AsLong(bit) : 0;

	if (bit && function)
		former = PyObject_CallMethod(monitoring, "register_callback", "iOO", tool, bit, function);
	Py_XDECREF(bit);
	Py_XDECREF(function);
	Py_XDECREF(former);
	return former ? value : 0;
}

static bool begin(PyObject *monitoring, PyObject *events)
{
	long bits[EVENTS];
	PyObject *done;

	for (int event = 0; event < EVENTS; event++)
		if (!(bits[event] = callback_register(monitoring, events, (enum event)event)))
			return false;
	disable = PyObject_GetAttrString(monitoring, "DISABLE");
	set_local_events = PyObject_GetAttrString(monitoring, "set_local_events");
	tool_number = PyLong_FromLong(tool);
	local_events = PyLong_FromLong(bits[EVENT_RESUME] | bits[EVENT_RETURN] | bits[EVENT_YIELD]);
	branch_events = PyLong_FromLong(bits[EVENT_RESUME] | bits[EVENT_RETURN] | bits[EVENT_YIELD] | bits[EVENT_BRANCH]);
	if (!disable || !set_local_events || !tool_number || !local_events || !branch_events)
		return false;
	global_events = bits[EVENT_START] | bits[EVENT_UNWIND] | bits[EVENT_THROW];
	done = PyObject_CallMethod(monitoring, "set_events", "il", tool, global_events);
	Py_XDECREF(done);
	return done != NULL;
}

bool pd_monitoring_begin(void)
{
	PyObject *monitoring = PySys_GetObject("monitoring"), *events = monitoring ? PyObject_GetAttrString(monitoring, "events") : NULL;
	bool begins;

	tool = events ? use_tool(monitoring) : -1;
	begins = tool >= 0 && begin(monitoring, events);
	Py_XDECREF(events);
	PyErr_Clear();
	return begins;
}

/* False where other code has taken our events away. */
bool pd_monitoring_stands(void)
{
	PyObject *monitoring = tool < 0 ? NULL : PySys_GetObject("monitoring");
	PyObject *events = monitoring ? PyObject_CallMethod(monitoring, "get_events", "i", tool) : NULL;
	bool stands = tool < 0 || (events && PyLong_AsLong(events) == global_events);

	Py_XDECREF(events);
	PyErr_Clear();
	return stands;
}

#else

bool pd_monitoring_begin(void)
{
	return false;
}

bool pd_monitoring_stands(void)
{
	return true;
}

#endif
