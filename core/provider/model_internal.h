/* Shared by model.c (the handle), completion.c (one completion's life) and wire.c (what an answer
 * over HTTP goes through). */
#ifndef BC_PROVIDER_MODEL_INTERNAL_H
#define BC_PROVIDER_MODEL_INTERNAL_H

#include <barchan/model.h>
#include "exchange.h"
#include "history.h"
#include "provider.h"
#include "replay.h"
#include "sse.h"

struct barchan_model {
    bc_resident resident;
    barchan_runtime *rt;
    const bc_provider *provider; /* NULL: replay */
    bc_replay *replay;
    bc_model_info info; /* its strings are owned */
    char **headers;
    bc_secrets secrets;
    bc_exchange_means means;
    bc_history history;
    bc_buf spare; /* memory of a body that was sent, for the next */
    int allow_plain_http, connect_timeout_ms, idle_timeout_ms;
    int64_t timeout_ms;
    int max_retries, max_retry_wait_ms;
    int references; /* the handle's and one per completion */
    int destroyed;  /* its completions are being ended; none begins */
    bc_defer free_later;
    barchan_completion *completions;
};

/* What the answer turned out to be, by its status and its first byte. */
typedef enum bc_answer {
    BC_ANSWER_UNKNOWN = 0,
    BC_ANSWER_STREAM,
    BC_ANSWER_JSON,
    BC_ANSWER_ERROR
} bc_answer;

/* What is sent, and sent again. */
typedef struct bc_wire_request {
    bc_buf url, body;
    char **headers; /* NULL-terminated */
    size_t header_count;
} bc_wire_request;

struct barchan_completion {
    barchan_model *model;
    barchan_completion *next, *prev;
    barchan_complete_fn done;
    void *done_ud;
    barchan_delta_fn on_delta;
    void *delta_ud;
    bc_cancel_watch *cancel;
    bc_defer defer; /* replay's steps, and an asked-for cancel */
    int holds;      /* frames on the stack that use it */
    int ended;

    /* Over HTTP. */
    bc_wire_request request;
    int64_t deadline_ms;
    int retries;     /* so far */
    bc_timer *again; /* until the next */
    bc_exchange *exchange;
    bc_timer *grace; /* after the end of the turn, for the end of the answer */
    bc_answer answer;
    bc_progress progress;
    int turn_ended;
    bc_sse sse;
    void *reader;
    bc_reply reply;
    bc_buf body; /* JSON, or an error's text; replay: the reply */
    char content_type[96], request_id[96];

    /* Replay. */
    json_t *view;
    size_t step, shown;
};

/* model.c */
void bc_model_retain(barchan_model *model);
void bc_model_release(barchan_model *model);

/* completion.c: the end, once: closes everything, calls `done`, frees when nothing uses it. `reply`
 * is JSON text, or NULL and err says why. */
void bc_completion_end(barchan_completion *c, const bc_buf *reply, const barchan_error *err);
void bc_completion_hold(barchan_completion *c);
void bc_completion_release(barchan_completion *c);
/* A delta for the caller; negative once the caller ended the completion. */
int bc_completion_delta(barchan_delta_kind kind, bc_json_span data, void *completion);

/* wire.c: what comes back */
int bc_wire_start(barchan_completion *c, bc_request *request, barchan_error *err);
/* wire_request.c: what is sent */
int bc_wire_make(barchan_completion *c, bc_request *request, barchan_error *err);
int bc_wire_send(barchan_completion *c, const bc_exchange_handlers *handlers, barchan_error *err);
void bc_wire_forget(barchan_completion *c);
/* retry.c: how long to wait before the request is sent again; -1: it is not, and where only the
 * wait is to blame, `err` says so. `now_ms` and `deadline_ms` are of the same clock. */
int64_t bc_retry_wait(const barchan_model *model, barchan_error *err, int retries, int64_t now_ms,
                      int64_t deadline_ms);

#endif
