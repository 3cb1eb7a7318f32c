#include "state.h"

#include <stddef.h>
#include <string.h>
#include "scheduler.h"
#include "watchdog.h"

static const char state_key, core_key;

bl_state *bl_state_of(lua_State *L)
{
    lua_rawgetp(L, LUA_REGISTRYINDEX, &state_key);
    bl_state *state = lua_touserdata(L, -1);
    lua_pop(L, 1);
    if (state == NULL || state->rt == NULL) {
        luaL_error(L, "barchan is not open in this Lua state");
    }
    return state;
}

static int l_state_gc(lua_State *L)
{
    bl_state *state = lua_touserdata(L, 1);
    bl_state_close(state);
    if (state->owns_runtime) {
        barchan_runtime_destroy(state->rt);
        state->owns_runtime = 0;
    }
    state->rt = NULL;
    return 0;
}

bl_state *bl_state_new(lua_State *L, barchan_runtime *rt)
{
    bl_state *state = lua_newuserdatauv(L, sizeof *state, 0);
    memset(state, 0, sizeof *state);
    lua_rawgeti(L, LUA_REGISTRYINDEX, LUA_RIDX_MAINTHREAD);
    state->L = lua_tothread(L, -1);
    lua_pop(L, 1);
    lua_createtable(L, 0, 1);
    lua_pushcfunction(L, l_state_gc);
    lua_setfield(L, -2, "__gc");
    lua_setmetatable(L, -2);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &state_key);
    state->rt = rt;
    if (rt == NULL) {
        barchan_error err;
        if (barchan_runtime_create(&state->rt, NULL, &err) < 0) luaL_error(L, "%s", err.message);
        state->owns_runtime = 1;
    }
    bl_scheduler_open(L);
    bl_watchdog_open(L);
    bl_push_core(L); /* registers every class: values cross before a script requires anything */
    lua_pop(L, 1);
    return state;
}

void bl_state_close(bl_state *state)
{
    if (state->closing) return;
    state->closing = 1;
    bl_scheduler_close(state);
    bc_buf_clear(&state->encoded);
}

void bl_push_core(lua_State *L)
{
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &core_key) == LUA_TTABLE) return;
    lua_pop(L, 1);
    lua_newtable(L);
    bl_open_json(L);
    bl_open_task(L);
    bl_open_sandbox(L);
    bl_open_files(L);
    bl_open_model(L);
    bl_open_host(L);
    bl_open_util(L);
    bl_open_tree(L);
    bl_open_watch(L);
    bl_open_scripts(L);
    lua_pushvalue(L, -1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &core_key);
}

void bl_refuse_safe(lua_State *L, const char *what)
{
    if (!bl_state_of(L)->safe) return;
    luaL_error(L,
               "%s: not for the scripts of an engine with the safe library; the host application "
               "can do it for them",
               what);
}
