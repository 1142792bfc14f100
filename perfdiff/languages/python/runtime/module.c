/*
 * `_perfdiff`: loaded at an interpreter's start where `PERFDIFF_PYTHON` names a sheet (see perfdiff/languages/python/start.py). It has no names,
 * and nothing of it is seen by the target: what it cannot do, it tells in a note.
 */
#include <stdlib.h>
#include <string.h>

#include "frames.h"

static PyCFunction exit_at_once; /* what `os._exit` was */

/* `os._exit`, by which the children of multiprocessing end: the C library's `_exit` is ours only in programs that are linked with us. */
static PyObject *end_and_exit(PyObject *module, PyObject *const *arguments, Py_ssize_t count, PyObject *names)
{
	_PyCFunctionFastWithKeywords next = (_PyCFunctionFastWithKeywords)(void (*)(void))exit_at_once;

	if (count == 1 && !names && PyLong_Check(arguments[0]))
		pd_end();
	return next(module, arguments, count, names);
}

/* Puts ours behind the built-in function, which stays the same object. */
static bool exit_watch(void)
{
	PyObject *os = PyImport_ImportModule("posix"), *function = os ? PyObject_GetAttrString(os, "_exit") : NULL;
	bool is_known = function && PyCFunction_CheckExact(function) && PyCFunction_GET_FLAGS(function) == (METH_FASTCALL | METH_KEYWORDS);

	if (is_known) {
		exit_at_once = ((PyCFunctionObject *)function)->m_ml->ml_meth;
		((PyCFunctionObject *)function)->m_ml->ml_meth = (PyCFunction)(void (*)(void))end_and_exit;
	}
	Py_XDECREF(function);
	Py_XDECREF(os);
	return is_known;
}

static PyObject *probes_check(PyObject *module, PyObject *arguments)
{
	(void)module, (void)arguments;
	if (!(pd_counting_stands ? pd_counting_stands : pd_evaluator_stands)() || !pd_monitoring_stands())
		pd_note("taken", "another tool has taken the place of the probes");
	if (pd_counting_begin)
		pd_open_tell();
	if (pd_lasting_tell)
		pd_lasting_tell();
	Py_RETURN_NONE;
}

static PyMethodDef check_method = {"probes_check", probes_check, METH_NOARGS, NULL};

/* Has it looked at whether the probes still stand, and at what is still open and allocated, when the interpreter ends. */
static bool check_at_exit(void)
{
	PyObject *registry = PyImport_ImportModule("atexit"), *check = PyCFunction_New(&check_method, NULL), *done = NULL;

	if (registry && check)
		done = PyObject_CallMethod(registry, "register", "O", check);
	Py_XDECREF(done);
	Py_XDECREF(check);
	Py_XDECREF(registry);
	return done != NULL;
}

static bool start(PyInterpreterState *interpreter)
{
	const char *sheet = getenv("PERFDIFF_PYTHON");

	if (!sheet || !pd_probes)
		return false;
	if (!pd_sheet_open(sheet) || !pd_values_begin() || !pd_attributes_begin())
		return false;
	/* Last of all ends of an interpreter: one that was interrupted kills itself then, and no destructor runs. */
	if (!exit_watch() || !check_at_exit() || Py_AtExit(pd_end))
		return false;
	if (!pd_plans_begin())
		return false;
	if (!pd_monitoring_begin())
		pd_evaluator_begin(interpreter);
	return !pd_counting_begin || pd_counting_begin();
}

static int execute(PyObject *module)
{
	PyInterpreterState *interpreter = PyInterpreterState_Get();

	(void)module;
	if (interpreter != PyInterpreterState_Main()) {
		pd_note("interpreter", "a subinterpreter's calls are not recorded");
		return 0;
	}
	if (exit_at_once)
		return 0;
	pd_note("version", PY_VERSION);
	if (!start(interpreter)) {
		PyErr_Clear();
		pd_note("failed", "the probes could not be started");
	}
	return 0;
}

static PyModuleDef_Slot slots[] = {
	{Py_mod_exec, execute},
#if PY_VERSION_HEX >= 0x030c0000
	{Py_mod_multiple_interpreters, Py_MOD_PER_INTERPRETER_GIL_SUPPORTED},
#endif
	{0, NULL},
};

static struct PyModuleDef definition = {.m_base = PyModuleDef_HEAD_INIT, .m_name = "_perfdiff", .m_slots = slots};

PyMODINIT_FUNC PyInit__perfdiff(void)
{
	return PyModuleDef_Init(&definition);
}
