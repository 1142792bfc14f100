/* Descriptors that we and PAPI have opened in the target's process, for events of the kernel and of hardware. */
#ifndef PD_DESCRIPTORS_H
#define PD_DESCRIPTORS_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime.h"

#define PD_DESCRIPTORS 8192u /* those below are known by number; a thread that gets a higher one goes without */

struct pd_descriptors {
	uint64_t bits[PD_DESCRIPTORS / 64];
};

extern PD_TLS bool pd_inside_papi; /* what this thread opens and closes now is PAPI's, or ours */

bool pd_descriptors_list(struct pd_descriptors *found);
bool pd_descriptors_adopt(const struct pd_descriptors *before);
bool pd_descriptors_own(int descriptor);
bool pd_descriptors_lost(void);
void pd_descriptors_forget(void);
bool pd_descriptors_take(uint32_t wanted);
void pd_descriptors_give(uint32_t taken);

#endif
