/* What deltas add to content blocks. */
#include "anthropic.h"

#include <string.h>

bc_text *bc_block_field(bc_block *block, const char *name)
{
    for (int i = 0; i < 2; i++) {
        const char *have = block->fields[i].name;
        if (have != NULL && strcmp(have, name) == 0) return &block->fields[i].text;
    }
    return NULL;
}

int bc_block_show(bc_anthropic_reader *reader, bc_block *block, int final)
{
    bc_json_span fresh;
    bc_text *text = bc_block_field(block, block->type); /* the member has the type's name */
    int rc = text != NULL ? bc_text_settle(text, final, &fresh) : 0;
    if (text == NULL || rc < 0 || fresh.len == 0) return rc;
    if (strcmp(block->type, "text") == 0) return bc_reply_text(reader->reply, fresh);
    if (strcmp(block->type, "thinking") == 0) return bc_reply_reasoning(reader->reply, fresh);
    return 0;
}

int bc_block_add(bc_block *block, const char *name, bc_json_span piece)
{
    for (int i = 0; i < 2; i++) {
        if (block->fields[i].name == NULL) block->fields[i].name = name;
        if (strcmp(block->fields[i].name, name) == 0) {
            return bc_text_append(&block->fields[i].text, piece);
        }
    }
    return 0;
}

static int add_citation(bc_block *block, bc_json_span citation)
{
    int rc = block->citations.len > 0 ? bc_buf_append_char(&block->citations, ',') : 0;
    return rc < 0 ? rc : bc_buf_append(&block->citations, citation.data, citation.len);
}

static const char input_field[] = "partial_json";

static int add_text(bc_anthropic_reader *reader, bc_block *block, const char *name,
                    bc_json_span text)
{
    block->touched = 1;
    int rc = strcmp(name, input_field) == 0 ? bc_text_append(&block->input, text)
                                            : bc_block_add(block, name, text);
    return rc < 0 ? rc : bc_block_show(reader, block, 0);
}

int bc_block_piece(bc_anthropic_reader *reader, bc_json_span event, barchan_error *err)
{
    bc_json_span text;
    if (!bc_piece_match(&reader->piece, event, &text)) return 0;
    bc_block *block = bc_block_find(reader, reader->piece_index);
    if (block == NULL) return 0;
    int rc = bc_turn_charge(&reader->total_bytes, reader->piece_overhead + text.len);
    if (rc == 0) rc = add_text(reader, block, reader->piece_field, text);
    return rc < 0 ? bc_turn_failed(rc, err) : 1;
}

/* Of a delta with one text alone. */
static void learn_piece(bc_anthropic_reader *reader, int64_t index, const bc_json_wanted *members,
                        int count, bc_json_span delta, bc_json_span event)
{
    const bc_json_wanted *only = NULL;
    for (int i = 0; i < count; i++) {
        if (members[i].value.len == 0) continue;
        if (only != NULL || members[i].value.data[0] != '"') return;
        only = &members[i];
    }
    if (only == NULL || event.len == 0) return;
    bc_piece_learn(&reader->piece, event, only->value);
    reader->piece_index = index;
    reader->piece_field = only->key;
    reader->piece_overhead = delta.len - only->value.len;
}

int bc_block_delta(bc_anthropic_reader *reader, int64_t index, bc_json_span delta,
                   bc_json_span event, barchan_error *err)
{
    enum { TEXT, THINKING, SIGNATURE, CONTENT, ENCRYPTED, FIELDS, INPUT = FIELDS, CITATION, ALL };
    bc_json_wanted members[ALL] = {
        {.key = "text"},    {.key = "thinking"},          {.key = "signature"},
        {.key = "content"}, {.key = "encrypted_content"}, {.key = input_field},
        {.key = "citation"}};
    if (delta.data[0] != '{') return 0;
    bc_block *block = bc_block_find(reader, index);
    if (block == NULL) {
        return bc_error_set(err, BARCHAN_EPROTOCOL,
                            "a piece came for a content block that never began");
    }
    block->touched = 1;
    int rc = bc_turn_charge(&reader->total_bytes, delta.len);
    if (rc == 0) rc = bc_json_members(delta, members, ALL, err);
    /* A text goes to the field of its own name. */
    for (int i = 0; i < FIELDS && rc == 0; i++) {
        if (members[i].value.len > 0) rc = bc_block_add(block, members[i].key, members[i].value);
    }
    if (rc == 0) rc = bc_text_append(&block->input, members[INPUT].value);
    if (rc == 0 && members[CITATION].value.len > 0) {
        rc = add_citation(block, members[CITATION].value);
    }
    if (rc == 0) learn_piece(reader, index, members, ALL, delta, event);
    if (rc == 0) rc = bc_block_show(reader, block, 0);
    return bc_turn_failed(rc, err);
}

int bc_block_stop(bc_anthropic_reader *reader, bc_block *block)
{
    int rc = bc_text_settle(&block->input, 1, NULL);
    return rc < 0 ? rc : bc_block_show(reader, block, 1);
}
