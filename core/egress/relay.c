#include "egress/relay.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/limits.h"
#include "egress/carry.h"

/* ---- the end ---- */

static void bury(bc_defer *defer)
{
    bc_relay_bury(owner_of(defer, bc_egress, bury));
}

void bc_relay_bury(bc_egress *egress)
{
    while (egress->closed != NULL) {
        bc_relay *relay = egress->closed;
        egress->closed = relay->next;
        bc_intercept_destroy(relay->intercept); /* which may have closed it */
        free(relay);
    }
    bc_carry_bury(egress);
}

void bc_relay_bury_later(bc_egress *egress)
{
    bc_defer_schedule(egress->rt, &egress->bury, bury);
}

static void unlink_open(bc_relay *relay)
{
    bc_egress *egress = relay->egress;
    if (relay->prev != NULL) relay->prev->next = relay->next;
    if (relay->next != NULL) relay->next->prev = relay->prev;
    if (egress->connections == relay) egress->connections = relay->next;
    egress->open--;
    relay->next = egress->closed;
    egress->closed = relay;
    bc_relay_bury_later(egress);
}

static void let_go(bc_relay *relay)
{
    bc_egress *egress = relay->egress;
    relay->stage = STAGE_CLOSED;
    bc_question_leave(relay);
    unlink_open(relay);
    if (relay->named) bc_names_release(egress->names, relay->inside);
    bc_lookup_cancel(relay->lookup);
    bc_timer_close(relay->timer);
    free(relay->requests);
    relay->requests = NULL;
    bc_strays_end(relay);
    bc_pass_end(relay);
    for (int side = INNER; side <= OUTER; side++) {
        bc_watch_close(relay->watches[side]);
        if (relay->fds[side] >= 0) {
            shutdown(relay->fds[side], SHUT_RDWR); /* a forked child may hold it, too */
            close(relay->fds[side]);
        }
        free(relay->flows[side].held);
        relay->flows[side] = (bc_flow){0};
    }
    if (relay->carried != NULL) bc_carried_left(relay->carried, relay->at_once);
    bc_egress_accept(egress);
}

void bc_relay_tell(const bc_relay *relay, barchan_network_event_kind kind, const char *rule)
{
    const barchan_network_event event = {.kind = kind,
                                         .host = relay->host,
                                         .port = (int)relay->port,
                                         .rule = rule,
                                         .address = relay->address,
                                         .bytes_sent = relay->sent,
                                         .bytes_received = relay->received};
    bc_egress_tell(relay->egress, &event);
}

static void tell(bc_relay *relay, barchan_network_event_kind kind)
{
    bc_relay_tell(relay, kind, relay->verdict.rule);
}

void bc_relay_close(bc_relay *relay)
{
    if (relay->stage == STAGE_OPEN) tell(relay, BARCHAN_NETWORK_CLOSED);
    let_go(relay);
}

/* Tells the other end at once, whoever else holds the socket. A close that does not linger would be
 * none: the goodbye of a shutdown before it would have said that all is well. */
static void reset(int fd)
{
    static const struct sockaddr none = {.sa_family = AF_UNSPEC};
    connect(fd, &none, sizeof none);
}

void bc_relay_abort(bc_relay *relay)
{
    relay->at_once = 1;
    for (int side = INNER; side <= OUTER; side++) {
        if (relay->fds[side] >= 0) reset(relay->fds[side]);
    }
    bc_relay_close(relay);
}

/* ---- refusals ---- */

/* Once the program's words are there, it is answered in kind; then it is given the time to read
 * that: closing with unread bytes would be a reset that takes the answer with it. */
static void answer(bc_relay *relay)
{
    char text[2048];
    size_t len;
    bc_sniff known = bc_relay_refusal(relay, text, sizeof text, &len);
    if (known == BC_SNIFF_MORE) return; /* as long as the timer lets us */
    if (known == BC_SNIFF_BAD ||
        send(relay->fds[INNER], text, len, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)len) {
        bc_relay_abort(relay);
        return;
    }
    relay->refusal_sent = 1;
    shutdown(relay->fds[INNER], SHUT_WR);
    bc_timer_set(relay->timer, BC_EGRESS_LINGER_MS);
}

static void close_outer(bc_relay *relay)
{
    bc_watch_close(relay->watches[OUTER]);
    relay->watches[OUTER] = NULL;
    if (relay->fds[OUTER] >= 0) close(relay->fds[OUTER]);
    relay->fds[OUTER] = -1;
}

void bc_relay_linger(bc_relay *relay)
{
    relay->stage = STAGE_REFUSING;
    close_outer(relay);
    relay->refusal_sent = 1;
    shutdown(relay->fds[INNER], SHUT_WR);
    bc_timer_set(relay->timer, BC_EGRESS_LINGER_MS);
    if (bc_watch_set(relay->watches[INNER], BC_READABLE, NULL) < 0) bc_relay_abort(relay);
}

/* Reads on: before the answer for its kind, after it so that it is not cut off. */
static void refuse_further(bc_relay *relay)
{
    bc_flow *flow = &relay->flows[INNER];
    unsigned char *scratch = relay->egress->scratch;
    ssize_t n = recv(relay->fds[INNER], scratch, BC_FLOW_BYTES, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n <= 0) flow->ended = 1;
    if (relay->refusal_sent) {
        if (n <= 0) bc_relay_close(relay);
        return;
    }
    if (flow->held == NULL) flow->held = malloc(BC_FLOW_BYTES);
    if (flow->held == NULL) {
        bc_relay_abort(relay);
        return;
    }
    size_t room = BC_FLOW_BYTES - flow->from - flow->len;
    if (n > 0 && (size_t)n <= room) {
        memcpy(flow->held + flow->from + flow->len, scratch, (size_t)n);
        flow->len += (size_t)n;
    }
    answer(relay);
}

void bc_relay_refuse(bc_relay *relay, barchan_network_event_kind kind)
{
    tell(relay, kind);
    if (relay->stage == STAGE_OPEN) tell(relay, BARCHAN_NETWORK_CLOSED);
    int answered_already = relay->received > 0;
    relay->stage = STAGE_REFUSING;
    close_outer(relay);
    bc_timer_set(relay->timer, BC_EGRESS_LINGER_MS);
    if (answered_already || bc_watch_set(relay->watches[INNER], BC_READABLE, NULL) < 0) {
        bc_relay_abort(relay);
    } else if (relay->flows[INNER].len > 0) {
        answer(relay);
    }
}

/* ---- the beginning ---- */

static void on_inner(void *ud, unsigned events)
{
    bc_relay *relay = ud;
    relay->hung_up |= (events & BC_HANGUP) != 0;
    if (relay->stage == STAGE_REFUSING) {
        refuse_further(relay);
    } else if (relay->stage == STAGE_OPEN) {
        bc_relay_move(relay);
    }
}

static void on_timer(void *ud)
{
    bc_relay *relay = ud;
    if (relay->stage == STAGE_DIALLING) {
        bc_relay_dial_timeout(relay);
    } else if (relay->stage == STAGE_OPEN && relay->intercept != NULL) {
        bc_intercept_timeout(relay);
    } else if (relay->stage == STAGE_REFUSING && relay->refusal_sent &&
               (relay->intercept == NULL || !relay->intercept->response.broken)) {
        bc_relay_close(relay); /* a reset would take with it what has not been read */
    } else {
        bc_relay_abort(relay);
    }
}

void bc_relay_dialled(bc_relay *relay)
{
    relay->stage = STAGE_OPEN;
    tell(relay, BARCHAN_NETWORK_CONNECTED);
    bc_relay_move(relay);
}

void bc_relay_answered(bc_relay *relay, int allow)
{
    bc_question_leave(relay);
    relay->asked = allow;
    if (allow) {
        bc_relay_dial(relay);
        return;
    }
    if (relay->stage == STAGE_ASKING) {
        snprintf(relay->verdict.rule, sizeof relay->verdict.rule, "refused when asked");
    }
    bc_relay_refuse(relay, BARCHAN_NETWORK_DENIED);
}

static void decide(bc_relay *relay)
{
    int answer = 0;
    bc_policy_decide_name(relay->egress->book.policy, relay->host, relay->port, &relay->verdict);
    if (bc_budget_is_over(relay->egress)) bc_budget_deny(&relay->verdict);
    if (relay->verdict.allowed) {
        bc_relay_dial(relay);
        return;
    }
    if (relay->verdict.unlisted && relay->egress->on_connect != NULL) {
        relay->stage = STAGE_ASKING;
        answer = bc_question_ask(relay->egress, relay);
        if (answer < 0) {
            relay->egress->open--; /* a person takes their time, and it no place meanwhile */
            relay->egress->asking++;
            return;
        }
    }
    bc_relay_answered(relay, answer);
}

/* The name that the program asked for, or the number that it used. */
static int find_host(bc_relay *relay)
{
    const char *name = bc_names_find(relay->egress->names, relay->inside);
    uint32_t names_mask = ~0u << (32u - BC_NETWORK_NAMES_PREFIX), wire = htonl(relay->inside);
    bc_address address = {.family = AF_INET};
    memcpy(address.bytes, &wire, 4);
    if (name != NULL) {
        snprintf(relay->host, sizeof relay->host, "%s", name);
        bc_names_hold(relay->egress->names, relay->inside);
        relay->named = 1;
        return 0;
    }
    bc_address_print(&address, relay->host);
    int own = (relay->inside & names_mask) == BC_NETWORK_NAMES;
    snprintf(relay->verdict.rule, sizeof relay->verdict.rule, "%s",
             "no name leads to this address");
    return own ? -1 : 0;
}

static int set_up(bc_relay *relay)
{
    static const int on = 1;
    setsockopt(relay->fds[INNER], IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (bc_timer_open(&relay->timer, relay->egress->rt, on_timer, relay, NULL) < 0) return -1;
    return bc_watch_open(&relay->watches[INNER], relay->egress->rt, relay->fds[INNER], on_inner,
                         relay, NULL);
}

static void begin(bc_relay *relay)
{
    int known = find_host(relay) == 0;
    if (set_up(relay) < 0) {
        bc_relay_abort(relay);
        return;
    }
    relay->ledger = bc_ledger_find(&relay->egress->ledger, relay->host);
    if (!known) {
        bc_relay_refuse(relay, BARCHAN_NETWORK_DENIED);
    } else {
        decide(relay);
    }
}

int bc_relay_open(bc_egress *egress, int fd, uint32_t address, unsigned port, bc_carried *carried)
{
    bc_relay *relay = NULL;
    /* At its own loopback nobody listens. */
    if (address >> 24 != 127) relay = calloc(1, sizeof *relay);
    if (relay == NULL) {
        reset(fd);
        close(fd);
        return -1;
    }
    relay->egress = egress;
    relay->carried = carried;
    relay->fds[INNER] = fd;
    relay->fds[OUTER] = -1;
    relay->pipe[0] = relay->pipe[1] = -1;
    relay->inside = address;
    relay->port = port;
    relay->next = egress->connections;
    if (relay->next != NULL) relay->next->prev = relay;
    egress->connections = relay;
    egress->open++;
    if (carried != NULL) bc_carried_begin(carried, relay);
    begin(relay);
    return 0;
}
