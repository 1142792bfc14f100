/* What the executions of a function do: how its features are read, made from the sheet at its first call in a process. */
#include <stdlib.h>
#include <string.h>

#include "php_probe.h"

/* Persistent, and known by its hash. */
static zend_string *text(const char *start, size_t length)
{
	zend_string *made = zend_string_init(start, length, 1);

	zend_string_hash_val(made);
	return made;
}

static zend_string *lower(const char *start, size_t length)
{
	zend_string *made = zend_string_init(start, length, 1);

	for (size_t i = 0; i < length; i++)
		ZSTR_VAL(made)[i] = (char)zend_tolower_ascii(ZSTR_VAL(made)[i]);
	zend_string_hash_val(made);
	return made;
}

/* How much of a path is a name, up to the next step. */
static size_t name_length(const char *path, size_t length)
{
	size_t i = 0;

	while (i < length && path[i] != '[' && !(path[i] == '-' && i + 1 < length && path[i + 1] == '>'))
		i++;
	return i;
}

/* Reads "->name" and "[key]", as many as there are; false where a path has something else, or too many of them. */
static bool steps_make(const char *path, size_t length, struct pd_reader *reader)
{
	while (length) {
		struct pd_step *step = &reader->path[reader->steps];
		const char *closing;
		size_t size;

		if (reader->steps == PD_STEPS)
			return false;
		if (path[0] == '[') {
			closing = memchr(path, ']', length);
			if (!closing)
				return false;
			size = (size_t)(closing - path) - 1;
			step->is_key = true;
			step->name = text(path + 1, size);
			step->is_number = ZEND_HANDLE_NUMERIC_STR(ZSTR_VAL(step->name), size, step->index);
			path += size + 2, length -= size + 2;
		} else if (length > 2 && path[0] == '-' && path[1] == '>') {
			size = name_length(path + 2, length - 2);
			if (!size)
				return false;
			step->name = text(path + 2, size);
			path += size + 2, length -= size + 2;
		} else {
			return false;
		}
		reader->steps++;
	}
	return true;
}

/* A variable of the code: what a call is given, or what a closure or `static` has. Others are not there yet when a call begins. */
static void variable_find(const zend_op_array *code, struct pd_reader *reader)
{
	HashTable *captured = code->static_variables;

	for (int i = 0; i < code->last_var; i++)
		if (zend_string_equals(code->vars[i], reader->name)) {
			reader->place = (uint32_t)i;
			if (reader->place < code->num_args)
				reader->origin = PD_LOCAL;
			else if (code->fn_flags & ZEND_ACC_VARIADIC && reader->place == code->num_args)
				reader->origin = PD_VARIADIC;
			else if (captured && zend_hash_exists(captured, reader->name))
				reader->origin = PD_CAPTURED;
			return;
		}
	if (captured && zend_hash_exists(captured, reader->name))
		reader->origin = PD_CAPTURED;
}

static bool is_superglobal(const zend_string *name)
{
	static const char *const names[] = {"_GET", "_POST", "_COOKIE", "_SERVER", "_ENV", "_REQUEST", "_FILES", "_SESSION"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(ZSTR_VAL(name), names[i]))
			return true;
	return false;
}

/* Makes a reader of "<how> <path>"; one whose path begins nowhere in this code reads nothing. */
static void reader_make(const zend_op_array *code, const char *line, struct pd_reader *reader)
{
	static const char *const hows[PD_HOWS] = {"number", "length", "nested", "type", "file", "depth", "enum"};
	size_t length = strcspn(line, " \n"), size;
	const char *path = line + length + 1, *colons;

	reader->origin = PD_NOWHERE;
	while (reader->how < PD_HOWS && (strlen(hows[reader->how]) != length || memcmp(hows[reader->how], line, length)))
		reader->how++;
	if (reader->how == PD_HOWS || line[length] != ' ')
		return;
	length = pd_line_length(path);
	size = name_length(path, length);
	if (size < 2)
		return;
	colons = memmem(path, size, "::$", 3);
	if (colons) { /* Class::$name */
		reader->origin = PD_STATIC;
		reader->lower_class = lower(path + (*path == '\\'), (size_t)(colons - path) - (*path == '\\'));
		reader->name = text(colons + 3, size - (size_t)(colons + 3 - path));
	} else if (*path == '$') {
		reader->name = text(path + 1, size - 1);
		if (!strcmp(ZSTR_VAL(reader->name), "this"))
			reader->origin = PD_THIS;
		else if (!strcmp(ZSTR_VAL(reader->name), "GLOBALS") || is_superglobal(reader->name))
			reader->origin = PD_GLOBAL;
		else
			variable_find(code, reader);
	}
	if (!steps_make(path + size, length - size, reader))
		reader->origin = PD_NOWHERE;
	if (reader->origin == PD_GLOBAL && !strcmp(ZSTR_VAL(reader->name), "GLOBALS")) {
		if (!reader->steps || !reader->path[0].is_key) {
			reader->origin = PD_NOWHERE;
			return;
		}
		reader->name = reader->path[0].name;
		reader->steps--;
		memmove(reader->path, reader->path + 1, reader->steps * sizeof(reader->path[0]));
	}
}

/* Whether the variables of a plan are those of this code, as of the same function compiled again. */
static bool plan_fits(const struct pd_plan *plan, const zend_op_array *code)
{
	if (plan->operations != code->last)
		return false;
	for (unsigned i = 0; i < plan->count; i++) {
		const struct pd_reader *reader = &plan->readers[i];

		if (reader->origin != PD_LOCAL && reader->origin != PD_VARIADIC)
			continue;
		if (reader->place >= (uint32_t)code->last_var || !zend_string_equals(code->vars[reader->place], reader->name))
			return false;
		if (reader->origin == PD_LOCAL ? reader->place >= code->num_args : !(code->fn_flags & ZEND_ACC_VARIADIC))
			return false;
	}
	return true;
}

struct pd_plan *pd_plan_find(struct pd_probe_text *probe, const zend_op_array *code)
{
	const char *line = probe->readers;
	struct pd_plan *plan = probe->plans;
	unsigned count = 0;

	for (; plan; plan = plan->next)
		if (plan_fits(plan, code))
			return plan;
	for (; !strncmp(line, "read ", 5); line = pd_line_next(line))
		count++;
	plan = calloc(1, sizeof(*plan) + count * sizeof(plan->readers[0]));
	if (!plan)
		return NULL;
	plan->number = probe->number;
	plan->count = count;
	plan->operations = code->last;
	plan->outcomes = pd_branches_find(probe, code);
	line = probe->readers;
	for (unsigned i = 0; i < count; i++, line = pd_line_next(line))
		reader_make(code, line + 5, &plan->readers[i]);
	plan->next = probe->plans;
	probe->plans = plan;
	return plan;
}

/* What a parameter that no argument was given for has, where it is a plain value. */
static zval *given_by_default(const zend_op_array *code, uint32_t place)
{
	for (uint32_t i = 0; i < code->last && i <= 2 * code->num_args; i++) {
		zend_op *operation = &code->opcodes[i];

		if (operation->opcode != ZEND_RECV && operation->opcode != ZEND_RECV_INIT && operation->opcode != ZEND_EXT_NOP &&
		    operation->opcode != ZEND_EXT_STMT && operation->opcode != ZEND_NOP)
			return NULL;
		if (operation->opcode == ZEND_RECV_INIT && operation->op1.num == place + 1)
			return RT_CONSTANT(operation, operation->op2);
	}
	return NULL;
}

static zval *captured(const zend_op_array *code, zend_string *name)
{
	HashTable *variables = ZEND_MAP_PTR_GET(code->static_variables_ptr);

	if (!variables) /* before the first call */
		variables = code->static_variables;
	return variables ? zend_hash_find(variables, name) : NULL;
}

static zend_class_entry *class_of(zend_execute_data *frame, const zend_string *name)
{
	zend_class_entry *scope = frame->func->common.scope;

	if (!strcmp(ZSTR_VAL(name), "self"))
		return scope;
	if (!strcmp(ZSTR_VAL(name), "parent"))
		return scope && scope->ce_flags & ZEND_ACC_LINKED ? scope->parent : NULL;
	if (strcmp(ZSTR_VAL(name), "static"))
		return zend_hash_find_ptr(EG(class_table), (zend_string *)name);
	if (Z_TYPE(frame->This) == IS_OBJECT)
		return Z_OBJCE(frame->This);
	return Z_CE(frame->This) ? Z_CE(frame->This) : scope;
}

static zval *start_of(zend_execute_data *frame, const struct pd_reader *reader)
{
	const zend_op_array *code = &frame->func->op_array;
	zend_class_entry *class;
	zval *value;

	switch (reader->origin) {
	case PD_LOCAL:
		value = ZEND_CALL_VAR_NUM(frame, reader->place);
		if (pd_unlikely(reader->place >= ZEND_CALL_NUM_ARGS(frame) || Z_TYPE_P(value) == IS_UNDEF))
			return given_by_default(code, reader->place);
		return value;
	case PD_CAPTURED:
		return captured(code, reader->name);
	case PD_THIS:
		return Z_TYPE(frame->This) == IS_OBJECT ? &frame->This : NULL;
	case PD_STATIC:
		class = class_of(frame, reader->lower_class);
		return class ? pd_static(class, reader->name) : NULL;
	case PD_GLOBAL:
		value = zend_hash_find(&EG(symbol_table), reader->name);
		return value && Z_TYPE_P(value) == IS_INDIRECT ? Z_INDIRECT_P(value) : value;
	default:
		return NULL;
	}
}

/* Reads the features of a call that begins, or goes on. */
void pd_features_read(struct pd_frame *call, struct pd_plan *plan, zend_execute_data *frame)
{
	for (unsigned cell = 0; cell < plan->count; cell++) {
		struct pd_reader *reader = &plan->readers[cell];
		zval *value;

		if (reader->origin == PD_VARIADIC) { /* gathered in an array only later */
			uint32_t given = ZEND_CALL_NUM_ARGS(frame), named = frame->func->op_array.num_args;

			if (reader->how == PD_LENGTH && !reader->steps)
				pd_unsigned(call, cell, given > named ? given - named : 0);
			continue;
		}
		value = start_of(frame, reader);
		for (unsigned i = 0; value && i < reader->steps; i++) {
			struct pd_step *step = &reader->path[i];

			ZVAL_DEREF(value);
			if (step->is_key)
				value = Z_TYPE_P(value) == IS_ARRAY ? pd_element(value, step) : NULL;
			else
				value = Z_TYPE_P(value) == IS_OBJECT ? pd_property(Z_OBJ_P(value), step, frame->func->common.scope) : NULL;
		}
		if (!value)
			continue;
		ZVAL_DEREF(value);
		if (Z_TYPE_P(value) != IS_UNDEF && Z_TYPE_P(value) != IS_CONSTANT_AST)
			pd_value_read(call, cell, (enum pd_how)reader->how, value);
	}
}
