/* The frames of all versions under the same names. */
#ifndef PERFDIFF_PYTHON_FRAMES_H
#define PERFDIFF_PYTHON_FRAMES_H

#include "python_probe.h"

#if PY_VERSION_HEX >= 0x030b0000
typedef struct _PyInterpreterFrame pd_python_frame;
#if PY_VERSION_HEX >= 0x030e0000
#define PD_LOCAL(frame, place) PyStackRef_AsPyObjectBorrow((frame)->localsplus[place])
#else
#define PD_LOCAL(frame, place) ((frame)->localsplus[place])
#endif
#else
typedef PyFrameObject pd_python_frame;
#define PD_LOCAL(frame, place) ((frame)->f_localsplus[place])
#endif

#if PY_VERSION_HEX >= 0x030e0000
#define PD_CODE(frame) ((PyCodeObject *)PyStackRef_AsPyObjectBorrow((frame)->f_executable))
#elif PY_VERSION_HEX >= 0x030d0000
#define PD_CODE(frame) ((PyCodeObject *)(frame)->f_executable)
#else
#define PD_CODE(frame) ((frame)->f_code)
#endif

#if PY_VERSION_HEX >= 0x030e0000
#define PD_FUNCTION(frame) ((PyFunctionObject *)PyStackRef_AsPyObjectBorrow((frame)->f_funcobj))
#elif PY_VERSION_HEX >= 0x030c0000
#define PD_FUNCTION(frame) ((PyFunctionObject *)(frame)->f_funcobj)
#elif PY_VERSION_HEX >= 0x030b0000
#define PD_FUNCTION(frame) ((frame)->f_func)
#endif

#if PY_VERSION_HEX >= 0x030c0000
static inline pd_python_frame *frame_current(void)
{
#if PY_VERSION_HEX >= 0x030d0000
	return PyThreadState_GetUnchecked()->current_frame;
#else
	return _PyThreadState_UncheckedGet()->cframe->current_frame;
#endif
}
#endif

/* plans.c */
extern Py_ssize_t pd_extra_index; /* of the slot that code objects have for us */

bool pd_plans_begin(void);
struct pd_plan *pd_plan_find(PyCodeObject *code, PyObject *globals) __attribute__((cold));
void pd_features_read(struct pd_frame *call, struct pd_plan *plan, pd_python_frame *frame);

/* As `Objects/codeobject.c` of all these versions has it. */
struct pd_code_extras {
	Py_ssize_t size;
	void *extras[1];
};

/* NULL before its first execution. */
static inline struct pd_plan *pd_plan_known(const PyCodeObject *code)
{
	const struct pd_code_extras *extras = code->co_extra;

	return pd_likely(extras && extras->size > pd_extra_index) ? extras->extras[pd_extra_index] : NULL;
}

static inline struct pd_plan *pd_plan_of(pd_python_frame *frame)
{
	struct pd_plan *plan = pd_plan_known(PD_CODE(frame));

	return pd_likely(plan) ? plan : pd_plan_find(PD_CODE(frame), frame->f_globals);
}

#endif
