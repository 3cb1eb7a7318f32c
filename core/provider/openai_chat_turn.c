/* Chat Completions: the assistant message to echo, made of the server's own bytes where it takes
 * them back and repaired where it would not. */
#include "openai_chat.h"

#include <string.h>

static void put_escaped(bc_out *out, const char *key, const bc_text *text)
{
    bc_out_key(out, key);
    bc_out_escaped(out, bc_text_escaped(text));
}

static void put_kept(bc_out *out, const bc_buf *kept)
{
    if (kept->len > 0) bc_out_raw(out, bc_buf_data(kept) + 1, kept->len - 1);
}

/* null is right beside calls and refused without them. */
static void put_content(bc_out *out, const bc_chat_reader *reader)
{
    if (reader->content_parts.len > 0) {
        bc_out_key(out, "content");
        bc_out_raw(out, bc_buf_data(&reader->content_parts), reader->content_parts.len);
    } else if (bc_text_is_empty(&reader->content) && reader->call_count > 0) {
        bc_out_key(out, "content");
        bc_out_word(out, "null");
    } else {
        put_escaped(out, "content", &reader->content);
    }
}

/* Reasoning goes back only with tool calls: there DeepSeek demands it, elsewhere it refuses it. */
static void put_reasoning(bc_out *out, const bc_chat_reader *reader)
{
    static const char *const names[BC_CHAT_FIELDS] = {"reasoning", "reasoning_content"};
    if (reader->call_count == 0) return;
    for (int i = 0; i < BC_CHAT_FIELDS; i++) {
        if (!bc_text_is_empty(&reader->reasoning[i])) {
            put_escaped(out, names[i], &reader->reasoning[i]);
        }
    }
    if (reader->reasoning_details.len == 0) return;
    bc_out_key(out, "reasoning_details");
    bc_out_open(out, '[');
    bc_out_raw(out, bc_buf_data(&reader->reasoning_details), reader->reasoning_details.len);
    bc_out_close(out, ']');
}

/* Always a string, and never one that does not parse: strict servers refuse both. */
static void put_arguments(bc_out *out, const bc_chat_call *call, const bc_call *done)
{
    const char *text = bc_buf_data(&done->arguments);
    int is_object = text[0] == '{' && bc_json_validate(text, done->arguments.len, NULL) == 0;
    if (!is_object && done->error[0] == '\0') {
        /* White space before the object. */
        is_object = bc_json_validate(text, done->arguments.len, NULL) == 0;
    }
    if (!is_object) {
        bc_out_member(out, "arguments", "{}");
    } else if (call->object.len == 0 && !bc_text_is_empty(&call->arguments) &&
               call->arguments.plain.len == done->arguments.len &&
               memcmp(bc_buf_data(&call->arguments.plain), text, done->arguments.len) == 0) {
        put_escaped(out, "arguments", &call->arguments);
    } else {
        bc_out_key(out, "arguments");
        bc_out_string(out, text, done->arguments.len);
    }
}

static void put_call(bc_out *out, const bc_chat_call *call, const bc_call *done)
{
    bc_out_open(out, '{');
    if (done->made_id) {
        bc_out_member(out, "id", bc_buf_data(&done->id));
    } else {
        put_escaped(out, "id", &call->id);
    }
    bc_out_member(out, "type", "function");
    bc_out_key(out, "function");
    bc_out_open(out, '{');
    bc_out_key(out, "name");
    bc_out_tool_name(out, bc_buf_data(&done->name), done->name.len, BC_MODEL_MAX_ECHO_NAME_BYTES);
    put_arguments(out, call, done);
    bc_out_close(out, '}');
    put_kept(out, &call->extra);
    bc_out_close(out, '}');
}

int bc_chat_turn(bc_chat_reader *reader, barchan_error *err)
{
    bc_out out = {.buf = &reader->reply->turn};
    bc_out_open(&out, '{');
    bc_out_member(&out, "role", "assistant");
    put_content(&out, reader);
    if (!bc_text_is_empty(&reader->refusal)) put_escaped(&out, "refusal", &reader->refusal);
    put_reasoning(&out, reader);
    put_kept(&out, &reader->extra);
    if (reader->call_count > 0) {
        bc_out_key(&out, "tool_calls");
        bc_out_open(&out, '[');
        for (size_t i = 0; i < reader->call_count; i++) {
            put_call(&out, &reader->calls[i], &reader->reply->calls[i]);
        }
        bc_out_close(&out, ']');
    }
    bc_out_close(&out, '}');
    return bc_turn_failed(out.rc, err);
}
