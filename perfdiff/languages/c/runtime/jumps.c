/*
 * Functions that leave calls without their ends: what these have marked goes. Marks of calls that go on go as well, so that until they end
 * their callees are taken for those of the call around them. <setjmp.h> is not asked: where fortified, it gives one of them another's name.
 */
#include "runtime.h"

#ifndef PD_STATIC /* a static libc's function cannot be replaced and used */

typedef void jump(void *place, int value);

#define FUNCTIONS(each) each(longjmp) each(_longjmp) each(siglongjmp) each(__longjmp_chk)
#define DECLARE(name) \
	PD_API jump name __attribute__((noreturn)); \
	static jump *next_##name;
FUNCTIONS(DECLARE)

static PD_RESOLVE void find_all(void)
{
#define FIND(name) next_##name = (jump *)pd_next_function(#name);
	FUNCTIONS(FIND)
}

#define INTERPOSE(name) \
	void name(void *place, int value) \
	{ \
		if (pd_self.thread) \
			pd_self.thread->mark.frame = 0; \
		if (pd_unlikely(!next_##name)) \
			find_all(); \
		next_##name(place, value); \
		__builtin_unreachable(); \
	}
FUNCTIONS(INTERPOSE)

#endif
