/* What tells of events leaves them out of the count of allocations, by these two (../counting/allocations.c); NULL where nothing is counted. */
#ifndef PD_PAUSE_H
#define PD_PAUSE_H

#include <stdbool.h>
#include <stddef.h>

/* Leave out what this thread asks for; or an object that was just made to tell us of an event. */
void pd_allocations_pause(bool pauses) __attribute__((weak, visibility("hidden")));
void pd_allocations_forget(const void *object, size_t head) __attribute__((weak, visibility("hidden")));

#endif
