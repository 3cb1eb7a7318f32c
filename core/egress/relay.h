/*
 * One connection: from the accept in the sandbox's network, by us or by its guest (carry.h), to a
 * socket of the host's, and back.
 *
 *     ASKING (on_connect) -> RESOLVING -> DIALLING -> OPEN -> closed
 *
 * and from any but the last to REFUSING, where the program is told why. What the program sends
 * first is looked at as soon as it comes and goes nowhere before; what the far end sends (a
 * greeting of SSH or SMTP) passes at once.
 */
#ifndef BC_EGRESS_RELAY_H
#define BC_EGRESS_RELAY_H

#include <sys/types.h>

#include "egress/client_hello.h"
#include "egress/internal.h"
#include "egress/intercept.h"
#include "egress/policy.h"
#include "egress/request_stream.h"
#include "egress/resolver.h"

/* Enough for every hello and head; then for what one side is slower to take. */
#define BC_FLOW_BYTES (64u << 10)

/* What a pipe holds: four times what is read otherwise. */
#define BC_PASS_BYTES (256u << 10)

enum { INNER, OUTER }; /* the sandbox's side, the world's */

/* Bytes from one side to the other. */
typedef struct bc_flow {
    unsigned char *held; /* read and not written yet; NULL: none */
    size_t from, len;
    size_t cleared; /* of these, how many may be written */
    int ended;      /* nothing more will be read */
    int shut;       /* and the other side has been told */
} bc_flow;

/* What came of moving bytes: there may be more, it has to wait, or the connection is broken. */
typedef enum bc_moved { BC_MOVED, BC_WAITS, BC_FAILED } bc_moved;

typedef enum bc_stage {
    STAGE_NEW,
    STAGE_ASKING,
    STAGE_RESOLVING,
    STAGE_DIALLING,
    STAGE_OPEN,
    STAGE_REFUSING,
    STAGE_CLOSED /* its memory goes in the next dispatch, so whoever holds it may look */
} bc_stage;

struct bc_relay {
    bc_relay *next, *prev; /* of the open ones, or of the closed ones */
    bc_egress *egress;
    bc_stage stage;
    bc_carried *carried; /* NULL: fds[INNER] is the accepted socket itself */
    int at_once;         /* it is being closed with a reset */
    int fds[2];
    bc_watch *watches[2];
    bc_flow flows[2];  /* by the side that is read */
    int pipe[2];       /* see pass.c; -1: it has none */
    size_t piped;      /* bytes in it; flows[OUTER] holds none then */
    ssize_t last_read; /* of the server's, without it */
    bc_timer *timer;
    bc_lookup *lookup;
    bc_question *question;       /* whose answer it waits for */
    int asked;                   /* a person allowed it */
    int looked_at;               /* the program's first bytes have been */
    int records;                 /* of TLS: they are looked at */
    int early_data;              /* … to the end */
    size_t record_left;          /* of the current one */
    bc_request_stream *requests; /* each is looked at; NULL: another protocol */
    int tls;                     /* it began with a ClientHello that may pass */
    bc_intercept *intercept;     /* NULL: its bytes are passed as they are */
    bc_redactor *strays;         /* looks for placeholders in what is not TLS; NULL: not yet */
    uint32_t strays_told;        /* a bit for each secret */
    int refusal_sent;
    int hung_up;     /* the program has, behind what is not read yet */
    uint32_t inside; /* the address that the program connected to */
    int named;       /* a name led there, and is held */
    unsigned port;
    size_t ledger; /* number of its host there */
    uint64_t sent, received;
    bc_address addresses[BC_RESOLVE_MAX];
    size_t address_count, address_next;
    int dial_error;                /* of the last one that was tried */
    char address[BC_ADDRESS_TEXT]; /* connected to */
    char host[BC_HOST_NAME_MAX + 1];
    bc_verdict verdict;
};

/* relay.c */
/* Takes the accepted socket, which was made to this address and port; or a carried connection's end
 * of its pair. -1: it is closed. */
int bc_relay_open(bc_egress *egress, int fd, uint32_t address, unsigned port, bc_carried *carried);
/* All of these may leave it closed. */
void bc_relay_close(bc_relay *relay);
/* Closes at once, with a reset on both sides. */
void bc_relay_abort(bc_relay *relay);
/* Refuses for relay->verdict.rule, or says that it was not reached. */
void bc_relay_refuse(bc_relay *relay, barchan_network_event_kind kind);
/* An event of this connection. */
void bc_relay_tell(const bc_relay *relay, barchan_network_event_kind kind, const char *rule);
/* All that there was to say has been sent: the program gets the time to read it. */
void bc_relay_linger(bc_relay *relay);
/* A person has answered. */
void bc_relay_answered(bc_relay *relay, int allow);
/* Frees those that are closed, now or in the next dispatch. */
void bc_relay_bury(bc_egress *egress);
void bc_relay_bury_later(bc_egress *egress);

/* dial.c: finds the addresses and connects to the first that may be and can be. */
void bc_relay_dial(bc_relay *relay);
void bc_relay_dialled(bc_relay *relay); /* relay.c: it stands */
void bc_relay_dial_timeout(bc_relay *relay);

/* sniff.c: looks at what the program has sent so far. MORE: not decided; BAD: relay->verdict says
 * why. `ended`: nothing more will come. With DONE, it speaks HTTP if relay->requests is set. */
bc_sniff bc_relay_look(bc_relay *relay, const unsigned char *data, size_t len, int ended);
bc_sniff bc_relay_look_at_hello(bc_relay *relay, const unsigned char *data, size_t len);
/* records.c: clears what is held but for a further hello that is for another host, or not whole. */
bc_sniff bc_relay_look_at_records(bc_relay *relay);
/* Clears what is held up to the first request that is for another host, or is not whole. */
bc_sniff bc_relay_look_at_requests(bc_relay *relay);
/* Whether a request is for the host; and BAD for a reason of the caller's. */
bc_sniff bc_relay_look_at_request(bc_relay *relay, const bc_request_head *head);
bc_sniff bc_relay_deny(bc_relay *relay, const char *rule, const char *name);
/* An HTTP answer that says what relay->verdict says; 0: it has no room. */
size_t bc_relay_write_response(const bc_relay *relay, char *text, size_t cap);
/* The words of a refusal in the protocol that the program speaks. MORE: that is not known yet; BAD:
 * there are none in it. */
bc_sniff bc_relay_refusal(const bc_relay *relay, char *text, size_t cap, size_t *len);

/* move.c: moves what can be moved. */
void bc_relay_move(bc_relay *relay);
/* Watches for what it waits for. */
void bc_relay_wait(bc_relay *relay);
/* Counts what came from a side. */
void bc_relay_count(bc_relay *relay, int side, size_t bytes);
/* Reads once, within the budget: the bytes, 0 with nothing there, or at the end, which sets
 * flows[side].ended; -1 failed. */
ssize_t bc_relay_receive(bc_relay *relay, int side, unsigned char *to, size_t room);
/* Writes once: the bytes, 0 with no room there, -1 failed. */
ssize_t bc_relay_send(bc_relay *relay, int to, const unsigned char *data, size_t len);

/* pass.c: what the server sends, where nobody looks at it and the flow holds nothing. */
bool bc_pass_open(bc_relay *relay); /* false: no pipe can be had */
bc_moved bc_pass(bc_relay *relay);
bc_moved bc_pass_flush(bc_relay *relay); /* only what is in the pipe */
void bc_pass_end(bc_relay *relay);

#endif
