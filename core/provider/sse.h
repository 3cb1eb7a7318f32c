/*
 * Server-sent events, read as they arrive, in pieces of any size.
 *
 * Works on bytes: a line ends at LF, CRLF or CR and nowhere else. `data` lines of one event are
 * joined with LF; comments, `id`, `retry` and unknown fields are dropped. An event without data
 * is none. At the end of the stream an unfinished last event is still given.
 */
#ifndef BC_PROVIDER_SSE_H
#define BC_PROVIDER_SSE_H

#include "base/buf.h"
#include "base/json_scan.h"

/* `event` is the event's name, "" when it had none; both are borrowed for the call. A negative
 * return ends the reading with that status. */
typedef int (*bc_sse_fn)(const char *event, bc_json_span data, void *ud, barchan_error *err);

typedef struct bc_sse {
    bc_sse_fn fn;
    void *ud;
    bc_buf line; /* the line that has no end yet */
    bc_buf data; /* of the event that has no end yet */
    char event[64];
    int has_data;
    int skip_lf; /* the last byte was a CR: an LF that follows belongs to it */
    int ending;  /* the stream is over, what is given now may be cut */
    int begun;   /* the first line has been seen: no byte order mark any more */
} bc_sse;

void bc_sse_init(bc_sse *sse, bc_sse_fn fn, void *ud);
void bc_sse_clear(bc_sse *sse);
/* 0, what fn returned, or BARCHAN_ELIMIT. */
int bc_sse_feed(bc_sse *sse, const char *data, size_t len, barchan_error *err);
int bc_sse_end(bc_sse *sse, barchan_error *err);

#endif
