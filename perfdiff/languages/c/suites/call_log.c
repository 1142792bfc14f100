/*
 * Loaded into all processes of a test: each whose program lies below PERFDIFF_CALLS_OF appends to the file PERFDIFF_CALLS_TO how it was
 * called. A record is the number of its arguments, its program, its folder, what its standard input is, and its arguments, each ended by
 * a byte 0.
 */
#define _GNU_SOURCE

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST_BYTES 32768 /* of a record: calls with longer ones name no single sample */

struct record {
	size_t size;
	char bytes[MOST_BYTES];
};

static int add(struct record *record, const char *text)
{
	size_t size = strlen(text) + 1;

	if (size > sizeof(record->bytes) - record->size)
		return -1;
	memcpy(record->bytes + record->size, text, size);
	record->size += size;
	return 0;
}

static int add_link(struct record *record, const char *link)
{
	char path[PATH_MAX];
	ssize_t size = readlink(link, path, sizeof(path) - 1);

	path[size > 0 ? size : 0] = '\0';
	return add(record, path);
}

__attribute__((constructor)) static void log_call(int argc, char **argv)
{
	static struct record record;
	const char *below = getenv("PERFDIFF_CALLS_OF"), *name = getenv("PERFDIFF_CALLS_TO");
	char count[16];
	int file, i, failed;

	if (!below || !name)
		return;
	snprintf(count, sizeof(count), "%d", argc);
	failed = add(&record, count) || add_link(&record, "/proc/self/exe");
	if (failed || strncmp(record.bytes + strlen(count) + 1, below, strlen(below)) != 0)
		return;
	failed = add_link(&record, "/proc/self/cwd") || add_link(&record, "/proc/self/fd/0");
	for (i = 0; i < argc && !failed; i++)
		failed = add(&record, argv[i]);
	if (failed)
		return;
	file = open(name, O_WRONLY | O_APPEND | O_CLOEXEC);
	if (file < 0)
		return;
	if (write(file, record.bytes, record.size) < 0) /* then nobody knows of this call */
		record.size = 0;
	close(file);
}
