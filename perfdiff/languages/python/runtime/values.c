/*
 * What is read of a value: numbers, lengths, types, files; bounded in time, and never by code of the target's. A type written in Python takes
 * part as far as it inherits what a built-in type does.
 */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "python_probe.h"

#define NESTED_MOST 1024 /* elements whose lengths are added up; a longer container's would take microseconds */
#define LENGTHS 64u      /* functions of which is known whether they may be called */

/* Built-in types whose length is found without running other code. */
static const char *const sized[] = {
	"list", "tuple", "str", "bytes", "bytearray", "dict", "set", "frozenset", "range", "memoryview", "dict_keys", "dict_values",
	"dict_items", "collections.deque", "collections.OrderedDict", "array.array", "numpy.ndarray",
};

/* The first members of numpy's `PyArrayObject`, which its binary interface keeps. */
struct array {
	PyObject_HEAD
	char *data;
	int dimensions;
	Py_ssize_t *shape;
	Py_ssize_t *strides;
};

enum scalar { SCALAR_I8, SCALAR_I16, SCALAR_I32, SCALAR_I64, SCALAR_U8, SCALAR_U16, SCALAR_U32, SCALAR_U64, SCALAR_F32, SCALAR_BOOL, SCALARS };

static const char *const scalar_names[SCALARS] = {
	"numpy.int8", "numpy.int16", "numpy.int32", "numpy.int64", "numpy.uint8", "numpy.uint16", "numpy.uint32", "numpy.uint64",
	"numpy.float32", "numpy.bool",
};

/* The value of a numpy scalar, behind the object's head. */
struct scalar_object {
	PyObject_HEAD
	union {
		int8_t i8;
		int16_t i16;
		int32_t i32;
		int64_t i64;
		uint8_t u8;
		uint16_t u16;
		uint32_t u32;
		uint64_t u64;
		float f32;
	} value;
};

static struct {
	lenfunc function;
	bool is_harmless;
} lengths[LENGTHS];

static PyObject *str_name, *raw_paths_name, *module_name; /* "_str", "_raw_paths", "__module__" */

bool pd_values_begin(void)
{
	str_name = PyUnicode_InternFromString("_str");
	raw_paths_name = PyUnicode_InternFromString("_raw_paths");
	module_name = PyUnicode_InternFromString("__module__");
	return str_name && raw_paths_name && module_name;
}

/* A type made in C, which no Python code can change. */
static bool is_fixed(const PyTypeObject *type)
{
	return !(type->tp_flags & Py_TPFLAGS_HEAPTYPE) || type->tp_flags & Py_TPFLAGS_IMMUTABLETYPE;
}

static lenfunc length_of(const PyTypeObject *type)
{
	if (type->tp_as_sequence && type->tp_as_sequence->sq_length)
		return type->tp_as_sequence->sq_length;
	return type->tp_as_mapping ? type->tp_as_mapping->mp_length : NULL;
}

/* Whether a type has its length from one of the types above: then a class has no `__len__` of its own. */
static __attribute__((noinline)) bool is_sized_as_built_in(const PyTypeObject *type, lenfunc function)
{
	for (Py_ssize_t i = 0; type->tp_mro && i < PyTuple_GET_SIZE(type->tp_mro); i++) {
		const PyTypeObject *origin = (const PyTypeObject *)PyTuple_GET_ITEM(type->tp_mro, i);

		if (!is_fixed(origin) || length_of(origin) != function)
			continue;
		for (size_t known = 0; known < sizeof(sized) / sizeof(sized[0]); known++)
			if (!strcmp(origin->tp_name, sized[known]))
				return true;
	}
	return false;
}

static bool is_harmless(const PyTypeObject *type, lenfunc function)
{
	uintptr_t place = (uintptr_t)function >> 4;

	for (uint32_t i = 0; i < LENGTHS; i++, place++) {
		if (lengths[place % LENGTHS].function == function)
			return lengths[place % LENGTHS].is_harmless;
		if (!lengths[place % LENGTHS].function) {
			lengths[place % LENGTHS].function = function;
			return lengths[place % LENGTHS].is_harmless = is_sized_as_built_in(type, function);
		}
	}
	return is_sized_as_built_in(type, function);
}

static bool length_read(PyObject *value, Py_ssize_t *length)
{
	const PyTypeObject *type = Py_TYPE(value);
	lenfunc function;

	if (PyList_CheckExact(value) || PyTuple_CheckExact(value) || PyBytes_CheckExact(value)) {
		*length = Py_SIZE(value);
		return true;
	}
	if (PyUnicode_CheckExact(value)) {
		*length = PyUnicode_GET_LENGTH(value);
		return true;
	}
	function = length_of(type);
	if (!function || !is_harmless(type, function))
		return false;
	*length = function(value);
	if (pd_unlikely(*length < 0)) { /* a memory view that was released, an array without dimensions */
		PyErr_Clear();
		return false;
	}
	return true;
}

static bool scalar_read(const struct scalar_object *object, double *number)
{
	const char *name = Py_TYPE(object)->tp_name;
	int scalar = 0;

	if (!is_fixed(Py_TYPE(object)) || strncmp(name, "numpy.", 6))
		return false;
	while (scalar < SCALARS && strcmp(name, scalar_names[scalar]) && (scalar != SCALAR_BOOL || strcmp(name, "numpy.bool_")))
		scalar++;
	switch (scalar) {
	case SCALAR_I8:
		*number = object->value.i8;
		return true;
	case SCALAR_I16:
		*number = object->value.i16;
		return true;
	case SCALAR_I32:
		*number = object->value.i32;
		return true;
	case SCALAR_I64:
		*number = (double)object->value.i64;
		return true;
	case SCALAR_BOOL:
	case SCALAR_U8:
		*number = object->value.u8;
		return true;
	case SCALAR_U16:
		*number = object->value.u16;
		return true;
	case SCALAR_U32:
		*number = object->value.u32;
		return true;
	case SCALAR_U64:
		*number = (double)object->value.u64;
		return true;
	case SCALAR_F32:
		*number = (double)object->value.f32;
		return true;
	default:
		return false;
	}
}

/* Types that are told by a bit of their flags, and have no number. */
#define NO_NUMBER                                                                                                                                \
	(Py_TPFLAGS_LIST_SUBCLASS | Py_TPFLAGS_TUPLE_SUBCLASS | Py_TPFLAGS_BYTES_SUBCLASS | Py_TPFLAGS_UNICODE_SUBCLASS | Py_TPFLAGS_DICT_SUBCLASS)

/* An int of one digit, which most are: up to 2^30. */
static bool small_int_read(const PyLongObject *value, double *number)
{
#if PY_VERSION_HEX >= 0x030c0000
	if (!PyUnstable_Long_IsCompact(value))
		return false;
	*number = (double)PyUnstable_Long_CompactValue(value);
#else
	Py_ssize_t digits = Py_SIZE(value); /* of a negative number below 0; zero has none, but room for one */

	if (digits < -1 || digits > 1)
		return false;
	*number = (double)(digits * (Py_ssize_t)value->ob_digit[0]);
#endif
	return true;
}

static bool number_read(PyObject *value, double *number)
{
	if (PyFloat_CheckExact(value)) {
		*number = PyFloat_AS_DOUBLE(value);
		return true;
	}
	if (!PyLong_Check(value)) {
		if (PyType_HasFeature(Py_TYPE(value), NO_NUMBER) || value == Py_None)
			return false;
		if (!PyFloat_Check(value))
			return scalar_read((const struct scalar_object *)value, number);
		*number = PyFloat_AS_DOUBLE(value);
		return true;
	}
	if (small_int_read((const PyLongObject *)value, number))
		return true;
	*number = PyLong_AsDouble(value);
	if (pd_unlikely(*number == -1.0) && PyErr_Occurred()) { /* larger than any double */
		PyErr_Clear();
		return false;
	}
	return true;
}

/* Adds up the lengths of a container's elements; false where one has none, or where they are too many to look at. */
static bool nested_read(PyObject *value, uint64_t *sum)
{
	Py_ssize_t count, length, place = 0;
	PyObject *element;

	*sum = 0;
	if (PyDict_CheckExact(value)) {
		if (PyDict_GET_SIZE(value) > NESTED_MOST)
			return false;
		while (PyDict_Next(value, &place, NULL, &element)) {
			if (!length_read(element, &length))
				return false;
			*sum += (uint64_t)length;
		}
		return true;
	}
	if (!PyList_Check(value) && !PyTuple_Check(value))
		return false;
	count = Py_SIZE(value);
	if (count > NESTED_MOST)
		return false;
	for (; place < count; place++) {
		element = PyList_Check(value) ? PyList_GET_ITEM(value, place) : PyTuple_GET_ITEM(value, place);
		if (!element || !length_read(element, &length))
			return false;
		*sum += (uint64_t)length;
	}
	return true;
}

static void type_read(struct pd_frame *frame, unsigned cell, PyTypeObject *type)
{
	PyObject *module, *name;
	char text[512];

	if (!pd_type_of(frame, cell, type))
		return;
	if (!(type->tp_flags & Py_TPFLAGS_HEAPTYPE)) {
		pd_type_tell(type, type->tp_name);
		return;
	}
	module = type->tp_dict ? pd_item(type->tp_dict, module_name) : NULL;
	name = ((PyHeapTypeObject *)type)->ht_qualname;
	if (module && PyUnicode_Check(module) && PyUnicode_IS_COMPACT_ASCII(module) && PyUnicode_IS_COMPACT_ASCII(name)) {
		snprintf(text, sizeof(text), "%s.%s", (const char *)PyUnicode_DATA(module), (const char *)PyUnicode_DATA(name));
		pd_type_tell(type, text);
	} else {
		pd_type_tell(type, type->tp_name);
	}
}

/* The string behind a path: a `pathlib` path is read as far as it was written out, or made of one part. */
static PyObject *path_text(PyObject *value)
{
	uint32_t hint = 0;
	PyObject *text, *parts;

	if (PyUnicode_Check(value) || PyBytes_Check(value))
		return value;
	if (strcmp(Py_TYPE(value)->tp_name, "PosixPath"))
		return NULL;
	text = pd_attribute(value, str_name, &hint);
	if (!text && (parts = pd_attribute(value, raw_paths_name, &hint)) && PyList_CheckExact(parts) && PyList_GET_SIZE(parts) == 1)
		text = PyList_GET_ITEM(parts, 0);
	return text && PyUnicode_Check(text) ? text : NULL;
}

static void path_read(struct pd_frame *frame, unsigned cell, enum pd_how how, PyObject *value)
{
	void (*read)(struct pd_frame *, unsigned, const void *) = how == PD_FILE ? pd_file : pd_depth;
	PyObject *text = path_text(value), *encoded;

	if (!text)
		return;
	if (PyBytes_Check(text)) {
		read(frame, cell, PyBytes_AS_STRING(text));
	} else if (PyUnicode_IS_COMPACT_ASCII(text)) {
		read(frame, cell, PyUnicode_DATA(text));
	} else {
		encoded = PyUnicode_EncodeFSDefault(text);
		if (encoded)
			read(frame, cell, PyBytes_AS_STRING(encoded));
		else
			PyErr_Clear();
		Py_XDECREF(encoded);
	}
}

static void array_read(struct pd_frame *frame, unsigned cell, enum pd_how how, PyObject *value)
{
	const struct array *array = (const struct array *)value;
	int dimension = how == PD_COLUMNS;
	Py_buffer view;

	if (!is_fixed(Py_TYPE(value)) || strcmp(Py_TYPE(value)->tp_name, "numpy.ndarray"))
		return;
	if (how != PD_BYTES) {
		if (dimension < array->dimensions)
			pd_unsigned(frame, cell, (pd_cell_t)array->shape[dimension]);
	} else if (!PyObject_GetBuffer(value, &view, PyBUF_STRIDES)) {
		pd_unsigned(frame, cell, (pd_cell_t)view.len);
		PyBuffer_Release(&view);
	} else {
		PyErr_Clear(); /* elements that have no buffer form, as dates */
	}
}

void pd_value_read(struct pd_frame *frame, unsigned cell, enum pd_how how, PyObject *value)
{
	Py_ssize_t length;
	uint64_t sum;
	double number;

	switch (how) {
	case PD_NUMBER:
		if (number_read(value, &number))
			pd_floating(frame, cell, number);
		break;
	case PD_LENGTH:
		if (length_read(value, &length))
			pd_unsigned(frame, cell, (pd_cell_t)length);
		break;
	case PD_NESTED:
		if (nested_read(value, &sum))
			pd_unsigned(frame, cell, sum);
		break;
	case PD_TYPE:
		type_read(frame, cell, Py_TYPE(value));
		break;
	case PD_FILE:
	case PD_DEPTH:
		path_read(frame, cell, how, value);
		break;
	default:
		array_read(frame, cell, how, value);
		break;
	}
}
