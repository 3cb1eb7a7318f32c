/* The halves of the Anthropic Messages adapter. Wire facts: platform.claude.com/docs, Messages API,
 * "Streaming", "Handling stop reasons", "Handle tool calls" (2026-08 to 2026-10). */
#ifndef BC_PROVIDER_ANTHROPIC_H
#define BC_PROVIDER_ANTHROPIC_H

#include "piece.h"
#include "provider.h"
#include "text.h"

int bc_anthropic_render(const bc_model_info *model, bc_request *request, bc_buf *body,
                        barchan_error *err);

/* anthropic_mixed.c: of a turn that goes back as it came. 1, 0 or a failure. */
int bc_anthropic_is_mixed(const bc_message *message, barchan_error *err);

/* One content block while it arrives. */
typedef struct bc_block {
    int64_t index;
    bc_buf start; /* the block of content_block_start, its own bytes */
    char type[48];
    int touched; /* a delta came */
    /* What deltas add to members of the block: the text of `name`, escaped as it came. */
    struct {
        const char *name;
        bc_text text;
    } fields[2];
    bc_text input;    /* tool input, a JSON text in pieces */
    bc_buf citations; /* the elements that came as deltas, with commas */
} bc_block;

typedef struct bc_anthropic_reader {
    bc_reply *reply;
    bc_block *blocks;
    size_t block_count, block_capacity;
    size_t total_bytes;
    int begun, complete;
    /* The pattern of the deltas that add to one field of one block. */
    bc_piece piece;
    int64_t piece_index;
    const char *piece_field;
    size_t piece_overhead; /* of the delta, beside its text */
} bc_anthropic_reader;

/* anthropic_delta.c */
bc_text *bc_block_field(bc_block *block, const char *name);
/* Appends a piece to the field of this name, which the block gets when it has room. */
int bc_block_add(bc_block *block, const char *name, bc_json_span piece);
/* Shows what a text or thinking block has gained. */
int bc_block_show(bc_anthropic_reader *reader, bc_block *block, int final);
/* `event` is the whole of it when that says what it is, else empty. */
int bc_block_delta(bc_anthropic_reader *reader, int64_t index, bc_json_span delta,
                   bc_json_span event, barchan_error *err);
/* The same for an event of the pattern of those before. 1, 0 when it is none, or a failure. */
int bc_block_piece(bc_anthropic_reader *reader, bc_json_span event, barchan_error *err);
/* Decodes what is left of it. */
int bc_block_stop(bc_anthropic_reader *reader, bc_block *block);

/* anthropic_block.c */
int bc_block_begin(bc_anthropic_reader *reader, int64_t index, bc_json_span start,
                   barchan_error *err);
bc_block *bc_block_find(bc_anthropic_reader *reader, int64_t index);
void bc_blocks_clear(bc_anthropic_reader *reader);
/* Makes the reply's calls, and after bc_reply_finish the turn to echo. */
int bc_blocks_calls(bc_anthropic_reader *reader, barchan_error *err);
int bc_blocks_turn(bc_anthropic_reader *reader, barchan_error *err);

#endif
