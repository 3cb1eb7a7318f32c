/* The library's side of the launcher: one process per runtime, started with its first sandbox. */
#ifndef BC_SANDBOX_LAUNCHER_H
#define BC_SANDBOX_LAUNCHER_H

#include "internal.h"

/* Starts it when the room has none. */
int bc_launcher_ensure(bc_room *room, barchan_error *err);
/* Sends what sandboxes want: starts and kills. What does not fit now is sent later. */
void bc_launcher_serve(bc_launcher *launcher);
/* "privileged, …" once it has said so, else "". */
const char *bc_launcher_mode(const bc_launcher *launcher);
/* Ends the process, waits for it and frees. NULL is ignored. */
void bc_launcher_close(bc_launcher *launcher);

#endif
