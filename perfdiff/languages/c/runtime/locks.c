/* Times how long threads wait for locks and hold them. Condition variables: the wait counts as waiting, and the lock is not held meanwhile. */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "runtime.h"

#ifdef PD_STATIC

bool pd_locks_seen(void)
{
	return false;
}

#else

typedef pthread_mutex_t mutex;
typedef pthread_rwlock_t rwlock;
typedef pthread_cond_t cond;
typedef const struct timespec deadline;

#define FUNCTIONS(X) \
	X(int, pthread_mutex_lock, (mutex *)) \
	X(int, pthread_mutex_trylock, (mutex *)) \
	X(int, pthread_mutex_timedlock, (mutex *, deadline *)) \
	X(int, pthread_mutex_clocklock, (mutex *, clockid_t, deadline *)) \
	X(int, pthread_mutex_unlock, (mutex *)) \
	X(int, pthread_rwlock_rdlock, (rwlock *)) \
	X(int, pthread_rwlock_wrlock, (rwlock *)) \
	X(int, pthread_rwlock_tryrdlock, (rwlock *)) \
	X(int, pthread_rwlock_trywrlock, (rwlock *)) \
	X(int, pthread_rwlock_timedrdlock, (rwlock *, deadline *)) \
	X(int, pthread_rwlock_timedwrlock, (rwlock *, deadline *)) \
	X(int, pthread_rwlock_clockrdlock, (rwlock *, clockid_t, deadline *)) \
	X(int, pthread_rwlock_clockwrlock, (rwlock *, clockid_t, deadline *)) \
	X(int, pthread_rwlock_unlock, (rwlock *)) \
	X(int, pthread_cond_wait, (cond *, mutex *)) \
	X(int, pthread_cond_timedwait, (cond *, mutex *, deadline *)) \
	X(int, pthread_cond_clockwait, (cond *, mutex *, clockid_t, deadline *))

#define DECLARE(type, name, arguments) type (*name) arguments;
static struct {
	FUNCTIONS(DECLARE)
} next;

/*
 * Two functions have an older version on x86-64, which a plain look-up may find. No other version is asked for: a look-up that fails
 * calls malloc, and where that is the target's own it may take a lock and come back here.
 */
static void *find(const char *name)
{
#if defined(__x86_64__)
	if (!strcmp(name, "pthread_cond_wait") || !strcmp(name, "pthread_cond_timedwait"))
		return dlvsym(RTLD_NEXT, name, "GLIBC_2.3.2");
#endif
	return pd_next_function(name);
}

static __attribute__((noinline, cold)) void find_all(void)
{
#define FIND(type, name, arguments) next.name = (type (*) arguments)find(#name);
	FUNCTIONS(FIND)
}

static PD_RESOLVE void find_early(void)
{
	find_all();
}

static void ensure(void)
{
	if (pd_unlikely(!next.pthread_cond_timedwait))
		find_all();
}

bool pd_locks_seen(void)
{
	Dl_info ours, first;
	void *found = dlsym(RTLD_DEFAULT, "pthread_mutex_lock");

	return found && dladdr((void *)pd_enter_call, &ours) && dladdr(found, &first) && ours.dli_fbase == first.dli_fbase;
}

/* Of the counted library: told of a lock or condition whose words are about to be changed. */
void pd_lock_touched(const void *lock) __attribute__((weak, visibility("hidden")));

static inline void touched(const void *lock)
{
	if (pd_lock_touched)
		pd_lock_touched(lock);
}

static inline bool recording(const void *lock)
{
	touched(lock);
	ensure();
	return pd_self.thread != NULL;
}

static void hold(const void *lock, uint64_t since)
{
	struct pd_thread *thread = pd_self.thread;

	if (thread->held_count < PD_HELD) {
		thread->held[thread->held_count].lock = lock;
		thread->held[thread->held_count].since = since;
		thread->held_count++;
	}
}

static void release(const void *lock)
{
	struct pd_thread *thread = pd_self.thread;

	for (uint32_t i = thread->held_count; i-- > 0;) {
		if (thread->held[i].lock != lock)
			continue;
		pd_self.resources[PD_LOCK_HOLD] += pd_ticks() - thread->held[i].since;
		thread->held[i] = thread->held[--thread->held_count];
		return;
	}
}

static int held_after(int result, const void *lock)
{
	if (result == 0 || result == EOWNERDEAD)
		hold(lock, pd_ticks());
	return result;
}

static int waited(int result, const void *lock, uint64_t since)
{
	uint64_t now = pd_ticks();

	pd_self.resources[PD_LOCK_WAIT] += now - since;
	if (result == 0 || result == EOWNERDEAD)
		hold(lock, now);
	return result;
}

/* Takes a free lock without a wait, else times the wait. */
#define ACQUIRE(lock, try, block) \
	do { \
		int result; \
		uint64_t since; \
		if (!recording(lock)) \
			return block; \
		result = try; \
		if (result != EBUSY) \
			return held_after(result, lock); \
		since = pd_ticks(); \
		return waited(block, lock, since); \
	} while (0)

PD_API int pthread_mutex_lock(mutex *lock)
{
	ACQUIRE(lock, next.pthread_mutex_trylock(lock), next.pthread_mutex_lock(lock));
}

PD_API int pthread_mutex_timedlock(mutex *lock, deadline *until)
{
	ACQUIRE(lock, next.pthread_mutex_trylock(lock), next.pthread_mutex_timedlock(lock, until));
}

PD_API int pthread_mutex_clocklock(mutex *lock, clockid_t clock, deadline *until)
{
	ACQUIRE(lock, next.pthread_mutex_trylock(lock), next.pthread_mutex_clocklock(lock, clock, until));
}

PD_API int pthread_rwlock_rdlock(rwlock *lock)
{
	ACQUIRE(lock, next.pthread_rwlock_tryrdlock(lock), next.pthread_rwlock_rdlock(lock));
}

PD_API int pthread_rwlock_wrlock(rwlock *lock)
{
	ACQUIRE(lock, next.pthread_rwlock_trywrlock(lock), next.pthread_rwlock_wrlock(lock));
}

PD_API int pthread_rwlock_timedrdlock(rwlock *lock, deadline *until)
{
	ACQUIRE(lock, next.pthread_rwlock_tryrdlock(lock), next.pthread_rwlock_timedrdlock(lock, until));
}

PD_API int pthread_rwlock_timedwrlock(rwlock *lock, deadline *until)
{
	ACQUIRE(lock, next.pthread_rwlock_trywrlock(lock), next.pthread_rwlock_timedwrlock(lock, until));
}

PD_API int pthread_rwlock_clockrdlock(rwlock *lock, clockid_t clock, deadline *until)
{
	ACQUIRE(lock, next.pthread_rwlock_tryrdlock(lock), next.pthread_rwlock_clockrdlock(lock, clock, until));
}

PD_API int pthread_rwlock_clockwrlock(rwlock *lock, clockid_t clock, deadline *until)
{
	ACQUIRE(lock, next.pthread_rwlock_trywrlock(lock), next.pthread_rwlock_clockwrlock(lock, clock, until));
}

#define TRY(lock, call) return recording(lock) ? held_after(call, lock) : call

PD_API int pthread_mutex_trylock(mutex *lock)
{
	TRY(lock, next.pthread_mutex_trylock(lock));
}

PD_API int pthread_rwlock_tryrdlock(rwlock *lock)
{
	TRY(lock, next.pthread_rwlock_tryrdlock(lock));
}

PD_API int pthread_rwlock_trywrlock(rwlock *lock)
{
	TRY(lock, next.pthread_rwlock_trywrlock(lock));
}

PD_API int pthread_mutex_unlock(mutex *lock)
{
	if (recording(lock))
		release(lock);
	return next.pthread_mutex_unlock(lock);
}

PD_API int pthread_rwlock_unlock(rwlock *lock)
{
	if (recording(lock))
		release(lock);
	return next.pthread_rwlock_unlock(lock);
}

/* A condition variable's wait gives the mutex back and takes it again, whatever it returns. */
#define WAIT(condition, lock, call) \
	do { \
		uint64_t since; \
		int result; \
		touched(condition); \
		if (!recording(lock)) \
			return call; \
		release(lock); \
		since = pd_ticks(); \
		result = call; \
		touched(lock); \
		waited(0, lock, since); \
		return result; \
	} while (0)

PD_API int pthread_cond_wait(cond *condition, mutex *lock)
{
	WAIT(condition, lock, next.pthread_cond_wait(condition, lock));
}

PD_API int pthread_cond_timedwait(cond *condition, mutex *lock, deadline *until)
{
	WAIT(condition, lock, next.pthread_cond_timedwait(condition, lock, until));
}

PD_API int pthread_cond_clockwait(cond *condition, mutex *lock, clockid_t clock, deadline *until)
{
	WAIT(condition, lock, next.pthread_cond_clockwait(condition, lock, clock, until));
}

#endif
