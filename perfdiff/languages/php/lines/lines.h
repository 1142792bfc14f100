/* Counting of lines and instructions in a PHP process: what the parts share. */
#ifndef PD_LINES_H
#define PD_LINES_H

#include <php.h>
#include <zend_extensions.h>
#include <zend_system_id.h>
#include <stdbool.h>
#include <stdint.h>

#include "../../interpreted/lines/code_lines.h"
#include "../../interpreted/lines/counts.h"

#if PHP_VERSION_ID < 80100 || PHP_VERSION_ID >= 80500 || defined(ZTS)
#error "PHP 8.1 to 8.4 without threads is supported"
#endif

/* What is kept of some code: for each of its instructions that begins a line the line's place, PD_NO_PLACE for the others. */
struct pd_code {
	struct pd_code *next; /* of the same function, where the engine has compiled it in another way */
	uint32_t count;
	uint32_t places[];
};

/* Of all code that stands in no file of the sheet. */
extern struct pd_code pd_foreign;

#ifdef PD_PER_CALL
/* Instructions of the project's code that were executed: probes read it at a call's start and end. */
extern uint64_t pd_instructions;
#endif

/* sheet.c */
struct pd_lines *pd_lines_sheet_find(const zend_op_array *code, bool *is_known); /* NULL of code without lines; whether its file is of the sheet */

/* codes.c */
int pd_codes_begin(void);
struct pd_code *pd_codes_look_up(const zend_op_array *code) __attribute__((cold)); /* never NULL */
bool pd_begins_line(const zend_op_array *code, uint32_t index);
extern int pd_code_handle;

/* At a function's first instruction in a request it is looked up. */
static inline struct pd_code *pd_code_of(const zend_op_array *code)
{
	struct pd_code *kept = ZEND_OP_ARRAY_EXTENSION(code, pd_code_handle);

	return __builtin_expect(kept != NULL, 1) ? kept : pd_codes_look_up(code);
}

static inline bool pd_is_foreign(const struct pd_code *kept)
{
	return kept == &pd_foreign;
}

/* Whether a frame runs the project's code. */
static inline bool pd_is_own(const zend_execute_data *frame)
{
	return frame && frame->func && ZEND_USER_CODE(frame->func->type) && RUN_TIME_CACHE(&frame->func->op_array) &&
	       !pd_is_foreign(pd_code_of(&frame->func->op_array));
}

/* instructions.c */
int pd_instructions_begin(void);

/* describing.c */
int pd_describing_begin(void);

#endif
