/*
 * What calls do, counted: lines that they begin, memory that they ask for, collections of garbage that this sets off, and the time of these;
 * their probed callees' left out. As the runtime's only source of counters it stands where the software PMU stands in counted C programs.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdlib.h>
#include <string.h>

#include "../../c/runtime/runtime.h"
#include "../lines/lines.h"
#include "allocations.h"
#include "garbage.h"

bool pd_evaluator_stands(void); /* ../runtime/evaluator.c */
bool pd_counting_begin(void);
bool pd_counting_stands(void);

__thread uint64_t pd_lines_begun;

enum { LINES, ALLOCATIONS, BYTES, COLLECTIONS, COLLECTING, COUNTERS };

static uint32_t source_open(struct pd_counter *counters, uint32_t room)
{
	static const char *const names[COUNTERS] = {"lines", "objects", "object_bytes", "collections", "collecting_ns"};

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
	if (PyGILState_Check())
		pd_arrays_look();
	values[LINES] = pd_lines_begun;
	values[ALLOCATIONS] = pd_allocations.count;
	values[BYTES] = pd_allocations.bytes;
	values[COLLECTIONS] = pd_garbage_collections();
	values[COLLECTING] = pd_garbage_ns();
}

PD_API const struct pd_counter_source pd_pmu_counters = {.open = source_open, .read = source_read};

void pd_counts_flag(enum pd_counts_flag flag __attribute__((unused)))
{
	static bool is_told;

	if (!is_told)
		pd_note("traced", "the program traces itself: what it does meanwhile is not counted");
	is_told = true;
}

/* Returns false where lines cannot be counted. */
bool pd_counting_begin(void)
{
	const char *sheet = getenv("PERFDIFF_LINES");
	uint64_t places;

	if (!sheet)
		return true;
	pd_lasting_begin(); /* below ours, so that what it asks for itself is not counted */
	pd_allocations_begin();
	return pd_garbage_begin() && !pd_lines_sheet_read(sheet, &places) && !pd_codes_begin() && !pd_events_begin();
}

/* Whether the evaluator of frames that is in front is one of ours. */
bool pd_counting_stands(void)
{
#if PY_VERSION_HEX < 0x030c0000
	if (pd_events_stand())
		return true;
#endif
	return pd_evaluator_stands();
}
