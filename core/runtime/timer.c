#include "loop_internal.h"

#include <stdlib.h>

struct bc_timer {
    bc_defer defer; /* first */
    uv_timer_t timer;
    barchan_runtime *rt;
    bc_timer_fn fn;
    void *ud;
};

static void deliver(bc_defer *defer)
{
    bc_timer *timer = owner_of(defer, bc_timer, defer);
    timer->fn(timer->ud);
}

static void on_timer(uv_timer_t *handle)
{
    bc_timer *timer = handle->data;
    bc_defer_schedule(timer->rt, &timer->defer, deliver);
}

int bc_timer_open(bc_timer **out, barchan_runtime *rt, bc_timer_fn fn, void *ud, barchan_error *err)
{
    *out = NULL;
    bc_timer *timer = calloc(1, sizeof *timer);
    if (timer == NULL) return bc_error_nomem(err);
    timer->rt = rt;
    timer->fn = fn;
    timer->ud = ud;
    uv_timer_init(&rt->loop, &timer->timer);
    timer->timer.data = timer;
    *out = timer;
    return 0;
}

void bc_timer_set(bc_timer *timer, int64_t after_ms)
{
    bc_defer_cancel(&timer->defer);
    if (after_ms < 0) {
        uv_timer_stop(&timer->timer);
        return;
    }
    /* libuv counts from the loop's own time, which is old when a callback took long. */
    uv_update_time(&timer->rt->loop);
    uv_timer_start(&timer->timer, on_timer, (uint64_t)after_ms, 0);
    bc_runtime_due(timer->rt);
}

static void on_closed(uv_handle_t *handle)
{
    free(handle->data);
}

void bc_timer_close(bc_timer *timer)
{
    if (timer == NULL) return;
    bc_defer_cancel(&timer->defer);
    uv_close((uv_handle_t *)&timer->timer, on_closed);
    bc_runtime_changed(timer->rt);
}
