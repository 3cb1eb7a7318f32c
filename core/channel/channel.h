/*
 * The library's end of a channel: an outgoing queue and a reader on the loop. Frames from the
 * peer are given out only when they are whole and within the maxima of frame.h; what their
 * payloads mean is checked by whoever owns the stream.
 */
#ifndef BC_CHANNEL_CHANNEL_H
#define BC_CHANNEL_CHANNEL_H

#include "base/error.h"
#include "channel/frame.h"
#include "runtime/loop.h"

typedef struct bc_channel bc_channel;

typedef struct bc_channel_handler {
    /* Negative: the frame breaks the protocol; on_end follows. The payload is borrowed. */
    int (*on_frame)(void *ud, const bc_frame *frame);
    /* Called at most once, and not after bc_channel_close. `why` is NULL when the peer closed. */
    void (*on_end)(void *ud, const barchan_error *why);
    /* The most payload that the peer may send of a type, -1: none; NULL: the peer is a guest. */
    int64_t (*max_of)(uint32_t type);
    int asks; /* the peer asks us: one that does not read is not read from, nor answered */
    /* Nothing waits to be sent any more; may be NULL. */
    void (*on_sent)(void *ud);
} bc_channel_handler;

/* Takes `fd`, a stream socket, also when it fails. */
int bc_channel_open(bc_channel **out, barchan_runtime *rt, int fd,
                    const bc_channel_handler *handler, void *ud, barchan_error *err);
/* Queues a frame whose payload is `head` and `body` one after the other. */
int bc_channel_send(bc_channel *channel, uint32_t type, uint32_t stream, const void *head,
                    size_t head_len, const void *body, size_t body_len, barchan_error *err);
/* Reads and gives out what has arrived, now: after the peer's death, before it is acted upon. */
void bc_channel_read_now(bc_channel *channel);
/* How many bytes wait for the peer to read. */
size_t bc_channel_waiting(const bc_channel *channel);
/* May be called inside the handlers. NULL is ignored. */
void bc_channel_close(bc_channel *channel);

#endif
