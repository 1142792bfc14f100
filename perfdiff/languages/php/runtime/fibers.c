/*
 * Fibers: calls in one are parts, as those of generators are: they end where the fiber is suspended, and begin anew where it goes on. What a
 * fiber does while it runs is done below the call that resumed it.
 */
#include "php_probe.h"

#define MOST_FRAMES 1024u /* of a fiber that have a probe; those above begin no part */

static zend_fiber *fiber_of(zend_fiber_context *context)
{
	return context->kind == zend_ce_fiber ? (zend_fiber *)((char *)context - XtOffsetOf(zend_fiber, context)) : NULL;
}

static void leave_all(zend_execute_data *frame, const zend_execute_data *bottom)
{
	for (; frame && frame != bottom; frame = frame->prev_execute_data) {
		struct pd_plan *plan = frame->func ? pd_plan_known(frame->func) : NULL;

		if (plan)
			pd_leave_keyed(plan->number, frame);
	}
}

static void enter_all(zend_execute_data *frame, const zend_execute_data *bottom)
{
	zend_execute_data *frames[MOST_FRAMES];
	unsigned count = 0;

	for (; frame && frame != bottom && count < MOST_FRAMES; frame = frame->prev_execute_data)
		if (frame->func && pd_plan_known(frame->func))
			frames[count++] = frame;
	while (count--) {
		struct pd_plan *plan = pd_plan_known(frames[count]->func);
		struct pd_frame call = {plan->number, 0, 0, 0};

		if (pd_passes(plan->number) || !pd_enter_keyed(&call, frames[count]))
			continue;
		pd_features_read(&call, plan, frames[count]);
		pd_start(&call);
	}
}

static void switches(zend_fiber_context *from, zend_fiber_context *to)
{
	zend_fiber *left = fiber_of(from), *resumed = fiber_of(to);

	if (left && !left->caller) /* of a fiber that is suspended, or has ended: nobody waits for it */
		leave_all(EG(current_execute_data), left->stack_bottom);
	if (resumed && resumed->caller == from && to->status == ZEND_FIBER_STATUS_SUSPENDED)
		enter_all(resumed->execute_data, resumed->stack_bottom);
}

void pd_fibers_begin(void)
{
	zend_observer_fiber_switch_register(switches);
}
