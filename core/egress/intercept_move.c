/* Encrypted bytes from and to the sockets. */
#include <openssl/bio.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include "base/limits.h"
#include "egress/intercept.h"
#include "egress/relay.h"

/* Of one side in one go, as in move.c. */
#define MAX_ROUNDS 4

int bc_intercept_begin(bc_relay *relay, bc_bound_host *host)
{
    bc_flow *flow = &relay->flows[INNER];
    /* A server of TLS does not speak first. */
    if (relay->received > 0 || relay->flows[OUTER].len > 0) return -1;
    if (bc_intercept_create(&relay->intercept, relay, host) < 0) return -1;
    bc_intercept *x = relay->intercept;
    if (BIO_write(x->in[INNER], flow->held + flow->from, (int)flow->len) != (int)flow->len) {
        return -1;
    }
    free(flow->held);
    *flow = (bc_flow){.ended = flow->ended};
    bc_timer_set(relay->timer, BC_EGRESS_CONNECT_MS); /* for TLS with the server */
    return 0;
}

static bool has_room(const bc_intercept *x, int side)
{
    return !x->relay->flows[side].ended && !x->closing &&
           BIO_ctrl_pending(x->in[side]) < 2 * BC_INTERCEPT_PIECE &&
           bc_intercept_waiting(x, side) < BC_INTERCEPT_BYTES_OWN;
}

/* 1: something came, 0: nothing, -1: failed */
static int receive(bc_intercept *x, int side)
{
    bc_relay *relay = x->relay;
    unsigned char *scratch = relay->egress->scratch;
    if (!has_room(x, side)) return 0;
    ssize_t n = bc_relay_receive(relay, side, scratch, BC_FLOW_BYTES);
    if (n < 0 && side == INNER) return -1;
    if (n < 0) relay->flows[side].ended = 1; /* the program is told */
    if (relay->flows[side].ended) BIO_set_mem_eof_return(x->in[side], 0);
    if (n <= 0) return relay->flows[side].ended;
    return BIO_write(x->in[side], scratch, (int)n) == (int)n ? 1 : -1;
}

static void forget(BIO *bio, unsigned char *scratch, size_t len)
{
    while (len > 0) {
        int part = len < BC_FLOW_BYTES ? (int)len : (int)BC_FLOW_BYTES;
        int n = BIO_read(bio, scratch, part);
        if (n <= 0) return;
        len -= (size_t)n;
    }
}

static int flush(bc_intercept *x, int side)
{
    char *data;
    unsigned char *scratch = x->relay->egress->scratch;
    long len = BIO_get_mem_data(x->out[side], &data);
    if (len <= 0) return 0;
    ssize_t n = bc_relay_send(x->relay, side, (const unsigned char *)data, (size_t)len);
    if (n < 0 && side == OUTER) { /* what it has answered is read all the same */
        forget(x->out[side], scratch, (size_t)len);
        return 0;
    }
    if (n <= 0) return (int)n;
    bc_relay_count(x->relay, 1 - side, (size_t)n);
    forget(x->out[side], scratch, (size_t)n);
    return 1;
}

/* Both sides: 1: something moved, 0: nothing, -1: failed. */
static int both(bc_intercept *x, int (*act)(bc_intercept *, int))
{
    int inner = act(x, INNER);
    if (inner < 0) return -1;
    int outer = act(x, OUTER);
    return outer < 0 ? -1 : inner | outer;
}

/* As of other connections: the end of what the program says is passed on. Its answer may not pause
 * for long then, but where it is the program that does not take it. */
static void say_less(bc_intercept *x)
{
    bc_relay *relay = x->relay;
    bool awaited = x->response.waiting && bc_intercept_waiting(x, INNER) == 0;
    bc_timer_set(relay->timer, awaited ? BC_EGRESS_LEFT_MS : -1);
    if (!x->left || relay->flows[INNER].shut || bc_intercept_waiting(x, OUTER) > 0) return;
    relay->flows[INNER].shut = 1;
    shutdown(relay->fds[OUTER], SHUT_WR);
}

static void settle(bc_intercept *x)
{
    bc_relay *relay = x->relay;
    if (x->closing && bc_intercept_waiting(x, INNER) == 0) {
        bc_relay_tell(relay, BARCHAN_NETWORK_CLOSED, relay->verdict.rule);
        bc_relay_linger(relay);
    } else if (!x->closing && bc_budget_is_over(relay->egress)) {
        bc_budget_deny(&relay->verdict);
        bc_relay_tell(relay, BARCHAN_NETWORK_DENIED, relay->verdict.rule);
        bc_relay_abort(relay);
    } else {
        if (x->closing) bc_timer_set(relay->timer, BC_EGRESS_LINGER_MS);
        if (x->ended[INNER] && x->up[OUTER] && !x->closing) say_less(x);
        bc_intercept_wait(relay);
    }
}

void bc_intercept_move(bc_relay *relay)
{
    bc_intercept *x = relay->intercept;
    int moved = 1;
    /* What was received is in memory, where no watch would tell of it: it is passed on as far as it
     * can be. */
    for (int round = 0; moved > 0; round++) {
        moved = round < MAX_ROUNDS ? both(x, receive) : 0;
        if (moved < 0) break;
        moved |= bc_intercept_pass(x);
        if (relay->stage != STAGE_OPEN) return;
        int sent = both(x, flush);
        moved = sent < 0 ? -1 : moved | sent;
    }
    if (moved < 0) {
        bc_relay_abort(relay);
    } else {
        settle(x);
    }
}

void bc_intercept_wait(bc_relay *relay)
{
    const bc_intercept *x = relay->intercept;
    unsigned wanted[2] = {0, 0};
    for (int side = INNER; side <= OUTER; side++) {
        if (bc_intercept_waiting(x, side) > 0) wanted[side] |= BC_WRITABLE;
        if (!relay->egress->throttled && has_room(x, side)) wanted[side] |= BC_READABLE;
    }
    if (bc_watch_set(relay->watches[INNER], wanted[INNER], NULL) < 0 ||
        bc_watch_set(relay->watches[OUTER], wanted[OUTER], NULL) < 0) {
        bc_relay_abort(relay);
    }
}

void bc_intercept_timeout(bc_relay *relay)
{
    bc_intercept *x = relay->intercept;
    if (x->closing || x->up[OUTER]) {
        bc_relay_abort(relay);
        return;
    }
    snprintf(x->failed, sizeof x->failed, "TLS with the server failed: it took too long");
    bc_intercept_move(relay);
}
