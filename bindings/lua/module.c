/* require "barchan" under stock lua5.4: the same API, on a runtime of this Lua state's own. */
#include <lua.h>
#include <lauxlib.h>
#include "loader.h"
#include "state.h"

__attribute__((visibility("default"))) int luaopen_barchan(lua_State *L);

int luaopen_barchan(lua_State *L)
{
    bl_state_new(L, NULL);
    lua_getglobal(L, "package");
    bl_preload_modules(L, lua_gettop(L));
    bl_load_script(L, "barchan/init.lua");
    lua_pushliteral(L, "barchan");
    bl_push_core(L);
    lua_call(L, 2, 1);
    return 1;
}
