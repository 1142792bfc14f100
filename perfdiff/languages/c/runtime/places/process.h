/* What ends a process, between the files that look at it. */
#ifndef PD_PLACES_PROCESS_H
#define PD_PLACES_PROCESS_H

#include <signal.h>
#include <stdbool.h>

#include "places.h"

void pd_places_write(void);               /* writes all counts and begins anew */
void pd_places_mark(void);                /* says that there are counts to be written */
bool pd_places_is_deadly(int signal);     /* whether its default ends the process */
void pd_places_catch(int signal);         /* has counts written before it ends the process */
bool pd_places_catches(const struct sigaction *action); /* whether it is what `pd_places_catch` installs */

/* The C library's own, whatever stands before it. */
int pd_places_sigaction(int signal, const struct sigaction *action, struct sigaction *former);

#endif
