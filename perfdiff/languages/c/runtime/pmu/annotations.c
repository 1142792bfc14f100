/*
 * What programs tell a race detector, where the compiler says that there is one (`__has_feature(thread_sanitizer)`): nothing is done.
 * They are weak, as projects bring stand-ins of their own.
 */
#include "pmu.h"

#define NOTHING(name, ...) \
	PD_API __attribute__((weak)) void name(__VA_ARGS__); \
	PD_API __attribute__((weak)) void name(__VA_ARGS__) \
	{ \
	}
#define OF_OBJECT void *object __attribute__((unused))
#define FLAGS unsigned flags __attribute__((unused))
#define PLACE const char *file __attribute__((unused)), int line __attribute__((unused))
#define ADDRESS const volatile void *address __attribute__((unused))
#define SIZE size_t size __attribute__((unused))
#define TEXT const char *text __attribute__((unused))

NOTHING(__tsan_acquire, OF_OBJECT)
NOTHING(__tsan_release, OF_OBJECT)
NOTHING(__tsan_mutex_create, OF_OBJECT, FLAGS)
NOTHING(__tsan_mutex_destroy, OF_OBJECT, FLAGS)
NOTHING(__tsan_mutex_pre_lock, OF_OBJECT, FLAGS)
NOTHING(__tsan_mutex_post_lock, OF_OBJECT, FLAGS, int recursion __attribute__((unused)))
NOTHING(__tsan_mutex_post_unlock, OF_OBJECT, FLAGS)
NOTHING(__tsan_mutex_pre_signal, OF_OBJECT, FLAGS)
NOTHING(__tsan_mutex_post_signal, OF_OBJECT, FLAGS)
NOTHING(__tsan_mutex_pre_divert, OF_OBJECT, FLAGS)
NOTHING(__tsan_mutex_post_divert, OF_OBJECT, FLAGS)
NOTHING(__tsan_destroy_fiber, OF_OBJECT)
NOTHING(__tsan_switch_to_fiber, OF_OBJECT, FLAGS)
NOTHING(__tsan_set_fiber_name, OF_OBJECT, TEXT)
NOTHING(__tsan_flush_memory, void)

/* A number and two pointers that only come back to us. */
PD_API __attribute__((weak)) int __tsan_mutex_pre_unlock(OF_OBJECT, FLAGS);
PD_API __attribute__((weak)) void *__tsan_get_current_fiber(void);
PD_API __attribute__((weak)) void *__tsan_create_fiber(FLAGS);

PD_API int __tsan_mutex_pre_unlock(OF_OBJECT, FLAGS)
{
	return 0;
}

PD_API void *__tsan_get_current_fiber(void)
{
	return NULL;
}

PD_API void *__tsan_create_fiber(FLAGS)
{
	return NULL;
}

NOTHING(AnnotateHappensBefore, PLACE, ADDRESS)
NOTHING(AnnotateHappensAfter, PLACE, ADDRESS)
NOTHING(AnnotateRWLockCreate, PLACE, ADDRESS)
NOTHING(AnnotateRWLockDestroy, PLACE, ADDRESS)
NOTHING(AnnotateRWLockAcquired, PLACE, ADDRESS, long is_write __attribute__((unused)))
NOTHING(AnnotateRWLockReleased, PLACE, ADDRESS, long is_write __attribute__((unused)))
NOTHING(AnnotateBenignRace, PLACE, ADDRESS, TEXT)
NOTHING(AnnotateBenignRaceSized, PLACE, ADDRESS, SIZE, TEXT)
NOTHING(AnnotateNewMemory, PLACE, ADDRESS, SIZE)
NOTHING(AnnotateIgnoreReadsBegin, PLACE)
NOTHING(AnnotateIgnoreReadsEnd, PLACE)
NOTHING(AnnotateIgnoreWritesBegin, PLACE)
NOTHING(AnnotateIgnoreWritesEnd, PLACE)
NOTHING(AnnotateIgnoreSyncBegin, PLACE)
NOTHING(AnnotateIgnoreSyncEnd, PLACE)
NOTHING(AnnotateThreadName, PLACE, TEXT)
