/* Tasks as scripts see them: spawn, wait, cancel, sleep. */
#include <lauxlib.h>
#include <string.h>
#include "base/clock.h"
#include "errors.h"
#include "host.h"
#include "task.h"
#include "watchdog.h"

/* ---- joining ---- */

struct join {
    bl_op op; /* first */
    bl_task *task;
    struct join *next, *prev; /* of all that wait for the same task */
    int linked;
};

static void unlink_join(struct join *join)
{
    if (!join->linked) return;
    join->linked = 0;
    if (join->prev != NULL)
        join->prev->next = join->next;
    else
        join->task->joiners = (bl_op *)join->next;
    if (join->next != NULL) join->next->prev = join->prev;
}

void bl_task_wake_joiners(bl_task *task)
{
    while (task->joiners != NULL) {
        bl_op *op = task->joiners;
        unlink_join((struct join *)op);
        bl_op_ready(op);
    }
}

static void add_join(struct join *join, bl_task *task)
{
    join->task = task;
    join->next = (struct join *)task->joiners;
    if (join->next != NULL) join->next->prev = join;
    task->joiners = &join->op;
    join->linked = 1;
}

static void forget_join(bl_op *op)
{
    unlink_join((struct join *)op);
    bl_op_unref(op);
}

/* true and what the task returned, or false and what it threw. */
static int push_results(lua_State *L, bl_task *task, int handle)
{
    task->seen = 1;
    if (lua_getiuservalue(L, handle, BL_TASK_RESULTS) != LUA_TTABLE) { /* they could not be kept */
        lua_pushboolean(L, 0);
        lua_pushliteral(L, "not enough memory");
        return 2;
    }
    lua_pushboolean(L, !task->failed);
    lua_insert(L, -2);
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

static bl_task *check_task(lua_State *L, int index, const char *method)
{
    bl_task *task = luaL_testudata(L, index, BL_TASK_META);
    if (task == NULL) bl_misuse(L, "%s: call it with ':', as task:%s(…)", method, method);
    return task;
}

/* task:wait() -> true, results… | false, error */
static int l_task_wait(lua_State *L)
{
    bl_task *task = check_task(L, 1, "wait");
    if (!lua_isnoneornil(L, 2)) {
        return bl_misuse(L, "wait: a task is waited for without an argument, to its end");
    }
    lua_settop(L, 1);
    if (task->ended) return push_results(L, task, 1);
    if (task == task->state->current) return bl_misuse(L, "a task cannot wait for itself");
    struct join *join = lua_newuserdatauv(L, sizeof *join, 1);
    memset(join, 0, sizeof *join);
    bl_op_init(L, 2, &join->op, forget_join);
    lua_pushvalue(L, 1);
    lua_setiuservalue(L, 2, 1); /* the join keeps the task's handle */
    add_join(join, task);
    return bl_wait_tasks(L, &join->op, finish_join);
}

static int l_task_cancel(lua_State *L)
{
    bl_task_cancel(check_task(L, 1, "cancel"));
    return 0;
}

/* task:status() -> "running" | "done" | "failed" */
static int l_task_status(lua_State *L)
{
    bl_task *task = check_task(L, 1, "status");
    lua_pushstring(L, !task->ended ? "running" : task->failed ? "failed" : "done");
    return 1;
}

static int l_task_close(lua_State *L)
{
    bl_task_cancel(luaL_checkudata(L, 1, BL_TASK_META));
    return 0;
}

/* A failure that nobody waited for must not vanish. */
static int l_task_gc(lua_State *L)
{
    bl_task *task = luaL_checkudata(L, 1, BL_TASK_META);
    if (!task->failed || task->seen || task->cancelled || task->on_end != NULL) return 0;
    if (task->state->rt == NULL || lua_getiuservalue(L, 1, BL_TASK_RESULTS) != LUA_TTABLE) return 0;
    lua_rawgeti(L, -1, 1);
    lua_pushfstring(L, "a task failed and nobody waited for it: %s", luaL_tolstring(L, -1, NULL));
    bl_log(task->state, BARCHAN_LOG_WARN, lua_tostring(L, -1));
    return 0;
}

static int l_task_tostring(lua_State *L)
{
    bl_task *task = luaL_checkudata(L, 1, BL_TASK_META);
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

/* spawn_apart(fn, …) -> task; like spawn, but no task's own: it ends with what it waits for */
static int l_spawn_apart(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TFUNCTION);
    bl_task_set_apart(bl_task_spawn(L, lua_gettop(L) - 1, NULL, NULL));
    return 1;
}

/* spawn_within(seconds, fn, …) -> task; like spawn, but it and what it spawns are stopped when they
 * still run, and do not wait, after this. Who waits is to be cancelled before. */
static int l_spawn_within(lua_State *L)
{
    lua_Number seconds = luaL_checknumber(L, 1);
    luaL_argcheck(L, seconds > 0 && seconds <= 1e10, 1, "seconds up to 1e10 expected");
    luaL_checktype(L, 2, LUA_TFUNCTION);
    lua_remove(L, 1);
    bl_task *task = bl_task_spawn(L, lua_gettop(L) - 1, NULL, NULL);
    bl_task_within(task, bc_clock_us() + (int64_t)(seconds * 1e6));
    return 1;
}

/* spawn_load(fn, …) -> task; like spawn, for the top level of scripts: its slices are limited in
 * any state */
static int l_spawn_load(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TFUNCTION);
    bl_task *task = bl_task_spawn(L, lua_gettop(L) - 1, NULL, NULL);
    task->loads = 1;
    bl_watchdog_watch(task->co);
    return 1;
}

/* cancelled() -> whether the current task has been cancelled */
static int l_cancelled(lua_State *L)
{
    bl_task *task = bl_state_of(L)->current;
    lua_pushboolean(L, task != NULL && bl_task_cancelled(task));
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
    luaL_newmetatable(L, BL_TASK_META);
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
                                         {"spawn_apart", l_spawn_apart},
                                         {"spawn_load", l_spawn_load},
                                         {"spawn_within", l_spawn_within},
                                         {"sleep", l_sleep},
                                         {"cancelled", l_cancelled},
                                         {NULL, NULL}};
    lua_newtable(L);
    luaL_setfuncs(L, functions, 0);
    bl_push_coroutine_library(L);
    lua_setfield(L, -2, "coroutine");
    lua_setfield(L, -2, "task");
}
