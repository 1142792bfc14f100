/* The counters of objects that gcc compiled. */
void __gcov_dump(void);
void __gcov_reset(void);

#define PD_WRITE __gcov_dump
#define PD_CLEAR __gcov_reset
#include "counters.h"
