/*
 * Keeps a capped state's garbage within its cap. Lua alone would start a cycle when the memory in
 * use has doubled, which may be far beyond the cap; what it does when an allocation fails runs no
 * finalizers, so that handles stay, and does not help buffers of the string library.
 */
#ifndef BL_COLLECTOR_H
#define BL_COLLECTOR_H

#include "state.h"

/* Between two tasks, and before something large is allocated: sets the pace of the collector by
 * what is left, and collects at once when that is little (but never for more than a tenth of the
 * time). */
void bl_collector_pace(lua_State *L, bl_state *state);

#endif
