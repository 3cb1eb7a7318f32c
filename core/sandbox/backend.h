/*
 * How a sandbox is isolated and reached. A backend starts something at the other end of whose
 * byte stream a guest answers; everything after that goes over the channel and is the same for
 * all of them.
 */
#ifndef BC_SANDBOX_BACKEND_H
#define BC_SANDBOX_BACKEND_H

#include <stdint.h>
#include "base/error.h"
#include "channel/frame.h"
#include <barchan/sandbox.h>

typedef struct bc_backend {
    const char *name;
    /* Has the sandbox started; *channel_fd becomes the library's end of its channel. Failures
     * that show only later arrive by the channel or by bc_sandbox_gone. On success the backend
     * holds a reference to the sandbox until it reports it gone. */
    int (*start)(barchan_sandbox *sbx, int *channel_fd, barchan_error *err);
    /* Kills it; never waits; may be called more than once. bc_sandbox_gone follows. */
    void (*kill)(barchan_sandbox *sbx);
    /* The lease has a new end, sbx->lease_end_ms; process 1 knows. */
    void (*extend)(barchan_sandbox *sbx);
    /* Its guest accepts the connections of the sandbox's network, which then are streams of the
     * channel; 0: the library is handed the listeners. */
    int carries_network;
    /* Nobody has set the guest up: it is told by BC_FRAME_BEGIN what to do. */
    int tells_begin;
    /* The rest is for backends whose peer is no guest but a holder; NULL and 0 otherwise. */
    /* A frame about the sandbox itself that is no guest's; negative: it breaks the protocol. */
    int (*on_frame)(barchan_sandbox *sbx, const bc_frame *frame);
    uint32_t hello;                   /* the version that is said first */
    int64_t (*max_of)(uint32_t type); /* see bc_channel_handler */
    const char *verb;                 /* "create sandbox" */
    barchan_end_reason when_dropped;  /* NONE: destroying the handle terminates it */
} bc_backend;

extern const bc_backend bc_backend_namespace;

/* For backends: nothing of the sandbox runs any more. Drops the backend's reference. `why` is
 * NULL when there is nothing to add to `ending` (bc_ending). */
void bc_sandbox_gone(barchan_sandbox *sbx, uint32_t ending, const barchan_error *why);

#endif
