/*
 * Which probes' functions were called between one moment and the next: a driver that runs tests one after the other marks where each ends. A
 * line each in the file that PERFDIFF_MARKS names: the process and the time in ns since 1970, a tab, pairs of a probe and its calls since
 * the last mark, a tab, and the driver's text.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime.h"

#define PAIR_BYTES 34u /* of two numbers at most, and what stands between them */
#define LINE_BYTES 4096u /* for the text and what comes before the pairs */

static uint64_t *counted; /* of each probe, up to the last mark */
static char *line;

static uint64_t calls_of(uint32_t probe)
{
	uint64_t calls = 0;

	for (const struct pd_thread *thread = pd_process.threads; thread; thread = thread->next_thread) {
		const struct pd_local *local = &thread->locals[probe];

		if (local->totals)
			calls += local->totals->calls + local->granted - thread->gates[probe];
	}
	return calls;
}

static bool marks_begin(void)
{
	if (!counted)
		counted = pd_memory(pd_process.probes * sizeof(*counted));
	if (!line)
		line = pd_memory(pd_process.probes * (size_t)PAIR_BYTES + LINE_BYTES);
	return counted && line;
}

/* Writes a line; returns whether it could be written. The texts of a driver have no tabs and no ends of lines. */
PD_API int pd_mark(const char *text)
{
	const char *path = secure_getenv("PERFDIFF_MARKS");
	size_t length;
	bool is_written;
	int file;

	if (!path || !pd_is_recorded_process() || strlen(text) > LINE_BYTES / 2 || !marks_begin())
		return 0;
	length = (size_t)sprintf(line, "%ld %llu\t", (long)getpid(), (unsigned long long)pd_clock_ns(CLOCK_REALTIME));
	for (uint32_t probe = 1; probe < pd_process.probes; probe++) {
		uint64_t calls = calls_of(probe);

		if (calls > counted[probe])
			length += (size_t)sprintf(line + length, "%u %llu ", probe, (unsigned long long)(calls - counted[probe]));
		counted[probe] = calls;
	}
	length += (size_t)sprintf(line + length, "\t%s\n", text);
	file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	if (file < 0)
		return 0;
	is_written = write(file, line, length) == (ssize_t)length;
	close(file);
	return is_written;
}
