/* Shared by http.c (one request), http_multi.c (all of a runtime) and http_url.c. */
#ifndef BC_RUNTIME_HTTP_INTERNAL_H
#define BC_RUNTIME_HTTP_INTERNAL_H

#include <curl/curl.h>
#include "base/buf.h"
#include "base/limits.h"
#include "http.h"

typedef struct bc_http_room {
    barchan_runtime *rt;
    CURLM *multi;
    bc_timer *timer;
    bc_http *requests;       /* those that curl works on */
    int64_t now_ms;          /* when curl was last called */
    int has_unwatched;       /* one of them is so */
    int reads_raise_nothing; /* no SIGPIPE where a socket has something to read */
} bc_http_room;

struct bc_http {
    bc_http_room *room;
    bc_http *next, *prev;
    CURL *easy;
    int in_multi;
    int unwatched; /* its socket could not be watched; it is to be broken off */
    struct curl_slist *header_list;
    bc_http_handlers handlers;
    bc_http_options options; /* of its pointers the body alone is kept */
    char *host;              /* for messages */
    int plain;               /* the URL is http */
    bc_buf headers;          /* of the answer: lines, each ended by NUL */
    size_t header_bytes;     /* of all answers, interim ones too */
    int status;              /* 0 until the final head is complete */
    bc_buf inbox;            /* body that waits for its consumer */
    size_t body_bytes;
    int head_given, consumer_paused, curl_paused, finished;
    barchan_error error; /* when `failed`: why we broke it off */
    int failed;
    CURLcode refused; /* why an option did not take hold */
    CURLcode result;
    char curl_message[CURL_ERROR_SIZE];
    bc_defer defer;
    bc_timer *idle;
    int64_t last_activity_ms;
    curl_off_t up, down; /* progress seen last */
    int *gone;           /* set when the request is closed inside a handler */
};

/* http_multi.c */
int bc_http_room_get(bc_http_room **out, barchan_runtime *rt, barchan_error *err);
int bc_http_room_add(bc_http *http, barchan_error *err);
void bc_http_room_remove(bc_http *http);
void bc_http_room_unpause(bc_http *http);
/* http.c: curl is done with it. */
void bc_http_finished(bc_http *http, CURLcode result);
/* There was no memory to watch its socket. */
void bc_http_unwatched(bc_http *http);
/* http_url.c */
int bc_http_is_loopback(const struct sockaddr *address);
/* The host of a checked URL, "host:port"; malloc'd. */
char *bc_http_host(const char *url);
/* Turns curl's outcome into an error for people. */
int bc_http_explain(const bc_http *http, barchan_error *err);

#endif
