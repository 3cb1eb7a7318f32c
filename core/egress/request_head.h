/*
 * The head of an HTTP/1 request (RFC 9110, RFC 9112), read for the host that it asks for. Called
 * again with all bytes so far whenever more have come.
 *
 * BAD is whatever a server could read in another way than we do: several Host fields, folded
 * lines, a space before a colon, a bare CR or LF, NUL, a target whose host differs from Host, no
 * Host in HTTP/1.1, user information, several lengths of a body.
 */
#ifndef BC_EGRESS_REQUEST_HEAD_H
#define BC_EGRESS_REQUEST_HEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "egress/client_hello.h"

/* What servers take: nginx 8 KiB a line, Apache 8 KiB a line. */
#define BC_REQUEST_HEAD_MAX (16u << 10)
#define BC_REQUEST_MAX_FIELDS 100
/* Empty lines before a request (RFC 9112, 2.2). */
#define BC_REQUEST_MAX_EMPTY_LINES 2

typedef struct bc_request_head {
    char method[16];
    char host[254]; /* canonical; "" none, which only HTTP/1.0 can be without */
    unsigned port;  /* that Host or the target says; 0: none */
    int minor;      /* HTTP/1.0 or HTTP/1.1 */
    bool connect;   /* CONNECT: a tunnel to `host` */
    bool absolute;  /* the target is a URL: a request to a proxy */
    bool upgrade;   /* asks for another protocol */
    bool websocket; /* for that one alone */
    bool chunked;   /* the body's framing: chunks, or `body_len` bytes */
    int64_t body_len;
    bool has_length;    /* it was said */
    bool http2_preface; /* the first bytes of HTTP/2; nothing else is set */
    size_t head_len;    /* with leading empty lines and the empty line at its end */
} bc_request_head;

/* `out` is complete with BC_SNIFF_DONE, otherwise cleared. */
bc_sniff bc_request_head_read(const char *data, size_t len, bc_request_head *out);
/* Whether these first bytes are those of an HTTP request line: DONE yes (a method and a space, or
 * the preface of HTTP/2), BAD no. */
bc_sniff bc_looks_like_request(const char *data, size_t len);

/* Whether servers may take one field name for the other: many hand fields to programs as variables,
 * in which every byte that is no letter or digit is the same ("X_Key" and "X.Key" are X-Key).
 * `word` is of any case. */
bool bc_same_field(const char *name, size_t len, const char *word);

#endif
