/* A completion's request over HTTP: made once, sent as often as it takes. */
#include <stdlib.h>
#include <string.h>
#include "base/clock.h"
#include "model_internal.h"

static int add_line(bc_wire_request *request, char *line)
{
    char **lines = realloc(request->headers, (request->header_count + 2) * sizeof *lines);
    if (lines == NULL || line == NULL) {
        if (lines != NULL) request->headers = lines;
        free(line);
        return BARCHAN_ENOMEM;
    }
    request->headers = lines;
    lines[request->header_count++] = line;
    lines[request->header_count] = NULL;
    return 0;
}

static int put_header(const char *name, const char *value, void *ud)
{
    bc_buf line;
    bc_buf_init(&line, BC_HTTP_MAX_HEADER_BYTES);
    int rc = bc_buf_appendf(&line, "%s: %s", name, value);
    char *text = rc == 0 ? bc_buf_take(&line, NULL) : NULL;
    bc_buf_clear(&line);
    return rc < 0 ? rc : add_line(ud, text);
}

/* Memory as large as a body comes fresh from the kernel each time, page by page. */
static void take_spare(barchan_model *model, bc_buf *body)
{
    bc_buf_init(body, BC_JSON_MAX_BYTES);
    if (model->spare.mem == NULL) return;
    *body = model->spare;
    bc_buf_init(&model->spare, BC_JSON_MAX_BYTES);
    bc_buf_reset(body);
}

static void give_spare(barchan_model *model, bc_buf *body)
{
    if (model->spare.mem == NULL && body->mem != NULL && body->cap <= BC_MODEL_MAX_SPARE_BYTES) {
        model->spare = *body;
        bc_buf_init(body, BC_JSON_MAX_BYTES);
    }
    bc_buf_clear(body);
}

void bc_wire_forget(barchan_completion *c)
{
    bc_wire_request *request = &c->request;
    for (size_t i = 0; i < request->header_count; i++) {
        explicit_bzero(request->headers[i], strlen(request->headers[i])); /* the key is in one */
        free(request->headers[i]);
    }
    free(request->headers);
    request->headers = NULL;
    request->header_count = 0;
    bc_buf_clear(&request->url);
    give_spare(c->model, &request->body);
}

static int make_headers(const barchan_model *model, const bc_request *request, bc_wire_request *to)
{
    int rc = put_header("content-type", "application/json", to);
    if (rc == 0) {
        rc = put_header(
            "accept", request->stream ? "text/event-stream, application/json" : "application/json",
            to);
    }
    if (rc == 0) rc = model->provider->headers(&model->info, put_header, to);
    for (char **h = model->headers; rc == 0 && h != NULL && *h != NULL; h++)
        rc = add_line(to, strdup(*h));
    return rc;
}

int bc_wire_make(barchan_completion *c, bc_request *request, barchan_error *err)
{
    barchan_model *model = c->model;
    bc_wire_request *to = &c->request;
    bc_buf_init(&to->url, BC_HTTP_MAX_URL_BYTES);
    take_spare(model, &to->body);
    int rc = model->provider->endpoint(&model->info, request, &to->url, err);
    if (rc == 0) {
        rc = bc_history_render(&model->history, model->provider, &model->info, request, &to->body,
                               err);
    }
    if (rc < 0) return rc;
    rc = make_headers(model, request, to);
    if (rc == BARCHAN_ENOMEM) bc_error_nomem(err);
    if (rc == BARCHAN_ELIMIT) bc_error_set(err, rc, "a header of the request is too large");
    return rc;
}

int bc_wire_send(barchan_completion *c, const bc_exchange_handlers *handlers, barchan_error *err)
{
    const barchan_model *model = c->model;
    int64_t left = c->deadline_ms - bc_clock_ms();
    bc_http_options options = {.method = "POST",
                               .url = bc_buf_data(&c->request.url),
                               .headers = (const char *const *)c->request.headers,
                               .body = bc_buf_data(&c->request.body),
                               .body_len = c->request.body.len,
                               .connect_timeout_ms = model->connect_timeout_ms,
                               .idle_timeout_ms = model->idle_timeout_ms,
                               .timeout_ms = left > 0 ? left : 1,
                               .max_body_bytes = BC_JSON_MAX_BYTES,
                               .allow_plain = model->allow_plain_http};
    int rc = bc_exchange_start(&c->exchange, &model->means, &options, handlers, err);
    if (rc == 0) c->reply.id_seed = bc_exchange_id_seed(c->exchange);
    return rc;
}
