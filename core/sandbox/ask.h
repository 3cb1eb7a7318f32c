/* Questions to process 1 about the sandbox as a whole: one stream each, one answer. */
#ifndef BC_SANDBOX_ASK_H
#define BC_SANDBOX_ASK_H

#include "internal.h"

/* `in` stands behind the status, at what was asked for; with err it is NULL. Negative: malformed.
 */
typedef int (*bc_ask_fn)(bc_wire_reader *in, const barchan_error *err, void *ud);

/* `done` is called exactly once when this returned 0, never inside this call. No answer within
 * patience_ms is an error; -1: it may take any time. */
int bc_ask_start(barchan_sandbox *sbx, uint32_t what, uint64_t argument, int64_t patience_ms,
                 bc_ask_fn done, void *ud, barchan_error *err);

#endif
