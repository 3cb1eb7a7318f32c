/* The life of a task: its start, its end, its cancellation. */
#include "task.h"

#include <lauxlib.h>
#include <string.h>
#include "bounds.h"
#include "call.h"
#include "errors.h"
#include "watchdog.h"

#if LUA_VERSION_RELEASE_NUM >= 50406
#define reset_thread(co, from) lua_closethread(co, from)
#else
#define reset_thread(co, from) lua_resetthread(co)
#endif

static void link_task(bl_state *state, bl_task *task)
{
    task->next = state->tasks;
    if (state->tasks != NULL) state->tasks->prev = task;
    state->tasks = task;
    state->task_count++;
}

static void unlink_task(bl_task *task)
{
    if (task->prev != NULL)
        task->prev->next = task->next;
    else
        task->state->tasks = task->next;
    if (task->next != NULL) task->next->prev = task->prev;
    task->next = task->prev = NULL;
    task->state->task_count--;
}

void bl_task_limit(bl_task *task, barchan_cancel *token, int64_t deadline_us)
{
    task->token = barchan_cancel_retain(token);
    task->deadline_us = deadline_us;
    int limited = token != NULL || deadline_us != 0;
    /* A hook that an operator's script has set by its debug library is its own. */
    if (limited && lua_gethook(task->co) == NULL) bl_watchdog_watch(task->co);
}

void bl_task_within(bl_task *task, int64_t own_deadline_us)
{
    if (own_deadline_us == 0 ||
        (task->own_deadline_us != 0 && task->own_deadline_us <= own_deadline_us))
        return;
    task->own_deadline_us = own_deadline_us;
    if (lua_gethook(task->co) == NULL) bl_watchdog_watch(task->co);
}

/* A child has the limits of its parent's call, and is cancelled with it. */
static void join_parent(bl_task *task, bl_task *parent)
{
    bl_task_limit(task, parent->token, parent->deadline_us);
    bl_task_within(task, parent->own_deadline_us);
    task->cancelled = parent->cancelled;
    task->parent = parent;
    task->next_sibling = parent->children;
    if (task->next_sibling != NULL) task->next_sibling->prev_sibling = task;
    parent->children = task;
}

static void leave_parent(bl_task *task)
{
    if (task->parent == NULL) return;
    if (task->prev_sibling != NULL)
        task->prev_sibling->next_sibling = task->next_sibling;
    else
        task->parent->children = task->next_sibling;
    if (task->next_sibling != NULL) task->next_sibling->prev_sibling = task->prev_sibling;
    task->parent = task->next_sibling = task->prev_sibling = NULL;
}

void bl_task_set_apart(bl_task *task)
{
    leave_parent(task);
}

int bl_task_cancelled(const bl_task *task)
{
    return task->cancelled || barchan_cancel_triggered(task->token);
}

bl_task *bl_task_spawn(lua_State *L, int nargs, bl_task_end_fn on_end, void *ud)
{
    bl_state *state = bl_state_of(L);
    if (state->closing) bl_misuse(L, "this Lua state is being closed");
    if (state->task_count >= BL_MAX_TASKS) {
        bl_misuse(L, "%d tasks have not ended: more cannot be spawned", (int)BL_MAX_TASKS);
    }
    int base = lua_gettop(L) - nargs; /* the function */
    bl_task *task = lua_newuserdatauv(L, sizeof *task, 2);
    memset(task, 0, sizeof *task);
    task->ended = 1; /* until it is complete */
    luaL_setmetatable(L, BL_TASK_META);
    task->state = state;
    task->co = lua_newthread(L);
    lua_setiuservalue(L, -2, BL_TASK_THREAD);
    bl_mark_waiting(L, task->co, 1); /* nobody but the scheduler resumes it */
    lua_pushvalue(L, -1);
    task->self_ref = luaL_ref(L, LUA_REGISTRYINDEX);
    lua_insert(L, base); /* the handle below the function */
    if (!lua_checkstack(task->co, nargs + LUA_MINSTACK)) luaL_error(L, "too many arguments");
    bl_push_body(L, 1);
    lua_xmove(L, task->co, 1);
    lua_xmove(L, task->co, nargs + 1);
    task->nargs = nargs + 1; /* the function is the body's first */
    task->on_end = on_end;
    task->ud = ud;
    task->ended = 0;
    if (state->current != NULL) join_parent(task, state->current);
    link_task(state, task);
    bl_task_make_ready(task);
    return task;
}

static void cancel_one(bl_task *task)
{
    if (task->ended || task->cancelled) return;
    task->cancelled = 1;
    if (task != task->state->current) bl_task_make_ready(task);
}

/* Without recursion, however deep the tree is. */
void bl_task_cancel(bl_task *task)
{
    for (bl_task *at = task;;) {
        cancel_one(at);
        if (at->children != NULL) {
            at = at->children;
            continue;
        }
        while (at != task && at->next_sibling == NULL)
            at = at->parent;
        if (at == task) return;
        at = at->next_sibling;
    }
}

static void cancel_children(bl_task *parent)
{
    while (parent->children != NULL) {
        bl_task *task = parent->children;
        leave_parent(task);
        bl_task_cancel(task);
    }
}

/* Keeps the results (or the error) of an ended task in its handle, for joiners that come later. */
static int keep_results(lua_State *L)
{
    bl_task *task = lua_touserdata(L, 1);
    lua_State *co = lua_touserdata(L, 2);
    int n = (int)lua_tointeger(L, 3);
    lua_rawgeti(L, LUA_REGISTRYINDEX, task->self_ref);
    luaL_checkstack(L, n, "too many results");
    lua_createtable(L, n, 1);
    for (int i = 1; i <= n; i++) {
        lua_pushvalue(co, -n + i - 1);
        lua_xmove(co, L, 1);
        lua_rawseti(L, -2, i);
    }
    if (task->failed && n == 0) {
        barchan_error err;
        bc_error_set(&err, BARCHAN_ECANCELLED, "the task was cancelled");
        bl_push_error(L, &err);
        lua_rawseti(L, -2, ++n);
    }
    lua_pushinteger(L, n);
    lua_setfield(L, -2, "n");
    lua_setiuservalue(L, -2, BL_TASK_RESULTS);
    return 0;
}

static void store_results(bl_task *task, int n)
{
    lua_State *L = task->state->L;
    if (!lua_checkstack(L, 8) || !lua_checkstack(task->co, 4)) return;
    lua_pushcfunction(L, keep_results);
    lua_pushlightuserdata(L, task);
    lua_pushlightuserdata(L, task->co);
    lua_pushinteger(L, n);
    if (bl_call_plain(L, 3, 0) != LUA_OK) lua_pop(L, 1);
}

void bl_task_ended(bl_task *task, int status, int nresults)
{
    bl_state *state = task->state;
    if (task->ended) return;
    task->ended = 1;
    if (task->waiting != NULL) { /* it ended in the midst of a wait */
        bl_op *op = task->waiting;
        task->waiting = NULL;
        op->waiter = NULL;
        if (op->cancel != NULL) op->cancel(op);
    }
    task->failed = status != LUA_OK;
    if (status == LUA_YIELD)
        nresults = 0; /* given up in a wait */
    else if (status != LUA_OK)
        nresults = 1;
    if (!state->closing) store_results(task, nresults);
    unlink_task(task);
    leave_parent(task);
    if (task->on_end != NULL) task->on_end(task, task->co, status, nresults, task->ud);
    /* Runs what the coroutine left to be closed; its own errors have nowhere to go. */
    bl_task *before = state->current;
    struct bl_passing *passing = state->passing;
    state->current = task;
    state->passing = NULL;
    bl_slice outer = bl_watchdog_begin(state, NULL);
    bl_watchdog_closing(state);
    reset_thread(task->co, state->L);
    bl_watchdog_end(state, &outer);
    state->current = before;
    state->passing = passing;
    cancel_children(task);
    bl_task_wake_joiners(task);
    barchan_cancel_release(task->token);
    task->token = NULL;
    luaL_unref(state->L, LUA_REGISTRYINDEX, task->self_ref);
}
