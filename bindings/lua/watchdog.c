#include "watchdog.h"

#include "base/clock.h"
#include "base/error.h"
#include "errors.h"
#include "bounds.h"

/* In the registry, the error of each limit, made beforehand: there may be no memory for it then. */
static const char slice_error_key, total_error_key, load_error_key;

static void throw_stop(lua_State *L, const bl_state *state)
{
    lua_rawgetp(L, LUA_REGISTRYINDEX, state->limit_error);
    lua_error(L);
}

static void on_count(lua_State *L, lua_Debug *ar)
{
    bl_state *state = bl_state_of(L);
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

static void keep_slice_error(lua_State *L, const void *key, int64_t slice_ms)
{
    barchan_error err;
    bc_error_set(&err, BARCHAN_ETIMEDOUT,
                 "the script ran for %g s without waiting for anything, and was stopped",
                 (double)slice_ms / 1000);
    keep_error(L, key, &err);
}

void bl_watchdog_open(lua_State *L)
{
    keep_slice_error(L, &load_error_key, BL_LOAD_SLICE_MS);
}

void bl_watchdog_limit(lua_State *L, bl_state *state, int64_t slice_ms, int64_t total_ms)
{
    barchan_error err;
    if (slice_ms <= 0 && total_ms <= 0) return;
    state->slice_us = slice_ms > 0 ? slice_ms * 1000 : 0;
    state->total_us = total_ms > 0 ? total_ms * 1000 : 0;
    keep_slice_error(L, &slice_error_key, slice_ms);
    bc_error_set(&err, BARCHAN_ETIMEDOUT, "the script used up its %g s of running time",
                 (double)total_ms / 1000);
    keep_error(L, &total_error_key, &err);
    lua_sethook(L, on_count, LUA_MASKCOUNT, BL_LOOK_EVERY);
}

void bl_watchdog_watch(lua_State *co)
{
    lua_sethook(co, on_count, LUA_MASKCOUNT, BL_LOOK_EVERY);
}

/* Takes over a limit when it ends earlier than the one there is. */
static void limit(bl_state *state, int64_t deadline_us, const void *error_key)
{
    if (state->deadline_us != 0 && state->deadline_us <= deadline_us) return;
    state->deadline_us = deadline_us;
    state->limit_error = error_key;
}

void bl_watchdog_begin(bl_state *state, int64_t used_us, int loads)
{
    if (state->slice_us == 0 && state->total_us == 0 && !loads) return;
    int64_t now = bc_clock_us();
    state->slice_began_us = now;
    state->stopping = 0;
    state->deadline_us = 0;
    if (state->slice_us > 0) limit(state, now + state->slice_us, &slice_error_key);
    if (state->total_us > 0) {
        int64_t left = state->total_us - used_us;
        limit(state, now + (left > 0 ? left : 0), &total_error_key);
    }
    if (loads) limit(state, now + BL_LOAD_SLICE_MS * 1000, &load_error_key);
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
    state->stopping = 0;
    state->deadline_us = bc_clock_us() + BL_CLOSING_MS * 1000;
}
