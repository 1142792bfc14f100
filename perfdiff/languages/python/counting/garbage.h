/* Collections of garbage: how many, and how long they take. */
#ifndef PD_GARBAGE_H
#define PD_GARBAGE_H

#include <stdbool.h>
#include <stdint.h>

bool pd_garbage_begin(void);
bool pd_garbage_collects(void); /* whether one goes on: what it asks for is not the program's */
uint64_t pd_garbage_collections(void);
uint64_t pd_garbage_ns(void);

#endif
