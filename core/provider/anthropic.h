/* The halves of the Anthropic Messages adapter. Wire facts: platform.claude.com/docs, Messages API,
 * "Streaming", "Handling stop reasons", "Handle tool calls" (2026-08 to 2026-10). */
#ifndef BC_PROVIDER_ANTHROPIC_H
#define BC_PROVIDER_ANTHROPIC_H

#include "provider.h"
#include "text.h"

int bc_anthropic_render(const bc_model_info *model, bc_request *request, bc_buf *body,
                        barchan_error *err);

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
} bc_anthropic_reader;

/* anthropic_block.c */
/* Fills err for a buffer's failure. */
int bc_block_begin(bc_anthropic_reader *reader, int64_t index, bc_json_span start,
                   barchan_error *err);
int bc_block_delta(bc_anthropic_reader *reader, int64_t index, bc_json_span delta,
                   barchan_error *err);
/* Decodes what is left of it. */
int bc_block_stop(bc_anthropic_reader *reader, bc_block *block);
bc_block *bc_block_find(bc_anthropic_reader *reader, int64_t index);
void bc_blocks_clear(bc_anthropic_reader *reader);
/* Makes the reply's calls, and after bc_reply_finish the turn to echo. */
int bc_blocks_calls(bc_anthropic_reader *reader, barchan_error *err);
int bc_blocks_turn(bc_anthropic_reader *reader, barchan_error *err);

#endif
