/* The Anthropic Messages adapter: its table, its addresses and its reader. */
#include "anthropic.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- where and how ---- */

static int endpoint(const bc_model_info *model, const bc_request *request, bc_buf *url,
                    barchan_error *err)
{
    return bc_provider_url(model->base_url, "/v1", 0, "/messages", url, err);
}

/* Either form of the key, never both: the server refuses that. Tokens of the OAuth kind are
 * "sk-ant-oat…"; any other is marked by the caller with "Bearer ". */
static int headers(const bc_model_info *model, bc_put_header_fn put, void *ud)
{
    int rc = 0, signed_by_caller = bc_provider_has_header(model, "x-api-key") ||
                                   bc_provider_has_header(model, "authorization");
    if (model->api_key != NULL && !signed_by_caller) {
        const char *key = model->api_key;
        int is_token = strncasecmp(key, "Bearer ", 7) == 0 || strncmp(key, "sk-ant-oat", 10) == 0;
        rc = is_token ? bc_provider_put_bearer(key, put, ud) : put("x-api-key", key, ud);
    }
    if (rc == 0 && !bc_provider_has_header(model, "anthropic-version")) {
        rc = put("anthropic-version", "2023-06-01", ud);
    }
    return rc;
}

/* ---- reading ---- */

static void *reader_create(bc_reply *reply)
{
    bc_anthropic_reader *reader = calloc(1, sizeof *reader);
    if (reader == NULL) return NULL;
    reader->reply = reply;
    bc_piece_init(&reader->piece);
    return reader;
}

static void reader_destroy(void *self)
{
    if (self == NULL) return;
    bc_anthropic_reader *reader = self;
    bc_blocks_clear(reader);
    bc_piece_clear(&reader->piece);
    free(reader);
}

static bc_stop stop_of(const char *label)
{
    static const struct {
        const char *label;
        bc_stop stop;
    } known[] = {
        {"end_turn", BC_STOP_END_TURN},
        {"tool_use", BC_STOP_TOOL_USE},
        {"max_tokens", BC_STOP_MAX_TOKENS},
        {"stop_sequence", BC_STOP_STOP_SEQUENCE},
        {"pause_turn", BC_STOP_PAUSE_TURN},
        {"refusal", BC_STOP_REFUSAL},
        {"model_context_window_exceeded", BC_STOP_CONTEXT_WINDOW},
        /* Beta: the content holds a summary; send it back and go on, as after a pause. */
        {"compaction", BC_STOP_PAUSE_TURN},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcmp(known[i].label, label) == 0) return known[i].stop;
    }
    return BC_STOP_ERROR;
}

static void copy_text(char *to, size_t size, const char *text)
{
    if (text != NULL) snprintf(to, size, "%s", text);
}

static void take_count(int64_t *to, const json_t *usage, const char *key)
{
    /* Later events may leave a count out or null it: only numbers overwrite. */
    int64_t count = bc_reply_count(usage, key);
    if (count >= 0) *to = count;
}

static void take_usage(bc_reply *reply, const json_t *usage)
{
    take_count(&reply->usage.input, usage, "input_tokens");
    take_count(&reply->usage.output, usage, "output_tokens");
    take_count(&reply->usage.cache_write, usage, "cache_creation_input_tokens");
    take_count(&reply->usage.cache_read, usage, "cache_read_input_tokens");
    take_count(&reply->usage.reasoning, bc_json_get_object(usage, "output_tokens_details"),
               "thinking_tokens");
}

static int take_stop(bc_reply *reply, const json_t *from)
{
    const char *label = bc_json_get_string(from, "stop_reason", NULL);
    if (label == NULL || *label == '\0') return 0;
    bc_reply_take_stop(reply, stop_of(label), label);
    if (reply->stop != BC_STOP_REFUSAL) return 0;
    const json_t *details = bc_json_get_object(from, "stop_details");
    const char *words = bc_json_get_string(details, "explanation", NULL);
    if (words == NULL) words = bc_json_get_string(details, "category", NULL);
    bc_buf_reset(&reply->refusal);
    return bc_buf_append_string(&reply->refusal, words != NULL ? words : "");
}

static int each_block(bc_anthropic_reader *reader, bc_json_span message, barchan_error *err)
{
    bc_json_span content;
    bc_json_iter iter;
    int rc = bc_json_member(message, "content", &content, err);
    if (rc == 1) rc = bc_json_iter_init(&iter, content, err);
    for (int64_t index = 0; rc == 1; index++) {
        rc = bc_json_iter_next(&iter, err);
        if (rc != 1) break;
        if (iter.type != BC_JSON_OBJECT_BEGIN) continue;
        rc = bc_block_begin(reader, index, iter.value, err);
        if (rc == 0) {
            rc = bc_turn_failed(bc_block_stop(reader, bc_block_find(reader, index)), err);
        }
        if (rc == 0) rc = 1;
    }
    return rc;
}

static int take_message(bc_anthropic_reader *reader, const json_t *view, bc_json_span message,
                        barchan_error *err)
{
    bc_reply *reply = reader->reply;
    copy_text(reply->id, sizeof reply->id, bc_json_get_string(view, "id", NULL));
    copy_text(reply->model, sizeof reply->model, bc_json_get_string(view, "model", NULL));
    take_usage(reply, bc_json_get_object(view, "usage"));
    int rc = bc_turn_failed(take_stop(reply, view), err);
    return rc < 0 ? rc : each_block(reader, message, err);
}

/* What is looked at of an event. Most events are pieces of text: no tree is made for those. */
enum { TYPE, INDEX, BLOCK, DELTA, MESSAGE, USAGE, ERROR, MEMBERS };

static int view_member(json_t **view, bc_json_span member, barchan_error *err)
{
    return member.len > 0 ? bc_json_view(view, member.data, member.len, 0, err) : 0;
}

static int on_message_start(bc_anthropic_reader *reader, bc_json_span message, barchan_error *err)
{
    cleanup_json json_t *view = NULL;
    /* A gateway that retries begins the message again in the same stream: what came is void. */
    if (reader->begun) {
        bc_blocks_clear(reader);
        reader->complete = 0;
        int rc = bc_reply_restart(reader->reply);
        if (rc < 0) return rc;
    }
    reader->begun = 1;
    if (message.len == 0) return 0;
    int rc = view_member(&view, message, err);
    return rc < 0 ? rc : take_message(reader, view, message, err);
}

static int on_block(bc_anthropic_reader *reader, const char *type,
                    const bc_json_wanted members[MEMBERS], bc_json_span data, barchan_error *err)
{
    int64_t index = bc_json_span_integer(members[INDEX].value, (int64_t)reader->block_count);
    bc_json_span start = members[BLOCK].value, delta = members[DELTA].value;
    if (strcmp(type, "content_block_start") == 0) {
        return start.len > 0 ? bc_block_begin(reader, index, start, err) : 0;
    }
    if (strcmp(type, "content_block_delta") == 0) {
        /* What an event without a number is for depends on more than its bytes. */
        if (bc_json_span_integer(members[INDEX].value, -1) < 0) data.len = 0;
        return delta.len > 0 ? bc_block_delta(reader, index, delta, data, err) : 0;
    }
    bc_block *block = bc_block_find(reader, index);
    return block != NULL ? bc_turn_failed(bc_block_stop(reader, block), err) : 0;
}

static int on_message_delta(bc_anthropic_reader *reader, const bc_json_wanted members[MEMBERS],
                            barchan_error *err)
{
    cleanup_json json_t *usage = NULL, *delta = NULL;
    int rc = view_member(&usage, members[USAGE].value, err);
    if (rc == 0) rc = view_member(&delta, members[DELTA].value, err);
    if (rc < 0) return rc;
    take_usage(reader->reply, usage);
    return bc_turn_failed(take_stop(reader->reply, delta), err);
}

static int on_error(bc_anthropic_reader *reader, bc_json_span error, barchan_error *err)
{
    cleanup_json json_t *view = NULL;
    int rc = view_member(&view, error, err);
    return rc < 0 ? rc : bc_provider_error(err, 200, view, reader->reply->secrets);
}

static int event(void *self, const char *name, bc_json_span data, barchan_error *err)
{
    bc_anthropic_reader *reader = self;
    char type[64]; /* no type that we know is as long */
    bc_json_wanted members[MEMBERS] = {
        {.key = "type"},    {.key = "index"}, {.key = "content_block"}, {.key = "delta"},
        {.key = "message"}, {.key = "usage"}, {.key = "error"}};
    if (data.len == 6 && memcmp(data.data, "[DONE]", 6) == 0) return 0; /* some gateways */
    int rc = reader->complete ? 0 : bc_block_piece(reader, data, err);
    if (rc != 0) return rc < 0 ? rc : 0;
    rc = bc_json_members(data, members, MEMBERS, reader->complete ? NULL : err);
    if (rc < 0) return reader->complete ? 0 : rc;
    int typed = bc_json_span_label(members[TYPE].value, type, sizeof type);
    if (!typed) snprintf(type, sizeof type, "%s", name);
    /* After the last word only a message begun again means something. */
    if (reader->complete && strcmp(type, "message_start") != 0) return 0;
    bc_json_span error = members[ERROR].value;
    int has_error = error.len > 0 && error.data[0] == '{';
    if (strcmp(type, "error") == 0 || (!typed && has_error)) {
        return on_error(reader, has_error ? error : data, err);
    }
    if (strcmp(type, "message_start") == 0) {
        return on_message_start(reader, members[MESSAGE].value, err);
    }
    if (strncmp(type, "content_block_", 14) == 0) {
        if (!typed) data.len = 0; /* its type is not in its data */
        return on_block(reader, type, members, data, err);
    }
    if (strcmp(type, "message_delta") == 0) return on_message_delta(reader, members, err);
    if (strcmp(type, "message_stop") != 0) return 0; /* ping, and what is not invented yet */
    reader->complete = 1;
    return 0;
}

static bc_progress progress(const void *self)
{
    const bc_anthropic_reader *reader = self;
    return reader->complete ? BC_PROGRESS_ENDED : BC_PROGRESS_OPEN;
}

static int end(void *self, barchan_error *err)
{
    bc_anthropic_reader *reader = self;
    if (!reader->complete || !reader->begun) return bc_provider_incomplete(reader->begun, err);
    for (size_t i = 0; i < reader->block_count; i++) {
        int rc = bc_turn_failed(bc_block_stop(reader, &reader->blocks[i]), err);
        if (rc < 0) return rc;
    }
    /* Complete, but without a reason: no call of it may be run. */
    if (reader->reply->stop == BC_STOP_NONE) reader->reply->stop = BC_STOP_ERROR;
    int rc = bc_blocks_calls(reader, err);
    if (rc == 0) rc = bc_reply_finish(reader->reply, err);
    return rc < 0 ? rc : bc_blocks_turn(reader, err);
}

static int body(void *self, bc_json_span text, barchan_error *err)
{
    bc_anthropic_reader *reader = self;
    cleanup_json json_t *view = NULL;
    int rc = bc_json_view(&view, text.data, text.len, 0, err);
    if (rc < 0) return rc;
    const json_t *error = json_object_get(view, "error");
    if (json_is_object(error)) return bc_provider_error(err, 200, error, reader->reply->secrets);
    if (bc_json_get_array(view, "content") == NULL) {
        return bc_error_set(err, BARCHAN_EPROTOCOL, "the answer is no message: it has no content");
    }
    reader->begun = reader->complete = 1;
    rc = take_message(reader, view, text, err);
    return rc < 0 ? rc : end(self, err);
}

const bc_provider bc_provider_anthropic = {
    .name = "anthropic",
    .default_base_url = "https://api.anthropic.com",
    .endpoint = endpoint,
    .headers = headers,
    .render = bc_anthropic_render,
    .reader_create = reader_create,
    .reader_destroy = reader_destroy,
    .event = event,
    .progress = progress,
    .end = end,
    .body = body,
    .request_id_header = "request-id",
};
