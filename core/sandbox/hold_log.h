/* The last of what a detached sandbox's commands wrote, in the order in which it came. */
#ifndef BC_SANDBOX_HOLD_LOG_H
#define BC_SANDBOX_HOLD_LOG_H

#include "base/buf.h"
#include "channel/held.h"

typedef struct bc_hold_log {
    bc_buf records; /* u32 command, u32 type, u32 length, bytes; the oldest first */
    uint64_t start; /* how many bytes of output came before the first record */
    uint64_t end;   /* ... and in all */
} bc_hold_log;

void bc_hold_log_init(bc_hold_log *log);
void bc_hold_log_clear(bc_hold_log *log);
void bc_hold_log_add(bc_hold_log *log, uint32_t command, uint32_t type, const void *data,
                     size_t len);
/* Writes the answer to BC_HELD_ASK_LOGS, as much as fits. */
void bc_hold_log_answer(const bc_hold_log *log, uint64_t cursor, bc_wire_writer *out);

#endif
