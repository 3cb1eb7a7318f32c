#include "channel.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/buf.h"
#include "base/limits.h"

#define READ_BYTES (256u << 10)
/* Per wake-up, so that one busy sandbox does not starve the others on the loop. */
#define READS_PER_TURN 4

struct bc_channel {
    int fd;
    bc_watch *watch;
    const bc_channel_handler *handler;
    void *ud;
    bc_buf in, out;
    int held;    /* frames have come that are not given out: see may_read */
    int drained; /* what has come is given out in any case: it is the last */
    int entered; /* handlers on the stack: closing frees when they have returned */
    int closed;
};

static void free_channel(bc_channel *channel)
{
    bc_buf_clear(&channel->in);
    bc_buf_clear(&channel->out);
    free(channel);
}

/* Stops everything; the memory stays until the handlers have returned. */
static void shut(bc_channel *channel)
{
    if (channel->closed) return;
    channel->closed = 1;
    bc_watch_close(channel->watch);
    channel->watch = NULL;
    close(channel->fd);
    channel->fd = -1;
}

void bc_channel_close(bc_channel *channel)
{
    if (channel == NULL) return;
    channel->handler = NULL;
    shut(channel);
    if (channel->entered == 0) free_channel(channel);
}

static void leave(bc_channel *channel)
{
    channel->entered--;
    if (channel->entered == 0 && channel->handler == NULL) free_channel(channel);
}

static void end(bc_channel *channel, const barchan_error *why)
{
    const bc_channel_handler *handler = channel->handler;
    if (channel->closed) return;
    shut(channel);
    handler->on_end(channel->ud, why);
}

static void break_off(bc_channel *channel, const char *what)
{
    barchan_error why;
    bc_error_set(&why, BARCHAN_EPROTOCOL, "the sandbox broke the rules of its channel: %s", what);
    end(channel, &why);
}

/* Who asks and does not read what it is sent is not read from, nor answered: it could have us
 * answer it until the queue is full. An honest one always reads, whatever waits to be sent. */
static int may_read(const bc_channel *channel)
{
    return !channel->handler->asks || channel->drained || channel->out.len <= BC_CHANNEL_MAX_UNREAD;
}

static void want(bc_channel *channel)
{
    if (channel->closed) return;
    unsigned events = may_read(channel) && !channel->held ? BC_READABLE : 0;
    /* What is held goes on in a turn of its own. */
    bool writes = channel->out.len > 0 || channel->held;
    bc_watch_set(channel->watch, events | (writes ? BC_WRITABLE : 0), NULL);
}

static void flush(bc_channel *channel)
{
    while (!channel->closed && channel->out.len > 0) {
        ssize_t n = send(channel->fd, bc_buf_data(&channel->out), channel->out.len,
                         MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno == EINTR) continue;
        /* Any other failure is the peer's death; the reader reports it, after what it sent. */
        if (n < 0 && errno != EAGAIN) bc_buf_reset(&channel->out);
        if (n < 0) break;
        bc_buf_consume(&channel->out, (size_t)n);
    }
}

/* Gives out the whole frames of the buffer, as long as may_read; 0, or -1 when the channel ended.
 */
static int give_out(bc_channel *channel)
{
    for (;;) {
        channel->held = channel->in.len > 0 && !may_read(channel);
        if (channel->held) return 0;
        bc_frame frame;
        const bc_channel_handler *handler = channel->handler;
        int64_t size =
            bc_frame_parse(&frame, (unsigned char *)bc_buf_data(&channel->in), channel->in.len,
                           handler->max_of == NULL ? bc_frame_max_from_guest : handler->max_of);
        if (size == 0) return 0;
        if (size < 0) {
            break_off(channel, "a malformed frame");
            return -1;
        }
        int rc = handler->on_frame(channel->ud, &frame);
        if (channel->closed) return -1;
        if (rc < 0) {
            break_off(channel, "an unexpected frame");
            return -1;
        }
        bc_buf_consume(&channel->in, (size_t)size);
    }
}

/* 1: read something, 0: nothing there, -1: the channel ended. */
static int read_once(bc_channel *channel)
{
    char *room = bc_buf_reserve(&channel->in, READ_BYTES);
    if (room == NULL) {
        barchan_error why;
        bc_error_nomem(&why);
        end(channel, &why);
        return -1;
    }
    ssize_t n = recv(channel->fd, room, READ_BYTES, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
    if (n <= 0) {
        end(channel, NULL);
        return -1;
    }
    bc_buf_commit(&channel->in, (size_t)n);
    int rc = give_out(channel);
    if (rc < 0) return -1;
    return n == READ_BYTES && !channel->held ? 1 : 0;
}

static void on_ready(void *ud, unsigned events)
{
    bc_channel *channel = ud;
    channel->entered++;
    if (events & BC_WRITABLE) {
        flush(channel);
        if (!channel->closed && channel->out.len == 0 && channel->handler->on_sent != NULL) {
            channel->handler->on_sent(channel->ud);
        }
    }
    if (!channel->closed && channel->held) give_out(channel);
    if (!channel->closed && !channel->held && events & (BC_READABLE | BC_HANGUP)) {
        for (int i = 0; i < READS_PER_TURN; i++) {
            if (!may_read(channel) || read_once(channel) <= 0) break;
        }
    }
    want(channel);
    leave(channel);
}

void bc_channel_read_now(bc_channel *channel)
{
    channel->entered++;
    /* Whoever still has the other end can add nothing: there is an end to it. */
    shutdown(channel->fd, SHUT_RD);
    channel->drained = 1;
    if (channel->held) give_out(channel);
    while (!channel->closed && read_once(channel) > 0) {}
    leave(channel);
}

size_t bc_channel_waiting(const bc_channel *channel)
{
    return channel->closed ? 0 : channel->out.len;
}

int bc_channel_open(bc_channel **out, barchan_runtime *rt, int fd,
                    const bc_channel_handler *handler, void *ud, barchan_error *err)
{
    *out = NULL;
    bc_channel *channel = calloc(1, sizeof *channel);
    if (channel == NULL) {
        close(fd);
        return bc_error_nomem(err);
    }
    *channel = (bc_channel){.fd = fd, .handler = handler, .ud = ud};
    /* The reader keeps at most one incomplete frame besides what it reads at once. */
    bc_buf_init(&channel->in, (handler->max_of == NULL ? READ_BYTES : BC_FRAME_MAX_TO_GUEST) +
                                  BC_FRAME_HEADER + (size_t)READ_BYTES);
    bc_buf_init(&channel->out, BC_CHANNEL_MAX_QUEUE);
    int rc = bc_watch_open(&channel->watch, rt, fd, on_ready, channel, err);
    if (rc == 0) rc = bc_watch_set(channel->watch, BC_READABLE, err);
    if (rc < 0) {
        bc_channel_close(channel);
        return rc;
    }
    *out = channel;
    return 0;
}

int bc_channel_send(bc_channel *channel, uint32_t type, uint32_t stream, const void *head,
                    size_t head_len, const void *body, size_t body_len, barchan_error *err)
{
    unsigned char header[BC_FRAME_HEADER];
    size_t len = head_len + body_len;
    if (channel->closed) return bc_error_set(err, BARCHAN_ELOST, "the sandbox is gone");
    bc_frame_put_header(header, type, stream, (uint32_t)len);
    char *room = bc_buf_reserve(&channel->out, sizeof header + len);
    if (room == NULL) {
        return bc_error_set(err, BARCHAN_ELIMIT, "more than %u bytes wait for the sandbox",
                            BC_CHANNEL_MAX_QUEUE);
    }
    memcpy(room, header, sizeof header);
    if (head_len > 0) memcpy(room + sizeof header, head, head_len);
    if (body_len > 0) memcpy(room + sizeof header + head_len, body, body_len);
    bc_buf_commit(&channel->out, sizeof header + len);
    flush(channel);
    want(channel);
    return 0;
}
