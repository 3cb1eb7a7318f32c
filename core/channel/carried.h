/*
 * How the network of a sandbox travels when its guest holds the sockets: where the library cannot
 * be handed listeners, process 1 accepts, and each connection is a stream of the channel. Part of
 * frame.h, by which it is included.
 *
 * The guest opens these streams. Their numbers have BC_FRAME_CARRIED, which the library's never
 * have, rise, and are used once. A question to the name service is such a number with one answer,
 * which is empty when there is none. A connection goes through these, the guest's on the left:
 *
 *     BC_FRAME_NET_CONNECT
 *     BC_FRAME_NET_OUT …            BC_FRAME_NET_IN …           as far as credit goes
 *     BC_FRAME_NET_GRANT            BC_FRAME_NET_MORE           credit for the other's bytes
 *     BC_FRAME_NET_OUT_END          BC_FRAME_NET_IN_END         half closed: no more bytes
 *     BC_FRAME_NET_CLOSED           BC_FRAME_NET_CLOSE          the last of each side
 *
 * Either side may close at any time, at once and with a reset, or in order: when both directions
 * have ended, or, by the library, once the program has what was sent. Whoever is told so closes as
 * well. A connection is over, and has given its place free, when both have; so neither side is
 * ever told of one that it has forgotten.
 */
#ifndef BC_CHANNEL_CARRIED_H
#define BC_CHANNEL_CARRIED_H

#include "channel/frame.h"

#define BC_FRAME_CARRIED 0x80000000u
/* Per direction of a connection. What a slow side has not taken is held by the other end, for each
 * of some hundred connections: smaller than that of a command, of which there are fewer. As much
 * as one frame, and as the relay holds of a side (BC_FLOW_BYTES). */
#define BC_FRAME_NET_WINDOW BC_FRAME_MAX_DATA
/* Credit is given back in steps, not byte by byte. */
#define BC_FRAME_NET_CREDIT_STEP (BC_FRAME_NET_WINDOW / 4)
/* Questions that wait for their answers: a program asks two at a time. */
#define BC_FRAME_MAX_QUERIES 64u
/* A question and options; a longer one is none of a stub resolver's. */
#define BC_FRAME_MAX_QUERY 4096u
/* What every client of a name service takes. */
#define BC_FRAME_MAX_NAME_ANSWER 512u

/* Of BC_FRAME_NET_CLOSE and BC_FRAME_NET_CLOSED. */
enum bc_net_close { BC_NET_IN_ORDER = 0, BC_NET_RESET = 1 };

/* Whether a connection to this address and port is one that leads out. */
static inline int bc_network_leads(const bc_network_plan *plan, uint32_t address, uint32_t port)
{
    int routed = address >> (32 - BC_NETWORK_NAMES_PREFIX) ==
                 BC_NETWORK_NAMES >> (32 - BC_NETWORK_NAMES_PREFIX);
    for (uint32_t i = 0; !routed && i < plan->range_count; i++) {
        uint32_t rest = 32 - plan->ranges[i].prefix;
        routed = rest == 32 || (address ^ plan->ranges[i].address) >> rest == 0;
    }
    if (!routed || address >> 24 == 127) return 0; /* its own loopback, where nobody listens */
    for (uint32_t i = 0; i < plan->port_count; i++) {
        if (plan->ports[i] == port) return 1;
    }
    return 0;
}

#endif
