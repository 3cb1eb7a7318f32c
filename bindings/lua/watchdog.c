#include "watchdog.h"

#include "base/clock.h"
#include "base/error.h"
#include "errors.h"
#include "bounds.h"

static const char slice_error_key, total_error_key;

/* Made beforehand: there may be no memory for it now. */
static void throw_stop(lua_State *L, const bl_state *state)
{
    lua_rawgetp(L, LUA_REGISTRYINDEX, state->over_total ? &total_error_key : &slice_error_key);
    lua_error(L);
}

static void on_count(lua_State *L, lua_Debug *ar)
{
    bl_state *state = *(bl_state **)lua_getextraspace(L);
    (void)ar;
    if (!state->stopping) {
        if (lua_gethookcount(L) != BL_LOOK_EVERY) {
            lua_sethook(L, on_count, LUA_MASKCOUNT, BL_LOOK_EVERY);
        }
        if (state->deadline_us == 0 || bc_clock_us() < state->deadline_us) return;
        state->stopping = 1;
        lua_sethook(L, on_count, LUA_MASKCOUNT, BL_GRACE_INSTRUCTIONS);
    } else {
        lua_sethook(L, on_count, LUA_MASKCOUNT, 1);
    }
    throw_stop(L, state);
}

void bl_watchdog_look(lua_State *L)
{
    bl_state *state = bl_state_of(L);
    if (state->deadline_us == 0 || (!state->stopping && bc_clock_us() < state->deadline_us)) return;
    state->stopping = 1;
    lua_sethook(L, on_count, LUA_MASKCOUNT, BL_GRACE_INSTRUCTIONS);
    luaL_checkstack(L, 2, "not enough memory");
    throw_stop(L, state);
}

static void keep_error(lua_State *L, const void *key, const barchan_error *err)
{
    bl_push_error(L, err);
    lua_rawsetp(L, LUA_REGISTRYINDEX, key);
}

void bl_watchdog_open(lua_State *L, bl_state *state, int64_t slice_ms, int64_t total_ms)
{
    if (slice_ms <= 0 && total_ms <= 0) return;
    state->slice_us = slice_ms * 1000;
    state->total_us = total_ms * 1000;
    barchan_error err;
    bc_error_set(&err, BARCHAN_ETIMEDOUT,
                 "the script ran for %g s without waiting for anything, and was stopped",
                 (double)slice_ms / 1000);
    keep_error(L, &slice_error_key, &err);
    bc_error_set(&err, BARCHAN_ETIMEDOUT, "the script used up its %g s of running time",
                 (double)total_ms / 1000);
    keep_error(L, &total_error_key, &err);
    *(bl_state **)lua_getextraspace(L) = state; /* every coroutine gets a copy */
    lua_sethook(L, on_count, LUA_MASKCOUNT, BL_LOOK_EVERY);
}

void bl_watchdog_begin(bl_state *state, int64_t used_us)
{
    if (state->slice_us <= 0 && state->total_us <= 0) return;
    int64_t now = bc_clock_us();
    state->slice_began_us = now;
    state->stopping = 0;
    int64_t left = state->total_us > 0 ? state->total_us - used_us : INT64_MAX;
    state->over_total = left < state->slice_us || state->slice_us <= 0;
    if (!state->over_total) left = state->slice_us;
    state->deadline_us = now + (left > 0 ? left : 0);
}

int64_t bl_watchdog_end(bl_state *state)
{
    if (state->deadline_us == 0) return 0;
    state->deadline_us = 0;
    state->stopping = 0;
    return bc_clock_us() - state->slice_began_us;
}

void bl_watchdog_closing(bl_state *state)
{
    if (state->slice_us <= 0 && state->total_us <= 0) return;
    state->stopping = 0;
    state->deadline_us = bc_clock_us() + BL_CLOSING_MS * 1000;
}
