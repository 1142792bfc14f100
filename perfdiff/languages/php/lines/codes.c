/* What is kept of code, in a place that the engine has for us beside each function's code; and which of its instructions begin a line. */
#include <stdlib.h>

#include "lines.h"

int pd_code_handle = -1;
struct pd_code pd_foreign;

#ifdef PD_PER_CALL
static struct pd_code own; /* of the project, but without a line that is counted */
#endif

int pd_codes_begin(void)
{
	pd_code_handle = zend_get_op_array_extension_handle("perfdiff lines");
	return pd_code_handle < 0 ? -1 : 0;
}

/* What stands before a function's first statement in each call. */
static bool is_prologue(const zend_op *operation)
{
	switch (operation->opcode) {
	case ZEND_RECV:
	case ZEND_RECV_INIT:
	case ZEND_RECV_VARIADIC:
	case ZEND_BIND_STATIC:
	case ZEND_GENERATOR_CREATE:
	case ZEND_EXT_NOP:
	case ZEND_EXT_STMT:
	case ZEND_NOP:
		return true;
	default:
		return false;
	}
}

/* The return that the compiler puts behind each body. */
static bool is_epilogue(const zend_op_array *code, uint32_t index)
{
	uint8_t opcode = code->opcodes[index].opcode;

	return opcode == ZEND_GENERATOR_RETURN || opcode == ZEND_VERIFY_RETURN_TYPE || opcode == ZEND_VERIFY_NEVER_TYPE ||
	       (code->opcodes[index].extended_value == (uint32_t)-1 && (opcode == ZEND_RETURN || opcode == ZEND_RETURN_BY_REF));
}

/* Where a jump that always jumps leads to; NULL of others. */
static const zend_op *target_of(const zend_op *operation)
{
	return operation->opcode == ZEND_JMP ? OP_JMP_ADDR(operation, operation->op1) : NULL;
}

/* What asks for the next element of a `foreach`: it stands for the line that this begins on, each time that it runs. */
static bool is_fetch(const zend_op *operation)
{
	return operation->opcode == ZEND_FE_FETCH_R || operation->opcode == ZEND_FE_FETCH_RW;
}

static bool has_fetch(const zend_op_array *code, uint32_t index)
{
	uint32_t line = code->opcodes[index].lineno;

	for (; index < code->last && code->opcodes[index].lineno == line; index++)
		if (is_fetch(&code->opcodes[index]))
			return true;
	return false;
}

/* Whether a conditional jump leads back to an instruction of the same line: a loop that stands on one. */
static bool is_loop_target(const zend_op_array *code, uint32_t index)
{
	const zend_op *to = &code->opcodes[index];

	for (uint32_t i = index; i < code->last && code->opcodes[i].lineno == to->lineno; i++) {
		const zend_op *from = &code->opcodes[i];

		if ((from->opcode == ZEND_JMPZ || from->opcode == ZEND_JMPNZ || from->opcode == ZEND_JMPNZ_EX) &&
		    OP_JMP_ADDR(from, from->op2) == to)
			return true;
		if (target_of(from) == to)
			return true;
	}
	return false;
}

/* Whether an instruction is the first one of its line behind others. */
static bool is_first(const zend_op_array *code, uint32_t index)
{
	uint32_t before = index;

	while (before && (code->opcodes[before - 1].opcode == ZEND_OP_DATA || code->opcodes[before - 1].opcode == ZEND_EXT_STMT))
		before--;
	return !before || is_prologue(&code->opcodes[before - 1]) || code->opcodes[before - 1].lineno != code->opcodes[index].lineno;
}

/*
 * Whether an instruction begins a line: it is the first one of its line behind others, or a loop on one line begins again there. A jump that only
 * leads to where the line goes on, as into a loop's condition, begins nothing.
 */
bool pd_begins_line(const zend_op_array *code, uint32_t index)
{
	const zend_op *operation = &code->opcodes[index], *target = target_of(operation);

	if (is_fetch(operation))
		return true;
	if (is_prologue(operation) || operation->opcode == ZEND_OP_DATA || is_epilogue(code, index))
		return false;
	if (!is_first(code, index))
		return is_loop_target(code, index);
	if (has_fetch(code, index))
		return false;
	return !(target && target != operation && target->lineno == operation->lineno &&
		 (is_fetch(target) || is_first(code, (uint32_t)(target - code->opcodes))));
}

static struct pd_code *make(const zend_op_array *code, const struct pd_lines *lines)
{
	struct pd_code *made = malloc(sizeof(*made) + code->last * sizeof(made->places[0]));

	if (!made)
		return &pd_foreign;
	made->count = code->last;
	for (uint32_t i = 0; i < code->last; i++)
		made->places[i] = pd_begins_line(code, i) ? pd_lines_place(lines, code->opcodes[i].lineno) : PD_NO_PLACE;
	return made;
}

struct pd_code *pd_codes_look_up(const zend_op_array *code)
{
	bool is_known;
	struct pd_lines *lines = pd_lines_sheet_find(code, &is_known);
	struct pd_code *kept = &pd_foreign;

	if (lines) {
		for (kept = lines->kept; kept && kept->count != code->last; kept = kept->next)
			;
		if (!kept) {
			kept = make(code, lines);
			if (kept != &pd_foreign) {
				kept->next = lines->kept;
				lines->kept = kept;
			}
		}
	}
#ifdef PD_PER_CALL
	if (!lines && is_known)
		kept = &own;
#endif
	ZEND_OP_ARRAY_EXTENSION(code, pd_code_handle) = kept;
	return kept;
}
