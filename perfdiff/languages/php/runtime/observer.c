/*
 * Calls by the engine's observers, which it asks once a request, at a function's first call, whether they want to be told of it: only functions
 * with a probe are. A call stands on the runtime's shadow stack under the address of its frame, as calls of PHP take no C stack. An exception
 * and `exit` end calls as a return does; those that a fatal error or a time limit leaves are dropped.
 */
#include "php_probe.h"

int pd_plan_handle = -1;

static bool is_dropped; /* what a fatal error of this request has left */

/* After a fatal error or a time limit the engine tells that calls have ended that were left. What runs later, at shutdown, is called anew. */
static __attribute__((noinline, cold)) void left_drop(void)
{
	if (!is_dropped)
		pd_drop_calls();
	is_dropped = true;
}

/* A collection of garbage runs destructors: these are the program's. */
static __attribute__((noinline, cold)) void collection_turn(bool goes_on)
{
	if (goes_on)
		pd_pause_begin();
	else
		pd_pause_end();
}

static void begin(zend_execute_data *frame)
{
	struct pd_plan *plan = PD_PLAN(&frame->func->op_array);
	struct pd_frame call = {0, 0, 0, 0};

	if (pd_unlikely(!plan))
		return;
	call.probe = plan->number;
	if (pd_passes(plan->number))
		return;
	if (pd_unlikely(pd_collects))
		collection_turn(false);
	if (pd_unlikely(CG(unclean_shutdown)))
		left_drop();
	if (!pd_enter_keyed(&call, frame))
		return;
	pd_features_read(&call, plan, frame);
	pd_start(&call);
}

/*
 * The engine frees the variables of a call that returns right behind its observers, as the caller's: what that takes would be the caller's own
 * time. It is done here in the same way, which leaves the engine nothing to free. A result that nobody takes is freed before them.
 */
static void variables_free(zend_execute_data *frame, const zval *result)
{
	const zend_op_array *code = &frame->func->op_array;
	zend_execute_data *current = EG(current_execute_data);

	if (!frame->return_value && Z_REFCOUNTED_P(result))
		return;
	if (code->fn_flags & ZEND_ACC_GENERATOR || ZEND_CALL_INFO(frame) & (ZEND_CALL_CODE | ZEND_CALL_HAS_SYMBOL_TABLE))
		return;
	EG(current_execute_data) = frame->prev_execute_data;
	zend_free_compiled_variables(frame);
	for (int i = 0; i < code->last_var; i++)
		ZVAL_UNDEF(ZEND_CALL_VAR_NUM(frame, i));
	EG(current_execute_data) = current;
}

static void end(zend_execute_data *frame, zval *result)
{
	struct pd_plan *plan = PD_PLAN(&frame->func->op_array);

	if (pd_unlikely(!plan))
		return;
	if (pd_unlikely(CG(unclean_shutdown)))
		left_drop();
	else if (pd_likely(result && pd_frees_variables)) /* no result: an exception or the script's end leaves the call */
		variables_free(frame, result);
	pd_leave_keyed(plan->number, frame);
	if (pd_unlikely(pd_collects))
		collection_turn(true);
}

void pd_request_end(void)
{
	pd_drop_calls();
	pd_rest_begin();
	is_dropped = false;
}

static zend_observer_fcall_handlers observe(zend_execute_data *frame)
{
	const zend_op_array *code = &frame->func->op_array;
	zend_observer_fcall_handlers none = {NULL, NULL}, both = {begin, end};
	struct pd_probe_text *probe;
	const char *misplaced;

	if (frame->func->type != ZEND_USER_FUNCTION)
		return none;
	probe = pd_sheet_find(code);
	if (probe && !pd_is_off(probe->number) && (PD_PLAN(code) = pd_plan_find(probe, code)))
		return both;
	misplaced = code->function_name || probe ? NULL : pd_sheet_misplaced(code);
	if (misplaced)
		pd_note_misplaced(ZSTR_VAL(code->filename), misplaced, pd_line_length(misplaced));
	return pd_counting_follow ? pd_counting_follow(frame) : none;
}

/* Each observer has two places beside a function's code. They were given last, but for one place that opcache's compiler takes. */
bool pd_is_only_observer(void)
{
	return zend_op_array_extension_handles < zend_observer_fcall_op_array_extension + 4;
}

bool pd_observer_begin(void)
{
	pd_plan_handle = zend_get_op_array_extension_handle("perfdiff");
	zend_observer_fcall_register(observe);
	return pd_plan_handle >= 0;
}
