/* What the files of a holder share: hold.c (its life), hold_client.c (who is connected),
 * hold_relay.c (what they ask for), hold_follow.c (what was printed), hold_network.c (what was
 * reached). */
#ifndef BC_SANDBOX_HOLD_H
#define BC_SANDBOX_HOLD_H

#include <barchan/detached.h>
#include "channel/held.h"
#include "hold_log.h"
#include "internal.h"

typedef struct bc_hold bc_hold;
typedef struct bc_hold_client bc_hold_client;
typedef struct bc_relay bc_relay;

struct bc_hold {
    bc_resident resident;
    barchan_runtime *rt;
    barchan_sandbox *sbx; /* a reference */
    bc_stream life;       /* no frames: it hears of the sandbox's pauses and end */
    int dir_fd, lock_fd, listen_fd;
    bc_watch *listener;
    bc_timer *breath; /* set while there are no descriptors for those who connect */
    bc_hold_client *clients;
    unsigned client_count;
    bc_relay *orphans;
    bc_hold_log log;
    uint32_t commands;
    int ending, over;
    int asked; /* its last usage; the answer comes when nothing runs any more */
    bc_timer *goodbye;
    bc_defer finish;
    barchan_sandbox_done_fn done;
    void *ud;
};

struct bc_hold_client {
    bc_hold_client *next, *prev;
    bc_hold *hold;
    bc_channel *channel; /* NULL once it is cut off */
    bc_timer *hello;     /* until it has said who it is */
    int spare;           /* one too many: it may ask and end the sandbox */
    int greeted;
    int told; /* that the sandbox has ended: nothing follows */
    uint32_t last_stream;
    int follows;            /* hears of the end after all that was printed */
    uint32_t follow_stream; /* its question that waits; 0: none */
    uint64_t follow_cursor;
    bc_relay *relays;
    unsigned running;
    bc_defer gone;
};

/* A stream of a client's, and the sandbox's stream that carries it. */
struct bc_relay {
    bc_stream stream;
    bc_relay *next, *prev; /* of its client, or of the orphans */
    bc_hold *hold;
    bc_hold_client *client; /* NULL: an orphan */
    uint32_t client_stream;
    uint32_t request; /* BC_FRAME_EXEC, _FILE or _ASK */
    uint32_t flags;   /* of an exec */
    uint32_t ask;
    uint32_t command;              /* its number in the log */
    bc_ledger_mark before;         /* refusals and failures before it began */
    uint32_t credit[2], in_credit; /* what out, err and input may still carry */
    int in_open;
};

/* hold.c */
/* Sends it to a client; one that lets too much wait is cut off. */
void bc_hold_send(bc_hold_client *client, uint32_t type, uint32_t stream, const void *head,
                  size_t head_len, const void *body, size_t body_len);
void bc_hold_tell(bc_hold_client *client); /* the news */
void bc_hold_tell_all(bc_hold *hold);
/* Nothing of it is left: the hold may be over now. */
void bc_hold_client_left(bc_hold *hold);

/* How an answer begins that is no error. */
static inline void bc_hold_put_success(bc_wire_writer *out)
{
    bc_wire_put_u32(out, 0);
    bc_wire_put_u32(out, 0);
    bc_wire_put_string(out, "", 0);
}

/* Of the end: when the client has all that it follows, or has had its time for that. */
void bc_hold_tell_end(bc_hold_client *client);

/* hold_client.c: takes the connection, also when it fails. */
void bc_hold_accept(bc_hold *hold, int fd);
/* Cuts it off: what it had started is cancelled or runs on as an orphan. */
void bc_hold_client_cut(bc_hold_client *client);
void bc_hold_client_free(bc_hold_client *client);

/* hold_follow.c */
/* Answers with the log from the cursor on. */
void bc_hold_answer_logs(bc_hold_client *client, uint32_t stream, uint64_t cursor);
void bc_hold_follow(bc_hold_client *client, uint32_t stream, uint64_t cursor);
/* Something was printed. */
void bc_hold_tell_followers(bc_hold *hold);

/* hold_network.c */
/* What the network refused, or did not reach, since its command began. */
void bc_hold_tell_refusals(bc_relay *relay);
/* Answers with the hosts from this one on. */
void bc_hold_answer_network(bc_hold_client *client, uint32_t stream, uint64_t from);

/* hold_relay.c: negative: the client has broken the rules. */
int bc_relay_request(bc_hold_client *client, const bc_frame *frame);
int bc_relay_frame(bc_hold_client *client, const bc_frame *frame);
/* Its client is gone. */
void bc_relay_orphan(bc_relay *relay);
void bc_relay_free(bc_relay *relay);

#endif
