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
 * Behind CONNECT and the preface of HTTP/2 nothing is a request any more: `opaque` is set with the
 * head, and the caller should refuse it. A first request that asks for a WebSocket makes what
 * follows opaque only when the server agrees, which bc_request_stream_answer sees: otherwise a
 * server that ignores the wish would take what follows for requests, unseen. Until then it is held
 * back. Other upgrades are not followed: what comes behind them is read as requests, h2c above all.
 * Trailers and extensions of chunks are refused: no client sends any, and servers differ about
 * them.
 */
#ifndef BC_EGRESS_REQUEST_STREAM_H
#define BC_EGRESS_REQUEST_STREAM_H

#include "egress/request_head.h"

typedef struct bc_request_stream {
    bc_request_head head; /* of the current request */
    int64_t left;         /* of its body or chunk */
    bool opaque;
    /* Private; zero at the beginning. */
    int state;
    bool waits;             /* for the server's word about a WebSocket */
    bool begun;             /* a head has been read */
    unsigned char answered; /* bytes of that word */
} bc_request_stream;

/* The next byte is the first of a request. */
static inline bool bc_request_stream_is_between(const bc_request_stream *stream)
{
    return stream->state == 0 && !stream->opaque;
}
/* The next byte is one of a body, and not of its framing. */
bool bc_request_stream_in_data(const bc_request_stream *stream);
/* `data` is what was not passed on yet. See above. */
bc_sniff bc_request_stream_step(bc_request_stream *stream, const char *data, size_t len,
                                size_t *used);

/* The server's bytes as they come, from the first on, before they are passed on. True when what is
 * held back may be looked at again. */
bool bc_request_stream_answer(bc_request_stream *stream, const char *data, size_t len);

#endif
