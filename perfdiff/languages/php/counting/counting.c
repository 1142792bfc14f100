/*
 * What calls do, counted: instructions that they execute, memory that they ask for, collections of garbage that this sets off, and the time of
 * these, their probed callees' left out; and the most memory that is in use at once. As the runtime's only source of counters it stands where
 * the software PMU stands in counted C programs.
 */
#include <stdlib.h>
#include <string.h>

#include "../runtime/php_probe.h"
#include "counting.h"

enum { OPCODES, ALLOCATIONS, BYTES, COLLECTIONS, COLLECTING, PEAK, COUNTERS };

static uint32_t source_open(struct pd_counter *counters, uint32_t room)
{
	static const char *const names[COUNTERS] = {"opcodes", "objects", "object_bytes", "collections", "collecting_ns", "peak_bytes"};

	if (room < COUNTERS || !getenv("PERFDIFF_LINES"))
		return 0;
	for (int i = 0; i < COUNTERS; i++) {
		strcpy(counters[i].name, names[i]);
		counters[i].flags = i == COLLECTING ? 0 : PD_COUNTER_EXACT;
	}
	return COUNTERS;
}

static void source_read(struct pd_thread *thread __attribute__((unused)), uint64_t *values)
{
	values[OPCODES] = pd_instructions;
	values[ALLOCATIONS] = pd_allocations.count;
	values[BYTES] = pd_allocations.bytes;
	values[COLLECTIONS] = pd_collections;
	values[COLLECTING] = pd_collecting_ns;
	values[PEAK] = pd_memory_in_use();
}

static uint64_t source_peak(uint64_t highest)
{
	uint64_t before = pd_allocations.highest, now = pd_memory_in_use();

	pd_allocations.highest = now != PD_ABSENT && now > highest ? now : highest;
	return before;
}

PD_API const struct pd_counter_source pd_pmu_counters = {.open = source_open, .read = source_read, .peak = source_peak};

static bool is_counting;

/* Returns false where instructions cannot be counted. */
bool pd_counting_begin(void)
{
	const char *sheet = getenv("PERFDIFF_LINES");
	uint64_t places = 0;

	if (!sheet)
		return true;
	if (pd_lines_sheet_read(sheet, &places) || pd_codes_begin() || pd_instructions_begin())
		return false;
	zend_add_system_entropy("perfdiff", "counting", NULL, 0); /* code that is kept in files by a PHP without us has no handlers */
	pd_calls_begin();
	is_counting = true;
	return true;
}

void pd_counting_request_begin(void)
{
	if (is_counting)
		pd_allocations_begin();
}

void pd_counting_request_end(void)
{
	if (is_counting)
		pd_allocations_end();
}
