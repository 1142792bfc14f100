/*
 * The evaluator of frames (PEP 523): executions of probed code are calls on the runtime's shadow stack, as those of C functions are. What a
 * code object's executions do is found at the first one and kept in its extra slot.
 */
#include <pthread.h>
#include <string.h>

#include "python_probe.h"

/* From here to the end of a thread's C stack the interpreter goes on alone, as its own calls from Python to Python take no C stack. */
#define STACK_LEFT ((size_t)256 << 10)
/* From 3.12 on calls on the C stack are counted. Calls from Python to Python take none of them without us, so we give back what they take. */
#define RECURSION_LEFT 200
#define RECURSION_CREDIT 400

#if PY_VERSION_HEX >= 0x030b0000
typedef struct _PyInterpreterFrame frame_t;
#define LOCALS(frame) ((frame)->localsplus)
#else
typedef PyFrameObject frame_t;
#define LOCALS(frame) ((frame)->f_localsplus)
#endif

#if PY_VERSION_HEX >= 0x030d0000
#define CODE(frame) ((PyCodeObject *)(frame)->f_executable)
#else
#define CODE(frame) ((frame)->f_code)
#endif

#if PY_VERSION_HEX >= 0x030c0000
#define FUNCTION(frame) ((PyFunctionObject *)(frame)->f_funcobj)
#elif PY_VERSION_HEX >= 0x030b0000
#define FUNCTION(frame) ((frame)->f_func)
#endif

/* As `Objects/codeobject.c` of all these versions has it. */
struct code_extras {
	Py_ssize_t size;
	void *extras[1];
};

static struct pd_plan no_plan; /* of code without a probe */
static Py_ssize_t extra_index;
static PyInterpreterState *probed_interpreter;

static void plan_free(void *plan)
{
	if (plan != &no_plan)
		PyMem_RawFree(plan);
}

#if PY_VERSION_HEX >= 0x030b0000

/* Finds a name among a frame's variables. */
static void variable_find(PyCodeObject *code, PyObject *name, struct pd_reader *reader)
{
	for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(code->co_localsplusnames); i++) {
		if (PyUnicode_Compare(PyTuple_GET_ITEM(code->co_localsplusnames, i), name))
			continue;
		if (_PyLocals_GetKind(code->co_localspluskinds, (int)i) & CO_FAST_FREE) {
			reader->origin = PD_FREE;
			reader->place = (int32_t)(i - (code->co_nlocalsplus - code->co_nfreevars));
		} else {
			reader->origin = PD_LOCAL;
			reader->place = (int32_t)i;
		}
		return;
	}
}

static PyObject *variable(frame_t *frame, const struct pd_reader *reader)
{
	PyObject *value;

	if (reader->origin == PD_FREE)
		value = PyTuple_GET_ITEM(FUNCTION(frame)->func_closure, reader->place);
	else
		value = LOCALS(frame)[reader->place];
	return value && PyCell_Check(value) ? PyCell_GET(value) : value;
}

#else

/* Finds a name among a frame's variables: locals, then cells, then free ones. An argument that an inner function sees lies in its cell alone. */
static void variable_find(PyCodeObject *code, PyObject *name, struct pd_reader *reader)
{
	PyObject *const groups[] = {code->co_cellvars, code->co_freevars, code->co_varnames};
	const Py_ssize_t firsts[] = {code->co_nlocals, code->co_nlocals + PyTuple_GET_SIZE(code->co_cellvars), 0};

	for (int group = 0; group < 3; group++)
		for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(groups[group]); i++)
			if (!PyUnicode_Compare(PyTuple_GET_ITEM(groups[group], i), name)) {
				reader->origin = PD_LOCAL;
				reader->place = (int32_t)(firsts[group] + i);
				return;
			}
}

static PyObject *variable(frame_t *frame, const struct pd_reader *reader)
{
	PyObject *value = LOCALS(frame)[reader->place];

	return value && PyCell_Check(value) ? PyCell_GET(value) : value;
}

#endif

static PyObject *interned(const char *name, size_t length)
{
	PyObject *text = PyUnicode_FromStringAndSize(name, (Py_ssize_t)length);

	if (text)
		PyUnicode_InternInPlace(&text);
	return text; /* for good, as the interpreter keeps names */
}

/* Makes a reader of "<how> <path>"; one whose path begins nowhere in this code reads nothing. */
static bool reader_make(PyCodeObject *code, const char *line, struct pd_reader *reader)
{
	static const char *const hows[PD_HOWS] = {"number", "length", "nested", "type", "file", "depth", "bytes", "rows", "columns"};
	size_t length = strcspn(line, " \n");
	const char *path = line + length + 1;
	PyObject *name;

	while (reader->how < PD_HOWS && (strlen(hows[reader->how]) != length || memcmp(hows[reader->how], line, length)))
		reader->how++;
	reader->origin = PD_NOWHERE;
	if (reader->how == PD_HOWS || line[length] != ' ')
		return true;
	length = strcspn(path, ".\n");
	if (*path == '@') {
		reader->origin = PD_GLOBAL;
		name = reader->global = interned(path + 1, length - 1);
	} else {
		name = interned(path, length);
		if (name)
			variable_find(code, name, reader);
	}
	if (!name)
		return false;
	for (path += length; *path == '.'; path += length) {
		path++;
		length = strcspn(path, ".\n");
		if (reader->steps == PD_STEPS) {
			reader->origin = PD_NOWHERE;
			return true;
		}
		name = reader->names[reader->steps++] = interned(path, length);
		if (!name)
			return false;
	}
	return true;
}

static struct pd_plan *plan_make(PyCodeObject *code, const struct pd_probe_text *probe)
{
	const char *line = probe->readers;
	unsigned count = 0;
	struct pd_plan *plan;

	for (; !strncmp(line, "read ", 5); line = pd_line_next(line))
		count++;
	plan = PyMem_RawCalloc(1, sizeof(*plan) + count * sizeof(plan->readers[0]));
	if (!plan)
		return &no_plan;
	plan->number = probe->number;
	plan->generates = code->co_flags & (CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR);
	plan->count = count;
	line = probe->readers;
	for (unsigned i = 0; i < count; i++, line = pd_line_next(line))
		if (!reader_make(code, line + 5, &plan->readers[i])) {
			PyErr_Clear();
			plan->readers[i].origin = PD_NOWHERE;
		}
	return plan;
}

/* Tells of a module of the project that was imported from a place that is not the tree's. */
static void module_check(frame_t *frame, const char *file)
{
	static PyObject *name_key;
	struct pd_file_text *found;
	PyObject *name;

	if (!name_key && !(name_key = PyUnicode_InternFromString("__name__")))
		return;
	name = PyDict_GetItemWithError(frame->f_globals, name_key);
	if (!name || !PyUnicode_CheckExact(name) || !PyUnicode_IS_COMPACT_ASCII(name))
		return;
	found = pd_sheet_module(PyUnicode_DATA(name));
	if (found && !pd_sheet_is_at(found, file))
		pd_note("elsewhere", file);
}

/* Finds what a code object's executions do, and keeps it. An error that is set stays set. */
static __attribute__((noinline, cold)) const struct pd_plan *plan_find(frame_t *frame)
{
	PyObject *kind, *value, *trace, *file, *name;
	PyCodeObject *code = CODE(frame);
	const struct pd_probe_text *probe;
	struct pd_plan *plan = &no_plan;

	PyErr_Fetch(&kind, &value, &trace);
	file = PyUnicode_EncodeFSDefault(code->co_filename);
	name = PyUnicode_AsUTF8String(code->co_name);
	if (file && name) {
		probe = pd_sheet_find(code->co_firstlineno, PyBytes_AS_STRING(name), PyBytes_AS_STRING(file));
		if (probe)
			plan = plan_make(code, probe);
		else if (!strcmp(PyBytes_AS_STRING(name), "<module>"))
			module_check(frame, PyBytes_AS_STRING(file));
	}
	Py_XDECREF(file);
	Py_XDECREF(name);
	if (_PyCode_SetExtra((PyObject *)code, extra_index, plan)) {
		plan_free(plan);
		plan = &no_plan;
	}
	PyErr_Restore(kind, value, trace);
	return plan;
}

static inline const struct pd_plan *plan_of(frame_t *frame)
{
	const struct code_extras *extras = CODE(frame)->co_extra;

	if (pd_likely(extras && extras->size > extra_index && extras->extras[extra_index]))
		return extras->extras[extra_index];
	return plan_find(frame);
}

static void features_read(struct pd_frame *call, struct pd_plan *plan, frame_t *frame)
{
	for (unsigned cell = 0; cell < plan->count; cell++) {
		struct pd_reader *reader = &plan->readers[cell];
		PyObject *value;

		if (reader->origin == PD_NOWHERE)
			continue;
		if (reader->origin == PD_GLOBAL)
			value = pd_item(frame->f_globals, reader->global);
		else
			value = variable(frame, reader);
		for (unsigned step = 0; value && step < reader->steps; step++)
			value = pd_attribute(value, reader->names[step], &reader->hints[step]);
		if (value)
			pd_value_read(call, cell, (enum pd_how)reader->how, value);
	}
}

/* Whether this execution only makes the generator, whose resumptions are the calls. */
static inline bool only_makes(const struct pd_plan *plan, const frame_t *frame)
{
#if PY_VERSION_HEX >= 0x030b0000
	return plan->generates && frame->owner != FRAME_OWNED_BY_GENERATOR;
#else
	(void)plan, (void)frame; /* made without an execution */
	return false;
#endif
}

static PyObject *evaluate_probed(PyThreadState *thread, frame_t *frame, int throwing, const struct pd_plan *plan)
{
	struct pd_frame call __attribute__((cleanup(pd_leave))) = {plan->number, 0, 0, 0};

	if (pd_enter(&call)) {
		if (!throwing) /* with an error set, nothing can be looked up */
			features_read(&call, (struct pd_plan *)plan, frame);
		pd_start(&call);
	}
	return _PyEval_EvalFrameDefault(thread, frame, throwing);
}

static PyObject *evaluate(PyThreadState *thread, frame_t *frame, int throwing);

#if PY_VERSION_HEX >= 0x030b0000

static __thread uintptr_t stack_end; /* 0: not known yet */

static __attribute__((noinline, cold)) uintptr_t stack_end_find(void)
{
	pthread_attr_t attributes;
	void *lowest = NULL;
	size_t size;

	if (!pthread_getattr_np(pthread_self(), &attributes)) {
		pthread_attr_getstack(&attributes, &lowest, &size);
		pthread_attr_destroy(&attributes);
	}
	return stack_end = (uintptr_t)lowest + STACK_LEFT;
}

static inline bool is_deep(void)
{
	uintptr_t end = stack_end;

	if (pd_unlikely(!end))
		end = stack_end_find();
	return pd_unlikely((uintptr_t)__builtin_frame_address(0) < end);
}

/* Lets the interpreter go on alone below a frame: with our evaluator, calls that take no C stack without it would use it up. */
static __attribute__((noinline, cold)) PyObject *evaluate_alone(PyThreadState *thread, frame_t *frame, int throwing)
{
	static bool is_told;
	PyObject *result;

	if (!is_told)
		pd_note("deep", "calls below a deep recursion are not recorded");
	is_told = true;
	_PyInterpreterState_SetEvalFrameFunc(probed_interpreter, _PyEval_EvalFrameDefault);
	result = _PyEval_EvalFrameDefault(thread, frame, throwing);
	_PyInterpreterState_SetEvalFrameFunc(probed_interpreter, evaluate);
	return result;
}

#endif

static inline PyObject *evaluate_as_planned(PyThreadState *thread, frame_t *frame, int throwing)
{
	const struct pd_plan *plan = plan_of(frame);

	if (pd_likely(!plan->number) || only_makes(plan, frame))
		return _PyEval_EvalFrameDefault(thread, frame, throwing);
	return evaluate_probed(thread, frame, throwing, plan);
}

#if PY_VERSION_HEX >= 0x030c0000

static __attribute__((noinline, cold)) PyObject *evaluate_on_credit(PyThreadState *thread, frame_t *frame, int throwing)
{
	PyObject *result;

	thread->c_recursion_remaining += RECURSION_CREDIT;
	result = evaluate_as_planned(thread, frame, throwing);
	thread->c_recursion_remaining -= RECURSION_CREDIT;
	return result;
}

#endif

static PyObject *evaluate(PyThreadState *thread, frame_t *frame, int throwing)
{
#if PY_VERSION_HEX >= 0x030b0000
	if (is_deep())
		return evaluate_alone(thread, frame, throwing);
#endif
#if PY_VERSION_HEX >= 0x030c0000
	if (pd_unlikely(thread->c_recursion_remaining < RECURSION_LEFT))
		return evaluate_on_credit(thread, frame, throwing);
#endif
	return evaluate_as_planned(thread, frame, throwing);
}

bool pd_evaluator_begin(PyInterpreterState *interpreter)
{
	extra_index = _PyEval_RequestCodeExtraIndex(plan_free);
	if (extra_index < 0)
		return false;
	probed_interpreter = interpreter;
	_PyInterpreterState_SetEvalFrameFunc(interpreter, evaluate);
	return true;
}

/* False where another tool has put its own evaluator in the place of ours. */
bool pd_evaluator_stands(PyInterpreterState *interpreter)
{
	return _PyInterpreterState_GetEvalFrameFunc(interpreter) == evaluate;
}
