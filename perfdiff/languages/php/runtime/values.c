/* Values read without running any code of the target's, and without making what it has not made. All of them are borrowed. */
#include <stdlib.h>
#include <string.h>

#include "php_probe.h"

#define NESTED_MOST 256u /* elements whose lengths are added up: more take longer than most calls */
#define NAMES 4096u      /* names of types and cases, a power of two; more have none */
#define DYNAMIC UINT32_MAX

/* Finds where a property lies; DYNAMIC where no class declares it, or where it is one that code would run for. */
static uint32_t offset_of(zend_class_entry *class, zend_string *name, zend_class_entry *scope)
{
	zend_property_info *found = zend_hash_find_ptr(&class->properties_info, name);

	if (scope && scope != class && instanceof_function(class, scope)) { /* a private one of an ancestor's goes first in its own code */
		zend_property_info *own = zend_hash_find_ptr(&scope->properties_info, name);

		if (own && own->flags & ZEND_ACC_PRIVATE && own->ce == scope)
			found = own;
	}
	if (!found || found->flags & ZEND_ACC_STATIC)
		return DYNAMIC;
#if PHP_VERSION_ID >= 80400
	if (found->hooks || found->flags & ZEND_ACC_VIRTUAL)
		return DYNAMIC;
#endif
	return found->offset;
}

zval *pd_property(zend_object *object, struct pd_step *step, zend_class_entry *scope)
{
	zval *value;

	if (pd_unlikely(object->handlers->read_property != zend_std_read_property))
		return NULL;
#if PHP_VERSION_ID >= 80400
	if (pd_unlikely(zend_object_is_lazy(object)))
		return NULL;
#endif
	if (pd_unlikely(step->of != object->ce || step->seen_by != scope || step->request != pd_request)) {
		step->offset = offset_of(object->ce, step->name, scope);
		step->of = object->ce;
		step->seen_by = scope;
		step->request = pd_request;
	}
	if (pd_likely(step->offset != DYNAMIC)) {
		value = OBJ_PROP(object, step->offset);
		return Z_TYPE_P(value) == IS_UNDEF ? NULL : value;
	}
	value = object->properties ? zend_hash_find(object->properties, step->name) : NULL;
	return value && Z_TYPE_P(value) == IS_INDIRECT ? NULL : value;
}

zval *pd_static(zend_class_entry *class, zend_string *name)
{
	zend_property_info *found = zend_hash_find_ptr(&class->properties_info, name);
	zval *members, *value;

	if (!found || !(found->flags & ZEND_ACC_STATIC))
		return NULL;
	class = found->ce; /* what inherits it shares it */
	members = CE_STATIC_MEMBERS(class);
	if (!members) /* before code asks for one of them */
		members = class->default_static_members_table;
	if (!members)
		return NULL;
	value = members + found->offset;
	ZVAL_DEINDIRECT(value);
	return Z_TYPE_P(value) == IS_UNDEF ? NULL : value;
}

zval *pd_element(zval *array, const struct pd_step *step)
{
	zval *value = step->is_number ? zend_hash_index_find(Z_ARRVAL_P(array), step->index) : zend_hash_find(Z_ARRVAL_P(array), step->name);

	if (value)
		ZVAL_DEINDIRECT(value);
	return value && Z_TYPE_P(value) != IS_UNDEF ? value : NULL;
}

static bool number_read(zval *value, double *number)
{
	zend_long whole;
	double real;

	switch (Z_TYPE_P(value)) {
	case IS_LONG:
		*number = (double)Z_LVAL_P(value);
		return true;
	case IS_DOUBLE:
		*number = Z_DVAL_P(value);
		return true;
	case IS_TRUE:
	case IS_FALSE:
		*number = Z_TYPE_P(value) == IS_TRUE;
		return true;
	case IS_STRING: /* as what comes by a request is */
		switch (is_numeric_string(Z_STRVAL_P(value), Z_STRLEN_P(value), &whole, &real, false)) {
		case IS_LONG:
			*number = (double)whole;
			return true;
		case IS_DOUBLE:
			*number = real;
			return zend_finite(real); /* hundreds of digits are a text that is calculated with */
		default:
			return false;
		}
	default:
		return false;
	}
}

/* Whether the engine itself counts an object's elements: it is of one of its own classes, or of one that leaves `count` as it is there. */
static bool is_counted_by_engine(zend_class_entry *class, const char **name)
{
	static const char *const known[] = {
		"ArrayObject", "ArrayIterator", "RecursiveArrayIterator", "SplFixedArray", "SplDoublyLinkedList", "SplQueue", "SplStack",
		"SplMinHeap", "SplMaxHeap", "SplHeap", "SplPriorityQueue", "SplObjectStorage", "WeakMap",
	};
	zend_function *count = zend_hash_str_find_ptr(&class->function_table, "count", 5);

	if (!count || count->type != ZEND_INTERNAL_FUNCTION)
		return false;
	while (class && class->type != ZEND_INTERNAL_CLASS)
		class = class->ce_flags & ZEND_ACC_LINKED ? class->parent : NULL;
	for (size_t i = 0; class && i < sizeof(known) / sizeof(known[0]); i++)
		if (!strcmp(ZSTR_VAL(class->name), known[i])) {
			*name = known[i];
			return true;
		}
	return false;
}

/* An object storage has no function that counts it without a call: its table comes first in it. */
static bool object_length_read(zend_object *object, zend_ulong *length)
{
	const char *name;
	zend_long found;

	if (!is_counted_by_engine(object->ce, &name))
		return false;
	if (!strcmp(name, "SplObjectStorage")) {
		*length = ((HashTable *)((char *)object - object->handlers->offset))->nNumOfElements;
		return true;
	}
	if (!object->handlers->count_elements || object->handlers->count_elements(object, &found) == FAILURE)
		return false;
	*length = (zend_ulong)found;
	return true;
}

static bool length_read(zval *value, zend_ulong *length)
{
	ZVAL_DEREF(value);
	switch (Z_TYPE_P(value)) {
	case IS_STRING:
		*length = Z_STRLEN_P(value);
		return true;
	case IS_ARRAY:
		*length = zend_hash_num_elements(Z_ARRVAL_P(value));
		return true;
	case IS_OBJECT:
		return object_length_read(Z_OBJ_P(value), length);
	default:
		return false;
	}
}

/* Adds up the lengths of an array's elements; false where one has none, or where they are too many to look at. */
static bool nested_read(zval *value, zend_ulong *sum)
{
	zend_ulong length;
	zval *element;

	*sum = 0;
	if (Z_TYPE_P(value) != IS_ARRAY || zend_hash_num_elements(Z_ARRVAL_P(value)) > NESTED_MOST)
		return false;
	ZEND_HASH_FOREACH_VAL(Z_ARRVAL_P(value), element) {
		ZVAL_DEINDIRECT(element);
		if (!length_read(element, &length))
			return false;
		*sum += length;
	} ZEND_HASH_FOREACH_END();
	return true;
}

/* A name of its own for good, wherever the engine keeps it in a request; NULL where there is no room. */
static const char *name_kept(const zend_string *name)
{
	static const char *kept[NAMES];
	static uint32_t used;
	uint32_t place = (uint32_t)zend_string_hash_val((zend_string *)name);

	for (; kept[place % NAMES]; place++)
		if (!strcmp(kept[place % NAMES], ZSTR_VAL(name)))
			return kept[place % NAMES];
	if (used == NAMES / 2)
		return NULL;
	used++;
	return kept[place % NAMES] = strdup(ZSTR_VAL(name));
}

static void name_read(struct pd_frame *frame, unsigned cell, const char *name)
{
	if (name && pd_type_of(frame, cell, name))
		pd_type_tell(name, name);
}

static const char *type_name(zval *value)
{
	static const char *const names[] = {
		[IS_NULL] = "null", [IS_FALSE] = "bool", [IS_TRUE] = "bool", [IS_LONG] = "int", [IS_DOUBLE] = "float", [IS_STRING] = "string",
		[IS_ARRAY] = "array", [IS_RESOURCE] = "resource",
	};

	if (Z_TYPE_P(value) == IS_OBJECT)
		return name_kept(Z_OBJCE_P(value)->name);
	return Z_TYPE_P(value) < sizeof(names) / sizeof(names[0]) ? names[Z_TYPE_P(value)] : NULL;
}

static const char *case_name(zval *value)
{
	if (Z_TYPE_P(value) != IS_OBJECT || !(Z_OBJCE_P(value)->ce_flags & ZEND_ACC_ENUM))
		return NULL;
	return name_kept(Z_STR_P(zend_enum_fetch_case_name(Z_OBJ_P(value))));
}

/* A string that may name a file: without a zero byte, as the engine takes no other one. */
static const char *path_text(zval *value)
{
	return Z_TYPE_P(value) == IS_STRING && strlen(Z_STRVAL_P(value)) == Z_STRLEN_P(value) ? Z_STRVAL_P(value) : NULL;
}

void pd_value_read(struct pd_frame *frame, unsigned cell, enum pd_how how, zval *value)
{
	zend_ulong length;
	const char *path;
	double number;

	switch (how) {
	case PD_NUMBER:
		if (number_read(value, &number))
			pd_floating(frame, cell, number);
		break;
	case PD_LENGTH:
		if (length_read(value, &length))
			pd_unsigned(frame, cell, length);
		break;
	case PD_NESTED:
		if (nested_read(value, &length))
			pd_unsigned(frame, cell, length);
		break;
	case PD_TYPE:
		name_read(frame, cell, type_name(value));
		break;
	case PD_ENUM:
		name_read(frame, cell, case_name(value));
		break;
	case PD_FILE:
	case PD_DEPTH:
		path = path_text(value);
		if (path)
			(how == PD_FILE ? pd_file : pd_depth)(frame, cell, path);
		break;
	default:
		break;
	}
}
