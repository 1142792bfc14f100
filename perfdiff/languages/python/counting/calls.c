/*
 * Calls from the project's code of what is not the project's, by name: built-in functions and methods, types of the interpreter, functions
 * of the standard library and of packages; and how long they take. Calls that C code makes are its own.
 */
#include <string.h>

#include "../../c/runtime/runtime.h"
#include "../../interpreted/counting/spans.h"
#include "../lines/lines.h"
#include "allocations.h"

#define MOST_NAME 256
#define MAKES (CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR)

/* What a callable stands for, kept for as long as the process lives, and its number. */
struct known {
	const void *key;
	uint32_t number;
};

static struct known *table; /* open addressing */
static size_t table_mask, table_used;

static struct known *place(const void *key)
{
	size_t i = ((uintptr_t)key >> 4) * 0x9e3779b97f4a7c15u >> 20 & table_mask;

	while (table[i].key && table[i].key != key)
		i = (i + 1) & table_mask;
	return &table[i];
}

static bool table_grow(void)
{
	struct known *former = table;
	size_t size = table ? table_mask + 1 : 0, larger = size ? 2 * size : 256;
	struct known *made = PyMem_RawCalloc(larger, sizeof(*made));

	if (!made)
		return false;
	table = made;
	table_mask = larger - 1;
	for (size_t i = 0; i < size; i++)
		if (former[i].key)
			*place(former[i].key) = former[i];
	PyMem_RawFree(former);
	return true;
}

/* Finds the place of a key; NULL where there is no room. A new one has no key yet. */
static struct known *find(const void *key)
{
	if (2 * table_used >= table_mask && !table_grow())
		return NULL;
	return place(key);
}

static void keep(struct known *known, const void *key, const char *owner, const char *name)
{
	char full[MOST_NAME];
	int length = !strcmp(owner, "builtins") ? snprintf(full, sizeof(full), "%s", name) : snprintf(full, sizeof(full), "%s.%s", owner, name);

	known->key = key;
	known->number = length > 0 && length < MOST_NAME ? pd_outside_name(full) : PD_UNNAMED;
	table_used++;
}

static const char *text(PyObject *object)
{
	const char *found = object && PyUnicode_Check(object) ? PyUnicode_AsUTF8(object) : NULL;

	if (!found)
		PyErr_Clear();
	return found ? found : "?";
}

/* The type in whose table of methods one stands: what inherits it has it under the same name. */
static const char *owner_of_method(const PyMethodDef *method, PyTypeObject *type)
{
	for (Py_ssize_t i = 0; type->tp_mro && i < PyTuple_GET_SIZE(type->tp_mro); i++) {
		PyTypeObject *base = (PyTypeObject *)PyTuple_GET_ITEM(type->tp_mro, i);

		for (const PyMethodDef *one = base->tp_methods; one && one->ml_name; one++)
			if (one == method)
				return base->tp_name;
	}
	return type->tp_name;
}

/* Counts a call of something; returns its number, PD_UNNAMED where it has none. */
static uint32_t count(const struct known *known)
{
	if (!known)
		return PD_UNNAMED;
	pd_outside_call(known->number);
	return known->number;
}

static uint32_t count_built_in(PyCFunctionObject *function)
{
	struct known *known = find(function->m_ml);
	PyObject *self = function->m_self;

	if (known && !known->key) {
		const char *owner = text(function->m_module);

		if (self && !PyModule_Check(self))
			owner = owner_of_method(function->m_ml, PyType_Check(self) ? (PyTypeObject *)self : Py_TYPE(self));
		keep(known, function->m_ml, owner, function->m_ml->ml_name);
	}
	return count(known);
}

static uint32_t count_method(PyMethodDescrObject *method)
{
	struct known *known = find(method->d_method);

	if (known && !known->key)
		keep(known, method->d_method, PyDescr_TYPE(method)->tp_name, method->d_method->ml_name);
	return count(known);
}

static uint32_t count_type(PyTypeObject *type)
{
	struct known *known = type->tp_flags & Py_TPFLAGS_HEAPTYPE ? NULL : find(type);

	if (known && !known->key)
		keep(known, type, "builtins", type->tp_name);
	return count(known);
}

static uint32_t count_code(PyCodeObject *code, PyObject *globals)
{
	struct known *known = pd_codes_is_foreign(pd_codes_find(code)) ? find(code) : NULL;

	if (known && !known->key) {
#if PY_VERSION_HEX >= 0x030b0000
		PyObject *name = code->co_qualname;
#else
		PyObject *name = code->co_name;
#endif

		keep(known, code, text(PyDict_GetItemString(globals, "__name__")), text(name));
		Py_INCREF(code); /* its address stands for it */
#if PY_VERSION_HEX >= 0x030c0000
		if (!(code->co_flags & MAKES))
			pd_events_follow(code);
#endif
	}
	return count(known);
}

/* A call of what makes a generator or coroutine has done nothing yet: it has no time. */
static uint32_t to_be_timed(const PyCodeObject *code, uint32_t number)
{
	return code->co_flags & MAKES ? PD_UNNAMED : number;
}

void pd_calls_begin_code(PyCodeObject *code, PyObject *globals, const void *caller)
{
	uint32_t number;

	pd_allocations_pause(true);
	number = to_be_timed(code, count_code(code, globals));
	pd_allocations_pause(false);
	if (number != PD_UNNAMED)
		pd_span_begin(number, code, caller, pd_lines_begun);
}

void pd_calls_begin(PyObject *called, const void *caller)
{
	PyObject *callable = PyMethod_Check(called) ? PyMethod_GET_FUNCTION(called) : called;
	uint32_t number = PD_UNNAMED;

	if (PyFunction_Check(callable)) {
		pd_calls_begin_code((PyCodeObject *)PyFunction_GET_CODE(callable), PyFunction_GET_GLOBALS(callable), caller);
		return;
	}
	pd_allocations_pause(true);
	if (PyCFunction_Check(callable))
		number = count_built_in((PyCFunctionObject *)callable);
	else if (Py_IS_TYPE(callable, &PyMethodDescr_Type))
		number = count_method((PyMethodDescrObject *)callable);
	else if (PyType_Check(callable))
		number = count_type((PyTypeObject *)callable);
	pd_allocations_pause(false);
	if (number != PD_UNNAMED)
		pd_span_begin(number, called, NULL, pd_lines_begun);
}

void pd_calls_end(const void *callee, const void *caller)
{
	pd_span_end(callee, caller, pd_lines_begun);
}
