/* Running scripts and calling their functions: each call is a task. */
#include "engine_internal.h"

#include <stdlib.h>
#include <string.h>
#include "base/clock.h"
#include "base/error.h"
#include "call.h"
#include "errors.h"
#include "loader.h"
#include "task.h"
#include "value.h"

struct engine_call {
    engine_call *next, *prev;
    barchan_engine *engine;
    const char *function, *args; /* borrowed; a blocking call's, or used while starting only */
    const char *text;            /* load: the script; or: */
    size_t text_len;
    int is_load;
    bl_task *task;
    bc_cancel_watch *cancel;
    barchan_cancel *token; /* borrowed, while starting only */
    bc_timer *late;        /* with a limit for calls */
    int timed_out;
    barchan_call_fn done;
    void *ud;
    char *result;
    barchan_error err;
    int ended, failed;
};

static void link_call(engine_call *call)
{
    call->next = call->engine->calls;
    if (call->next != NULL) call->next->prev = call;
    call->engine->calls = call;
}

static void unlink_call(engine_call *call)
{
    if (call->prev != NULL)
        call->prev->next = call->next;
    else
        call->engine->calls = call->next;
    if (call->next != NULL) call->next->prev = call->prev;
}

/* ---- the end of a call ---- */

/* Reports once. A started call is freed, a blocking one is read by whoever waits. */
static void finish(engine_call *call)
{
    bc_cancel_watch_close(call->cancel);
    bc_timer_close(call->late);
    call->cancel = NULL;
    call->late = NULL;
    call->task = NULL;
    if (call->failed && call->timed_out) {
        bc_error_set(&call->err, BARCHAN_ETIMEDOUT, "the call took longer than %g s",
                     (double)call->engine->call_limit_ms / 1000);
    }
    call->ended = 1;
    unlink_call(call);
    if (call->done == NULL) return;
    if (call->failed) bc_error_where(&call->err, "engine.start");
    call->done(call->failed ? NULL : call->result, call->failed ? &call->err : NULL, call->ud);
    free(call->result);
    free(call);
}

/* The script's table at the top replaces the one before. */
static void keep_script(lua_State *L, const engine_call *call)
{
    bl_host *host = &call->engine->host;
    char *path = call->text == NULL ? strdup(call->function) : NULL;
    if (path == NULL && call->text == NULL) luaL_error(L, "not enough memory");
    free(host->script_path);
    host->script_path = path;
    luaL_unref(L, LUA_REGISTRYINDEX, host->functions_ref);
    host->functions_ref = LUA_NOREF;
    if (lua_istable(L, -1)) host->functions_ref = luaL_ref(L, LUA_REGISTRYINDEX);
}

/* Protected: the results (or what was thrown) are on the coroutine's stack. */
static int l_collect(lua_State *L)
{
    engine_call *call = lua_touserdata(L, 1);
    lua_State *co = lua_touserdata(L, 2);
    int nresults = (int)lua_tointeger(L, 3);
    if (call->failed) {
        lua_pushvalue(co, -1); /* a copy: variables that are to be closed get the original */
        lua_xmove(co, L, 1);
        bl_error_from(L, -1, &call->err);
        return 0;
    }
    if (nresults > 0) {
        lua_pushvalue(co, -nresults);
        lua_xmove(co, L, 1);
    } else {
        lua_pushnil(L);
    }
    if (call->is_load) {
        keep_script(L, call);
        return 0;
    }
    /* nil, err is how scripts say that the world failed. */
    if (lua_isnil(L, -1) && nresults > 1) {
        lua_pushvalue(co, -nresults + 1);
        lua_xmove(co, L, 1);
        if (lua_istable(L, -1) || lua_isstring(L, -1)) {
            call->failed = 1;
            bl_error_from(L, -1, &call->err);
            return 0;
        }
        lua_pop(L, 1);
    }
    bl_encode_json(L, -1);
    call->result = strdup(lua_tostring(L, -1)); /* JSON text has no NUL */
    if (call->result == NULL) luaL_error(L, "not enough memory");
    return 0;
}

static void on_task_end(bl_task *task, lua_State *co, int status, int nresults, void *ud)
{
    engine_call *call = ud;
    lua_State *L = call->engine->L;
    (void)task;
    call->failed = status != LUA_OK;
    if (status == LUA_YIELD) {
        bc_error_set(&call->err, BARCHAN_ECANCELLED, "the call was cancelled");
    } else if (!lua_checkstack(L, 8)) {
        call->failed = 1;
        bc_error_nomem(&call->err);
    } else {
        lua_pushcfunction(L, l_collect);
        lua_pushlightuserdata(L, call);
        lua_pushlightuserdata(L, co);
        lua_pushinteger(L, nresults);
        if (bl_call_plain(L, 3, 0) != LUA_OK) {
            call->failed = 1;
            bl_error_from(L, -1, &call->err);
            lua_pop(L, 1);
        }
    }
    finish(call);
}

static void on_late(void *ud)
{
    engine_call *call = ud;
    call->timed_out = 1;
    if (call->task != NULL) bl_task_cancel(call->task);
}

static void on_cancelled(void *ud)
{
    engine_call *call = ud;
    if (call->task != NULL) bl_task_cancel(call->task);
}

void bl_engine_end_calls(barchan_engine *engine)
{
    while (engine->calls != NULL) {
        engine_call *call = engine->calls;
        call->failed = 1;
        bc_error_set(&call->err, BARCHAN_ECANCELLED, "the engine was destroyed");
        finish(call);
    }
}

/* ---- the start of a call ---- */

/* Pushes the function that `name` means: of the loaded table, or "module:function". */
static void push_function(lua_State *L, const barchan_engine *engine, const char *name)
{
    const char *colon = strchr(name, ':');
    if (colon != NULL) {
        lua_getglobal(L, "require");
        lua_pushlstring(L, name, (size_t)(colon - name));
        lua_call(L, 1, 1);
    } else if (engine->host.functions_ref == LUA_NOREF) {
        bl_throw(L, BARCHAN_EINVAL,
                 lua_pushfstring(L,
                                 "call '%s': no script with a table of functions is loaded: load "
                                 "one first (barchan_engine_load_file, _load_string)",
                                 name));
    } else {
        lua_rawgeti(L, LUA_REGISTRYINDEX, engine->host.functions_ref);
    }
    const char *field = colon != NULL ? colon + 1 : name;
    if (!lua_istable(L, -1) || lua_getfield(L, -1, field) != LUA_TFUNCTION) {
        bl_throw(L, BARCHAN_ENOTFOUND,
                 lua_pushfstring(L, "the script has no function '%s'", field));
    }
    lua_remove(L, -2);
}

static int function_returned(lua_State *L, int status, lua_KContext context)
{
    (void)status;
    (void)context;
    return lua_gettop(L) - 1;
}

/* What a call's task runs: the function's name and its argument, if any. */
static int l_run_function(lua_State *L)
{
    int nargs = lua_gettop(L) - 1;
    push_function(L, bl_state_of(L)->engine, luaL_checkstring(L, 1));
    lua_insert(L, 2);
    lua_callk(L, nargs, LUA_MULTRET, 0, function_returned);
    return function_returned(L, LUA_OK, 0);
}

static void push_script(lua_State *L, const engine_call *call)
{
    int status = call->text != NULL
                     ? luaL_loadbufferx(L, call->text, call->text_len, call->function, "t")
                     : bl_load_host_script(L, call->function);
    if (status != LUA_OK) lua_error(L);
}

static int l_start(lua_State *L)
{
    engine_call *call = lua_touserdata(L, 1);
    barchan_error err;
    int nargs = 0;
    if (call->is_load) {
        push_script(L, call);
    } else {
        lua_pushcfunction(L, l_run_function);
        lua_pushstring(L, call->function);
        nargs++;
    }
    if (call->args != NULL) {
        if (bl_push_json(L, call->args, strlen(call->args), &err) < 0) {
            bl_throw(L, BARCHAN_EINVAL, lua_pushfstring(L, "the arguments: %s", err.message));
        }
        nargs++;
    }
    int64_t limit_ms = call->engine->call_limit_ms;
    call->task = bl_task_spawn(L, nargs, on_task_end, call);
    bl_task_limit(call->task, call->token, limit_ms > 0 ? bc_clock_us() + limit_ms * 1000 : 0);
    return 0;
}

/* What ends a call from outside: its token, and the engine's limit. */
static int watch_call(engine_call *call, barchan_cancel *cancel, barchan_error *err)
{
    barchan_engine *engine = call->engine;
    call->token = cancel;
    int rc = bc_cancel_watch_open(&call->cancel, engine->rt, cancel, on_cancelled, call, err);
    if (rc < 0 || engine->call_limit_ms == 0) return rc;
    rc = bc_timer_open(&call->late, engine->rt, on_late, call, err);
    if (rc == 0) bc_timer_set(call->late, engine->call_limit_ms);
    return rc;
}

/* Starts the call; on failure it is freed. */
static int start(engine_call *call, barchan_cancel *cancel, barchan_error *err)
{
    barchan_engine *engine = call->engine;
    int rc = watch_call(call, cancel, err);
    link_call(call);
    if (rc == 0) rc = bl_engine_protect(engine, l_start, call, err);
    if (rc == 0) return 0;
    unlink_call(call);
    bc_cancel_watch_close(call->cancel);
    bc_timer_close(call->late);
    free(call);
    return rc;
}

static int new_call(engine_call **out, barchan_engine *engine, const char *function,
                    barchan_error *err)
{
    if (function == NULL) {
        return bc_error_set(err, BARCHAN_EINVAL, "the function's (or script's) name is NULL");
    }
    engine_call *call = calloc(1, sizeof *call);
    if (call == NULL) return bc_error_nomem(err);
    call->engine = engine;
    call->function = function;
    *out = call;
    return 0;
}

/* Waits for a call that was started without `done`, and frees it. */
static int wait_for(engine_call *call, char **result, barchan_error *err)
{
    int rc = bc_runtime_wait(call->engine->rt, &call->ended, err);
    if (rc < 0) return rc; /* the callers have asked bc_runtime_may_wait: it cannot happen */
    if (call->failed) {
        if (err != NULL) *err = call->err;
        rc = call->err.code;
    } else if (result != NULL) {
        *result = call->result;
        call->result = NULL;
    }
    free(call->result);
    free(call);
    return rc;
}

int barchan_engine_start(barchan_engine *engine, const char *function, const char *args,
                         barchan_cancel *cancel, barchan_call_fn done, void *ud, barchan_error *err)
{
    BC_OPERATION("engine.start");
    int rc = bl_engine_check(engine, err);
    if (rc < 0) return rc;
    if (done == NULL) return bc_error_set(err, BARCHAN_EINVAL, "done is NULL");
    engine_call *call = NULL;
    rc = new_call(&call, engine, function, err);
    if (rc < 0) return rc;
    call->args = args;
    call->done = done;
    call->ud = ud;
    return start(call, cancel, err);
}

int bl_engine_call(barchan_engine *engine, const char *function, const char *args,
                   barchan_cancel *cancel, char **result, barchan_error *err)
{
    int rc = bl_engine_check(engine, err);
    if (rc == 0) rc = bc_runtime_may_wait(engine->rt, err);
    if (rc < 0) return rc;
    if (result != NULL) *result = NULL;
    engine_call *call = NULL;
    rc = new_call(&call, engine, function, err);
    if (rc < 0) return rc;
    call->args = args;
    rc = start(call, cancel, err);
    return rc < 0 ? rc : wait_for(call, result, err);
}

int barchan_engine_call(barchan_engine *engine, const char *function, const char *args,
                        barchan_cancel *cancel, char **result, barchan_error *err)
{
    BC_OPERATION("engine.call");
    return bl_engine_call(engine, function, args, cancel, result, err);
}

int bl_engine_load(barchan_engine *engine, const char *name, const char *text, size_t len,
                   barchan_error *err)
{
    int rc = bc_runtime_may_wait(engine->rt, err);
    if (rc < 0) return rc;
    engine_call *call = NULL;
    rc = new_call(&call, engine, name, err);
    if (rc < 0) return rc;
    call->is_load = 1;
    call->text = text;
    call->text_len = len;
    rc = start(call, NULL, err);
    return rc < 0 ? rc : wait_for(call, NULL, err);
}
