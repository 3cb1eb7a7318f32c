/* Encrypted bytes from and to the sockets. */
#include <openssl/bio.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include "base/limits.h"
#include "egress/intercept.h"
#include "egress/relay.h"

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
    size_t share = bc_share(BC_FLOW_BYTES, relay->egress->intercepted, BC_INTERCEPT_LEAST_SHARE);
    ssize_t n = bc_relay_receive(relay, side, scratch, share);
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

/* How long neither side may move anything; -1: as long as they like. A program that is not read for
 * may be gone, with a part of what it has said still to come. */
static int64_t patience(const bc_intercept *x)
{
    const bc_relay *relay = x->relay;
    int64_t body_waits = bc_intercept_rest_waits_ms(x);
    if (body_waits > 0) return body_waits;
    bool ended = x->ended[INNER] || relay->flows[INNER].ended || relay->hung_up;
    if (!x->up[INNER] || bc_intercept_waiting(x, INNER) > 0)
        return -1; /* the program's own affair */
    if (ended) return x->response.waiting ? BC_EGRESS_LEFT_MS : -1;
    return has_room(x, INNER) ? -1 : BC_EGRESS_STALLED_MS;
}

/* As of other connections: the end of what the program says is passed on. */
static void pass_end(bc_intercept *x)
{
    bc_relay *relay = x->relay;
    if (!x->left || relay->flows[INNER].shut || bc_intercept_waiting(x, OUTER) > 0) return;
    relay->flows[INNER].shut = 1;
    shutdown(relay->fds[OUTER], SHUT_WR);
}

/* While both sides are up; TLS with the server and a goodbye have times of their own. */
static void be_patient(bc_intercept *x, bool moved)
{
    int64_t ms = patience(x);
    if (moved || ms != x->patience_ms) bc_timer_set(x->relay->timer, ms);
    x->patience_ms = ms;
    x->rest_timed = bc_intercept_rest_waits_ms(x) > 0;
}

static void settle(bc_intercept *x, bool moved)
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
        /* The server has ended. When its program reads what waits is its own affair, as before. */
        if (x->closing) bc_timer_set(relay->timer, -1);
        if (x->up[OUTER] && !x->closing) {
            pass_end(x);
            be_patient(x, moved);
        }
        bc_intercept_wait(relay);
    }
}

void bc_intercept_move(bc_relay *relay)
{
    bc_intercept *x = relay->intercept;
    int moved = both(x, receive);
    bool any = moved > 0;
    /* What was received is in memory, where no watch would tell of it: it is passed on as far as it
     * can be. */
    for (bool more = moved >= 0; more;) {
        more = bc_intercept_pass(x);
        if (relay->stage != STAGE_OPEN) return;
        moved = both(x, flush);
        more = moved >= 0 && (more || moved > 0);
        any |= more;
    }
    if (moved < 0) {
        bc_relay_abort(relay);
    } else {
        settle(x, any);
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
    /* Who is not read for may go all the same. */
    if (wanted[INNER] == 0 && !relay->hung_up && !relay->flows[INNER].ended)
        wanted[INNER] = BC_HANGUP;
    if (bc_watch_set(relay->watches[INNER], wanted[INNER], NULL) < 0 ||
        bc_watch_set(relay->watches[OUTER], wanted[OUTER], NULL) < 0) {
        bc_relay_abort(relay);
    }
}

void bc_intercept_timeout(bc_relay *relay)
{
    bc_intercept *x = relay->intercept;
    if (x->rest_timed) {
        bc_intercept_move(relay);
        return;
    }
    if (x->up[OUTER]) {
        bc_relay_abort(relay);
        return;
    }
    snprintf(x->failed, sizeof x->failed, "TLS with the server failed: it took too long");
    bc_intercept_move(relay);
}
