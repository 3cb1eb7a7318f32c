/* One completion: how it begins, how it ends exactly once, and the replay provider's steps. */
#include <stdlib.h>
#include <string.h>
#include "base/cleanup.h"
#include "base/options.h"
#include "base/utf8.h"
#include "model_internal.h"

void bc_completion_hold(barchan_completion *c)
{
    c->holds++;
}

static void free_completion(barchan_completion *c)
{
    if (c->reader != NULL) c->model->provider->reader_destroy(c->reader);
    bc_reply_clear(&c->reply);
    bc_sse_clear(&c->sse);
    bc_wire_forget(c);
    bc_buf_clear(&c->body);
    json_decref(c->view);
    bc_model_release(c->model);
    free(c);
}

void bc_completion_release(barchan_completion *c)
{
    if (--c->holds == 0 && c->ended) free_completion(c);
}

static void detach(barchan_completion *c)
{
    if (c->prev != NULL) c->prev->next = c->next;
    if (c->next != NULL) c->next->prev = c->prev;
    if (c->model->completions == c) c->model->completions = c->next;
    c->next = c->prev = NULL;
    bc_defer_cancel(&c->defer);
    bc_cancel_watch_close(c->cancel);
    c->cancel = NULL;
    bc_timer_close(c->grace);
    bc_timer_close(c->again);
    c->grace = c->again = NULL;
    bc_exchange_close(c->exchange);
    c->exchange = NULL;
}

void bc_completion_end(barchan_completion *c, const bc_buf *reply, const barchan_error *err)
{
    if (c->ended) return;
    bc_completion_hold(c);
    c->ended = 1;
    detach(c);
    if (reply != NULL) {
        c->done(bc_buf_data(reply), reply->len, NULL, c->done_ud);
    } else {
        c->done(NULL, 0, err, c->done_ud);
    }
    bc_completion_release(c);
}

int bc_completion_delta(barchan_delta_kind kind, bc_json_span data, void *completion)
{
    barchan_completion *c = completion;
    if (c->on_delta != NULL) c->on_delta(kind, data.data, data.len, c->delta_ud);
    return c->ended ? BARCHAN_ECANCELLED : 0;
}

static void end_cancelled(barchan_completion *c)
{
    barchan_error err;
    bc_error_set(&err, BARCHAN_ECANCELLED, "the completion was cancelled");
    bc_error_where(&err, "model.complete");
    bc_completion_end(c, NULL, &err);
}

static void on_cancel(void *ud)
{
    end_cancelled(ud);
}

static void on_asked_cancel(bc_defer *defer)
{
    end_cancelled(owner_of(defer, barchan_completion, defer));
}

void barchan_completion_cancel(barchan_completion *completion)
{
    if (completion == NULL || completion->ended) return;
    bc_defer_cancel(&completion->defer);
    bc_defer_schedule(completion->model->rt, &completion->defer, on_asked_cancel);
}

/* ---- replay ---- */

enum { REPLAY_PIECE = 48 };

/* Shows the next piece of a member's text; 1 while there is more. */
static int show_piece(barchan_completion *c, const char *key, barchan_delta_kind kind)
{
    size_t len;
    const char *text = bc_json_get_string(c->view, key, &len);
    if (text == NULL || c->shown >= len) return 0;
    size_t piece = len - c->shown < REPLAY_PIECE ? len - c->shown : REPLAY_PIECE;
    piece = bc_utf8_whole(text + c->shown, piece);
    bc_completion_delta(kind, (bc_json_span){text + c->shown, piece}, c);
    c->shown += piece;
    return 1;
}

static int show_call(barchan_completion *c)
{
    size_t len;
    const json_t *call = json_array_get(json_object_get(c->view, "tool_calls"), c->shown);
    const char *name = bc_json_get_string(call, "name", &len);
    if (name == NULL) return 0;
    c->shown++;
    bc_completion_delta(BARCHAN_DELTA_TOOL_CALL, (bc_json_span){name, len}, c);
    return 1;
}

/* Reasoning, text, calls, one piece a dispatch, so that it can be cancelled between any two. */
static int replay_step(barchan_completion *c)
{
    int more = 0;
    while (!more && c->on_delta != NULL && c->step < 3) {
        if (c->step == 0) more = show_piece(c, "reasoning", BARCHAN_DELTA_REASONING);
        if (c->step == 1) more = show_piece(c, "text", BARCHAN_DELTA_TEXT);
        if (c->step == 2) more = show_call(c);
        if (!more) {
            c->step++;
            c->shown = 0;
        }
    }
    return more;
}

static int load_replay(barchan_completion *c, barchan_error *err)
{
    if (c->view != NULL) return 0;
    int rc = bc_replay_next(c->model->replay, &c->body, err);
    if (rc == 0) rc = bc_json_view(&c->view, bc_buf_data(&c->body), c->body.len, 0, err);
    if (rc == 0) return 0;
    bc_error_context(err, "replay");
    bc_error_where(err, "model.complete");
    return rc;
}

static void on_replay(bc_defer *defer)
{
    barchan_completion *c = owner_of(defer, barchan_completion, defer);
    barchan_error err;
    bc_completion_hold(c);
    if (load_replay(c, &err) < 0) {
        bc_completion_end(c, NULL, &err);
    } else if (!replay_step(c)) {
        bc_completion_end(c, &c->body, NULL);
    } else if (!c->ended && c->defer.next == NULL) { /* else a delta asked for the end */
        bc_defer_schedule(c->model->rt, &c->defer, on_replay);
    }
    bc_completion_release(c);
}

/* ---- starting ---- */

static void attach(barchan_completion *c, barchan_model *model)
{
    c->model = model;
    bc_model_retain(model);
    c->next = model->completions;
    if (c->next != NULL) c->next->prev = c;
    model->completions = c;
}

static barchan_completion *make(barchan_model *model, const barchan_complete_options *options)
{
    barchan_completion *c = calloc(1, sizeof *c);
    if (c == NULL) return NULL;
    bc_buf_init(&c->body, BC_JSON_MAX_BYTES);
    bc_reply_init(&c->reply, bc_completion_delta, c);
    c->reply.secrets = &model->secrets;
    c->on_delta = options->on_delta;
    c->delta_ud = options->ud;
    attach(c, model);
    return c;
}

static int begin(barchan_completion *c, bc_request *request, barchan_cancel *cancel,
                 barchan_error *err)
{
    barchan_model *model = c->model;
    int rc = bc_cancel_watch_open(&c->cancel, model->rt, cancel, on_cancel, c, err);
    if (rc < 0) return rc;
    if (model->provider != NULL) return bc_wire_start(c, request, err);
    bc_defer_schedule(model->rt, &c->defer, on_replay);
    return 0;
}

int barchan_model_complete_start(barchan_completion **out, barchan_model *model,
                                 const char *request_text, size_t len,
                                 const barchan_complete_options *options, barchan_complete_fn done,
                                 void *done_ud, barchan_error *err)
{
    BC_OPERATION("model.complete");
    if (out != NULL) *out = NULL;
    if (model == NULL || request_text == NULL || done == NULL) {
        return bc_error_set(err, BARCHAN_EINVAL,
                            "complete needs a model, a request and a callback");
    }
    int rc = bc_runtime_check(model->rt, err);
    if (rc < 0) return rc;
    if (model->destroyed) {
        bc_error_set(err, BARCHAN_ECLOSED, "the model is being destroyed");
        bc_error_context(err, "complete");
        return BARCHAN_ECLOSED;
    }
    barchan_complete_options o;
    bc_request request;
    rc = bc_options_copy(&o, sizeof o, options, err);
    if (rc == 0) rc = bc_history_read(&model->history, &request, request_text, len, err);
    if (rc == 0) {
        barchan_completion *c = make(model, &o);
        rc = c == NULL ? bc_error_nomem(err) : begin(c, &request, o.cancel, err);
        bc_request_clear(&request);
        if (rc == 0) {
            c->done = done;
            c->done_ud = done_ud;
            if (out != NULL) *out = c;
            return 0;
        }
        if (c != NULL) {
            c->ended = 1;
            detach(c);
            free_completion(c);
        }
    }
    bc_error_context(err, "complete");
    return rc;
}

/* ---- waiting ---- */

typedef struct waiter {
    int done, rc;
    char *reply;
    barchan_error *err;
} waiter;

static void on_done(const char *reply, size_t len, const barchan_error *err, void *ud)
{
    waiter *w = ud;
    w->done = 1;
    if (reply == NULL) {
        w->rc = err->code;
        if (w->err != NULL) *w->err = *err;
        return;
    }
    w->reply = malloc(len + 1);
    if (w->reply == NULL) {
        w->rc = bc_error_nomem(w->err);
        return;
    }
    memcpy(w->reply, reply, len);
    w->reply[len] = '\0';
}

int barchan_model_complete(barchan_model *model, const char *request, size_t len,
                           const barchan_complete_options *options, char **reply,
                           barchan_error *err)
{
    BC_OPERATION("model.complete");
    if (reply == NULL) return bc_error_set(err, BARCHAN_EINVAL, "complete needs a result");
    *reply = NULL;
    waiter w = {.err = err};
    barchan_completion *c = NULL;
    int rc = model != NULL ? bc_runtime_may_wait(model->rt, err) : 0;
    if (rc < 0) return rc;
    rc = barchan_model_complete_start(&c, model, request, len, options, on_done, &w, err);
    if (rc < 0) return rc;
    barchan_error why;
    rc = bc_runtime_wait(model->rt, &w.done, &why);
    if (rc < 0 && !w.done) {
        bc_error_where(&why, "model.complete");
        bc_completion_end(c, NULL, &why);
    }
    *reply = w.reply;
    return w.rc;
}
