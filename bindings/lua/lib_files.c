/* sandbox:file{ op = "read", path = … }: one file operation, waited for. */
#include "lib_sandbox.h"

#include <string.h>
#include "errors.h"
#include "handle.h"

#define FILE_META "barchan.core.file"

struct file_call {
    bl_call call;            /* first */
    barchan_file_call *core; /* NULL when ended */
    barchan_file_op kind;
    barchan_file_result result;
    barchan_error err;
    int failed;
};

static void on_done(barchan_file_result *result, const barchan_error *err, void *ud)
{
    bl_link *link = ud;
    struct file_call *self = link->owner;
    free(link);
    if (self == NULL) return;
    self->call.link = NULL;
    self->core = NULL;
    if (err != NULL) {
        self->failed = 1;
        self->err = *err;
    } else {
        self->result = *result;
        memset(result, 0, sizeof *result); /* taken */
    }
    bl_op_ready(&self->call.op);
}

static void cancel_call(bl_op *op)
{
    struct file_call *self = (struct file_call *)op;
    if (self->core != NULL) barchan_file_cancel(self->core);
    bl_link_drop(&self->call.link);
    self->core = NULL;
    bl_op_unref(op);
}

const char *bl_file_type_name(barchan_file_type type)
{
    switch (type) {
    case BARCHAN_FILE_REGULAR: return "file";
    case BARCHAN_FILE_DIRECTORY: return "directory";
    case BARCHAN_FILE_SYMLINK: return "symlink";
    case BARCHAN_FILE_FIFO: return "fifo";
    case BARCHAN_FILE_SOCKET: return "socket";
    default: return "device";
    }
}

const char *bl_change_name(barchan_file_change change)
{
    static const char *const kinds[] = {NULL, "added", "modified", "deleted"};
    return kinds[change];
}

static void push_info(lua_State *L, const barchan_file_info *info)
{
    lua_createtable(L, 0, 7);
    lua_pushlstring(L, info->path != NULL ? info->path : "", info->path_len);
    lua_setfield(L, -2, "path");
    if (info->change != 0) {
        lua_pushstring(L, bl_change_name(info->change));
        lua_setfield(L, -2, "kind");
    }
    lua_pushstring(L, bl_file_type_name(info->type));
    lua_setfield(L, -2, "type");
    lua_pushinteger(L, (lua_Integer)info->size);
    lua_setfield(L, -2, "size");
    lua_pushinteger(L, (lua_Integer)info->mode);
    lua_setfield(L, -2, "mode");
    lua_pushnumber(L, (lua_Number)info->mtime_ms / 1000);
    lua_setfield(L, -2, "mtime");
    if (info->link_target != NULL) {
        lua_pushstring(L, info->link_target);
        lua_setfield(L, -2, "link_target");
    }
}

static int push_result(lua_State *L, const struct file_call *self)
{
    const barchan_file_result *r = &self->result;
    switch (self->kind) {
    case BARCHAN_FILE_READ:
        lua_pushlstring(L, r->data.data != NULL ? r->data.data : "", r->data.len);
        lua_pushinteger(L, (lua_Integer)r->size);
        return 2;
    case BARCHAN_FILE_LIST:
    case BARCHAN_FILE_CHANGES:
        lua_createtable(L, (int)r->entry_count, 0);
        for (size_t i = 0; i < r->entry_count; i++) {
            push_info(L, &r->entries[i]);
            lua_rawseti(L, -2, (lua_Integer)i + 1);
        }
        lua_pushboolean(L, r->truncated);
        return 2;
    case BARCHAN_FILE_STAT:
        if (r->entry_count == 0) return luaL_error(L, "stat gave no entry");
        push_info(L, &r->entries[0]);
        return 1;
    default: lua_pushboolean(L, 1); return 1;
    }
}

static int finish_call(lua_State *L, bl_op *op)
{
    struct file_call *self = (struct file_call *)op;
    bl_op_unref(op); /* its userdata stays on the waiter's stack */
    if (self->failed) return bl_fail(L, &self->err);
    int n = push_result(L, self);
    barchan_file_result_clear(&self->result);
    return n;
}

static int l_file_gc(lua_State *L)
{
    struct file_call *self = luaL_checkudata(L, 1, FILE_META);
    bl_op_detach(&self->call.op);
    bl_link_drop(&self->call.link);
    if (self->core != NULL) barchan_file_cancel(self->core);
    self->core = NULL;
    barchan_file_result_clear(&self->result);
    return 0;
}

static void read_request(lua_State *L, int index, barchan_file_request *request)
{
    static const char *const names[] = {"read",  "write",  "append", "list",    "stat",
                                        "mkdir", "remove", "rename", "changes", NULL};
    const char *op = bl_opt_string(L, index, "op", NULL);
    for (int i = 0; names[i] != NULL && request->op == 0; i++) {
        if (op != NULL && strcmp(op, names[i]) == 0) request->op = (barchan_file_op)(i + 1);
    }
    if (request->op == 0) luaL_error(L, "option 'op': '%s' is no file operation", op ? op : "nil");
    request->path = bl_opt_string(L, index, "path", &request->path_len);
    request->new_path = bl_opt_string(L, index, "new_path", &request->new_path_len);
    request->data = bl_opt_string(L, index, "data", &request->data_len);
    request->offset = (uint64_t)bl_opt_integer(L, index, "offset", 0);
    request->limit = (uint64_t)bl_opt_integer(L, index, "limit", 0);
    request->mode = (uint32_t)bl_opt_integer(L, index, "mode", 0);
    request->recursive = bl_opt_flag(L, index, "recursive");
    request->depth = (int)bl_opt_integer(L, index, "depth", 0);
    request->timeout_ms = bl_opt_ms(L, index, "timeout", 0);
}

int bl_sandbox_file(lua_State *L)
{
    barchan_sandbox *sbx = bl_check_sandbox(L, 1);
    luaL_checktype(L, 2, LUA_TTABLE);
    lua_settop(L, 2);
    barchan_file_request request = {.struct_size = sizeof request};
    read_request(L, 2, &request);
    struct file_call *self = bl_call_new(L, sizeof *self, FILE_META, cancel_call);
    lua_pushvalue(L, 1);
    lua_setiuservalue(L, -2, 1); /* the call keeps the sandbox's handle */
    self->kind = request.op;
    barchan_error err;
    if (barchan_sandbox_file_start(&self->core, sbx, &request, on_done, self->call.link, &err) <
        0) {
        return bl_call_failed(L, &self->call, &err);
    }
    bl_link_given(self->call.link);
    return bl_wait(L, &self->call.op, finish_call);
}

void bl_open_files(lua_State *L)
{
    static const luaL_Reg methods[] = {{NULL, NULL}};
    bl_new_class(L, FILE_META, methods, l_file_gc, NULL);
}
