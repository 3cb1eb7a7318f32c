/* All requests of a runtime: one curl multi handle, its sockets and its timer. */
#include <stdlib.h>
#include <string.h>
#include "base/clock.h"
#include "http_internal.h"

typedef struct socket_watch {
    bc_http_room *room;
    bc_watch *watch;
    curl_socket_t fd;
} socket_watch;

/* curl reports here what is over; handlers are called later, from a dispatch of their own. */
static void collect(bc_http_room *room)
{
    CURLMsg *message;
    int left;
    while ((message = curl_multi_info_read(room->multi, &left)) != NULL) {
        if (message->msg != CURLMSG_DONE) continue;
        bc_http *http = NULL;
        CURLcode result = message->data.result;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&http);
        bc_http_finished(http, result);
    }
}

static curl_socket_t socket_of(const bc_http *http)
{
    curl_socket_t fd = CURL_SOCKET_BAD;
    curl_easy_getinfo(http->easy, CURLINFO_ACTIVESOCKET, &fd);
    return fd;
}

/* Nothing would wake a request whose socket is not watched, nor one that shares its connection.
 * Told of the failure, curl would give up all that it has, and refuse what comes later. */
static void break_off_unwatched(bc_http_room *room)
{
    while (room->has_unwatched) {
        bc_http *http = room->requests;
        room->has_unwatched = 0;
        while (http != NULL && !http->unwatched)
            http = http->next;
        if (http == NULL) return;
        curl_socket_t fd = socket_of(http);
        for (bc_http *other = room->requests; other != NULL; other = other->next)
            other->unwatched |= fd != CURL_SOCKET_BAD && socket_of(other) == fd;
        room->has_unwatched = 1; /* removing one may tell of others */
        bc_http_unwatched(http);
    }
}

static void act(bc_http_room *room, curl_socket_t fd, int flags)
{
    int running;
    room->now_ms = bc_clock_ms();
    curl_multi_socket_action(room->multi, fd, flags, &running);
    collect(room);
    break_off_unwatched(room);
}

static void act_masked(bc_http_room *room, curl_socket_t fd, int flags)
{
    bc_sigpipe state;
    bc_sigpipe_block(&state);
    act(room, fd, flags);
    bc_sigpipe_restore(&state);
}

/* Since 7.88 curl writes to sockets with MSG_NOSIGNAL only, TLS included (lib/cfilters.c,
 * lib/vtls/openssl.c), but for those of c-ares, if it has that. A piece of a stream costs three
 * system calls less without the mask; where more is written, it stays. */
static int reads_raise_nothing(void)
{
    const curl_version_info_data *curl = curl_version_info(CURLVERSION_NOW);
    return curl->version_num >= 0x075800 && curl->ares == NULL && curl->ssl_version != NULL &&
           strncmp(curl->ssl_version, "OpenSSL", 7) == 0;
}

static void on_ready(void *ud, unsigned events)
{
    const socket_watch *s = ud;
    int flags = 0;
    if (events & (BC_READABLE | BC_HANGUP)) flags |= CURL_CSELECT_IN;
    if (events & BC_WRITABLE) flags |= CURL_CSELECT_OUT;
    /* may free s */
    if (flags == CURL_CSELECT_IN && s->room->reads_raise_nothing)
        act(s->room, s->fd, flags);
    else
        act_masked(s->room, s->fd, flags);
}

static void on_timeout(void *ud)
{
    act_masked(ud, CURL_SOCKET_TIMEOUT, 0);
}

static void drop_socket(bc_http_room *room, socket_watch *s)
{
    if (s == NULL) return;
    bc_watch_close(s->watch);
    curl_multi_assign(room->multi, s->fd, NULL);
    free(s);
}

static socket_watch *add_socket(bc_http_room *room, curl_socket_t fd)
{
    socket_watch *s = calloc(1, sizeof *s);
    if (s == NULL) return NULL;
    s->room = room;
    s->fd = fd;
    if (bc_watch_open(&s->watch, room->rt, fd, on_ready, s, NULL) < 0) {
        free(s);
        return NULL;
    }
    curl_multi_assign(room->multi, fd, s);
    return s;
}

static int watch(bc_http_room *room, socket_watch *s, curl_socket_t fd, int what)
{
    unsigned events = 0;
    if (what == CURL_POLL_IN || what == CURL_POLL_INOUT) events |= BC_READABLE;
    if (what == CURL_POLL_OUT || what == CURL_POLL_INOUT) events |= BC_WRITABLE;
    if (s == NULL) s = add_socket(room, fd);
    return s != NULL ? bc_watch_set(s->watch, events, NULL) : BARCHAN_ENOMEM;
}

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *clientp, void *socketp)
{
    bc_http_room *room = clientp;
    bc_http *http = NULL;
    if (what == CURL_POLL_REMOVE) {
        drop_socket(room, socketp);
    } else if (watch(room, socketp, fd, what) < 0) {
        curl_easy_getinfo(easy, CURLINFO_PRIVATE, (char **)&http);
        if (http != NULL) http->unwatched = room->has_unwatched = 1;
    }
    return 0;
}

static int on_timer(CURLM *multi, long timeout_ms, void *clientp)
{
    const bc_http_room *room = clientp;
    (void)multi;
    bc_timer_set(room->timer, timeout_ms);
    return 0;
}

void bc_http_room_remove(bc_http *http)
{
    if (!http->in_multi) return;
    bc_sigpipe state;
    http->in_multi = 0;
    if (http->prev != NULL) http->prev->next = http->next;
    if (http->next != NULL) http->next->prev = http->prev;
    if (http->room->requests == http) http->room->requests = http->next;
    http->next = http->prev = NULL;
    bc_sigpipe_block(&state);
    curl_multi_remove_handle(http->room->multi, http->easy);
    bc_sigpipe_restore(&state);
}

int bc_http_room_add(bc_http *http, barchan_error *err)
{
    bc_http_room *room = http->room;
    bc_sigpipe state;
    room->now_ms = bc_clock_ms();
    bc_sigpipe_block(&state);
    CURLMcode code = curl_multi_add_handle(room->multi, http->easy);
    bc_sigpipe_restore(&state);
    if (code != CURLM_OK) {
        return bc_error_set(err, BARCHAN_ENETWORK, "start a request: %s",
                            curl_multi_strerror(code));
    }
    http->in_multi = 1;
    http->next = room->requests;
    if (room->requests != NULL) room->requests->prev = http;
    room->requests = http;
    return 0;
}

void bc_http_room_unpause(bc_http *http)
{
    bc_sigpipe state;
    http->room->now_ms = bc_clock_ms();
    bc_sigpipe_block(&state);
    curl_easy_pause(http->easy, CURLPAUSE_CONT);
    break_off_unwatched(http->room);
    bc_sigpipe_restore(&state);
}

/* ---- the room ---- */

static void room_end(void *data)
{
    bc_http_room *room = data;
    bc_sigpipe state;
    /* Who still holds a request may close it later; it is no work of curl's any more. */
    while (room->requests != NULL)
        bc_http_room_remove(room->requests);
    bc_sigpipe_block(&state);
    curl_multi_cleanup(room->multi);
    bc_sigpipe_restore(&state);
    bc_timer_close(room->timer);
    curl_global_cleanup();
    free(room);
}

/* curl counts its global initialisations; since 7.84 that is safe from any thread, where it was
 * built so. Without it a library may not do it behind its host's back. */
static int init_curl(barchan_error *err)
{
    const curl_version_info_data *info = curl_version_info(CURLVERSION_NOW);
    if ((info->features & CURL_VERSION_THREADSAFE) == 0) {
        return bc_error_set(err, BARCHAN_EUNSUPPORTED,
                            "libcurl %s cannot be initialised safely from threads; "
                            "7.84 or newer, built with atomics, is needed",
                            info->version);
    }
    if ((info->features & CURL_VERSION_SSL) == 0) {
        return bc_error_set(err, BARCHAN_EUNSUPPORTED, "libcurl %s was built without TLS",
                            info->version);
    }
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        return bc_error_set(err, BARCHAN_EUNSUPPORTED, "libcurl cannot be initialised");
    }
    return 0;
}

static int set_options(bc_http_room *room)
{
    CURLM *multi = room->multi;
    long idle = BC_HTTP_MAX_IDLE_CONNECTIONS;
    return curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, on_socket) == CURLM_OK &&
           curl_multi_setopt(multi, CURLMOPT_SOCKETDATA, room) == CURLM_OK &&
           curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, on_timer) == CURLM_OK &&
           curl_multi_setopt(multi, CURLMOPT_TIMERDATA, room) == CURLM_OK &&
           curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, idle) == CURLM_OK;
}

int bc_http_room_get(bc_http_room **out, barchan_runtime *rt, barchan_error *err)
{
    bc_http_room *room = bc_runtime_room(rt, BC_ROOM_HTTP);
    *out = room;
    if (room != NULL) return 0;
    int rc = init_curl(err);
    if (rc < 0) return rc;
    room = calloc(1, sizeof *room);
    rc =
        room == NULL ? bc_error_nomem(err) : bc_timer_open(&room->timer, rt, on_timeout, room, err);
    if (rc == 0 && (room->multi = curl_multi_init()) == NULL) {
        bc_timer_close(room->timer);
        rc = bc_error_nomem(err);
    }
    if (rc < 0) {
        free(room);
        curl_global_cleanup();
        return rc;
    }
    room->rt = rt;
    room->reads_raise_nothing = reads_raise_nothing();
    if (!set_options(room)) {
        room_end(room);
        return bc_error_set(err, BARCHAN_EUNSUPPORTED,
                            "this libcurl cannot be driven by an event loop");
    }
    bc_runtime_set_room(rt, BC_ROOM_HTTP, room, room_end);
    *out = room;
    return 0;
}
