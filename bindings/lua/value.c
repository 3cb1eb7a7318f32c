#include "value.h"
#include "errors.h"

#include <lauxlib.h>
#include "base/json_scan.h"
#include "state.h"
#include "watchdog.h"
#include "bounds.h"

#define ARRAY_META "barchan.array"

void bl_push_array_meta(lua_State *L)
{
    if (!luaL_newmetatable(L, ARRAY_META)) return;
    lua_pushliteral(L, "locked"); /* shared by all arrays: scripts must not change it */
    lua_setfield(L, -2, "__metatable");
}

/* ---- decoding ---- */

static int push_text(lua_State *L, const bc_json_scan *scan, barchan_error *err)
{
    if (!scan->escaped) {
        lua_pushlstring(L, scan->text + scan->start + 1, scan->end - scan->start - 2);
        return 0;
    }
    /* Decoding never grows the text except by U+FFFD for single bytes: three for one. */
    size_t len = scan->end - scan->start;
    bc_buf *buf = lua_newuserdatauv(L, sizeof *buf, 0);
    bc_buf_init(buf, len * 3);
    luaL_setmetatable(L, BL_ENCODER_META); /* frees it whatever happens */
    int rc = bc_json_scan_text(scan, buf);
    if (rc < 0) return bc_error_nomem(err);
    lua_pushlstring(L, bc_buf_data(buf), buf->len);
    bc_buf_clear(buf);
    lua_remove(L, -2);
    return 0;
}

static int push_value(lua_State *L, bc_json_scan *scan, barchan_error *err);

static int push_object(lua_State *L, bc_json_scan *scan, barchan_error *err)
{
    int rc;
    lua_newtable(L);
    while ((rc = bc_json_scan_next(scan, err)) == BC_JSON_KEY) {
        if ((rc = push_text(L, scan, err)) < 0) return rc;
        if ((rc = bc_json_scan_next(scan, err)) < 0) return rc;
        if ((rc = push_value(L, scan, err)) < 0) return rc;
        lua_rawset(L, -3);
    }
    return rc < 0 ? rc : 0;
}

static int push_array(lua_State *L, bc_json_scan *scan, barchan_error *err)
{
    int rc;
    lua_newtable(L);
    for (lua_Integer i = 1; (rc = bc_json_scan_next(scan, err)) != BC_JSON_ARRAY_END; i++) {
        if (rc < 0 || (rc = push_value(L, scan, err)) < 0) return rc;
        lua_rawseti(L, -2, i);
    }
    luaL_setmetatable(L, ARRAY_META);
    return 0;
}

/* Pushes the value whose first token the scanner stands on. */
static int push_value(lua_State *L, bc_json_scan *scan, barchan_error *err)
{
    luaL_checkstack(L, 6, "JSON nests too deep");
    switch (scan->token) {
    case BC_JSON_OBJECT_BEGIN: return push_object(L, scan, err);
    case BC_JSON_ARRAY_BEGIN: return push_array(L, scan, err);
    case BC_JSON_STRING: return push_text(L, scan, err);
    case BC_JSON_INTEGER: lua_pushinteger(L, scan->integer); return 0;
    case BC_JSON_REAL: lua_pushnumber(L, scan->real); return 0;
    case BC_JSON_TRUE: lua_pushboolean(L, 1); return 0;
    case BC_JSON_FALSE: lua_pushboolean(L, 0); return 0;
    default: lua_pushlightuserdata(L, NULL); return 0;
    }
}

int bl_push_json(lua_State *L, const char *text, size_t len, barchan_error *err)
{
    if (len > BC_JSON_MAX_BYTES) {
        return bc_error_set(err, BARCHAN_ELIMIT, "JSON text is longer than %u MiB",
                            BC_JSON_MAX_BYTES >> 20);
    }
    bc_json_scan scan;
    bc_json_scan_init(&scan, text, len);
    int rc = bc_json_scan_next(&scan, err);
    if (rc >= 0) rc = push_value(L, &scan, err);
    if (rc >= 0) rc = bc_json_scan_next(&scan, err); /* nothing may follow */
    return rc < 0 ? rc : 0;
}

/* ---- the module ---- */

/* decode(text) -> value | nil, err */
static int l_json_decode(lua_State *L)
{
    size_t len;
    const char *text = luaL_checklstring(L, 1, &len);
    barchan_error err;
    lua_settop(L, 1);
    bl_watchdog_look(L);
    if (bl_push_json(L, text, len, &err) < 0) {
        lua_settop(L, 1);
        return bl_fail(L, &err);
    }
    return 1;
}

static int l_json_encode(lua_State *L)
{
    luaL_checkany(L, 1);
    bl_watchdog_look(L);
    bl_encode_json(L, 1);
    return 1;
}

/* array([t]) marks a table as an array, so that it stays one when it is empty */
static int l_json_array(lua_State *L)
{
    if (lua_isnoneornil(L, 1)) {
        lua_settop(L, 0);
        lua_newtable(L);
    }
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 1);
    bl_push_array_meta(L);
    lua_setmetatable(L, 1);
    return 1;
}

static int l_json_is_array(lua_State *L)
{
    int marked = 0;
    if (lua_istable(L, 1) && lua_getmetatable(L, 1)) {
        luaL_getmetatable(L, ARRAY_META);
        marked = lua_rawequal(L, -1, -2);
    }
    lua_pushboolean(L, marked);
    return 1;
}

void bl_open_json(lua_State *L)
{
    static const luaL_Reg functions[] = {{"decode", l_json_decode},
                                         {"encode", l_json_encode},
                                         {"array", l_json_array},
                                         {"is_array", l_json_is_array},
                                         {NULL, NULL}};
    bl_open_encoder(L);
    bl_push_array_meta(L);
    lua_pop(L, 1);
    luaL_newlib(L, functions);
    lua_pushlightuserdata(L, NULL);
    lua_setfield(L, -2, "null");
    lua_setfield(L, -2, "json");
}
