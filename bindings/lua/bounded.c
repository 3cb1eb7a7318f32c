/* Loops in C that no hook sees: how long each may be, and looks at the clock where that is not
 * enough. */
#include "bounded.h"

#include <lauxlib.h>
#include <lualib.h>
#include <stdbool.h>
#include "bounds.h"
#include "watchdog.h"

static int bounded(lua_State *L, lua_Integer rounds)
{
    bl_watchdog_look(L);
    if (rounds > BL_MAX_ROUNDS) return luaL_error(L, "more than %d rounds", (int)BL_MAX_ROUNDS);
    /* Lua's own, in this very call: its errors name the function and the line that calls it. */
    return lua_tocfunction(L, lua_upvalueindex(1))(L);
}

static int l_rep(lua_State *L)
{
    luaL_checkstring(L, 1);
    return bounded(L, luaL_checkinteger(L, 2));
}

static int l_move(lua_State *L)
{
    lua_Integer from = luaL_checkinteger(L, 2), to = luaL_checkinteger(L, 3);
    /* Without overflow: the difference of far ends does not fit. */
    return bounded(L, from <= to &&
                              (from < 0 ? to >= from + BL_MAX_ROUNDS : to - from >= BL_MAX_ROUNDS)
                          ? BL_MAX_ROUNDS + 1
                          : 0);
}

/* These go over as many places as the table has. Lua's own would ask __len once more, and it may
 * say something else then. */
static int l_bounded_by_length(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    if (luaL_getmetafield(L, 1, "__len") != LUA_TNIL) {
        return luaL_error(L, "a table with __len is not taken here; set its fields yourself");
    }
    return bounded(L, (lua_Integer)lua_rawlen(L, 1));
}

/* table.concat and table.unpack: from, to. */
static int bounded_by_range(lua_State *L, int first, int last)
{
    lua_Integer from = luaL_optinteger(L, first, 1);
    lua_Integer to = lua_isnoneornil(L, last) ? luaL_len(L, 1) : luaL_checkinteger(L, last);
    int many = from <= to && (lua_Unsigned)to - (lua_Unsigned)from >= (lua_Unsigned)BL_MAX_ROUNDS;
    return bounded(L, many ? BL_MAX_ROUNDS + 1 : 0);
}

static int l_concat(lua_State *L)
{
    luaL_checkany(L, 1);
    return bounded_by_range(L, 3, 4);
}

static int l_unpack(lua_State *L)
{
    luaL_checkany(L, 1);
    return bounded_by_range(L, 2, 3);
}

static int l_bounded(lua_State *L)
{
    return bounded(L, 0);
}

/* ---- what compares ---- */

/* The order of a sort: upvalues are the state and what the script gave, a function in C or nil. A
 * sort makes some n log n comparisons, each maybe of texts of megabytes. */
static int l_in_order(lua_State *L)
{
    bl_state *state = lua_touserdata(L, lua_upvalueindex(1));
    bool is_long = lua_type(L, 1) == LUA_TSTRING && lua_rawlen(L, 1) >= BL_LONG_TEXT_BYTES;
    if (is_long || ++state->compared % BL_LOOK_EVERY == 0) bl_watchdog_look(L);
    if (lua_isnil(L, lua_upvalueindex(2))) {
        lua_pushboolean(L, lua_compare(L, 1, 2, LUA_OPLT));
        return 1;
    }
    lua_pushvalue(L, lua_upvalueindex(2));
    lua_insert(L, 1);
    lua_call(L, 2, 1);
    return 1;
}

/* An order in Lua needs none of this: the count hook sees it. */
static int l_sort(lua_State *L)
{
    luaL_checkany(L, 1);
    lua_settop(L, 2);
    if (lua_isnil(L, 2) || lua_iscfunction(L, 2)) {
        lua_pushlightuserdata(L, bl_state_of(L));
        lua_insert(L, 2);
        lua_pushcclosure(L, l_in_order, 2);
    }
    return bounded(L, luaL_len(L, 1));
}

/* ---- what reads texts ---- */

/* A number may be given as a text, and each place that takes one reads it again. */
static int l_bounded_by_texts(lua_State *L)
{
    size_t left = BL_MAX_TEXT_BYTES;
    for (int i = lua_gettop(L); i > 0; i--) {
        size_t len = lua_type(L, i) == LUA_TSTRING ? lua_rawlen(L, i) : 0;
        if (len > left) return luaL_error(L, "texts of more than %d MB", BL_MAX_TEXT_BYTES >> 20);
        left -= len;
    }
    return bounded(L, 0);
}

static int l_date(lua_State *L)
{
    size_t len = 0;
    luaL_optlstring(L, 1, "", &len);
    luaL_argcheck(L, len <= BL_MAX_DATE_FORMAT, 1, "the format is too long");
    return bounded(L, 0);
}

/* ---- the library ---- */

/* Puts a bounded version in the place of a function of a library. */
static void bound(lua_State *L, const char *library, const char *name, lua_CFunction fn)
{
    lua_getglobal(L, library);
    lua_getfield(L, -1, name);
    lua_pushcclosure(L, fn, 1);
    lua_setfield(L, -2, name);
    lua_pop(L, 1);
}

void bl_bound_library(lua_State *L)
{
    static const struct {
        const char *library, *name;
        lua_CFunction fn;
    } all[] = {
        {LUA_STRLIBNAME, "rep", l_rep},
        {LUA_STRLIBNAME, "lower", l_bounded}, /* by what memory there is for a string */
        {LUA_STRLIBNAME, "upper", l_bounded},
        {LUA_STRLIBNAME, "reverse", l_bounded},
        {LUA_UTF8LIBNAME, "codepoint", l_bounded},
        {LUA_UTF8LIBNAME, "len", l_bounded},
        {LUA_UTF8LIBNAME, "offset", l_bounded},
        {LUA_TABLIBNAME, "move", l_move},
        {LUA_TABLIBNAME, "insert", l_bounded_by_length},
        {LUA_TABLIBNAME, "remove", l_bounded_by_length},
        {LUA_TABLIBNAME, "sort", l_sort},
        {LUA_TABLIBNAME, "concat", l_concat},
        {LUA_TABLIBNAME, "unpack", l_unpack},
        {LUA_STRLIBNAME, "format", l_bounded_by_texts},
        {LUA_STRLIBNAME, "pack", l_bounded_by_texts},
        {LUA_STRLIBNAME, "char", l_bounded_by_texts},
        {LUA_UTF8LIBNAME, "char", l_bounded_by_texts},
        {LUA_MATHLIBNAME, "max", l_bounded_by_texts},
        {LUA_MATHLIBNAME, "min", l_bounded_by_texts},
        {LUA_OSLIBNAME, "date", l_date},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        bound(L, all[i].library, all[i].name, all[i].fn);
}
