#include "errors.h"

#include <lauxlib.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include "base/error.h"
#include "call.h"

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
