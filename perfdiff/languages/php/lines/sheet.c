/* Which lines of the sheet are those of a function. */
#include <limits.h>
#include <string.h>

#include "lines.h"

#define MAIN "{main}"

/* Functions of a file come one after the other. Names in a sheet are exact, but those that a trait's methods are given where it is used. */
struct pd_lines *pd_lines_sheet_find(const zend_op_array *code, bool *is_known)
{
	static char last_name[PATH_MAX];
	static const struct pd_listed_file *last_file;
	const char *name = code->function_name ? ZSTR_VAL(code->function_name) : MAIN, *file = ZSTR_VAL(code->filename);
	struct pd_lines *alike = NULL;

	*is_known = false;
	if (strlen(file) >= sizeof(last_name))
		return NULL;
	if (strcmp(last_name, file)) {
		strcpy(last_name, file);
		last_file = pd_lines_sheet_file(file, true);
	}
	if (!last_file)
		return NULL;
	*is_known = true;
	for (struct pd_listed_code *listed = last_file->begin; listed < last_file->end; listed++) {
		bool is_main = !strcmp(listed->name, MAIN);

		if (code->function_name ? listed->first_line != code->line_start || listed->last_line != code->line_end || is_main : !is_main)
			continue;
		if (!strcmp(listed->name, name))
			return &listed->lines;
		alike = &listed->lines;
	}
	return alike;
}
