/*
 * Ends scripts that run away. Each slice (from a resume of a task to its next wait) has a deadline;
 * a count hook sees that it has passed and throws. Handlers may catch that once: soon after, every
 * instruction throws, so that nothing but the end of the task is left. What the task left to be
 * closed is closed under a short deadline of its own.
 *
 * Not seen by the hook: long C functions and finalizers. The safe library has no finalizers, bounds
 * the loops in C that a script can make endless, and has a pattern matcher that looks at the clock.
 */
#ifndef BL_WATCHDOG_H
#define BL_WATCHDOG_H

#include "state.h"

/* Once a state. Throws (memory), as does the next. */
void bl_watchdog_open(lua_State *L);
/* Gives an engine's state its limits; 0 or less means none. */
void bl_watchdog_limit(lua_State *L, bl_state *state, int64_t slice_ms, int64_t total_ms);
/* Has the coroutine of a task watched where the state has no limits of its own: see `loads`. */
void bl_watchdog_watch(lua_State *co);
/* Around every entry into Lua; `used_us` is what its task has used so far and is added to. A task
 * that `loads` scripts has a limit in any state: what is loaded defines, it does not work. May
 * nest: the inner one counts. */
void bl_watchdog_begin(bl_state *state, int64_t used_us, int loads);
int64_t bl_watchdog_end(bl_state *state); /* returns what the slice took, in microseconds */
/* For long loops in C: throws when the slice is over, as the hook would. */
void bl_watchdog_look(lua_State *L);
/* The task is over: what it left open gets a little time. */
void bl_watchdog_closing(bl_state *state);

#endif
