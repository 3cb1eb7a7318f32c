/* The runtime's own struct, for the files of this room only. */
#ifndef BC_RUNTIME_LOOP_INTERNAL_H
#define BC_RUNTIME_LOOP_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <uv.h>
#include "loop.h"

typedef struct bc_post bc_post;

struct barchan_runtime {
    uv_loop_t loop;
    barchan_runtime_options options;
    char *guest_path;

    bc_defer ready; /* list head: what the next dispatch runs, in order */
    int dispatching;
    int pumping;  /* inside uv_run or a dispatch: no kick is needed */
    int waiting;  /* inside a uv_run that waits: it calls its timers first, and what one of them
                     schedules must not wait until something else happens, so it ends the wait */
    int changed;  /* a watch changed since libuv last saw them */
    int told;     /* the host's loop has been told that something is due */
    int ending;   /* being destroyed: nothing new may begin */
    int exported; /* the host has asked for the descriptor */
    int epoll_fd; /* of {libuv's descriptor, timer_fd}; -1 until asked for */
    int timer_fd;

    int post_fd; /* eventfd: posts, and kicks of our own */
    uv_poll_t post_poll;
    pthread_mutex_t post_lock;
    bc_post *posts, **posts_tail;
    atomic_size_t post_count; /* written under the lock; read by each pump */
    int posts_closed;         /* under the lock */

    bc_resident residents; /* list head */
    int holds;
    struct {
        void *data;
        void (*end)(void *data);
    } rooms[BC_ROOM_COUNT];

    /* A page of its own that the kernel wipes in a forked child: non-zero here, 0 there. */
    volatile unsigned char *fork_mark;
};

/* posts.c */
int bc_posts_open(barchan_runtime *rt, barchan_error *err);
int bc_posts_run(barchan_runtime *rt); /* returns how many */
int bc_posts_waiting(barchan_runtime *rt);
/* Refuses further posts and runs those that wait. */
void bc_posts_end(barchan_runtime *rt);
/* Makes the runtime's descriptors readable. */
void bc_runtime_kick(barchan_runtime *rt);

/* Tells the runtime that a watch changed, or that something is due or will be at another time: the
 * host's loop must pump soon. */
void bc_runtime_changed(barchan_runtime *rt);
void bc_runtime_due(barchan_runtime *rt);

#endif
