#include "adapter_run.h"

#include <stdlib.h>
#include <string.h>

typedef struct run {
    const bc_provider *provider;
    void *reader;
    bc_buf shown;
    bc_sse *sse;
} run;

static int on_delta(barchan_delta_kind kind, bc_json_span data, void *ud)
{
    run *r = ud;
    if (kind == BARCHAN_DELTA_RESTART) bc_buf_reset(&r->shown);
    return kind == BARCHAN_DELTA_TEXT ? bc_buf_append(&r->shown, data.data, data.len) : 0;
}

static int on_event(const char *name, bc_json_span data, void *ud, barchan_error *err)
{
    run *r = ud;
    int rc = bc_provider_event(r->provider, r->reader, name, data, r->sse->ending, err);
    return rc < 0 ? rc : 0;
}

static int read_stream(run *r, const char *bytes, size_t len, size_t step, barchan_error *err)
{
    bc_sse sse;
    bc_sse_init(&sse, on_event, r);
    r->sse = &sse;
    int rc = 0;
    if (step == 0) step = len;
    for (size_t at = 0; rc == 0 && at < len; at += step) {
        rc = bc_sse_feed(&sse, bytes + at, len - at < step ? len - at : step, err);
    }
    if (rc == 0) rc = bc_sse_end(&sse, err);
    bc_sse_clear(&sse);
    return rc < 0 ? rc : r->provider->end(r->reader, err);
}

adapter_result adapter_read(const bc_provider *provider, int http_status, int stream,
                            const char *bytes, size_t len, size_t step)
{
    adapter_result result = {0};
    run r = {.provider = provider};
    bc_reply reply;
    bc_buf out;
    bc_buf_init(&r.shown, BC_JSON_MAX_BYTES);
    bc_buf_init(&out, 4 * (size_t)BC_JSON_MAX_BYTES);
    bc_reply_init(&reply, on_delta, &r);
    r.reader = provider->reader_create(&reply);
    int rc;
    if (r.reader == NULL) {
        rc = bc_error_nomem(&result.err);
    } else if (http_status >= 400) {
        rc = bc_provider_http_error(&result.err, http_status, "application/json", bytes, len, NULL);
    } else if (stream) {
        rc = read_stream(&r, bytes, len, step, &result.err);
    } else {
        rc = provider->body(r.reader, (bc_json_span){bytes, len}, &result.err);
    }
    bc_origin origin = {provider->name, "m", "https://example.test"};
    if (rc == 0) rc = bc_reply_render(&reply, &origin, &out, &result.err);
    result.failed = rc < 0;
    if (rc == 0) result.reply = bc_buf_take(&out, NULL);
    result.shown = bc_buf_take(&r.shown, &result.shown_len);
    provider->reader_destroy(r.reader);
    bc_reply_clear(&reply);
    bc_buf_clear(&out);
    bc_buf_clear(&r.shown);
    return result;
}

void adapter_result_clear(adapter_result *result)
{
    free(result->reply);
    free(result->shown);
}
