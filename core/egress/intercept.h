/*
 * A connection to a host with secrets: TLS ends here on both sides, and what passes between them
 * are requests and answers that were understood.
 *
 *     program ~TLS~ [ request_stream -> secret_head ] ~TLS~ server, verified first
 *             ~TLS~ [ response_stream <- ]            ~TLS~
 *
 * Nothing of a request leaves before the server's certificate has been verified for the host's
 * name. One request is under way at a time, and one with a body is the last: a server that does not
 * read the body takes it for further requests, which we have not seen, and what we would pass next
 * for the end of one of those. Every buffer has a maximum: a side that does not take
 * what waits for it is not read for.
 *
 * intercept.c: TLS; intercept_http.c: what passes; intercept_move.c: sockets.
 */
#ifndef BC_EGRESS_INTERCEPT_H
#define BC_EGRESS_INTERCEPT_H

#include <openssl/types.h>
#include "egress/internal.h"
#include "egress/request_stream.h"
#include "egress/response_stream.h"
#include "egress/secret_head.h"

/* Encrypted bytes that wait for a side before its other side is read; about as much again may come
 * of one piece. And what is read of a program and waits. */
#define BC_INTERCEPT_BYTES (64u << 10)
/* Encrypted bytes that wait for a side before it is itself not read any more: TLS has words of its
 * own, such as an alert for each attempt to renegotiate, which a program can provoke and never
 * read.
 */
#define BC_INTERCEPT_BYTES_OWN (4 * BC_INTERCEPT_BYTES)
/* Of plain bytes at once: a record of TLS. */
#define BC_INTERCEPT_PIECE (16u << 10)
/* Who has sent so many has done nothing else: each costs 20 us, and is due after gigabytes. */
#define BC_INTERCEPT_KEY_UPDATES 32

typedef struct bc_intercept {
    bc_relay *relay;
    bc_bound_host *host;
    SSL *ssl[2];         /* INNER: the server that the program sees; OUTER: a client */
    BIO *in[2], *out[2]; /* theirs: encrypted bytes from and to a socket */
    bool up[2];          /* its handshake is over */
    bool ended[2];       /* nothing more is read there */
    char failed[256];    /* why the server cannot be talked to */
    bc_request_stream requests;
    bc_buf request;       /* of the program's, not passed on yet */
    bc_redactor strays;   /* placeholders in bodies */
    uint32_t strays_told; /* in this request */
    bc_response_stream response;
    bc_buf answer;               /* between the two of them */
    bool last;                   /* no request follows the one that is under way, or was */
    int64_t rest_waits_since_ms; /* since when the rest of a request (a body, a program's last
                                    word) waits for its answer's end; 0: it has not */
    bool rest_timed;             /* the timer is that of such a rest */
    bool left;                   /* the program says no more, and the server has been told */
    int64_t patience_ms;         /* the timer's, from when something moved */
    int key_updates;             /* of both sides */
    bool closing;                /* all that is for the program waits to be sent */
} bc_intercept;

/* intercept_move.c */
/* Takes the relay's first bytes over. Negative: out of memory. */
int bc_intercept_begin(bc_relay *relay, bc_bound_host *host);
void bc_intercept_move(bc_relay *relay);
void bc_intercept_wait(bc_relay *relay);
void bc_intercept_timeout(bc_relay *relay);

/* intercept.c */
int bc_intercept_create(bc_intercept **out, bc_relay *relay, bc_bound_host *host);
void bc_intercept_destroy(bc_intercept *intercept); /* NULL is ignored */
/* Goes on with the handshakes. False: the relay was closed. */
bool bc_intercept_shake(bc_intercept *intercept);
/* Plain bytes: how many, 0 none now, -1 it said goodbye, -2 it broke off. */
int bc_intercept_read(bc_intercept *intercept, int side, char *to, size_t room);
/* Negative: it cannot go on. */
int bc_intercept_write(bc_intercept *intercept, int side, const char *data, size_t len);
/* Tells the server that nothing more comes, for it to end what nobody waits for. */
void bc_intercept_leave(bc_intercept *intercept);
/* How long the rest of a request will wait for the end of the answer that has begun; 0: not. */
int64_t bc_intercept_rest_waits_ms(const bc_intercept *intercept);
/* How much waits to be sent there. */
size_t bc_intercept_waiting(const bc_intercept *intercept, int side);

/* intercept_http.c: passes on what can be. True: something moved; the relay may be closed. */
bool bc_intercept_pass(bc_intercept *intercept);

/* strays.c: placeholders that a program sends where no value can be put in. */
void bc_strays_look(bc_relay *relay, const unsigned char *data, size_t len);
void bc_strays_end(bc_relay *relay);
/* Tells what has become of a secret. */
void bc_secret_tell(const bc_relay *relay, const bc_secret *secret, bc_secret_note note);

#endif
