/* core.util: small things that the scripts need from C. */
#include <stdlib.h>
#include <string.h>
#include "base/clock.h"
#include "base/random.h"
#include "base/utf8.h"
#include "errors.h"
#include "handle.h"
#include "runtime/versions.h"
#include "state.h"
#include "util.h"

/* now() -> seconds of a clock that only runs forward */
static int l_now(lua_State *L)
{
    lua_pushnumber(L, (lua_Number)bc_clock_us() / 1e6);
    return 1;
}

/* wall_time() -> seconds since 1970 */
static int l_wall_time(lua_State *L)
{
    lua_pushnumber(L, (lua_Number)bc_wall_clock_ms() / 1000);
    return 1;
}

/* random_id(prefix) -> prefix and 16 hexadecimal digits of the system's randomness */
static int l_random_id(lua_State *L)
{
    char digits[17];
    const char *prefix = bl_check_text(L, 1);
    if (bc_random_hex(digits, 16) < 0) return luaL_error(L, "no randomness from the system");
    lua_pushfstring(L, "%s%s", prefix, digits);
    return 1;
}

/* utf8_repair(text) -> text with invalid bytes as U+FFFD */
static int l_utf8_repair(lua_State *L)
{
    size_t len, at = 0;
    const char *text = luaL_checklstring(L, 1, &len);
    while (at < len) {
        int n = bc_utf8_next(text + at, len - at);
        if (n <= 0) break;
        at += (size_t)n;
    }
    lua_settop(L, 1);
    if (at == len) return 1; /* the usual case: nothing to repair */
    luaL_Buffer b;
    luaL_buffinit(L, &b);
    for (size_t good = 0; at <= len;) {
        int n = at < len ? bc_utf8_next(text + at, len - at) : 0;
        if (n > 0) {
            at += (size_t)n;
            continue;
        }
        luaL_addlstring(&b, text + good, at - good);
        if (at < len) luaL_addstring(&b, "\xEF\xBF\xBD");
        good = ++at;
    }
    luaL_pushresult(&b);
    return 1;
}

/* utf8_head(text, n), utf8_tail(text, n) -> at most n bytes, cut between characters */
static int l_utf8_head(lua_State *L)
{
    size_t len;
    const char *text = luaL_checklstring(L, 1, &len);
    lua_Integer n = luaL_checkinteger(L, 2);
    if (n < 0) n = 0;
    if ((size_t)n < len) len = bc_utf8_whole(text, (size_t)n);
    lua_pushlstring(L, text, len);
    return 1;
}

static int l_utf8_tail(lua_State *L)
{
    size_t len;
    const char *text = luaL_checklstring(L, 1, &len);
    lua_Integer n = luaL_checkinteger(L, 2);
    if (n < 0) n = 0;
    size_t from = (size_t)n < len ? len - (size_t)n : 0;
    for (int i = 0; i < 3 && from > 0 && from < len && ((unsigned char)text[from] & 0xC0) == 0x80;
         i++) {
        from++;
    }
    lua_pushlstring(L, text + from, len - from);
    return 1;
}

const char *bl_getenv(const char *name, const char *ending)
{
    size_t len = strlen(name), end = strlen(ending);
    if (len <= end || strcmp(name + len - end, ending) != 0) return NULL;
    const char *value = getenv(name);
    return value != NULL && value[0] != '\0' ? value : NULL;
}

/* getenv(name) -> only variables that configure Barchan: BARCHAN_*, *_BASE_URL, NO_COLOR, TERM. For
 * the embedded scripts: engines for scripts of others have no os.getenv. */
static int l_getenv(lua_State *L)
{
    const char *name = bl_check_text(L, 1);
    int known = strncmp(name, "BARCHAN_", 8) == 0 || strcmp(name, "NO_COLOR") == 0 ||
                strcmp(name, "TERM") == 0;
    lua_pushstring(L, known ? getenv(name) : bl_getenv(name, "_BASE_URL"));
    return 1;
}

/* has_key(name) -> whether a variable *_API_KEY is set; its value never enters Lua */
static int l_has_key(lua_State *L)
{
    lua_pushboolean(L, bl_getenv(bl_check_text(L, 1), "_API_KEY") != NULL);
    return 1;
}

/* libraries() -> list of { name, version }: what this build runs on */
static int l_libraries(lua_State *L)
{
    lua_newtable(L);
    for (int i = 0;; i++) {
        char version[64];
        const char *name = bc_library_version(i, version, sizeof version);
        if (name == NULL) break;
        lua_createtable(L, 0, 2);
        lua_pushstring(L, name);
        lua_setfield(L, -2, "name");
        lua_pushstring(L, version);
        lua_setfield(L, -2, "version");
        lua_rawseti(L, -2, i + 1);
    }
    lua_createtable(L, 0, 2);
    lua_pushliteral(L, "lua");
    lua_setfield(L, -2, "name");
    lua_pushliteral(L, LUA_VERSION_MAJOR "." LUA_VERSION_MINOR "." LUA_VERSION_RELEASE);
    lua_setfield(L, -2, "version");
    lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
    return 1;
}

/* caller() -> the place of who called the library, as the beginning of a message */
static int l_caller(lua_State *L)
{
    bl_push_caller(L);
    return 1;
}

/* error(fields) -> an error object */
static int l_error_object(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 1);
    bl_push_error_meta(L);
    lua_setmetatable(L, 1);
    return 1;
}

void bl_open_util(lua_State *L)
{
    static const luaL_Reg functions[] = {{"now", l_now},
                                         {"wall_time", l_wall_time},
                                         {"random_id", l_random_id},
                                         {"utf8_repair", l_utf8_repair},
                                         {"utf8_head", l_utf8_head},
                                         {"utf8_tail", l_utf8_tail},
                                         {"getenv", l_getenv},
                                         {"has_key", l_has_key},
                                         {"libraries", l_libraries},
                                         {"error", l_error_object},
                                         {"caller", l_caller},
                                         {NULL, NULL}};
    luaL_newlib(L, functions);
    lua_pushstring(L, barchan_version());
    lua_setfield(L, -2, "version");
    bl_push_published(L);
    lua_setfield(L, -2, "published"); /* function -> its name, for messages */
    lua_setfield(L, -2, "util");
}
