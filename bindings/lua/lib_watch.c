/* core.watch: directories of scripts that may change while an agent runs. */
#include <string.h>
#include "errors.h"
#include "handle.h"
#include "runtime/dir_watch.h"
#include "scheduler.h"

#define WATCH_META "barchan.core.watch"

struct dirs_watch {
    bl_op op; /* first: ready while a change has not been taken */
    bc_dir_watch *core;
};

static void on_change(void *ud)
{
    struct dirs_watch *self = ud;
    bl_op_ready(&self->op);
}

/* open(dirs) -> watch | nil, err */
static int l_watch_open(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 1);
    lua_createtable(L, 0, 1); /* bl_opt_strings reads a field */
    lua_pushvalue(L, 1);
    lua_setfield(L, 2, "dirs");
    const char *const *dirs = bl_opt_strings(L, 2, "dirs", 0);
    struct dirs_watch *self = lua_newuserdatauv(L, sizeof *self, 0);
    memset(self, 0, sizeof *self);
    self->op.state = bl_state_of(L);
    luaL_setmetatable(L, WATCH_META);
    barchan_error err;
    if (bc_dir_watch_open(&self->core, self->op.state->rt, dirs, on_change, self, &err) < 0) {
        return bl_fail(L, &err);
    }
    return 1;
}

static struct dirs_watch *check_watch(lua_State *L, int index)
{
    struct dirs_watch *self = luaL_checkudata(L, index, WATCH_META);
    if (self->core == NULL) luaL_error(L, "the watch is closed");
    return self;
}

static int finish_wait(lua_State *L, bl_op *op)
{
    (void)L;
    op->ready = 0;
    return 0;
}

/* watch:wait(): until something may have changed */
static int l_watch_wait(lua_State *L)
{
    struct dirs_watch *self = check_watch(L, 1);
    lua_settop(L, 1); /* keeps the handle while it is waited for */
    return bl_wait(L, &self->op, finish_wait);
}

static int finish_settle(lua_State *L, bl_op *op)
{
    (void)L;
    (void)op; /* changed tells */
    return 0;
}

/* watch:settle(): when something has just happened, until it is over (a second at most) */
static int l_watch_settle(lua_State *L)
{
    struct dirs_watch *self = check_watch(L, 1);
    lua_settop(L, 1);
    if (self->op.ready || self->op.waiter != NULL || !bc_dir_watch_pending(self->core)) return 0;
    return bl_wait(L, &self->op, finish_settle);
}

/* watch:changed() -> whether something may have changed since the last wait or changed */
static int l_watch_changed(lua_State *L)
{
    struct dirs_watch *self = check_watch(L, 1);
    lua_pushboolean(L, self->op.ready);
    self->op.ready = 0;
    return 1;
}

static int l_watch_close(lua_State *L)
{
    struct dirs_watch *self = luaL_checkudata(L, 1, WATCH_META);
    bl_op_ready(&self->op); /* whoever waits goes on */
    bl_op_detach(&self->op);
    bc_dir_watch_close(self->core);
    self->core = NULL;
    return 0;
}

void bl_open_watch(lua_State *L)
{
    static const luaL_Reg functions[] = {{"open", l_watch_open}, {NULL, NULL}};
    static const luaL_Reg methods[] = {{"wait", l_watch_wait},
                                       {"settle", l_watch_settle},
                                       {"changed", l_watch_changed},
                                       {"close", l_watch_close},
                                       {NULL, NULL}};
    bl_new_class(L, WATCH_META, methods, l_watch_close, NULL);
    luaL_newlib(L, functions);
    lua_setfield(L, -2, "watch");
}
