/* Commands that are held: sandbox:spawn, sandbox:processes; and the terminal of `barchan shell`. */
#include "lib_sandbox.h"

#include <string.h>
#include "errors.h"
#include "runtime/loop.h"
#include "sandbox/terminal.h"

#define PROCESS_META "barchan.core.process"
#define LIST_META "barchan.core.process_list"
#define TERMINAL_META "barchan.core.terminal"

/* One read of Lua's; scripts ask again. */
#define READ_BYTES 65536

/* Collecting the handle kills the command, so nothing keeps it alive but its user. */
struct bl_process {
    bl_op news;  /* first: what wait waits for */
    bl_op drain; /* what wait_drain waits for */
    barchan_process *core;
    bc_timer *timer;
};

static struct bl_process *check_process(lua_State *L, int index)
{
    struct bl_process *self = luaL_checkudata(L, index, PROCESS_META);
    if (self->core == NULL) bl_misuse(L, "the process is closed");
    return self;
}

static void on_news(barchan_process *process, void *ud)
{
    struct bl_process *self = ud;
    (void)process;
    bl_op_ready(&self->news);
    bl_op_ready(&self->drain);
}

static void on_time(void *ud)
{
    bl_op_ready(&((struct bl_process *)ud)->news);
}

static void cancel_wait(bl_op *op)
{
    (void)op; /* the command goes on */
}

int bl_sandbox_spawn(lua_State *L)
{
    barchan_sandbox *sbx = bl_check_sandbox(L, 1);
    luaL_checktype(L, 2, LUA_TTABLE);
    lua_settop(L, 2);
    barchan_exec_options options = {.struct_size = sizeof options};
    bl_exec_options(L, 2, &options);
    options.input_streaming = 0; /* spawn opens it by itself */
    options.pty_cols = (int)bl_opt_integer(L, 2, "pty_cols", 0);
    options.pty_rows = (int)bl_opt_integer(L, 2, "pty_rows", 0);
    int64_t backlog = bl_opt_integer(L, 2, "backlog", 0);
    if (backlog < 0) return bl_misuse(L, "option 'backlog' must not be negative");
    options.backlog_bytes = (size_t)backlog;
    struct bl_process *self = lua_newuserdatauv(L, sizeof *self, 1);
    memset(self, 0, sizeof *self);
    luaL_setmetatable(L, PROCESS_META);
    lua_pushvalue(L, 1);
    lua_setiuservalue(L, -2, 1); /* the process keeps the sandbox's handle */
    self->news = self->drain = (bl_op){.state = bl_state_of(L), .cancel = cancel_wait};
    barchan_error err;
    int rc = bc_timer_open(&self->timer, self->news.state->rt, on_time, self, &err);
    if (rc == 0) rc = barchan_sandbox_spawn(&self->core, sbx, &options, on_news, self, &err);
    return rc < 0 ? bl_fail(L, &err) : 1;
}

static barchan_stream check_stream(lua_State *L, int index)
{
    static const char *const names[] = {"out", "err", NULL};
    if (!lua_isnoneornil(L, index)) bl_check_text(L, index);
    return luaL_checkoption(L, index, "out", names) == 0 ? BARCHAN_STREAM_OUT : BARCHAN_STREAM_ERR;
}

/* process:read(stream, cursor) -> bytes, next cursor, dropped, ended; never waits */
static int l_process_read(lua_State *L)
{
    struct bl_process *self = check_process(L, 1);
    barchan_stream stream = check_stream(L, 2);
    lua_Integer cursor = luaL_optinteger(L, 3, 0);
    luaL_argcheck(L, cursor >= 0, 3, "a cursor from 0 on expected");
    luaL_Buffer buffer;
    char *room = luaL_buffinitsize(L, &buffer, READ_BYTES);
    barchan_process_chunk chunk;
    barchan_error err;
    if (barchan_process_read(self->core, stream, (uint64_t)cursor, room, READ_BYTES, &chunk, &err) <
        0) {
        return bl_fail(L, &err);
    }
    luaL_pushresultsize(&buffer, chunk.len);
    lua_pushinteger(L, (lua_Integer)chunk.next);
    lua_pushinteger(L, (lua_Integer)chunk.dropped);
    lua_pushboolean(L, chunk.ended);
    return 4;
}

static int finish_wait(lua_State *L, bl_op *op)
{
    struct bl_process *self = (struct bl_process *)op;
    (void)L;
    bc_timer_set(self->timer, -1);
    op->ready = 0;
    return 0;
}

/* process:wait(seconds): until there is news since the last wait, or the time is over */
static int l_process_wait(lua_State *L)
{
    struct bl_process *self = check_process(L, 1);
    lua_Number seconds = luaL_optnumber(L, 2, -1);
    luaL_argcheck(L, seconds <= 1e9, 2, "number of seconds expected");
    lua_settop(L, 1);
    if (barchan_process_exec(self->core) == NULL) return 0;
    bc_timer_set(self->timer, seconds < 0 ? -1 : (int64_t)(seconds * 1000 + 0.5));
    return bl_wait(L, &self->news, finish_wait);
}

static int finish_drain(lua_State *L, bl_op *op)
{
    (void)L;
    op->ready = 0;
    return 0;
}

static int l_process_wait_drain(lua_State *L)
{
    struct bl_process *self = check_process(L, 1);
    lua_settop(L, 1);
    if (barchan_process_exec(self->core) == NULL) return 0;
    return bl_wait(L, &self->drain, finish_drain);
}

/* The exec of a running command; NULL with err filled. */
static barchan_exec *running(struct bl_process *self, barchan_error *err)
{
    barchan_exec *exec = barchan_process_exec(self->core);
    if (exec == NULL) bc_error_set(err, BARCHAN_ECLOSED, "the command has ended");
    return exec;
}

/* process:write_some(data, from) -> how many bytes were taken (0: wait_drain first) | nil, err */
static int l_process_write_some(lua_State *L)
{
    struct bl_process *self = check_process(L, 1);
    size_t len;
    const char *data = luaL_checklstring(L, 2, &len);
    lua_Integer from = luaL_optinteger(L, 3, 1);
    luaL_argcheck(L, from >= 1 && (size_t)from <= len + 1, 3, "position within the data expected");
    barchan_error err;
    barchan_exec *exec = running(self, &err);
    if (exec == NULL) return bl_fail(L, &err);
    self->drain.ready = 0;
    int n = barchan_exec_write(exec, data + from - 1, len - (size_t)from + 1, &err);
    if (n < 0) return bl_fail(L, &err);
    lua_pushinteger(L, n);
    return 1;
}

static int done_or_fail(lua_State *L, int rc, const barchan_error *err)
{
    if (rc < 0) return bl_fail(L, err);
    lua_pushboolean(L, 1);
    return 1;
}

static int l_process_close_input(lua_State *L)
{
    barchan_error err;
    barchan_exec *exec = running(check_process(L, 1), &err);
    if (exec == NULL) return bl_fail(L, &err);
    return done_or_fail(L, barchan_exec_close_input(exec, &err), &err);
}

static int l_process_signal(lua_State *L)
{
    struct bl_process *self = check_process(L, 1);
    lua_Integer number = luaL_checkinteger(L, 2);
    luaL_argcheck(L, number > 0 && number < 65, 2, "signal number from 1 to 64 expected");
    barchan_error err;
    barchan_exec *exec = running(self, &err);
    if (exec == NULL) return bl_fail(L, &err);
    return done_or_fail(L, barchan_exec_signal(exec, (int)number, &err), &err);
}

static int l_process_resize(lua_State *L)
{
    struct bl_process *self = check_process(L, 1);
    lua_Integer columns = luaL_checkinteger(L, 2), rows = luaL_checkinteger(L, 3);
    luaL_argcheck(L, columns > 0 && columns < 65536, 2, "from 1 to 65535 columns expected");
    luaL_argcheck(L, rows > 0 && rows < 65536, 3, "from 1 to 65535 rows expected");
    barchan_error err;
    barchan_exec *exec = running(self, &err);
    if (exec == NULL) return bl_fail(L, &err);
    return done_or_fail(L, barchan_exec_resize(exec, (int)columns, (int)rows, &err), &err);
}

static int l_process_cancel(lua_State *L)
{
    barchan_exec_cancel(barchan_process_exec(check_process(L, 1)->core));
    return 0;
}

/* process:result() -> table; nil while it runs */
static int l_process_result(lua_State *L)
{
    const barchan_exec_result *result = barchan_process_result(check_process(L, 1)->core);
    if (result == NULL) return 0;
    bl_push_exec_result(L, result);
    return 1;
}

static int l_process_id(lua_State *L)
{
    lua_pushinteger(L, barchan_exec_id(barchan_process_exec(check_process(L, 1)->core)));
    return 1;
}

static int l_process_close(lua_State *L)
{
    struct bl_process *self = luaL_checkudata(L, 1, PROCESS_META);
    barchan_exec_cancel(barchan_process_exec(self->core));
    return 0;
}

static int l_process_gc(lua_State *L)
{
    struct bl_process *self = luaL_checkudata(L, 1, PROCESS_META);
    bl_op_detach(&self->news);
    bl_op_detach(&self->drain);
    bc_timer_close(self->timer);
    self->timer = NULL;
    barchan_process_destroy(self->core); /* no news after this */
    self->core = NULL;
    return 0;
}

/* ---- processes of a sandbox ---- */

struct list_call {
    bl_call call; /* first */
    barchan_process_list list;
    barchan_error err;
    int failed;
};

static void on_list(barchan_process_list *list, const barchan_error *err, void *ud)
{
    bl_link *link = ud;
    struct list_call *self = link->owner;
    free(link);
    if (self == NULL) return;
    self->call.link = NULL;
    self->failed = err != NULL;
    if (err != NULL) self->err = *err;
    if (list != NULL) {
        self->list = *list;
        memset(list, 0, sizeof *list); /* taken */
    }
    bl_op_ready(&self->call.op);
}

static void cancel_list(bl_op *op)
{
    bl_link_drop(&((struct list_call *)op)->call.link);
    bl_op_unref(op);
}

static void push_process(lua_State *L, const barchan_process_info *info)
{
    const char state[] = {info->state, '\0'};
    const struct {
        const char *name;
        lua_Integer value;
    } integers[] = {{"pid", info->pid},
                    {"parent", info->parent},
                    {"threads", info->threads},
                    {"id", info->exec_id},
                    {"memory", (lua_Integer)info->memory_bytes}};
    lua_createtable(L, 0, 8);
    for (size_t i = 0; i < sizeof integers / sizeof *integers; i++) {
        lua_pushinteger(L, integers[i].value);
        lua_setfield(L, -2, integers[i].name);
    }
    lua_pushnumber(L, (lua_Number)info->cpu_us / 1e6);
    lua_setfield(L, -2, "cpu");
    lua_pushstring(L, state);
    lua_setfield(L, -2, "state");
    lua_pushstring(L, info->command);
    lua_setfield(L, -2, "command");
}

static int finish_list(lua_State *L, bl_op *op)
{
    struct list_call *self = (struct list_call *)op;
    bl_op_unref(op); /* its userdata stays on the waiter's stack */
    if (self->failed) return bl_fail(L, &self->err);
    lua_createtable(L, (int)self->list.count, 0);
    for (size_t i = 0; i < self->list.count; i++) {
        push_process(L, &self->list.processes[i]);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    lua_pushinteger(L, (lua_Integer)self->list.total);
    return 2;
}

static int l_list_gc(lua_State *L)
{
    struct list_call *self = luaL_checkudata(L, 1, LIST_META);
    bl_op_detach(&self->call.op);
    bl_link_drop(&self->call.link);
    barchan_process_list_clear(&self->list);
    return 0;
}

int bl_sandbox_processes(lua_State *L)
{
    barchan_sandbox *sbx = bl_check_sandbox(L, 1);
    lua_settop(L, 1);
    struct list_call *self = bl_call_new(L, sizeof *self, LIST_META, cancel_list);
    barchan_error err;
    if (barchan_sandbox_processes_start(sbx, on_list, self->call.link, &err) < 0) {
        return bl_call_failed(L, &self->call, &err);
    }
    bl_link_given(self->call.link);
    return bl_wait(L, &self->call.op, finish_list);
}

/* ---- the terminal of the person who runs the program ---- */

/* terminal() -> handle with raw(), size(), restore(); closing it restores, too */
int bl_terminal(lua_State *L)
{
    bc_terminal *self = lua_newuserdatauv(L, sizeof *self, 0);
    memset(self, 0, sizeof *self);
    luaL_setmetatable(L, TERMINAL_META);
    return 1;
}

static int l_terminal_raw(lua_State *L)
{
    barchan_error err;
    return done_or_fail(L, bc_terminal_raw(luaL_checkudata(L, 1, TERMINAL_META), &err), &err);
}

static int l_terminal_restore(lua_State *L)
{
    bc_terminal_restore(luaL_checkudata(L, 1, TERMINAL_META));
    return 0;
}

static int l_terminal_size(lua_State *L)
{
    int columns, rows;
    barchan_error err;
    luaL_checkudata(L, 1, TERMINAL_META);
    if (bc_terminal_size(&columns, &rows, &err) < 0) return bl_fail(L, &err);
    lua_pushinteger(L, columns);
    lua_pushinteger(L, rows);
    return 2;
}

void bl_open_process(lua_State *L)
{
    static const luaL_Reg methods[] = {{"read", l_process_read},
                                       {"wait", l_process_wait},
                                       {"wait_drain", l_process_wait_drain},
                                       {"write_some", l_process_write_some},
                                       {"close_input", l_process_close_input},
                                       {"signal", l_process_signal},
                                       {"resize", l_process_resize},
                                       {"cancel", l_process_cancel},
                                       {"result", l_process_result},
                                       {"id", l_process_id},
                                       {NULL, NULL}};
    static const luaL_Reg terminal[] = {{"raw", l_terminal_raw},
                                        {"restore", l_terminal_restore},
                                        {"size", l_terminal_size},
                                        {NULL, NULL}};
    static const luaL_Reg none[] = {{NULL, NULL}};
    bl_new_class(L, PROCESS_META, methods, l_process_close, NULL);
    luaL_getmetatable(L, PROCESS_META);
    lua_pushcfunction(L, l_process_gc);
    lua_setfield(L, -2, "__gc");
    lua_pop(L, 1);
    bl_new_class(L, LIST_META, none, l_list_gc, NULL);
    bl_new_class(L, TERMINAL_META, terminal, l_terminal_restore, NULL);
}
