/*
 * Where nobody is to be told: with an observer, the engine asks at each call and each return whether there is one for this function, which takes
 * some ns. Calls that by their name lead to no function with a probe, and returns of code that has none, are given the handlers that they have
 * without observers. What cannot be told by its name, as a call of a value, stays as it is.
 */
#include <string.h>

#include "php_probe.h"

bool pd_frees_variables;

#if PHP_VERSION_ID >= 80200

#define DEEPEST 64u /* calls whose arguments are calls; code with more is left alone */
#define SEEN 16384u /* files, a power of two: of the engine's cache, each request loads the same ones */

static zend_op_array *(*next)(zend_file_handle *, int);
static const void *seen[SEEN]; /* by their instructions' place, which stays the same there */

/* Gives an instruction the handler that it has without observers, where it has the usual one: the engine's compiler sets others. */
static void quiet(zend_op *operation)
{
	int extension = zend_observer_fcall_op_array_extension;
	zend_op usual = *operation;

	zend_vm_set_opcode_handler(&usual);
	if (usual.handler != operation->handler)
		return;
	zend_observer_fcall_op_array_extension = -1;
	zend_vm_set_opcode_handler(&usual);
	zend_observer_fcall_op_array_extension = extension;
	operation->handler = usual.handler;
}

/* The last part of a name: what stands behind its namespace. */
static bool may_be_probed(const zval *name)
{
	const char *start, *separator;

	if (Z_TYPE_P(name) != IS_STRING)
		return true;
	start = Z_STRVAL_P(name);
	separator = strrchr(start, '\\');
	return pd_sheet_has_name(separator ? separator + 1 : start);
}

/* Whether a call that begins here may lead to a function with a probe. */
static bool may_lead_to_probe(const zend_op *operation)
{
	switch (operation->opcode) {
	case ZEND_INIT_FCALL:
	case ZEND_INIT_FCALL_BY_NAME:
	case ZEND_INIT_NS_FCALL_BY_NAME:
		return operation->op2_type != IS_CONST || may_be_probed(RT_CONSTANT(operation, operation->op2));
	case ZEND_INIT_METHOD_CALL:
	case ZEND_INIT_STATIC_METHOD_CALL:
		if (operation->op2_type == IS_UNUSED)
			return pd_sheet_has_name("__construct");
		return operation->op2_type != IS_CONST || may_be_probed(RT_CONSTANT(operation, operation->op2));
	case ZEND_NEW:
		return pd_sheet_has_name("__construct");
	default:
		return true;
	}
}

enum part { OTHER, BEGINS, ENDS, ENDS_UNSAID, RETURNS };

static enum part part_of(const zend_op *operation)
{
	switch (operation->opcode) {
	case ZEND_INIT_FCALL:
	case ZEND_INIT_FCALL_BY_NAME:
	case ZEND_INIT_NS_FCALL_BY_NAME:
	case ZEND_INIT_METHOD_CALL:
	case ZEND_INIT_STATIC_METHOD_CALL:
	case ZEND_INIT_DYNAMIC_CALL:
	case ZEND_INIT_USER_CALL:
	case ZEND_NEW:
#if PHP_VERSION_ID >= 80400
	case ZEND_INIT_PARENT_PROPERTY_HOOK_CALL:
#endif
		return BEGINS;
	case ZEND_DO_FCALL:
	case ZEND_DO_FCALL_BY_NAME:
	case ZEND_DO_ICALL:
	case ZEND_DO_UCALL:
		return ENDS;
	case ZEND_CALLABLE_CONVERT:
		return ENDS_UNSAID;
	case ZEND_RETURN:
		return RETURNS;
	default:
		return OTHER;
	}
}

/* Whether calls begin and end one within the other, as the compiler writes them. */
static bool is_nested(const zend_op_array *code)
{
	unsigned depth = 0;

	for (uint32_t i = 0; i < code->last; i++) {
		enum part part = part_of(&code->opcodes[i]);

		if (part == BEGINS && ++depth > DEEPEST)
			return false;
		if ((part == ENDS || part == ENDS_UNSAID) && !depth--)
			return false;
	}
	return !depth;
}

static void quiet_code(zend_op_array *code)
{
	bool leads[DEEPEST], returns = !(code->fn_flags & ZEND_ACC_GENERATOR) && !pd_sheet_has_lines(code);
	unsigned depth = 0;

	if (code->type != ZEND_USER_FUNCTION)
		return;
	pd_branches_watch(code);
	for (uint32_t i = 0; i < code->num_dynamic_func_defs; i++)
		quiet_code(code->dynamic_func_defs[i]);
	if (!is_nested(code))
		return;
	for (uint32_t i = 0; i < code->last; i++) {
		zend_op *operation = &code->opcodes[i];

		switch (part_of(operation)) {
		case BEGINS:
			leads[depth++] = may_lead_to_probe(operation);
			break;
		case ENDS_UNSAID:
			depth--;
			break;
		case ENDS:
			if (!leads[--depth] || operation->opcode == ZEND_DO_ICALL)
				quiet(operation);
			break;
		case RETURNS:
			if (returns)
				quiet(operation);
			break;
		default:
			break;
		}
	}
}

static void quiet_class(zend_class_entry *class)
{
	zend_function *function;

	if (class->type != ZEND_USER_CLASS)
		return;
	ZEND_HASH_FOREACH_PTR(&class->function_table, function) {
		if (function->type == ZEND_USER_FUNCTION && function->common.scope == class)
			quiet_code(&function->op_array);
	} ZEND_HASH_FOREACH_END();
}

/* Looks through what has come to a table since it had so many places. */
static void quiet_new(HashTable *table, uint32_t before, bool has_classes)
{
	for (uint32_t i = before; i < table->nNumUsed; i++) {
		zval *value = &table->arData[i].val;

		if (Z_TYPE_P(value) != IS_PTR)
			continue;
		if (has_classes)
			quiet_class(Z_PTR_P(value));
		else
			quiet_code(Z_PTR_P(value));
	}
}

static bool is_new(const zend_op_array *code)
{
	const void **place = &seen[((uintptr_t)code->opcodes >> 4) % SEEN];
	bool is_known = *place == code->opcodes;

	if (code->refcount) /* of this request alone */
		return true;
	*place = code->opcodes;
	return !is_known;
}

static zend_op_array *compile(zend_file_handle *file, int type)
{
	uint32_t functions = CG(function_table)->nNumUsed, classes = CG(class_table)->nNumUsed;
	zend_op_array *code = next(file, type);

	if (!code || EG(exception))
		return code;
	if (is_new(code)) {
		quiet_code(code);
		quiet_new(CG(function_table), functions, false);
		quiet_new(CG(class_table), classes, true);
	}
	return code;
}

static bool is_set(const char *name)
{
	return zend_ini_long(name, strlen(name), 0) != 0;
}

/* From 8.4 on there is room for machine code, and none is made. A program that turns the compiler on by itself as it runs is not foreseen. */
static bool has_compiler(void)
{
	static const char *const off[] = {"", "0", "off", "no", "false", "disable"}; /* as opcache reads it */
	const char *made = zend_ini_string("opcache.jit", strlen("opcache.jit"), 0);

	if (!is_set("opcache.jit_buffer_size"))
		return false;
	for (size_t i = 0; made && i < sizeof(off) / sizeof(*off); i++)
		if (!strcasecmp(made, off[i]))
			return false;
	return true;
}

/* Begins once in a process, in front of the engine's cache, where nobody else needs to be told and no machine code takes the handlers' place. */
void pd_sites_begin(void)
{
	pd_frees_variables = ZEND_OBSERVER_ENABLED && pd_is_only_observer() && !has_compiler();
	if (next || pd_counting_follow || !pd_frees_variables || is_set("opcache.protect_memory"))
		return;
	pd_branches_begin();
	next = zend_compile_file;
	zend_compile_file = compile;
}

#else

void pd_sites_begin(void)
{
}

#endif
