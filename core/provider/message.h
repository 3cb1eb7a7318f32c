/*
 * The neutral request of barchan/model.h: parsed, checked, and ready for an adapter to render.
 *
 * Everything borrows from the request's text and its view, which live as long as the request.
 */
#ifndef BC_PROVIDER_MESSAGE_H
#define BC_PROVIDER_MESSAGE_H

#include "base/json_view.h"
#include "json_out.h"
#include "reply.h"

typedef enum bc_role { BC_ROLE_USER = 1, BC_ROLE_ASSISTANT, BC_ROLE_TOOL } bc_role;

typedef struct bc_message {
    bc_role role;
    const json_t *view;
    bc_json_span text; /* its own bytes */
    size_t place;      /* how much of the body stood before it; set by bc_body_message */
} bc_message;

typedef struct bc_tool {
    const char *name, *description; /* the description may be NULL, and hold NUL bytes */
    size_t description_len;
    bc_json_span parameters; /* JSON text of an object, as it was written */
} bc_tool;

typedef enum bc_choice {
    BC_CHOICE_UNSET = 0,
    BC_CHOICE_AUTO,
    BC_CHOICE_ANY,
    BC_CHOICE_NONE,
    BC_CHOICE_NAMED
} bc_choice;

/* Where the messages stand in a body. */
typedef struct bc_rendering {
    size_t begin, end;     /* 0: they are not there */
    size_t mark, mark_len; /* what stands among them for this request alone */
} bc_rendering;

typedef struct bc_request {
    json_t *view;
    bc_json_span text;
    const char *system; /* NULL: none; may hold NUL bytes */
    size_t system_len;
    bc_message *messages;
    size_t message_count;
    bc_tool *tools;
    size_t tool_count;
    bc_choice choice;
    const char *choice_name;
    int parallel;             /* 1, 0, -1 unset */
    int64_t max_tokens;       /* 0: unset */
    bc_json_span temperature; /* as written; empty: unset */
    const json_t *stop;       /* array of strings; NULL: unset */
    int stream;
    const char *effort;  /* NULL: unset; one of the words of barchan/model.h */
    bc_json_span schema; /* as written; empty: none */
    int cache;
    bc_json_span extra; /* empty: none */

    /* Of a conversation whose beginning is known (history.h): the messages before `messages`. */
    bc_json_span settled; /* as they went out, with commas between */
    size_t settled_count;
    int settled_is_turn; /* the last of them is of the assistant */
    bc_rendering rendering;
    struct bc_conversation *known;
    size_t known_ends, known_bytes; /* how much of it holds */
    bc_json_span whole;             /* the text with all messages */
    char *own_text;                 /* `text`; NULL: that is the caller's */
    size_t cut_bytes;               /* what it lacks */
} bc_request;

/* `text` must outlive the request. Fails with BARCHAN_EINVAL and the place ("messages[2]: …"),
 * also when calls and results do not pair. */
int bc_request_parse(bc_request *request, const char *text, size_t len, barchan_error *err);
void bc_request_clear(bc_request *request);
/* What every request must pass before it is sent: exactly one tool message answers each call of
 * the assistant turn right before it, and no tool message stands elsewhere. */
int bc_request_check_pairing(const bc_request *request, barchan_error *err);
/* Parses a list of neutral tools. The caller frees `*tools`. */
int bc_tools_parse(bc_json_span text, const json_t *view, bc_tool **tools, size_t *count,
                   barchan_error *err);

/* ---- for the adapters ---- */

/* Appends the turn to echo and returns 1 when the message may go back verbatim: it came from this
 * origin and its view is unedited. Otherwise 0. */
int bc_message_raw(const bc_message *message, const bc_origin *origin, bc_buf *turn,
                   barchan_error *err);

/* The same, into a body: 1 when it was written. */
int bc_message_splice(const bc_message *message, const bc_origin *origin, bc_out *out,
                      barchan_error *err);
/* Its calls, runnable or not. */
size_t bc_message_call_count(const bc_message *message);

/* A call of an assistant message's neutral view, runnable or not. */
typedef struct bc_past_call {
    const char *id, *name;
    bc_json_span arguments; /* JSON text of an object, "{}" for those that could not be run */
} bc_past_call;

typedef int (*bc_past_call_fn)(const bc_past_call *call, void *ud, barchan_error *err);
int bc_message_each_call(const bc_message *message, bc_past_call_fn fn, void *ud,
                         barchan_error *err);

/* Content is a string or a list of parts; a string is shown as one text part. */
typedef struct bc_part {
    const char *text; /* a text part; otherwise NULL and an image: */
    size_t text_len;
    const char *media_type, *data;
} bc_part;

size_t bc_message_part_count(const bc_message *message);
bc_part bc_message_part(const bc_message *message, size_t index);
int bc_message_is_error(const bc_message *message);
/* All text parts joined by newlines. */
int bc_message_text(const bc_message *message, bc_buf *out);

#endif
