/* A task's own struct, for scheduler.c, task.c, lib_task.c and the engine. */
#ifndef BL_TASK_H
#define BL_TASK_H

#include "scheduler.h"

#define BL_TASK_META "barchan.task"
enum { BL_TASK_THREAD = 1, BL_TASK_RESULTS = 2 }; /* user values of a task's handle */

struct bl_task {
    bl_state *state;
    bl_task *next, *prev; /* of all that have not ended */
    bl_task *ready_next;
    bl_task *parent, *children, *next_sibling, *prev_sibling;
    lua_State *co;
    bl_op *waiting; /* what it waits for */
    bl_op *joiners; /* see struct join in lib_task.c */
    bl_task_end_fn on_end;
    void *ud;
    int64_t used_us; /* running time so far, where that is limited */
    /* Of the call that it belongs to: its children have them too. */
    barchan_cancel *token;   /* a reference of its own; may be NULL */
    int64_t deadline_us;     /* of the call from the host; 0: none */
    int64_t own_deadline_us; /* the script's own, when it runs past it without waiting; 0: none */
    int self_ref;            /* keeps the userdata alive until the task ends */
    int nargs;               /* for the first resume */
    int is_ready, ended, cancelled, failed;
    int loads; /* it runs the top level of scripts; see watchdog.h */
    int seen;  /* somebody got its outcome */
};

void bl_task_make_ready(bl_task *task);
/* Gives a new task the limits of a call; it retains the token. */
void bl_task_limit(bl_task *task, barchan_cancel *token, int64_t deadline_us);
/* It and what it spawns are stopped when they run past this, on the clock of base/clock.h. An
 * earlier one stays. */
void bl_task_within(bl_task *task, int64_t own_deadline_us);
/* Whether it, or the call that it belongs to, was cancelled: the next wait throws. */
int bl_task_cancelled(const bl_task *task);
/* The coroutine returned (LUA_OK), threw, or is given up (LUA_YIELD): closes it, tells who waits,
 * cancels the children. */
void bl_task_ended(bl_task *task, int status, int nresults);
void bl_task_wake_joiners(bl_task *task);
void bl_schedule_run(bl_state *state);
void bl_run_ready(bl_state *state);

#endif
