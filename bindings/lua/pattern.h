/* string.find, match, gmatch and gsub for the safe library: Lua's patterns with a step budget. A
 * pattern that backtracks over a long string ends with its script's slice, which Lua's own matcher
 * does not. */
#ifndef BL_PATTERN_H
#define BL_PATTERN_H

#include <lua.h>

/* Puts them into the string library table at the top. */
void bl_open_patterns(lua_State *L);

#endif
