/* One command in a sandbox: wait for its result, read its output as it comes, write its input. */
#include "lib_sandbox.h"

#include <string.h>
#include "errors.h"
#include "handle.h"
#include "lib_network.h"
#include "bounds.h"

#define EXEC_META "barchan.core.exec"

typedef struct chunk {
    struct chunk *next;
    barchan_stream stream;
    size_t len;
    char data[];
} chunk;

struct bl_exec {
    bl_call call;       /* first: what read and wait wait for */
    bl_op drain;        /* what write waits for */
    barchan_exec *core; /* NULL when ended */
    barchan_exec_result result;
    chunk *first, *last;
    size_t queued;
    int ended, paused, out_of_memory;
    int waits_for_end; /* output is dropped from now on */
};

static struct bl_exec *check_exec(lua_State *L, int index)
{
    return luaL_checkudata(L, index, EXEC_META);
}

/* ---- callbacks of the core ---- */

static void on_output(barchan_exec *exec, barchan_stream stream, const char *data, size_t len,
                      void *ud)
{
    struct bl_exec *self = ((bl_link *)ud)->owner;
    if (self == NULL || self->waits_for_end) return;
    chunk *item = malloc(sizeof *item + len);
    if (item == NULL) {
        self->out_of_memory = 1;
        barchan_exec_cancel(exec);
        return;
    }
    item->next = NULL;
    item->stream = stream;
    item->len = len;
    memcpy(item->data, data, len);
    if (self->last != NULL)
        self->last->next = item;
    else
        self->first = item;
    self->last = item;
    self->queued += len;
    if (self->queued >= BL_EXEC_QUEUE_BYTES && !self->paused) {
        self->paused = 1;
        barchan_exec_pause(exec);
    }
    bl_op_ready(&self->call.op);
}

static void on_drain(barchan_exec *exec, void *ud)
{
    struct bl_exec *self = ((bl_link *)ud)->owner;
    (void)exec;
    if (self != NULL) bl_op_ready(&self->drain);
}

static void on_done(barchan_exec *exec, barchan_exec_result *result, void *ud)
{
    bl_link *link = ud;
    struct bl_exec *self = link->owner;
    (void)exec;
    free(link);
    if (self == NULL) return;
    self->call.link = NULL;
    self->core = NULL;
    self->ended = 1;
    self->result = *result;
    memset(&result->out, 0, sizeof result->out); /* taken */
    memset(&result->err_out, 0, sizeof result->err_out);
    result->denied = result->unreached = NULL;
    bl_op_ready(&self->call.op);
    bl_op_ready(&self->drain);
    bl_op_unref(&self->call.op);
}

/* ---- starting ---- */

static void cancel_exec(bl_op *op)
{
    struct bl_exec *self = (struct bl_exec *)op;
    if (self->core != NULL) barchan_exec_cancel(self->core);
}

/* As in the other waits, the command ends with the task that waits for it. */
static void cancel_drain(bl_op *op)
{
    cancel_exec(&owner_of(op, struct bl_exec, drain)->call.op);
}

void bl_exec_options(lua_State *L, int index, barchan_exec_options *options)
{
    options->command = bl_opt_string(L, index, "command", NULL);
    options->argv = bl_opt_strings(L, index, "argv", 0);
    options->cwd = bl_opt_string(L, index, "cwd", NULL);
    options->env = bl_opt_strings(L, index, "env", 1);
    options->input = bl_opt_string(L, index, "input", &options->input_len);
    options->input_streaming = bl_opt_flag(L, index, "input_streaming");
    options->timeout_ms = bl_opt_ms(L, index, "timeout", 0);
    options->grace_ms = bl_opt_ms(L, index, "grace", 0);
    options->out_limit_bytes = bl_opt_integer(L, index, "out_limit", 0);
    options->err_limit_bytes = bl_opt_integer(L, index, "err_limit", 0);
    options->detach = bl_opt_flag(L, index, "detach");
    options->streaming = bl_opt_flag(L, index, "streaming");
    options->network_off = bl_opt_flag(L, index, "network_off");
}

int bl_sandbox_exec(lua_State *L)
{
    barchan_sandbox *sbx = bl_check_sandbox(L, 1);
    luaL_checktype(L, 2, LUA_TTABLE);
    lua_settop(L, 2);
    barchan_exec_options options = {.struct_size = sizeof options};
    bl_exec_options(L, 2, &options);
    struct bl_exec *self = bl_call_new(L, sizeof *self, EXEC_META, cancel_exec);
    int index = lua_gettop(L);
    lua_pushvalue(L, 1);
    lua_setiuservalue(L, index, 1); /* the exec keeps the sandbox's handle */
    self->drain = (bl_op){.state = self->call.op.state, .cancel = cancel_drain};
    options.on_output = on_output;
    options.on_drain = on_drain;
    options.ud = self->call.link;
    barchan_error err;
    if (barchan_sandbox_exec_start(&self->core, sbx, &options, on_done, self->call.link, &err) <
        0) {
        return bl_call_failed(L, &self->call, &err);
    }
    bl_link_given(self->call.link);
    lua_settop(L, index);
    return 1;
}

/* ---- results ---- */

static void set_number(lua_State *L, const char *key, lua_Number value)
{
    lua_pushnumber(L, value);
    lua_setfield(L, -2, key);
}

static void set_integer(lua_State *L, const char *key, lua_Integer value)
{
    lua_pushinteger(L, value);
    lua_setfield(L, -2, key);
}

/* out, out_dropped, out_head: the bytes, how many are missing, and where the gap is. */
static void set_bytes(lua_State *L, const char *key, const barchan_bytes *bytes)
{
    lua_pushlstring(L, bytes->data != NULL ? bytes->data : "", bytes->len);
    lua_setfield(L, -2, key);
    lua_pushfstring(L, "%s_dropped", key);
    lua_pushinteger(L, (lua_Integer)bytes->dropped);
    lua_settable(L, -3);
    if (bytes->dropped == 0) return;
    lua_pushfstring(L, "%s_head", key);
    lua_pushinteger(L, (lua_Integer)bytes->head_len);
    lua_settable(L, -3);
}

static void push_usage(lua_State *L, const barchan_exec_usage *usage)
{
    lua_createtable(L, 0, 5);
    set_number(L, "wall", (lua_Number)usage->wall_us / 1e6);
    set_number(L, "user", (lua_Number)usage->user_us / 1e6);
    set_number(L, "system", (lua_Number)usage->system_us / 1e6);
    set_number(L, "cpu", (lua_Number)(usage->user_us + usage->system_us) / 1e6);
    set_integer(L, "max_rss", usage->max_rss_bytes);
}

void bl_push_exec_result(lua_State *L, const barchan_exec_result *result)
{
    lua_createtable(L, 0, 16);
    lua_pushstring(L, barchan_exec_reason_name(result->reason));
    lua_setfield(L, -2, "reason");
    if (result->exit_code >= 0) set_integer(L, "exit_code", result->exit_code);
    if (result->term_signal != 0) set_integer(L, "signal", result->term_signal);
    if (result->reason == BARCHAN_EXEC_SPAWN_FAILED) {
        set_integer(L, "spawn_errno", result->spawn_errno);
        lua_pushstring(L, strerror(result->spawn_errno));
        lua_setfield(L, -2, "spawn_error");
        lua_pushboolean(L, result->spawn_cwd);
        lua_setfield(L, -2, "spawn_cwd");
    }
    set_bytes(L, "out", &result->out);
    set_bytes(L, "err", &result->err_out);
    set_number(L, "duration", (lua_Number)result->usage.wall_us / 1e6);
    set_integer(L, "left_running", result->left_running);
    bl_push_denied(L, result);
    push_usage(L, &result->usage);
    lua_setfield(L, -2, "usage");
}

static int finish_result(lua_State *L, bl_op *op)
{
    struct bl_exec *self = (struct bl_exec *)op;
    if (self->out_of_memory) {
        barchan_error err;
        bc_error_nomem(&err);
        return bl_fail(L, &err);
    }
    bl_push_exec_result(L, &self->result);
    return 1;
}

static void drop_chunks(struct bl_exec *self)
{
    for (chunk *item = self->first; item != NULL;) {
        chunk *next = item->next;
        free(item);
        item = next;
    }
    self->first = self->last = NULL;
    self->queued = 0;
}

static void unpause(struct bl_exec *self)
{
    if (!self->paused || self->core == NULL) return;
    self->paused = 0;
    barchan_exec_resume(self->core);
}

/* exec:wait() -> result; output that still comes is dropped */
static int l_exec_wait(lua_State *L)
{
    struct bl_exec *self = check_exec(L, 1);
    lua_settop(L, 1);
    self->waits_for_end = 1;
    drop_chunks(self);
    unpause(self);
    self->call.op.ready = self->ended;
    return bl_wait(L, &self->call.op, finish_result);
}

static int finish_read(lua_State *L, bl_op *op)
{
    struct bl_exec *self = (struct bl_exec *)op;
    chunk *item = self->first;
    if (item == NULL) {
        lua_pushnil(L);
        return 1;
    }
    /* Out of the queue before Lua is asked for memory: a finalizer may read too. */
    self->first = item->next;
    if (self->first == NULL) self->last = NULL;
    self->queued -= item->len;
    op->ready = self->first != NULL || self->ended;
    if (self->queued < BL_EXEC_QUEUE_BYTES / 2) unpause(self);
    return bl_push_pair(L, item->stream == BARCHAN_STREAM_OUT ? "out" : "err", item->data,
                        item->len, item);
}

/* exec:read() -> "out" | "err", chunk; nil at the end */
static int l_exec_read(lua_State *L)
{
    struct bl_exec *self = check_exec(L, 1);
    lua_settop(L, 1);
    self->call.op.ready = self->first != NULL || self->ended;
    return bl_wait(L, &self->call.op, finish_read);
}

/* ---- input ---- */

static int finish_drain(lua_State *L, bl_op *op)
{
    (void)L;
    (void)op;
    return 0;
}

/* exec:write_some(data, from) -> how many bytes were taken (0: wait_drain first) | nil, err */
static int l_exec_write_some(lua_State *L)
{
    struct bl_exec *self = check_exec(L, 1);
    size_t len;
    const char *data = luaL_checklstring(L, 2, &len);
    lua_Integer from = luaL_optinteger(L, 3, 1);
    luaL_argcheck(L, from >= 1 && (size_t)from <= len + 1, 3, "position within the data expected");
    barchan_error err;
    if (self->core == NULL) {
        bc_error_set(&err, BARCHAN_ECLOSED, "the command has ended");
        return bl_fail(L, &err);
    }
    self->drain.ready = 0;
    int n = barchan_exec_write(self->core, data + from - 1, len - (size_t)from + 1, &err);
    if (n < 0) return bl_fail(L, &err);
    lua_pushinteger(L, n);
    return 1;
}

/* exec:wait_drain(): until the exec can take input again, or has ended */
static int l_exec_wait_drain(lua_State *L)
{
    struct bl_exec *self = check_exec(L, 1);
    lua_settop(L, 1);
    if (self->core == NULL) return 0;
    return bl_wait(L, &self->drain, finish_drain);
}

static int l_exec_close_input(lua_State *L)
{
    struct bl_exec *self = check_exec(L, 1);
    barchan_error err;
    if (self->core != NULL && barchan_exec_close_input(self->core, &err) < 0) {
        return bl_fail(L, &err);
    }
    lua_pushboolean(L, 1);
    return 1;
}

static int l_exec_signal(lua_State *L)
{
    struct bl_exec *self = check_exec(L, 1);
    lua_Integer number = luaL_checkinteger(L, 2);
    luaL_argcheck(L, number > 0 && number < 65, 2, "signal number from 1 to 64 expected");
    barchan_error err;
    if (self->core == NULL) {
        bc_error_set(&err, BARCHAN_ECLOSED, "the command has ended");
        return bl_fail(L, &err);
    }
    if (barchan_exec_signal(self->core, (int)number, &err) < 0) return bl_fail(L, &err);
    lua_pushboolean(L, 1);
    return 1;
}

static int l_exec_cancel(lua_State *L)
{
    cancel_exec(&check_exec(L, 1)->call.op);
    return 0;
}

/* __gc and __close: starts the kill, never waits. */
static int l_exec_close(lua_State *L)
{
    struct bl_exec *self = check_exec(L, 1);
    if (self->core != NULL) barchan_exec_cancel(self->core);
    return 0;
}

static int l_exec_gc(lua_State *L)
{
    struct bl_exec *self = check_exec(L, 1);
    bl_op_detach(&self->call.op);
    bl_op_detach(&self->drain);
    bl_link_drop(&self->call.link); /* the core still calls back once */
    if (self->core != NULL) barchan_exec_cancel(self->core);
    self->core = NULL;
    drop_chunks(self);
    barchan_exec_result_clear(&self->result);
    return 0;
}

static int l_exec_tostring(lua_State *L)
{
    struct bl_exec *self = check_exec(L, 1);
    lua_pushfstring(L, "exec (%s)",
                    self->ended ? barchan_exec_reason_name(self->result.reason) : "running");
    return 1;
}

void bl_open_exec(lua_State *L)
{
    static const luaL_Reg methods[] = {{"wait", l_exec_wait},
                                       {"read", l_exec_read},
                                       {"write_some", l_exec_write_some},
                                       {"wait_drain", l_exec_wait_drain},
                                       {"close_input", l_exec_close_input},
                                       {"signal", l_exec_signal},
                                       {"cancel", l_exec_cancel},
                                       {NULL, NULL}};
    bl_new_class(L, EXEC_META, methods, l_exec_close, l_exec_tostring);
    luaL_getmetatable(L, EXEC_META);
    lua_pushcfunction(L, l_exec_gc);
    lua_setfield(L, -2, "__gc");
    lua_pop(L, 1);
}
