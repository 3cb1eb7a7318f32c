/* What the files of this room share. */
#ifndef BC_EGRESS_INTERNAL_H
#define BC_EGRESS_INTERNAL_H

#include "egress/egress.h"
#include "egress/ledger.h"
#include "egress/names.h"
#include "egress/policy.h"
#include "egress/resolver.h"
#include "egress/rules.h"
#include "egress/secrets.h"

typedef struct bc_relay bc_relay;
typedef struct bc_told bc_told;

typedef struct bc_carried bc_carried;

/* See carry.h. */
/* A power of two; some four connections each when there are as many as there may be. */
#define BC_CARRY_BUCKETS 1024u

typedef struct bc_carry {
    bc_carry_send_fn *send; /* NULL: the library has the sockets itself, or it is over */
    void *ud;
    bc_carried *first, *last, *over;
    bc_carried **by_stream; /* BC_CARRY_BUCKETS lists; NULL: there has been none */
    unsigned count;
    uint32_t last_stream;
    bc_defer room;
} bc_carry;

/* A host and port that a person is asked about; kept with the answer. */
typedef struct bc_question bc_question;

struct bc_egress {
    barchan_runtime *rt;
    barchan_sandbox *sbx;
    bc_rulebook book;
    bc_names *names;
    bc_resolver *resolver; /* NULL until something is resolved */
    bc_ledger ledger;
    bc_secrets *secrets; /* NULL: there are none */
    bc_question *questions;
    size_t question_count;
    barchan_connect_fn on_connect;
    barchan_network_event_fn on_event;
    void *ud;
    /* sockets */
    int name_fd;
    bc_watch *name_watch;
    struct bc_listener {
        bc_egress *egress;
        int fd;
        bc_watch *watch;
    } listeners[BC_FRAME_MAX_PORTS];
    size_t listener_count;
    int accepting;
    bc_carry carry;
    bc_relay *connections, *closed;
    bc_defer bury;
    size_t open, max_open, asking, pipes, intercepted;
    /* budget.c */
    uint64_t max_bytes, moved, rate, tokens;
    size_t round;
    int64_t filled_ms;
    bc_timer *timer; /* to read on, or to accept again */
    int throttled;
    /* events.c */
    bc_told *told, *told_last;
    size_t told_count;
    uint64_t untold; /* there was no room; the next one that is told says so */
    int hushed;      /* requests wait for room to tell of them */
    bc_defer tell;
    unsigned char *scratch; /* BC_FLOW_BYTES: what is read and written at once */
};

/* events.c: counts a refusal, and tells the host in the next dispatch. */
void bc_egress_tell(bc_egress *egress, const barchan_network_event *event);
/* Whether there is room to tell all of one request; if not, its connection goes on when there is.
 */
int bc_egress_can_tell(bc_egress *egress);
void bc_events_end(bc_egress *egress);

/* egress.c */
/* Accepts, or stops to, as many as may be open. */
void bc_egress_accept(bc_egress *egress);
const bc_address *bc_egress_known(const bc_egress *egress, const char *host);

/* name_service.c: answers what has been asked. */
void bc_egress_answer_names(bc_egress *egress);
/* One question: the length of the answer, 0: none. */
size_t bc_egress_answer_name(bc_egress *egress, const unsigned char *query, size_t len,
                             unsigned char *answer, size_t cap);

/* budget.c: how many bytes may be read now, at most `wanted`. 0: none before the timer, or ever. */
size_t bc_budget_take(bc_egress *egress, size_t wanted);
/* An equal part of `all`, at least `least`. */
size_t bc_share(uint64_t all, size_t among, size_t least);
void bc_budget_spend(bc_egress *egress, size_t bytes);
int bc_budget_is_over(const bc_egress *egress);
void bc_budget_deny(bc_verdict *verdict);
/* Those that wait read on. */
void bc_budget_resume(bc_egress *egress);

/* question.c */
/* What a person said of a host and port: 1, 0, or -1: they are asked now, and `out` is told. */
int bc_question_ask(bc_egress *egress, bc_relay *relay);
void bc_question_leave(bc_relay *relay);
void bc_questions_end(bc_egress *egress);

#endif
