/*
 * The frames between the holder of a detached sandbox and those who are connected to it. They are
 * the channel's, numbered per connection, and these besides. The holder checks what a connection
 * sends before it passes it on: process 1 ends the sandbox over a malformed request, the holder
 * ends the connection.
 */
#ifndef BC_CHANNEL_HELD_H
#define BC_CHANNEL_HELD_H

#include "channel/frame.h"

/* Bumped when a holder and a client of different versions could misread each other. */
#define BC_HELD_VERSION 5u

enum bc_held_type {
    /* to the holder, on stream 0; first comes BC_FRAME_HELLO with BC_HELD_VERSION */
    BC_HELD_TERMINATE = 33, /* empty */
    /* from the holder, on stream 0 */
    BC_HELD_NEWS = 97,  /* see bc_held_news; before BC_HELD_READY, and whenever it changes */
    BC_HELD_READY = 98, /* u64 wall ms (0: no limit), string template, string layers (JSON),
                           strings env: what the profile adds to every command, bc_limits, i64
                           lease ms, i64 idle ms, u32 bc_start_flags; of the template a string, what
                           it is based on ("": it is no snapshot), u64 entries, u64 bytes;
                           u64 s, u32 ns: when the mounts were looked at, then they themselves as
                           in BC_FRAME_CREATE (u32 count, each u32 mode, source, target) */
    BC_HELD_ENDED = 99, /* u32 barchan_end_reason, bc_usage; nothing follows */
    /* from the holder, of a command, before its BC_FRAME_EXIT */
    BC_HELD_DENIED = 100,   /* what the network refused meanwhile: u64 refusals beyond these, u32
                               count, count times string host, string rule, u64 ms since 1970, u32
                               port, u32 tries */
    BC_HELD_UNREACHED = 101 /* the same of what was allowed and failed */
};

/* Questions that the holder answers itself. */
enum {
    BC_HELD_ASK_LOGS = 33,   /* the argument is a cursor; the answer: u64 dropped, u64 next, u32
                                count, count times u32 command, u32 BC_FRAME_OUT or _ERR,
                                u32 length, bytes */
    BC_HELD_ASK_FOLLOW = 34, /* the same, answered when there is something behind the cursor; who
                               has asked it hears BC_HELD_ENDED when all has been told. Asked again
                               before that, the earlier one is answered with nothing */
    BC_HELD_ASK_NETWORK = 35 /* the argument is how many hosts the asker has; the answer: u32 open
                               connections, u32 hosts in all, u32 count, count times string host,
                               u64 connections, denied, failed, bytes sent, bytes received */
};

/* All of a profile's variables; a command with more could not be started. */
#define BC_HELD_MAX_READY BC_FRAME_MAX_TO_GUEST

typedef struct bc_held_news {
    uint32_t paused;
    uint32_t running; /* commands of others */
    uint64_t age_ms, lease_left_ms, execs, bytes_in, bytes_out;
} bc_held_news;
#define BC_HELD_NEWS_BYTES (2u * 4u + 5u * 8u)

static inline void bc_wire_put_news(bc_wire_writer *out, const bc_held_news *n)
{
    bc_wire_put_u32(out, n->paused);
    bc_wire_put_u32(out, n->running);
    bc_wire_put_u64(out, n->age_ms);
    bc_wire_put_u64(out, n->lease_left_ms);
    bc_wire_put_u64(out, n->execs);
    bc_wire_put_u64(out, n->bytes_in);
    bc_wire_put_u64(out, n->bytes_out);
}

static inline void bc_wire_get_news(bc_wire_reader *in, bc_held_news *n)
{
    n->paused = bc_wire_u32(in);
    n->running = bc_wire_u32(in);
    n->age_ms = bc_wire_u64(in);
    n->lease_left_ms = bc_wire_u64(in);
    n->execs = bc_wire_u64(in);
    n->bytes_in = bc_wire_u64(in);
    n->bytes_out = bc_wire_u64(in);
}

static inline int64_t bc_held_max_to_holder(uint32_t type)
{
    return type == BC_HELD_TERMINATE ? 0 : bc_frame_max_to_guest(type);
}

static inline int64_t bc_held_max_from_holder(uint32_t type)
{
    if (type == BC_HELD_READY) return BC_HELD_MAX_READY;
    if (type == BC_HELD_NEWS || (type >= BC_HELD_ENDED && type <= BC_HELD_UNREACHED)) {
        return BC_FRAME_MAX_FROM_GUEST;
    }
    return bc_frame_max_from_guest(type);
}

#endif
