/* What a connection asks of a detached sandbox, checked before process 1 sees it. */
#ifndef BC_SANDBOX_HOLD_CHECK_H
#define BC_SANDBOX_HOLD_CHECK_H

#include "channel/held.h"

/* Each answers 1 for what process 1 takes; `in` is at the beginning of the payload. */
int bc_hold_exec_is_valid(bc_wire_reader in);
int bc_hold_file_is_valid(bc_wire_reader in);

#endif
