#include "watchdog.h"

#include <stdbool.h>
#include <stdio.h>
#include "base/clock.h"
#include "base/error.h"
#include "call.h"
#include "errors.h"
#include "scheduler.h"
#include "task.h"
#include "bounds.h"

/* In the registry, the error of each limit, made beforehand: there may be no memory for it then. */
static const char slice_error_key, total_error_key, load_error_key, call_error_key,
    cancel_error_key, within_error_key, end_error_key;

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

/* The same for what is limited by the time that it runs, from now on. */
static void limit_running(bl_state *state, int64_t now, int64_t us, const void *error_key)
{
    bl_running *running = &state->slice.running;
    if (running->us != 0 && running->us <= us) return;
    if (us <= 0) us = 1;
    *running = (bl_running){.us = us, .from_us = now, .until_us = now + us, .error = error_key};
}

static void look_at_running(bl_state *state, int64_t now)
{
    bl_running *running = &state->slice.running;
    int64_t took = now - running->from_us;
    if (running->us == 0) return;
    /* Not as it begins: most have ended by then, and that clock is slow. */
    if (running->ran_us == 0 && took >= BL_SHORT_SLICE_US) running->ran_us = bc_clock_thread_us();
    if (now < running->until_us) return;
    int64_t ran = running->ran_us != 0 ? bc_clock_thread_us() - running->ran_us : 0;
    if (ran >= running->us || took >= running->us * BL_SLICE_STRETCH)
        limit(state, now, running->error);
    else
        running->until_us = now + running->us - ran;
}

/* ---- ends ---- */

/* What is told to end lives on the time for ends from here on, if it does not already. */
static void begin_end(bl_state *state, int64_t now, const void *error_key)
{
    static const int64_t most = BL_CLOSING_MS * 1000;
    if (state->slice.ends_from_us != 0) return;
    int64_t left = state->ends_left_us + (now - state->ends_at_us) / BL_CLOSING_SHARE;
    state->ends_left_us = left < most ? left : most;
    state->ends_at_us = now;
    state->slice.ends_from_us = now;
    left = state->ends_left_us;
    if (!state->closing && left < BL_CLOSING_LEAST_US) left = BL_CLOSING_LEAST_US;
    limit_running(state, now, left, error_key);
}

static void count_end(bl_state *state)
{
    const bl_slice *slice = &state->slice;
    if (slice->ends_from_us == 0) return;
    int64_t took = bc_clock_us() - slice->ends_from_us;
    if (took <= BL_CLOSING_LEAST_US) return;
    if (slice->running.ran_us != 0) took = bc_clock_thread_us() - slice->running.ran_us;
    state->ends_left_us -= took < state->ends_left_us ? took : state->ends_left_us;
}

/* ---- looks ---- */

/* A moment that may have passed already, or that what runs was just told of by its cancellation:
 * then it comes to its end. */
static void limit_by_clock(bl_state *state, const bl_task *task, int64_t now, int64_t deadline_us,
                           const void *error_key)
{
    if (deadline_us == 0) return;
    bool is_near = deadline_us < now + BL_CLOSING_MS * 1000;
    if (deadline_us <= now || (is_near && bl_task_cancelled(task)))
        begin_end(state, now, error_key);
    else
        limit(state, deadline_us, error_key);
}

/* Whether what runs must stop now. */
static int must_stop(bl_state *state)
{
    const bl_slice *slice = &state->slice;
    if (slice->stopping) return 1;
    const bl_task *task = state->current;
    bool limited = slice->deadline_us != 0 || slice->running.us != 0;
    if (!limited && (task == NULL || task->token == NULL)) return 0;
    int64_t now = bc_clock_us();
    if (task != NULL && barchan_cancel_triggered(task->token)) {
        begin_end(state, now, &cancel_error_key);
    }
    look_at_running(state, now);
    return slice->deadline_us != 0 && now >= slice->deadline_us;
}

static void on_count(lua_State *L, lua_Debug *ar);

/* Instructions between two looks: one of them may go through all bytes of what is large. */
static int pace(const bl_state *state)
{
    size_t large = state->large_bytes != NULL ? *state->large_bytes / BL_LOOK_BYTES : 0;
    if (large <= 1) return BL_LOOK_EVERY;
    return large < BL_LOOK_EVERY / BL_LOOK_LEAST ? BL_LOOK_EVERY / (int)large : BL_LOOK_LEAST;
}

/* A coroutine that was counted before there was something large. */
static void keep_pace(const bl_state *state, lua_State *co)
{
    int every = pace(state);
    if (every == BL_LOOK_EVERY || lua_gethook(co) != on_count) return;
    if (lua_gethookcount(co) > every) lua_sethook(co, on_count, LUA_MASKCOUNT, every);
}

void bl_watchdog_hasten(bl_state *state)
{
    lua_State *L = state->L;
    if (state->current != NULL) L = state->current->co;
    if (state->passing != NULL) L = state->passing->co;
    if (lua_gethook(L) == on_count && lua_gethookcount(L) > 1)
        lua_sethook(L, on_count, LUA_MASKCOUNT, 1);
}

/* What runs is stopped; its handlers get a moment. */
static void stop(lua_State *L, bl_state *state)
{
    int every = pace(state);
    state->slice.stopping = 1;
    state->slice.grace_ends_us = bc_clock_us() + BL_GRACE_US;
    if (every > BL_GRACE_INSTRUCTIONS) every = BL_GRACE_INSTRUCTIONS;
    lua_sethook(L, on_count, LUA_MASKCOUNT, every);
    throw_stop(L, state);
}

static void on_count(lua_State *L, lua_Debug *ar)
{
    bl_state *state = bl_state_of(L);
    (void)ar;
    if (!state->slice.stopping) {
        int every = pace(state);
        if (lua_gethookcount(L) != every) lua_sethook(L, on_count, LUA_MASKCOUNT, every);
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
    keep_error(L, &end_error_key, BARCHAN_ETIMEDOUT, "its end took too long, and was stopped");
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

void bl_watchdog_pass_on(lua_State *L, lua_State *co)
{
    if (lua_gethook(L) == on_count && lua_gethook(co) == NULL) bl_watchdog_watch(co);
    keep_pace(bl_state_of(L), co);
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
    state->slice = (bl_slice){.deadline_us = 0};
    if (state->slice_us > 0) limit_running(state, now, state->slice_us, &slice_error_key);
    if (state->total_us > 0) {
        int64_t used = task != NULL ? task->used_us : 0;
        limit_running(state, now, state->total_us - used, &total_error_key);
        state->slice.running.ran_us = bc_clock_thread_us();
    }
    if (task == NULL) return outer;
    keep_pace(state, task->co);
    if (task->loads) limit_running(state, now, BL_LOAD_SLICE_MS * 1000, &load_error_key);
    limit_by_clock(state, task, now, task->own_deadline_us, &within_error_key);
    limit_by_clock(state, task, now, task->deadline_us, &call_error_key);
    return outer;
}

int64_t bl_watchdog_end(bl_state *state, const bl_slice *outer)
{
    int64_t from = state->slice.running.ran_us;
    int64_t ran = state->total_us > 0 && from != 0 ? bc_clock_thread_us() - from : 0;
    count_end(state);
    state->slice = *outer;
    return ran;
}

/* What stopped it is what stops its end, too. */
void bl_watchdog_closing(bl_state *state)
{
    const void *error = state->slice.limit_error;
    if (state->current != NULL) keep_pace(state, state->current->co);
    count_end(state);
    state->slice = (bl_slice){.is_closing = state->slice.is_closing};
    begin_end(state, bc_clock_us(), error != NULL ? error : &end_error_key);
}

void bl_watchdog_unwinding(bl_state *state)
{
    if (!state->slice.stopping || state->slice.is_closing) return;
    state->slice.is_closing = 1;
    bl_watchdog_closing(state);
}
