/*
 * Responses: the output items as they go back. Nothing is kept on the server (store: false), so all
 * of them go, in order, as its own bytes, but for what it would refuse:
 *  - ids of items: it would look them up, or check them against each other;
 *  - a thought that only its id stands for;
 *  - an id of a call that is repeated or missing, a name or arguments that are none.
 */
#include "openai_responses.h"

#include <string.h>

/* A thought goes back encrypted, or in clear where the server gives it so. */
static int can_go_back(const json_t *view, const char *type)
{
    if (strcmp(type, "reasoning") != 0) return 1;
    const char *encrypted = bc_json_get_string(view, "encrypted_content", NULL);
    return encrypted != NULL || json_array_size(bc_json_get_array(view, "content")) > 0;
}

static int has_own_id(const char *type)
{
    static const char *const known[] = {"message", "reasoning", "function_call",
                                        "custom_tool_call"};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcmp(known[i], type) == 0) return 1;
    }
    return 0;
}

static int is_object(const bc_buf *arguments)
{
    const char *text = bc_buf_data(arguments);
    return text[strspn(text, " \t\r\n")] == '{' &&
           bc_json_validate(text, arguments->len, NULL) == 0;
}

/* Writes a member of a call anew when its own bytes cannot go back: 1 when it did. */
static int put_repaired(bc_out *out, const bc_json_iter *member, const bc_call *call)
{
    if (call->made_id && bc_json_iter_is(member, "call_id")) return 1; /* written at the end */
    if (bc_json_iter_is(member, "name") &&
        !bc_tool_name_is_plain(bc_buf_data(&call->name), call->name.len,
                               BC_MODEL_MAX_ECHO_NAME_BYTES)) {
        bc_out_key(out, "name");
        bc_out_tool_name(out, bc_buf_data(&call->name), call->name.len,
                         BC_MODEL_MAX_ECHO_NAME_BYTES);
        return 1;
    }
    if (bc_json_iter_is(member, "arguments") && !is_object(&call->arguments)) {
        bc_out_member(out, "arguments", "{}");
        return 1;
    }
    return 0;
}

static int put_item(bc_out *out, const bc_response_item *item, const bc_call *call)
{
    bc_json_iter iter;
    cleanup_json json_t *view = NULL;
    bc_json_span text = {bc_buf_data(&item->raw), item->raw.len};
    if (bc_json_view(&view, text.data, text.len, 0, NULL) < 0) return 0;
    const char *type = bc_json_get_string(view, "type", NULL);
    if (type == NULL || !can_go_back(view, type)) return 0;
    int rc = bc_json_iter_init(&iter, text, NULL);
    bc_out_open(out, '{');
    while (rc == 1 && bc_json_iter_next(&iter, NULL) == 1) {
        if (has_own_id(type) && bc_json_iter_is(&iter, "id")) continue;
        if (call != NULL && put_repaired(out, &iter, call)) continue;
        bc_out_raw_key(out, iter.key);
        bc_out_raw(out, iter.value.data, iter.value.len);
    }
    if (call != NULL && call->made_id) bc_out_member(out, "call_id", bc_buf_data(&call->id));
    bc_out_close(out, '}');
    return out->rc;
}

int bc_responses_turn(bc_responses_reader *reader, barchan_error *err)
{
    bc_out out = {.buf = &reader->reply->turn};
    bc_out_open(&out, '{');
    bc_out_key(&out, "output");
    bc_out_open(&out, '[');
    for (size_t i = 0; i < reader->item_count; i++) {
        const bc_response_item *item = &reader->items[i];
        const bc_call *call = item->has_call ? &reader->reply->calls[item->call] : NULL;
        if (item->raw.len > 0) put_item(&out, item, call);
    }
    bc_out_close(&out, ']');
    bc_out_close(&out, '}');
    return bc_turn_failed(out.rc, err);
}
