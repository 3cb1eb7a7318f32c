#include "carry.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <stdlib.h>

/* Before anything else gets its turn. */
#define MAX_AT_ONCE 64
#define BREATH_US 100000

struct carry *carry_new(const struct plan *plan)
{
    struct carry *carry = calloc(1, sizeof *carry);
    if (carry == NULL) return NULL;
    carry->plan = &plan->network;
    carry->sockets = plan->sockets;
    carry->last_stream = BC_FRAME_CARRIED;
    return carry;
}

/* A number is used once; who has used them all has lived for long enough. */
static uint32_t next_stream(struct init *init)
{
    if (init->carry->last_stream == UINT32_MAX) init_die(init, "no stream left");
    return ++init->carry->last_stream;
}

/* ---- the end of a connection ---- */

static void close_fd(struct connection *c, uint32_t how)
{
    static const struct linger none = {.l_onoff = 1, .l_linger = 0};
    if (c->fd < 0) return;
    if (how == BC_NET_RESET) {
        SYS5(SYS_setsockopt, c->fd, SOL_SOCKET, SO_LINGER, &none, sizeof none);
    }
    sys_close(c->fd);
    c->fd = -1;
}

static void end(struct init *init, struct connection *c, uint32_t how)
{
    unsigned char bytes[4];
    close_fd(c, how);
    queue_free(&c->in);
    if (c->said_close) return;
    c->said_close = true;
    bc_put_u32(bytes, how);
    send_frame(init, BC_FRAME_NET_CLOSED, c->stream, bytes, sizeof bytes);
}

static void forget(struct carry *carry, struct connection *c)
{
    for (unsigned i = 0; i < carry->count; i++) {
        if (carry->of[i] == c) carry->of[i] = carry->of[--carry->count];
    }
    free(c);
}

/* Goes on to its end, as far as it is one. */
static void settle(struct init *init, struct connection *c)
{
    if (c->fd >= 0 && c->in.len == 0 && c->in_ended && !c->in_shut) {
        c->in_shut = true;
        SYS2(SYS_shutdown, c->fd, SHUT_WR);
    }
    if (c->fd >= 0 && c->in.len == 0 && (c->closing || (c->in_shut && c->out_ended))) {
        end(init, c, BC_NET_IN_ORDER);
    }
    if (c->said_close && c->heard_close) forget(init->carry, c);
}

/* ---- bytes ---- */

static void grant(struct init *init, struct connection *c, size_t written)
{
    unsigned char bytes[4];
    c->in_done += (uint32_t)written;
    if (c->in_done < BC_FRAME_NET_CREDIT_STEP || c->in_ended) return;
    bc_put_u32(bytes, c->in_done);
    send_frame(init, BC_FRAME_NET_GRANT, c->stream, bytes, sizeof bytes);
    c->in_done = 0;
}

/* How much was written, or -errno. */
static long write_some(const struct connection *c, const void *data, size_t len)
{
    long n = sys_send(c->fd, data, len, MSG_NOSIGNAL | MSG_DONTWAIT);
    return n == -EAGAIN || n == -EINTR ? 0 : n;
}

static void write_queue(struct init *init, struct connection *c)
{
    long n = write_some(c, c->in.data + c->in.start, c->in.len);
    if (n < 0) {
        end(init, c, BC_NET_RESET);
        return;
    }
    queue_drop(&c->in, (size_t)n);
    if (c->in.len == 0) queue_free(&c->in);
    grant(init, c, (size_t)n);
}

static void read_program(struct init *init, struct connection *c)
{
    static unsigned char chunk[BC_FRAME_NET_WINDOW];
    size_t len = c->credit < sizeof chunk ? c->credit : sizeof chunk;
    long n = sys_read(c->fd, chunk, len);
    if (n == -EAGAIN || n == -EINTR) return;
    if (n < 0) {
        end(init, c, BC_NET_RESET);
    } else if (n == 0) {
        c->out_ended = true;
        send_frame(init, BC_FRAME_NET_OUT_END, c->stream, NULL, 0);
    } else {
        c->credit -= (uint32_t)n;
        send_frame(init, BC_FRAME_NET_OUT, c->stream, chunk, (size_t)n);
    }
}

/* ---- what programs do ---- */

/* What it was made to leads out, or it is a connection to the sandbox's own loopback, where nobody
 * listens. */
static void take_connection(struct init *init, int fd)
{
    static const int on = 1;
    struct carry *carry = init->carry;
    struct sockaddr_in to = {0};
    unsigned to_len = sizeof to;
    unsigned char bytes[8];
    struct connection *c = calloc(1, sizeof *c);
    if (c == NULL) init_die(init, "out of memory");
    *c = (struct connection){.fd = fd, .credit = BC_FRAME_NET_WINDOW};
    SYS3(SYS_getsockname, fd, &to, &to_len);
    uint32_t address = ntohl(to.sin_addr.s_addr), port = ntohs(to.sin_port);
    if (!bc_network_leads(carry->plan, address, port)) {
        close_fd(c, BC_NET_RESET);
        free(c);
        return;
    }
    SYS5(SYS_setsockopt, fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    c->stream = next_stream(init);
    carry->of[carry->count++] = c;
    bc_put_u32(bytes, address);
    bc_put_u32(bytes + 4, port);
    send_frame(init, BC_FRAME_NET_CONNECT, c->stream, bytes, sizeof bytes);
}

static void accept_some(struct init *init, int listener)
{
    struct carry *carry = init->carry;
    for (int i = 0; i < MAX_AT_ONCE && carry->count < carry->plan->connections; i++) {
        long fd = SYS4(SYS_accept4, listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd == -EAGAIN || fd == -EINTR || fd == -ECONNABORTED) return;
        if (fd < 0) {
            carry->breath_us = sys_boot_us() + BREATH_US;
            return;
        }
        take_connection(init, (int)fd);
    }
}

static void take_questions(struct init *init, int fd)
{
    static unsigned char bytes[BC_FRAME_MAX_QUERY];
    struct carry *carry = init->carry;
    for (int i = 0; i < MAX_AT_ONCE && carry->question_count < BC_FRAME_MAX_QUERIES; i++) {
        struct question *q = &carry->questions[carry->question_count];
        unsigned from_len = sizeof q->from;
        long n = SYS6(SYS_recvfrom, fd, bytes, sizeof bytes, MSG_DONTWAIT | MSG_TRUNC, &q->from,
                      &from_len);
        if (n < 0) return;
        if ((size_t)n > sizeof bytes) continue;
        q->stream = next_stream(init);
        carry->question_count++;
        send_frame(init, BC_FRAME_NET_QUERY, q->stream, bytes, (size_t)n);
    }
}

/* ---- what the library says ---- */

static void on_answer(struct init *init, const bc_frame *frame)
{
    struct carry *carry = init->carry;
    for (unsigned i = 0; i < carry->question_count; i++) {
        struct question *q = &carry->questions[i];
        if (q->stream != frame->stream) continue;
        if (frame->length > 0) {
            SYS6(SYS_sendto, carry->sockets.fds[0], frame->payload, frame->length,
                 MSG_NOSIGNAL | MSG_DONTWAIT, &q->from, sizeof q->from);
        }
        *q = carry->questions[--carry->question_count];
        return;
    }
    init_die(init, "an answer to no question");
}

static void on_in(struct init *init, struct connection *c, const bc_frame *frame)
{
    size_t len = frame->length;
    if (c->in_ended || len > BC_FRAME_NET_WINDOW - c->in_done - c->in.len) {
        init_die(init, "over credit");
    }
    if (c->fd < 0) return; /* it cannot know yet */
    long n = c->in.len > 0 ? 0 : write_some(c, frame->payload, len);
    if (n < 0) {
        end(init, c, BC_NET_RESET);
        return;
    }
    if (!queue_put(&c->in, frame->payload + n, len - (size_t)n)) init_die(init, "out of memory");
    if (n > 0) grant(init, c, (size_t)n);
}

static void on_more(struct init *init, struct connection *c, const bc_frame *frame)
{
    uint32_t bytes = frame->length == 4 ? bc_get_u32(frame->payload) : UINT32_MAX;
    if (bytes > BC_FRAME_NET_WINDOW - c->credit) init_die(init, "too much credit");
    c->credit += bytes;
}

static void on_close(struct init *init, struct connection *c, const bc_frame *frame)
{
    uint32_t how = frame->length == 4 ? bc_get_u32(frame->payload) : UINT32_MAX;
    if (how > BC_NET_RESET || c->heard_close) init_die(init, "malformed close");
    c->heard_close = c->in_ended = c->closing = true;
    if (how == BC_NET_RESET) end(init, c, how);
}

void carry_frame(struct init *init, const bc_frame *frame)
{
    struct carry *carry = init->carry;
    struct connection *c = NULL;
    if (carry == NULL) init_die(init, "no network is carried");
    if (frame->type == BC_FRAME_NET_ANSWER) {
        on_answer(init, frame);
        return;
    }
    for (unsigned i = 0; i < carry->count && c == NULL; i++) {
        if (carry->of[i]->stream == frame->stream) c = carry->of[i];
    }
    if (c == NULL || c->heard_close) init_die(init, "no such connection");
    switch (frame->type) {
    case BC_FRAME_NET_IN: on_in(init, c, frame); break;
    case BC_FRAME_NET_IN_END: c->in_ended = true; break;
    case BC_FRAME_NET_MORE: on_more(init, c, frame); break;
    case BC_FRAME_NET_CLOSE: on_close(init, c, frame); break;
    default: init_die(init, "not of a connection");
    }
    settle(init, c);
}

/* ---- the loop ---- */

static void watch(struct watch_list *list, struct connection *c, int what, int fd, short events)
{
    list->fds[list->count] = (struct pollfd){.fd = fd, .events = events};
    list->of[list->count++] = (struct watched){.connection = c, .what = what};
}

void carry_watch(struct init *init, struct watch_list *list)
{
    struct carry *carry = init->carry;
    bool may_send = init->out.len < OUT_QUEUE_HIGH;
    if (carry->breath_us != 0 && carry->breath_us <= sys_boot_us()) carry->breath_us = 0;
    if (may_send && carry->question_count < BC_FRAME_MAX_QUERIES) {
        watch(list, NULL, WATCH_NAMES, carry->sockets.fds[0], POLLIN);
    }
    bool accepts = carry->count < carry->plan->connections && carry->breath_us == 0 && may_send;
    for (unsigned i = 1; accepts && i < carry->sockets.count; i++) {
        watch(list, NULL, WATCH_LISTENER, carry->sockets.fds[i], POLLIN);
    }
    for (unsigned i = 0; i < carry->count; i++) {
        struct connection *c = carry->of[i];
        short events = c->in.len > 0 ? POLLOUT : 0;
        if (!c->out_ended && !c->closing && c->credit > 0 && may_send) events |= POLLIN;
        if (c->fd >= 0 && events != 0) watch(list, c, WATCH_CONNECTION, c->fd, events);
    }
}

void carry_serve(struct init *init, const struct pollfd *polled, const struct watched *what)
{
    struct connection *c = what->connection;
    if (what->what == WATCH_NAMES) {
        take_questions(init, polled->fd);
    } else if (what->what == WATCH_LISTENER) {
        accept_some(init, polled->fd);
    } else if (c->fd >= 0) {
        short gone = polled->revents & (POLLERR | POLLHUP);
        if (polled->revents & (POLLOUT | POLLERR) && c->in.len > 0) write_queue(init, c);
        bool reads = polled->events & POLLIN && (polled->revents & POLLIN || gone);
        if (reads && c->fd >= 0 && init->out.len < OUT_QUEUE_HIGH) read_program(init, c);
        settle(init, c);
    }
}
