/* The memory and string functions of the C library as the runtime itself uses them: nobody sees what they touch. */
#ifndef PD_MEMORY_H
#define PD_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

/* Reached without relocations, as the program may still be being linked. */
#pragma GCC visibility push(hidden)

extern bool pd_memory_ready; /* the constructor has run: until then, nothing is to be reported */

void *pd_move(void *to, const void *from, size_t size); /* they may overlap */
void *pd_set(void *to, int byte, size_t size);
size_t pd_length(const char *text, size_t limit);
const char *pd_find(const void *memory, int byte, size_t size);
const char *pd_find_last(const void *memory, int byte, size_t size);
const char *pd_find_text(const char *text, const char *part);
size_t pd_compared(const void *one, const void *other, size_t size);           /* bytes up to and with the first difference */
size_t pd_compared_text(const char *one, const char *other, size_t limit);     /* or up to and with the terminators */
int pd_difference(const void *one, const void *other, size_t compared);        /* of the last byte compared */

#pragma GCC visibility pop

#endif
