/*
 * Ends scripts that run away, run late or are cancelled. Each slice (from a resume of a task to its
 * next wait) has a deadline, or a time to run; a count hook sees that it has passed and throws.
 * Handlers may catch that once: soon after, every instruction throws, so that nothing but the end
 * of the task is left. A task may have a deadline of its own besides (task.h). What it left to be
 * closed is closed under a short one. When the token of the call is triggered, from whatever
 * thread, what runs gets a moment to finish. The time for such ends is one of all tasks.
 *
 * Not seen by the hook: long C functions and finalizers. The safe library has no finalizers, bounds
 * the loops in C that a script can make endless and looks at the clock before each, and has a
 * pattern matcher that looks at it. An instruction may take as long as a large string is to go
 * through: where such are, looks are the closer together.
 */
#ifndef BL_WATCHDOG_H
#define BL_WATCHDOG_H

#include "state.h"

/* 0 or less: none. */
typedef struct bl_time_limits {
    int64_t slice_ms, total_ms, call_ms;
} bl_time_limits;

/* Once a state. Throws (memory), as does the next. */
void bl_watchdog_open(lua_State *L);
/* Gives an engine's state its limits. */
void bl_watchdog_limit(lua_State *L, bl_state *state, const bl_time_limits *limits);
/* Has the coroutine of a task watched where the state has no limits of its own. */
void bl_watchdog_watch(lua_State *co);
/* Before `co` is resumed by L: it is watched like that. */
void bl_watchdog_pass_on(lua_State *L, lua_State *co);
/* There is something large: a look is due. May be called while Lua asks for memory. */
void bl_watchdog_hasten(bl_state *state);
/* Why a task may run no further: it was cancelled, or its time is over. NULL: it may. */
const void *bl_watchdog_over(const bl_task *task);
/* Pushes the error that such a reason is. */
void bl_watchdog_push_error(lua_State *L, const void *limit_error);
/* Around every entry into Lua, for a task or (NULL) something short. A task that loads scripts has
 * a limit in any state: what is loaded defines, it does not work. May nest: the inner slice counts,
 * and its time is the outer one's too, whose limits come back at its end. */
bl_slice bl_watchdog_begin(bl_state *state, const bl_task *task);
/* Returns for how many microseconds the slice ran, where the state limits that, else 0. */
int64_t bl_watchdog_end(bl_state *state, const bl_slice *outer);
/* For long loops in C: throws when the slice is over, as the hook would. */
void bl_watchdog_look(lua_State *L);
/* The task is over: what it left open gets a little time. */
void bl_watchdog_closing(bl_state *state);
/* The same, once a slice, when it was stopped and a coroutine comes to its end by that. */
void bl_watchdog_unwinding(bl_state *state);

#endif
