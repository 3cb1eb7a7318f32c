#include "egress/carry.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/limits.h"
#include "egress/name_query.h"
#include "egress/relay.h"

_Static_assert(BC_FRAME_MAX_QUERY == BC_NAME_QUERY_MAX, "the guest's word for it");
_Static_assert(BC_FRAME_MAX_NAME_ANSWER == BC_NAME_ANSWER_MAX, "the guest's word for it");

_Static_assert(BC_FRAME_MAX_CONNECTIONS == BC_EGRESS_MAX_CONNECTIONS + BC_EGRESS_MAX_ASKING,
               "the guest's word for it");

struct bc_carried {
    bc_carried *next, *prev; /* in the order in which they came */
    bc_carried *next_alike;  /* of its bucket */
    bc_egress *egress;
    bc_relay *relay; /* NULL: it has none yet, or none any more */
    uint32_t stream, address, port;
    int fd; /* our end of the pair; -1: none */
    bc_watch *watch;
    bc_buf held;       /* of the program, for the relay */
    uint32_t may_come; /* how much the guest may still send */
    uint32_t may_go;   /* how much we may */
    uint32_t taken;    /* by the relay, no credit given for it yet */
    unsigned waits : 1, out_ended : 1, out_shut : 1, in_ended : 1, said_close : 1, heard_close : 1;
};

/* ---- the end ---- */

static void close_pair(bc_carried *c)
{
    bc_watch_close(c->watch);
    c->watch = NULL;
    if (c->fd >= 0) close(steal_fd(&c->fd));
    bc_buf_clear(&c->held);
}

static bc_carried **bucket(const bc_carry *carry, uint32_t stream)
{
    return &carry->by_stream[stream % BC_CARRY_BUCKETS];
}

static bc_carried *find(const bc_carry *carry, uint32_t stream)
{
    if (carry->by_stream == NULL) return NULL;
    bc_carried *c = *bucket(carry, stream);
    while (c != NULL && c->stream != stream) {
        c = c->next_alike;
    }
    return c;
}

/* Its memory goes in the next dispatch, for whoever stands above in the stack may look at it. */
static void forget(bc_carried *c)
{
    bc_carry *carry = &c->egress->carry;
    bc_carried **at = bucket(carry, c->stream);
    close_pair(c);
    while (*at != c) {
        at = &(*at)->next_alike;
    }
    *at = c->next_alike;
    *(c->prev == NULL ? &carry->first : &c->prev->next) = c->next;
    *(c->next == NULL ? &carry->last : &c->next->prev) = c->prev;
    carry->count--;
    c->relay = NULL;
    c->waits = 0;
    c->prev = NULL;
    c->next = carry->over;
    carry->over = c;
    bc_relay_bury_later(c->egress);
}

void bc_carry_bury(bc_egress *egress)
{
    while (egress->carry.over != NULL) {
        bc_carried *c = egress->carry.over;
        egress->carry.over = c->next;
        free(c);
    }
}

void bc_carry_stop(bc_egress *egress)
{
    egress->carry.send = NULL;
    bc_defer_cancel(&egress->carry.room);
    while (egress->carry.first != NULL) {
        forget(egress->carry.first);
    }
    free(egress->carry.by_stream);
    egress->carry.by_stream = NULL;
}

/* What the channel has no room for is said to nobody: the connection is over here, and what the
 * guest says further on it is a breach. */
static int say(bc_carried *c, uint32_t type, const void *payload, size_t len)
{
    bc_carry *carry = &c->egress->carry;
    if (carry->send != NULL && carry->send(carry->ud, type, c->stream, payload, len) == 0) return 0;
    bc_relay *relay = c->relay;
    c->said_close = c->heard_close = 1;
    forget(c);
    if (relay != NULL) bc_relay_abort(relay);
    return -1;
}

static int say_number(bc_carried *c, uint32_t type, uint32_t number)
{
    unsigned char bytes[4];
    bc_put_u32(bytes, number);
    return say(c, type, bytes, sizeof bytes);
}

static void say_close(bc_carried *c, enum bc_net_close how)
{
    if (c->said_close) return;
    c->said_close = 1;
    close_pair(c);
    if (say_number(c, BC_FRAME_NET_CLOSE, how) == 0 && c->heard_close) forget(c);
}

static void reset(bc_carried *c)
{
    if (c->relay != NULL) {
        bc_relay_abort(c->relay); /* which tells us that it has left */
    } else {
        say_close(c, BC_NET_RESET);
    }
}

/* ---- between the pair and the channel ---- */

static void want(bc_carried *c)
{
    if (c->said_close || c->watch == NULL) return;
    unsigned wanted = c->held.len > 0 ? BC_WRITABLE : 0;
    if (!c->in_ended && c->may_go > 0) wanted |= BC_READABLE;
    if (bc_watch_set(c->watch, wanted, NULL) < 0) reset(c);
}

/* From the relay to the program, once. */
static void pass_in(bc_carried *c)
{
    unsigned char *scratch = c->egress->scratch;
    size_t room = c->may_go < BC_FLOW_BYTES ? c->may_go : BC_FLOW_BYTES;
    ssize_t n = recv(c->fd, scratch, room, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n > 0) {
        c->may_go -= (uint32_t)n;
        say(c, BC_FRAME_NET_IN, scratch, (size_t)n);
        return;
    }
    c->in_ended = 1;
    if (c->relay == NULL) {
        say_close(c, BC_NET_IN_ORDER);
    } else {
        say(c, BC_FRAME_NET_IN_END, NULL, 0);
    }
}

static void give_credit(bc_carried *c, size_t taken)
{
    c->taken += (uint32_t)taken;
    if (c->taken < BC_FRAME_NET_CREDIT_STEP || c->out_ended) return;
    uint32_t more = c->taken;
    c->may_come += more;
    c->taken = 0;
    say_number(c, BC_FRAME_NET_MORE, more);
}

/* Writes once to the relay: the bytes; one that takes no more is about to say so. */
static size_t write_pair(bc_carried *c, const void *data, size_t len)
{
    ssize_t n;
    do {
        n = send(c->fd, data, len, MSG_NOSIGNAL | MSG_DONTWAIT);
    } while (n < 0 && errno == EINTR);
    if (n < 0) return errno == EAGAIN ? 0 : len;
    return (size_t)n;
}

/* From the program to the relay, what is held. */
static void pass_out(bc_carried *c)
{
    if (c->fd < 0) return;
    if (c->held.len > 0) {
        size_t n = write_pair(c, bc_buf_data(&c->held), c->held.len);
        bc_buf_consume(&c->held, n);
        if (c->held.len == 0) bc_buf_clear(&c->held);
        if (n > 0) give_credit(c, n);
    }
    if (c->out_ended && c->held.len == 0 && c->fd >= 0 && !c->out_shut) {
        c->out_shut = 1;
        shutdown(c->fd, SHUT_WR);
    }
}

static void on_pair(void *ud, unsigned events)
{
    bc_carried *c = ud;
    if (events & BC_WRITABLE) pass_out(c);
    if (events & (BC_READABLE | BC_HANGUP) && c->fd >= 0 && !c->in_ended && c->may_go > 0) {
        pass_in(c);
    }
    want(c);
}

void bc_carried_begin(bc_carried *c, bc_relay *relay)
{
    c->relay = relay;
}

void bc_carried_left(bc_carried *c, int at_once)
{
    c->relay = NULL;
    if (at_once) {
        say_close(c, BC_NET_RESET);
    } else if (c->in_ended) {
        say_close(c, BC_NET_IN_ORDER);
    } else {
        want(c); /* reads to the end */
    }
}

/* ---- beginnings ---- */

/* 0, or -1 when there are too many descriptors in use just now. */
static int open_pair(bc_carried *c)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0) return -1;
    c->fd = pair[0];
    c->waits = 0;
    if (bc_watch_open(&c->watch, c->egress->rt, c->fd, on_pair, c, NULL) < 0) {
        close(pair[1]);
        say_close(c, BC_NET_RESET);
        return 0;
    }
    if (bc_relay_open(c->egress, pair[1], c->address, c->port, c) < 0) {
        say_close(c, BC_NET_RESET);
    }
    pass_out(c);
    want(c);
    return 0;
}

static bc_carried *first_waiting(const bc_egress *egress)
{
    bc_carried *c = egress->carry.first;
    while (c != NULL && !c->waits) {
        c = c->next;
    }
    return c;
}

/* As many as a listener accepts before others have their turn. */
static void open_waiting(bc_egress *egress)
{
    for (int i = 0; i < BC_EGRESS_MAX_ACCEPTS; i++) {
        bc_carried *c = egress->open < egress->max_open ? first_waiting(egress) : NULL;
        if (c == NULL) return;
        if (open_pair(c) == 0) continue;
        bc_timer_set(egress->timer, BC_EGRESS_ROUND_MS);
        return;
    }
    bc_carry_accept(egress);
}

static void on_room(bc_defer *defer)
{
    open_waiting(owner_of(defer, bc_egress, carry.room));
}

void bc_carry_accept(bc_egress *egress)
{
    if (egress->carry.first == NULL) return;
    bc_defer_schedule(egress->rt, &egress->carry.room, on_room);
}

/* Each is greater than the one before. */
static int takes_number(bc_egress *egress, uint32_t stream)
{
    if (stream <= egress->carry.last_stream) return 0;
    egress->carry.last_stream = stream;
    return 1;
}

static int on_connect(bc_egress *egress, const bc_frame *frame)
{
    bc_carry *carry = &egress->carry;
    bc_wire_reader in = bc_wire_read(frame);
    uint32_t address = bc_wire_u32(&in), port = bc_wire_u32(&in);
    if (!bc_wire_done(&in) || !bc_network_leads(&egress->book.plan, address, port)) return -1;
    if (!takes_number(egress, frame->stream) || carry->count == egress->book.plan.connections)
        return -1;
    if (carry->by_stream == NULL) {
        carry->by_stream = calloc(BC_CARRY_BUCKETS, sizeof *carry->by_stream);
    }
    bc_carried *c = carry->by_stream == NULL ? NULL : calloc(1, sizeof *c);
    if (c == NULL) return -1;
    *c = (bc_carried){.prev = carry->last,
                      .egress = egress,
                      .stream = frame->stream,
                      .address = address,
                      .port = port,
                      .fd = -1,
                      .may_come = BC_FRAME_NET_WINDOW,
                      .may_go = BC_FRAME_NET_WINDOW,
                      .waits = 1};
    bc_buf_init(&c->held, BC_FRAME_NET_WINDOW);
    *(carry->last == NULL ? &carry->first : &carry->last->next) = c;
    carry->last = c;
    carry->count++;
    c->next_alike = *bucket(carry, c->stream);
    *bucket(carry, c->stream) = c;
    bc_carry_accept(egress);
    return 0;
}

static int on_query(bc_egress *egress, const bc_frame *frame)
{
    unsigned char answer[BC_NAME_ANSWER_MAX];
    if (!takes_number(egress, frame->stream)) return -1;
    size_t len =
        bc_egress_answer_name(egress, frame->payload, frame->length, answer, sizeof answer);
    return egress->carry.send(egress->carry.ud, BC_FRAME_NET_ANSWER, frame->stream, answer, len);
}

/* ---- what the guest says of a connection ---- */

static int on_out(bc_carried *c, const bc_frame *frame)
{
    size_t len = frame->length;
    if (len == 0 || c->out_ended || len > c->may_come) return -1;
    c->may_come -= (uint32_t)len;
    if (c->said_close) return 0; /* it cannot know yet */
    size_t n = c->fd < 0 || c->held.len > 0 ? 0 : write_pair(c, frame->payload, len);
    if (n < len && bc_buf_append(&c->held, frame->payload + n, len - n) < 0) {
        reset(c); /* out of memory */
        return 0;
    }
    if (n > 0) give_credit(c, n);
    want(c);
    return 0;
}

static int on_out_end(bc_carried *c, const bc_frame *frame)
{
    if (frame->length != 0 || c->out_ended) return -1;
    c->out_ended = 1;
    pass_out(c);
    return 0;
}

static int on_grant(bc_carried *c, const bc_frame *frame)
{
    bc_wire_reader in = bc_wire_read(frame);
    uint32_t bytes = bc_wire_u32(&in);
    if (!bc_wire_done(&in) || bytes == 0 || bytes > BC_FRAME_NET_WINDOW - c->may_go) return -1;
    c->may_go += bytes;
    want(c);
    return 0;
}

static int on_closed(bc_carried *c, const bc_frame *frame)
{
    bc_wire_reader in = bc_wire_read(frame);
    uint32_t how = bc_wire_u32(&in);
    if (!bc_wire_done(&in) || how > BC_NET_RESET) return -1;
    /* In order, it has sent and taken everything. */
    if (how == BC_NET_IN_ORDER && !c->said_close && !(c->out_ended && c->in_ended)) return -1;
    c->heard_close = c->out_ended = 1;
    if (c->said_close) {
        forget(c);
    } else if (how == BC_NET_RESET) {
        reset(c);
    }
    return 0;
}

int bc_egress_take_frame(bc_egress *egress, const bc_frame *frame)
{
    if (egress->carry.send == NULL) return -1;
    if (frame->type == BC_FRAME_NET_CONNECT) return on_connect(egress, frame);
    if (frame->type == BC_FRAME_NET_QUERY) return on_query(egress, frame);
    bc_carried *c = find(&egress->carry, frame->stream);
    if (c == NULL || c->heard_close) return -1;
    switch (frame->type) {
    case BC_FRAME_NET_OUT: return on_out(c, frame);
    case BC_FRAME_NET_OUT_END: return on_out_end(c, frame);
    case BC_FRAME_NET_GRANT: return on_grant(c, frame);
    case BC_FRAME_NET_CLOSED: return on_closed(c, frame);
    default: return -1;
    }
}

void bc_egress_carry(bc_egress *egress, bc_carry_send_fn *send, void *ud)
{
    egress->carry.send = send;
    egress->carry.ud = ud;
}
