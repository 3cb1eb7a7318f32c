#include "handle.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include "call.h"
#include "errors.h"

bl_link *bl_link_new(lua_State *L, void *owner)
{
    bl_link *link = malloc(sizeof *link);
    if (link == NULL) luaL_error(L, "not enough memory");
    *link = (bl_link){.owner = owner};
    return link;
}

void bl_link_given(bl_link *link)
{
    link->in_core = 1;
}

void bl_link_drop(bl_link **link)
{
    bl_link *gone = *link;
    *link = NULL;
    if (gone == NULL) return;
    gone->owner = NULL;
    if (!gone->in_core) free(gone);
}

struct pair {
    const char *word, *text;
    size_t len;
};

static int push_pair(lua_State *L)
{
    const struct pair *pair = lua_touserdata(L, 1);
    lua_pushstring(L, pair->word);
    lua_pushlstring(L, pair->text, pair->len);
    return 2;
}

int bl_push_pair(lua_State *L, const char *word, const char *text, size_t len, void *memory)
{
    struct pair pair = {word, text, len};
    if (!lua_checkstack(L, 4)) {
        free(memory);
        return luaL_error(L, "not enough memory");
    }
    lua_pushcfunction(L, push_pair);
    lua_pushlightuserdata(L, &pair);
    int status = bl_call_plain(L, 1, 2);
    free(memory);
    return status == LUA_OK ? 2 : lua_error(L);
}

void bl_new_class(lua_State *L, const char *name, const luaL_Reg *methods, lua_CFunction close,
                  lua_CFunction to_string)
{
    luaL_newmetatable(L, name);
    lua_pushcfunction(L, close);
    lua_pushvalue(L, -1);
    lua_setfield(L, -3, "__gc");
    lua_setfield(L, -2, "__close");
    if (to_string != NULL) {
        lua_pushcfunction(L, to_string);
        lua_setfield(L, -2, "__tostring");
    }
    lua_newtable(L);
    luaL_setfuncs(L, methods, 0);
    lua_setfield(L, -2, "__index");
    lua_pushliteral(L, "locked");
    lua_setfield(L, -2, "__metatable");
    lua_pop(L, 1);
}

static int get_raw(lua_State *L, int index, const char *key)
{
    index = lua_absindex(L, index);
    luaL_checktype(L, index, LUA_TTABLE);
    lua_pushstring(L, key);
    return lua_rawget(L, index);
}

const char *bl_check_text(lua_State *L, int index)
{
    size_t len;
    const char *text = luaL_checklstring(L, index, &len);
    if (strlen(text) != len) bl_misuse(L, "text without a NUL byte expected");
    return text;
}

static int wrong(lua_State *L, const char *key, const char *expected)
{
    const char *got = luaL_typename(L, -1);
    if (lua_type(L, -1) == LUA_TNUMBER) got = luaL_tolstring(L, -1, NULL);
    return bl_misuse(L, "option '%s': %s expected, got %s", key, expected, got);
}

const char *bl_opt_string(lua_State *L, int index, const char *key, size_t *len)
{
    int type = get_raw(L, index, key);
    if (type != LUA_TNIL && type != LUA_TSTRING) wrong(L, key, "a string");
    size_t length = 0;
    const char *text = lua_tolstring(L, -1, &length);
    /* Without a length the text is a C string: a NUL would cut it silently. */
    if (len == NULL && text != NULL && strlen(text) != length) {
        bl_misuse(L, "option '%s' has a NUL byte", key);
    }
    if (len != NULL) *len = length;
    lua_pop(L, 1);
    return text;
}

int64_t bl_opt_integer(lua_State *L, int index, const char *key, int64_t fallback)
{
    int type = get_raw(L, index, key), is_integer;
    int64_t value = lua_tointegerx(L, -1, &is_integer);
    if (type != LUA_TNIL && (type != LUA_TNUMBER || !is_integer)) wrong(L, key, "an integer");
    lua_pop(L, 1);
    return type == LUA_TNIL ? fallback : value;
}

lua_Number bl_opt_number(lua_State *L, int index, const char *key, lua_Number fallback)
{
    int type = get_raw(L, index, key);
    lua_Number value = lua_tonumber(L, -1);
    if (type != LUA_TNIL && (type != LUA_TNUMBER || !(value >= 0)))
        wrong(L, key, "a number from 0");
    lua_pop(L, 1);
    return type == LUA_TNIL ? fallback : value;
}

int64_t bl_opt_ms(lua_State *L, int index, const char *key, int64_t fallback)
{
    int type = get_raw(L, index, key);
    lua_Number seconds = lua_tonumber(L, -1);
    if (type == LUA_TBOOLEAN && !lua_toboolean(L, -1)) {
        lua_pop(L, 1);
        return -1;
    }
    if (type != LUA_TNIL && (type != LUA_TNUMBER || !(seconds >= 0 && seconds <= 1e9))) {
        wrong(L, key, "a number of seconds from 0 to 1e9");
    }
    lua_pop(L, 1);
    if (type == LUA_TNIL) return fallback;
    int64_t ms = (int64_t)(seconds * 1000 + 0.5);
    return ms > 0 ? ms : 1; /* 0 would mean the default */
}

int bl_opt_int_ms(lua_State *L, int index, const char *key)
{
    int64_t ms = bl_opt_ms(L, index, key, 0);
    if (ms > INT_MAX) bl_misuse(L, "option '%s': at most %d seconds", key, INT_MAX / 1000);
    return (int)ms;
}

int bl_opt_flag(lua_State *L, int index, const char *key)
{
    int type = get_raw(L, index, key);
    if (type != LUA_TNIL && type != LUA_TBOOLEAN) wrong(L, key, "true or false");
    int flag = lua_toboolean(L, -1);
    lua_pop(L, 1);
    return flag;
}

/* Replaces the table NAME = value at the top by a list of "NAME=value". */
static void pairs_to_list(lua_State *L, const char *key)
{
    lua_newtable(L);
    lua_Integer n = 0;
    for (lua_pushnil(L); lua_next(L, -3); lua_pop(L, 1)) {
        if (lua_type(L, -2) != LUA_TSTRING || !lua_isstring(L, -1)) {
            bl_misuse(L, "option '%s': a table of NAME = \"value\" expected", key);
        }
        size_t name_len, value_len;
        const char *name = lua_tolstring(L, -2, &name_len);
        const char *value = lua_tolstring(L, -1, &value_len);
        if (name_len == 0 || strchr(name, '=') != NULL || strlen(name) != name_len) {
            bl_misuse(L, "option '%s': '%s' cannot be a variable's name", key, name);
        }
        if (strlen(value) != value_len) {
            bl_misuse(L, "option '%s': the value of '%s' has a NUL byte", key, name);
        }
        lua_pushfstring(L, "%s=%s", name, value);
        lua_rawseti(L, -4, ++n);
    }
    lua_remove(L, -2);
}

const char *const *bl_opt_strings(lua_State *L, int index, const char *key, int pairs)
{
    int type = get_raw(L, index, key);
    if (type == LUA_TNIL) return NULL;
    if (type != LUA_TTABLE) wrong(L, key, "a table");
    if (pairs) pairs_to_list(L, key);
    size_t n = lua_rawlen(L, -1);
    const char **list = lua_newuserdatauv(L, (n + 1) * sizeof *list, 1);
    for (size_t i = 0; i < n; i++) {
        size_t len;
        if (lua_rawgeti(L, -2, (lua_Integer)i + 1) != LUA_TSTRING) {
            bl_misuse(L, "option '%s': item %d is not a string", key, (int)i + 1);
        }
        list[i] = lua_tolstring(L, -1, &len);
        if (strlen(list[i]) != len)
            bl_misuse(L, "option '%s': item %d has a NUL byte", key, (int)i + 1);
        lua_pop(L, 1);
    }
    list[n] = NULL;
    lua_insert(L, -2);
    lua_setiuservalue(L, -2, 1); /* the array keeps its strings */
    return list;
}
