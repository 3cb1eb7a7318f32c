/* Bytes from side to side, as fast as the slower one takes them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include "egress/relay.h"

/* Of one side in one go, so that a fast connection does not starve the others. */
#define MAX_ROUNDS 4

void bc_relay_count(bc_relay *relay, int side, size_t bytes)
{
    bc_ledger_host *host = bc_ledger_at(&relay->egress->ledger, relay->ledger);
    *(side == INNER ? &relay->sent : &relay->received) += bytes;
    *(side == INNER ? &host->bytes_sent : &host->bytes_received) += bytes;
}

static int hold(bc_flow *flow, const unsigned char *data, size_t len)
{
    if (flow->held == NULL) {
        flow->held = malloc(BC_FLOW_BYTES);
        flow->from = flow->len = 0;
    }
    if (flow->held == NULL) return -1;
    memcpy(flow->held + flow->from + flow->len, data, len);
    flow->len += len;
    return 0;
}

/* A connection that has caught up holds no memory. */
static void drop(bc_flow *flow, size_t len)
{
    flow->from += len;
    flow->len -= len;
    flow->cleared -= len;
    if (flow->len > 0) return;
    free(flow->held);
    *flow = (bc_flow){.ended = flow->ended, .shut = flow->shut};
}

ssize_t bc_relay_send(bc_relay *relay, int to, const unsigned char *data, size_t len)
{
    ssize_t n;
    do {
        n = send(relay->fds[to], data, len, MSG_NOSIGNAL | MSG_DONTWAIT);
    } while (n < 0 && errno == EINTR);
    return n < 0 && errno == EAGAIN ? 0 : n;
}

static bc_moved flush(bc_relay *relay, int side)
{
    bc_flow *flow = &relay->flows[side];
    if (flow->cleared == 0) return BC_MOVED;
    ssize_t n = bc_relay_send(relay, 1 - side, flow->held + flow->from, flow->cleared);
    if (n < 0) return BC_FAILED;
    bc_relay_count(relay, side, (size_t)n);
    drop(flow, (size_t)n);
    return flow->cleared > 0 ? BC_WAITS : BC_MOVED;
}

ssize_t bc_relay_receive(bc_relay *relay, int side, unsigned char *to, size_t room)
{
    bc_flow *flow = &relay->flows[side];
    size_t may = bc_budget_take(relay->egress, room);
    if (may == 0) return 0;
    ssize_t n;
    do {
        n = recv(relay->fds[side], to, may, MSG_DONTWAIT);
    } while (n < 0 && errno == EINTR);
    if (n < 0) return errno == EAGAIN ? 0 : -1;
    if (n == 0) flow->ended = 1;
    bc_budget_spend(relay->egress, (size_t)n);
    if (side == INNER && !relay->tls) bc_strays_look(relay, to, (size_t)n);
    return n;
}

/* Adds to what is held: BC_MOVED when there is more, or the end. */
static bc_moved gather(bc_relay *relay)
{
    bc_flow *flow = &relay->flows[INNER];
    unsigned char *scratch = relay->egress->scratch;
    if (flow->from > 0) memmove(flow->held, flow->held + flow->from, flow->len);
    flow->from = 0;
    ssize_t n = bc_relay_receive(relay, INNER, scratch, BC_FLOW_BYTES - flow->len);
    if (n < 0 || (n > 0 && hold(flow, scratch, (size_t)n) < 0)) return BC_FAILED;
    return n > 0 || flow->ended ? BC_MOVED : BC_WAITS;
}

static bc_moved refuse(bc_relay *relay)
{
    bc_relay_refuse(relay, BARCHAN_NETWORK_DENIED);
    return BC_WAITS;
}

/* Clears what may be written. */
static bc_sniff look_further(bc_relay *relay)
{
    bc_flow *flow = &relay->flows[INNER];
    if (relay->requests != NULL) return bc_relay_look_at_requests(relay);
    if (relay->records) return bc_relay_look_at_records(relay);
    flow->cleared = flow->len;
    return BC_SNIFF_DONE;
}

/* The program's first bytes are held until it is clear what they are. */
static bc_moved look(bc_relay *relay)
{
    bc_flow *flow = &relay->flows[INNER];
    bc_moved gathered = gather(relay);
    if (gathered != BC_MOVED) return gathered;
    static const unsigned char nothing[1];
    bc_sniff seen =
        bc_relay_look(relay, flow->held == NULL ? nothing : flow->held, flow->len, flow->ended);
    if (seen == BC_SNIFF_MORE) return BC_WAITS;
    bc_bound_host *bound = bc_secrets_bound(relay->egress->secrets, relay->host, relay->port);
    if (seen == BC_SNIFF_DONE && bound != NULL && flow->len > 0) {
        if (relay->tls) return bc_intercept_begin(relay, bound) < 0 ? BC_FAILED : BC_MOVED;
        bc_relay_deny(relay, "only TLS is spoken with a host with secrets", "");
        seen = BC_SNIFF_BAD;
    }
    if (seen == BC_SNIFF_DONE) seen = look_further(relay);
    if (seen == BC_SNIFF_BAD) return refuse(relay);
    relay->looked_at = 1;
    return BC_MOVED;
}

static bc_moved move_looked_at(bc_relay *relay)
{
    bc_moved rc = flush(relay, INNER);
    if (rc != BC_MOVED || relay->flows[INNER].ended) return rc == BC_MOVED ? BC_WAITS : rc;
    rc = gather(relay);
    if (rc == BC_MOVED && look_further(relay) == BC_SNIFF_BAD) return refuse(relay);
    return rc;
}

/* What the server says may be what requests were held back for. */
static bc_moved look_again(bc_relay *relay, const unsigned char *data, size_t len)
{
    if (relay->requests == NULL) return BC_MOVED;
    if (!bc_request_stream_answer(relay->requests, (const char *)data, len)) return BC_MOVED;
    return bc_relay_look_at_requests(relay) == BC_SNIFF_BAD ? refuse(relay) : BC_MOVED;
}

static bc_moved move_once(bc_relay *relay, int side)
{
    bc_flow *flow = &relay->flows[side];
    bc_moved flushed = flush(relay, side);
    if (flushed != BC_MOVED || flow->ended) return flushed == BC_MOVED ? BC_WAITS : flushed;
    unsigned char *scratch = relay->egress->scratch;
    ssize_t n = bc_relay_receive(relay, side, scratch, BC_FLOW_BYTES);
    if (side == OUTER) relay->last_read = n;
    if (n < 0) return BC_FAILED;
    if (n == 0) return BC_WAITS;
    if (side == OUTER && look_again(relay, scratch, (size_t)n) != BC_MOVED) return BC_WAITS;
    ssize_t sent = bc_relay_send(relay, 1 - side, scratch, (size_t)n);
    if (sent < 0) return BC_FAILED;
    bc_relay_count(relay, side, (size_t)sent);
    if (sent == n) return BC_MOVED;
    if (hold(flow, scratch + sent, (size_t)(n - sent)) < 0) return BC_FAILED;
    flow->cleared = flow->len;
    return BC_WAITS;
}

/* Nobody has to see what the server sends, but while it is asked whether it speaks WebSocket. A
 * pipe is worth its while when there was more than one go has room for. */
static bc_moved move_answer(bc_relay *relay)
{
    const bc_flow *flow = &relay->flows[OUTER];
    bool looks = relay->requests != NULL && relay->requests->waits;
    bool bulk = relay->last_read == BC_FLOW_BYTES && flow->len == 0 && !flow->ended && !looks;
    bc_moved passed = bc_pass_flush(relay);
    if (passed != BC_MOVED) return passed;
    return bulk && bc_pass_open(relay) ? bc_pass(relay) : move_once(relay, OUTER);
}

static bc_moved move_side(bc_relay *relay, int side)
{
    bc_flow *flow = &relay->flows[side];
    bc_moved rc = BC_MOVED;
    if (side == INNER && !relay->looked_at) {
        rc = look(relay);
        if (relay->stage != STAGE_OPEN || relay->intercept != NULL) return rc;
    }
    for (int round = 0; round < MAX_ROUNDS && rc == BC_MOVED; round++) {
        int looks = side == INNER && (relay->requests != NULL || relay->records);
        rc = looks           ? move_looked_at(relay)
             : side == OUTER ? move_answer(relay)
                             : move_once(relay, side);
        if (relay->stage != STAGE_OPEN) return rc;
    }
    bool written = flow->len == 0 && (side == INNER || relay->piped == 0);
    if (rc != BC_FAILED && flow->ended && written && !flow->shut) {
        flow->shut = 1;
        shutdown(relay->fds[1 - side], SHUT_WR);
    }
    return rc;
}

void bc_relay_move(bc_relay *relay)
{
    for (int side = INNER; side <= OUTER && relay->stage == STAGE_OPEN; side++) {
        if (relay->intercept != NULL) break;
        if (move_side(relay, side) == BC_FAILED) {
            bc_relay_abort(relay);
            return;
        }
    }
    if (relay->stage != STAGE_OPEN) return;
    if (relay->intercept != NULL) {
        bc_intercept_move(relay);
    } else if (relay->flows[INNER].shut && relay->flows[OUTER].shut) {
        bc_relay_close(relay);
    } else if (bc_budget_is_over(relay->egress)) {
        bc_budget_deny(&relay->verdict);
        bc_relay_refuse(relay, BARCHAN_NETWORK_DENIED);
    } else {
        bc_relay_wait(relay);
    }
}

void bc_relay_wait(bc_relay *relay)
{
    if (relay->intercept != NULL) {
        bc_intercept_wait(relay);
        return;
    }
    unsigned wanted[2] = {0, 0};
    int may_read = !relay->egress->throttled;
    for (int side = INNER; side <= OUTER; side++) {
        const bc_flow *flow = &relay->flows[side];
        if (flow->cleared > 0 || (side == OUTER && relay->piped > 0)) {
            wanted[1 - side] |= BC_WRITABLE;
        } else if (!flow->ended && may_read) {
            wanted[side] |= BC_READABLE;
        }
    }
    if (bc_watch_set(relay->watches[INNER], wanted[INNER], NULL) < 0 ||
        bc_watch_set(relay->watches[OUTER], wanted[OUTER], NULL) < 0) {
        bc_relay_abort(relay);
    }
}
