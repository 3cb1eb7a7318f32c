/* Content blocks: assembled from their deltas, and written back as the provider's own bytes. */
#include "anthropic.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int is_type(const bc_block *block, const char *type)
{
    return strcmp(block->type, type) == 0;
}

bc_block *bc_block_find(bc_anthropic_reader *reader, int64_t index)
{
    for (size_t i = reader->block_count; i-- > 0;) {
        if (reader->blocks[i].index == index) return &reader->blocks[i];
    }
    return NULL;
}

void bc_blocks_clear(bc_anthropic_reader *reader)
{
    for (size_t i = 0; i < reader->block_count; i++) {
        bc_block *block = &reader->blocks[i];
        bc_buf_clear(&block->start);
        bc_text_clear(&block->fields[0].text);
        bc_text_clear(&block->fields[1].text);
        bc_text_clear(&block->input);
        bc_buf_clear(&block->citations);
    }
    free(reader->blocks);
    reader->blocks = NULL;
    reader->block_count = reader->block_capacity = reader->total_bytes = 0;
}

static int add_block(bc_anthropic_reader *reader, int64_t index, bc_block **out, barchan_error *err)
{
    if (reader->block_count >= BC_MODEL_MAX_BLOCKS) {
        return bc_error_set(err, BARCHAN_ELIMIT, "the turn has more than %d content blocks",
                            BC_MODEL_MAX_BLOCKS);
    }
    if (reader->block_count == reader->block_capacity) {
        size_t capacity = reader->block_capacity * 2 + 4; /* most turns have fewer */
        bc_block *blocks = realloc(reader->blocks, capacity * sizeof *blocks);
        if (blocks == NULL) return bc_error_nomem(err);
        reader->blocks = blocks;
        reader->block_capacity = capacity;
    }
    bc_block *block = &reader->blocks[reader->block_count++];
    memset(block, 0, sizeof *block);
    block->index = index;
    bc_buf_init(&block->start, BC_MODEL_MAX_TURN_BYTES);
    bc_buf_init(&block->citations, BC_MODEL_MAX_TURN_BYTES);
    bc_text_init(&block->fields[0].text);
    bc_text_init(&block->fields[1].text);
    bc_text_init(&block->input);
    *out = block;
    return 0;
}

int bc_block_begin(bc_anthropic_reader *reader, int64_t index, bc_json_span start,
                   barchan_error *err)
{
    bc_block *block = NULL;
    int rc = add_block(reader, index, &block, err);
    if (rc < 0) return rc;
    bc_json_span value;
    bc_buf type;
    bc_buf_init(&type, sizeof block->type - 1);
    rc = bc_json_member(start, "type", &value, err);
    if (rc == 1) rc = bc_json_span_text(value, &type, NULL) < 0 ? 0 : 1;
    snprintf(block->type, sizeof block->type, "%s", bc_buf_data(&type));
    bc_buf_clear(&type);
    if (rc >= 0) rc = bc_turn_charge(&reader->total_bytes, start.len);
    if (rc == 0) rc = bc_buf_append(&block->start, start.data, start.len);
    if (rc < 0) return bc_turn_failed(rc, err);
    /* Text that stands in the start already is the first piece. */
    const char *first = is_type(block, "text")       ? "text"
                        : is_type(block, "thinking") ? "thinking"
                                                     : "";
    if (*first != '\0' && bc_json_member(start, first, &value, NULL) == 1) {
        rc = bc_block_add(block, first, value);
        if (rc == 0) rc = bc_block_show(reader, block, 0);
    }
    if (rc == 0 && is_type(block, "tool_use") && bc_json_member(start, "name", &value, NULL) == 1) {
        bc_buf name;
        bc_buf_init(&name, BC_MODEL_MAX_TURN_BYTES);
        rc = bc_json_span_text(value, &name, err);
        if (rc == 0)
            rc = bc_reply_announce(reader->reply, (bc_json_span){bc_buf_data(&name), name.len});
        bc_buf_clear(&name);
    }
    return bc_turn_failed(rc, err);
}

/* ---- the end of the turn ---- */

/* The input as it stands: the joined pieces when there are any, else what the start held. */
static int input_text(bc_block *block, bc_buf *out)
{
    bc_json_span value;
    bc_json_span start = {bc_buf_data(&block->start), block->start.len};
    if (block->input.plain.len > 0) {
        return bc_buf_append(out, bc_buf_data(&block->input.plain), block->input.plain.len);
    }
    if (bc_json_member(start, "input", &value, NULL) != 1) return 0;
    /* A few gateways send it as a string. */
    if (value.data[0] == '"') return bc_json_span_text(value, out, NULL);
    return bc_buf_append(out, value.data, value.len);
}

int bc_blocks_calls(bc_anthropic_reader *reader, barchan_error *err)
{
    for (size_t i = 0; i < reader->block_count; i++) {
        bc_block *block = &reader->blocks[i];
        if (!is_type(block, "tool_use")) continue;
        bc_call *call = NULL;
        int rc = bc_reply_add_call(reader->reply, &call, err);
        if (rc < 0) return rc;
        bc_json_span start = {bc_buf_data(&block->start), block->start.len}, value;
        rc = input_text(block, &call->arguments);
        if (rc == 0 && bc_json_member(start, "id", &value, NULL) == 1) {
            rc = bc_json_span_text(value, &call->id, err);
        }
        if (rc == 0 && bc_json_member(start, "name", &value, NULL) == 1) {
            rc = bc_json_span_text(value, &call->name, err);
        }
        if (rc < 0) return bc_turn_failed(rc, err);
    }
    return 0;
}

static int has_plain_name(const bc_call *call)
{
    return bc_tool_name_is_plain(bc_buf_data(&call->name), call->name.len, BC_MODEL_MAX_NAME_BYTES);
}

/* The member's new value, when the turn changed it. */
static int write_changed(bc_out *out, bc_block *block, const bc_call *call, const char *key)
{
    for (int i = 0; i < 2; i++) {
        if (block->fields[i].name == NULL || strcmp(block->fields[i].name, key) != 0) continue;
        bc_out_escaped(out, bc_text_escaped(&block->fields[i].text));
        return 1;
    }
    if (strcmp(key, "input") == 0 && call != NULL) {
        /* What is no object would be refused, whoever wrote it. */
        int good = call->error[0] == '\0' || bc_buf_data(&call->arguments)[0] == '{';
        if (good &&
            bc_json_validate(bc_buf_data(&call->arguments), call->arguments.len, NULL) == 0) {
            bc_out_raw(out, bc_buf_data(&call->arguments), call->arguments.len);
        } else {
            bc_out_word(out, "{}");
        }
        return 1;
    }
    if (strcmp(key, "input") == 0 && !bc_text_is_empty(&block->input)) {
        const bc_buf *text = &block->input.plain;
        int good = bc_json_validate(bc_buf_data(text), text->len, NULL) == 0;
        bc_out_raw(out, good ? bc_buf_data(text) : "{}", good ? text->len : 2);
        return 1;
    }
    if (strcmp(key, "name") == 0 && call != NULL && !has_plain_name(call)) {
        bc_out_tool_name(out, bc_buf_data(&call->name), call->name.len, BC_MODEL_MAX_NAME_BYTES);
        return 1;
    }
    if (strcmp(key, "id") == 0 && call != NULL && call->made_id) {
        bc_out_string(out, bc_buf_data(&call->id), call->id.len);
        return 1;
    }
    return 0;
}

static int member_is(const bc_json_iter *iter, const char *const *keys, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (keys[i] != NULL && bc_json_iter_is(iter, keys[i])) return (int)i + 1;
    }
    return 0;
}

static void write_citations(bc_out *out, const bc_block *block, bc_json_span before)
{
    bc_json_iter iter;
    bc_out_open(out, '[');
    int rc = bc_json_iter_init(&iter, before, NULL);
    while (rc == 1 && (rc = bc_json_iter_next(&iter, NULL)) == 1) {
        bc_out_raw(out, iter.value.data, iter.value.len);
    }
    bc_out_raw(out, bc_buf_data(&block->citations), block->citations.len);
    bc_out_close(out, ']');
}

/* A block that came whole goes back as it is, unless its call needs another id, name or input. */
static int is_as_it_came(const bc_block *block, const bc_call *call)
{
    bc_json_span input, start = {bc_buf_data(&block->start), block->start.len};
    if (block->touched) return 0;
    if (call == NULL) return 1;
    return !call->made_id && has_plain_name(call) &&
           bc_json_member(start, "input", &input, NULL) == 1 && input.data[0] == '{';
}

/* The start's own bytes, with the members replaced that deltas added to. */
static int write_block(bc_out *out, bc_block *block, const bc_call *call, barchan_error *err)
{
    const char *keys[] = {
        block->fields[0].name, block->fields[1].name, "input", "id", "name", "citations"};
    enum { COUNT = sizeof keys / sizeof *keys };
    int written[COUNT + 1] = {0};
    bc_json_iter iter;
    if (is_as_it_came(block, call)) {
        bc_out_raw(out, bc_buf_data(&block->start), block->start.len);
        return out->rc;
    }
    int rc =
        bc_json_iter_init(&iter, (bc_json_span){bc_buf_data(&block->start), block->start.len}, err);
    bc_out_open(out, '{');
    while (rc == 1 && (rc = bc_json_iter_next(&iter, err)) == 1) {
        int which = member_is(&iter, keys, COUNT);
        if (which > 0 && written[which]) continue; /* a repeated key */
        written[which] = 1;
        bc_out_raw_key(out, iter.key);
        if (which == COUNT && block->citations.len > 0) {
            write_citations(out, block, iter.value);
        } else if (which == 0 || which == COUNT ||
                   !write_changed(out, block, call, keys[which - 1])) {
            bc_out_raw(out, iter.value.data, iter.value.len);
        }
    }
    for (int i = 0; i < COUNT - 1 && rc == 0; i++) {
        int needed = keys[i] != NULL && !written[i + 1] && (i < 2 || call != NULL);
        if (!needed || (i == 3 && !call->made_id) || (i == 4 && has_plain_name(call))) continue;
        bc_out_key(out, keys[i]);
        write_changed(out, block, call, keys[i]);
    }
    if (rc == 0 && block->citations.len > 0 && !written[COUNT]) {
        bc_out_key(out, "citations");
        write_citations(out, block, (bc_json_span){"null", 4});
    }
    bc_out_close(out, '}');
    return rc < 0 ? rc : out->rc;
}

static int is_blank(const bc_buf *text)
{
    return strspn(bc_buf_data(text), " \t\r\n") == text->len;
}

/* Blocks that the server would refuse in a request: text that is nothing but white space, and the
 * thinking of a turn that was cut before its signature came. */
static int cannot_go_back(const bc_anthropic_reader *reader, bc_block *block)
{
    if (is_type(block, "text"))
        return bc_block_field(block, "text") == NULL ||
               is_blank(&bc_block_field(block, "text")->plain);
    int cut = reader->reply->stop == BC_STOP_MAX_TOKENS || reader->reply->stop == BC_STOP_REFUSAL ||
              reader->reply->stop == BC_STOP_CONTEXT_WINDOW;
    int last = block == &reader->blocks[reader->block_count - 1];
    if (!cut || !last || !is_type(block, "thinking")) return 0;
    bc_json_span value, start = {bc_buf_data(&block->start), block->start.len};
    if (bc_json_member(start, "signature", &value, NULL) == 1 && value.len > 2) return 0;
    const bc_text *signature = bc_block_field(block, "signature");
    return signature == NULL || bc_text_is_empty(signature);
}

int bc_blocks_turn(bc_anthropic_reader *reader, barchan_error *err)
{
    bc_out out = {.buf = &reader->reply->turn};
    size_t call_index = 0, kept = 0;
    bc_out_word(&out, "{\"role\":\"assistant\",\"content\":");
    bc_out_open(&out, '[');
    for (size_t i = 0; i < reader->block_count; i++) {
        bc_block *block = &reader->blocks[i];
        const bc_call *call = NULL;
        if (is_type(block, "tool_use")) call = &reader->reply->calls[call_index++];
        if (cannot_go_back(reader, block)) continue;
        int rc = write_block(&out, block, call, err);
        if (rc < 0) return bc_turn_failed(rc, err);
        kept++;
    }
    bc_out_close(&out, ']');
    bc_out_close(&out, '}');
    /* A turn without content cannot be sent; its neutral view is left out as well. */
    if (kept == 0) bc_buf_reset(&reader->reply->turn);
    return bc_turn_failed(out.rc, err);
}
