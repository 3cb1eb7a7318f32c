#include "scheduler.h"

#include <stddef.h>
#include <string.h>
#include "base/clock.h"
#include "bounds.h"
#include "call.h"
#include "collector.h"
#include "errors.h"
#include "task.h"
#include "watchdog.h"

static const char sentinel;

void *bl_sentinel(void)
{
    return (void *)&sentinel;
}

/* ---- operations ---- */

void bl_op_init(lua_State *L, int index, bl_op *op, void (*cancel)(bl_op *op))
{
    memset(op, 0, sizeof *op);
    op->state = bl_state_of(L);
    op->cancel = cancel;
    lua_pushvalue(L, index);
    op->self_ref = luaL_ref(L, LUA_REGISTRYINDEX);
}

void bl_op_unref(bl_op *op)
{
    if (op->self_ref == 0) return;
    luaL_unref(op->state->L, LUA_REGISTRYINDEX, op->self_ref);
    op->self_ref = 0;
}

void bl_op_ready(bl_op *op)
{
    op->ready = 1;
    if (op->waiter != NULL) bl_task_make_ready(op->waiter);
}

void bl_op_detach(bl_op *op)
{
    bl_task *task = op->waiter;
    op->waiter = NULL;
    if (task == NULL) return;
    task->waiting = NULL;
    bl_task_make_ready(task);
}

static void cancel_op(bl_op *op)
{
    if (op->cancel != NULL) op->cancel(op);
}

static int wait_continued(lua_State *L, int status, lua_KContext context);

/* One step of a wait in a task: throws, finishes, or yields until the task is resumed. */
static int wait_step(lua_State *L, bl_op *op, bl_task *task)
{
    op->waiter = NULL;
    task->waiting = NULL;
    if (bl_task_cancelled(task)) {
        cancel_op(op);
        return bl_throw(L, BARCHAN_ECANCELLED, "the task was cancelled");
    }
    if (op->interrupted) {
        op->interrupted = 0;
        cancel_op(op);
        return bl_misuse(L, "cannot wait here: a coroutine was resumed where Lua cannot yield "
                            "(inside a sort, gsub or finalizer callback)");
    }
    if (op->ready) return op->finish(L, op);
    op->waiter = task;
    task->waiting = op;
    lua_pushlightuserdata(L, bl_sentinel());
    return lua_yieldk(L, 1, (lua_KContext)op, wait_continued);
}

static int wait_continued(lua_State *L, int status, lua_KContext context)
{
    bl_op *op = (bl_op *)context;
    bl_task *task = op->waiter;
    (void)status;
    /* Only the stock coroutine library lets this happen; the task's wait is not touched. */
    if (task == NULL || task != op->state->current) {
        return bl_misuse(L, "a coroutine that waits was resumed by something else than its task");
    }
    return wait_step(L, op, task);
}

/* lua.c and others interrupt a script by setting a hook from a signal handler; it cannot run
 * while C waits, so look for it. */
static void check_interrupt(lua_State *L, bl_op *op, lua_Hook before)
{
    lua_Hook now = lua_gethook(L);
    if (now == before || now == NULL) return;
    cancel_op(op);
    lua_sethook(L, NULL, 0, 0);
    luaL_error(L, "interrupted!");
}

static int pump_until_ready(lua_State *L, bl_op *op)
{
    lua_Hook before = lua_gethook(L);
    barchan_error err;
    while (!op->ready) {
        if (barchan_runtime_pump(op->state->rt, -1, &err) < 0) {
            cancel_op(op);
            bl_push_error(L, &err);
            return lua_error(L);
        }
        check_interrupt(L, op, before);
    }
    return op->finish(L, op);
}

/* pump_until_ready, protected, so that the count of plain waits is restored whatever happens. */
static int plain_wait(lua_State *L)
{
    return pump_until_ready(L, lua_touserdata(L, 1));
}

static int wait_outside(lua_State *L, bl_op *op)
{
    int top = lua_gettop(L);
    bl_state *state = op->state;
    lua_pushcfunction(L, plain_wait);
    lua_pushlightuserdata(L, op);
    state->plain_waits++;
    int status = bl_call_plain(L, 1, LUA_MULTRET);
    state->plain_waits--;
    if (state->plain_waits == 0) bl_schedule_run(state);
    if (status != LUA_OK) return lua_error(L);
    return lua_gettop(L) - top;
}

/* Whether every resumer between this coroutine and the task passes waits on. */
static int can_pass(const bl_state *state, lua_State *L)
{
    const bl_passing *passing = state->passing;
    while (L != state->current->co) {
        if (passing == NULL || passing->co != L) return 0;
        L = passing->from;
        passing = passing->outer;
    }
    return 1;
}

static int wait_in_task(lua_State *L, bl_op *op)
{
    bl_state *state = op->state;
    int waits = !op->ready && !bl_task_cancelled(state->current);
    if (waits && !lua_isyieldable(L)) {
        cancel_op(op);
        return bl_misuse(L, "cannot wait here: Lua cannot yield inside a sort, gsub or "
                            "finalizer callback");
    }
    if (waits && !can_pass(state, L)) {
        cancel_op(op);
        return bl_misuse(L, "cannot wait here: the coroutine library of this Lua does not pass "
                            "waits on; use barchan.coroutine in tasks");
    }
    return wait_step(L, op, state->current);
}

static void start_wait(lua_State *L, bl_op *op, bl_op_finish_fn finish)
{
    if (op->waiter != NULL) bl_misuse(L, "another task waits for this already");
    op->finish = finish;
}

int bl_wait(lua_State *L, bl_op *op, bl_op_finish_fn finish)
{
    start_wait(L, op, finish);
    if (op->state->current != NULL) return wait_in_task(L, op);
    if (op->ready) return finish(L, op);
    return wait_outside(L, op);
}

int bl_wait_tasks(lua_State *L, bl_op *op, bl_op_finish_fn finish)
{
    start_wait(L, op, finish);
    if (op->state->current != NULL) return wait_in_task(L, op);
    return pump_until_ready(L, op);
}

void bl_interrupt_wait(bl_state *state)
{
    bl_task *task = state->current;
    if (task != NULL && task->waiting != NULL) task->waiting->interrupted = 1;
}

/* ---- running tasks ---- */

static void run_deferred(bc_defer *defer)
{
    bl_run_ready(owner_of(defer, bl_state, run_defer));
}

void bl_schedule_run(bl_state *state)
{
    if (state->ready_first == NULL || state->running || state->closing) return;
    bc_defer_schedule(state->rt, &state->run_defer, run_deferred);
}

void bl_task_make_ready(bl_task *task)
{
    bl_state *state = task->state;
    if (task->is_ready || task->ended) return;
    task->is_ready = 1;
    task->ready_next = NULL;
    if (state->ready_last != NULL)
        state->ready_last->ready_next = task;
    else
        state->ready_first = task;
    state->ready_last = task;
    bl_schedule_run(state);
}

static bl_task *take_ready(bl_state *state)
{
    bl_task *task = state->ready_first;
    if (task == NULL) return NULL;
    state->ready_first = task->ready_next;
    if (state->ready_first == NULL) state->ready_last = NULL;
    task->is_ready = 0;
    return task;
}

static void give_up(bl_task *task, const void *why)
{
    if (!lua_checkstack(task->co, 1)) {
        bl_task_ended(task, LUA_YIELD, 0);
        return;
    }
    bl_watchdog_push_error(task->state->L, why);
    lua_xmove(task->state->L, task->co, 1);
    bl_task_ended(task, LUA_ERRRUN, 1);
}

/* Who waits hears by its wait that it is to end. Who has not begun, or gave others a turn, has no
 * place to hear it at, and ends here: it could do without waits for ever, and spawn others that
 * have not begun. */
static void resume(bl_state *state, bl_task *task)
{
    const void *why = task->waiting == NULL ? bl_watchdog_over(task) : NULL;
    if (why != NULL) {
        give_up(task, why);
        return;
    }
    int nresults = 0, nargs = task->nargs;
    bl_task *before = state->current;
    bl_passing *passing = state->passing;
    task->nargs = 0;
    state->current = task;
    state->passing = NULL;
    bl_slice outer = bl_watchdog_begin(state, task);
    int status = lua_resume(task->co, state->L, nargs, &nresults);
    state->current = before;
    state->passing = passing;
    task->used_us += bl_watchdog_end(state, &outer);
    if (status != LUA_YIELD) {
        bl_task_ended(task, status, nresults);
        return;
    }
    /* A wait, or a coroutine.yield of the task itself: the latter just gives others a turn. */
    int is_wait = nresults > 0 && lua_touserdata(task->co, -nresults) == bl_sentinel();
    lua_pop(task->co, nresults);
    if (!is_wait || (task->waiting != NULL && task->waiting->ready) || task->cancelled) {
        bl_task_make_ready(task);
    }
}

/* Runs each task that is ready now once, or as many as fit a turn; what is left and what becomes
 * ready meanwhile waits for the next dispatch, so that timers, sockets and the host get theirs. */
static int run_ready_protected(lua_State *L)
{
    bl_state *state = lua_touserdata(L, 1);
    bl_task *last = state->ready_last;
    int64_t end = bc_clock_us() + BL_TURN_US;
    for (bl_task *task = take_ready(state); task != NULL; task = take_ready(state)) {
        int was_last = task == last;
        resume(state, task);
        bl_collector_pace(L, state);
        if (was_last || bc_clock_us() > end) break;
    }
    return 0;
}

void bl_run_ready(bl_state *state)
{
    if (state->plain_waits > 0 || state->running || state->closing) return;
    lua_State *L = state->L;
    if (!lua_checkstack(L, 4)) return;
    state->running = 1;
    lua_pushcfunction(L, run_ready_protected);
    lua_pushlightuserdata(L, state);
    if (bl_call_plain(L, 1, 0) != LUA_OK) lua_pop(L, 1); /* out of memory between two tasks */
    state->running = 0;
    bl_schedule_run(state);
}

void bl_scheduler_close(bl_state *state)
{
    bc_defer_cancel(&state->run_defer);
    while (state->tasks != NULL) {
        state->tasks->cancelled = 1;
        bl_task_ended(state->tasks, LUA_YIELD, 0);
    }
    state->ready_first = state->ready_last = NULL;
}
