/*
 * What one Lua state knows of Barchan: its runtime, its engine if it has one, its tasks.
 *
 * The state is a userdata in the registry, made once. Under stock lua5.4 it creates a runtime of
 * its own; in an engine it uses the host's.
 */
#ifndef BL_STATE_H
#define BL_STATE_H

#include <lua.h>
#include <lauxlib.h>
#include <barchan/runtime.h>
#include "base/buf.h"
#include "base/error.h"
#include "runtime/loop.h"

typedef struct bl_state bl_state;
typedef struct bl_task bl_task;
typedef struct bl_host bl_host;
struct bl_passing;

/* A limit by the time that something runs. */
typedef struct bl_running {
    int64_t us;      /* that it has; 0: no limit */
    int64_t from_us; /* its beginning on the clock */
    int64_t
        ran_us; /* the thread's running time then, or at the first look after it; 0: not known */
    int64_t until_us; /* its earliest end on the clock, or when to look again */
    const void *error;
} bl_running;

/* One entry into Lua, as the watchdog sees it (watchdog.c). */
typedef struct bl_slice {
    int64_t deadline_us;     /* 0: no Lua runs, or without limits */
    const void *limit_error; /* what is thrown at the deadline */
    bl_running running;
    int stopping;          /* it is over: every instruction throws */
    int64_t grace_ends_us; /* when that begins for what looks at the clock itself */
    int is_closing;        /* the time to close what was left open was given */
    int64_t ends_from_us;  /* it lives on the time for ends since; 0: it does not */
} bl_slice;

struct bl_state {
    lua_State *L; /* the main thread */
    barchan_runtime *rt;
    int owns_runtime;
    struct barchan_engine *engine;                /* NULL under stock Lua, like host */
    bl_host *host;                                /* what the engine's owner offers (host.h) */
    size_t (*memory_left)(const bl_state *state); /* NULL: no cap */
    size_t memory_limit;
    const size_t *large_bytes; /* in large blocks of memory; NULL: nobody counts */
    int64_t collect_after_us;  /* collector.c */
    bc_buf encoded;            /* memory for the next JSON text (value_encode.c) */
    int safe;                  /* the scripts are not the operator's own: barchan_library */
    /* The script that the host gave as text under this name, "agents/support.lua", or NULL; NULL
     * itself under stock Lua. */
    const char *(*host_text)(const bl_state *state, const char *name, size_t *len);
    /* Whether scripts may load code from this path; NULL: from anywhere. */
    int (*path_allowed)(const bl_state *state, const char *path);

    /* The watchdog's (watchdog.c); all 0 without limits. */
    int64_t slice_us, total_us;
    bl_slice slice;                   /* of what runs now */
    int64_t ends_left_us, ends_at_us; /* the time for ends that was left then */
    unsigned compared;                /* in sorts, so far (bounded.c) */

    /* The scheduler's (scheduler.c). */
    struct bl_passing *passing; /* resumers between the task and what runs (scheduler.h) */
    bl_task *current;           /* the task that runs now */
    bl_task *ready_first, *ready_last;
    bl_task *tasks; /* all that have not ended */
    size_t task_count;
    bc_defer run_defer;
    int plain_waits; /* waits outside tasks in progress: they resume no task */
    int running;     /* inside bl_run_ready */
    int closing;
};

/* The state of L; throws when there is none. */
bl_state *bl_state_of(lua_State *L);
/* Makes it, with the given runtime or (NULL) one of its own. Leaves nothing on the stack; throws.
 */
bl_state *bl_state_new(lua_State *L, barchan_runtime *rt);
/* Cancels and closes every task. Idempotent. */
void bl_state_close(bl_state *state);

/* Builds the table of primitives that the embedded scripts get, and keeps it in the registry. */
void bl_push_core(lua_State *L);

/* One per lib_<module>.c: adds its functions to the table of primitives at the top. */
void bl_open_json(lua_State *L);
void bl_open_task(lua_State *L);
void bl_open_sandbox(lua_State *L);
void bl_open_files(lua_State *L);
void bl_open_model(lua_State *L);
void bl_open_host(lua_State *L);
void bl_open_util(lua_State *L);
void bl_open_tree(lua_State *L);
void bl_open_watch(lua_State *L);
void bl_open_scripts(lua_State *L); /* loader.c */

/* Throws when the engine's library is `safe`: `what` is the host application's to do. */
void bl_refuse_safe(lua_State *L, const char *what);

#endif
