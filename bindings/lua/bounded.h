/* The functions of the safe library that loop in C. */
#ifndef BL_BOUNDED_H
#define BL_BOUNDED_H

#include <lua.h>

/* Puts bounded versions in the place of Lua's own, in a state that has Lua's libraries. */
void bl_bound_library(lua_State *L);

#endif
