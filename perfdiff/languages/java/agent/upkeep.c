/*
 * What the virtual machine does beside the program, by its own counters (`jcmd PID PerfCounter.print`): it keeps them in a file that is mapped
 * into this process. They are told at the end, as shares of the run; whose calls they fall into is not known.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "java_probe.h"

#define LEAST_NS UINT64_C(2000000000) /* of a run: in a shorter one most is the machine's start */
#define MAGIC 0xcafec0c0u	      /* written in the order of big-endian machines */

/* The head of the file, and that of a counter, as HotSpot's PerfMemory.hpp describes them. */
struct head {
	uint32_t magic;
	uint8_t order, major, minor, accessible;
	int32_t used, overflow;
	int64_t changed;
	int32_t first, count;
};

struct counter {
	int32_t length, name, vector;
	uint8_t type, flags, unit, variability;
	int32_t data;
};

static const struct head *mapped(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	const struct head *found = NULL;
	char line[1024];

	while (maps && !found && fgets(line, sizeof(line), maps)) {
		uintptr_t start;

		if (strstr(line, "/hsperfdata_") && sscanf(line, "%" SCNxPTR, &start) == 1)
			found = (const struct head *)start;
	}
	if (maps)
		fclose(maps);
	return found && __builtin_bswap32(found->magic) == MAGIC && found->accessible ? found : NULL;
}

/* Returns a counter of 64 bits, 0 where there is none of its name. */
static int64_t counted(const struct head *head, const char *name)
{
	const char *at = (const char *)head + head->first;

	for (int32_t i = 0; i < head->count; i++) {
		const struct counter *counter = (const struct counter *)at;

		if (counter->type == 'J' && !counter->vector && !strcmp(at + counter->name, name))
			return *(const int64_t *)(at + counter->data);
		if (counter->length <= 0)
			break;
		at += counter->length;
	}
	return 0;
}

/* `collected_ns` of the `run_ns` went to collections of garbage, which are told apart. */
void pd_upkeep_tell(uint64_t run_ns, uint64_t collected_ns)
{
	const struct head *head = run_ns < LEAST_NS ? NULL : mapped();
	double second = head ? (double)counted(head, "sun.os.hrt.frequency") : 0;
	double run_s = (double)run_ns / 1e9, stopped_s;

	if (!second)
		return;
	stopped_s = (double)counted(head, "sun.rt.safepointTime") / second;
	if ((double)counted(head, "sun.cls.time") / second > run_s / 10)
		pd_note("loading", "loading classes made up more than a tenth of runs: it counts as the calls' that needed them first");
	if ((double)counted(head, "java.ci.totalTime") / second > run_s / 2)
		pd_note("compiling", "the JVM's compilers worked more than half as long as runs took, in threads of their own: whole runs have "
				     "that in their CPU time, calls do not");
	if (stopped_s - (double)collected_ns / 1e9 > run_s / 100)
		pd_note("stopped", "the JVM stopped all threads for more than 1 % of runs for other things than collections of garbage: "
				   "that counts as the calls' that it interrupted");
}
