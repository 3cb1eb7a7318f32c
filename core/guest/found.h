/*
 * A computer that somebody else has made: a container, a machine that is reached by ssh. What
 * isolates it is theirs; here is set up what can be, and what the library asks for and nobody holds
 * is refused, or told where best effort is enough.
 */
#ifndef GUEST_FOUND_H
#define GUEST_FOUND_H

#include "isolate.h"

/* For the process that becomes process 1. Nothing of the set-up can be done after it. */
int found_set_up(struct plan *plan, struct layers *layers, struct failure *why);

#endif
