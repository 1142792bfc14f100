/* What locks do in memory: a call that takes, tries or gives back a lock changes its words once, however long it waits. */
#include <pthread.h>

#include "pmu.h"

#define LOCK_BYTES 16u /* glibc's state, owner and users lie at the start of all kinds */

void pd_lock_touched(const void *lock);

void pd_lock_touched(const void *lock)
{
	pd_access_atomic(lock, LOCK_BYTES);
}

#ifndef PD_STATIC

typedef int spin_function(pthread_spinlock_t *);

static int spin(spin_function **next, const char *name, pthread_spinlock_t *lock)
{
	if (pd_unlikely(!*next))
		*next = (spin_function *)pd_next_function(name);
	pd_access_atomic((const void *)lock, sizeof(*lock));
	return (*next)(lock);
}

#define SPIN(name) \
	static spin_function *next_##name; \
\
	static PD_RESOLVE void find_##name(void) \
	{ \
		next_##name = (spin_function *)pd_next_function(#name); \
	} \
\
	PD_API int name(pthread_spinlock_t *lock) \
	{ \
		return spin(&next_##name, #name, lock); \
	}

SPIN(pthread_spin_lock)
SPIN(pthread_spin_trylock)
SPIN(pthread_spin_unlock)

#endif
