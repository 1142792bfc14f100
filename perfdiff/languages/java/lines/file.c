/*
 * The counts of a process, in a file of its own that is mapped into memory: whatever ends the process, what it counted lies in the file. Each
 * thread counts in a part of its own, and one that begins where another has ended counts on in that one's: all parts together are the process's.
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

#include "lines.h"

#define MOST_FILES 1000 /* of one process number in a run: it changes its program as often, or numbers are used again */
#define PAGE 4096u

/* languages/java/places.py reads it: from the next page on the parts follow, of `part` bytes each. */
struct head {
	char magic[8];
	uint64_t places;
	uint64_t flags;
	uint64_t part;
	uint64_t parts;
};

static struct head *head;
static int file = -1; /* its lock tells that the process still runs */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int new_file(const char *folder)
{
	char path[PATH_MAX + 64];
	int made = -1;

	for (int i = 0; i < MOST_FILES && made < 0; i++) {
		snprintf(path, sizeof(path), "%s/%ld-%d.lines", folder, (long)getpid(), i);
		made = open(path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
		if (made < 0 && errno != EEXIST)
			break;
	}
	return made;
}

/* A file without a head is one whose process could not count. */
bool pd_counts_open(const char *folder, uint64_t places)
{
	void *mapped;

	file = strlen(folder) < PATH_MAX ? new_file(folder) : -1;
	if (file < 0 || posix_fallocate(file, 0, PAGE)) /* a full disk is told here, not by a signal later */
		return false;
	mapped = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	if (mapped == MAP_FAILED)
		return false;
	flock(file, LOCK_EX);
	head = mapped;
	head->places = places;
	head->part = (sizeof(struct pd_counted) + places * sizeof(uint64_t) + PAGE - 1) / PAGE * PAGE;
	memcpy(head->magic, "PDJLINE1", sizeof(head->magic));
	return true;
}

uint64_t pd_counts_places(void)
{
	return head ? head->places : 0;
}

void pd_counts_flag(enum pd_counts_flag flag)
{
	if (head)
		head->flags |= flag;
}

void pd_counted_virtual(void)
{
	pd_counts_flag(PD_DISTURBED);
}

/* What the thread before has counted stays. */
void pd_counted_empty(struct pd_counted *counted)
{
	(void)counted;
}

static struct pd_counted *part_make(void)
{
	off_t begin = (off_t)(PAGE + head->parts * head->part);
	void *mapped;

	if (posix_fallocate(file, begin, (off_t)head->part))
		return NULL;
	mapped = mmap(NULL, head->part, PROT_READ | PROT_WRITE, MAP_SHARED, file, begin);
	if (mapped == MAP_FAILED)
		return NULL;
	head->parts++;
	return mapped;
}

struct pd_counted *pd_counted_make(size_t bytes)
{
	struct pd_counted *made;

	(void)bytes;
	pthread_mutex_lock(&lock);
	made = part_make();
	pthread_mutex_unlock(&lock);
	if (!made)
		pd_counts_flag(PD_DISTURBED);
	return made;
}
