/*
 * The provider without a wire: plays recorded turns from a transcript, one JSON object a line.
 * Lines with "type":"model_reply" hold {"reply": {a neutral reply}}; other lines are skipped.
 */
#ifndef BC_PROVIDER_REPLAY_H
#define BC_PROVIDER_REPLAY_H

#include "base/json_view.h"

typedef struct bc_replay bc_replay;

/* Reads and checks the transcript. Errors name the file and the line. */
int bc_replay_open(bc_replay **out, const char *path, barchan_error *err);
void bc_replay_close(bc_replay *replay);
/* The next turn: its neutral reply as JSON text in `out`, complete even where the recording left
 * members out. BARCHAN_ENOTFOUND when the transcript is exhausted. */
int bc_replay_next(bc_replay *replay, bc_buf *out, barchan_error *err);

#endif
