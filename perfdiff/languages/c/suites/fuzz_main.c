/*
 * A main for fuzz targets, which libFuzzer's own takes the place of where inputs are searched for: calls the target with what a file holds.
 *
 *     TARGET FILE CALLS     calls it so often
 *     TARGET FILE 0 TIMES   calls it for a while, and writes to TIMES what CPU time passed before the first call, and what a call takes
 */
#define _POSIX_C_SOURCE 200809L

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define WHILE_S 0.02 /* long enough for a clock of 1 us, short beside the start of a process and its listing */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
__attribute__((weak)) int LLVMFuzzerInitialize(int *argc, char ***argv);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);

/* Targets with a mutator of their own ask for it; nothing is mutated here. */
__attribute__((weak)) size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most)
{
	(void)data;
	return size < most ? size : most;
}

static double seconds(clockid_t clock)
{
	struct timespec now;

	if (clock_gettime(clock, &now))
		return 0.0;
	return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Return for how many seconds this thread has waited for a CPU, as far as the kernel tells: on a busy machine these are none of a call's. */
static double waited(void)
{
	FILE *file = fopen("/proc/thread-self/schedstat", "r");
	unsigned long long ran, nanoseconds = 0;

	if (!file)
		return 0.0;
	if (fscanf(file, "%llu %llu", &ran, &nanoseconds) != 2)
		nanoseconds = 0;
	fclose(file);
	return 1e-9 * (double)nanoseconds;
}

/* Return the seconds of a clock that stands still meanwhile. */
static double own_s(void)
{
	double before, now;

	do {
		before = waited();
		now = seconds(CLOCK_MONOTONIC);
	} while (waited() != before); /* what it waits between the two would count twice, or not at all */
	return now - before;
}

static int failed(const char *name)
{
	fprintf(stderr, "%s: %s\n", name, strerror(errno));
	return 2;
}

/* Return a copy of what a file holds, and its size; NULL where it cannot be read. */
static uint8_t *content(const char *name, size_t *size)
{
	FILE *file = fopen(name, "rb");
	uint8_t *data = NULL;
	long end;

	if (!file)
		return NULL;
	if (fseek(file, 0, SEEK_END) == 0 && (end = ftell(file)) >= 0 && fseek(file, 0, SEEK_SET) == 0) {
		*size = (size_t)end;
		data = malloc(*size ? *size : 1); /* not a byte more: who reads beyond it is seen by tools that look for that */
		if (data && fread(data, 1, *size, file) != *size) {
			free(data);
			data = NULL;
		}
	}
	fclose(file);
	return data;
}

static int timed(const uint8_t *data, size_t size, const char *name)
{
	double start_s = seconds(CLOCK_PROCESS_CPUTIME_ID), begun = own_s(), until = seconds(CLOCK_MONOTONIC) + WHILE_S, taken;
	unsigned long calls = 0;
	FILE *file;

	do {
		LLVMFuzzerTestOneInput(data, size);
		calls++;
	} while (seconds(CLOCK_MONOTONIC) < until);
	taken = own_s() - begun;
	file = fopen(name, "w");
	if (!file)
		return failed(name);
	fprintf(file, "%.9f %.12f\n", start_s, taken / (double)calls);
	return fclose(file) ? failed(name) : 0;
}

int main(int argc, char **argv)
{
	char *own[] = {argv[0], NULL}, **words = own;
	int count = 1;
	unsigned long calls;
	uint8_t *data;
	size_t size = 0;
	int status = 0;

	if (argc < 3) {
		fprintf(stderr, "usage: %s FILE CALLS\n", argv[0]);
		return 2;
	}
	data = content(argv[1], &size);
	if (!data)
		return failed(argv[1]);
	if (LLVMFuzzerInitialize)
		LLVMFuzzerInitialize(&count, &words);
	calls = strtoul(argv[2], NULL, 10);
	if (calls == 0 && argc > 3)
		status = timed(data, size, argv[3]);
	for (; calls > 0; calls--)
		LLVMFuzzerTestOneInput(data, size);
	free(data);
	return status;
}
