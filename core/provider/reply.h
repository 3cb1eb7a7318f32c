/*
 * A model's turn while it is read, whatever the provider: what the adapters fill, and the rules
 * that decide, once for all of them, which calls may be run and how the turn ended.
 */
#ifndef BC_PROVIDER_REPLY_H
#define BC_PROVIDER_REPLY_H

#include <barchan/model.h>
#include "base/json_view.h"
#include "secret.h"

typedef enum bc_stop {
    BC_STOP_NONE = 0, /* not told, or a label that nobody knows */
    BC_STOP_END_TURN,
    BC_STOP_TOOL_USE,
    BC_STOP_MAX_TOKENS,
    BC_STOP_STOP_SEQUENCE,
    BC_STOP_REFUSAL,
    BC_STOP_CONTENT_FILTER,
    BC_STOP_PAUSE_TURN,
    BC_STOP_CONTEXT_WINDOW,
    BC_STOP_ERROR
} bc_stop;

/* "end_turn", … Static. */
const char *bc_stop_name(bc_stop stop);

typedef struct bc_call {
    bc_buf id; /* empty: the provider gave none; bc_reply_finish makes one */
    bc_buf name;
    bc_buf arguments; /* JSON text as the model wrote it; of a runnable call an object */
    char error[160];  /* why it may not be run; "" when it may */
    int made_id;      /* the id is ours */
} bc_call;

/* Counts of tokens, -1 when not told. `input` excludes the cached ones. */
typedef struct bc_usage {
    int64_t input, cache_read, cache_write, output, reasoning;
} bc_usage;

/* A negative return ends the reading: the completion was ended inside the callback. */
typedef int (*bc_delta_fn)(barchan_delta_kind kind, bc_json_span data, void *ud);

typedef struct bc_reply {
    bc_delta_fn on_delta; /* may be NULL */
    void *ud;
    const bc_secrets *secrets; /* what errors must not quote; may be NULL */
    const char *id_seed;       /* of ids that are made; "" or NULL: by chance; borrowed */
    int shown;                 /* a delta was given since the turn began */

    bc_buf text, reasoning, refusal;
    bc_call *calls;
    size_t call_count;
    bc_stop stop;
    char raw_stop[64];
    int has_raw_stop;
    bc_usage usage;
    char model[128], id[128], request_id[96];
    bc_buf turn; /* the message to echo, as the adapter made it; empty: none */
} bc_reply;

void bc_reply_init(bc_reply *reply, bc_delta_fn on_delta, void *ud);
void bc_reply_clear(bc_reply *reply);
/* Forgets the turn; says so to who was shown a part of it. */
int bc_reply_restart(bc_reply *reply);

/* Appends to `text` or `reasoning` and shows it. */
int bc_reply_text(bc_reply *reply, bc_json_span piece);
int bc_reply_reasoning(bc_reply *reply, bc_json_span piece);
/* Shows that a call has begun. */
int bc_reply_announce(bc_reply *reply, bc_json_span name);
/* A new, empty call. */
int bc_reply_add_call(bc_reply *reply, bc_call **out, barchan_error *err);
/* A reason to stop and the provider's label for it. It may be told more than once: a later one does
 * not lift a stricter one, and an unknown or empty label says nothing once there is a known one. */
void bc_reply_take_stop(bc_reply *reply, bc_stop stop, const char *label);
/* A count of tokens, at most BC_MODEL_MAX_COUNT; -1 when it is no number. */
int64_t bc_reply_count(const json_t *usage, const char *key);
/* Copies a label, cut to its room; what has none stays. */
void bc_reply_label(char *to, size_t size, const json_t *view, const char *key);

/* The provider's turn is complete: checks the calls, gives missing and repeated ids a new one and
 * settles the stop reason. */
int bc_reply_finish(bc_reply *reply, barchan_error *err);

/* Counts what a reader keeps of a turn; BARCHAN_ELIMIT once that is too much. */
int bc_turn_charge(size_t *total, size_t len);
/* Gives the words for a failure that came without: no memory, or a turn that holds too much. */
int bc_turn_failed(int rc, barchan_error *err);

/* Where the turn came from, for `raw`. */
typedef struct bc_origin {
    const char *provider, *model, *base_url;
} bc_origin;

/* The reply object of barchan/model.h. */
int bc_reply_render(const bc_reply *reply, const bc_origin *origin, bc_buf *out,
                    barchan_error *err);

/* A digest of what a script can edit in an assistant message: text, calls, invalid calls. The same
 * before and after a trip through another JSON implementation. */
enum { BC_DIGEST_BYTES = 17 };
int bc_view_digest(const json_t *message, char digest[BC_DIGEST_BYTES]);
/* A 9-character id (Mistral takes no other) that depends on the text alone. */
enum { BC_MADE_ID_BYTES = 10 };
void bc_make_id(const char *text, size_t len, uint64_t salt, char id[BC_MADE_ID_BYTES]);

#endif
