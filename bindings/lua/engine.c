#include "engine_internal.h"

#include <lualib.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/options.h"
#include "runtime/loop.h"
#include "call.h"
#include "errors.h"
#include "library.h"
#include "loader.h"
#include "watchdog.h"
#include "bounds.h"

int bl_engine_check(const barchan_engine *engine, barchan_error *err)
{
    if (engine == NULL) return bc_error_set(err, BARCHAN_EINVAL, "the engine is NULL");
    if (engine->L == NULL) {
        return bc_error_set(err, BARCHAN_ECLOSED, "the engine ended with its runtime");
    }
    return bc_runtime_check(engine->rt, err);
}

/* ---- memory ---- */

static void *c_alloc(void *ptr, size_t old_size, size_t new_size, void *ud)
{
    (void)old_size, (void)ud;
    if (new_size > 0) return realloc(ptr, new_size);
    free(ptr);
    return NULL;
}

static void count_large(barchan_engine *engine, size_t old, size_t new)
{
    if (old >= BL_LARGE_BYTES) engine->large_bytes -= old;
    if (new < BL_LARGE_BYTES) return;
    engine->large_bytes += new;
    if (new > old && engine->state != NULL && engine->state->large_bytes != NULL)
        bl_watchdog_hasten(engine->state);
}

static void *allocate(void *ud, void *ptr, size_t old_size, size_t new_size)
{
    barchan_engine *engine = ud;
    size_t old = ptr != NULL ? old_size : 0; /* otherwise Lua passes a type there */
    if (new_size == 0) {
        if (ptr != NULL) engine->alloc(ptr, old, 0, engine->ud);
        engine->used_bytes -= old;
        count_large(engine, old, 0);
        return NULL;
    }
    if (engine->limit_bytes > 0 && new_size > old &&
        new_size - old > engine->limit_bytes - engine->used_bytes) {
        return NULL;
    }
    void *out = engine->alloc(ptr, old, new_size, engine->ud);
    if (out == NULL) return NULL;
    engine->used_bytes += new_size - old;
    count_large(engine, old, new_size);
    return out;
}

static size_t memory_left(const bl_state *state)
{
    return state->engine->limit_bytes - state->engine->used_bytes;
}

/* ---- entering Lua ---- */

int bl_engine_protect(barchan_engine *engine, lua_CFunction fn, void *ud, barchan_error *err)
{
    lua_State *L = engine->L;
    if (!lua_checkstack(L, 8)) return bc_error_nomem(err);
    lua_pushcfunction(L, fn);
    lua_pushlightuserdata(L, ud);
    bl_state *state = engine->state;
    bl_task *before = state != NULL ? state->current : NULL;
    struct bl_passing *passing = state != NULL ? state->passing : NULL;
    bl_slice outer;
    if (state != NULL) {
        state->current = NULL; /* inside a host's callback a task may run: this is not part of it */
        state->passing = NULL;
        outer = bl_watchdog_begin(state, NULL);
    }
    int status = bl_call(L, 1, 0);
    if (state != NULL) {
        bl_watchdog_end(state, &outer);
        state->current = before;
        state->passing = passing;
    }
    if (status == LUA_OK) return 0;
    barchan_error thrown;
    bl_error_from(L, -1, &thrown);
    lua_pop(L, 1);
    if (err != NULL) *err = thrown;
    return thrown.code;
}

/* ---- create and destroy ---- */

struct setup {
    barchan_engine *engine;
    const barchan_engine_options *options;
};

static void set_arg(lua_State *L, const char *const *argv)
{
    if (argv == NULL) return;
    lua_newtable(L);
    for (int i = 0; argv[i] != NULL; i++) {
        lua_pushstring(L, argv[i]);
        lua_rawseti(L, -2, i);
    }
    lua_setglobal(L, "arg");
}

static int l_setup(lua_State *L)
{
    struct setup *setup = lua_touserdata(L, 1);
    barchan_engine *engine = setup->engine;
    engine->state = bl_state_new(L, engine->rt);
    engine->state->engine = engine;
    engine->state->host = &engine->host;
    engine->state->host_text = bl_engine_text;
    engine->state->memory_left = engine->limit_bytes > 0 ? memory_left : NULL;
    engine->state->memory_limit = engine->limit_bytes;
    if (setup->options->library == BARCHAN_LIBRARY_SAFE) {
        engine->state->safe = 1;
        engine->state->large_bytes = &engine->large_bytes;
        engine->state->path_allowed = bl_engine_path_allowed;
    }
    bl_open_library(L, setup->options->library, (const char *const *)engine->script_dirs);
    set_arg(L, setup->options->argv);
    bl_time_limits limits = {setup->options->slice_limit_ms, setup->options->total_limit_ms,
                             engine->call_limit_ms};
    bl_watchdog_limit(L, engine->state, &limits);
    return 0;
}

/* Ends everything that scripts have going, and the Lua state with all that it holds on the loop. */
static void close_state(barchan_engine *engine)
{
    lua_State *L = engine->L;
    if (L == NULL) return;
    engine->limit_bytes = 0; /* closing must not wait for the collector */
    if (engine->state != NULL) bl_state_close(engine->state);
    bl_engine_end_calls(engine);
    engine->L = NULL;
    engine->state = NULL;
    lua_close(L);
}

/* The runtime is destroyed first: what is left of the engine waits for barchan_engine_destroy. */
static void end_resident(bc_resident *resident)
{
    bc_resident_remove(resident);
    close_state(owner_of(resident, barchan_engine, resident));
}

static int open_state(barchan_engine *engine, const barchan_engine_options *options,
                      barchan_error *err)
{
    engine->L = lua_newstate(allocate, engine);
    if (engine->L == NULL) return bc_error_nomem(err);
    int rc = bl_engine_scripts_open(engine, options, err);
    struct setup setup = {engine, options};
    return rc < 0 ? rc : bl_engine_protect(engine, l_setup, &setup, err);
}

/* What is left out has a default, which depends on the library. */
static void set_defaults(barchan_engine_options *options)
{
    int safe = options->library == BARCHAN_LIBRARY_SAFE;
    if (options->memory_limit_bytes == 0 && safe) {
        options->memory_limit_bytes = BL_SAFE_MEMORY_BYTES;
    }
    if (options->slice_limit_ms == 0 && safe) options->slice_limit_ms = BL_SAFE_SLICE_MS;
    if (options->alloc == NULL) options->alloc = c_alloc;
}

static barchan_engine *new_engine(barchan_runtime *rt, const barchan_engine_options *options)
{
    barchan_engine *engine = calloc(1, sizeof *engine);
    if (engine == NULL) return NULL;
    engine->rt = rt;
    engine->limit_bytes = options->memory_limit_bytes;
    engine->alloc = options->alloc;
    engine->ud = options->ud;
    engine->call_limit_ms = options->call_limit_ms > 0 ? options->call_limit_ms : 0;
    engine->host.functions_ref = LUA_NOREF;
    engine->host.on_event = options->on_event;
    engine->host.on_print = options->on_print;
    engine->host.on_log = options->on_log;
    engine->host.ud = options->ud;
    return engine;
}

int barchan_engine_create(barchan_engine **out, barchan_runtime *rt,
                          const barchan_engine_options *options, barchan_error *err)
{
    BC_OPERATION("engine.create");
    barchan_engine_options full;
    if (out == NULL) return bc_error_set(err, BARCHAN_EINVAL, "out is NULL");
    *out = NULL;
    int rc = bc_runtime_check(rt, err);
    if (rc == 0) rc = bc_options_copy(&full, sizeof full, options, err);
    if (rc == 0 && (unsigned)full.library > BARCHAN_LIBRARY_FULL) {
        rc = bc_error_set(err, BARCHAN_EINVAL, "library is %d; it is safe (0) or full (1)",
                          (int)full.library);
    }
    if (rc < 0) {
        bc_error_context(err, "create an engine");
        return rc;
    }
    set_defaults(&full);
    barchan_engine *engine = new_engine(rt, &full);
    if (engine == NULL) return bc_error_nomem(err);
    bc_resident_add(rt, &engine->resident, end_resident);
    rc = open_state(engine, &full, err);
    if (rc < 0) {
        bc_error_context(err, "create an engine");
        barchan_engine_destroy(engine);
        return rc;
    }
    *out = engine;
    return 0;
}

void barchan_engine_destroy(barchan_engine *engine)
{
    if (engine == NULL) return;
    /* A forked child must not close what its parent waits for. */
    if (engine->L != NULL && !bc_runtime_is_own(engine->rt)) return;
    bc_resident_remove(&engine->resident);
    close_state(engine);
    bl_engine_scripts_close(engine);
    bl_host_clear(&engine->host);
    free(engine);
}
