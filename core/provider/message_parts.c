/* What an adapter asks of one message of a parsed request. */
#include "message.h"

#include <string.h>

static int same(const json_t *raw, const char *key, const char *want)
{
    const char *have = bc_json_get_string(raw, key, NULL);
    return have != NULL && strcmp(have, want) == 0;
}

int bc_message_raw(const bc_message *message, const bc_origin *origin, bc_buf *turn,
                   barchan_error *err)
{
    const json_t *raw = bc_json_get_object(message->view, "raw");
    if (!same(raw, "provider", origin->provider) || !same(raw, "model", origin->model) ||
        !same(raw, "base_url", origin->base_url))
        return 0;
    char digest[BC_DIGEST_BYTES];
    if (bc_view_digest(message->view, digest) < 0) return bc_error_nomem(err);
    size_t len;
    const char *text = bc_json_get_string(raw, "turn", &len);
    if (!same(raw, "view", digest) || text == NULL) return 0;
    /* It is spliced into a body: what is no object would break more than its own place. */
    if (len == 0 || text[0] != '{' || bc_json_validate(text, len, NULL) < 0) return 0;
    int rc = bc_buf_append(turn, text, len);
    return rc < 0 ? bc_error_set(err, rc, "the request is too large") : 1;
}

int bc_message_splice(const bc_message *message, const bc_origin *origin, bc_out *out,
                      barchan_error *err)
{
    cleanup_buf bc_buf turn;
    bc_buf_init(&turn, 2 * (size_t)BC_MODEL_MAX_TURN_BYTES);
    int rc = bc_message_raw(message, origin, &turn, err);
    if (rc == 1) bc_out_raw(out, bc_buf_data(&turn), turn.len);
    return rc;
}

size_t bc_message_call_count(const bc_message *message)
{
    return json_array_size(json_object_get(message->view, "tool_calls")) +
           json_array_size(json_object_get(message->view, "invalid_tool_calls"));
}

static int give_calls(const bc_message *message, const char *key, bc_past_call_fn fn, void *ud,
                      barchan_error *err)
{
    bc_json_span list;
    bc_json_iter iter;
    const json_t *views = bc_json_get_array(message->view, key);
    int rc = views == NULL ? 0 : bc_json_member(message->text, key, &list, err);
    if (rc == 1) rc = bc_json_iter_init(&iter, list, err);
    for (size_t i = 0; rc == 1; i++) {
        rc = bc_json_iter_next(&iter, err);
        if (rc != 1) break;
        const json_t *view = json_array_get(views, i);
        bc_past_call call = {.id = bc_json_get_string(view, "id", NULL),
                             .name = bc_json_get_string(view, "name", NULL),
                             .arguments = {"{}", 2}};
        if (bc_json_get_object(view, "arguments") != NULL) {
            rc = bc_json_member(iter.value, "arguments", &call.arguments, err);
        }
        if (rc >= 0) rc = fn(&call, ud, err);
        if (rc >= 0) rc = 1;
    }
    return rc;
}

int bc_message_each_call(const bc_message *message, bc_past_call_fn fn, void *ud,
                         barchan_error *err)
{
    int rc = give_calls(message, "tool_calls", fn, ud, err);
    return rc < 0 ? rc : give_calls(message, "invalid_tool_calls", fn, ud, err);
}

size_t bc_message_part_count(const bc_message *message)
{
    const json_t *content = json_object_get(message->view, "content");
    if (json_is_string(content)) return json_string_length(content) > 0;
    return json_array_size(content);
}

bc_part bc_message_part(const bc_message *message, size_t index)
{
    const json_t *content = json_object_get(message->view, "content");
    bc_part part = {0};
    if (json_is_string(content)) {
        part.text = json_string_value(content);
        part.text_len = json_string_length(content);
        return part;
    }
    const json_t *view = json_array_get(content, index);
    if (same(view, "type", "text")) {
        part.text = bc_json_get_string(view, "text", &part.text_len);
    } else {
        part.media_type = bc_json_get_string(view, "media_type", NULL);
        part.data = bc_json_get_string(view, "data", NULL);
    }
    return part;
}

int bc_message_is_error(const bc_message *message)
{
    return bc_json_get_boolean(message->view, "is_error", 0) == 1;
}

int bc_message_text(const bc_message *message, bc_buf *out)
{
    size_t count = bc_message_part_count(message), texts = 0;
    int rc = 0;
    for (size_t i = 0; i < count && rc == 0; i++) {
        bc_part part = bc_message_part(message, i);
        if (part.text == NULL) continue;
        if (texts++ > 0) rc = bc_buf_append_char(out, '\n');
        if (rc == 0) rc = bc_buf_append(out, part.text, part.text_len);
    }
    return rc;
}
