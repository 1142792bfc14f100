/*
 * Descriptors of events lie among the target's. A target that closes all it has, as daemons do, closes them too, and may get their numbers
 * for files of its own: reading counters would then read these. So the functions that close descriptors are interposed, and once they have
 * taken one of ours no event is read by one any more.
 */
#include "descriptors.h"

#ifndef PD_STATIC

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#ifndef CLOSE_RANGE_CLOEXEC /* before glibc 2.34 */
#define CLOSE_RANGE_CLOEXEC (1u << 2)
#endif
#define KIND "anon_inode:[perf_event]"
#define SHARE 4u /* of the target's limit we take no more than this part */

PD_TLS bool pd_inside_papi;
static _Atomic uint64_t ours[PD_DESCRIPTORS / 64];
static _Atomic bool any, lost;
static _Atomic uint32_t taken_now;
static pid_t owner;

/* Lists the process's descriptors of perf events. False where one is beyond those that are known by number, or none can be listed. */
bool pd_descriptors_list(struct pd_descriptors *found)
{
	DIR *folder = opendir("/proc/self/fd");
	bool whole = folder != NULL;
	struct dirent *entry;

	memset(found, 0, sizeof(*found));
	while (folder && (entry = readdir(folder))) {
		char kind[sizeof(KIND)];
		ssize_t length = readlinkat(dirfd(folder), entry->d_name, kind, sizeof(kind));
		unsigned long number = strtoul(entry->d_name, NULL, 10);

		if (length != sizeof(KIND) - 1 || memcmp(kind, KIND, (size_t)length))
			continue;
		if (number < PD_DESCRIPTORS)
			found->bits[number / 64] |= UINT64_C(1) << number % 64;
		else
			whole = false;
	}
	if (folder)
		closedir(folder);
	return whole;
}

/* Takes those that were not there `before` for ours; programs that are executed do not inherit them. */
bool pd_descriptors_adopt(const struct pd_descriptors *before)
{
	struct pd_descriptors now;

	if (!pd_descriptors_list(&now))
		return false;
	owner = getpid();
	for (unsigned word = 0; word < PD_DESCRIPTORS / 64; word++) {
		uint64_t added = now.bits[word] & ~before->bits[word];

		atomic_fetch_or(&ours[word], added);
		for (; added; added &= added - 1)
			fcntl((int)(word * 64 + (unsigned)__builtin_ctzll(added)), F_SETFD, FD_CLOEXEC);
	}
	atomic_store(&any, true);
	return true;
}

/* Takes one that was opened for us; false where it is beyond those that are known by number. */
bool pd_descriptors_own(int descriptor)
{
	if (descriptor < 0 || (unsigned)descriptor >= PD_DESCRIPTORS)
		return false;
	owner = getpid();
	atomic_fetch_or(&ours[(unsigned)descriptor / 64], UINT64_C(1) << (unsigned)descriptor % 64);
	atomic_store(&any, true);
	return true;
}

/* Whether so many more leave the target enough. */
bool pd_descriptors_take(uint32_t wanted)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return false;
	if (atomic_fetch_add(&taken_now, wanted) + wanted <= limit.rlim_cur / SHARE)
		return true;
	atomic_fetch_sub(&taken_now, wanted);
	return false;
}

void pd_descriptors_give(uint32_t taken)
{
	atomic_fetch_sub(&taken_now, taken);
}

bool pd_descriptors_lost(void)
{
	return atomic_load_explicit(&lost, memory_order_relaxed);
}

/* In the child of a fork, which counts by descriptors of its own; whoever asks first there does it for all. */
void pd_descriptors_forget(void)
{
	if (owner == getpid())
		return;
	owner = getpid();
	atomic_store(&taken_now, 0);
	for (unsigned word = 0; word < PD_DESCRIPTORS / 64; word++)
		atomic_store(&ours[word], 0);
	atomic_store(&lost, false);
}

/* Notes that descriptors from `first` to `last` are being closed. */
static __attribute__((noinline, cold)) void closing_ours(unsigned first, unsigned last)
{
	int error = errno;

	for (unsigned number = first; number <= last && number < PD_DESCRIPTORS; number++) {
		uint64_t bit = UINT64_C(1) << number % 64;

		if (!(atomic_load_explicit(&ours[number / 64], memory_order_relaxed) & bit))
			continue;
		if (pd_inside_papi)
			atomic_fetch_and(&ours[number / 64], ~bit);
		else if (owner == getpid()) /* the child of a vfork has our memory, and descriptors of its own */
			atomic_store(&lost, true);
	}
	errno = error;
}

static inline void closing(unsigned first, unsigned last)
{
	if (pd_unlikely(atomic_load_explicit(&any, memory_order_relaxed)))
		closing_ours(first, last);
}

#define FUNCTIONS(X) \
	X(int, close, (int)) \
	X(int, dup2, (int, int)) \
	X(int, dup3, (int, int, int)) \
	X(int, close_range, (unsigned, unsigned, int)) \
	X(void, closefrom, (int))

#define DECLARE(type, name, arguments) type (*name) arguments;
static struct {
	FUNCTIONS(DECLARE)
} next;

static PD_RESOLVE void find_all(void)
{
#define FIND(type, name, arguments) next.name = (type (*) arguments)pd_next_function(#name);
	FUNCTIONS(FIND)
}

static inline void ensure(void)
{
	if (pd_unlikely(!next.close))
		find_all();
}

PD_API int close(int descriptor)
{
	ensure();
	closing((unsigned)descriptor, (unsigned)descriptor);
	return next.close(descriptor);
}

PD_API int dup2(int descriptor, int other)
{
	ensure();
	closing((unsigned)other, (unsigned)other);
	return next.dup2(descriptor, other);
}

PD_API int dup3(int descriptor, int other, int flags)
{
	ensure();
	closing((unsigned)other, (unsigned)other);
	return next.dup3(descriptor, other, flags);
}

PD_API int close_range(unsigned first, unsigned last, int flags)
{
	ensure();
	if (!next.close_range) { /* before glibc 2.34 */
		errno = ENOSYS;
		return -1;
	}
	if (!((unsigned)flags & CLOSE_RANGE_CLOEXEC)) /* which closes none before a program is executed */
		closing(first, last);
	return next.close_range(first, last, flags);
}

PD_API void closefrom(int first)
{
	ensure();
	closing((unsigned)(first > 0 ? first : 0), PD_DESCRIPTORS);
	if (next.closefrom)
		next.closefrom(first);
}

#endif
