/*
 * Gemini: the parts of a turn. A signed part goes back exactly as it came, in its place; so does
 * every part that is not plain text. Unsigned text comes in pieces, which are joined.
 */
#include "gemini.h"

#include <string.h>
#include "base/cleanup.h"

int bc_gemini_add_part(bc_gemini_reader *reader, const char *text, size_t len, barchan_error *err)
{
    if (reader->part_count >= BC_MODEL_MAX_BLOCKS) {
        return bc_error_set(err, BARCHAN_ELIMIT, "the turn has more than %d parts",
                            BC_MODEL_MAX_BLOCKS);
    }
    int rc = reader->part_count > 0 ? bc_buf_append_char(&reader->parts, ',') : 0;
    reader->part_count++;
    return rc < 0 ? rc : bc_buf_append(&reader->parts, text, len);
}

static int show(bc_gemini_reader *reader, bc_json_span text, int is_thought)
{
    return is_thought ? bc_reply_reasoning(reader->reply, text)
                      : bc_reply_text(reader->reply, text);
}

/* ---- joined text ---- */

static int end_run(bc_gemini_reader *reader, barchan_error *err)
{
    bc_json_span fresh;
    if (bc_text_is_empty(&reader->run)) return 0;
    cleanup_buf bc_buf part;
    bc_buf_init(&part, 2 * (size_t)BC_MODEL_MAX_TURN_BYTES);
    int rc = bc_text_settle(&reader->run, 1, &fresh);
    if (rc == 0) rc = show(reader, fresh, reader->run_is_thought);
    bc_out out = {.buf = &part, .rc = rc};
    bc_out_open(&out, '{');
    bc_out_key(&out, "text");
    bc_out_escaped(&out, bc_text_escaped(&reader->run));
    if (reader->run_is_thought) bc_out_key(&out, "thought");
    if (reader->run_is_thought) bc_out_word(&out, "true");
    bc_out_close(&out, '}');
    if (out.rc == 0) out.rc = bc_gemini_add_part(reader, bc_buf_data(&part), part.len, err);
    bc_text_reset(&reader->run);
    return out.rc;
}

static int add_to_run(bc_gemini_reader *reader, bc_json_span text, int is_thought,
                      barchan_error *err)
{
    bc_json_span fresh;
    int rc = is_thought != reader->run_is_thought ? end_run(reader, err) : 0;
    reader->run_is_thought = is_thought;
    if (rc == 0) rc = bc_text_append(&reader->run, text);
    if (rc == 0) rc = bc_text_settle(&reader->run, 0, &fresh);
    return rc < 0 ? rc : show(reader, fresh, is_thought);
}

/* ---- one part ---- */

typedef struct look {
    bc_json_span text, call; /* empty: none */
    int is_thought, is_plain;
} look;

static look look_at(bc_json_span part)
{
    look l = {.is_plain = 1};
    bc_json_iter iter;
    int rc = bc_json_iter_init(&iter, part, NULL);
    while (rc == 1 && bc_json_iter_next(&iter, NULL) == 1) {
        if (bc_json_iter_is(&iter, "text") && iter.type == BC_JSON_STRING) {
            l.text = iter.value;
        } else if (bc_json_iter_is(&iter, "thought")) {
            l.is_thought = iter.type == BC_JSON_TRUE;
        } else {
            l.is_plain = 0;
        }
        if (bc_json_iter_is(&iter, "functionCall") && iter.type == BC_JSON_OBJECT_BEGIN) {
            l.call = iter.value;
        }
    }
    return l;
}

static int copy_string(bc_json_span object, const char *key, bc_buf *to)
{
    bc_json_span value;
    if (bc_json_member(object, key, &value, NULL) != 1) return 0;
    return bc_json_span_text(value, to, NULL);
}

static int add_call(bc_gemini_reader *reader, bc_json_span from, barchan_error *err)
{
    bc_call *call = NULL;
    bc_json_span args;
    int rc = bc_reply_add_call(reader->reply, &call, err);
    if (rc < 0) return rc;
    rc = copy_string(from, "id", &call->id);
    if (rc == 0) rc = copy_string(from, "name", &call->name);
    if (rc == 0 && bc_json_member(from, "args", &args, NULL) == 1) {
        rc = bc_buf_append(&call->arguments, args.data, args.len);
    }
    if (rc < 0) return bc_turn_failed(rc, err);
    return bc_reply_announce(reader->reply,
                             (bc_json_span){bc_buf_data(&call->name), call->name.len});
}

/* Whether the call is one that comes in pieces: Vertex, when it is asked for. */
static int is_piece(const bc_gemini_reader *reader, bc_json_span call)
{
    bc_json_span value;
    if (reader->partial.args != NULL) return bc_json_member(call, "name", &value, NULL) != 1;
    if (bc_json_member(call, "partialArgs", &value, NULL) == 1) return 1;
    return bc_json_member(call, "willContinue", &value, NULL) == 1 && value.len == 4;
}

static int take_part(bc_gemini_reader *reader, bc_json_span part, barchan_error *err)
{
    look l = look_at(part);
    int rc = bc_turn_charge(&reader->total_bytes, part.len);
    if (rc < 0) return rc;
    if (l.call.len > 0 && is_piece(reader, l.call)) {
        rc = end_run(reader, err);
        return rc < 0 ? rc : bc_gemini_take_piece(reader, part, l.call, err);
    }
    rc = bc_gemini_end_partial(reader, err);
    if (rc < 0) return rc;
    if (l.is_plain && l.text.len > 0) return add_to_run(reader, l.text, l.is_thought, err);
    rc = end_run(reader, err);
    if (rc == 0 && l.text.len > 2) {
        cleanup_buf bc_buf text;
        bc_buf_init(&text, 3 * (size_t)BC_MODEL_MAX_TURN_BYTES);
        rc = bc_json_span_text(l.text, &text, NULL);
        if (rc == 0) {
            rc = show(reader, (bc_json_span){bc_buf_data(&text), text.len}, l.is_thought);
        }
    }
    if (rc == 0) rc = bc_gemini_add_part(reader, part.data, part.len, err);
    return rc < 0 || l.call.len == 0 ? rc : add_call(reader, l.call, err);
}

int bc_gemini_take_parts(bc_gemini_reader *reader, bc_json_span parts, barchan_error *err)
{
    bc_json_iter iter;
    int rc = bc_json_iter_init(&iter, parts, err);
    while (rc == 1 && (rc = bc_json_iter_next(&iter, err)) == 1) {
        if (iter.type != BC_JSON_OBJECT_BEGIN) continue;
        rc = take_part(reader, iter.value, err);
        if (rc < 0) return bc_turn_failed(rc, err);
        rc = 1;
    }
    return rc;
}

int bc_gemini_finish_parts(bc_gemini_reader *reader, barchan_error *err)
{
    int rc = bc_gemini_end_partial(reader, err);
    return rc < 0 ? rc : bc_turn_failed(end_run(reader, err), err);
}

int bc_gemini_turn(bc_gemini_reader *reader, barchan_error *err)
{
    bc_out out = {.buf = &reader->reply->turn};
    bc_out_open(&out, '{');
    bc_out_key(&out, "content");
    bc_out_open(&out, '{');
    bc_out_member(&out, "role", "model");
    bc_out_key(&out, "parts");
    bc_out_open(&out, '[');
    if (reader->part_count > 0) {
        bc_out_raw(&out, bc_buf_data(&reader->parts), reader->parts.len);
    }
    bc_out_close(&out, ']');
    bc_out_close(&out, '}');
    bc_out_key(&out, "calls");
    bc_out_open(&out, '[');
    for (size_t i = 0; i < reader->reply->call_count; i++) {
        const bc_call *call = &reader->reply->calls[i];
        bc_out_open(&out, '{');
        bc_out_member(&out, "id", bc_buf_data(&call->id));
        bc_out_key(&out, "name");
        bc_out_string(&out, bc_buf_data(&call->name), call->name.len);
        bc_out_key(&out, "given");
        bc_out_word(&out, call->made_id ? "false" : "true");
        bc_out_close(&out, '}');
    }
    bc_out_close(&out, ']');
    bc_out_close(&out, '}');
    return bc_turn_failed(out.rc, err);
}
