/*
 * Says which lines of files are counted, and in which functions: in a PHP that `PERFDIFF_DESCRIBE` has this extension loaded in, by one function
 * that takes a path and a file to write to. Each file is compiled in a process of its own, as what it declares could meet another's.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lines.h"

#ifndef PD_PER_CALL

static FILE *out;
static const zend_string *described; /* the file's name, as its code has it */

static void tell(const zend_op_array *code, const char *scope)
{
	if (code->type != ZEND_USER_FUNCTION || !zend_string_equals(code->filename, (zend_string *)described))
		return;
	fprintf(out, "C\t%u\t%u\t%s\t%s\t", code->line_start, code->line_end, scope, code->function_name ? ZSTR_VAL(code->function_name) : "{main}");
	for (uint32_t i = 0; i < code->last; i++)
		if (pd_begins_line(code, i))
			fprintf(out, "%u ", code->opcodes[i].lineno);
	fputc('\n', out);
	for (uint32_t i = 0; i < code->num_dynamic_func_defs; i++)
		tell(code->dynamic_func_defs[i], scope);
}

static void tell_class(zend_class_entry *class)
{
	zend_function *function;

	if (class->type != ZEND_USER_CLASS)
		return;
	ZEND_HASH_FOREACH_PTR(&class->function_table, function) {
		if (function->common.scope == class)
			tell(&function->op_array, ZSTR_VAL(class->name));
	} ZEND_HASH_FOREACH_END();
#if PHP_VERSION_ID >= 80400
	zend_property_info *property;

	ZEND_HASH_FOREACH_PTR(&class->properties_info, property) {
		for (uint32_t i = 0; property->ce == class && property->hooks && i < ZEND_PROPERTY_HOOK_COUNT; i++)
			if (property->hooks[i])
				tell(&property->hooks[i]->op_array, ZSTR_VAL(class->name));
	} ZEND_HASH_FOREACH_END();
#endif
}

static void tell_all(zend_op_array *main)
{
	zend_function *function;
	zend_class_entry *class;

	described = main->filename;
	tell(main, "");
	ZEND_HASH_FOREACH_PTR(CG(function_table), function) {
		if (function->type == ZEND_USER_FUNCTION)
			tell(&function->op_array, "");
	} ZEND_HASH_FOREACH_END();
	ZEND_HASH_FOREACH_PTR(CG(class_table), class) {
		tell_class(class);
	} ZEND_HASH_FOREACH_END();
}

static void describe(const char *path)
{
	zend_file_handle handle;
	zend_op_array *main;

	zend_stream_init_filename(&handle, path);
	CG(compiler_options) |= ZEND_COMPILE_WITHOUT_EXECUTION;
	zend_try {
		main = zend_compile_file(&handle, ZEND_REQUIRE);
		if (main && !EG(exception))
			tell_all(main);
	} zend_end_try();
	fflush(out);
	_exit(0);
}

ZEND_BEGIN_ARG_INFO_EX(arguments, 0, 0, 2)
	ZEND_ARG_INFO(0, path)
	ZEND_ARG_INFO(0, out)
ZEND_END_ARG_INFO()

static ZEND_FUNCTION(perfdiff_describe)
{
	char *path, *result;
	size_t path_length, result_length;
	pid_t child;

	ZEND_PARSE_PARAMETERS_START(2, 2)
		Z_PARAM_PATH(path, path_length)
		Z_PARAM_PATH(result, result_length)
	ZEND_PARSE_PARAMETERS_END();
	child = fork();
	if (!child) {
		out = fopen(result, "ae");
		if (!out)
			_exit(1);
		describe(path);
	}
	RETVAL_BOOL(child > 0 && waitpid(child, NULL, 0) == child);
}

static const zend_function_entry functions[] = {
	ZEND_FE(perfdiff_describe, arguments)
	ZEND_FE_END
};

int pd_describing_begin(void)
{
	return zend_register_functions(NULL, functions, NULL, MODULE_PERSISTENT) == SUCCESS ? 0 : -1;
}

#endif
