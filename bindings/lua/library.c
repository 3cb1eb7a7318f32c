#include "library.h"

#include <lauxlib.h>
#include <lualib.h>
#include <lua-cjson.h>
#include <string.h>
#include "bounded.h"
#include "bounds.h"
#include "call.h"
#include "handle.h"
#include "host.h"
#include "loader.h"
#include "pattern.h"
#include "scheduler.h"
#include "watchdog.h"

/* ---- replacements of base functions ---- */

/* load(chunk [, name [, mode [, env]]]), text only whatever the mode says */
static int l_load(lua_State *L)
{
    lua_settop(L, 4);
    int has_env = !lua_isnil(L, 4);
    lua_pushliteral(L, "t");
    lua_replace(L, 3);
    if (!has_env) lua_settop(L, 3);
    lua_pushvalue(L, lua_upvalueindex(1)); /* Lua's own */
    lua_insert(L, 1);
    lua_call(L, has_env ? 4 : 3, LUA_MULTRET);
    return lua_gettop(L);
}

static int l_loadfile(lua_State *L)
{
    const char *filename = bl_check_text(L, 1);
    int has_env = !lua_isnone(L, 3);
    if (bl_load_file(L, filename) != LUA_OK) {
        lua_pushnil(L);
        lua_insert(L, -2);
        return 2;
    }
    if (has_env) {
        lua_pushvalue(L, 3);
        if (lua_setupvalue(L, -2, 1) == NULL) lua_pop(L, 1);
    }
    return 1;
}

static int dofile_continued(lua_State *L, int status, lua_KContext context)
{
    (void)status;
    (void)context;
    return lua_gettop(L) - 1;
}

static int l_dofile(lua_State *L)
{
    const char *filename = bl_check_text(L, 1);
    lua_settop(L, 1);
    if (bl_load_file(L, filename) != LUA_OK) return lua_error(L);
    lua_callk(L, 0, LUA_MULTRET, 0, dofile_continued);
    return dofile_continued(L, 0, 0);
}

/* Recovering from an error costs as much as the stack is deep, and a script that the watchdog stops
 * recovers once for each pcall it is in. */
static void check_depth(lua_State *L)
{
    lua_Debug ar;
    const bl_state *state = bl_state_of(L);
    int limited = state->slice_us > 0 || state->total_us > 0;
    if (limited && lua_getstack(L, BL_MAX_PCALL_DEPTH, &ar)) {
        luaL_error(L, "stack overflow: pcall inside more than %d calls", BL_MAX_PCALL_DEPTH);
    }
}

/* The stack is: true, results or an error. */
static int pcall_done(lua_State *L, int status, lua_KContext context)
{
    (void)context;
    if (status == LUA_OK || status == LUA_YIELD) return lua_gettop(L);
    lua_pushboolean(L, 0);
    lua_insert(L, -2);
    return 2;
}

static int l_pcall(lua_State *L)
{
    luaL_checkany(L, 1);
    check_depth(L);
    lua_pushboolean(L, 1);
    lua_insert(L, 1);
    int status = lua_pcallk(L, lua_gettop(L) - 2, LUA_MULTRET, 0, 0, pcall_done);
    return pcall_done(L, status, 0);
}

/* The message handler of xpcall. When the watchdog stops a script, Lua would call the script's own
 * handler from within the hook, where no hook runs: it could go on for ever. */
static int guarded_handler(lua_State *L)
{
    if (bl_state_of(L)->slice.stopping) return 1;
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    bl_call_plain(L, 1, 1); /* a handler that fails: its own error says why */
    return 1;
}

/* The stack is: the handler, true, results or an error. */
static int xpcall_done(lua_State *L, int status, lua_KContext context)
{
    (void)context;
    if (status == LUA_OK || status == LUA_YIELD) return lua_gettop(L) - 1;
    lua_pushboolean(L, 0);
    lua_insert(L, -2);
    return 2;
}

static int l_xpcall(lua_State *L)
{
    luaL_checktype(L, 2, LUA_TFUNCTION);
    check_depth(L);
    int nargs = lua_gettop(L) - 2;
    lua_pushvalue(L, 2);
    lua_pushcclosure(L, guarded_handler, 1);
    lua_pushboolean(L, 1);
    lua_pushvalue(L, 1);
    lua_rotate(L, 3, 3); /* f, handler; guarded, true, f; arguments */
    lua_remove(L, 1);
    lua_remove(L, 1);
    return xpcall_done(L, lua_pcallk(L, nargs, LUA_MULTRET, 1, 0, xpcall_done), 0);
}

/* setmetatable that refuses finalizers: they would run at any time, and again at the end. */
static int l_setmetatable(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    luaL_argexpected(L, lua_isnil(L, 2) || lua_istable(L, 2), 2, "nil or table");
    if (luaL_getmetafield(L, 1, "__metatable") != LUA_TNIL) {
        return luaL_error(L, "cannot change a protected metatable");
    }
    if (lua_istable(L, 2)) {
        lua_pushliteral(L, "__gc");
        if (lua_rawget(L, 2) != LUA_TNIL) {
            return luaL_error(L, "__gc is not available here; use a <close> variable");
        }
    }
    lua_settop(L, 2);
    lua_setmetatable(L, 1);
    return 1;
}

static int l_collectgarbage(lua_State *L)
{
    static const char *const names[] = {"collect", "count", "step", NULL};
    bl_watchdog_look(L);
    switch (luaL_checkoption(L, 1, "collect", names)) {
    case 1: lua_pushnumber(L, lua_gc(L, LUA_GCCOUNT) + lua_gc(L, LUA_GCCOUNTB) / 1024.0); return 1;
    case 2: lua_pushboolean(L, lua_gc(L, LUA_GCSTEP, 0)); return 1;
    default: lua_pushinteger(L, lua_gc(L, LUA_GCCOLLECT)); return 1;
    }
}

/* ---- the parts that both libraries have ---- */

static void drop(lua_State *L, int table, const char *const *names)
{
    for (; *names != NULL; names++) {
        lua_pushnil(L);
        lua_setfield(L, table, *names);
    }
}

static void open_base(lua_State *L)
{
    luaL_requiref(L, LUA_GNAME, luaopen_base, 1);
    int globals = lua_gettop(L);
    lua_getfield(L, globals, "load");
    lua_pushcclosure(L, l_load, 1);
    lua_setfield(L, globals, "load");
    lua_pushcfunction(L, bl_host_print);
    lua_setfield(L, globals, "print");
    lua_pushcfunction(L, l_pcall);
    lua_setfield(L, globals, "pcall");
    lua_pushcfunction(L, l_xpcall);
    lua_setfield(L, globals, "xpcall");
    lua_pushcfunction(L, l_loadfile);
    lua_setfield(L, globals, "loadfile");
    lua_pushcfunction(L, l_dofile);
    lua_setfield(L, globals, "dofile");
    lua_settop(L, globals - 1);
}

static int push_coroutine_library(lua_State *L)
{
    bl_push_coroutine_library(L);
    return 1;
}

static void open_string(lua_State *L)
{
    luaL_requiref(L, LUA_STRLIBNAME, luaopen_string, 1);
    drop(L, lua_gettop(L), (const char *const[]){"dump", NULL});
    lua_pop(L, 1);
    lua_pushliteral(L, ""); /* strings share one metatable: scripts must not change it */
    lua_getmetatable(L, -1);
    lua_pushliteral(L, "locked");
    lua_setfield(L, -2, "__metatable");
    lua_pop(L, 2);
}

static void set_path(lua_State *L, int package, const char *const *dirs)
{
    luaL_Buffer b;
    luaL_buffinit(L, &b);
    for (int i = 0; dirs != NULL && dirs[i] != NULL; i++) {
        if (i > 0) luaL_addchar(&b, ';');
        lua_pushfstring(L, "%s/?.lua;%s/?/init.lua", dirs[i], dirs[i]);
        luaL_addvalue(&b);
    }
    luaL_pushresult(&b);
    lua_setfield(L, package, "path");
    lua_pushliteral(L, "");
    lua_setfield(L, package, "cpath");
}

static void open_package(lua_State *L, const char *const *script_dirs)
{
    luaL_requiref(L, LUA_LOADLIBNAME, luaopen_package, 1);
    int package = lua_gettop(L);
    set_path(L, package, script_dirs);
    bl_set_searchers(L, package);
    bl_preload_modules(L, package);
    lua_pop(L, 1);
}

static void open_common(lua_State *L, const char *const *script_dirs)
{
    open_base(L);
    open_package(L, script_dirs);
    luaL_requiref(L, LUA_COLIBNAME, push_coroutine_library, 1);
    luaL_requiref(L, LUA_TABLIBNAME, luaopen_table, 1);
    luaL_requiref(L, LUA_MATHLIBNAME, luaopen_math, 1);
    luaL_requiref(L, LUA_UTF8LIBNAME, luaopen_utf8, 1);
    lua_pop(L, 4);
    open_string(L);
}

/* ---- the two libraries ---- */

static void open_full(lua_State *L, int memory_capped)
{
    luaL_requiref(L, LUA_IOLIBNAME, luaopen_io, 1);
    luaL_requiref(L, LUA_OSLIBNAME, luaopen_os, 1);
    luaL_requiref(L, LUA_DBLIBNAME, luaopen_debug, 1);
    lua_getglobal(L, LUA_LOADLIBNAME);
    int package = lua_gettop(L);
    lua_getfield(L, package, "preload");
    /* lua-cjson allocates past the cap, and exits when that fails: the shim where there is one. */
    if (memory_capped)
        lua_getfield(L, -1, "barchan.cjson");
    else
        lua_pushcfunction(L, luaopen_cjson);
    lua_setfield(L, -2, "cjson");
    drop(L, package, (const char *const[]){"loadlib", NULL});
    lua_pop(L, 5);
}

static void open_safe_os(lua_State *L)
{
    static const char *const kept[] = {"time", "date", "clock", "difftime", NULL};
    luaopen_os(L);
    lua_newtable(L);
    for (int i = 0; kept[i] != NULL; i++) {
        lua_getfield(L, -2, kept[i]);
        lua_setfield(L, -2, kept[i]);
    }
    lua_pushvalue(L, -1);
    lua_setglobal(L, LUA_OSLIBNAME);
    luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
    lua_insert(L, -2);
    lua_setfield(L, -2, LUA_OSLIBNAME);
    lua_pop(L, 2);
}

static void open_safe(lua_State *L)
{
    static const char *const hidden[] = {"loadfile", "dofile", "package", "warn", NULL};
    open_safe_os(L);
    lua_getglobal(L, LUA_LOADLIBNAME);
    lua_getfield(L, -1, "preload");
    lua_getfield(L, -1, "barchan.cjson");
    lua_setfield(L, -2, "cjson");
    lua_pop(L, 2);
    lua_pushglobaltable(L);
    int globals = lua_gettop(L);
    lua_pushcfunction(L, l_setmetatable);
    lua_setfield(L, globals, "setmetatable");
    lua_pushcfunction(L, l_collectgarbage);
    lua_setfield(L, globals, "collectgarbage");
    drop(L, globals, hidden);
    lua_getglobal(L, LUA_STRLIBNAME);
    bl_open_patterns(L);
    lua_pop(L, 1);
    bl_bound_library(L);
    luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
    drop(L, globals + 1, (const char *const[]){LUA_LOADLIBNAME, NULL});
    lua_settop(L, globals - 1);
}

void bl_open_library(lua_State *L, barchan_library library, const char *const *script_dirs)
{
    open_common(L, script_dirs);
    if (library == BARCHAN_LIBRARY_FULL)
        open_full(L, bl_state_of(L)->memory_left != NULL);
    else
        open_safe(L);
}
