/*
 * The channel's format, shared by the library and the guest; nothing here but libc.
 *
 * A channel is a byte stream that carries frames:
 *
 *     u32 length of the payload | u8 type | 3 zero bytes | u32 stream | payload
 *
 * All numbers are little-endian and written byte by byte: no struct goes on the wire. Strings are
 * u32 length, the bytes, and a NUL that the length does not count, so that a reader can use them
 * in place. Stream 0 is the sandbox itself; every exec and file operation has a stream of its
 * own, numbered by the library from 1 upwards and never used twice; the guest's own, for the
 * network that it carries, are in carried.h.
 *
 * Flow control: on each data direction of a stream the sender starts with BC_FRAME_WINDOW bytes
 * of credit and may send no more than it has; the receiver grants credit as it consumes.
 *
 * The guest is hostile to the library's end: everything it sends is checked against the maxima
 * here before it is used. The launcher's control messages use the same encoding. What stands in
 * the payloads is in messages.h.
 */
#ifndef BC_CHANNEL_FRAME_H
#define BC_CHANNEL_FRAME_H

#include <stdint.h>
#include <string.h>

#define BC_FRAME_VERSION 1u /* bumped when an old peer could misread a new one */
#define BC_FRAME_HEADER 12u
/* Data frames: large enough that headers do not matter, small enough to interleave streams. */
#define BC_FRAME_MAX_DATA 65536u
/* Anything else from the guest; the largest is BC_FRAME_READY. */
#define BC_FRAME_MAX_FROM_GUEST BC_FRAME_MAX_DATA
/* A request with all its arguments and environment: above the kernel's own limit for execve. */
#define BC_FRAME_MAX_TO_GUEST (4u << 20)
/* Per data direction of a stream: hides a scheduling delay at full pipe speed. */
#define BC_FRAME_WINDOW (256u << 10)
/* Per argument list: what execve accepts is bounded by bytes, this bounds the array. */
#define BC_FRAME_MAX_STRINGS 65536u
/* Execs and file operations of one sandbox at a time: each costs descriptors in process 1. */
#define BC_FRAME_MAX_STREAMS 256u
/* PATH_MAX of Linux, with its NUL. */
#define BC_FRAME_MAX_PATH 4096u
#define BC_FRAME_MAX_MESSAGE 500u /* fits barchan_error.message */
#define BC_FRAME_MAX_LAYERS 32u
/* Of one profile; all of them, with two paths each, fit into one message to the launcher. */
#define BC_FRAME_MAX_MOUNTS 16u
/* Ports that lead out of a sandbox, and ranges of addresses that it reaches by number: with the
 * name service their sockets fit into one message (SCM_MAX_FD is 253). */
#define BC_FRAME_MAX_PORTS 64u
#define BC_FRAME_MAX_RANGES 64u
/* Carried connections of a sandbox; how many of them it may have at a time, its plan says: as many
 * as its profile allows (BC_EGRESS_MAX_CONNECTIONS), and those that a person is asked about, or
 * whose program is slow to take the last bytes. More wait in the kernel's queues. */
#define BC_FRAME_MAX_CONNECTIONS 4352u
/* Kept output per stream in the guest's memory. */
#define BC_FRAME_MAX_OUTPUT_LIMIT (256u << 20)

enum bc_frame_type {
    /* library to guest */
    BC_FRAME_HELLO = 1,     /* u32 version, u32 features */
    BC_FRAME_EXEC = 2,      /* see bc_exec_flags; i64 timeout ms, i64 grace ms, u64 out limit,
                               u64 err limit, u32 columns, u32 rows, string cwd, strings argv,
                               strings env */
    BC_FRAME_INPUT = 3,     /* bytes */
    BC_FRAME_INPUT_END = 4, /* empty */
    BC_FRAME_CREDIT = 5,    /* u8 BC_FRAME_OUT or BC_FRAME_ERR, u32 bytes */
    BC_FRAME_SIGNAL = 6,    /* u32 signal number */
    BC_FRAME_CANCEL = 7,    /* empty: kill it */
    BC_FRAME_FILE = 8,      /* u32 op, u32 flags, u32 mode, u32 depth, u64 offset, u64 limit,
                               string path, string new path */
    BC_FRAME_ASK = 9,       /* u32 bc_ask, u64 argument */
    BC_FRAME_RESIZE = 10,   /* u32 columns, u32 rows */
    /* Right after BC_FRAME_HELLO, to a guest that no launcher has started: as BC_CONTROL_START */
    BC_FRAME_BEGIN = 11,
    /* of a carried connection, see carried.h */
    BC_FRAME_NET_IN = 12,     /* bytes, at least one */
    BC_FRAME_NET_IN_END = 13, /* empty */
    BC_FRAME_NET_MORE = 14,   /* u32 bytes of credit for BC_FRAME_NET_OUT */
    BC_FRAME_NET_CLOSE = 15,  /* u32 bc_net_close */
    BC_FRAME_NET_ANSWER = 16, /* a DNS message, or nothing */
    /* guest to library */
    BC_FRAME_READY = 65,     /* u32 version, u32 features, u32 count, count times two strings:
                                layer and how it holds */
    BC_FRAME_FAILED = 66,    /* u32 status without its sign, u32 system error, string message */
    BC_FRAME_OUT = 67,       /* bytes */
    BC_FRAME_ERR = 68,       /* bytes */
    BC_FRAME_GRANT = 69,     /* u32 bytes of input credit */
    BC_FRAME_EXIT = 70,      /* see bc_exit */
    BC_FRAME_FILE_DONE = 71, /* u32 status, u32 system error (both 0: done), u64 bytes,
                                u64 size, u32 truncated, string what went wrong */
    BC_FRAME_ENDING = 72,    /* u32 bc_ending: process 1 ends the sandbox */
    BC_FRAME_ANSWER = 73,    /* as BC_FRAME_FAILED (both 0: done), then what was asked for */
    BC_FRAME_STATE = 74,     /* u32 1: the lease is over and process 1 has paused the sandbox */
    /* of a carried connection, see carried.h */
    BC_FRAME_NET_CONNECT = 75, /* u32 address (host byte order), u32 port: what it was made to */
    BC_FRAME_NET_OUT = 76,     /* bytes, at least one */
    BC_FRAME_NET_OUT_END = 77, /* empty */
    BC_FRAME_NET_GRANT = 78,   /* u32 bytes of credit for BC_FRAME_NET_IN */
    BC_FRAME_NET_CLOSED = 79,  /* u32 bc_net_close */
    BC_FRAME_NET_QUERY = 80,   /* a DNS message */
    /* library to launcher, one message each; the stream is the sandbox's tag */
    /* u32 bc_start_flags, i64 lease ms, i64 idle ms (0: none), bc_limits, string template, u32
     * count of mounts (the trees of a template first), each u32 bc_mount_mode, string source,
     * string target; bc_network_plan; with the guest's end of the channel as a descriptor */
    BC_CONTROL_START = 129,
    BC_CONTROL_KILL = 130,   /* empty */
    BC_CONTROL_EXTEND = 131, /* i64 ms from now to the end of the lease */
    /* launcher to library */
    BC_CONTROL_READY = 193,  /* string mode */
    BC_CONTROL_FAILED = 194, /* as BC_FRAME_FAILED: no sandbox can be made */
    /* With descriptors: the sandbox's name service, a datagram socket, then a listening socket for
     * each port of its plan, in that order. Before any process of it runs. */
    BC_CONTROL_LISTENERS = 196,
    BC_CONTROL_ENDED = 195 /* u32 wait status, u32 bc_ending, u32 counted, u64 user us, u64 system
                              us:   processor time, when it was counted */
};

/* Of a stream capped at `limit` bytes, how many are kept from its beginning. */
static inline uint64_t bc_output_head(uint64_t limit)
{
    return limit - limit / 2;
}

/* ---- numbers ---- */

static inline void bc_put_u32(unsigned char *at, uint32_t value)
{
    for (int i = 0; i < 4; i++) {
        at[i] = (unsigned char)(value >> (8 * i));
    }
}

static inline void bc_put_u64(unsigned char *at, uint64_t value)
{
    for (int i = 0; i < 8; i++) {
        at[i] = (unsigned char)(value >> (8 * i));
    }
}

static inline uint32_t bc_get_u32(const unsigned char *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static inline uint64_t bc_get_u64(const unsigned char *at)
{
    return (uint64_t)bc_get_u32(at) | (uint64_t)bc_get_u32(at + 4) << 32;
}

/* ---- headers ---- */

typedef struct bc_frame {
    uint32_t type;
    uint32_t stream;
    uint32_t length;
    const unsigned char *payload;
} bc_frame;

static inline void bc_frame_put_header(unsigned char *at, uint32_t type, uint32_t stream,
                                       uint32_t length)
{
    bc_put_u32(at, length);
    bc_put_u32(at + 4, type & 0xFF);
    bc_put_u32(at + 8, stream);
}

/* Reads the frame at the start of `data`: its whole size, 0 when more bytes are needed, -1 when
 * the bytes break the rules (found out as soon as the header is there). */
static inline int64_t bc_frame_parse(bc_frame *frame, const unsigned char *data, size_t len,
                                     int64_t (*max_of)(uint32_t type))
{
    if (len < BC_FRAME_HEADER) return 0;
    frame->length = bc_get_u32(data);
    frame->type = bc_get_u32(data + 4); /* the three zero bytes are its upper ones */
    frame->stream = bc_get_u32(data + 8);
    frame->payload = data + BC_FRAME_HEADER;
    int64_t max = max_of(frame->type);
    if (max < 0 || (int64_t)frame->length > max) return -1;
    if (len - BC_FRAME_HEADER < frame->length) return 0;
    return (int64_t)BC_FRAME_HEADER + (int64_t)frame->length;
}

/* ---- payloads: readers that never pass the end, writers that never overflow ---- */

typedef struct bc_wire_reader {
    const unsigned char *at, *end;
    int bad; /* sticky: something did not fit */
} bc_wire_reader;

static inline bc_wire_reader bc_wire_read(const bc_frame *frame)
{
    return (bc_wire_reader){.at = frame->payload, .end = frame->payload + frame->length};
}

static inline const unsigned char *bc_wire_take(bc_wire_reader *in, size_t len)
{
    if (in->bad || (size_t)(in->end - in->at) < len) {
        in->bad = 1;
        return NULL;
    }
    const unsigned char *at = in->at;
    in->at += len;
    return at;
}

static inline uint32_t bc_wire_u32(bc_wire_reader *in)
{
    const unsigned char *at = bc_wire_take(in, 4);
    return at == NULL ? 0 : bc_get_u32(at);
}

static inline uint64_t bc_wire_u64(bc_wire_reader *in)
{
    const unsigned char *at = bc_wire_take(in, 8);
    return at == NULL ? 0 : bc_get_u64(at);
}

/* A string of at most `max` bytes without an inner NUL, NUL-terminated in place; "" when bad. */
static inline const char *bc_wire_string(bc_wire_reader *in, size_t max)
{
    size_t len = bc_wire_u32(in);
    if (len > max) in->bad = 1;
    const unsigned char *at = bc_wire_take(in, in->bad ? 0 : len + 1);
    if (at == NULL || at[len] != 0 || memchr(at, 0, len) != NULL) {
        in->bad = 1;
        return "";
    }
    return (const char *)at;
}

/* Whether the payload was read whole and nothing was wrong. */
static inline int bc_wire_done(const bc_wire_reader *in)
{
    return !in->bad && in->at == in->end;
}

typedef struct bc_wire_writer {
    unsigned char *data;
    size_t len, cap;
    int full; /* sticky: it did not fit; nothing past the capacity was written */
} bc_wire_writer;

static inline void bc_wire_put(bc_wire_writer *out, const void *data, size_t len)
{
    if (out->full || out->cap - out->len < len) {
        out->full = 1;
        return;
    }
    if (len > 0) memcpy(out->data + out->len, data, len);
    out->len += len;
}

static inline void bc_wire_put_u32(bc_wire_writer *out, uint32_t value)
{
    unsigned char bytes[4];
    bc_put_u32(bytes, value);
    bc_wire_put(out, bytes, sizeof bytes);
}

static inline void bc_wire_put_u64(bc_wire_writer *out, uint64_t value)
{
    unsigned char bytes[8];
    bc_put_u64(bytes, value);
    bc_wire_put(out, bytes, sizeof bytes);
}

static inline void bc_wire_put_string(bc_wire_writer *out, const char *text, size_t len)
{
    bc_wire_put_u32(out, (uint32_t)len);
    bc_wire_put(out, text, len);
    bc_wire_put(out, "", 1);
}

#include "channel/messages.h"
#include "channel/carried.h"
#include "channel/pack.h"

/* The most payload a peer may send with this type; -1: it may not send this type. */
static inline int64_t bc_frame_max_from_guest(uint32_t type)
{
    switch (type) {
    case BC_FRAME_NET_QUERY: return BC_FRAME_MAX_QUERY;
    case BC_FRAME_NET_OUT: return BC_FRAME_NET_WINDOW;
    default: break;
    }
    return type >= BC_FRAME_READY && type <= BC_FRAME_NET_QUERY ? (int64_t)BC_FRAME_MAX_FROM_GUEST
                                                                : -1;
}

static inline int64_t bc_frame_max_to_guest(uint32_t type)
{
    switch (type) {
    case BC_FRAME_EXEC:
    case BC_FRAME_FILE: return BC_FRAME_MAX_TO_GUEST;
    case BC_FRAME_BEGIN: return BC_CONTROL_MAX_START;
    case BC_FRAME_NET_IN: return BC_FRAME_NET_WINDOW;
    case BC_FRAME_NET_ANSWER: return BC_FRAME_MAX_NAME_ANSWER;
    default: break;
    }
    return type >= BC_FRAME_HELLO && type <= BC_FRAME_NET_ANSWER ? (int64_t)BC_FRAME_MAX_DATA : -1;
}

#endif
