/* A completion over HTTP: the request goes out, the answer is told apart and read. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/cleanup.h"
#include "model_internal.h"

/* ---- errors ---- */

static void take_headers(const barchan_completion *c, barchan_error *err)
{
    if (c->http == NULL || bc_http_status(c->http) == 0) return;
    if (err->request_id[0] == '\0') {
        snprintf(err->request_id, sizeof err->request_id, "%s", c->request_id);
    }
    if (bc_http_status(c->http) < 400) return;
    long retry_after_ms = bc_http_retry_after_ms(c->http);
    if (retry_after_ms >= 0) err->retry_after_ms = retry_after_ms; /* otherwise the body's */
    const char *should = bc_http_header(c->http, "x-should-retry");
    if (should == NULL || err->code == BARCHAN_EQUOTA) return;
    if (strcmp(should, "true") == 0) err->retryable = 1;
    if (strcmp(should, "false") == 0) err->retryable = 0;
}

static void end_failed(barchan_completion *c, int rc, barchan_error *err)
{
    if (err->code != rc) bc_error_set(err, rc, "%s", barchan_status_name(rc));
    take_headers(c, err);
    bc_secret_error(&c->model->secrets, err);
    bc_error_context(err, "%s", c->model->provider->name);
    bc_error_where(err, "model.complete");
    bc_completion_end(c, NULL, err);
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
    const bc_http *http = c->http;
    const char *where = bc_http_header(http, "location");
    if (where == NULL) where = "nowhere";
    bc_secret_line(&c->model->secrets, target, sizeof target, where, strlen(where));
    bc_error_set(err, BARCHAN_EPROTOCOL,
                 "the server redirects to %s (HTTP %d); redirects are not followed, set base_url "
                 "to where the API is",
                 target, bc_http_status(http));
    err->http_status = bc_http_status(http);
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
        if (bc_http_status(c->http) < 400 && bc_http_status(c->http) >= 300) {
            return redirected(c, err);
        }
        return bc_provider_http_error(err, bc_http_status(c->http), c->content_type,
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

static void on_head(bc_http *http, void *ud)
{
    barchan_completion *c = ud;
    const char *type = bc_http_header(http, "content-type");
    const char *id = bc_http_header(http, c->model->provider->request_id_header);
    if (id == NULL) id = bc_http_header(http, "x-request-id");
    if (id == NULL) id = "";
    snprintf(c->content_type, sizeof c->content_type, "%s", type != NULL ? type : "");
    bc_secret_line(&c->model->secrets, c->request_id, sizeof c->request_id, id, strlen(id));
    if (bc_http_status(http) >= 300) c->answer = BC_ANSWER_ERROR;
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

static void on_body(bc_http *http, const char *data, size_t len, void *ud)
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

static void on_done(bc_http *http, const barchan_error *err, void *ud)
{
    barchan_completion *c = ud;
    /* An answer that breaks off after the turn's end has lost nothing, and an error's status says
     * more than how its words broke off. */
    int refused = c->answer == BC_ANSWER_ERROR && bc_http_status(http) >= 400;
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

typedef struct header_list {
    char **lines;
    size_t count;
} header_list;

static int put_header(const char *name, const char *value, void *ud)
{
    header_list *list = ud;
    char **lines = realloc(list->lines, (list->count + 2) * sizeof *lines);
    if (lines == NULL) return BARCHAN_ENOMEM;
    list->lines = lines;
    bc_buf line;
    bc_buf_init(&line, BC_HTTP_MAX_HEADER_BYTES);
    int rc = bc_buf_appendf(&line, "%s: %s", name, value);
    char *text = rc == 0 ? bc_buf_take(&line, NULL) : NULL;
    bc_buf_clear(&line);
    if (text == NULL) return rc < 0 ? rc : BARCHAN_ENOMEM;
    lines[list->count++] = text;
    lines[list->count] = NULL;
    return 0;
}

static void drop_headers(header_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        explicit_bzero(list->lines[i], strlen(list->lines[i])); /* the key is in one */
        free(list->lines[i]);
    }
    free(list->lines);
}

static int make_headers(const barchan_model *model, const bc_request *request, header_list *list)
{
    int rc = put_header("content-type", "application/json", list);
    if (rc == 0) {
        rc = put_header(
            "accept", request->stream ? "text/event-stream, application/json" : "application/json",
            list);
    }
    if (rc == 0) rc = model->provider->headers(&model->info, put_header, list);
    for (char **h = model->headers; rc == 0 && h != NULL && *h != NULL; h++) {
        char **lines = realloc(list->lines, (list->count + 2) * sizeof *lines);
        if (lines == NULL) return BARCHAN_ENOMEM;
        list->lines = lines;
        lines[list->count + 1] = NULL;
        lines[list->count] = strdup(*h);
        if (lines[list->count] == NULL) return BARCHAN_ENOMEM;
        list->count++;
    }
    return rc;
}

static int send_request(barchan_completion *c, const char *url, const header_list *headers,
                        const bc_buf *body, barchan_error *err)
{
    const barchan_model *model = c->model;
    bc_http_options options = {.method = "POST",
                               .url = url,
                               .headers = (const char *const *)headers->lines,
                               .body = bc_buf_data(body),
                               .body_len = body->len,
                               .connect_timeout_ms = model->connect_timeout_ms,
                               .idle_timeout_ms = model->idle_timeout_ms,
                               .timeout_ms = model->timeout_ms,
                               .max_body_bytes = BC_JSON_MAX_BYTES,
                               .allow_plain = model->allow_plain_http};
    bc_http_handlers handlers = {on_head, on_body, on_done, c};
    return bc_http_start(&c->http, model->rt, &options, &handlers, err);
}

int bc_wire_start(barchan_completion *c, const bc_request *request, barchan_error *err)
{
    const barchan_model *model = c->model;
    cleanup_buf bc_buf url, body;
    bc_buf_init(&url, BC_HTTP_MAX_URL_BYTES);
    bc_buf_init(&body, BC_JSON_MAX_BYTES);
    header_list headers = {0};
    bc_sse_init(&c->sse, on_event, c);
    c->reader = model->provider->reader_create(&c->reply);
    if (c->reader == NULL) return bc_error_nomem(err);
    int rc = bc_timer_open(&c->grace, model->rt, on_grace, c, err);
    if (rc == 0) rc = model->provider->endpoint(&model->info, request, &url, err);
    if (rc == 0) rc = model->provider->render(&model->info, request, &body, err);
    if (rc == 0) {
        rc = make_headers(model, request, &headers);
        if (rc == BARCHAN_ENOMEM) bc_error_nomem(err);
        if (rc == BARCHAN_ELIMIT) bc_error_set(err, rc, "a header of the request is too large");
    }
    if (rc == 0) rc = send_request(c, bc_buf_data(&url), &headers, &body, err);
    drop_headers(&headers);
    return rc;
}
