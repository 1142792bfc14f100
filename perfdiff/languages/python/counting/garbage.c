/*
 * Collections of garbage, by the interpreter's own statistics, and their time by the clock: between the two calls of our entry in the collector's
 * list of functions (`gc.callbacks`). They run as fast in a counted run as ever, but for what finalizers allocate.
 */
#define PY_SSIZE_T_CLEAN
#define Py_BUILD_CORE_MODULE 1
#include <Python.h>
#include <internal/pycore_interp.h>
#include <time.h>

#include "garbage.h"

static PyInterpreterState *interpreter; /* NULL before the first look */

static __thread uint64_t begun_ns; /* 0: none goes on */
static uint64_t spent_ns; /* of the process: the lock is held */

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static PyObject *collects(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
	(void)self;
	if (count && PyUnicode_Check(arguments[0]) && PyUnicode_CompareWithASCIIString(arguments[0], "start") == 0) {
		begun_ns = now_ns();
	} else if (begun_ns) {
		spent_ns += now_ns() - begun_ns;
		begun_ns = 0;
	}
	Py_RETURN_NONE;
}

static PyMethodDef method = {"collects", (PyCFunction)(void (*)(void))collects, METH_FASTCALL, NULL};

bool pd_garbage_begin(void)
{
	PyObject *function = PyCFunction_New(&method, NULL), *module = PyImport_ImportModule("gc");
	PyObject *list = module ? PyObject_GetAttrString(module, "callbacks") : NULL;
	bool begins = function && list && PyList_CheckExact(list) && !PyList_Append(list, function);

	Py_XDECREF(list);
	Py_XDECREF(module);
	Py_XDECREF(function);
	interpreter = PyInterpreterState_Get();
	return begins;
}

bool pd_garbage_collects(void)
{
	return interpreter && interpreter->gc.collecting;
}

/* Of the process: those that other threads set off meanwhile are among them. */
uint64_t pd_garbage_collections(void)
{
	uint64_t sum = 0;

	for (int generation = 0; interpreter && generation < NUM_GENERATIONS; generation++)
		sum += (uint64_t)interpreter->gc.generation_stats[generation].collections;
	return sum;
}

/* Of the process, in all. */
uint64_t pd_garbage_ns(void)
{
	return spent_ns;
}
