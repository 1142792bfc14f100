/* Counting of lines in a JVM: what the parts share. */
#ifndef PERFDIFF_JAVA_LINES_H
#define PERFDIFF_JAVA_LINES_H

#include "../agent/java_probe.h"
#include "../counting/counts.h"

enum pd_counts_flag {
	PD_DISTURBED = 1, /* not all is counted: it could not begin, a class was another one, or threads were virtual */
};

/* file.c */
bool pd_counts_open(const char *folder, uint64_t places);
void pd_counts_flag(enum pd_counts_flag flag);
uint64_t pd_counts_places(void);

#endif
