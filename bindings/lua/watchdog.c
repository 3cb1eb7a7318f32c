#include "watchdog.h"

#include <stdbool.h>
#include <stdio.h>
#include "base/clock.h"
#include "base/error.h"
#include "call.h"
#include "errors.h"
#include "task.h"
#include "bounds.h"

/* In the registry, the error of each limit, made beforehand: there may be no memory for it then. */
static const char slice_error_key, total_error_key, load_error_key, call_error_key,
    cancel_error_key, within_error_key;

/* A copy of an error that was made beforehand, for this stop's own traceback. */
static int l_copy_error(lua_State *L)
{
    lua_createtable(L, 0, 6);
    for (lua_pushnil(L); lua_next(L, 1) != 0;) {
        lua_pushvalue(L, -2);
        lua_insert(L, -2);
        lua_rawset(L, 2);
    }
    lua_getmetatable(L, 1);
    lua_setmetatable(L, 2);
    return 1;
}

void bl_watchdog_push_error(lua_State *L, const void *limit_error)
{
    lua_rawgetp(L, LUA_REGISTRYINDEX, limit_error);
    lua_pushcfunction(L, l_copy_error);
    lua_pushvalue(L, -2);
    if (bl_call_plain(L, 1, 1) == LUA_OK)
        lua_remove(L, -2);
    else
        lua_pop(L, 1);
}

static void throw_stop(lua_State *L, const bl_state *state)
{
    luaL_checkstack(L, 4, "not enough memory");
    bl_watchdog_push_error(L, state->slice.limit_error);
    lua_error(L);
}

/* Takes over a limit when it ends earlier than the one there is. */
static void limit(bl_state *state, int64_t deadline_us, const void *error_key)
{
    if (state->slice.deadline_us != 0 && state->slice.deadline_us <= deadline_us) return;
    state->slice.deadline_us = deadline_us;
    state->slice.limit_error = error_key;
}

/* The same for what is limited by the time that it runs. */
static void limit_running(bl_state *state, int64_t runs_us, const void *error_key)
{
    bl_slice *slice = &state->slice;
    if (slice->runs_us != 0 && slice->runs_us <= runs_us) return;
    slice->runs_us = runs_us > 0 ? runs_us : 1;
    slice->runs_until_us = slice->began_us + slice->runs_us;
    slice->runs_error = error_key;
}

/* Its earliest end on the clock has passed. */
static void look_at_running(bl_state *state, int64_t now)
{
    bl_slice *slice = &state->slice;
    int64_t ran = slice->ran_us != 0 ? bc_clock_thread_us() - slice->ran_us : 0;
    int64_t left = slice->runs_us - ran;
    if (left <= 0 || now - slice->began_us >= slice->runs_us * BL_SLICE_STRETCH)
        limit(state, now, slice->runs_error);
    else
        slice->runs_until_us = now + left;
}

/* The time for an end that begins now. */
static int64_t time_for_end_us(bl_state *state, int64_t now)
{
    static const int64_t most = BL_CLOSING_MS * 1000;
    int64_t left = state->ends_left_us + (now - state->ends_at_us) / BL_CLOSING_SHARE;
    state->ends_left_us = left < most ? left : most;
    state->ends_at_us = now;
    if (state->slice.ends_from_us == 0) state->slice.ends_from_us = now;
    if (state->closing || state->ends_left_us > BL_CLOSING_LEAST_US) return state->ends_left_us;
    return BL_CLOSING_LEAST_US;
}

static void count_end(bl_state *state, int64_t now)
{
    int64_t took = state->slice.ends_from_us != 0 ? now - state->slice.ends_from_us : 0;
    if (took <= BL_CLOSING_LEAST_US) return;
    state->ends_left_us -= took < state->ends_left_us ? took : state->ends_left_us;
}

/* A moment that may have passed already, or that what runs was just told of by its cancellation:
 * then it comes to its end. */
static void limit_by_clock(bl_state *state, const bl_task *task, int64_t deadline_us,
                           const void *error_key)
{
    int64_t now = state->slice.began_us, end = 0;
    if (deadline_us == 0) return;
    bool is_near = deadline_us < now + BL_CLOSING_MS * 1000;
    if (deadline_us <= now || (is_near && bl_task_cancelled(task)))
        end = now + time_for_end_us(state, now);
    limit(state, deadline_us > end ? deadline_us : end, error_key);
}

/* Whether what runs must stop now. */
static int must_stop(bl_state *state)
{
    if (state->slice.stopping) return 1;
    const bl_task *task = state->current;
    bl_slice *slice = &state->slice;
    bool limited = slice->deadline_us != 0 || slice->runs_until_us != 0;
    if (!limited && (task == NULL || task->token == NULL)) return 0;
    int64_t now = bc_clock_us();
    /* Not as it begins: most have ended by then, and that clock is slow. */
    bool is_short = now - slice->began_us < BL_SHORT_SLICE_US;
    if (slice->ran_us == 0 && !is_short) slice->ran_us = bc_clock_thread_us();
    if (slice->runs_until_us != 0 && now >= slice->runs_until_us) look_at_running(state, now);
    if (task != NULL && barchan_cancel_triggered(task->token)) {
        limit(state, now + time_for_end_us(state, now), &cancel_error_key);
    }
    return slice->deadline_us != 0 && now >= slice->deadline_us;
}

static void on_count(lua_State *L, lua_Debug *ar);

/* What runs is stopped; its handlers get a moment. */
static void stop(lua_State *L, bl_state *state)
{
    state->slice.stopping = 1;
    state->slice.grace_ends_us = bc_clock_us() + BL_GRACE_US;
    lua_sethook(L, on_count, LUA_MASKCOUNT, BL_GRACE_INSTRUCTIONS);
    throw_stop(L, state);
}

static void on_count(lua_State *L, lua_Debug *ar)
{
    bl_state *state = bl_state_of(L);
    (void)ar;
    if (!state->slice.stopping) {
        if (lua_gethookcount(L) != BL_LOOK_EVERY) {
            lua_sethook(L, on_count, LUA_MASKCOUNT, BL_LOOK_EVERY);
        }
        if (must_stop(state)) stop(L, state);
        return;
    }
    if (lua_gethookcount(L) != 1) { /* setting it costs as much as the stack is deep */
        lua_sethook(L, on_count, LUA_MASKCOUNT, 1);
    }
    throw_stop(L, state);
}

void bl_watchdog_look(lua_State *L)
{
    bl_state *state = bl_state_of(L);
    if (!must_stop(state)) return;
    if (!state->slice.stopping) stop(L, state);
    if (bc_clock_us() < state->slice.grace_ends_us) return;
    lua_sethook(L, on_count, LUA_MASKCOUNT, 1);
    throw_stop(L, state);
}

static void keep_error(lua_State *L, const void *key, int code, const char *message)
{
    barchan_error err;
    bc_error_set(&err, code, "%s", message);
    bl_push_error(L, &err);
    lua_rawsetp(L, LUA_REGISTRYINDEX, key);
}

static void keep_late(lua_State *L, const void *key, const char *before, int64_t ms,
                      const char *after)
{
    char message[160];
    snprintf(message, sizeof message, "%s%g s%s", before, (double)ms / 1000, after);
    keep_error(L, key, BARCHAN_ETIMEDOUT, message);
}

#define RAN "the script ran for "
#define ON " without waiting for anything, and was stopped"

void bl_watchdog_open(lua_State *L)
{
    keep_late(L, &load_error_key, RAN, BL_LOAD_SLICE_MS, ON);
    keep_error(L, &cancel_error_key, BARCHAN_ECANCELLED, "the task was cancelled");
    keep_error(L, &within_error_key, BARCHAN_ETIMEDOUT,
               "it ran past its time without waiting for anything, and was stopped");
}

static int64_t positive_us(int64_t ms)
{
    return ms > 0 ? ms * 1000 : 0;
}

void bl_watchdog_limit(lua_State *L, bl_state *state, const bl_time_limits *limits)
{
    state->slice_us = positive_us(limits->slice_ms);
    state->total_us = positive_us(limits->total_ms);
    keep_late(L, &slice_error_key, RAN, limits->slice_ms, ON);
    keep_late(L, &total_error_key, "the script used up its ", limits->total_ms, " of running time");
    keep_late(L, &call_error_key, "the call took longer than ", limits->call_ms, "");
    if (state->slice_us > 0 || state->total_us > 0) bl_watchdog_watch(L);
}

void bl_watchdog_watch(lua_State *co)
{
    lua_sethook(co, on_count, LUA_MASKCOUNT, BL_LOOK_EVERY);
}

const void *bl_watchdog_over(const bl_task *task)
{
    int64_t now = task->deadline_us != 0 || task->own_deadline_us != 0 ? bc_clock_us() : 0;
    if (bl_task_cancelled(task)) return &cancel_error_key;
    if (task->deadline_us != 0 && now >= task->deadline_us) return &call_error_key;
    if (task->own_deadline_us != 0 && now >= task->own_deadline_us) return &within_error_key;
    return NULL;
}

bl_slice bl_watchdog_begin(bl_state *state, const bl_task *task)
{
    int64_t now = bc_clock_us();
    bl_slice outer = state->slice;
    state->slice = (bl_slice){.began_us = now};
    if (state->slice_us > 0) limit_running(state, state->slice_us, &slice_error_key);
    if (state->total_us > 0) {
        int64_t used = task != NULL ? task->used_us : 0;
        limit_running(state, state->total_us - used, &total_error_key);
    }
    if (task != NULL && task->loads) {
        limit_running(state, BL_LOAD_SLICE_MS * 1000, &load_error_key);
    }
    if (state->total_us > 0) state->slice.ran_us = bc_clock_thread_us();
    if (task == NULL) return outer;
    limit_by_clock(state, task, task->own_deadline_us, &within_error_key);
    limit_by_clock(state, task, task->deadline_us, &call_error_key);
    return outer;
}

int64_t bl_watchdog_end(bl_state *state, const bl_slice *outer)
{
    int64_t ran = state->total_us > 0 ? bc_clock_thread_us() - state->slice.ran_us : 0;
    count_end(state, bc_clock_us());
    state->slice = *outer;
    return ran;
}

void bl_watchdog_closing(bl_state *state)
{
    int64_t now = bc_clock_us();
    state->slice.stopping = 0;
    state->slice.runs_until_us = 0;
    state->slice.deadline_us = now + time_for_end_us(state, now);
}

void bl_watchdog_unwinding(bl_state *state)
{
    if (!state->slice.stopping || state->slice.is_closing) return;
    state->slice.is_closing = 1;
    bl_watchdog_closing(state);
}
