/*
 * The answers on one HTTP/1 connection on their way into the sandbox: their framing is followed, so
 * that values are found in what a program will read, however the server has cut it, and taken out
 * (redactor.h). Chunks are written anew; lengths stay; a body without a length gets chunks, so that
 * a program can tell its end from where it broke off.
 *
 * Stricter than a browser: what two readers could frame in two ways is refused.
 *
 * Pure: no I/O.
 */
#ifndef BC_EGRESS_RESPONSE_STREAM_H
#define BC_EGRESS_RESPONSE_STREAM_H

#include <stdbool.h>
#include "egress/redactor.h"

#define BC_RESPONSE_HEAD_MAX (64u << 10)
#define BC_RESPONSE_MAX_FIELDS 256
#define BC_RESPONSE_LINE_MAX 4096u /* of a chunk's size or a trailer */
/* Heads with 1xx before the one that counts. */
#define BC_RESPONSE_MAX_INTERIM 16

typedef struct bc_response_stream {
    bc_redactor redactor;
    bc_buf line; /* a head, or a line of the framing, that is not whole yet */
    bc_buf part; /* a part of a chunk */
    int state;
    bool waiting;   /* a request has no whole answer yet */
    bool head_only; /* of HEAD */
    bool begun;     /* a part of this answer has been passed on, but not its end */
    bool last;      /* nothing can follow on this connection */
    bool closes;    /* and the program is told so, whatever the server says */
    bool hurried;   /* see bc_response_hurry */
    bool broken;    /* off, before what was held back */
    int interim;
    uint64_t answers; /* that have been whole */
    int64_t left;     /* of the body or chunk */
    const char *why;  /* it was refused */
} bc_response_stream;

/* 0 or BARCHAN_ENOMEM. */
int bc_response_init(bc_response_stream *stream, bc_patterns *patterns);
void bc_response_clear(bc_response_stream *stream); /* zeroed is fine */
/* A request is on its way: exactly one answer is expected. `closes`: it is the connection's last.
 */
void bc_response_expect(bc_response_stream *stream, bool head_only, bool closes);
/* The server hears that the program says no more, or more of the request that it is answering:
 * where the answers end from now on, but for one whose length is known already, the program may
 * have chosen, and so they break off before what is held back. */
void bc_response_hurry(bc_response_stream *stream);
/* It would make a difference: an answer has begun, whose end is not known. */
bool bc_response_can_be_hurried(const bc_response_stream *stream);
/* The values have changed: from here on these are taken out, in the midst of an answer, too.
 * Negative: out of memory. */
int bc_response_mask(bc_response_stream *stream, bc_patterns *patterns, bc_buf *out);
/* Takes all of it and appends what is for the program. Negative: refused, `why` says why; out of
 * memory is refused, too. */
int bc_response_feed(bc_response_stream *stream, const char *data, size_t len, bc_buf *out);
/* A request waits, and not a byte of its answer has come. */
bool bc_response_is_silent(const bc_response_stream *stream);
/* The server says no more; cut_off: without TLS's goodbye. Negative: in the midst of an answer, or
 * in what may be. */
int bc_response_end(bc_response_stream *stream, bool cut_off, bc_buf *out);

#endif
