/*
 * Lines by the interpreter's own monitoring, from 3.12 on: codes of other files have no events, and cost nothing after their first call. A
 * jump back within a line, as of a comprehension, begins the line again, as it does for tracing; monitoring has no event of a line there.
 */
#include "lines.h"

#ifdef PD_PER_CALL
#include <string.h>

#include "../counting/allocations.h"
#endif

#if PY_VERSION_HEX >= 0x030c0000

/* Tools of these numbers have no name in the documentation of sys.monitoring. */
static const int numbers[] = {4, 3};

static int tool = -1;
static PyObject *disable;
static PyObject *set_local_events;
static PyObject *tool_number;
static PyObject *local_events;
#ifdef PD_PER_CALL
static PyObject *followed_events; /* of what is not the project's */
#endif

/* Leaves out the numbers that an event was told with, those after the code. */
static inline void leave_out(PyObject *const *arguments, Py_ssize_t numbers)
{
#ifdef PD_PER_CALL
	for (Py_ssize_t i = 1; i <= numbers; i++)
		pd_allocations_forget(arguments[i], 0);
#else
	(void)arguments, (void)numbers;
#endif
}

static PyObject *code_starts(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
	(void)self;
	leave_out(arguments, count - 1);
	if (count && PyCode_Check(arguments[0]) && !pd_codes_is_foreign(pd_codes_find((PyCodeObject *)arguments[0]))) {
		PyObject *done = PyObject_CallFunctionObjArgs(set_local_events, tool_number, arguments[0], local_events, NULL);

		if (!done)
			return NULL;
		Py_DECREF(done);
	}
	return Py_NewRef(disable);
}

static PyObject *line_begins(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
	(void)self;
	leave_out(arguments, count - 1);
	if (count == 2 && PyCode_Check(arguments[0]) && PyLong_Check(arguments[1]))
		pd_lines_count(pd_codes_find((PyCodeObject *)arguments[0])->lines, PyLong_AsLong(arguments[1]));
	Py_RETURN_NONE;
}

/* Returns the line that a jump begins again, -1 where it leads to another one. Offsets are in bytes. */
static int line_of_loop(PyCodeObject *code, long from, long to)
{
	int line = PyCode_Addr2Line(code, (int)from);

	return to < from && line == PyCode_Addr2Line(code, (int)to) ? line : -1;
}

static PyObject *jumps(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
	PyCodeObject *code = count == 3 && PyCode_Check(arguments[0]) ? (PyCodeObject *)arguments[0] : NULL;
	long from = code ? PyLong_AsLong(arguments[1]) : -1;
	struct pd_code *kept = code ? pd_codes_find(code) : NULL;
	int *line = kept && !pd_codes_is_foreign(kept) ? pd_codes_loop(kept, code, from / 2) : NULL;

	(void)self;
	leave_out(arguments, count - 1);
	if (line && !*line)
		*line = line_of_loop(code, from, PyLong_AsLong(arguments[2]));
	if (!line || *line < 0)
		return Py_NewRef(disable); /* of this jump alone */
	pd_lines_count(kept->lines, *line);
	Py_RETURN_NONE;
}

#ifdef PD_PER_CALL

static PyObject *calls(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
	(void)self;
	leave_out(arguments, count > 2 ? 1 : 0);
	if (count > 2)
		pd_calls_begin(arguments[2], pd_frame_running());
	Py_RETURN_NONE;
}

static PyObject *call_ends(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
	(void)self;
	if (count > 2)
		pd_calls_end(arguments[2], NULL);
	leave_out(arguments, count > 2 ? 1 : 0);
	Py_RETURN_NONE;
}

/* Code returns that is not the project's, to whoever has called it. */
static PyObject *code_returns(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
	(void)self;
	if (count > 2)
		pd_calls_end(arguments[0], pd_frame_behind());
	leave_out(arguments, count > 2 ? 1 : 0);
	Py_RETURN_NONE;
}

void pd_events_follow(PyCodeObject *code)
{
	PyObject *done = PyObject_CallFunctionObjArgs(set_local_events, tool_number, code, followed_events, NULL);

	if (!done)
		PyErr_Clear(); /* its calls are counted, without a time */
	Py_XDECREF(done);
}

#endif

#define FOLLOWED "PY_RETURN"

/* By the names of their events: the last one is looked for in all codes, FOLLOWED in those that are followed, the others in the sheet's files. */
static struct {
	const char *event;
	PyMethodDef callback;
} events[] = {
	{"LINE", {"line_begins", (PyCFunction)(void (*)(void))line_begins, METH_FASTCALL, NULL}},
	{"JUMP", {"jumps", (PyCFunction)(void (*)(void))jumps, METH_FASTCALL, NULL}},
#ifdef PD_PER_CALL
	{"CALL", {"calls", (PyCFunction)(void (*)(void))calls, METH_FASTCALL, NULL}},
	{"C_RETURN", {"call_returns", (PyCFunction)(void (*)(void))call_ends, METH_FASTCALL, NULL}},
	{"C_RAISE", {"call_raises", (PyCFunction)(void (*)(void))call_ends, METH_FASTCALL, NULL}},
	{FOLLOWED, {"code_returns", (PyCFunction)(void (*)(void))code_returns, METH_FASTCALL, NULL}},
#endif
	{"PY_START", {"code_starts", (PyCFunction)(void (*)(void))code_starts, METH_FASTCALL, NULL}},
};

#define EVENTS (sizeof(events) / sizeof(*events))

/* The first of our numbers that no other tool has. */
static int use_tool(PyObject *monitoring)
{
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
		PyObject *used = PyObject_CallMethod(monitoring, "use_tool_id", "is", numbers[i], "perfdiff");

		if (used) {
			Py_DECREF(used);
			return numbers[i];
		}
		if (!PyErr_ExceptionMatches(PyExc_ValueError))
			return -1;
		PyErr_Clear();
	}
	PyErr_SetString(PyExc_RuntimeError, "other tools have all free numbers of sys.monitoring");
	return -1;
}

/* Returns the event's bit, -1 with an exception. */
static long register_callback(PyObject *monitoring, PyObject *names, const char *event, PyMethodDef *callback)
{
	PyObject *bit = PyObject_GetAttrString(names, event), *function = PyCFunction_New(callback, NULL), *former = NULL;
	long found = -1;

	if (bit && function)
		former = PyObject_CallMethod(monitoring, "register_callback", "iOO", tool, bit, function);
	if (former)
		found = PyLong_AsLong(bit);
	Py_XDECREF(former);
	Py_XDECREF(function);
	Py_XDECREF(bit);
	return found;
}

static int begin(PyObject *monitoring, PyObject *names)
{
	long local = 0, bit = 0;
	PyObject *done;

	for (size_t i = 0; i < EVENTS; i++) {
		local |= bit;
		bit = register_callback(monitoring, names, events[i].event, &events[i].callback);
		if (bit < 0)
			return -1;
#ifdef PD_PER_CALL
		if (!strcmp(events[i].event, FOLLOWED)) {
			followed_events = PyLong_FromLong(bit);
			bit = 0;
		}
#endif
	}
	disable = PyObject_GetAttrString(monitoring, "DISABLE");
	set_local_events = PyObject_GetAttrString(monitoring, "set_local_events");
	local_events = PyLong_FromLong(local);
	tool_number = PyLong_FromLong(tool);
	if (!disable || !set_local_events || !local_events || !tool_number)
		return -1;
	done = PyObject_CallMethod(monitoring, "set_events", "il", tool, bit); /* of the last one: a code's start, in all codes */
	Py_XDECREF(done);
	return done ? 0 : -1;
}

int pd_events_begin(void)
{
	PyObject *monitoring = PySys_GetObject("monitoring"), *names = NULL;
	int status = -1;

	if (!monitoring)
		PyErr_SetString(PyExc_RuntimeError, "the interpreter has no sys.monitoring");
	else if ((tool = use_tool(monitoring)) >= 0 && (names = PyObject_GetAttrString(monitoring, "events")))
		status = begin(monitoring, names);
	Py_XDECREF(names);
	return status;
}

#endif
