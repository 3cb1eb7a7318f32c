/*
 * Tasks and waits.
 *
 * A task is a coroutine that the scheduler resumes. Everything that waits goes through bl_wait:
 *  - in a task it yields a private sentinel, and other tasks run meanwhile; a coroutine that the
 *    script made passes the sentinel on to its resumer (coroutine.c) until it reaches the task;
 *  - outside a task it pumps the runtime, resuming no task;
 *  - where Lua cannot yield inside a task (a gsub or sort callback, a finalizer) it throws.
 *
 * An operation (bl_op) is what is waited for: a userdata that C marks ready from a callback.
 */
#ifndef BL_SCHEDULER_H
#define BL_SCHEDULER_H

#include "state.h"

typedef struct bl_op bl_op;

/* Pushes what the wait returns, on the Lua stack of whoever waits; called once, when the operation
 * is ready. It may throw, and finds everything through `op`, nothing at fixed stack indices. */
typedef int (*bl_op_finish_fn)(lua_State *L, bl_op *op);

struct bl_op {
    bl_state *state;
    bl_task *waiter;
    bl_op_finish_fn finish;
    void (*cancel)(bl_op *op); /* the waiter was cancelled: end the work; may be NULL */
    int ready;
    int interrupted; /* the wait cannot be carried through: throw instead */
    int self_ref;    /* keeps the userdata alive while C works on it */
};

/* Initialises an operation inside a userdata at `index`, and keeps it alive until bl_op_unref. */
void bl_op_init(lua_State *L, int index, bl_op *op, void (*cancel)(bl_op *op));
void bl_op_unref(bl_op *op);
/* From C callbacks: the waiter may go on. No Lua call, never throws. */
void bl_op_ready(bl_op *op);
/* The userdata that holds the operation is being collected or closed: whoever waits is woken. */
void bl_op_detach(bl_op *op);
/* Waits until the operation is ready, then returns what finish pushes. Use as
 * `return bl_wait(L, op, finish)`: it may yield. The userdata that holds the operation must be on
 * the caller's stack, or kept alive by bl_op_init. */
int bl_wait(lua_State *L, bl_op *op, bl_op_finish_fn finish);
/* The same outside tasks, but running tasks meanwhile: for waits on tasks. */
int bl_wait_tasks(lua_State *L, bl_op *op, bl_op_finish_fn finish);

/* The value that a passed-on wait yields. */
void *bl_sentinel(void);
/* One resumer that passes waits on, on the C stack of the running task. */
typedef struct bl_passing {
    lua_State *from, *co;
    struct bl_passing *outer;
} bl_passing;
/* Marks a coroutine as one that only its task may go on with: a task's own thread, or one in whose
 * midst a wait is. Pops nothing; throws (memory) when a mark is set. */
void bl_mark_waiting(lua_State *L, lua_State *co, int waiting);
int bl_is_waiting(lua_State *L, lua_State *co);
/* A resumer that cannot yield met the sentinel of coroutine `co`: has the wait in it throw. */
void bl_interrupt_wait(bl_state *state);

/* Called when a task has ended: with status LUA_OK the results are the top nresults values of co,
 * with LUA_YIELD it was given up in a wait, otherwise one error value is there. Must not throw. */
typedef void (*bl_task_end_fn)(bl_task *task, lua_State *co, int status, int nresults, void *ud);

/* Makes a task of the function and nargs arguments at the top of L (pops them), pushes its handle.
 * `on_end` may be NULL. It runs first in a later dispatch. Throws. */
bl_task *bl_task_spawn(lua_State *L, int nargs, bl_task_end_fn on_end, void *ud);
/* It does not end with the task that has spawned it. */
void bl_task_set_apart(bl_task *task);
/* Sticky; the task's current wait throws. */
void bl_task_cancel(bl_task *task);

void bl_scheduler_open(lua_State *L);
void bl_scheduler_close(bl_state *state);
/* coroutine.c: pushes a table like `coroutine` whose resume and wrap pass waits on. */
void bl_push_coroutine_library(lua_State *L);

#endif
