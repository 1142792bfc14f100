/* Threads being made: from the first one on, the model takes its locks. */
#include "pmu.h"

#ifndef PD_STATIC

#include <pthread.h>
#include <threads.h>

/* Before the new thread runs, and while the one that makes it is not at work on the caches: no other one can be, where it is a child's first. */
#define MAKE(name, ...) \
	do { \
		if (!next.name) \
			find_all(); \
		pd_child_find(); \
		pd_pmu.many = true; \
		return next.name(__VA_ARGS__); \
	} while (0)

static struct {
	__typeof__(pthread_create) *pthread_create;
	__typeof__(thrd_create) *thrd_create;
} next;

static PD_RESOLVE void find_all(void)
{
	next.pthread_create = (__typeof__(pthread_create) *)pd_next_function("pthread_create");
	next.thrd_create = (__typeof__(thrd_create) *)pd_next_function("thrd_create");
}

PD_API int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *argument)
{
	MAKE(pthread_create, thread, attributes, start, argument);
}

PD_API int thrd_create(thrd_t *thread, thrd_start_t start, void *argument)
{
	MAKE(thrd_create, thread, start, argument);
}

#endif
