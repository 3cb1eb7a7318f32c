/* A completion over HTTP: the request goes out, the answer is told apart and read. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/cleanup.h"
#include "base/clock.h"
#include "model_internal.h"

/* ---- errors ---- */

static void take_headers(const barchan_completion *c, barchan_error *err)
{
    if (c->exchange == NULL || bc_exchange_status(c->exchange) == 0) return;
    if (err->request_id[0] == '\0') {
        snprintf(err->request_id, sizeof err->request_id, "%s", c->request_id);
    }
    if (bc_exchange_status(c->exchange) < 400) return;
    long retry_after_ms = bc_exchange_retry_after_ms(c->exchange);
    if (retry_after_ms >= 0) err->retry_after_ms = retry_after_ms; /* otherwise the body's */
    const char *should = bc_exchange_header(c->exchange, "x-should-retry");
    if (should == NULL || err->code == BARCHAN_EQUOTA) return;
    if (strcmp(should, "true") == 0) err->retryable = 1;
    if (strcmp(should, "false") == 0) err->retryable = 0;
}

/* Says so, and forgets what came of the answer. Returns 0 when the caller ended it meanwhile. */
static int begin_again(barchan_completion *c, int64_t wait_ms, const barchan_error *why)
{
    cleanup_buf bc_buf data;
    bc_buf_init(&data, 4096);
    bc_out out = {.buf = &data};
    bc_out_open(&out, '{');
    bc_out_key(&out, "attempt");
    bc_out_integer(&out, c->retries + 2);
    bc_out_key(&out, "wait_ms");
    bc_out_integer(&out, wait_ms);
    bc_out_member(&out, "error", why->message);
    bc_out_member(&out, "code", barchan_status_name(why->code));
    bc_out_close(&out, '}');
    bc_exchange_close(c->exchange);
    c->exchange = NULL;
    c->reply.id_seed = NULL;
    bc_timer_set(c->grace, -1);
    bc_sse_clear(&c->sse);
    bc_buf_reset(&c->body);
    c->answer = BC_ANSWER_UNKNOWN;
    c->progress = BC_PROGRESS_OPEN;
    c->turn_ended = 0;
    c->request_id[0] = '\0';
    if (bc_reply_restart(&c->reply) < 0) return 0;
    return bc_completion_delta(BARCHAN_DELTA_RETRY, (bc_json_span){bc_buf_data(&data), data.len},
                               c) == 0;
}

static void end_failed(barchan_completion *c, int rc, barchan_error *err)
{
    if (err->code != rc) bc_error_set(err, rc, "%s", barchan_status_name(rc));
    take_headers(c, err);
    bc_secret_error(&c->model->secrets, err);
    bc_error_context(err, "%s", c->model->provider->name);
    bc_error_where(err, "model.complete");
    int64_t wait = bc_retry_wait(c->model, err, c->retries, bc_clock_ms(), c->deadline_ms);
    if (wait > 0 && c->model->means.playback != NULL) wait = 0; /* no server needs the pause */
    if (wait < 0) {
        bc_completion_end(c, NULL, err);
    } else if (begin_again(c, wait, err)) {
        c->retries++;
        bc_timer_set(c->again, wait);
    }
}

/* ---- the end ---- */

static void end_read(barchan_completion *c, int rc, barchan_error *err)
{
    const barchan_model *model = c->model;
    cleanup_buf bc_buf out;
    bc_buf_init(&out, 4 * (size_t)BC_JSON_MAX_BYTES);
    if (c->ended) return; /* by the caller, in a delta */
    if (rc >= 0) {
        bc_origin origin = {model->provider->name, model->info.name, model->info.base_url};
        snprintf(c->reply.request_id, sizeof c->reply.request_id, "%s", c->request_id);
        rc = bc_reply_render(&c->reply, &origin, &out, err);
    }
    if (rc < 0) {
        end_failed(c, rc, err);
    } else {
        bc_completion_end(c, &out, NULL);
    }
}

static int read_json(barchan_completion *c, barchan_error *err)
{
    bc_json_span body = {bc_buf_data(&c->body), c->body.len};
    int rc = c->model->provider->body(c->reader, body, err);
    if (rc == BARCHAN_EPROTOCOL && bc_json_validate(body.data, body.len, NULL) < 0) {
        bc_error_context(err, "the answer cannot be read");
        if (err != NULL) err->retryable = 1; /* most often cut short */
    }
    return rc;
}

/* Never followed: a header with a key would go to whoever the answer names. */
static int redirected(const barchan_completion *c, barchan_error *err)
{
    char target[BC_MODEL_MAX_ERROR_DETAIL];
    const bc_exchange *exchange = c->exchange;
    const char *where = bc_exchange_header(exchange, "location");
    if (where == NULL) where = "nowhere";
    bc_secret_line(&c->model->secrets, target, sizeof target, where, strlen(where));
    bc_error_set(err, BARCHAN_EPROTOCOL,
                 "the server redirects to %s (HTTP %d); redirects are not followed, set base_url "
                 "to where the API is",
                 target, bc_exchange_status(exchange));
    err->http_status = bc_exchange_status(exchange);
    return BARCHAN_EPROTOCOL;
}

static int read_rest(barchan_completion *c, barchan_error *err)
{
    int rc;
    switch (c->answer) {
    case BC_ANSWER_STREAM:
        rc = c->progress == BC_PROGRESS_ENDED ? 0 : bc_sse_end(&c->sse, err);
        return rc < 0 || c->ended ? rc : c->model->provider->end(c->reader, err);
    case BC_ANSWER_JSON: return read_json(c, err);
    case BC_ANSWER_ERROR:
        if (bc_exchange_status(c->exchange) < 400 && bc_exchange_status(c->exchange) >= 300) {
            return redirected(c, err);
        }
        return bc_provider_http_error(err, bc_exchange_status(c->exchange), c->content_type,
                                      bc_buf_data(&c->body), c->body.len, &c->model->secrets);
    default:
        rc = bc_error_set(err, BARCHAN_EPROTOCOL, "the server's answer is empty");
        err->retryable = 1;
        return rc;
    }
}

static void finish(barchan_completion *c)
{
    barchan_error err = {0};
    bc_completion_hold(c);
    int rc = read_rest(c, &err);
    if (!c->ended) end_read(c, rc, &err);
    bc_completion_release(c);
}

static void on_grace(void *ud)
{
    finish(ud);
}

/* ---- the answer as it comes ---- */

static int on_event(const char *name, bc_json_span data, void *ud, barchan_error *err)
{
    barchan_completion *c = ud;
    int rc = bc_provider_event(c->model->provider, c->reader, name, data, c->sse.ending, err);
    if (rc < 0 || c->ended) return rc < 0 ? rc : BARCHAN_ECANCELLED;
    bc_progress progress = c->model->provider->progress(c->reader);
    c->turn_ended = progress != BC_PROGRESS_OPEN;
    if (progress == c->progress) return 0;
    c->progress = progress;
    bc_timer_set(c->grace, progress == BC_PROGRESS_ENDED      ? BC_MODEL_ENDED_GRACE_MS
                           : progress == BC_PROGRESS_COMPLETE ? BC_MODEL_COMPLETE_GRACE_MS
                                                              : -1);
    return 0;
}

static void on_head(void *ud)
{
    barchan_completion *c = ud;
    const bc_exchange *exchange = c->exchange;
    const char *type = bc_exchange_header(exchange, "content-type");
    const char *id = bc_exchange_header(exchange, c->model->provider->request_id_header);
    if (id == NULL) id = bc_exchange_header(exchange, "x-request-id");
    if (id == NULL) id = "";
    snprintf(c->content_type, sizeof c->content_type, "%s", type != NULL ? type : "");
    bc_secret_line(&c->model->secrets, c->request_id, sizeof c->request_id, id, strlen(id));
    if (bc_exchange_status(exchange) >= 300) c->answer = BC_ANSWER_ERROR;
}

/* The first byte tells more than the content type: servers that ignore "stream", send events as
 * text/plain, or answer with a page of HTML are all seen. The blanks before it, and a byte order
 * mark, mean nothing in any of them and are dropped as they come. */
static bc_answer tell(bc_buf *body)
{
    static const char mark[] = "\xEF\xBB\xBF";
    size_t len = body->len < 3 ? body->len : 3;
    if (len > 0 && memcmp(bc_buf_data(body), mark, len) == 0) {
        if (len < 3) return BC_ANSWER_UNKNOWN;
        bc_buf_consume(body, 3);
    }
    const char *data = bc_buf_data(body);
    size_t at = 0;
    while (at < body->len && memchr(" \t\r\n", data[at], 4) != NULL)
        at++;
    bc_buf_consume(body, at);
    if (body->len == 0) return BC_ANSWER_UNKNOWN;
    char first = *bc_buf_data(body);
    if (first == '{' || first == '[') return BC_ANSWER_JSON;
    return first == '<' ? BC_ANSWER_ERROR : BC_ANSWER_STREAM;
}

static int take_body(barchan_completion *c, const char *data, size_t len, barchan_error *err)
{
    int first = c->answer == BC_ANSWER_UNKNOWN;
    if (first) {
        int rc = bc_buf_append(&c->body, data, len);
        if (rc < 0) return bc_error_set(err, rc, "the answer is too large");
        c->answer = tell(&c->body);
        if (c->answer != BC_ANSWER_STREAM) return 0;
        rc = bc_sse_feed(&c->sse, bc_buf_data(&c->body), c->body.len, err);
        bc_buf_reset(&c->body);
        return rc;
    }
    if (c->answer == BC_ANSWER_STREAM) return bc_sse_feed(&c->sse, data, len, err);
    if (c->answer == BC_ANSWER_ERROR && c->body.len > BC_HTTP_MAX_ERROR_BYTES) return 0;
    int rc = bc_buf_append(&c->body, data, len);
    return rc < 0 ? bc_error_set(err, rc, "the answer is too large") : 0;
}

static void on_body(const char *data, size_t len, void *ud)
{
    barchan_completion *c = ud;
    barchan_error err = {0};
    bc_completion_hold(c);
    int rc = take_body(c, data, len, &err);
    if (rc < 0 && !c->ended && c->progress == BC_PROGRESS_ENDED) {
        finish(c); /* what cannot be read stands behind the last word */
    } else if (rc < 0 && !c->ended) {
        end_failed(c, rc, &err);
    }
    bc_completion_release(c);
}

static void on_done(const barchan_error *err, void *ud)
{
    barchan_completion *c = ud;
    /* An answer that breaks off after the turn's end has lost nothing, and an error's status says
     * more than how its words broke off. */
    int refused = c->answer == BC_ANSWER_ERROR && bc_exchange_status(c->exchange) >= 400;
    if (err == NULL || c->turn_ended || refused) {
        finish(c);
        return;
    }
    barchan_error copy = *err;
    if (c->answer == BC_ANSWER_STREAM || c->answer == BC_ANSWER_JSON) {
        bc_error_context(&copy, "the answer broke off");
    }
    end_failed(c, copy.code, &copy);
}

/* ---- the request ---- */

static int send_once(barchan_completion *c, barchan_error *err)
{
    bc_exchange_handlers handlers = {on_head, on_body, on_done, c};
    if (c->reader != NULL) c->model->provider->reader_destroy(c->reader);
    bc_sse_init(&c->sse, on_event, c);
    c->reader = c->model->provider->reader_create(&c->reply);
    if (c->reader == NULL) return bc_error_nomem(err);
    return bc_wire_send(c, &handlers, err);
}

static void on_again(void *ud)
{
    barchan_completion *c = ud;
    barchan_error err = {0};
    int rc = send_once(c, &err);
    if (rc < 0) end_failed(c, rc, &err);
}

int bc_wire_start(barchan_completion *c, bc_request *request, barchan_error *err)
{
    const barchan_model *model = c->model;
    c->deadline_ms = bc_clock_ms() + model->timeout_ms;
    int rc = bc_timer_open(&c->grace, model->rt, on_grace, c, err);
    if (rc == 0) rc = bc_timer_open(&c->again, model->rt, on_again, c, err);
    if (rc == 0) rc = bc_wire_make(c, request, err);
    return rc < 0 ? rc : send_once(c, err);
}
