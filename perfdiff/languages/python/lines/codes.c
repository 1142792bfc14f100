/* What is kept of code objects, in the slot that the interpreter has for such things in each of them. */
#include "lines.h"

#ifdef PD_PER_CALL
#include "../counting/allocations.h"
#endif

#if PY_VERSION_HEX >= 0x030c0000
#define GET PyUnstable_Code_GetExtra
#define SET PyUnstable_Code_SetExtra
#define REQUEST PyUnstable_Eval_RequestCodeExtraIndex
#else
#define GET _PyCode_GetExtra
#define SET _PyCode_SetExtra
#define REQUEST _PyEval_RequestCodeExtraIndex
#endif

#if PY_VERSION_HEX >= 0x030b0000
#define UNITS(code) Py_SIZE(code)
#else
#define UNITS(code) (PyBytes_GET_SIZE((code)->co_code) / 2)
#endif

static Py_ssize_t slot = -1;
static struct pd_code foreign = {&pd_foreign, NULL, 0}; /* of all codes without a counted line */

/* Of a code that only others keep something of, nothing is. */
static void forget(void *kept)
{
	if (!kept || kept == &foreign)
		return;
	PyMem_RawFree(((struct pd_code *)kept)->loops);
	PyMem_RawFree(kept);
}

int pd_codes_begin(void)
{
	slot = REQUEST(forget);
	return slot < 0 ? -1 : 0;
}

static struct pd_code *make(struct pd_lines *lines)
{
	struct pd_code *kept = lines == &pd_foreign ? &foreign : PyMem_RawCalloc(1, sizeof(*kept));

	if (!kept)
		return &foreign;
	kept->lines = lines;
	return kept;
}

static struct pd_code *look_up(PyCodeObject *code)
{
	PyObject *type, *value, *traceback; /* a generator may be about to have an exception thrown into it */
	struct pd_code *kept;

#ifdef PD_PER_CALL
	pd_allocations_pause(true);
#endif
	PyErr_Fetch(&type, &value, &traceback);
	kept = make(pd_lines_sheet_find(code));
	if (SET((PyObject *)code, slot, kept)) {
		PyErr_Clear();
		forget(kept);
		kept = &foreign;
	}
	PyErr_Restore(type, value, traceback);
#ifdef PD_PER_CALL
	pd_allocations_pause(false);
#endif
	return kept;
}

struct pd_code *pd_codes_find(PyCodeObject *code)
{
	void *kept = NULL;

	if (GET((PyObject *)code, slot, &kept) || !kept)
		return look_up(code);
	return kept;
}

int *pd_codes_loop(struct pd_code *kept, PyCodeObject *code, Py_ssize_t unit)
{
	if (!kept->loops) {
		kept->units = UNITS(code);
		kept->loops = PyMem_RawCalloc((size_t)kept->units, sizeof(*kept->loops));
	}
	return kept->loops && unit >= 0 && unit < kept->units ? &kept->loops[unit] : NULL;
}
