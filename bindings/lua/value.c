#include "value.h"
#include "errors.h"

#include <lauxlib.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/json_scan.h"
#include "base/json_write.h"
#include "collector.h"
#include "state.h"
#include "bounds.h"

#define ARRAY_META "barchan.array"
#define ENCODER_META "barchan.json.encoder"

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
    luaL_setmetatable(L, ENCODER_META); /* frees it whatever happens */
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

/* ---- encoding ---- */

typedef struct encoder {
    bc_buf out; /* first: the metatable's __gc clears it */
    int depth;
    /* The keys on the way to the current value, for messages. */
    const char *names[BC_JSON_MAX_DEPTH];
    lua_Integer indices[BC_JSON_MAX_DEPTH];
} encoder;

static int l_encoder_gc(lua_State *L)
{
    bc_buf_clear(luaL_checkudata(L, 1, ENCODER_META));
    return 0;
}

static int complain(lua_State *L, const encoder *e, const char *what)
{
    luaL_Buffer b;
    luaL_buffinit(L, &b);
    for (int i = 0; i < e->depth; i++) {
        if (e->names[i] == NULL && e->indices[i] == 0) continue; /* the table itself */
        if (e->names[i] != NULL)
            lua_pushfstring(L, ".%s", e->names[i]);
        else
            lua_pushfstring(L, "[%I]", (LUAI_UACINT)e->indices[i]);
        luaL_addvalue(&b);
    }
    luaL_pushresult(&b);
    const char *path = lua_tostring(L, -1);
    return luaL_error(L, "cannot encode %s as JSON%s%s", what, path[0] != '\0' ? " at " : "", path);
}

static void check(lua_State *L, int rc)
{
    if (rc == BARCHAN_ELIMIT) luaL_error(L, "the JSON text is too long");
    if (rc < 0) luaL_error(L, "not enough memory");
}

static void put(lua_State *L, encoder *e, const char *text)
{
    check(L, bc_buf_append_string(&e->out, text));
}

static void encode(lua_State *L, encoder *e, int index);

/* 1 when the table is a sequence with at least one item or is marked as an array; *count is its
 * length then. 0: an object. */
static int is_array(lua_State *L, encoder *e, int index, lua_Integer *count)
{
    lua_Integer n = (lua_Integer)lua_rawlen(L, index), seen = 0;
    int marked = 0;
    if (lua_getmetatable(L, index)) {
        luaL_getmetatable(L, ARRAY_META);
        marked = lua_rawequal(L, -1, -2);
        lua_pop(L, 2);
    }
    if (n == 0 && !marked) return 0;
    for (lua_pushnil(L); lua_next(L, index); lua_pop(L, 1)) {
        int fine = lua_isinteger(L, -2) && lua_tointeger(L, -2) >= 1 && lua_tointeger(L, -2) <= n;
        if (!fine) complain(L, e, "a table with both items and named fields");
        seen++;
    }
    if (seen != n) complain(L, e, "a table with holes");
    if (n > BL_JSON_MAX_ITEMS) complain(L, e, "so many items");
    *count = n;
    return 1;
}

static void encode_array(lua_State *L, encoder *e, int index, lua_Integer count)
{
    put(L, e, "[");
    for (lua_Integer i = 1; i <= count; i++) {
        e->names[e->depth - 1] = NULL;
        e->indices[e->depth - 1] = i;
        if (i > 1) put(L, e, ",");
        lua_rawgeti(L, index, i);
        encode(L, e, lua_gettop(L));
        lua_pop(L, 1);
    }
    put(L, e, "]");
}

struct key {
    const char *text; /* owned by the table that is being encoded */
    size_t len;
};

static int compare_keys(const void *a, const void *b)
{
    const struct key *x = a, *y = b;
    size_t shorter = x->len < y->len ? x->len : y->len;
    int order = memcmp(x->text, y->text, shorter);
    if (order != 0) return order;
    return x->len < y->len ? -1 : x->len > y->len;
}

/* Pushes a list of the table's keys, and a userdata with them sorted. The list keeps the strings: a
 * finalizer may change the table meanwhile. */
static struct key *sorted_keys(lua_State *L, encoder *e, int index, size_t *count)
{
    lua_Integer n = 0;
    lua_newtable(L);
    int list = lua_gettop(L);
    for (lua_pushnil(L); lua_next(L, index); lua_pop(L, 1)) {
        if (lua_type(L, -2) != LUA_TSTRING)
            complain(L, e, "a table with keys that are not strings");
        lua_pushvalue(L, -2);
        lua_rawseti(L, list, ++n);
    }
    struct key *keys = lua_newuserdatauv(L, (size_t)n * sizeof *keys + 1, 0);
    for (lua_Integer i = 0; i < n; i++) {
        lua_rawgeti(L, list, i + 1);
        keys[i].text = lua_tolstring(L, -1, &keys[i].len);
        lua_pop(L, 1);
    }
    qsort(keys, (size_t)n, sizeof *keys, compare_keys);
    *count = (size_t)n;
    return keys;
}

static void encode_object(lua_State *L, encoder *e, int index)
{
    size_t count;
    struct key *keys = sorted_keys(L, e, index, &count);
    put(L, e, "{");
    for (size_t i = 0; i < count; i++) {
        e->names[e->depth - 1] = keys[i].text;
        if (i > 0) put(L, e, ",");
        check(L, bc_json_write_string(&e->out, keys[i].text, keys[i].len));
        put(L, e, ":");
        lua_pushlstring(L, keys[i].text, keys[i].len);
        lua_rawget(L, index);
        encode(L, e, lua_gettop(L));
        lua_pop(L, 1);
    }
    lua_pop(L, 2);
    put(L, e, "}");
}

static void encode_table(lua_State *L, encoder *e, int index)
{
    lua_Integer count = 0;
    if (e->depth >= BC_JSON_MAX_DEPTH) complain(L, e, "a table that nests too deep (or in itself)");
    luaL_checkstack(L, 8, "JSON nests too deep");
    e->depth++;
    e->names[e->depth - 1] = NULL;
    e->indices[e->depth - 1] = 0;
    if (is_array(L, e, index, &count))
        encode_array(L, e, index, count);
    else
        encode_object(L, e, index);
    e->depth--;
}

static void encode_number(lua_State *L, encoder *e, int index)
{
    if (lua_isinteger(L, index)) {
        check(L, bc_json_write_integer(&e->out, lua_tointeger(L, index)));
        return;
    }
    lua_Number value = lua_tonumber(L, index);
    if (isnan(value)) complain(L, e, "NaN");
    if (isinf(value)) complain(L, e, "infinity");
    check(L, bc_json_write_real(&e->out, value));
}

static void encode(lua_State *L, encoder *e, int index)
{
    size_t len;
    const char *text;
    switch (lua_type(L, index)) {
    case LUA_TTABLE: encode_table(L, e, index); return;
    case LUA_TNUMBER: encode_number(L, e, index); return;
    case LUA_TBOOLEAN: put(L, e, lua_toboolean(L, index) ? "true" : "false"); return;
    case LUA_TSTRING:
        text = lua_tolstring(L, index, &len);
        check(L, bc_json_write_string(&e->out, text, len));
        return;
    case LUA_TNIL: put(L, e, "null"); return;
    case LUA_TLIGHTUSERDATA:
        if (lua_touserdata(L, index) == NULL) {
            put(L, e, "null");
            return;
        }
        break;
    default: break;
    }
    lua_pushfstring(L, "a %s", luaL_typename(L, index));
    complain(L, e, lua_tostring(L, -1));
}

void bl_encode_json(lua_State *L, int index)
{
    index = lua_absindex(L, index);
    bl_state *state = bl_state_of(L);
    size_t max = BC_JSON_MAX_BYTES;
    bl_collector_pace(L, state);
    if (state->memory_left != NULL && state->memory_left(state) < max) {
        max = state->memory_left(state);
    }
    encoder *e = lua_newuserdatauv(L, sizeof *e, 0);
    bc_buf_init(&e->out, max);
    e->depth = 0;
    luaL_setmetatable(L, ENCODER_META);
    encode(L, e, index);
    lua_pushlstring(L, bc_buf_data(&e->out), e->out.len);
    bc_buf_clear(&e->out);
    lua_remove(L, -2);
}

/* ---- the module ---- */

/* decode(text) -> value | nil, err */
static int l_json_decode(lua_State *L)
{
    size_t len;
    const char *text = luaL_checklstring(L, 1, &len);
    barchan_error err;
    lua_settop(L, 1);
    if (bl_push_json(L, text, len, &err) < 0) {
        lua_settop(L, 1);
        return bl_fail(L, &err);
    }
    return 1;
}

static int l_json_encode(lua_State *L)
{
    luaL_checkany(L, 1);
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
    if (luaL_newmetatable(L, ENCODER_META)) {
        lua_pushcfunction(L, l_encoder_gc);
        lua_setfield(L, -2, "__gc");
    }
    bl_push_array_meta(L);
    lua_pop(L, 2);
    luaL_newlib(L, functions);
    lua_pushlightuserdata(L, NULL);
    lua_setfield(L, -2, "null");
    lua_setfield(L, -2, "json");
}
