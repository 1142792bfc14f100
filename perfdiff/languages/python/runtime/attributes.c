/*
 * Attributes read without running any code of the target's, and without making what it has not made: an instance's values stay where the
 * interpreter put them. All references are borrowed: nothing runs between the reading of an object and the reading of what it refers to.
 */
#include "python_probe.h"

#if PY_VERSION_HEX >= 0x030c0000
#define MEMBER_OBJECT _Py_T_OBJECT
#define MEMBER_OBJECT_OR_ERROR Py_T_OBJECT_EX
#else
#include <structmember.h>
#define MEMBER_OBJECT T_OBJECT
#define MEMBER_OBJECT_OR_ERROR T_OBJECT_EX
#endif

static PyObject *getattribute_name;  /* "__getattribute__" */
static PyObject *object_getattribute; /* what `object` has under this name */

bool pd_attributes_begin(void)
{
	getattribute_name = PyUnicode_InternFromString("__getattribute__");
	object_getattribute = getattribute_name ? _PyType_Lookup(&PyBaseObject_Type, getattribute_name) : NULL;
	return object_getattribute != NULL;
}

/* A look-up compares names alone: keys that are not plain strings could have comparisons of the target's. */
static bool has_plain_keys(PyObject *dictionary)
{
#if PY_VERSION_HEX >= 0x030b0000
	return DK_IS_UNICODE(((PyDictObject *)dictionary)->ma_keys);
#else
	(void)dictionary; /* its kind is not told before 3.11 */
	return true;
#endif
}

/* An entry of a dictionary, by an interned name; NULL where there is none. */
PyObject *pd_item(PyObject *dictionary, PyObject *name)
{
	if (!dictionary || !PyDict_CheckExact(dictionary) || !has_plain_keys(dictionary))
		return NULL;
	return _PyDict_GetItem_KnownHash(dictionary, name, ((PyASCIIObject *)name)->hash);
}

#if PY_VERSION_HEX >= 0x030b0000

/* The value of a name among those that an instance keeps without a dictionary; keys are interned, as names are. */
static PyObject *inline_value(PyTypeObject *type, PyDictValues *values, PyObject *name, uint32_t *hint)
{
	PyDictKeysObject *keys = ((PyHeapTypeObject *)type)->ht_cached_keys;
	Py_ssize_t count = keys->dk_nentries;
	PyDictUnicodeEntry *entries;

	if (!DK_IS_UNICODE(keys))
		return NULL;
	entries = DK_UNICODE_ENTRIES(keys);
	if (pd_likely(*hint < count && entries[*hint].me_key == name))
		return values->values[*hint];
	for (Py_ssize_t i = 0; i < count; i++)
		if (entries[i].me_key == name) {
			*hint = (uint32_t)i;
			return values->values[i];
		}
	return NULL;
}

#endif

/* The place of an instance's dictionary where the type says that it has one at a fixed distance. */
static PyObject *own_dictionary(PyTypeObject *type, PyObject *object)
{
	Py_ssize_t offset = type->tp_dictoffset;

	if (offset < 0 && type->tp_itemsize) { /* from the end of an object of its own length, as of an int or a tuple */
		Py_ssize_t items = Py_SIZE(object);
#if PY_VERSION_HEX >= 0x030c0000
		if (PyType_FastSubclass(type, Py_TPFLAGS_LONG_SUBCLASS))
			return NULL; /* an int's length is no longer its size */
#endif
		offset += (Py_ssize_t)_PyObject_VAR_SIZE(type, items < 0 ? -items : items);
	}
	return offset > 0 ? *(PyObject **)((char *)object + offset) : NULL;
}

static PyObject *instance_value(PyTypeObject *type, PyObject *object, PyObject *name, uint32_t *hint)
{
#if PY_VERSION_HEX >= 0x030d0000
	if (type->tp_flags & Py_TPFLAGS_MANAGED_DICT) {
		if (type->tp_flags & Py_TPFLAGS_INLINE_VALUES && _PyObject_InlineValues(object)->valid)
			return inline_value(type, _PyObject_InlineValues(object), name, hint);
		return pd_item((PyObject *)_PyObject_GetManagedDict(object), name);
	}
#elif PY_VERSION_HEX >= 0x030c0000
	if (type->tp_flags & Py_TPFLAGS_MANAGED_DICT) {
		PyDictOrValues either = *_PyObject_DictOrValuesPointer(object);

		if (_PyDictOrValues_IsValues(either))
			return inline_value(type, _PyDictOrValues_GetValues(either), name, hint);
		return pd_item(_PyDictOrValues_GetDict(either), name);
	}
#elif PY_VERSION_HEX >= 0x030b0000
	if (type->tp_flags & Py_TPFLAGS_MANAGED_DICT) {
		PyDictValues *values = *_PyObject_ValuesPointer(object);

		return values ? inline_value(type, values, name, hint) : pd_item(*_PyObject_ManagedDictPointer(object), name);
	}
#else
	(void)hint;
#endif
	return pd_item(own_dictionary(type, object), name);
}

/* What a `__slots__` member holds; NULL for members of other kinds, and where it is not set. */
static PyObject *slot_value(PyMemberDescrObject *descriptor, PyObject *object)
{
	const PyMemberDef *member = descriptor->d_member;

	if (!PyObject_TypeCheck(object, descriptor->d_common.d_type) || (member->type != MEMBER_OBJECT && member->type != MEMBER_OBJECT_OR_ERROR))
		return NULL;
	return *(PyObject **)((char *)object + member->offset);
}

/* Whether an attribute that an object has is found as by `object.__getattribute__`; one with `__getattr__` is asked only for what is missing. */
static bool is_found_plainly(PyTypeObject *type)
{
	return type->tp_getattro == PyObject_GenericGetAttr || _PyType_Lookup(type, getattribute_name) == object_getattribute;
}

/* An attribute's value, or NULL where it is missing or where code would run for it: properties, and the like. */
PyObject *pd_attribute(PyObject *object, PyObject *name, uint32_t *hint)
{
	PyTypeObject *type = Py_TYPE(object);
	PyObject *descriptor, *value;

	if (PyModule_CheckExact(object))
		return pd_item(PyModule_GetDict(object), name);
	if (PyType_CheckExact(object)) { /* a class; what its metaclass has goes first */
		value = _PyType_Lookup(type, name) ? NULL : _PyType_Lookup((PyTypeObject *)object, name);
		return value && !Py_TYPE(value)->tp_descr_get ? value : NULL;
	}
	if (!is_found_plainly(type))
		return NULL;
	descriptor = _PyType_Lookup(type, name);
	if (descriptor && Py_IS_TYPE(descriptor, &PyMemberDescr_Type))
		return slot_value((PyMemberDescrObject *)descriptor, object);
	if (descriptor && Py_TYPE(descriptor)->tp_descr_set)
		return NULL;
	value = instance_value(type, object, name, hint);
	if (!value && descriptor && !Py_TYPE(descriptor)->tp_descr_get)
		value = descriptor;
	return value;
}
