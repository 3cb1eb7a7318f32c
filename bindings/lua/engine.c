#include "engine_internal.h"

#include <lualib.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
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

static void *allocate(void *ud, void *ptr, size_t old_size, size_t new_size)
{
    barchan_engine *engine = ud;
    size_t old = ptr != NULL ? old_size : 0; /* otherwise Lua passes a type there */
    if (new_size == 0) {
        free(ptr);
        engine->used_bytes -= old;
        return NULL;
    }
    if (engine->limit_bytes > 0 && new_size > old &&
        new_size - old > engine->limit_bytes - engine->used_bytes) {
        return NULL;
    }
    void *out = realloc(ptr, new_size);
    if (out != NULL) engine->used_bytes += new_size - old;
    return out;
}

static size_t memory_left(const bl_state *state)
{
    return state->engine->limit_bytes - state->engine->used_bytes;
}

/* A safe engine's scripts load code only from below its script directories. */
static int path_allowed(const bl_state *state, const char *path)
{
    if (strstr(path, "..") != NULL) return 0;
    for (char **dir = state->engine->script_dirs; *dir != NULL; dir++) {
        size_t len = strlen(*dir);
        if (strcmp(*dir, "/") == 0) return path[0] == '/';
        if (strncmp(path, *dir, len) == 0 && (path[len] == '/' || path[len] == '\0')) return 1;
    }
    return 0;
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
    if (state != NULL) {
        state->current = NULL; /* inside a host's callback a task may run: this is not part of it */
        bl_watchdog_begin(state, 0, 0);
    }
    int status = bl_call(L, 1, 0);
    if (state != NULL) {
        bl_watchdog_end(state);
        state->current = before;
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
    engine->state->memory_left = engine->limit_bytes > 0 ? memory_left : NULL;
    if (setup->options->library == BARCHAN_LIBRARY_SAFE) {
        engine->state->safe = 1;
        engine->state->path_allowed = path_allowed;
    }
    bl_open_library(L, setup->options->library, (const char *const *)engine->script_dirs);
    set_arg(L, setup->options->argv);
    bl_watchdog_limit(L, engine->state, setup->options->slice_limit_ms,
                      setup->options->total_limit_ms);
    return 0;
}

/* Copies directory names without trailing slashes; empty ones are left out. */
static int copy_dirs(char ***out, const char *const *list, barchan_error *err)
{
    size_t n = 0;
    while (list != NULL && list[n] != NULL)
        n++;
    char **copy = calloc(n + 1, sizeof *copy);
    if (copy == NULL) return bc_error_nomem(err);
    *out = copy;
    for (size_t i = 0, to = 0; i < n; i++) {
        size_t len = strlen(list[i]);
        while (len > 1 && list[i][len - 1] == '/')
            len--;
        if (len == 0) continue;
        copy[to] = strndup(list[i], len);
        if (copy[to++] == NULL) return bc_error_nomem(err);
    }
    return 0;
}

/* Ends everything that scripts have going, and the Lua state with all that it holds on the loop. */
static void close_state(barchan_engine *engine)
{
    lua_State *L = engine->L;
    if (L == NULL) return;
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
    int rc = copy_dirs(&engine->script_dirs, options->script_dirs, err);
    if (rc < 0) return rc;
    engine->L = lua_newstate(allocate, engine);
    if (engine->L == NULL) return bc_error_nomem(err);
    struct setup setup = {engine, options};
    return bl_engine_protect(engine, l_setup, &setup, err);
}

int barchan_engine_create(barchan_engine **out, barchan_runtime *rt,
                          const barchan_engine_options *options, barchan_error *err)
{
    barchan_engine_options full = {0};
    if (out == NULL) return bc_error_set(err, BARCHAN_EINVAL, "out is NULL");
    *out = NULL;
    int rc = bc_runtime_check(rt, err);
    if (rc < 0) return rc;
    if (options != NULL) {
        memcpy(&full, options,
               options->struct_size < sizeof full ? options->struct_size : sizeof full);
    }
    barchan_engine *engine = calloc(1, sizeof *engine);
    if (engine == NULL) return bc_error_nomem(err);
    engine->rt = rt;
    engine->host.functions_ref = LUA_NOREF;
    engine->limit_bytes = full.memory_limit_bytes;
    if (engine->limit_bytes == 0 && full.library == BARCHAN_LIBRARY_SAFE) {
        engine->limit_bytes = BL_SAFE_MEMORY_BYTES;
    }
    if (full.slice_limit_ms == 0 && full.library == BARCHAN_LIBRARY_SAFE) {
        full.slice_limit_ms = BL_SAFE_SLICE_MS;
    }
    engine->host.on_event = full.on_event;
    engine->host.on_print = full.on_print;
    engine->host.ud = full.ud;
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
    bc_resident_remove(&engine->resident);
    close_state(engine);
    for (char **dir = engine->script_dirs; dir != NULL && *dir != NULL; dir++) {
        free(*dir);
    }
    free(engine->script_dirs);
    bl_host_clear(&engine->host);
    free(engine);
}
