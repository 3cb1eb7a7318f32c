/* The Chat Completions adapter: its table and its reader. */
#include "openai_chat.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int endpoint(const bc_model_info *model, const bc_request *request, bc_buf *url,
                    barchan_error *err)
{
    return bc_provider_url(model->base_url, "/v1", 1, "/chat/completions", url, err);
}

static void *reader_create(bc_reply *reply)
{
    bc_chat_reader *reader = calloc(1, sizeof *reader);
    if (reader == NULL) return NULL;
    reader->reply = reply;
    bc_text_init(&reader->content);
    bc_text_init(&reader->refusal);
    bc_text_init(&reader->thinking);
    for (int i = 0; i < BC_CHAT_FIELDS; i++)
        bc_text_init(&reader->reasoning[i]);
    bc_buf_init(&reader->content_parts, BC_MODEL_MAX_TURN_BYTES);
    bc_buf_init(&reader->reasoning_details, 2 * (size_t)BC_MODEL_MAX_TURN_BYTES);
    bc_buf_init(&reader->detail.first, BC_MODEL_MAX_TURN_BYTES);
    bc_buf_init(&reader->detail.signature, BC_MODEL_MAX_TURN_BYTES);
    bc_text_init(&reader->detail.text);
    bc_buf_init(&reader->extra, BC_MODEL_MAX_TURN_BYTES);
    bc_piece_init(&reader->piece);
    return reader;
}

static void reader_destroy(void *self)
{
    bc_chat_reader *reader = self;
    if (reader == NULL) return;
    bc_chat_clear_calls(reader);
    bc_text_clear(&reader->content);
    bc_text_clear(&reader->refusal);
    bc_text_clear(&reader->thinking);
    for (int i = 0; i < BC_CHAT_FIELDS; i++)
        bc_text_clear(&reader->reasoning[i]);
    bc_buf_clear(&reader->content_parts);
    bc_buf_clear(&reader->reasoning_details);
    bc_buf_clear(&reader->detail.first);
    bc_buf_clear(&reader->detail.signature);
    bc_text_clear(&reader->detail.text);
    bc_buf_clear(&reader->extra);
    bc_piece_clear(&reader->piece);
    free(reader);
}

static void take_finish(bc_chat_reader *reader, const json_t *choice)
{
    const char *label = bc_json_get_string(choice, "finish_reason", NULL);
    /* Some servers write their null as text. */
    if (label == NULL || strcmp(label, "null") == 0) return;
    bc_reply_take_stop(reader->reply, bc_chat_stop(label), label);
    if (*label != '\0') reader->ended = 1;
}

/* ---- the message, whole or in deltas ---- */

static void note_addition(bc_chat_reader *reader, bc_text *to, bc_json_span value)
{
    if (value.data[0] != '"') return; /* adds nothing */
    reader->additions++;
    reader->added = value;
    reader->added_to = to;
}

static int add_reasoning(bc_chat_reader *reader, bc_text *to, bc_json_span value)
{
    bc_json_span fresh;
    note_addition(reader, to, value);
    int rc = bc_text_append(to, value);
    if (rc == 0) rc = bc_text_settle(to, 0, &fresh);
    /* A server that sends the same reasoning under two names is read once. */
    int second = to == &reader->reasoning[BC_CHAT_REASONING_CONTENT] &&
                 !bc_text_is_empty(&reader->reasoning[BC_CHAT_REASONING]);
    return rc < 0 || second ? rc : bc_reply_reasoning(reader->reply, fresh);
}

static int add_text(bc_chat_reader *reader, bc_json_span value)
{
    bc_json_span fresh;
    note_addition(reader, &reader->content, value);
    int rc = bc_text_append(&reader->content, value);
    if (rc == 0) rc = bc_text_settle(&reader->content, 0, &fresh);
    return rc < 0 ? rc : bc_reply_text(reader->reply, fresh);
}

/* A list of parts: {"type":"text","text":…}, {"type":"thinking","thinking":[parts]}; others show
 * nothing. */
static int add_parts(bc_chat_reader *reader, bc_json_span list, int thinking, barchan_error *err)
{
    bc_json_iter iter;
    bc_json_span inner;
    int rc = bc_json_iter_init(&iter, list, err);
    while (rc == 1 && (rc = bc_json_iter_next(&iter, err)) == 1) {
        int failed = 0;
        if (iter.type != BC_JSON_OBJECT_BEGIN) continue;
        if (!thinking && bc_json_member(iter.value, "thinking", &inner, NULL) == 1) {
            failed = inner.data[0] == '[' ? add_parts(reader, inner, 1, err)
                                          : add_reasoning(reader, &reader->thinking, inner);
        } else if (bc_json_member(iter.value, "text", &inner, NULL) == 1) {
            failed = thinking ? add_reasoning(reader, &reader->thinking, inner)
                              : add_text(reader, inner);
        }
        if (failed < 0) return failed;
    }
    return rc;
}

static int take_content(bc_chat_reader *reader, bc_json_span value, barchan_error *err)
{
    if (value.data[0] != '[') return add_text(reader, value);
    int rc = 0;
    if (reader->whole) rc = bc_buf_append(&reader->content_parts, value.data, value.len);
    return rc < 0 ? rc : add_parts(reader, value, 0, err);
}

static int take_member(bc_chat_reader *reader, const bc_json_iter *member, barchan_error *err)
{
    bc_json_span value = member->value;
    if (bc_json_iter_is(member, "role")) return 0;
    if (bc_json_iter_is(member, "content")) return take_content(reader, value, err);
    if (bc_json_iter_is(member, "reasoning")) {
        return add_reasoning(reader, &reader->reasoning[BC_CHAT_REASONING], value);
    }
    if (bc_json_iter_is(member, "reasoning_content")) {
        return add_reasoning(reader, &reader->reasoning[BC_CHAT_REASONING_CONTENT], value);
    }
    /* In its own way, not as a text; a null adds nothing. */
    reader->additions += member->type == BC_JSON_NULL ? 0 : 2;
    if (bc_json_iter_is(member, "tool_calls")) return bc_chat_take_calls(reader, value, err);
    if (bc_json_iter_is(member, "function_call")) return bc_chat_take_function(reader, value, err);
    if (bc_json_iter_is(member, "refusal")) return bc_text_append(&reader->refusal, value);
    if (bc_json_iter_is(member, "reasoning_details")) return bc_chat_take_details(reader, value);
    if (bc_json_iter_is(member, "extra_content") || bc_json_iter_is(member, "thought_signature")) {
        return bc_chat_keep(reader, &reader->extra, member);
    }
    return 0;
}

static int take_message(bc_chat_reader *reader, bc_json_span message, barchan_error *err)
{
    bc_json_iter iter;
    int rc = bc_turn_charge(&reader->total_bytes, message.len);
    if (rc == 0) rc = bc_json_iter_init(&iter, message, err);
    while (rc == 1 && (rc = bc_json_iter_next(&iter, err)) == 1) {
        rc = take_member(reader, &iter, err);
        if (rc < 0) break;
        rc = 1;
    }
    return bc_turn_failed(rc, err);
}

static int take_choice(bc_chat_reader *reader, const json_t *view, bc_json_span choice,
                       barchan_error *err)
{
    bc_json_span message;
    const json_t *error = json_object_get(view, "error");
    if (json_is_object(error) || json_is_string(error))
        return bc_provider_error(err, 200, error, reader->reply->secrets);
    /* Of several choices only the first is ours. */
    if (bc_json_get_integer(view, "index", 0) != 0) return 0;
    reader->begun = 1;
    int rc = bc_json_member(choice, "delta", &message, err);
    if (rc == 0 || (rc == 1 && message.data[0] != '{')) {
        rc = bc_json_member(choice, "message", &message, err);
    }
    if (rc == 1) rc = take_message(reader, message, err);
    if (rc == 0) take_finish(reader, view);
    return rc;
}

/* ---- chunks and bodies ---- */

/* The error shapes that come with HTTP 200; 0 when there is none. */
static int find_error(const bc_chat_reader *reader, const json_t *view, barchan_error *err)
{
    const json_t *error = json_object_get(view, "error");
    if (json_is_object(error) || json_is_string(error))
        return bc_provider_error(err, 200, error, reader->reply->secrets);
    const char *object = bc_json_get_string(view, "object", NULL);
    if (object != NULL && strcmp(object, "error") == 0)
        return bc_provider_error(err, 200, view, reader->reply->secrets);
    const char *message = bc_json_get_string(view, "error_message", NULL);
    if (message == NULL || *message == '\0') return 0;
    cleanup_json json_t *made = json_pack("{s:s, s:s?}", "message", message, "type",
                                          bc_json_get_string(view, "error_type", NULL));
    return bc_provider_error(err, 200, made, reader->reply->secrets);
}

static int take_object(bc_chat_reader *reader, const json_t *view, bc_json_span text,
                       barchan_error *err)
{
    bc_json_span list;
    bc_json_iter iter;
    int rc = find_error(reader, view, err);
    if (rc < 0) return rc;
    bc_reply_label(reader->reply->id, sizeof reader->reply->id, view, "id");
    bc_reply_label(reader->reply->model, sizeof reader->reply->model, view, "model");
    bc_chat_usage(reader->reply, bc_json_get_object(bc_json_get_object(view, "x_groq"), "usage"));
    bc_chat_usage(reader->reply, bc_json_get_object(view, "usage"));
    const json_t *choices = bc_json_get_array(view, "choices");
    rc = choices == NULL ? 0 : bc_json_member(text, "choices", &list, err);
    if (rc == 1) rc = bc_json_iter_init(&iter, list, err);
    for (size_t i = 0; rc == 1 && (rc = bc_json_iter_next(&iter, err)) == 1; i++) {
        rc = take_choice(reader, json_array_get(choices, i), iter.value, err);
        if (rc < 0) break;
        rc = 1;
    }
    return rc;
}

/* Another string where the event before had one, and nothing else. */
static int take_piece(bc_chat_reader *reader, bc_json_span value, barchan_error *err)
{
    int rc = bc_turn_charge(&reader->total_bytes, reader->added_beside + value.len);
    if (rc == 0) {
        rc = reader->added_to == &reader->content ? add_text(reader, value)
                                                  : add_reasoning(reader, reader->added_to, value);
    }
    return bc_turn_failed(rc, err);
}

static void learn_piece(bc_chat_reader *reader, bc_json_span data)
{
    if (reader->additions == 1 && !reader->ended)
        bc_piece_learn(&reader->piece, data, reader->added);
}

static int event(void *self, const char *name, bc_json_span data, barchan_error *err)
{
    bc_chat_reader *reader = self;
    cleanup_json json_t *view = NULL;
    bc_json_span text;
    if (reader->marked) return 0; /* nothing counts after the last word */
    if (data.len == 6 && memcmp(data.data, "[DONE]", 6) == 0) {
        reader->ended = reader->marked = 1;
        return 0;
    }
    if (bc_piece_match(&reader->piece, data, &text) && strcmp(name, "error") != 0) {
        return take_piece(reader, text, err);
    }
    bc_piece_forget(&reader->piece); /* what comes between may change what the same bytes mean */
    reader->additions = 0;
    reader->added.len = 0;
    size_t before = reader->total_bytes;
    int rc = bc_json_view(&view, data.data, data.len, 0, err);
    if (rc < 0) bc_error_context(err, "an event of the stream");
    if (rc < 0) return rc;
    if (strcmp(name, "error") == 0 && json_object_get(view, "error") == NULL) {
        return bc_provider_error(err, 200, view, reader->reply->secrets);
    }
    rc = take_object(reader, view, data, err);
    if (rc < 0) return rc;
    reader->added_beside = reader->total_bytes - before - reader->added.len;
    learn_piece(reader, data);
    return 0;
}

static bc_progress progress(const void *self)
{
    const bc_chat_reader *reader = self;
    if (reader->marked) return BC_PROGRESS_ENDED;
    return reader->begun && reader->ended ? BC_PROGRESS_COMPLETE : BC_PROGRESS_OPEN;
}

static int settle(bc_chat_reader *reader)
{
    bc_json_span fresh;
    bc_reply *reply = reader->reply;
    int rc = bc_text_settle(&reader->content, 1, &fresh);
    if (rc == 0) rc = bc_reply_text(reply, fresh);
    if (rc == 0) rc = bc_text_settle(&reader->refusal, 1, NULL);
    bc_text *thoughts[] = {&reader->reasoning[0], &reader->reasoning[1], &reader->thinking};
    for (int i = 0; i < 3 && rc == 0; i++) {
        rc = bc_text_settle(thoughts[i], 1, &fresh);
        if (rc == 0 && (i != 1 || bc_text_is_empty(thoughts[0]))) {
            rc = bc_reply_reasoning(reply, fresh);
        }
    }
    if (rc == 0 && !bc_text_is_empty(&reader->refusal)) {
        reply->stop = BC_STOP_REFUSAL;
        rc = bc_buf_append(&reply->refusal, bc_buf_data(&reader->refusal.plain),
                           reader->refusal.plain.len);
    }
    return rc;
}

static int end(void *self, barchan_error *err)
{
    bc_chat_reader *reader = self;
    bc_reply *reply = reader->reply;
    if (!reader->begun || !reader->ended) return bc_provider_incomplete(reader->begun, err);
    int rc = settle(reader);
    if (rc < 0) return bc_turn_failed(rc, err);
    int nothing = reply->text.len == 0 && reader->call_count == 0 && reply->refusal.len == 0;
    if (reply->stop == BC_STOP_NONE && nothing) {
        rc = bc_error_set(err, BARCHAN_EPROTOCOL,
                          "the answer is empty and does not say why "
                          "(finish_reason '%s')",
                          reply->raw_stop);
        if (err != NULL) err->retryable = 1;
        return rc;
    }
    /* A label that nobody knows: what is there decides. */
    if (reply->stop == BC_STOP_NONE) reply->stop = BC_STOP_END_TURN;
    rc = bc_chat_finish_calls(reader, err);
    if (rc == 0) rc = bc_reply_finish(reply, err);
    if (rc == 0) rc = bc_turn_failed(bc_chat_finish_details(reader), err);
    return rc < 0 ? rc : bc_chat_turn(reader, err);
}

static int body(void *self, bc_json_span text, barchan_error *err)
{
    bc_chat_reader *reader = self;
    cleanup_json json_t *view = NULL;
    int rc = bc_json_view(&view, text.data, text.len, 0, err);
    if (rc < 0) return rc;
    reader->whole = 1;
    rc = take_object(reader, view, text, err);
    if (rc < 0) return rc;
    if (!reader->begun) {
        return bc_error_set(err, BARCHAN_EPROTOCOL,
                            "the answer is no completion: it has no choices");
    }
    reader->ended = 1;
    return end(self, err);
}

const bc_provider bc_provider_openai = {
    .name = "openai",
    .default_base_url = "https://api.openai.com/v1",
    .endpoint = endpoint,
    .headers = bc_provider_bearer,
    .render = bc_openai_render,
    .reader_create = reader_create,
    .reader_destroy = reader_destroy,
    .event = event,
    .progress = progress,
    .end = end,
    .body = body,
    .request_id_header = "x-request-id",
};
