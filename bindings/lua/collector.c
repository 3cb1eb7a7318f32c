#include "collector.h"

#include "base/clock.h"
#include "bounds.h"

/* A full cycle, and another for what the finalizers of the first let go of. */
static void collect(lua_State *L, bl_state *state)
{
    int64_t began = bc_clock_us();
    if (began < state->collect_after_us) return;
    lua_gc(L, LUA_GCCOLLECT);
    lua_gc(L, LUA_GCCOLLECT);
    int64_t now = bc_clock_us();
    state->collect_after_us = now + (now - began) * BL_COLLECT_SHARE;
}

void bl_collector_pace(lua_State *L, bl_state *state)
{
    if (state->memory_left == NULL) return;
    size_t left = state->memory_left(state), used = state->memory_limit - left;
    /* The next cycle begins when half of what is left is used up, or the memory has doubled. */
    size_t more = used > 0 ? left / 2 * 100 / used : 100;
    lua_gc(L, LUA_GCSETPAUSE, 100 + (int)(more < 100 ? more : 100));
    if (left < state->memory_limit / 8) collect(L, state);
}
