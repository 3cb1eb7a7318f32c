/* The halves of the OpenAI Chat Completions adapter, which also talks to every compatible server.
 * The quirks it reads through are listed by number in README.md. */
#ifndef BC_PROVIDER_OPENAI_CHAT_H
#define BC_PROVIDER_OPENAI_CHAT_H

#include "piece.h"
#include "provider.h"
#include "text.h"

int bc_openai_render(const bc_model_info *model, bc_request *request, bc_buf *body,
                     barchan_error *err);

/* A tool call while it arrives. */
typedef struct bc_chat_call {
    int64_t index; /* the server's, -1: it gave none */
    bc_text id, name, arguments;
    bc_buf object; /* arguments that came as an object, their own bytes */
    bc_buf extra;  /* members that we do not know, see bc_chat_keep */
    int announced;
    int had_arguments; /* an entry of it had the member, filled or not */
    size_t list;       /* the list that its last entry stood in */
} bc_chat_call;

/* An element of reasoning_details while its pieces arrive. */
typedef struct bc_chat_detail {
    char type[48];
    int64_t index;
    bc_buf first; /* the first piece, its own bytes; empty: none is open */
    bc_text text;
    bc_buf signature; /* a JSON string */
} bc_chat_detail;

enum { BC_CHAT_REASONING, BC_CHAT_REASONING_CONTENT, BC_CHAT_FIELDS };

typedef struct bc_chat_reader {
    bc_reply *reply;
    bc_text content, refusal;
    bc_text reasoning[BC_CHAT_FIELDS]; /* by the name it came under */
    bc_text thinking;                  /* parts of a content list (Mistral) */
    bc_buf content_parts;              /* a whole answer's content list, its own bytes */
    bc_buf reasoning_details;          /* elements, with commas (OpenRouter) */
    bc_chat_detail detail;             /* the one that is not among them yet */
    bc_buf extra;                      /* members of the message that must go back (Gemini) */
    bc_chat_call *calls;
    size_t lists;     /* of tool calls that were seen; counts from 1 */
    int has_function; /* the calls are of the old single form */
    size_t call_count;
    size_t total_bytes, looked_at;
    int begun;  /* a choice was seen */
    int ended;  /* a reason to stop or the end marker was */
    int marked; /* the end marker was */
    int whole;  /* one body, no stream */
    /* What an event added. One string alone, and the events after it may be of one pattern. */
    int additions;
    bc_json_span added;
    bc_text *added_to;
    size_t added_beside; /* bytes of the message that are not the string's */
    bc_piece piece;
} bc_chat_reader;

/* openai_chat_calls.c */
/* The entries of one "tool_calls" list; the rules for index, id and name are there. */
int bc_chat_take_calls(bc_chat_reader *reader, bc_json_span list, barchan_error *err);
/* The old single "function_call". */
int bc_chat_take_function(bc_chat_reader *reader, bc_json_span function, barchan_error *err);
/* Keeps a member's own bytes, once per key, to go back with the turn: `kept` is an object that is
 * not closed. */
int bc_chat_keep(bc_chat_reader *reader, bc_buf *kept, const bc_json_iter *member);
int bc_chat_finish_calls(bc_chat_reader *reader, barchan_error *err);
void bc_chat_clear_calls(bc_chat_reader *reader);
/* openai_chat_details.c */
int bc_chat_take_details(bc_chat_reader *reader, bc_json_span list);
int bc_chat_finish_details(bc_chat_reader *reader);
/* openai_chat_labels.c: BC_STOP_NONE for a label that nobody knows. */
bc_stop bc_chat_stop(const char *label);
void bc_chat_usage(bc_reply *reply, const json_t *usage);
/* openai_chat_turn.c: the message to echo. */
int bc_chat_turn(bc_chat_reader *reader, barchan_error *err);

#endif
