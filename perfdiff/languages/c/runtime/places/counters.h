/*
 * Tells the writer of the counters of the program or library that this is linked into: included with PD_WRITE and PD_CLEAR defined, and
 * PD_SETTLE, which says where counts go. Each program and library has functions of its own for that, so this is an object in each of them.
 */
#include "places.h"

static void write_counts(void)
{
	PD_WRITE();
}

static void clear_counts(void)
{
	PD_CLEAR();
}

static struct pd_places places = {write_counts, clear_counts, 0};

__attribute__((constructor(101))) static void begin(void)
{
	PD_SETTLE(secure_getenv("PERFDIFF_PLACES"));
	pd_places_add(&places);
}

/* Behind all that the program itself does at its end; the compilers' own writing follows. */
__attribute__((destructor(101))) static void end(void)
{
	pd_places_remove(&places);
}
