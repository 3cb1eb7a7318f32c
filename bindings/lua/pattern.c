#include "pattern.h"

#include <lauxlib.h>
#include <string.h>
#include "pattern_match.h"
#include "watchdog.h"

/* Where a search begins, from a position that may count from the end; len + 1 when beyond it. */
static size_t start_position(lua_Integer init, size_t len)
{
    if (init > 0)
        return init > (lua_Integer)len ? len + (init > (lua_Integer)len + 1) : (size_t)init - 1;
    if (init == 0 || init < -(lua_Integer)len) return 0;
    return len + (size_t)init;
}

static int has_specials(const char *pattern, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (pattern[i] != '\0' && strchr("^$*+?.([%-", pattern[i]) != NULL) return 1;
    }
    return 0;
}

/* memmem is linear; its result as find gives it. */
static int find_plain(lua_State *L, const char *s, size_t from, size_t len, const char *what,
                      size_t what_len)
{
    const char *at = what_len == 0 ? s + from : memmem(s + from, len - from, what, what_len);
    if (at == NULL) {
        lua_pushnil(L);
        return 1;
    }
    lua_pushinteger(L, at - s + 1);
    lua_pushinteger(L, at - s + (lua_Integer)what_len);
    return 2;
}

static int find_or_match(lua_State *L, int find)
{
    size_t len, pattern_len;
    const char *s = luaL_checklstring(L, 1, &len);
    const char *p = luaL_checklstring(L, 2, &pattern_len);
    size_t from = start_position(luaL_optinteger(L, 3, 1), len);
    if (from > len) {
        lua_pushnil(L);
        return 1;
    }
    if (find && (lua_toboolean(L, 4) || !has_specials(p, pattern_len))) {
        return find_plain(L, s, from, len, p, pattern_len);
    }
    bl_matcher m;
    int anchored = pattern_len > 0 && *p == '^';
    bl_matcher_init(&m, L, s, len, p, pattern_len);
    for (const char *at = s + from; at <= m.src_end; at++) {
        m.level = 0;
        const char *end = bl_pattern_match(&m, at, p + anchored);
        if (end == NULL && anchored) break;
        if (end == NULL) continue;
        if (!find) return bl_push_captures(&m, at, end);
        lua_pushinteger(L, at - s + 1);
        lua_pushinteger(L, end - s);
        return 2 + bl_push_captures(&m, NULL, NULL);
    }
    lua_pushnil(L);
    return 1;
}

static int l_find(lua_State *L)
{
    return find_or_match(L, 1);
}

static int l_match(lua_State *L)
{
    return find_or_match(L, 0);
}

/* ---- gmatch ---- */

/* Upvalues: the string, the pattern, where to go on (0-based), where the last match ended (-1:
 * none). */
static int l_gmatch_next(lua_State *L)
{
    size_t len, pattern_len;
    const char *s = lua_tolstring(L, lua_upvalueindex(1), &len);
    const char *p = lua_tolstring(L, lua_upvalueindex(2), &pattern_len);
    size_t from = (size_t)lua_tointeger(L, lua_upvalueindex(3));
    lua_Integer last = lua_tointeger(L, lua_upvalueindex(4));
    bl_matcher m;
    bl_matcher_init(&m, L, s, len, p, pattern_len);
    for (; from <= len; from++) {
        m.level = 0;
        const char *end = bl_pattern_match(&m, s + from, p);
        if (end == NULL || end - s == last) continue; /* no empty match right behind another */
        lua_pushinteger(L, end - s);
        lua_pushvalue(L, -1);
        lua_replace(L, lua_upvalueindex(3));
        lua_replace(L, lua_upvalueindex(4));
        return bl_push_captures(&m, s + from, end);
    }
    lua_pushinteger(L, (lua_Integer)len + 1);
    lua_replace(L, lua_upvalueindex(3));
    return 0;
}

static int l_gmatch(lua_State *L)
{
    size_t len;
    luaL_checklstring(L, 1, &len);
    luaL_checkstring(L, 2);
    size_t from = start_position(luaL_optinteger(L, 3, 1), len);
    lua_settop(L, 2);
    lua_pushinteger(L, (lua_Integer)from);
    lua_pushinteger(L, -1);
    lua_pushcclosure(L, l_gmatch_next, 4);
    return 1;
}

/* ---- gsub ---- */

/* Adds the replacement string with its %0 to %9. */
static void add_template(bl_matcher *m, luaL_Buffer *b, const char *from, const char *to)
{
    size_t len;
    const char *news = lua_tolstring(m->L, 3, &len), *end = news + len;
    while (news < end) {
        const char *escape = memchr(news, '%', (size_t)(end - news));
        luaL_addlstring(b, news, (size_t)((escape != NULL ? escape : end) - news));
        if (escape == NULL) return;
        char what = escape + 1 < end ? escape[1] : '\0';
        if (what == '%') {
            luaL_addchar(b, '%');
        } else if (what == '0') {
            luaL_addlstring(b, from, (size_t)(to - from));
        } else if (what >= '1' && what <= '9') {
            bl_push_capture(m, what - '1', from, to);
            luaL_tolstring(m->L, -1, NULL); /* a position becomes text */
            lua_remove(m->L, -2);
            luaL_addvalue(b);
        } else {
            luaL_error(m->L, "invalid use of '%%' in replacement string");
        }
        news = escape + 2;
    }
}

/* Adds what replaces a match; returns whether it was changed. */
static int add_replacement(bl_matcher *m, luaL_Buffer *b, const char *from, const char *to)
{
    lua_State *L = m->L;
    int type = lua_type(L, 3);
    if (type == LUA_TFUNCTION) {
        lua_pushvalue(L, 3);
        lua_call(L, bl_push_captures(m, from, to), 1);
    } else if (type == LUA_TTABLE) {
        bl_push_capture(m, 0, from, to);
        lua_gettable(L, 3);
    } else {
        add_template(m, b, from, to);
        return 1;
    }
    if (!lua_toboolean(L, -1)) {
        lua_pop(L, 1);
        luaL_addlstring(b, from, (size_t)(to - from));
        return 0;
    }
    if (!lua_isstring(L, -1)) {
        luaL_error(L, "invalid replacement value (a %s)", luaL_typename(L, -1));
    }
    luaL_addvalue(b);
    return 1;
}

static int l_gsub(lua_State *L)
{
    size_t len, pattern_len;
    const char *s = luaL_checklstring(L, 1, &len);
    const char *p = luaL_checklstring(L, 2, &pattern_len);
    int type = lua_type(L, 3);
    lua_Integer most = luaL_optinteger(L, 4, (lua_Integer)len + 1), count = 0;
    luaL_argexpected(L,
                     type == LUA_TNUMBER || type == LUA_TSTRING || type == LUA_TFUNCTION ||
                         type == LUA_TTABLE,
                     3, "string/function/table");
    int anchored = pattern_len > 0 && *p == '^', changed = 0;
    bl_matcher m;
    luaL_Buffer b;
    bl_matcher_init(&m, L, s, len, p, pattern_len);
    luaL_buffinit(L, &b);
    const char *at = s, *last = NULL;
    while (count < most) {
        m.level = 0;
        const char *end = bl_pattern_match(&m, at, p + anchored);
        if (end != NULL && end != last) {
            count++;
            changed |= add_replacement(&m, &b, at, end);
            at = last = end;
        } else if (at < m.src_end) {
            luaL_addchar(&b, *at);
            at++;
        } else {
            break;
        }
        if (anchored) break;
    }
    if (!changed) {
        lua_pushvalue(L, 1);
    } else {
        luaL_addlstring(&b, at, (size_t)(m.src_end - at));
        luaL_pushresult(&b);
    }
    lua_pushinteger(L, count);
    return 2;
}

void bl_open_patterns(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"find", l_find}, {"match", l_match}, {"gmatch", l_gmatch}, {"gsub", l_gsub}, {NULL, NULL}};
    luaL_setfuncs(L, functions, 0);
}
