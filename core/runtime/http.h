/*
 * HTTP requests on the runtime, by curl's multi interface.
 *
 * What is fixed: TLS 1.2 or newer with verification, no redirects, no proxy, cookies, netrc, HSTS
 * or alt-svc, no compression, only https, and http to loopback unless allowed. Connections are
 * kept and reused, HTTP/2 where the server has it. Nothing blocks: closing a request in any state,
 * name resolution included, returns at once.
 *
 * One thing is libcurl's own and cannot be turned off from here: with the variable SSLKEYLOGFILE in
 * the process's environment it writes TLS session keys to that file. Who can set that can read the
 * process's memory as well.
 *
 * Handlers run in a dispatch and may close the request, or anything else. After bc_http_close no
 * handler runs.
 */
#ifndef BC_RUNTIME_HTTP_H
#define BC_RUNTIME_HTTP_H

#include <stddef.h>
#include <stdint.h>
#include "loop.h"

typedef struct bc_http bc_http;

typedef struct bc_http_options {
    const char *method; /* "GET", "POST"; NULL: POST with a body, else GET */
    const char *url;
    const char *const *headers; /* "name: value", NULL-terminated; may be NULL */
    const void *body;
    size_t body_len;
    int connect_timeout_ms; /* resolve, connect, TLS; must be positive */
    int idle_timeout_ms;    /* longest silence once connected; must be positive */
    int64_t timeout_ms;     /* of everything; must be positive */
    size_t max_body_bytes;  /* of the answer; more is BARCHAN_ELIMIT */
    int allow_plain;        /* http to hosts other than loopback */
} bc_http_options;

typedef struct bc_http_handlers {
    /* The final status and headers are known; may be NULL. */
    void (*on_head)(bc_http *http, void *ud);
    /* A piece of the body, borrowed for the call. */
    void (*on_body)(bc_http *http, const char *data, size_t len, void *ud);
    /* Once, the last: err is NULL when the answer is complete, whatever its status. */
    void (*on_done)(bc_http *http, const barchan_error *err, void *ud);
    void *ud;
} bc_http_handlers;

/* The body is borrowed until the handle is closed, the rest is copied. The handle is the caller's
 * to close, also after on_done. */
int bc_http_start(bc_http **out, barchan_runtime *rt, const bc_http_options *options,
                  const bc_http_handlers *handlers, barchan_error *err);
/* Ends it at once. NULL is ignored. */
void bc_http_close(bc_http *http);

/* From on_head on. */
int bc_http_status(const bc_http *http);
/* The value of the last header of this name, NULL when there is none; borrowed from the handle. */
const char *bc_http_header(const bc_http *http, const char *name);
/* How long "retry-after-ms" or "retry-after" (seconds or a date) ask to wait, at most a day; -1
 * when they are absent or say nothing usable. */
long bc_http_retry_after_ms(const bc_http *http);
/* Stops and goes on with the calls of on_body and on_done; the peer is slowed down meanwhile. */
void bc_http_pause(bc_http *http);
void bc_http_resume(bc_http *http);

/* Whether a URL may be asked at all: its form, its scheme, plain http to loopback only unless
 * allowed, no user or password in it. Names the remedy. */
int bc_http_check_url(const char *url, int allow_plain, barchan_error *err);
/* Whether text may stand in a header: no control characters but tab. */
int bc_http_check_header(const char *line, barchan_error *err);

#endif
