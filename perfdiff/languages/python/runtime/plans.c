/* What the executions of a code object do: found at the first one, and kept in its extra slot. */
#include <stdio.h>
#include <string.h>

#include "frames.h"

#if PY_VERSION_HEX >= 0x030c0000
#include <opcode.h>

#define CONDITIONS 256 /* of a function, at most: the survey looks at all of them */
#endif

Py_ssize_t pd_extra_index = -1;

static struct pd_plan no_plan; /* of code without a probe */

static void plan_free(void *plan)
{
	if (plan && plan != &no_plan) {
		PyMem_RawFree(((struct pd_plan *)plan)->outcomes);
		PyMem_RawFree(plan);
	}
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

static PyObject *variable(pd_python_frame *frame, const struct pd_reader *reader)
{
	PyObject *value;

	if (reader->origin == PD_FREE)
		value = PyTuple_GET_ITEM(PD_FUNCTION(frame)->func_closure, reader->place);
	else
		value = PD_LOCAL(frame, reader->place);
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

static PyObject *variable(pd_python_frame *frame, const struct pd_reader *reader)
{
	PyObject *value = PD_LOCAL(frame, reader->place);

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

#if PY_VERSION_HEX >= 0x030c0000

/* A condition's line of the sheet. */
struct condition {
	char asks; /* the first letter of "true", "none" or "some" */
	int place[4];
};

/* Returns how many conditions the lines tell of, at most `room`. */
static unsigned conditions_read(const char *line, struct condition *conditions, unsigned room)
{
	unsigned count = 0;

	for (; count < room && !strncmp(line, "branch ", 7); line = pd_line_next(line), count++) {
		int *place = conditions[count].place;

		conditions[count].asks = line[7];
		if (sscanf(line + 7, "%*s %d %d %d %d", &place[0], &place[1], &place[2], &place[3]) != 4)
			place[0] = -1;
	}
	return count;
}

/* What a conditional jump tells of a condition at its place; 0 where it decides none. */
static uint16_t outcome_of(int opcode, const int place[4], const struct condition *conditions, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		if (memcmp(conditions[i].place, place, sizeof(conditions[i].place)))
			continue;
		if (opcode == POP_JUMP_IF_TRUE || opcode == POP_JUMP_IF_FALSE)
			return pd_outcome(i, opcode == POP_JUMP_IF_TRUE);
		return pd_outcome(i, (opcode == POP_JUMP_IF_NONE) == (conditions[i].asks == 'n'));
	}
	return 0;
}

/* Finds the jumps that decide conditions, by the places in the text that the compiler gives them; NULL where there are none. */
static uint16_t *outcomes_find(PyCodeObject *code, const char *line, Py_ssize_t *units)
{
	struct condition conditions[CONDITIONS];
	unsigned count = conditions_read(line, conditions, CONDITIONS);
	PyObject *text = count ? PyCode_GetCode(code) : NULL; /* as it was before any event was set */
	uint16_t *outcomes;

	if (!text) {
		PyErr_Clear();
		return NULL;
	}
	*units = PyBytes_GET_SIZE(text) / 2;
	outcomes = PyMem_RawCalloc((size_t)*units + 1, sizeof(*outcomes));
	for (Py_ssize_t i = 0; outcomes && i < *units; i++) {
		int opcode = (unsigned char)PyBytes_AS_STRING(text)[2 * i], place[4];

		if (opcode != POP_JUMP_IF_TRUE && opcode != POP_JUMP_IF_FALSE && opcode != POP_JUMP_IF_NONE && opcode != POP_JUMP_IF_NOT_NONE)
			continue;
		if (PyCode_Addr2Location(code, (int)(2 * i), &place[0], &place[1], &place[2], &place[3]))
			outcomes[i] = outcome_of(opcode, place, conditions, count);
	}
	Py_DECREF(text);
	return outcomes;
}

#endif

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
#if PY_VERSION_HEX >= 0x030c0000
	plan->outcomes = outcomes_find(code, line, &plan->units);
#endif
	return plan;
}

/* Tells of a module of the project that was imported from a place that is not the tree's. Code that was made while it ran has no file. */
static void module_check(PyObject *globals, const char *file)
{
	static PyObject *name_key;
	struct pd_file_text *found;
	const char *relative; /* behind the module's name */
	PyObject *name;

	if (file[0] == '<')
		return;
	if (!name_key && !(name_key = PyUnicode_InternFromString("__name__")))
		return;
	name = PyDict_GetItemWithError(globals, name_key);
	if (!name || !PyUnicode_CheckExact(name) || !PyUnicode_IS_COMPACT_ASCII(name))
		return;
	found = pd_sheet_module(PyUnicode_DATA(name));
	if (!found || pd_file_is_at(found, file))
		return;
	relative = strchr(found->name, ' ') + 1;
	pd_note_misplaced(file, relative, pd_line_length(relative));
}

/* Finds what a code object's executions do, and keeps it. An error that is set stays set. */
struct pd_plan *pd_plan_find(PyCodeObject *code, PyObject *globals)
{
	PyObject *kind, *value, *trace, *file, *name;
	const struct pd_probe_text *probe;
	struct pd_plan *plan = &no_plan;

	if (pd_allocations_pause)
		pd_allocations_pause(true);
	PyErr_Fetch(&kind, &value, &trace);
	file = PyUnicode_EncodeFSDefault(code->co_filename);
	name = PyUnicode_AsUTF8String(code->co_name);
	if (file && name) {
		probe = pd_sheet_find(code->co_firstlineno, PyBytes_AS_STRING(name), PyBytes_AS_STRING(file));
		if (probe && !pd_is_off(probe->number))
			plan = plan_make(code, probe);
		else if (!probe && !strcmp(PyBytes_AS_STRING(name), "<module>"))
			module_check(globals, PyBytes_AS_STRING(file));
	}
	Py_XDECREF(file);
	Py_XDECREF(name);
	if (_PyCode_SetExtra((PyObject *)code, pd_extra_index, plan)) {
		plan_free(plan);
		plan = &no_plan;
	}
	PyErr_Restore(kind, value, trace);
	if (pd_allocations_pause)
		pd_allocations_pause(false);
	return plan;
}

/* Reads the features of a call that begins, or goes on. */
void pd_features_read(struct pd_frame *call, struct pd_plan *plan, pd_python_frame *frame)
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

bool pd_plans_begin(void)
{
	pd_extra_index = _PyEval_RequestCodeExtraIndex(plan_free);
	return pd_extra_index >= 0;
}
