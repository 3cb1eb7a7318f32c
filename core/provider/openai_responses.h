/* The parts of the OpenAI Responses adapter. */
#ifndef BC_PROVIDER_OPENAI_RESPONSES_H
#define BC_PROVIDER_OPENAI_RESPONSES_H

#include "provider.h"
#include "text.h"

int bc_responses_render(const bc_model_info *model, bc_request *request, bc_buf *body,
                        barchan_error *err);

/* An output item: a message, a thought, a call, or something that only goes back. */
typedef struct bc_response_item {
    int64_t index; /* its place in the output */
    bc_buf raw;    /* its own bytes, once it is done; empty: it never was */
    bc_text text;  /* of a message, as it was shown */
    bc_text thought;
    int announced;
    int has_call; /* it is a call: this one of the reply */
    size_t call;
} bc_response_item;

typedef struct bc_responses_reader {
    bc_reply *reply;
    bc_response_item *items; /* by index */
    size_t item_count;
    size_t total_bytes;
    int begun;    /* something of the response was seen */
    int terminal; /* its last word was */
} bc_responses_reader;

/* openai_responses_items.c */
/* The item at this place, made when it is new. Others' places in memory change with it. */
int bc_response_item_at(bc_responses_reader *reader, int64_t index, bc_response_item **out,
                        barchan_error *err);
/* The item is done: keeps its bytes. */
int bc_response_item_done(bc_responses_reader *reader, int64_t index, bc_json_span item,
                          barchan_error *err);
/* A list of whole items, the output of the last word. It replaces what was collected when it holds
 * more: some servers leave it empty, or short. */
int bc_response_take_output(bc_responses_reader *reader, bc_json_span list, barchan_error *err);
/* Shows what was not shown yet, and makes the calls and the refusal of the items. */
int bc_response_finish_items(bc_responses_reader *reader, barchan_error *err);
void bc_response_clear_items(bc_responses_reader *reader);
/* Shows that a call has begun, once. */
int bc_response_announce(bc_responses_reader *reader, bc_response_item *item, const char *name);

/* openai_responses_turn.c: {"output":[…]}, the items to send back. */
int bc_responses_turn(bc_responses_reader *reader, barchan_error *err);

#endif
