/*
 * Outcomes of conditions: instructions that decide one that is watched get a number of ours, which the engine has no instruction under, and so run
 * by a handler of ours alone; all others stay as they are. Which instruction decides a condition, tells the order in which the engine's compiler
 * writes jumps (see perfdiff/languages/php/branches.py). It must count as many as are expected, in the function or on the condition's line, or
 * the condition has no outcomes.
 */
#include <stdlib.h>
#include <string.h>

#include "php_probe.h"

#if PHP_VERSION_ID >= 80200

#define OURS 240 /* the first of our numbers: above all of the engine's */
#define NONE UINT32_MAX
#define SMART (IS_SMART_BRANCH_JMPZ | IS_SMART_BRANCH_JMPNZ)

_Static_assert(ZEND_VM_LAST_OPCODE < OURS, "the engine has an instruction under our numbers");

static const uint8_t usual[] = {ZEND_JMPZ, ZEND_JMPNZ, ZEND_JMPZ_EX, ZEND_JMPNZ_EX, ZEND_BOOL, ZEND_BOOL_NOT};
#define KINDS (sizeof(usual) / sizeof(usual[0]))

static bool is_on;

static inline uint8_t usual_of(const zend_op *operation)
{
	return operation->opcode >= OURS && operation->opcode < OURS + KINDS ? usual[operation->opcode - OURS] : operation->opcode;
}

/* Whether an instruction jumps where a value that is not known before says so. */
static bool is_jump(const zend_op *operation)
{
	uint8_t opcode = usual_of(operation);

	return (opcode == ZEND_JMPZ || opcode == ZEND_JMPNZ || opcode == ZEND_JMPZ_EX || opcode == ZEND_JMPNZ_EX) && operation->op1_type != IS_CONST;
}

/*
 * What decides a jump: the instruction itself, or the first one before it that makes its value of a condition's, as `!` and the last operand
 * of `&&` do.
 */
static uint32_t decider_of(const zend_op_array *code, uint32_t index)
{
	while (index) {
		const zend_op *operation = &code->opcodes[index], *before = operation - 1;
		uint8_t opcode = usual_of(before);

		if ((opcode != ZEND_BOOL && opcode != ZEND_BOOL_NOT) || before->op1_type == IS_CONST)
			break;
		if (operation->op1_type != IS_TMP_VAR || before->result_type != IS_TMP_VAR || before->result.var != operation->op1.var)
			break;
		index--;
	}
	return index;
}

/* A condition's place: its number among the jumps of the function and of its line, 0 of 0 where it cannot be told by that; its lines. */
struct place {
	uint32_t number, total, first_line, last_line, number_on_line, total_on_line;
};

static bool place_read(const char *line, struct place *place)
{
	return sscanf(line, "%u %u %u %u %u %u", &place->number, &place->total, &place->first_line, &place->last_line, &place->number_on_line,
		      &place->total_on_line) == 6;
}

static uint32_t jump_find(const zend_op_array *code, uint32_t line, uint32_t number, uint32_t total)
{
	uint32_t seen = 0, found = NONE;

	for (uint32_t i = 0; i < code->last; i++) {
		if (!is_jump(&code->opcodes[i]) || (line && code->opcodes[i].lineno != line))
			continue;
		if (seen++ == number)
			found = i;
	}
	return seen == total ? found : NONE;
}

/* The engine may have read one more line by the time that it takes down where a jump is. */
static uint32_t condition_find(const zend_op_array *code, const struct place *place)
{
	uint32_t found = place->total ? jump_find(code, 0, place->number, place->total) : NONE;

	if (found != NONE && code->opcodes[found].lineno >= place->first_line && code->opcodes[found].lineno <= place->last_line + 1)
		return found;
	return place->total_on_line ? jump_find(code, place->first_line, place->number_on_line, place->total_on_line) : NONE;
}

uint16_t *pd_branches_find(const struct pd_probe_text *probe, const zend_op_array *code)
{
	const char *line = probe->readers;
	uint16_t *outcomes = NULL, number = 0;

	while (!strncmp(line, "read ", 5))
		line = pd_line_next(line);
	for (; !strncmp(line, "branch ", 7) && number < UINT16_MAX; line = pd_line_next(line)) {
		struct place place;
		uint32_t index = place_read(line + 7, &place) ? condition_find(code, &place) : NONE;

		number++;
		if (index == NONE)
			continue;
		if (!outcomes && !(outcomes = calloc(code->last, sizeof(*outcomes))))
			return NULL;
		outcomes[decider_of(code, index)] = number;
	}
	return outcomes;
}

/* Has a comparison leave its value to the jump behind it, which it otherwise makes itself. */
static void part(zend_op *comparison)
{
	if (!(comparison->result_type & SMART))
		return;
	comparison->result_type = IS_TMP_VAR;
	zend_vm_set_opcode_handler(comparison);
}

static void watch(zend_op *operation, bool has_before)
{
	zend_op ours = {.opcode = ZEND_USER_OPCODE};

	for (size_t kind = 0; kind < KINDS; kind++)
		if (operation->opcode == usual[kind]) {
			if (has_before)
				part(operation - 1);
			zend_vm_set_opcode_handler(&ours);
			operation->handler = ours.handler;
			operation->opcode = (zend_uchar)(OURS + kind);
			return;
		}
}

void pd_branches_watch(zend_op_array *code)
{
	struct pd_probe_text *probe = is_on ? pd_sheet_find(code) : NULL;
	uint16_t *outcomes = probe && !pd_is_off(probe->number) ? pd_branches_find(probe, code) : NULL;

	for (uint32_t i = 0; outcomes && i < code->last; i++)
		if (outcomes[i])
			watch(&code->opcodes[i], i > 0);
	free(outcomes);
}

/* Counts an outcome; true where the value is plainly a truth value, so that what the instruction does can be done here. */
static inline bool count(zend_execute_data *frame, const zend_op *operation, bool *is_true)
{
	const zend_op_array *code = &frame->func->op_array;
	const struct pd_plan *plan = PD_PLAN(code);
	uint32_t index = (uint32_t)(operation - code->opcodes);
	zval *value = ZEND_CALL_VAR(frame, operation->op1.var);
	bool is_plain = Z_TYPE_P(value) == IS_TRUE || Z_TYPE_P(value) == IS_FALSE;

	*is_true = is_plain ? Z_TYPE_P(value) == IS_TRUE : zend_is_true(value);
	if (pd_likely(plan && index < plan->operations && plan->outcomes && plan->outcomes[index]))
		pd_branch_keyed(frame, plan->outcomes[index] - 1u, *is_true);
	return is_plain && !pd_unlikely(EG(exception) || zend_atomic_bool_load(&EG(vm_interrupt)));
}

static inline int jump(zend_execute_data *frame, uint8_t opcode)
{
	const zend_op *operation = frame->opline;
	bool is_true, jumps_if = opcode == ZEND_JMPNZ || opcode == ZEND_JMPNZ_EX;

	if (!count(frame, operation, &is_true))
		return ZEND_USER_OPCODE_DISPATCH_TO | opcode;
	if (opcode == ZEND_JMPZ_EX || opcode == ZEND_JMPNZ_EX)
		ZVAL_BOOL(ZEND_CALL_VAR(frame, operation->result.var), is_true);
	frame->opline = is_true == jumps_if ? OP_JMP_ADDR(operation, operation->op2) : operation + 1;
	return ZEND_USER_OPCODE_CONTINUE;
}

static inline int convert(zend_execute_data *frame, uint8_t opcode)
{
	const zend_op *operation = frame->opline;
	bool is_true;

	if (!count(frame, operation, &is_true))
		return ZEND_USER_OPCODE_DISPATCH_TO | opcode;
	ZVAL_BOOL(ZEND_CALL_VAR(frame, operation->result.var), is_true == (opcode == ZEND_BOOL));
	frame->opline = operation + 1;
	return ZEND_USER_OPCODE_CONTINUE;
}

static int jump_if_false(zend_execute_data *frame)
{
	return jump(frame, ZEND_JMPZ);
}

static int jump_if_true(zend_execute_data *frame)
{
	return jump(frame, ZEND_JMPNZ);
}

static int jump_if_false_with_value(zend_execute_data *frame)
{
	return jump(frame, ZEND_JMPZ_EX);
}

static int jump_if_true_with_value(zend_execute_data *frame)
{
	return jump(frame, ZEND_JMPNZ_EX);
}

static int truth(zend_execute_data *frame)
{
	return convert(frame, ZEND_BOOL);
}

static int opposite(zend_execute_data *frame)
{
	return convert(frame, ZEND_BOOL_NOT);
}

/* Nothing is watched where another extension has taken one of our numbers. */
void pd_branches_begin(void)
{
	static int (*const handlers[KINDS])(zend_execute_data *) = {
		jump_if_false, jump_if_true, jump_if_false_with_value, jump_if_true_with_value, truth, opposite,
	};

	for (unsigned kind = 0; kind < KINDS; kind++)
		if (zend_get_user_opcode_handler((zend_uchar)(OURS + kind)))
			return;
	for (unsigned kind = 0; kind < KINDS; kind++)
		if (zend_set_user_opcode_handler((zend_uchar)(OURS + kind), handlers[kind]) == FAILURE)
			return;
	is_on = true;
}

#else

uint16_t *pd_branches_find(const struct pd_probe_text *probe, const zend_op_array *code)
{
	(void)probe, (void)code;
	return NULL;
}

void pd_branches_watch(zend_op_array *code)
{
	(void)code;
}

void pd_branches_begin(void)
{
}

#endif
