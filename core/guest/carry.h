/*
 * The network of a sandbox whose sockets process 1 holds itself, because there is nobody who could
 * hand them to the library: connections become streams of the channel, questions to the name
 * service frames (channel/carried.h). Nothing is decided here.
 */
#ifndef GUEST_CARRY_H
#define GUEST_CARRY_H

#include <netinet/in.h>
#include "init.h"

/* A connection that a program of the sandbox has made. */
struct connection {
    uint32_t stream;
    int fd;           /* -1: closed */
    struct queue in;  /* from the library, for the program */
    uint32_t credit;  /* how much may still be sent to the library */
    uint32_t in_done; /* written to the program, no credit given for it yet */
    bool in_ended, in_shut, out_ended;
    bool closing; /* the library has closed it: it ends when the program has what was sent */
    bool said_close, heard_close;
};

struct question {
    uint32_t stream;
    struct sockaddr_in from;
};

struct carry {
    const bc_network_plan *plan;
    struct network_sockets sockets;
    uint32_t last_stream;
    unsigned count, question_count;
    struct connection *of[BC_FRAME_MAX_CONNECTIONS];
    struct question questions[BC_FRAME_MAX_QUERIES];
    int64_t breath_us; /* nothing is accepted before, for want of descriptors or memory; 0: now */
};

/* Takes the sockets; NULL: out of memory. */
struct carry *carry_new(const struct plan *plan);
/* Adds what it waits for. */
void carry_watch(struct init *init, struct watch_list *list);
/* Something that it waits for has happened. */
void carry_serve(struct init *init, const struct pollfd *polled, const struct watched *what);
void carry_frame(struct init *init, const bc_frame *frame);

#endif
