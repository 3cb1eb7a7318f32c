#include "errors.h"

#include <lauxlib.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "base/error.h"
#include "call.h"
#include "loader.h"

#define ERROR_META "barchan.error"

static int l_error_tostring(lua_State *L)
{
    lua_getfield(L, 1, "message");
    lua_getfield(L, 1, "code");
    lua_getfield(L, 1, "traceback");
    const char *message = lua_tostring(L, -3), *code = lua_tostring(L, -2);
    lua_pushfstring(L, "%s (%s)", message != NULL ? message : "unknown error",
                    code != NULL ? code : "unknown");
    if (lua_isstring(L, -2)) {
        lua_pushliteral(L, "\n");
        lua_pushvalue(L, -3);
        lua_concat(L, 3);
    }
    return 1;
}

void bl_push_error_meta(lua_State *L)
{
    if (luaL_newmetatable(L, ERROR_META)) {
        lua_pushcfunction(L, l_error_tostring);
        lua_setfield(L, -2, "__tostring");
        lua_pushliteral(L, "locked");
        lua_setfield(L, -2, "__metatable");
    }
}

static void set_string(lua_State *L, const char *key, const char *value)
{
    if (value[0] == '\0') return;
    lua_pushstring(L, value);
    lua_setfield(L, -2, key);
}

static void set_integer(lua_State *L, const char *key, lua_Integer value)
{
    if (value == 0) return;
    lua_pushinteger(L, value);
    lua_setfield(L, -2, key);
}

void bl_push_error(lua_State *L, const barchan_error *err)
{
    lua_createtable(L, 0, 8);
    set_string(L, "code", barchan_status_name(err->code));
    set_string(L, "message", err->message);
    set_string(L, "where", err->where);
    set_string(L, "provider_code", err->provider_code);
    set_string(L, "request_id", err->request_id);
    set_integer(L, "status", err->http_status);
    set_integer(L, "os_error", err->os_error);
    lua_pushboolean(L, err->retryable);
    lua_setfield(L, -2, "retryable");
    if (err->retry_after_ms >= 0) {
        lua_pushnumber(L, (lua_Number)err->retry_after_ms / 1000);
        lua_setfield(L, -2, "retry_after");
    }
    bl_push_error_meta(L);
    lua_setmetatable(L, -2);
}

int bl_fail(lua_State *L, const barchan_error *err)
{
    lua_pushnil(L);
    bl_push_error(L, err);
    return 2;
}

int bl_throw(lua_State *L, int code, const char *message)
{
    barchan_error err;
    bc_error_set(&err, code, "%s", message);
    bl_push_error(L, &err);
    return lua_error(L);
}

static int code_from_name(const char *name)
{
    for (int code = -1; strcmp(barchan_status_name(code), "unknown") != 0; code--) {
        if (strcmp(barchan_status_name(code), name) == 0) return code;
    }
    return BARCHAN_ESCRIPT;
}

/* Copies a string field of the error object at the top. */
static void copy_field(lua_State *L, const char *key, char *out, size_t size)
{
    lua_pushstring(L, key);
    if (lua_rawget(L, -2) == LUA_TSTRING) snprintf(out, size, "%s", lua_tostring(L, -1));
    lua_pop(L, 1);
}

static int read_int(lua_State *L, const char *key)
{
    lua_pushstring(L, key);
    int isnum = lua_rawget(L, 2) == LUA_TNUMBER;
    lua_Integer value = isnum ? lua_tointeger(L, -1) : 0;
    lua_pop(L, 1);
    return value >= INT_MIN && value <= INT_MAX ? (int)value : 0;
}

/* Protected: err and the thrown value. Even reading a field may need memory. */
static int l_read_error(lua_State *L)
{
    barchan_error *err = lua_touserdata(L, 1);
    if (!lua_istable(L, 2)) {
        const char *text = lua_type(L, 2) == LUA_TSTRING ? lua_tostring(L, 2) : NULL;
        int memory = text != NULL && strcmp(text, "not enough memory") == 0;
        bc_error_set(err, memory ? BARCHAN_ENOMEM : BARCHAN_ESCRIPT, "%s",
                     text != NULL ? text : luaL_typename(L, 2));
        return 0;
    }
    char code[32] = "script";
    bc_error_set(err, BARCHAN_ESCRIPT, "(an error object without a message)");
    copy_field(L, "message", err->message, sizeof err->message);
    copy_field(L, "code", code, sizeof code);
    copy_field(L, "where", err->where, sizeof err->where);
    copy_field(L, "provider_code", err->provider_code, sizeof err->provider_code);
    copy_field(L, "request_id", err->request_id, sizeof err->request_id);
    err->code = code_from_name(code);
    err->http_status = read_int(L, "status");
    err->os_error = read_int(L, "os_error");
    lua_pushliteral(L, "retry_after");
    lua_Number seconds = lua_rawget(L, 2) == LUA_TNUMBER ? lua_tonumber(L, -1) : -1;
    if (seconds >= 0 && seconds <= 1e9) {
        err->retry_after_ms = (long)(seconds * 1000 + 0.5);
    }
    lua_pushliteral(L, "retryable");
    lua_rawget(L, 2);
    err->retryable = lua_toboolean(L, -1);
    return 0;
}

void bl_error_from(lua_State *L, int index, barchan_error *err)
{
    index = lua_absindex(L, index);
    bc_error_set(err, BARCHAN_ENOMEM, "not enough memory");
    if (!lua_checkstack(L, 4)) return;
    lua_pushcfunction(L, l_read_error);
    lua_pushlightuserdata(L, err);
    lua_pushvalue(L, index);
    if (bl_call_plain(L, 2, 0) == LUA_OK) return;
    lua_pop(L, 1);
    bc_error_set(err, BARCHAN_ENOMEM, "not enough memory");
}

/* ---- errors of who calls ---- */

#define PUBLISHED "barchan.published"

void bl_push_published(lua_State *L)
{
    if (luaL_newmetatable(L, PUBLISHED)) { /* a table of the registry, and its own metatable */
        lua_pushliteral(L, "k");
        lua_setfield(L, -2, "__mode");
        lua_pushvalue(L, -1);
        lua_setmetatable(L, -2);
    }
}

/* The level of the first line that is not the library's own, 0 when there is none, and of the last
 * call that is. What C calls for somebody (pcall, a sort) has no line. */
static int find_caller(lua_State *L, lua_Debug *caller, int *last_own)
{
    *last_own = 0;
    for (int level = 0; lua_getstack(L, level, caller); level++) {
        lua_getinfo(L, "Sl", caller);
        if (caller->source[0] == '@' && bl_is_own_script(caller->source + 1)) {
            *last_own = level;
        } else if (caller->currentline > 0) {
            return level;
        }
    }
    return 0;
}

static void push_place(lua_State *L, const lua_Debug *caller, int level)
{
    if (level > 0)
        lua_pushfstring(L, "%s:%d: ", caller->short_src, caller->currentline);
    else
        lua_pushliteral(L, "");
}

void bl_push_caller(lua_State *L)
{
    lua_Debug caller;
    int own;
    push_place(L, &caller, find_caller(L, &caller, &own));
}

int bl_misuse(lua_State *L, const char *format, ...)
{
    va_list args;
    lua_Debug caller, called;
    int own, base = lua_gettop(L);
    luaL_checkstack(L, 8, NULL);
    push_place(L, &caller, find_caller(L, &caller, &own));
    bl_push_published(L);
    lua_pushnil(L);
    if (lua_getstack(L, own, &called)) {
        lua_getinfo(L, "f", &called);
        lua_rawget(L, -3);
    }
    const char *name = lua_tostring(L, -1);
    lua_pushfstring(L, name != NULL ? "%s: " : "", name);
    va_start(args, format);
    lua_pushvfstring(L, format, args);
    va_end(args);
    lua_pushvalue(L, base + 1);
    lua_insert(L, -3);
    lua_concat(L, 3);
    return lua_error(L);
}
