/* Tasks as scripts see them: spawn, wait, cancel, sleep. */
#include "task.h"

#include <lauxlib.h>
#include <string.h>
#include "call.h"
#include "errors.h"
#include "watchdog.h"

#define TASK_META "barchan.task"
enum { VALUE_THREAD = 1, VALUE_RESULTS = 2 }; /* user values of a task */

#if LUA_VERSION_RELEASE_NUM >= 50406
#define reset_thread(co, from) lua_closethread(co, from)
#else
#define reset_thread(co, from) lua_resetthread(co)
#endif

/* ---- the life of a task ---- */

static void link_task(bl_state *state, bl_task *task)
{
    task->next = state->tasks;
    if (state->tasks != NULL) state->tasks->prev = task;
    state->tasks = task;
}

static void unlink_task(bl_task *task)
{
    if (task->prev != NULL)
        task->prev->next = task->next;
    else
        task->state->tasks = task->next;
    if (task->next != NULL) task->next->prev = task->prev;
    task->next = task->prev = NULL;
}

bl_task *bl_task_spawn(lua_State *L, int nargs, bl_task_end_fn on_end, void *ud)
{
    bl_state *state = bl_state_of(L);
    if (state->closing) luaL_error(L, "this Lua state is being closed");
    int base = lua_gettop(L) - nargs; /* the function */
    bl_task *task = lua_newuserdatauv(L, sizeof *task, 2);
    memset(task, 0, sizeof *task);
    task->ended = 1; /* until it is complete */
    luaL_setmetatable(L, TASK_META);
    task->state = state;
    task->co = lua_newthread(L);
    lua_setiuservalue(L, -2, VALUE_THREAD);
    bl_mark_waiting(L, task->co, 1); /* nobody but the scheduler resumes it */
    lua_pushvalue(L, -1);
    task->self_ref = luaL_ref(L, LUA_REGISTRYINDEX);
    lua_insert(L, base); /* the handle below the function */
    if (!lua_checkstack(task->co, nargs + LUA_MINSTACK)) luaL_error(L, "too many arguments");
    lua_xmove(L, task->co, nargs + 1);
    task->nargs = nargs;
    task->parent = state->current;
    task->on_end = on_end;
    task->ud = ud;
    task->ended = 0;
    link_task(state, task);
    bl_task_make_ready(task);
    return task;
}

static int cancel_one(bl_task *task)
{
    if (task->ended || task->cancelled) return 0;
    task->cancelled = 1;
    if (task != task->state->current) bl_task_make_ready(task);
    return 1;
}

/* Newer tasks stand before older ones in the list, and parents are older than their children: so
 * passes repeat until nothing changes, without recursion however deep the tree is. */
void bl_task_cancel(bl_task *task)
{
    int changed = cancel_one(task);
    while (changed) {
        changed = 0;
        for (bl_task *other = task->state->tasks; other != NULL; other = other->next) {
            if (other->parent != NULL && other->parent->cancelled) changed |= cancel_one(other);
        }
    }
}

static void cancel_children(bl_task *parent)
{
    for (bl_task *task = parent->state->tasks; task != NULL; task = task->next) {
        if (task->parent != parent) continue;
        task->parent = NULL;
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
        if (task->failed) bl_add_traceback(L, co);
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
    lua_setiuservalue(L, -2, VALUE_RESULTS);
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
    store_results(task, nresults);
    unlink_task(task);
    if (task->on_end != NULL) task->on_end(task, task->co, status, nresults, task->ud);
    /* Runs what the coroutine left to be closed; its own errors have nowhere to go. */
    bl_task *before = state->current;
    state->current = task;
    bl_watchdog_closing(state);
    reset_thread(task->co, state->L);
    bl_watchdog_end(state);
    state->current = before;
    cancel_children(task);
    for (bl_op *join = task->joiners; join != NULL;) {
        bl_op *next = bl_join_next(join);
        bl_op_ready(join);
        join = next;
    }
    task->joiners = NULL;
    luaL_unref(state->L, LUA_REGISTRYINDEX, task->self_ref);
}

/* ---- joining ---- */

struct join {
    bl_op op; /* first */
    bl_task *task;
    bl_op *next;
};

bl_op *bl_join_next(bl_op *op)
{
    return ((struct join *)op)->next;
}

static void forget_join(bl_op *op)
{
    struct join *join = (struct join *)op;
    for (bl_op **at = &join->task->joiners; *at != NULL; at = &((struct join *)*at)->next) {
        if (*at != op) continue;
        *at = join->next;
        break;
    }
    bl_op_unref(op);
}

/* true and what the task returned, or false and what it threw. */
static int push_results(lua_State *L, bl_task *task, int handle)
{
    task->seen = 1;
    lua_pushboolean(L, !task->failed);
    if (lua_getiuservalue(L, handle, VALUE_RESULTS) != LUA_TTABLE) {
        lua_pop(L, 1);
        lua_pushliteral(L, "not enough memory");
        return 2;
    }
    int results = lua_gettop(L);
    lua_getfield(L, results, "n");
    int n = (int)lua_tointeger(L, -1);
    lua_pop(L, 1);
    luaL_checkstack(L, n, "too many results");
    for (int i = 1; i <= n; i++) {
        lua_rawgeti(L, results, i);
    }
    lua_remove(L, results);
    return n + 1;
}

static int finish_join(lua_State *L, bl_op *op)
{
    struct join *join = (struct join *)op;
    lua_rawgeti(L, LUA_REGISTRYINDEX, op->self_ref);
    lua_getiuservalue(L, -1, 1); /* the task's handle */
    bl_op_unref(op);
    return push_results(L, join->task, lua_gettop(L));
}

static bl_task *check_task(lua_State *L, int index)
{
    return luaL_checkudata(L, index, TASK_META);
}

/* task:wait() -> true, results… | false, error */
static int l_task_wait(lua_State *L)
{
    bl_task *task = check_task(L, 1);
    lua_settop(L, 1);
    if (task->ended) return push_results(L, task, 1);
    if (task == task->state->current) return luaL_error(L, "a task cannot wait for itself");
    struct join *join = lua_newuserdatauv(L, sizeof *join, 1);
    bl_op_init(L, 2, &join->op, forget_join);
    lua_pushvalue(L, 1);
    lua_setiuservalue(L, 2, 1); /* the join keeps the task's handle */
    join->task = task;
    join->next = task->joiners;
    task->joiners = &join->op;
    return bl_wait_tasks(L, &join->op, finish_join);
}

static int l_task_cancel(lua_State *L)
{
    bl_task_cancel(check_task(L, 1));
    return 0;
}

/* task:status() -> "running" | "done" | "failed" */
static int l_task_status(lua_State *L)
{
    bl_task *task = check_task(L, 1);
    lua_pushstring(L, !task->ended ? "running" : task->failed ? "failed" : "done");
    return 1;
}

static int l_task_close(lua_State *L)
{
    bl_task_cancel(check_task(L, 1));
    return 0;
}

/* A failure that nobody waited for must not vanish. */
static int l_task_gc(lua_State *L)
{
    bl_task *task = check_task(L, 1);
    if (!task->failed || task->seen || task->cancelled || task->on_end != NULL) return 0;
    if (task->state->rt == NULL || lua_getiuservalue(L, 1, VALUE_RESULTS) != LUA_TTABLE) return 0;
    lua_rawgeti(L, -1, 1);
    bc_log(task->state->rt, BARCHAN_LOG_WARN, "a task failed and nobody waited for it: %.900s",
           luaL_tolstring(L, -1, NULL));
    return 0;
}

static int l_task_tostring(lua_State *L)
{
    bl_task *task = check_task(L, 1);
    lua_pushfstring(L, "task (%s)", !task->ended ? "running" : task->failed ? "failed" : "done");
    return 1;
}

/* spawn(fn, …) -> task */
static int l_spawn(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TFUNCTION);
    bl_task_spawn(L, lua_gettop(L) - 1, NULL, NULL);
    return 1;
}

/* spawn_load(fn, …) -> task; like spawn, for the top level of scripts: its slices are limited in
 * any state */
static int l_spawn_load(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TFUNCTION);
    bl_task *task = bl_task_spawn(L, lua_gettop(L) - 1, NULL, NULL);
    task->loads = 1;
    if (lua_gethook(task->co) == NULL) bl_watchdog_watch(task->co);
    return 1;
}

/* cancelled() -> whether the current task has been cancelled */
static int l_cancelled(lua_State *L)
{
    bl_task *task = bl_state_of(L)->current;
    lua_pushboolean(L, task != NULL && task->cancelled);
    return 1;
}

/* ---- sleep ---- */

#define TIMER_META "barchan.timer"

struct sleep {
    bl_op op; /* first */
    bc_timer *timer;
};

static void on_timer(void *ud)
{
    struct sleep *sleep = ud;
    bl_op_ready(&sleep->op);
}

static void end_sleep(bl_op *op)
{
    struct sleep *sleep = (struct sleep *)op;
    bc_timer_close(sleep->timer);
    sleep->timer = NULL;
    bl_op_unref(op);
}

static int finish_sleep(lua_State *L, bl_op *op)
{
    (void)L;
    end_sleep(op);
    return 0;
}

static int l_timer_gc(lua_State *L)
{
    struct sleep *sleep = luaL_checkudata(L, 1, TIMER_META);
    bl_op_detach(&sleep->op);
    bc_timer_close(sleep->timer);
    sleep->timer = NULL;
    return 0;
}

/* sleep(seconds) */
static int l_sleep(lua_State *L)
{
    lua_Number seconds = luaL_checknumber(L, 1);
    luaL_argcheck(L, seconds >= 0 && seconds <= 1e9, 1, "seconds from 0 to 1e9 expected");
    struct sleep *sleep = lua_newuserdatauv(L, sizeof *sleep, 0);
    memset(sleep, 0, sizeof *sleep);
    luaL_setmetatable(L, TIMER_META);
    int index = lua_gettop(L);
    bl_op_init(L, index, &sleep->op, end_sleep);
    barchan_error err;
    if (bc_timer_open(&sleep->timer, sleep->op.state->rt, on_timer, sleep, &err) < 0) {
        bl_op_unref(&sleep->op);
        return bl_throw(L, err.code, err.message);
    }
    bc_timer_set(sleep->timer, (int64_t)(seconds * 1000 + 0.999));
    return bl_wait(L, &sleep->op, finish_sleep);
}

void bl_scheduler_open(lua_State *L)
{
    static const luaL_Reg methods[] = {
        {"wait", l_task_wait}, {"cancel", l_task_cancel}, {"status", l_task_status}, {NULL, NULL}};
    static const luaL_Reg meta[] = {{"__close", l_task_close},
                                    {"__gc", l_task_gc},
                                    {"__tostring", l_task_tostring},
                                    {NULL, NULL}};
    luaL_newmetatable(L, TASK_META);
    luaL_setfuncs(L, meta, 0);
    lua_pushliteral(L, "locked");
    lua_setfield(L, -2, "__metatable");
    luaL_newlib(L, methods);
    lua_setfield(L, -2, "__index");
    luaL_newmetatable(L, TIMER_META);
    lua_pushcfunction(L, l_timer_gc);
    lua_setfield(L, -2, "__gc");
    lua_pop(L, 2);
}

void bl_open_task(lua_State *L)
{
    static const luaL_Reg functions[] = {{"spawn", l_spawn},
                                         {"spawn_load", l_spawn_load},
                                         {"sleep", l_sleep},
                                         {"cancelled", l_cancelled},
                                         {NULL, NULL}};
    lua_newtable(L);
    luaL_setfuncs(L, functions, 0);
    bl_push_coroutine_library(L);
    lua_setfield(L, -2, "coroutine");
    lua_setfield(L, -2, "task");
}
