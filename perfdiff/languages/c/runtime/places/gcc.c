/* The counters of objects that gcc compiled: GCOV_PREFIX says where they go. */
#include <stdlib.h>

void __gcov_dump(void);
void __gcov_reset(void);

#define PD_WRITE __gcov_dump
#define PD_CLEAR __gcov_reset
#define PD_SETTLE(folder) ((void)(folder))
#include "counters.h"
