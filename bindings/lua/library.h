/* The Lua library of an engine: what scripts may use. An allow-list, built from nothing. */
#ifndef BL_LIBRARY_H
#define BL_LIBRARY_H

#include <lua.h>
#include <barchan/engine.h>

/* Opens the library into a fresh state. `script_dirs` is where require looks. Throws. */
void bl_open_library(lua_State *L, barchan_library library, const char *const *script_dirs);

#endif
