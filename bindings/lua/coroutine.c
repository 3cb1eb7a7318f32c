/*
 * coroutine.resume and coroutine.wrap that pass waits on: a wait inside a coroutine that the
 * script made yields the sentinel to its resumer, which yields it further until it reaches the
 * task, and resumes the coroutine when the task is resumed. To the script the wait is invisible.
 */
#include "scheduler.h"

#include <lauxlib.h>
#include <lualib.h>
#include "call.h"
#include "watchdog.h"

static int step(lua_State *L, lua_State *co, int nargs, int wrapped);

static lua_State *coroutine_of(lua_State *L, int wrapped)
{
    return lua_tothread(L, wrapped ? lua_upvalueindex(1) : 1);
}

static const char waiting_key; /* in the registry: a weak table, thread -> true */

void bl_mark_waiting(lua_State *L, lua_State *co, int waiting)
{
    luaL_checkstack(L, 4, "to mark a coroutine");
    lua_rawgetp(L, LUA_REGISTRYINDEX, &waiting_key);
    lua_pushthread(co);
    lua_xmove(co, L, 1);
    if (waiting)
        lua_pushboolean(L, 1);
    else
        lua_pushnil(L);
    lua_rawset(L, -3);
    lua_pop(L, 1);
}

int bl_is_waiting(lua_State *L, lua_State *co)
{
    luaL_checkstack(L, 4, "to look at a coroutine");
    if (!lua_checkstack(co, 1)) return 1;
    lua_rawgetp(L, LUA_REGISTRYINDEX, &waiting_key);
    lua_pushthread(co);
    lua_xmove(co, L, 1);
    int waiting = lua_rawget(L, -2) != LUA_TNIL;
    lua_pop(L, 2);
    return waiting;
}

static int step_continued(lua_State *L, int status, lua_KContext wrapped)
{
    lua_State *co = coroutine_of(L, (int)wrapped);
    (void)status;
    bl_mark_waiting(L, co, 0);
    return step(L, co, 0, (int)wrapped);
}

static int fail(lua_State *L, lua_State *co, int status, int wrapped)
{
    if (!wrapped) {
        lua_pushboolean(L, 0);
        lua_xmove(co, L, 1);
        return 2;
    }
    if (status != LUA_YIELD && status != LUA_OK && lua_status(co) > LUA_YIELD) {
        lua_resetthread(co); /* close its variables; leaves the error object */
    }
    lua_xmove(co, L, 1);
    if (lua_type(L, -1) == LUA_TSTRING) { /* say where it was called, as Lua does */
        luaL_where(L, 1);
        lua_insert(L, -2);
        lua_concat(L, 2);
    }
    return lua_error(L);
}

static int finish(lua_State *L, lua_State *co, int nresults, int wrapped)
{
    if (!lua_checkstack(L, nresults + 1)) {
        lua_pop(co, nresults);
        return luaL_error(L, "too many results to resume");
    }
    if (!wrapped) lua_pushboolean(L, 1);
    lua_xmove(co, L, nresults);
    return nresults + (wrapped ? 0 : 1);
}

static int step(lua_State *L, lua_State *co, int nargs, int wrapped)
{
    for (;;) {
        int nresults = 0;
        bl_state *state = bl_state_of(L);
        bl_passing passing = {L, co, state->passing};
        state->passing = &passing;
        int status = lua_resume(co, L, nargs, &nresults);
        state->passing = passing.outer;
        if (status != LUA_OK && status != LUA_YIELD) return fail(L, co, status, wrapped);
        int is_wait =
            status == LUA_YIELD && nresults > 0 && lua_touserdata(co, -nresults) == bl_sentinel();
        if (!is_wait) return finish(L, co, nresults, wrapped);
        lua_pop(co, nresults);
        if (lua_isyieldable(L)) {
            bl_mark_waiting(L, co, 1);
            lua_pushlightuserdata(L, bl_sentinel());
            return lua_yieldk(L, 1, wrapped, step_continued);
        }
        bl_interrupt_wait(state);
        nargs = 0;
    }
}

static int start(lua_State *L, lua_State *co, int first_argument, int wrapped)
{
    int nargs = lua_gettop(L) - first_argument + 1;
    if (bl_is_waiting(L, co)) {
        lua_pushboolean(L, 0);
        lua_pushliteral(L, "cannot resume a coroutine that waits: only its task can");
        return wrapped ? luaL_error(L, "%s", lua_tostring(L, -1)) : 2;
    }
    /* Each coroutine counts its own instructions: many short ones would never be looked at. */
    bl_watchdog_look(L);
    bl_watchdog_pass_on(L, co);
    if (!lua_checkstack(co, nargs)) return luaL_error(L, "too many arguments to resume");
    if (lua_status(co) == LUA_OK && lua_gettop(co) == 0) {
        lua_pushliteral(co, "cannot resume dead coroutine");
        return fail(L, co, LUA_OK, wrapped);
    }
    /* Not begun: below the arguments lies its function, and below that maybe its body. */
    int functions = lua_status(co) == LUA_OK ? lua_gettop(co) : 1;
    lua_xmove(L, co, nargs);
    return step(L, co, nargs + functions - 1, wrapped);
}

static int l_resume(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTHREAD);
    return start(L, lua_tothread(L, 1), 2, 0);
}

static int l_wrapped(lua_State *L)
{
    return start(L, coroutine_of(L, 1), 1, 1);
}

/* A new coroutine of the function at index 1. Where it may be stopped it runs in a body (call.h),
 * which is its first argument's place: see start. */
static lua_State *new_coroutine(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TFUNCTION);
    lua_State *co = lua_newthread(L);
    if (bl_state_of(L)->safe || lua_gethook(co) != NULL) bl_push_body(L, 0);
    lua_pushvalue(L, 1);
    lua_xmove(L, co, lua_gettop(L) - 2);
    return co;
}

static int l_create(lua_State *L)
{
    lua_settop(L, 1);
    new_coroutine(L);
    return 1;
}

static int l_wrap(lua_State *L)
{
    lua_settop(L, 1);
    new_coroutine(L);
    lua_pushcclosure(L, l_wrapped, 1);
    return 1;
}

/* coroutine.close, which would end a wait behind its task's back. Upvalue 1: Lua's own. */
static int l_close(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTHREAD);
    lua_State *co = lua_tothread(L, 1);
    if (bl_is_waiting(L, co)) {
        return luaL_error(L, "cannot close a coroutine that waits: cancel its task");
    }
    bl_watchdog_look(L);
    bl_watchdog_pass_on(L, co);
    lua_settop(L, 1);
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    bl_state *state = bl_state_of(L);
    bl_passing passing = {L, co, state->passing}; /* what it left to be closed runs in it */
    state->passing = &passing;
    int status = bl_call_plain(L, 1, LUA_MULTRET);
    state->passing = passing.outer;
    return status == LUA_OK ? lua_gettop(L) : lua_error(L);
}

void bl_push_coroutine_library(lua_State *L)
{
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &waiting_key) == LUA_TNIL) {
        lua_newtable(L);
        lua_createtable(L, 0, 1);
        lua_pushliteral(L, "k");
        lua_setfield(L, -2, "__mode");
        lua_setmetatable(L, -2);
        lua_rawsetp(L, LUA_REGISTRYINDEX, &waiting_key);
    }
    lua_pop(L, 1);
    luaopen_coroutine(L);
    lua_getfield(L, -1, "close");
    lua_pushcclosure(L, l_close, 1);
    lua_setfield(L, -2, "close");
    lua_pushcfunction(L, l_create);
    lua_setfield(L, -2, "create");
    lua_pushcfunction(L, l_resume);
    lua_setfield(L, -2, "resume");
    lua_pushcfunction(L, l_wrap);
    lua_setfield(L, -2, "wrap");
}
