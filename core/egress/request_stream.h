/*
 * The requests of one HTTP/1 connection, one after another, so that each one's host is looked at
 * and not the first one's only. Follows the framing of bodies; holds no bytes itself.
 *
 *     while (held bytes) {
 *         switch (bc_request_stream_step(&stream, held, len, &used)) {
 *         case BC_SNIFF_DONE: check stream.head, then pass `used` bytes on; break;
 *         case BC_SNIFF_MORE: pass `used` bytes on; when that is 0, wait for more; break;
 *         case BC_SNIFF_BAD: close; }
 *     }
 *
 * Behind a head that asks for another protocol (Upgrade, CONNECT, the preface of HTTP/2) nothing is
 * a request any more: `opaque` is set with it, and whoever cannot tell that the server has agreed
 * should refuse it. Trailers are refused: no client sends any, and servers differ about them.
 */
#ifndef BC_EGRESS_REQUEST_STREAM_H
#define BC_EGRESS_REQUEST_STREAM_H

#include "egress/request_head.h"

/* The line before a chunk: its size and extensions, which nobody uses. */
#define BC_REQUEST_CHUNK_LINE_MAX 128

typedef struct bc_request_stream {
    bc_request_head head; /* of the current request */
    int64_t left;         /* of its body or chunk */
    int state;            /* private; zero at the beginning */
    bool opaque;
} bc_request_stream;

/* `data` is what was not passed on yet. See above. */
bc_sniff bc_request_stream_step(bc_request_stream *stream, const char *data, size_t len,
                                size_t *used);

#endif
