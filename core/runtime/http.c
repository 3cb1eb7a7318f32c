/* One request: its options, curl's callbacks, and the calls of its handlers. */
#include "http.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include "base/clock.h"
#include "base/cleanup.h"
#include "http_internal.h"

static void deliver(bc_defer *defer);

static void wake(bc_http *http)
{
    bc_defer_schedule(http->room->rt, &http->defer, deliver);
}

/* The first reason for breaking it off is the one that is told. */
static void fail(bc_http *http, int code, const char *message)
{
    if (http->failed) return;
    http->failed = 1;
    bc_error_set(&http->error, code, "%.200s: %s", http->host, message);
}

/* ---- curl's callbacks: they only take notes ---- */

static void head_is_complete(bc_http *http)
{
    long status = 0;
    curl_easy_getinfo(http->easy, CURLINFO_RESPONSE_CODE, &status);
    if (status >= 200) http->status = (int)status; /* an interim answer is none */
}

static size_t on_header(char *data, size_t one, size_t len, void *ud)
{
    bc_http *http = ud;
    size_t line = len;
    (void)one;
    http->last_activity_ms = http->room->now_ms;
    http->header_bytes += len;
    if (http->header_bytes > BC_HTTP_MAX_HEADER_BYTES) {
        fail(http, BARCHAN_ELIMIT, "the headers of the answer are too large");
        return 0;
    }
    if (http->status != 0) return len; /* trailers */
    while (line > 0 && (data[line - 1] == '\r' || data[line - 1] == '\n'))
        line--;
    if (line == 0) {
        head_is_complete(http);
        wake(http);
        return len;
    }
    if (line >= 5 && memcmp(data, "HTTP/", 5) == 0) bc_buf_reset(&http->headers);
    while (line > 0 && (data[line - 1] == ' ' || data[line - 1] == '\t'))
        line--; /* no part of the value */
    if (bc_buf_append(&http->headers, data, line) < 0 ||
        bc_buf_append_char(&http->headers, '\0') < 0) {
        fail(http, BARCHAN_ENOMEM, "out of memory");
        return 0;
    }
    return len;
}

static size_t on_write(char *data, size_t one, size_t len, void *ud)
{
    bc_http *http = ud;
    (void)one;
    http->last_activity_ms = http->room->now_ms;
    if (http->inbox.len >= BC_HTTP_MAX_WAITING_BYTES) {
        http->curl_paused = 1; /* curl gives the same bytes again */
        return CURL_WRITEFUNC_PAUSE;
    }
    http->body_bytes += len;
    if (http->body_bytes > http->options.max_body_bytes) {
        fail(http, BARCHAN_ELIMIT, "the answer is too large");
        return 0;
    }
    if (bc_buf_append(&http->inbox, data, len) < 0) {
        fail(http, BARCHAN_ENOMEM, "out of memory");
        return 0;
    }
    wake(http);
    return len;
}

static int on_progress(void *ud, curl_off_t down_total, curl_off_t down, curl_off_t up_total,
                       curl_off_t up)
{
    bc_http *http = ud;
    (void)down_total;
    (void)up_total;
    if (down != http->down || up != http->up) http->last_activity_ms = http->room->now_ms;
    http->down = down;
    http->up = up;
    return 0;
}

/* Where the address is known for certain: the name in the URL may resolve to anything. */
static curl_socket_t on_open(void *ud, curlsocktype purpose, struct curl_sockaddr *address)
{
    bc_http *http = ud;
    (void)purpose;
    if (http->plain && !http->options.allow_plain && !bc_http_is_loopback(&address->addr)) {
        fail(http, BARCHAN_EPERMISSION,
             "plain http is for loopback only, and this is another host");
        return CURL_SOCKET_BAD;
    }
    return socket(address->family, address->socktype | SOCK_CLOEXEC | SOCK_NONBLOCK,
                  address->protocol);
}

void bc_http_finished(bc_http *http, CURLcode result)
{
    http->result = result;
    http->finished = 1;
    bc_http_room_remove(http);
    wake(http);
}

/* ---- the calls of the handlers ---- */

static const char *refused_encoding(const bc_http *http)
{
    const char *encoding = bc_http_header(http, "content-encoding");
    return encoding != NULL && strcasecmp(encoding, "identity") != 0 && *encoding != '\0' ? encoding
                                                                                          : NULL;
}

static void give_done(bc_http *http)
{
    barchan_error err;
    const barchan_error *why = NULL;
    bc_timer_set(http->idle, -1);
    if (http->failed) {
        why = &http->error;
    } else if (http->result != CURLE_OK) {
        bc_http_explain(http, &err);
        why = &err;
    }
    http->handlers.on_done(http, why, http->handlers.ud);
}

/* Breaks off what curl still works on, for a reason in http->error. */
static void break_off(bc_http *http)
{
    bc_http_room_remove(http);
    bc_buf_reset(&http->inbox);
    http->finished = 1;
}

void bc_http_unwatched(bc_http *http)
{
    fail(http, BARCHAN_ENOMEM, "out of memory: its connection cannot be watched");
    break_off(http);
    wake(http);
}

static int give_head(bc_http *http, const int *gone)
{
    if (http->head_given || http->status == 0 || http->failed) return 0;
    http->head_given = 1;
    if (refused_encoding(http) != NULL) {
        fail(http, BARCHAN_EPROTOCOL, "the answer is compressed although that was not offered");
        break_off(http);
        return 0;
    }
    if (http->handlers.on_head != NULL) http->handlers.on_head(http, http->handlers.ud);
    return *gone;
}

static int give_body(bc_http *http, const int *gone)
{
    if (http->inbox.len == 0 || http->consumer_paused || http->failed) return 0;
    bc_buf taken = http->inbox;
    bc_buf_init(&http->inbox, 2 * BC_HTTP_MAX_WAITING_BYTES);
    http->handlers.on_body(http, bc_buf_data(&taken), taken.len, http->handlers.ud);
    if (!*gone && http->inbox.mem == NULL) {
        bc_buf_reset(&taken);
        http->inbox = taken; /* keep the memory */
    } else {
        bc_buf_clear(&taken);
    }
    return *gone;
}

static void deliver(bc_defer *defer)
{
    bc_http *http = owner_of(defer, bc_http, defer);
    int gone = 0;
    http->gone = &gone;
    if (give_head(http, &gone) || give_body(http, &gone)) return;
    if (http->finished && !http->consumer_paused) {
        give_done(http);
        if (gone) return;
    } else if (http->curl_paused && http->inbox.len == 0 && http->in_multi) {
        http->curl_paused = 0;
        bc_http_room_unpause(http);
    }
    http->gone = NULL;
}

static void on_idle(void *ud)
{
    bc_http *http = ud;
    if (http->finished) return;
    curl_off_t connected = 0;
    curl_easy_getinfo(http->easy, CURLINFO_PRETRANSFER_TIME_T, &connected);
    int64_t now = bc_clock_ms();
    /* Before that, the connect timeout counts; a paused consumer is no silence of the server. */
    if (connected == 0 || http->consumer_paused) http->last_activity_ms = now;
    int64_t left = http->last_activity_ms + http->options.idle_timeout_ms - now;
    if (left > 0) {
        bc_timer_set(http->idle, connected == 0 && left > 100 ? 100 : left);
        return;
    }
    fail(http, BARCHAN_ETIMEDOUT, "the server has been silent for too long");
    http->error.retryable = 1;
    break_off(http);
    wake(http);
}

/* ---- set-up ---- */

/* A header without a value is written "Name;" for curl, to which "Name:" means: do not send it. */
static struct curl_slist *append_header(struct curl_slist *list, const char *line)
{
    const char *value = strchr(line, ':') + 1;
    if (value[strspn(value, " \t")] != '\0') return curl_slist_append(list, line);
    cleanup_free char *blank = strndup(line, (size_t)(value - line));
    if (blank == NULL) return NULL;
    blank[value - line - 1] = ';';
    return curl_slist_append(list, blank);
}

static int add_headers(bc_http *http, const char *const *headers, barchan_error *err)
{
    /* Without it curl waits a second for "100 Continue" before larger bodies. */
    struct curl_slist *list = curl_slist_append(NULL, "Expect:");
    int rc = list == NULL ? bc_error_nomem(err) : 0;
    for (; rc == 0 && headers != NULL && *headers != NULL; headers++) {
        rc = bc_http_check_header(*headers, err);
        struct curl_slist *longer = rc == 0 ? append_header(list, *headers) : NULL;
        if (rc == 0 && longer == NULL) rc = bc_error_nomem(err);
        if (longer != NULL) list = longer;
    }
    http->header_list = list;
    return rc;
}

/* Every option passes through here: one that did not take hold would be a request without
 * verification, or without a deadline. Off: the option only turns something off, or is a wish; a
 * libcurl built without it has it off already. */
static void note(bc_http *http, CURLcode code, int off)
{
    int lacks = code == CURLE_NOT_BUILT_IN || code == CURLE_UNKNOWN_OPTION ||
                code == CURLE_UNSUPPORTED_PROTOCOL;
    if (http->refused == CURLE_OK && !(off && lacks)) http->refused = code;
}

#define SET(option, value) note(http, curl_easy_setopt(http->easy, option, value), 0)
#define SET_OFF(option, value) note(http, curl_easy_setopt(http->easy, option, value), 1)

static void set_security(bc_http *http)
{
    SET(CURLOPT_SSL_VERIFYPEER, 1L);
    SET(CURLOPT_SSL_VERIFYHOST, 2L);
    SET(CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    SET(CURLOPT_PROTOCOLS_STR, http->plain ? "http" : "https");
    SET(CURLOPT_REDIR_PROTOCOLS_STR, "https");
    SET(CURLOPT_FOLLOWLOCATION, 0L);
    SET(CURLOPT_UNRESTRICTED_AUTH, 0L);
    SET_OFF(CURLOPT_PROXY, ""); /* also ignores the environment's */
    SET_OFF(CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
    SET_OFF(CURLOPT_HSTS_CTRL, 0L);
    SET(CURLOPT_HTTP09_ALLOWED, 0L);
    SET(CURLOPT_PATH_AS_IS, 1L);
    SET(CURLOPT_OPENSOCKETFUNCTION, on_open);
    SET(CURLOPT_OPENSOCKETDATA, http);
}

static void set_transfer(bc_http *http, const bc_http_options *options)
{
    SET(CURLOPT_NOSIGNAL, 1L);
    SET_OFF(CURLOPT_QUICK_EXIT, 1L); /* closing does not wait for the resolver */
    SET(CURLOPT_PRIVATE, http);
    SET(CURLOPT_ERRORBUFFER, http->curl_message);
    SET(CURLOPT_HTTPHEADER, http->header_list);
    SET(CURLOPT_USERAGENT, "barchan/" BARCHAN_VERSION);
    SET_OFF(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
    SET_OFF(CURLOPT_TCP_KEEPALIVE, 1L);
    SET(CURLOPT_CONNECTTIMEOUT_MS, (long)options->connect_timeout_ms);
    SET(CURLOPT_TIMEOUT_MS, (long)options->timeout_ms);
    SET(CURLOPT_HEADERFUNCTION, on_header);
    SET(CURLOPT_HEADERDATA, http);
    SET(CURLOPT_WRITEFUNCTION, on_write);
    SET(CURLOPT_WRITEDATA, http);
    SET(CURLOPT_NOPROGRESS, 0L);
    SET(CURLOPT_XFERINFOFUNCTION, on_progress);
    SET(CURLOPT_XFERINFODATA, http);
    if (options->body_len > 0) {
        SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)options->body_len);
        SET(CURLOPT_POSTFIELDS, options->body); /* curl makes no copy of it */
    }
    if (options->method != NULL) SET(CURLOPT_CUSTOMREQUEST, options->method);
}

static int set_up(bc_http *http, const bc_http_options *options, barchan_error *err)
{
    bc_buf_init(&http->headers, 2 * BC_HTTP_MAX_HEADER_BYTES);
    bc_buf_init(&http->inbox, 2 * BC_HTTP_MAX_WAITING_BYTES);
    http->options = *options;
    http->plain = strncasecmp(options->url, "http:", 5) == 0;
    http->host = bc_http_host(options->url);
    http->easy = curl_easy_init();
    if (http->host == NULL || http->easy == NULL) return bc_error_nomem(err);
    int rc = add_headers(http, options->headers, err);
    if (rc == 0) rc = bc_timer_open(&http->idle, http->room->rt, on_idle, http, err);
    if (rc < 0) return rc;
    SET(CURLOPT_URL, options->url);
    set_security(http);
    set_transfer(http, options);
    if (http->refused == CURLE_OUT_OF_MEMORY) return bc_error_nomem(err);
    if (http->refused != CURLE_OK) {
        return bc_error_set(err, BARCHAN_EUNSUPPORTED,
                            "this libcurl cannot be set up as is needed: %s",
                            curl_easy_strerror(http->refused));
    }
    http->last_activity_ms = bc_clock_ms();
    bc_timer_set(http->idle, options->idle_timeout_ms);
    return bc_http_room_add(http, err);
}

int bc_http_start(bc_http **out, barchan_runtime *rt, const bc_http_options *options,
                  const bc_http_handlers *handlers, barchan_error *err)
{
    *out = NULL;
    bc_http_room *room;
    int rc = bc_runtime_check(rt, err);
    if (rc == 0) rc = bc_http_check_url(options->url, options->allow_plain, err);
    if (rc == 0) rc = bc_http_room_get(&room, rt, err);
    if (rc < 0) return rc;
    bc_http *http = calloc(1, sizeof *http);
    if (http == NULL) return bc_error_nomem(err);
    http->room = room;
    http->handlers = *handlers;
    rc = set_up(http, options, err);
    if (rc < 0) {
        bc_http_close(http);
        return rc;
    }
    *out = http;
    return 0;
}

void bc_http_close(bc_http *http)
{
    if (http == NULL) return;
    if (http->gone != NULL) *http->gone = 1;
    bc_defer_cancel(&http->defer);
    bc_timer_close(http->idle);
    bc_http_room_remove(http);
    if (http->easy != NULL) curl_easy_cleanup(http->easy);
    for (struct curl_slist *h = http->header_list; h != NULL; h = h->next)
        explicit_bzero(h->data, strlen(h->data)); /* a key may be in it */
    curl_slist_free_all(http->header_list);
    bc_buf_clear(&http->headers);
    bc_buf_clear(&http->inbox);
    free(http->host);
    free(http);
}

/* ---- what handlers ask ---- */

int bc_http_status(const bc_http *http)
{
    return http->status;
}

const char *bc_http_header(const bc_http *http, const char *name)
{
    size_t len = strlen(name);
    const char *found = NULL, *at = bc_buf_data(&http->headers);
    const char *end = at + http->headers.len;
    for (; at < end; at += strlen(at) + 1) {
        if (strncasecmp(at, name, len) != 0 || at[len] != ':') continue;
        found = at + len + 1;
        while (*found == ' ' || *found == '\t')
            found++;
    }
    return found;
}

void bc_http_pause(bc_http *http)
{
    http->consumer_paused = 1;
}

void bc_http_resume(bc_http *http)
{
    http->consumer_paused = 0;
    http->last_activity_ms = bc_clock_ms();
    wake(http);
}
