/* The Gemini adapter: its table, its addresses and its reader. */
#include "gemini.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "base/cleanup.h"

/* ---- where and how ---- */

int bc_gemini_is_old(const char *model)
{
    const char *slash = strrchr(model, '/');
    if (slash != NULL) model = slash + 1;
    return strncmp(model, "gemini-1", 8) == 0 || strncmp(model, "gemini-2", 8) == 0;
}

/* The name is a part of the address; one with a slash says itself where it stands
 * ("tunedModels/…"). */
static int endpoint(const bc_model_info *model, const bc_request *request, bc_buf *url,
                    barchan_error *err)
{
    cleanup_buf bc_buf tail;
    bc_buf_init(&tail, BC_HTTP_MAX_URL_BYTES);
    static const char good[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.@/";
    if (model->name[strspn(model->name, good)] != '\0' || strstr(model->name, "..") != NULL) {
        return bc_error_set(err, BARCHAN_EINVAL,
                            "the model's name '%.60s' cannot stand in an address", model->name);
    }
    int streams = request != NULL && request->stream;
    int rc = bc_buf_appendf(&tail, "%s%s:%s", strchr(model->name, '/') != NULL ? "/" : "/models/",
                            model->name, streams ? "streamGenerateContent" : "generateContent");
    if (rc == 0) rc = bc_provider_url(model->base_url, "/v1beta", 1, bc_buf_data(&tail), url, err);
    /* Without it the stream would be one JSON array in pieces. */
    if (rc == 0 && streams) {
        const char *joint = strchr(bc_buf_data(url), '?') != NULL ? "&" : "?";
        rc = bc_buf_appendf(url, "%salt=sse", joint);
    }
    return rc < 0 ? bc_error_set(err, BARCHAN_EINVAL, "the base URL is too long") : 0;
}

/* The key never goes into the address, where logs would keep it. Tokens (Vertex) are marked with
 * "Bearer ". */
static int headers(const bc_model_info *model, bc_put_header_fn put, void *ud)
{
    const char *key = model->api_key;
    if (key == NULL || bc_provider_has_header(model, "x-goog-api-key") ||
        bc_provider_has_header(model, "authorization"))
        return 0;
    if (strncasecmp(key, "Bearer ", 7) == 0) return bc_provider_put_bearer(key, put, ud);
    return put("x-goog-api-key", key, ud);
}

/* ---- reading ---- */

static void *reader_create(bc_reply *reply)
{
    bc_gemini_reader *reader = calloc(1, sizeof *reader);
    if (reader == NULL) return NULL;
    reader->reply = reply;
    bc_buf_init(&reader->parts, 2 * (size_t)BC_MODEL_MAX_TURN_BYTES);
    bc_text_init(&reader->run);
    bc_gemini_partial_init(&reader->partial);
    return reader;
}

static void reader_destroy(void *self)
{
    bc_gemini_reader *reader = self;
    if (reader == NULL) return;
    bc_buf_clear(&reader->parts);
    bc_text_clear(&reader->run);
    bc_gemini_partial_clear(&reader->partial);
    free(reader);
}

/* There is no reason of its own for calls: they stop like any other turn. Of a turn that ended in a
 * bad call (MALFORMED_FUNCTION_CALL, UNEXPECTED_TOOL_CALL) nothing may be run. */
static bc_stop stop_of(const char *label)
{
    static const char *const filtered[] = {
        "SAFETY",
        "RECITATION",
        "BLOCKLIST",
        "PROHIBITED_CONTENT",
        "SPII",
        "LANGUAGE",
        "NO_IMAGE",
        "IMAGE_OTHER",
        "IMAGE_SAFETY",
        "ESCALATION",
        "IMAGE_RECITATION",
        "IMAGE_PROHIBITED_CONTENT",
        "PUP_LIMITED_DISABLED",
        "MODEL_ARMOR",
    };
    if (strcmp(label, "STOP") == 0) return BC_STOP_END_TURN;
    if (strcmp(label, "FUNCTION_CALL") == 0) return BC_STOP_TOOL_USE; /* gateways */
    if (strcmp(label, "MAX_TOKENS") == 0) return BC_STOP_MAX_TOKENS;
    for (size_t i = 0; i < sizeof filtered / sizeof *filtered; i++) {
        if (strcmp(label, filtered[i]) == 0) return BC_STOP_CONTENT_FILTER;
    }
    return BC_STOP_ERROR;
}

static void take_stop(bc_gemini_reader *reader, const json_t *from, const char *key, bc_stop fixed)
{
    const char *label = bc_json_get_string(from, key, NULL);
    if (label == NULL || *label == '\0') return;
    bc_reply_take_stop(reader->reply, fixed != BC_STOP_NONE ? fixed : stop_of(label), label);
    reader->ended = 1;
}

/* `promptTokenCount` includes the cached ones, `candidatesTokenCount` excludes the thoughts. Each
 * event has the counts so far. */
static void take_usage(bc_usage *to, const json_t *usage)
{
    int64_t prompt = bc_reply_count(usage, "promptTokenCount");
    int64_t tools = bc_reply_count(usage, "toolUsePromptTokenCount");
    int64_t cached = bc_reply_count(usage, "cachedContentTokenCount");
    int64_t answer = bc_reply_count(usage, "candidatesTokenCount");
    int64_t thoughts = bc_reply_count(usage, "thoughtsTokenCount");
    if (prompt >= 0) {
        to->input = prompt + (tools > 0 ? tools : 0) - (cached > 0 ? cached : 0);
        if (to->input < 0) to->input = 0;
    }
    if (cached >= 0) to->cache_read = cached;
    if (thoughts >= 0) to->reasoning = thoughts;
    if (answer >= 0 || thoughts >= 0) {
        to->output = (answer > 0 ? answer : 0) + (thoughts > 0 ? thoughts : 0);
    }
}

static int take_candidate(bc_gemini_reader *reader, const json_t *view, bc_json_span text,
                          barchan_error *err)
{
    bc_json_span content, parts;
    reader->begun = 1;
    int rc = 0;
    if (bc_json_get_array(bc_json_get_object(view, "content"), "parts") != NULL) {
        rc = bc_json_member(text, "content", &content, err);
        if (rc == 1) rc = bc_json_member(content, "parts", &parts, err);
        if (rc == 1) rc = bc_gemini_take_parts(reader, parts, err);
    }
    if (rc == 0) take_stop(reader, view, "finishReason", BC_STOP_NONE);
    return rc;
}

static int take_object(bc_gemini_reader *reader, const json_t *view, bc_json_span text,
                       barchan_error *err)
{
    bc_json_span list;
    bc_json_iter iter;
    const json_t *error = json_object_get(view, "error");
    if (json_is_object(error) || json_is_string(error)) {
        return bc_provider_error(err, 200, error, reader->reply->secrets);
    }
    bc_reply_label(reader->reply->id, sizeof reader->reply->id, view, "responseId");
    bc_reply_label(reader->reply->model, sizeof reader->reply->model, view, "modelVersion");
    take_usage(&reader->reply->usage, bc_json_get_object(view, "usageMetadata"));
    const json_t *candidates = bc_json_get_array(view, "candidates");
    if (json_array_size(candidates) == 0) {
        const json_t *feedback = bc_json_get_object(view, "promptFeedback");
        take_stop(reader, feedback, "blockReason", BC_STOP_CONTENT_FILTER);
        reader->begun |= reader->ended;
        return 0;
    }
    /* Of several candidates only the first is ours. */
    int rc = bc_json_member(text, "candidates", &list, err);
    if (rc == 1) rc = bc_json_iter_init(&iter, list, err);
    if (rc == 1) rc = bc_json_iter_next(&iter, err);
    return rc == 1 ? take_candidate(reader, json_array_get(candidates, 0), iter.value, err) : rc;
}

static int event(void *self, const char *name, bc_json_span data, barchan_error *err)
{
    bc_gemini_reader *reader = self;
    cleanup_json json_t *view = NULL;
    if (data.len == 6 && memcmp(data.data, "[DONE]", 6) == 0) return 0; /* some gateways add it */
    int rc = bc_json_view(&view, data.data, data.len, 0, err);
    if (rc < 0) bc_error_context(err, "an event of the stream");
    /* Errors of the stream's address stand in a list. */
    const json_t *alone = json_is_array(view) ? json_array_get(view, 0) : view;
    return rc < 0 ? rc : take_object(reader, alone, data, err);
}

static bc_progress progress(const void *self)
{
    const bc_gemini_reader *reader = self;
    return reader->ended ? BC_PROGRESS_COMPLETE : BC_PROGRESS_OPEN;
}

static int end(void *self, barchan_error *err)
{
    bc_gemini_reader *reader = self;
    if (!reader->begun || !reader->ended) return bc_provider_incomplete(reader->begun, err);
    int rc = bc_gemini_finish_parts(reader, err);
    if (rc == 0) rc = bc_reply_finish(reader->reply, err);
    return rc < 0 ? rc : bc_gemini_turn(reader, err);
}

/* One response, or a list of them: a stream that was not asked for events. */
static int body(void *self, bc_json_span text, barchan_error *err)
{
    bc_gemini_reader *reader = self;
    cleanup_json json_t *view = NULL;
    bc_json_iter iter;
    int rc = bc_json_view(&view, text.data, text.len, 0, err);
    if (rc < 0) return rc;
    if (json_is_array(view)) {
        rc = bc_json_iter_init(&iter, text, err);
        for (size_t i = 0; rc == 1 && (rc = bc_json_iter_next(&iter, err)) == 1; i++) {
            rc = take_object(reader, json_array_get(view, i), iter.value, err);
            rc = rc < 0 ? rc : 1;
        }
    } else {
        rc = take_object(reader, view, text, err);
    }
    if (rc < 0) return rc;
    if (!reader->begun) {
        return bc_error_set(err, BARCHAN_EPROTOCOL, "the answer has no candidates");
    }
    if (!reader->ended) bc_reply_take_stop(reader->reply, BC_STOP_ERROR, "");
    reader->ended = 1;
    return end(self, err);
}

const bc_provider bc_provider_gemini = {
    .name = "gemini",
    .default_base_url = "https://generativelanguage.googleapis.com/v1beta",
    .endpoint = endpoint,
    .headers = headers,
    .render = bc_gemini_render,
    .reader_create = reader_create,
    .reader_destroy = reader_destroy,
    .event = event,
    .progress = progress,
    .end = end,
    .body = body,
    .request_id_header = "x-request-id",
};
