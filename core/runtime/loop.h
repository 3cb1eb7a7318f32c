/*
 * What the rooms of the core use of the runtime: descriptors to watch, timers, deferred calls,
 * cancel tokens, child processes and blocking waits.
 *
 * One rule carries everything: callbacks of libuv and curl only queue. What they queue is
 * dispatched by the pump after uv_run has returned, in order. So a callback of ours may start,
 * stop and close anything, itself included, and never runs inside a call that it did not make.
 *
 * A handle's close function takes effect at once: its callback does not run afterwards.
 */
#ifndef BC_RUNTIME_LOOP_H
#define BC_RUNTIME_LOOP_H

#include <stdint.h>
#include <barchan/runtime.h>
#include "base/error.h"

/* Fails unless the runtime may be used here: not NULL, not in a forked child, and not while it is
 * being destroyed (BARCHAN_ECLOSED). */
int bc_runtime_check(const barchan_runtime *rt, barchan_error *err);
/* 0 in a forked child, where nothing of the runtime may be ended or freed. */
int bc_runtime_is_own(const barchan_runtime *rt);

/* ---- deferred calls: run at the next dispatch. Embed one in a struct; zeroed is idle. ---- */

typedef struct bc_defer bc_defer;
typedef void (*bc_defer_fn)(bc_defer *defer);
struct bc_defer {
    bc_defer *next, *prev;
    barchan_runtime *rt;
    bc_defer_fn fn;
};

/* Queues it, unless it is queued already. */
void bc_defer_schedule(barchan_runtime *rt, bc_defer *defer, bc_defer_fn fn);
void bc_defer_cancel(bc_defer *defer);

/* The struct that embeds a member: `owner_of(defer, my_struct, defer)`. */
#define owner_of(pointer, type, member) ((type *)(void *)((char *)(pointer)-offsetof(type, member)))

/* ---- watched descriptors: level-triggered; the descriptor stays the caller's, and is made
 * non-blocking ---- */

enum { BC_READABLE = 1, BC_WRITABLE = 2, BC_HANGUP = 4 };

typedef struct bc_watch bc_watch;
/* `events` is what is ready; an error on the descriptor shows as both directions. */
typedef void (*bc_watch_fn)(void *ud, unsigned events);

int bc_watch_open(bc_watch **out, barchan_runtime *rt, int fd, bc_watch_fn fn, void *ud,
                  barchan_error *err);
/* What to wait for; 0: nothing. A new watch waits for nothing. */
int bc_watch_set(bc_watch *watch, unsigned events, barchan_error *err);
/* NULL is ignored. The descriptor may be closed right after. */
void bc_watch_close(bc_watch *watch);

/* ---- timers: one shot ---- */

typedef struct bc_timer bc_timer;
typedef void (*bc_timer_fn)(void *ud);

int bc_timer_open(bc_timer **out, barchan_runtime *rt, bc_timer_fn fn, void *ud,
                  barchan_error *err);
/* (Re)starts it; a negative time stops it. */
void bc_timer_set(bc_timer *timer, int64_t after_ms);
void bc_timer_close(bc_timer *timer);

/* ---- cancel tokens ---- */

typedef struct bc_cancel_watch bc_cancel_watch;
/* Calls fn once, in a dispatch, when the token is (or already was) triggered. A NULL token opens
 * nothing: *out is NULL and that is fine everywhere. */
int bc_cancel_watch_open(bc_cancel_watch **out, barchan_runtime *rt, barchan_cancel *cancel,
                         void (*fn)(void *ud), void *ud, barchan_error *err);
void bc_cancel_watch_close(bc_cancel_watch *watch);

/* ---- blocking waits ---- */

/* BARCHAN_EBUSY inside a callback. Blocking functions ask before they start anything. */
int bc_runtime_may_wait(barchan_runtime *rt, barchan_error *err);
/* Pumps until *done is not 0. BARCHAN_EBUSY inside a callback. */
int bc_runtime_wait(barchan_runtime *rt, const int *done, barchan_error *err);

/* How something started has ended, for the function that waits for it; its callback sets it. */
typedef struct bc_outcome {
    int done;
    barchan_error error; /* code 0: it succeeded */
} bc_outcome;

/* `err` is NULL when it succeeded. */
void bc_outcome_set(bc_outcome *outcome, const barchan_error *err);
/* Pumps until it is set, and gives its error. */
int bc_outcome_wait(const bc_outcome *outcome, barchan_runtime *rt, barchan_error *err);

/* ---- things that live on a runtime and end with it ---- */

/* Embed one. When the runtime is destroyed, `end` is called for each, newest first; it must
 * remove itself. After all of them the loop is pumped until `pending` is 0 or two seconds are over
 * (see bc_runtime_hold). */
typedef struct bc_resident bc_resident;
struct bc_resident {
    bc_resident *next, *prev;
    barchan_runtime *rt;
    void (*end)(bc_resident *resident);
};
void bc_resident_add(barchan_runtime *rt, bc_resident *resident, void (*end)(bc_resident *));
void bc_resident_remove(bc_resident *resident);
/* Counts work (dying processes, say) that destroy waits for, bounded. */
void bc_runtime_hold(barchan_runtime *rt);
void bc_runtime_release(barchan_runtime *rt);

/* One pointer per room, made on first use and ended with the runtime, after the residents; NULL
 * before and after. */
enum { BC_ROOM_SANDBOX, BC_ROOM_HTTP, BC_ROOM_COUNT };
void *bc_runtime_room(barchan_runtime *rt, int room);
void bc_runtime_set_room(barchan_runtime *rt, int room, void *data, void (*end)(void *data));

const barchan_runtime_options *bc_runtime_options(const barchan_runtime *rt);
void bc_log(barchan_runtime *rt, barchan_log_level level, const char *format, ...) BC_PRINTF(3, 4);

/* ---- SIGPIPE: around writes that cannot carry MSG_NOSIGNAL ---- */

typedef struct bc_sigpipe {
    int blocked, pending;
} bc_sigpipe;
void bc_sigpipe_block(bc_sigpipe *state);
void bc_sigpipe_restore(bc_sigpipe *state);

#endif
