/* barchan.so in two Lua states of one process, neither of them an engine: each has a runtime of its
 * own, they share nothing, and either may be closed first, with work under way. */
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <stddef.h>
#include "suite.h"

static lua_State *open_state(void)
{
    lua_State *L = luaL_newstate();
    ck_assert_ptr_nonnull(L);
    luaL_openlibs(L);
    return L;
}

static void run(lua_State *L, const char *text)
{
    int failed = luaL_dostring(L, text);
    ck_assert_msg(!failed, "%s", failed ? lua_tostring(L, -1) : "");
    lua_settop(L, 0);
}

static const char work[] =
    "barchan = require 'barchan'\n"
    "local sbx <close> = assert(barchan.sandbox())\n"
    "assert(sbx:exec('echo ' .. word).out == word .. '\\n')\n"
    "local outcomes = barchan.gather { function() barchan.sleep(0.01) return word end }\n"
    "assert(outcomes[1].value == word)\n"
    "assert(#barchan.sandboxes() == 1)\n";

static const char leave_open[] = "left = assert(barchan.sandbox())\n"
                                 "barchan.spawn(function() left:exec 'sleep 60' end)\n"
                                 "barchan.spawn(function() end):wait()\n";

START_TEST(two_states_share_nothing)
{
    for (int second_first = 0; second_first < 2; second_first++) {
        lua_State *a = open_state(), *b = open_state();
        run(a, "word = 'a'");
        run(b, "word = 'b'");
        run(a, work);
        run(b, work);
        run(a, leave_open);
        run(b, leave_open);
        lua_close(second_first ? b : a);
        run(second_first ? a : b, "assert(left:status().state == 'ready')"
                                  "assert(left:exec('echo on').out == 'on\\n')");
        lua_close(second_first ? a : b);
    }
}
END_TEST

START_TEST(a_state_opens_it_twice)
{
    lua_State *L = open_state();
    run(L, "local one = require 'barchan' package.loaded.barchan = nil\n"
           "local two = require 'barchan' assert(one.version == two.version)\n"
           "assert(two.spawn(function() two.sleep(0) return 1 end):wait())");
    lua_close(L);
}
END_TEST

SUITE_MAIN("two_states", NULL, NULL, two_states_share_nothing, a_state_opens_it_twice)
