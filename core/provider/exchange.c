#include "exchange.h"

#include <stdlib.h>
#include <string.h>
#include "base/limits.h"
#include "base/random.h"

struct bc_exchange {
    bc_exchange_means means;
    bc_exchange_handlers handlers;
    int done; /* the end was told */

    /* Over HTTP. */
    bc_http *http;
    bc_json_span url, request;
    bc_recorded taken; /* so far; with means.recording */
    int torn;          /* why not all of it could be kept; 0 */

    /* Played. */
    const bc_recorded *from;
    int head_told;
    size_t piece, at;
    bc_defer defer;
    int *closed; /* is set when it is closed while a handler runs */
};

/* ---- recording what comes over HTTP ---- */

static void keep_head(bc_exchange *x)
{
    const char *const names[] = {"content-type", "x-request-id", "x-should-retry", "location",
                                 x->means.request_id_header};
    bc_recorded *taken = &x->taken;
    taken->status = bc_http_status(x->http);
    taken->retry_after_ms = bc_http_retry_after_ms(x->http);
    json_decref(taken->headers);
    taken->headers = json_object();
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = names[i] != NULL ? bc_http_header(x->http, names[i]) : NULL;
        if (value == NULL) continue;
        json_t *text = json_stringn_nocheck(value, strlen(value)); /* repaired when written */
        if (json_object_set_new_nocheck(taken->headers, names[i], text) < 0) {
            x->torn = BARCHAN_ENOMEM;
        }
    }
}

static void keep(bc_exchange *x, bc_recorded_end end)
{
    if (x->means.recording == NULL || x->done) return;
    x->done = 1;
    x->taken.end = end;
    if (x->torn < 0) {
        bc_error_set(&x->taken.error, x->torn, "not all of the answer could be kept (%s)",
                     barchan_status_name(x->torn));
        x->taken.end = BC_RECORDED_FAILED;
    }
    bc_recording_write(x->means.recording, x->url, x->request, &x->taken);
}

static void on_head(bc_http *http, void *ud)
{
    bc_exchange *x = ud;
    (void)http;
    if (x->means.recording != NULL) keep_head(x);
    x->handlers.on_head(x->handlers.ud);
}

static void on_body(bc_http *http, const char *data, size_t len, void *ud)
{
    bc_exchange *x = ud;
    (void)http;
    if (x->means.recording != NULL && x->torn == 0) {
        x->torn = bc_recorded_add(&x->taken, data, len);
    }
    x->handlers.on_body(data, len, x->handlers.ud);
}

static void on_done(bc_http *http, const barchan_error *err, void *ud)
{
    bc_exchange *x = ud;
    (void)http;
    if (err != NULL) x->taken.error = *err;
    keep(x, err != NULL ? BC_RECORDED_FAILED : BC_RECORDED_COMPLETE);
    x->handlers.on_done(err, x->handlers.ud);
}

static int start_http(bc_exchange *x, const bc_http_options *options, barchan_error *err)
{
    const bc_http_handlers handlers = {on_head, on_body, on_done, x};
    if (x->means.recording != NULL) {
        int rc = bc_recording_check(x->means.recording, err);
        if (rc < 0) return rc;
        if (bc_random_hex(x->taken.id_seed, BC_ID_SEED_BYTES - 1) < 0) {
            return bc_error_set(err, BARCHAN_EIO, "no random bytes for ids");
        }
    }
    return bc_http_start(&x->http, x->means.rt, options, &handlers, err);
}

/* ---- playing ---- */

static void tell_end(bc_exchange *x)
{
    barchan_error err = x->from->error;
    x->done = 1;
    if (x->from->end == BC_RECORDED_CLOSED) {
        bc_error_set(&err, BARCHAN_ECANCELLED,
                     "the recording ends here: the request was given up when it was recorded");
    }
    x->handlers.on_done(x->from->end == BC_RECORDED_COMPLETE ? NULL : &err, x->handlers.ud);
}

static void tell_piece(bc_exchange *x)
{
    uint32_t bytes;
    memcpy(&bytes, bc_buf_data(&x->from->pieces) + x->piece, sizeof bytes);
    const char *data = bc_buf_data(&x->from->body) + x->at;
    x->piece += sizeof bytes;
    x->at += bytes;
    x->handlers.on_body(data, bytes, x->handlers.ud);
}

/* One step a dispatch, so that it can be ended between any two. */
static void play(bc_defer *defer)
{
    bc_exchange *x = owner_of(defer, bc_exchange, defer);
    barchan_runtime *rt = x->means.rt;
    int closed = 0;
    x->closed = &closed;
    if (!x->head_told && x->from->status != 0) {
        x->head_told = 1;
        x->handlers.on_head(x->handlers.ud);
    } else if (x->piece < x->from->pieces.len) {
        tell_piece(x);
    } else {
        tell_end(x);
    }
    if (closed) return;
    x->closed = NULL;
    if (!x->done) bc_defer_schedule(rt, &x->defer, play);
}

static int start_playing(bc_exchange *x, barchan_error *err)
{
    int rc =
        bc_playback_take(x->means.playback, x->url, x->request, x->means.secrets, &x->from, err);
    if (rc == 0) bc_defer_schedule(x->means.rt, &x->defer, play);
    return rc;
}

/* ---- both ---- */

int bc_exchange_start(bc_exchange **out, const bc_exchange_means *means,
                      const bc_http_options *options, const bc_exchange_handlers *handlers,
                      barchan_error *err)
{
    bc_exchange *x = calloc(1, sizeof *x);
    if (x == NULL) return bc_error_nomem(err);
    x->means = *means;
    x->handlers = *handlers;
    x->url = (bc_json_span){options->url, strlen(options->url)};
    x->request = (bc_json_span){options->body, options->body_len};
    bc_recorded_init(&x->taken);
    int rc = means->playback != NULL ? start_playing(x, err) : start_http(x, options, err);
    if (rc < 0) {
        free(x);
        return rc;
    }
    *out = x;
    return 0;
}

void bc_exchange_close(bc_exchange *x)
{
    if (x == NULL) return;
    if (x->closed != NULL) *x->closed = 1;
    bc_defer_cancel(&x->defer);
    if (x->http != NULL) keep(x, BC_RECORDED_CLOSED);
    bc_http_close(x->http);
    bc_recorded_clear(&x->taken);
    free(x);
}

static const bc_recorded *told(const bc_exchange *x)
{
    return x->head_told ? x->from : NULL;
}

int bc_exchange_status(const bc_exchange *x)
{
    if (x->http != NULL) return bc_http_status(x->http);
    return told(x) != NULL ? x->from->status : 0;
}

const char *bc_exchange_header(const bc_exchange *x, const char *name)
{
    if (x->http != NULL) return bc_http_header(x->http, name);
    return told(x) != NULL ? bc_json_get_string(x->from->headers, name, NULL) : NULL;
}

long bc_exchange_retry_after_ms(const bc_exchange *x)
{
    if (x->http != NULL) return bc_http_retry_after_ms(x->http);
    return told(x) != NULL ? x->from->retry_after_ms : -1;
}

const char *bc_exchange_id_seed(const bc_exchange *x)
{
    return x->from != NULL ? x->from->id_seed : x->taken.id_seed;
}
