/*
 * Functions that leave calls without their ends: what these have marked goes. Marks of calls that go on go as well, so that until they end
 * their callees are taken for those of the call around them.
 */
#include <setjmp.h>
#include <stdlib.h>

#include "runtime.h"

#ifndef PD_STATIC /* a static libc's function cannot be replaced and used */

#define FUNCTIONS(each) each(longjmp) each(_longjmp) each(siglongjmp) each(__longjmp_chk)
#define NEXT(name) static void (*next_##name)(struct __jmp_buf_tag *, int) __attribute__((noreturn));
FUNCTIONS(NEXT)

static PD_RESOLVE void find_all(void)
{
#define FIND(name) next_##name = (void (*)(struct __jmp_buf_tag *, int))pd_next_function(#name);
	FUNCTIONS(FIND)
}

#define INTERPOSE(name) \
	PD_API void name(struct __jmp_buf_tag place[1], int value) \
	{ \
		if (pd_self.thread) \
			pd_self.thread->mark.frame = 0; \
		if (pd_unlikely(!next_##name)) \
			find_all(); \
		next_##name(place, value); \
	}
void __longjmp_chk(struct __jmp_buf_tag place[1], int value) __attribute__((noreturn));
FUNCTIONS(INTERPOSE)

#endif
