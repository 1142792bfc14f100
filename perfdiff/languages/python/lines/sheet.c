/* Which lines of the sheet are those of a code object: codes of a name on one first line, that of the first decorator, are one. */
#include <string.h>

#include "lines.h"

struct pd_lines pd_foreign;

const struct pd_listed_file *pd_lines_sheet_named(PyObject *name)
{
	PyObject *bytes = PyUnicode_EncodeFSDefault(name);
	const struct pd_listed_file *found;

	if (!bytes) {
		PyErr_Clear();
		return NULL;
	}
	found = pd_lines_sheet_file(PyBytes_AS_STRING(bytes), PyBytes_AS_STRING(bytes)[0] != '<');
	Py_DECREF(bytes);
	return found;
}

struct pd_lines *pd_lines_sheet_find(PyCodeObject *code)
{
	static PyObject *last_name; /* codes of a file share its name */
	static const struct pd_listed_file *last_file;
	const char *name;

	if (code->co_filename != last_name) {
		Py_XDECREF(last_name);
		last_name = code->co_filename;
		Py_INCREF(last_name);
		last_file = pd_lines_sheet_named(last_name);
	}
	if (!last_file)
		return &pd_foreign;
	name = PyUnicode_AsUTF8(code->co_name);
	if (!name) {
		PyErr_Clear();
		return &pd_foreign;
	}
	for (struct pd_listed_code *listed = last_file->begin; listed < last_file->end; listed++)
		if (listed->first_line == (uint32_t)code->co_firstlineno && !strcmp(listed->name, name))
			return &listed->lines;
	return &pd_foreign;
}
