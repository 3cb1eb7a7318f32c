/* core.host: events, printing, standard input, and the tools that the host application offers. */
#include "host.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "errors.h"
#include "handle.h"
#include "runtime/host_file.h"
#include "runtime/reader.h"
#include "value.h"
#include "bounds.h"

#define CALL_META "barchan.core.host_call"
#define STDIN_META "barchan.core.stdin"

/* ---- events and output ---- */

/* emit(event): hands a table to the host as JSON; returns whether anybody listens */
static int l_emit(lua_State *L)
{
    bl_host *host = bl_state_of(L)->host;
    luaL_checktype(L, 1, LUA_TTABLE);
    int listens = host != NULL && host->on_event != NULL;
    if (listens) {
        size_t len;
        bl_encode_json(L, 1);
        const char *text = lua_tolstring(L, -1, &len);
        host->on_event(text, len, host->ud);
    }
    lua_pushboolean(L, listens);
    return 1;
}

/* The log takes single lines of limited length. */
void bl_log(const bl_state *state, barchan_log_level level, const char *text)
{
    const bl_host *host = state->host;
    char line[BL_LOG_LINE_BYTES + 1];
    do {
        int len = (int)strcspn(text, "\n");
        int part = len < BL_LOG_LINE_BYTES ? len : BL_LOG_LINE_BYTES;
        snprintf(line, sizeof line, "%.*s", part, text);
        if (host != NULL && host->on_log != NULL)
            host->on_log(level, line, host->ud);
        else
            bc_log(state->rt, level, "%s", line);
        text += part;
        if (part == len && *text == '\n') text++;
    } while (*text != '\0');
}

int bl_host_print(lua_State *L)
{
    bl_state *state = bl_state_of(L);
    bl_host *host = state->host;
    int n = lua_gettop(L);
    luaL_Buffer b;
    luaL_buffinit(L, &b);
    for (int i = 1; i <= n; i++) {
        if (i > 1) luaL_addchar(&b, '\t');
        luaL_tolstring(L, i, NULL);
        luaL_addvalue(&b);
    }
    if (host != NULL && host->on_print != NULL) luaL_addchar(&b, '\n');
    luaL_pushresult(&b);
    size_t len;
    const char *text = lua_tolstring(L, -1, &len);
    if (host != NULL && host->on_print != NULL)
        host->on_print(text, len, host->ud);
    else
        bl_log(state, BARCHAN_LOG_INFO, text);
    return 0;
}

/* warn(text): a line of the log, at once */
static int l_warn(lua_State *L)
{
    bl_log(bl_state_of(L), BARCHAN_LOG_WARN, luaL_checkstring(L, 1));
    return 0;
}

/* ---- the script that the engine has loaded ---- */

/* functions() -> the table that it returned | nil */
static int l_functions(lua_State *L)
{
    bl_host *host = bl_state_of(L)->host;
    if (host == NULL)
        lua_pushnil(L);
    else
        lua_rawgeti(L, LUA_REGISTRYINDEX, host->functions_ref);
    return 1;
}

/* set_functions(table): calls that begin from now on find these */
static int l_set_functions(lua_State *L)
{
    bl_host *host = bl_state_of(L)->host;
    luaL_checktype(L, 1, LUA_TTABLE);
    if (host == NULL) return luaL_error(L, "there is no engine");
    lua_settop(L, 1);
    int before = host->functions_ref;
    host->functions_ref = luaL_ref(L, LUA_REGISTRYINDEX);
    luaL_unref(L, LUA_REGISTRYINDEX, before);
    return 0;
}

/* script_path() -> its file | nil */
static int l_script_path(lua_State *L)
{
    bl_host *host = bl_state_of(L)->host;
    lua_pushstring(L, host != NULL ? host->script_path : NULL);
    return 1;
}

/* ---- standard input ---- */

struct input {
    bl_op op; /* first */
    bc_reader *reader;
    char *data;
    long len;
    int os_error;
};

static void on_input(const char *data, long len, int os_error, void *ud)
{
    struct input *self = ud;
    if (len > 0) {
        self->data = malloc((size_t)len);
        if (self->data == NULL) {
            len = -1;
            os_error = ENOMEM;
        } else {
            memcpy(self->data, data, (size_t)len);
        }
    }
    self->len = len;
    self->os_error = os_error;
    bl_op_ready(&self->op);
}

static void end_input(struct input *self)
{
    bc_reader_close(self->reader);
    self->reader = NULL;
    free(self->data);
    self->data = NULL;
    bl_op_unref(&self->op);
}

static void cancel_input(bl_op *op)
{
    end_input((struct input *)op);
}

static int finish_input(lua_State *L, bl_op *op)
{
    struct input *self = (struct input *)op;
    barchan_error err;
    if (self->len > 0)
        lua_pushlstring(L, self->data, (size_t)self->len);
    else
        lua_pushnil(L);
    int failed = self->len < 0, os_error = self->os_error;
    end_input(self);
    if (!failed) return 1;
    bc_error_set_os(&err, os_error, "read standard input");
    return bl_fail(L, &err);
}

static int l_input_gc(lua_State *L)
{
    struct input *self = luaL_checkudata(L, 1, STDIN_META);
    bl_op_detach(&self->op);
    bc_reader_close(self->reader);
    self->reader = NULL;
    free(self->data);
    self->data = NULL;
    return 0;
}

/* read_stdin() -> a chunk of at most 64 KiB; nil at the end; nil, err */
static int l_read_stdin(lua_State *L)
{
    lua_settop(L, 0);
    struct input *self = lua_newuserdatauv(L, sizeof *self, 0);
    memset(self, 0, sizeof *self);
    luaL_setmetatable(L, STDIN_META);
    bl_op_init(L, 1, &self->op, cancel_input);
    barchan_error err;
    int rc = bc_reader_open(&self->reader, self->op.state->rt, 0, on_input, self, &err);
    if (rc == 0) rc = bc_reader_next(self->reader, &err);
    if (rc < 0) {
        end_input(self);
        return bl_fail(L, &err);
    }
    return bl_wait(L, &self->op, finish_input);
}

static int file_call(lua_State *L, int (*act)(const char *path, barchan_error *err))
{
    const char *path = bl_check_text(L, 1);
    barchan_error err;
    if (bl_state_of(L)->safe) {
        bc_error_set(&err, BARCHAN_EPERMISSION, "this engine's scripts have no files of the host");
        return bl_fail(L, &err);
    }
    if (act(path, &err) < 0) return bl_fail(L, &err);
    lua_pushboolean(L, 1);
    return 1;
}

/* create_file(path) -> true | nil, err: what was there before is never touched */
static int l_create_file(lua_State *L)
{
    return file_call(L, bc_host_file_create);
}

/* check_file(path) -> true | nil, err: only a regular file is fit to be opened */
static int l_check_file(lua_State *L)
{
    return file_call(L, bc_host_file_check);
}

/* cut_line(path) -> true | nil, err: removes a last line that has no end */
static int l_cut_line(lua_State *L)
{
    return file_call(L, bc_host_file_cut_line);
}

/* is_terminal(fd) */
static int l_is_terminal(lua_State *L)
{
    lua_pushboolean(L, bc_is_terminal((int)luaL_checkinteger(L, 1)));
    return 1;
}

/* ---- tools of the host ---- */

/* tools() -> list of { name, description, parameters (JSON text) } */
static int l_host_tools(lua_State *L)
{
    bl_host *host = bl_state_of(L)->host;
    lua_newtable(L);
    lua_Integer n = 0;
    for (bl_host_tool *tool = host != NULL ? host->tools : NULL; tool != NULL; tool = tool->next) {
        lua_createtable(L, 0, 3);
        lua_pushstring(L, tool->name);
        lua_setfield(L, -2, "name");
        lua_pushstring(L, tool->description);
        lua_setfield(L, -2, "description");
        lua_pushstring(L, tool->parameters);
        lua_setfield(L, -2, "parameters");
        lua_rawseti(L, -2, ++n);
    }
    return 1;
}

void bl_host_call_unlink(bl_host *host, bl_host_call *call)
{
    if (call->prev != NULL)
        call->prev->next = call->next;
    else
        host->calls = call->next;
    if (call->next != NULL) call->next->prev = call->prev;
    call->id = 0;
}

static void cancel_call(bl_op *op)
{
    bl_host_call *call = (bl_host_call *)op;
    if (call->id != 0) bl_host_call_unlink(op->state->host, call);
    bl_op_unref(op);
}

static int finish_call(lua_State *L, bl_op *op)
{
    bl_host_call *call = (bl_host_call *)op;
    bl_op_unref(op);
    lua_pushlstring(L, call->text != NULL ? call->text : "", call->len);
    lua_pushboolean(L, call->is_error);
    return 2;
}

static int l_call_gc(lua_State *L)
{
    bl_host_call *call = luaL_checkudata(L, 1, CALL_META);
    bl_host *host = call->op.state->host;
    bl_op_detach(&call->op);
    if (call->id != 0 && host != NULL) bl_host_call_unlink(host, call);
    free(call->text);
    call->text = NULL;
    return 0;
}

static bl_host_tool *find_tool(bl_host *host, const char *name)
{
    for (bl_host_tool *tool = host->tools; tool != NULL; tool = tool->next) {
        if (strcmp(tool->name, name) == 0) return tool;
    }
    return NULL;
}

/* call_tool(name, args) -> text, is_error */
static int l_host_call_tool(lua_State *L)
{
    bl_state *state = bl_state_of(L);
    bl_host *host = state->host;
    const char *name = bl_check_text(L, 1);
    bl_host_tool *tool = host != NULL ? find_tool(host, name) : NULL;
    if (tool == NULL) return luaL_error(L, "the host has no tool '%s'", name);
    lua_settop(L, 2);
    bl_encode_json(L, 2);
    size_t len;
    const char *args = lua_tolstring(L, 3, &len);
    bl_host_call *call = lua_newuserdatauv(L, sizeof *call, 0);
    memset(call, 0, sizeof *call);
    call->op.state = state;
    luaL_setmetatable(L, CALL_META);
    bl_op_init(L, 4, &call->op, cancel_call);
    call->id = ++host->last_id;
    call->next = host->calls;
    if (call->next != NULL) call->next->prev = call;
    host->calls = call;
    if (tool->call(state->engine, call->id, args, len, tool->ud) < 0) {
        cancel_call(&call->op);
        lua_pushfstring(L, "the tool '%s' failed", name);
        lua_pushboolean(L, 1);
        return 2;
    }
    return bl_wait(L, &call->op, finish_call);
}

void bl_open_host(lua_State *L)
{
    static const luaL_Reg functions[] = {{"emit", l_emit},
                                         {"print", bl_host_print},
                                         {"read_stdin", l_read_stdin},
                                         {"is_terminal", l_is_terminal},
                                         {"warn", l_warn},
                                         {"create_file", l_create_file},
                                         {"check_file", l_check_file},
                                         {"cut_line", l_cut_line},
                                         {"functions", l_functions},
                                         {"set_functions", l_set_functions},
                                         {"script_path", l_script_path},
                                         {"tools", l_host_tools},
                                         {"call_tool", l_host_call_tool},
                                         {NULL, NULL}};
    static const luaL_Reg none[] = {{NULL, NULL}};
    bl_new_class(L, CALL_META, none, l_call_gc, NULL);
    bl_new_class(L, STDIN_META, none, l_input_gc, NULL);
    luaL_newlib(L, functions);
    lua_setfield(L, -2, "host");
}
