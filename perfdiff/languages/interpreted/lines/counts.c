/*
 * The counts of a process, in a file of its own that is mapped into memory: whatever ends the process, os._exit, exec or SIGKILL, what it
 * counted lies in the file. The child of a fork begins a new one, as workers of php-fpm do. Compiled into what counts lines in Python and PHP.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include "counts.h"

#ifndef PD_PER_CALL

#define MOST_FILES 1000 /* of one process number in a run: it changes its program as often, or numbers are used again */

/* The `places.py` of the languages read it: the counts follow. */
struct head {
	char magic[8];
	uint64_t places;
	uint64_t flags;
};

uint64_t *pd_counts;

static char folder[PATH_MAX];
static uint64_t places_count;
static struct head *head;
static int held = -1; /* its lock tells that the process still runs */

static int new_file(void)
{
	char path[PATH_MAX + 64];
	int file = -1;

	for (int i = 0; i < MOST_FILES && file < 0; i++) {
		snprintf(path, sizeof(path), "%s/%ld-%d.lines", folder, (long)getpid(), i);
		file = open(path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
		if (file < 0 && errno != EEXIST)
			break;
	}
	return file;
}

/* A file without a head is one whose process could not count. */
static int begin(void)
{
	size_t size = sizeof(*head) + places_count * sizeof(*pd_counts);
	void *mapped;
	int file = new_file(), error;

	head = NULL;
	pd_counts = NULL;
	held = file;
	if (file < 0)
		return -1;
	error = posix_fallocate(file, 0, (off_t)size); /* a full disk is told here, not by a signal later */
	if (error) {
		errno = error;
		return -1;
	}
	mapped = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	if (mapped == MAP_FAILED)
		return -1;
	flock(file, LOCK_EX);
	head = mapped;
	head->places = places_count;
	memcpy(head->magic, "PDLINES1", sizeof(head->magic));
	pd_counts = (uint64_t *)(head + 1);
	return 0;
}

/* The mapping is shared with the parent, whose counts it holds. */
static void begin_child(void)
{
	int error = errno;

	if (head)
		munmap(head, sizeof(*head) + places_count * sizeof(*pd_counts));
	if (held >= 0)
		close(held);
	begin();
	errno = error;
}

void pd_counts_flag(enum pd_counts_flag flag)
{
	if (head)
		head->flags |= flag;
}

/* Returns -1 with errno where nothing can be written. */
int pd_counts_open(const char *given, uint64_t places)
{
	if (strlen(given) >= sizeof(folder)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	strcpy(folder, given);
	places_count = places;
	if (begin())
		return -1;
	errno = pthread_atfork(NULL, NULL, begin_child);
	return errno ? -1 : 0;
}

#endif
