/*
 * Memory that the program still has as its interpreter ends, as `tracemalloc` follows it, by the nearest line of the project's own code that was
 * running when it was asked for. What waits for a collection of garbage is collected first, as the interpreter is about to do. That is done where
 * `PERFDIFF_LASTING` asks for it: following takes as long again as the calls themselves, and several times as long where these do little else.
 */
#include <stdlib.h>
#include <unistd.h>

#include "../../c/runtime/perfdiff_probe.h"
#include "../lines/lines.h"
#include "allocations.h"

#define FRAMES 8 /* of libraries between the project's code and what allocates: more are not followed */

static pid_t beginning; /* what a child of a fork has from its parent is not told from its own */

static PyObject *call(const char *name, PyObject *argument)
{
	PyObject *module = PyImport_ImportModule("_tracemalloc"), *answer = NULL, *function;

	function = module ? PyObject_GetAttrString(module, name) : NULL;
	if (function)
		answer = argument ? PyObject_CallFunctionObjArgs(function, argument, NULL) : PyObject_CallFunctionObjArgs(function, NULL);
	Py_XDECREF(function);
	Py_XDECREF(module);
	return answer;
}

/* Leaves a program alone that follows its memory itself. */
void pd_lasting_begin(void)
{
	PyObject *is_followed, *frames, *begun = NULL;

	if (!getenv("PERFDIFF_LASTING"))
		return;
	is_followed = call("is_tracing", NULL);
	frames = PyLong_FromLong(FRAMES);
	if (is_followed == Py_False && frames)
		begun = call("start", frames);
	if (begun)
		beginning = getpid();
	Py_XDECREF(begun);
	Py_XDECREF(frames);
	Py_XDECREF(is_followed);
	PyErr_Clear();
}

/* Returns the path in the tree of a file of the project's, None of another; NULL where that failed. What was asked is kept in `files`. */
static PyObject *own_file(PyObject *files, PyObject *name)
{
	PyObject *path = PyDict_GetItemWithError(files, name);
	const struct pd_listed_file *file;

	if (path || PyErr_Occurred())
		return path;
	file = pd_lines_sheet_named(name);
	path = Py_BuildValue("y", file ? file->in_tree : NULL); /* None of NULL */
	if (!path || PyDict_SetItem(files, name, path))
		return NULL;
	Py_DECREF(path);
	return path;
}

/* Returns the nearest frame of the project's code, as its file and its line; NULL where there is none. Frames come innermost first. */
static PyObject *own_place(PyObject *files, PyObject *frames)
{
	for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(frames); i++) {
		PyObject *frame = PyTuple_GET_ITEM(frames, i);
		PyObject *path = own_file(files, PyTuple_GET_ITEM(frame, 0));

		if (!path)
			return NULL;
		if (path != Py_None)
			return PyTuple_Pack(2, path, PyTuple_GET_ITEM(frame, 1));
	}
	return NULL;
}

/* Adds a trace, (domain, size, frames, …), to the sums of its place: blocks and bytes. */
static int add(PyObject *files, PyObject *sums, PyObject *trace)
{
	PyObject *place = own_place(files, PyTuple_GET_ITEM(trace, 2)), *before, *after;
	unsigned long blocks = 0, bytes = 0;
	int failed;

	if (!place)
		return PyErr_Occurred() ? -1 : 0;
	before = PyDict_GetItemWithError(sums, place);
	if (before && !PyArg_ParseTuple(before, "kk", &blocks, &bytes))
		return -1;
	after = Py_BuildValue("(kk)", blocks + 1, bytes + PyLong_AsUnsignedLong(PyTuple_GET_ITEM(trace, 1)));
	failed = !after || PyDict_SetItem(sums, place, after);
	Py_XDECREF(after);
	Py_DECREF(place);
	return failed ? -1 : 0;
}

static bool sum(PyObject *sums, PyObject *traces)
{
	PyObject *files = PyDict_New();
	bool done = files != NULL;

	for (Py_ssize_t i = 0; done && i < PyList_GET_SIZE(traces); i++)
		done = !add(files, sums, PyList_GET_ITEM(traces, i));
	Py_XDECREF(files);
	return done;
}

static bool write_all(PyObject *sums)
{
	PyObject *place, *sum;
	Py_ssize_t position = 0;

	while (PyDict_Next(sums, &position, &place, &sum)) {
		const char *path;
		unsigned long line, blocks, bytes;

		if (!PyArg_ParseTuple(place, "yk", &path, &line) || !PyArg_ParseTuple(sum, "kk", &blocks, &bytes))
			return false;
		if (!pd_lasting_line(path, (unsigned)line, blocks, bytes))
			return false;
	}
	return true;
}

/* Called as the last of what a program has called at its exit. */
void pd_lasting_tell(void)
{
	PyObject *is_followed, *traces, *sums;

	if (beginning != getpid())
		return;
	PyGC_Collect();
	pd_allocations_pause(true);
	is_followed = call("is_tracing", NULL); /* a program may end it */
	traces = is_followed == Py_True ? call("_get_traces", NULL) : NULL;
	Py_XDECREF(is_followed);
	Py_XDECREF(call("stop", NULL));
	sums = PyDict_New();
	if (traces && sums && PyList_CheckExact(traces) && sum(sums, traces) && write_all(sums))
		pd_lasting_known();
	Py_XDECREF(sums);
	Py_XDECREF(traces);
	PyErr_Clear();
	pd_allocations_pause(false);
}
