#include "loop_internal.h"

#include <stdlib.h>

struct bc_watch {
    bc_defer defer; /* first */
    uv_poll_t poll;
    barchan_runtime *rt;
    bc_watch_fn fn;
    void *ud;
    unsigned wanted, ready;
    int stopped; /* by libuv, which does that when there is an error on the descriptor */
};

static void on_poll(uv_poll_t *poll, int status, int events);

static int start(bc_watch *watch, unsigned events)
{
    int wanted = (events & BC_READABLE ? UV_READABLE : 0) |
                 (events & BC_WRITABLE ? UV_WRITABLE : 0) |
                 (events & BC_HANGUP ? UV_DISCONNECT : 0);
    int uv =
        wanted == 0 ? uv_poll_stop(&watch->poll) : uv_poll_start(&watch->poll, wanted, on_poll);
    if (uv == 0) watch->stopped = 0;
    return uv;
}

static void deliver(bc_defer *defer)
{
    bc_watch *watch = owner_of(defer, bc_watch, defer);
    unsigned events = watch->ready & (watch->wanted | BC_HANGUP);
    watch->ready = 0;
    if (watch->stopped && start(watch, watch->wanted) == 0) bc_runtime_changed(watch->rt);
    if (events != 0) watch->fn(watch->ud, events);
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
    bc_watch *watch = poll->data;
    if (status < 0) {
        watch->ready |= BC_READABLE | BC_WRITABLE | BC_HANGUP;
        watch->stopped = 1;
    }
    if (events & UV_READABLE) watch->ready |= BC_READABLE;
    if (events & UV_WRITABLE) watch->ready |= BC_WRITABLE;
    if (events & UV_DISCONNECT) watch->ready |= BC_HANGUP;
    bc_defer_schedule(watch->rt, &watch->defer, deliver);
}

int bc_watch_open(bc_watch **out, barchan_runtime *rt, int fd, bc_watch_fn fn, void *ud,
                  barchan_error *err)
{
    *out = NULL;
    bc_watch *watch = calloc(1, sizeof *watch);
    if (watch == NULL) return bc_error_nomem(err);
    watch->rt = rt;
    watch->fn = fn;
    watch->ud = ud;
    int uv = uv_poll_init(&rt->loop, &watch->poll, fd);
    if (uv < 0) {
        free(watch);
        return bc_error_set_os(err, -uv, "watch a descriptor");
    }
    watch->poll.data = watch;
    *out = watch;
    return 0;
}

int bc_watch_set(bc_watch *watch, unsigned events, barchan_error *err)
{
    if (events == watch->wanted && !watch->stopped) return 0;
    int uv = start(watch, events);
    if (uv < 0) return bc_error_set_os(err, -uv, "watch a descriptor");
    watch->wanted = events;
    bc_runtime_changed(watch->rt);
    return 0;
}

static void on_closed(uv_handle_t *handle)
{
    free(handle->data);
}

void bc_watch_close(bc_watch *watch)
{
    if (watch == NULL) return;
    bc_defer_cancel(&watch->defer);
    uv_close((uv_handle_t *)&watch->poll, on_closed);
    bc_runtime_changed(watch->rt);
}
