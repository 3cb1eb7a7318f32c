/* Lua values as JSON text. */
#include "value.h"

#include <lauxlib.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/json_write.h"
#include "base/limits.h"
#include "bounds.h"
#include "collector.h"
#include "errors.h"
#include "state.h"

typedef struct encoder {
    bc_buf out; /* first: the metatable's __gc clears it */
    int depth;
    /* The keys on the way to the current value, for messages. */
    const char *names[BC_JSON_MAX_DEPTH];
    lua_Integer indices[BC_JSON_MAX_DEPTH];
} encoder;

static int l_encoder_gc(lua_State *L)
{
    bc_buf_clear(luaL_checkudata(L, 1, BL_ENCODER_META));
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
    return bl_misuse(L, "cannot encode %s as JSON%s%s", what, path[0] != '\0' ? " at " : "", path);
}

static void check(lua_State *L, int rc)
{
    if (rc == BARCHAN_ELIMIT) luaL_error(L, "the JSON text is too long");
    if (rc < 0) luaL_error(L, "not enough memory");
}

static void put(lua_State *L, encoder *e, char c)
{
    check(L, bc_buf_append_char(&e->out, c));
}

static void put_word(lua_State *L, encoder *e, const char *word)
{
    check(L, bc_buf_append_string(&e->out, word));
}

static void encode(lua_State *L, encoder *e, int index);

/* 1 when the table is a sequence with at least one item or is marked as an array; *count is its
 * length then. 0: an object. */
static int is_array(lua_State *L, encoder *e, int index, lua_Integer *count)
{
    lua_Integer n = (lua_Integer)lua_rawlen(L, index), seen = 0;
    int marked = 0;
    if (lua_getmetatable(L, index)) {
        bl_push_array_meta(L);
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
    put(L, e, '[');
    for (lua_Integer i = 1; i <= count; i++) {
        e->names[e->depth - 1] = NULL;
        e->indices[e->depth - 1] = i;
        if (i > 1) put(L, e, ',');
        lua_rawgeti(L, index, i);
        encode(L, e, lua_gettop(L));
        lua_pop(L, 1);
    }
    put(L, e, ']');
}

/* ---- objects ---- */

struct member {
    const char *key; /* on the stack, or in the list of them */
    size_t len;
    int value; /* where on the stack; 0: it is looked up */
};

static int compare_keys(const void *a, const void *b)
{
    const struct member *x = a, *y = b;
    size_t shorter = x->len < y->len ? x->len : y->len;
    int order = memcmp(x->key, y->key, shorter);
    if (order != 0) return order;
    return x->len < y->len ? -1 : x->len > y->len;
}

static void encode_members(lua_State *L, encoder *e, int index, const struct member *members,
                           size_t count)
{
    put(L, e, '{');
    for (size_t i = 0; i < count; i++) {
        e->names[e->depth - 1] = members[i].key;
        if (i > 0) put(L, e, ',');
        check(L, bc_json_write_string(&e->out, members[i].key, members[i].len));
        put(L, e, ':');
        if (members[i].value != 0) {
            encode(L, e, members[i].value);
            continue;
        }
        lua_pushlstring(L, members[i].key, members[i].len);
        lua_rawget(L, index);
        encode(L, e, lua_gettop(L));
        lua_pop(L, 1);
    }
    put(L, e, '}');
}

/* Pushes a list of the table's keys, and a userdata with them sorted. The list keeps the strings: a
 * finalizer may change the table meanwhile. */
static struct member *sorted_keys(lua_State *L, encoder *e, int index, size_t *count)
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
    struct member *members = lua_newuserdatauv(L, (size_t)n * sizeof *members + 1, 0);
    for (lua_Integer i = 0; i < n; i++) {
        lua_rawgeti(L, list, i + 1);
        members[i].key = lua_tolstring(L, -1, &members[i].len);
        members[i].value = 0;
        lua_pop(L, 1);
    }
    qsort(members, (size_t)n, sizeof *members, compare_keys);
    *count = (size_t)n;
    return members;
}

/* Takes a small table's keys and values onto the stack, sorted by key, which asks for no memory. 0
 * when it is not small; then nothing is left there. */
static int take_members(lua_State *L, encoder *e, int index, struct member *members, int *count)
{
    int top = lua_gettop(L), n = 0;
    for (lua_pushnil(L); lua_next(L, index); lua_pushvalue(L, -2)) {
        if (lua_type(L, -2) != LUA_TSTRING)
            complain(L, e, "a table with keys that are not strings");
        if (n == BL_JSON_FEW_MEMBERS) {
            lua_settop(L, top);
            return 0;
        }
        struct member member = {.value = lua_gettop(L)};
        member.key = lua_tolstring(L, -2, &member.len);
        int at = n++;
        for (; at > 0 && compare_keys(&member, &members[at - 1]) < 0; at--)
            members[at] = members[at - 1];
        members[at] = member;
    }
    *count = n;
    return 1;
}

static void encode_object(lua_State *L, encoder *e, int index)
{
    struct member few[BL_JSON_FEW_MEMBERS];
    int top = lua_gettop(L), count;
    if (take_members(L, e, index, few, &count)) {
        encode_members(L, e, index, few, (size_t)count);
    } else {
        size_t many;
        const struct member *members = sorted_keys(L, e, index, &many);
        encode_members(L, e, index, members, many);
    }
    lua_settop(L, top);
}

/* ---- values ---- */

static void encode_table(lua_State *L, encoder *e, int index)
{
    lua_Integer count = 0;
    if (e->depth >= BC_JSON_MAX_DEPTH) complain(L, e, "a table that nests too deep (or in itself)");
    /* Far below what a stack may have: there is no memory for it. */
    if (!lua_checkstack(L, 2 * BL_JSON_FEW_MEMBERS + 8)) check(L, BARCHAN_ENOMEM);
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
    case LUA_TBOOLEAN: put_word(L, e, lua_toboolean(L, index) ? "true" : "false"); return;
    case LUA_TSTRING:
        text = lua_tolstring(L, index, &len);
        check(L, bc_json_write_string(&e->out, text, len));
        return;
    case LUA_TNIL: put_word(L, e, "null"); return;
    case LUA_TLIGHTUSERDATA:
        if (lua_touserdata(L, index) == NULL) {
            put_word(L, e, "null");
            return;
        }
        break;
    default: break;
    }
    lua_pushfstring(L, "a %s", luaL_typename(L, index));
    complain(L, e, lua_tostring(L, -1));
}

const bc_buf *bl_encode_bytes(lua_State *L, int index)
{
    index = lua_absindex(L, index);
    bl_state *state = bl_state_of(L);
    size_t max = BC_JSON_MAX_BYTES;
    bl_collector_pace(L, state);
    if (state->memory_left != NULL && state->memory_left(state) < max) {
        max = state->memory_left(state);
    }
    encoder *e = lua_newuserdatauv(L, sizeof *e, 0);
    e->out = (bc_buf){0};
    e->depth = 0;
    luaL_setmetatable(L, BL_ENCODER_META);
    e->out = state->encoded;
    e->out.max = max;
    state->encoded = (bc_buf){0};
    encode(L, e, index);
    return &e->out;
}

void bl_encoded_clear(lua_State *L, int index)
{
    bl_state *state = bl_state_of(L);
    bc_buf *out = luaL_checkudata(L, index, BL_ENCODER_META);
    if (!state->closing && state->encoded.mem == NULL && out->cap <= BL_JSON_KEPT_BYTES) {
        bc_buf_reset(out);
        state->encoded = *out;
        *out = (bc_buf){0};
    }
    bc_buf_clear(out);
}

void bl_encode_json(lua_State *L, int index)
{
    const bc_buf *bytes = bl_encode_bytes(L, index);
    lua_pushlstring(L, bc_buf_data(bytes), bytes->len);
    bl_encoded_clear(L, -2);
    lua_remove(L, -2);
}

void bl_open_encoder(lua_State *L)
{
    if (luaL_newmetatable(L, BL_ENCODER_META)) {
        lua_pushcfunction(L, l_encoder_gc);
        lua_setfield(L, -2, "__gc");
    }
    lua_pop(L, 1);
}
