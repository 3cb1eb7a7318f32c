#include "call.h"

#include <lauxlib.h>
#include <string.h>
#include "state.h"
#include "watchdog.h"

void bl_add_traceback(lua_State *L, lua_State *co)
{
    if (lua_type(L, -1) == LUA_TSTRING) {
        if (strcmp(lua_tostring(L, -1), "not enough memory") == 0)
            return; /* Lua's own; see errors.c */
        luaL_traceback(L, co, lua_tostring(L, -1), co == L ? 1 : 0);
        lua_remove(L, -2);
        return;
    }
    if (!lua_istable(L, -1)) return;
    lua_pushliteral(L, "traceback");
    if (lua_rawget(L, -2) == LUA_TNIL && lua_getmetatable(L, -2)) {
        lua_pop(L, 1);
        lua_pushliteral(L, "traceback");
        luaL_traceback(L, co, NULL, co == L ? 1 : 0);
        lua_rawset(L, -4);
    }
    lua_pop(L, 1);
}

/* The message handler of a body: what follows is the closing of what was left open. */
static int l_body_failed(lua_State *L)
{
    if (lua_toboolean(L, lua_upvalueindex(1))) bl_add_traceback(L, L);
    bl_watchdog_unwinding(bl_state_of(L));
    return 1;
}

static int body_ended(lua_State *L, int status, lua_KContext context)
{
    (void)context;
    if (status != LUA_OK && status != LUA_YIELD) return lua_error(L);
    return lua_gettop(L) - 1;
}

/* The stack: the function and its arguments. */
static int l_body(lua_State *L)
{
    int nargs = lua_gettop(L) - 1;
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    int status = lua_pcallk(L, nargs, LUA_MULTRET, 1, 0, body_ended);
    return body_ended(L, status, 0);
}

void bl_push_body(lua_State *L, int traceback)
{
    lua_pushboolean(L, traceback);
    lua_pushcclosure(L, l_body_failed, 1);
    lua_pushcclosure(L, l_body, 1);
}

int bl_call_plain(lua_State *L, int nargs, int nresults)
{
    return lua_pcall(L, nargs, nresults, 0);
}

static int handler(lua_State *L)
{
    bl_add_traceback(L, L);
    return 1;
}

int bl_call(lua_State *L, int nargs, int nresults)
{
    int base = lua_gettop(L) - nargs;
    lua_pushcfunction(L, handler);
    lua_insert(L, base);
    int status = lua_pcall(L, nargs, nresults, base);
    lua_remove(L, base);
    return status;
}
