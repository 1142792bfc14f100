/*
 * Memory for the data of NumPy's arrays, counted as what the interpreter is asked for: NumPy has an allocator of its own, which its table of
 * functions gives (PEP 445 does not reach it). It stays what it is, and so does each array's; its functions are called through ours.
 */
#include "allocations.h"

#define VERSION 211 /* places in NumPy's table of functions, which never move */
#define HANDLER 305
#define SINCE 0x0f /* 1.22 */

struct allocator {
	void *context;
	void *(*malloc)(void *context, size_t size);
	void *(*calloc)(void *context, size_t number, size_t size);
	void *(*realloc)(void *context, void *former, size_t size);
	void (*free)(void *context, void *memory, size_t size);
};

struct handler {
	char name[127];
	uint8_t version;
	struct allocator allocator;
};

static struct allocator theirs;

static void release(void *context __attribute__((unused)), void *memory, size_t size)
{
	theirs.free(theirs.context, memory, size);
}

/* Stands before the functions of the allocator that every thread and context has; a program that chose another one keeps it. */
static void stand_before(void **table)
{
	static PyMemAllocatorEx next; /* NumPy's but for `free`, which is told the size */
	PyMemAllocatorEx ours;
	PyObject *chosen = ((PyObject * (*)(void)) table[HANDLER])();
	struct handler *handler = chosen ? PyCapsule_GetPointer(chosen, "mem_handler") : NULL;

	if (handler && handler->version == 1 && !strcmp(handler->name, "default_allocator")) {
		theirs = handler->allocator;
		next = (PyMemAllocatorEx){theirs.context, theirs.malloc, theirs.calloc, theirs.realloc, NULL};
		ours = pd_allocations_before(&next);
		handler->allocator = (struct allocator){ours.ctx, ours.malloc, ours.calloc, ours.realloc, release};
	}
	Py_XDECREF(chosen);
}

/* Returns NumPy's table of functions, or NULL where the program has not imported it. */
static void **table_find(PyObject *modules)
{
	static const char *const names[] = {"numpy._core._multiarray_umath", "numpy.core._multiarray_umath"};
	void **table = NULL;

	for (size_t i = 0; i < sizeof(names) / sizeof(*names) && !table; i++) {
		PyObject *module = PyDict_GetItemString(modules, names[i]);
		PyObject *capsule = module ? PyObject_GetAttrString(module, "_ARRAY_API") : NULL;

		table = capsule ? PyCapsule_GetPointer(capsule, NULL) : NULL;
		Py_XDECREF(capsule);
		PyErr_Clear();
	}
	return table;
}

/* Looks whether the program has imported NumPy meanwhile. The caller holds the interpreter's lock. */
void pd_arrays_look(void)
{
	static Py_ssize_t seen;
	static bool is_done;
	PyObject *modules = is_done || PyErr_Occurred() ? NULL : PyImport_GetModuleDict();
	void **table;

	if (!modules || PyDict_Size(modules) == seen)
		return;
	seen = PyDict_Size(modules);
	pd_allocations_pause(true);
	table = table_find(modules);
	if (table && ((unsigned (*)(void))table[VERSION])() >= SINCE)
		stand_before(table);
	is_done = table != NULL;
	PyErr_Clear();
	pd_allocations_pause(false);
}
