/*
 * `_perfdiff` of a run whose lines are counted: loaded at an interpreter's start where `PERFDIFF_PYTHON` names a sheet (see
 * perfdiff/languages/python/places.py). It has no names, and the target sees nothing of it: what it cannot count is missed by who reads.
 */
#include <stdlib.h>

#include "lines.h"

#if PY_VERSION_HEX < 0x030a0000 || PY_VERSION_HEX >= 0x030f0000 || defined(Py_GIL_DISABLED)
#error "CPython 3.10 to 3.14 with its lock is supported: nothing else keeps two threads from counting a line at the same time"
#endif

static int execute(PyObject *module)
{
	const char *sheet = getenv("PERFDIFF_PYTHON"), *folder = getenv("PERFDIFF_PLACES");
	static bool begun;
	uint64_t places = 0;
	int status;

	(void)module;
	if (begun || !sheet || !folder || PyInterpreterState_Get() != PyInterpreterState_Main())
		return 0; /* what subinterpreters run is not counted */
	begun = true;
	status = pd_lines_sheet_read(sheet, &places);
	if (pd_counts_open(folder, places) || status || pd_codes_begin() || pd_events_begin()) {
		PyErr_Clear();
		pd_counts_flag(PD_DISTURBED);
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
