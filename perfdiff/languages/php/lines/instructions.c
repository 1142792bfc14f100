/*
 * Instructions by handlers of the engine's that every one of them runs before it is executed. They are set before anything is compiled; machine
 * code of the engine's compiler knows none of them, so that it is off (see perfdiff/languages/php/extension.py).
 */
#include "lines.h"

#ifdef PD_PER_CALL
uint64_t pd_instructions;
#endif

static user_opcode_handler_t next[256]; /* of others that stood there before us */

static inline void count(zend_execute_data *frame)
{
	const struct pd_code *kept = pd_code_of(&frame->func->op_array);

#ifdef PD_PER_CALL
	if (!pd_is_foreign(kept))
		pd_instructions++;
#else
	uint32_t index = (uint32_t)(frame->opline - frame->func->op_array.opcodes);

	if (index < kept->count && kept->places[index] != PD_NO_PLACE && pd_counts)
		pd_counts[kept->places[index]]++;
#endif
}

static int execute(zend_execute_data *frame)
{
	count(frame);
	return ZEND_USER_OPCODE_DISPATCH;
}

static int execute_before_others(zend_execute_data *frame)
{
	count(frame);
	return next[frame->opline->opcode](frame);
}

/* The engine's own, which stand in no function's code; and the second half of another one. */
static bool is_left_alone(unsigned opcode)
{
	return opcode == ZEND_HANDLE_EXCEPTION || opcode == ZEND_USER_OPCODE || opcode == ZEND_CALL_TRAMPOLINE || opcode == ZEND_OP_DATA;
}

int pd_instructions_begin(void)
{
	for (unsigned opcode = 0; opcode <= ZEND_VM_LAST_OPCODE; opcode++) {
		if (is_left_alone(opcode))
			continue;
		next[opcode] = zend_get_user_opcode_handler((uint8_t)opcode);
		if (zend_set_user_opcode_handler((uint8_t)opcode, next[opcode] ? execute_before_others : execute) == FAILURE)
			return -1;
	}
	return 0;
}
