/* How often each place of a process's code ran, in the file of the process. */
#ifndef PERFDIFF_COUNTS_H
#define PERFDIFF_COUNTS_H

#include <stdint.h>

#ifndef PD_PER_CALL
/* How often each place ran in this process so far: in the process's file, so that its end cannot lose them. NULL where there is none. */
extern uint64_t *pd_counts;
#endif

enum pd_counts_flag {
	PD_DISTURBED = 1, /* not all is counted: it could not begin, or a debugger took the place of what counts */
};

int pd_counts_open(const char *folder, uint64_t places);
void pd_counts_flag(enum pd_counts_flag flag);

#endif
