/*
 * OpenRouter's reasoning_details: a list that must go back with the calls of the turn, because it
 * carries the signatures of the model behind. In a stream one element comes in many pieces, each an
 * element of its own; they are joined again.
 */
#include "openai_chat.h"

#include <stdio.h>
#include <string.h>

static const char *text_member(const char *type)
{
    if (strcmp(type, "reasoning.text") == 0) return "text";
    return strcmp(type, "reasoning.summary") == 0 ? "summary" : NULL;
}

static int flush(bc_chat_reader *reader)
{
    bc_chat_detail *open = &reader->detail;
    if (open->first.len == 0) return 0;
    bc_out out = {.buf = &reader->reasoning_details};
    bc_json_iter iter;
    const char *member = text_member(open->type);
    int signed_already = 0;
    int rc =
        bc_json_iter_init(&iter, (bc_json_span){bc_buf_data(&open->first), open->first.len}, NULL);
    bc_out_open(&out, '{');
    while (rc == 1 && bc_json_iter_next(&iter, NULL) == 1) {
        int is_text = member != NULL && bc_json_iter_is(&iter, member);
        int is_signature = open->signature.len > 0 && bc_json_iter_is(&iter, "signature");
        bc_out_raw_key(&out, iter.key);
        if (is_text && !bc_text_is_empty(&open->text)) {
            bc_out_escaped(&out, bc_text_escaped(&open->text));
        } else if (is_signature) {
            bc_out_raw(&out, bc_buf_data(&open->signature), open->signature.len);
        } else {
            bc_out_raw(&out, iter.value.data, iter.value.len);
        }
        signed_already |= is_signature;
    }
    if (open->signature.len > 0 && !signed_already) {
        bc_out_key(&out, "signature");
        bc_out_raw(&out, bc_buf_data(&open->signature), open->signature.len);
    }
    bc_out_close(&out, '}');
    bc_buf_reset(&open->first);
    bc_buf_reset(&open->signature);
    bc_text_reset(&open->text);
    return out.rc;
}

static int add_piece(bc_chat_detail *open, bc_json_span element)
{
    bc_json_span value;
    const char *member = text_member(open->type);
    int rc = 0;
    if (member != NULL && bc_json_member(element, member, &value, NULL) == 1) {
        rc = bc_text_append(&open->text, value);
    }
    if (rc == 0 && bc_json_member(element, "signature", &value, NULL) == 1 && value.len > 2 &&
        value.data[0] == '"') {
        bc_buf_reset(&open->signature);
        rc = bc_buf_append(&open->signature, value.data, value.len);
    }
    return rc;
}

static int take_element(bc_chat_reader *reader, bc_json_span element)
{
    bc_chat_detail *open = &reader->detail;
    cleanup_json json_t *view = NULL;
    if (bc_json_view(&view, element.data, element.len, 0, NULL) < 0) return 0;
    const char *type = bc_json_get_string(view, "type", NULL);
    if (type == NULL) type = "";
    int64_t index = bc_json_get_integer(view, "index", -1);
    /* In a whole answer the elements are as they should be. */
    int goes_on = !reader->whole && open->first.len > 0 && text_member(type) != NULL &&
                  strcmp(type, open->type) == 0 && index == open->index;
    if (goes_on) return add_piece(open, element);
    int rc = flush(reader);
    snprintf(open->type, sizeof open->type, "%s", type);
    open->index = index;
    if (rc == 0) rc = bc_buf_append(&open->first, element.data, element.len);
    return rc < 0 ? rc : add_piece(open, element);
}

int bc_chat_take_details(bc_chat_reader *reader, bc_json_span list)
{
    bc_json_iter iter;
    int rc = bc_json_iter_init(&iter, list, NULL);
    while (rc == 1 && bc_json_iter_next(&iter, NULL) == 1) {
        if (iter.type != BC_JSON_OBJECT_BEGIN) continue;
        int failed = take_element(reader, iter.value);
        if (failed < 0) return failed;
    }
    return 0;
}

int bc_chat_finish_details(bc_chat_reader *reader)
{
    return flush(reader);
}
