/*
 * A file that moves in pieces: transfer:put(chunk) until transfer:finish() for one that goes in,
 * transfer:next() for one that comes out. The core opens the file once, so what is moved is one
 * file, whole; one that goes in appears under its name when it is finished.
 */
#include "lib_sandbox.h"

#include <string.h>
#include "base/buf.h"
#include "bounds.h"
#include "errors.h"
#include "handle.h"

#define TRANSFER_META "barchan.core.transfer"
enum { VALUE_SANDBOX = 1, VALUE_CHUNK = 2 };

struct transfer {
    bl_call call;            /* first */
    barchan_file_call *core; /* NULL when ended */
    int ended;
    barchan_error err; /* code 0: none */
    /* in: what is left of the script's string, which a user value keeps */
    const char *chunk;
    size_t left;
    int is_last; /* nothing follows it */
    /* out */
    bc_buf queue;
};

static struct transfer *check(lua_State *L, int index)
{
    return luaL_checkudata(L, index, TRANSFER_META);
}

/* ---- callbacks of the core ---- */

static long on_source(void *buffer, size_t capacity, void *ud)
{
    struct transfer *self = ((bl_link *)ud)->owner;
    if (self == NULL) return -1;
    size_t n = self->left < capacity ? self->left : capacity;
    if (n == 0) return self->is_last ? 0 : BARCHAN_FILE_LATER;
    memcpy(buffer, self->chunk, n);
    self->chunk += n;
    self->left -= n;
    if (self->left == 0) bl_op_ready(&self->call.op);
    return (long)n;
}

static int on_sink(const void *data, size_t len, void *ud)
{
    struct transfer *self = ((bl_link *)ud)->owner;
    if (self == NULL) return -1;
    int rc = bc_buf_append(&self->queue, data, len);
    if (rc < 0) {
        bc_error_nomem(&self->err);
        return rc;
    }
    bl_op_ready(&self->call.op);
    return self->queue.len >= BL_EXEC_QUEUE_BYTES ? BARCHAN_FILE_LATER : 0;
}

static void on_done(barchan_file_result *result, const barchan_error *err, void *ud)
{
    bl_link *link = ud;
    struct transfer *self = link->owner;
    (void)result;
    free(link);
    if (self == NULL) return;
    self->call.link = NULL;
    self->core = NULL;
    self->ended = 1;
    self->left = 0;
    if (err != NULL && self->err.code == 0) self->err = *err;
    bl_op_ready(&self->call.op);
    bl_op_unref(&self->call.op);
}

static void cancel_transfer(bl_op *op)
{
    struct transfer *self = (struct transfer *)op;
    if (self->core != NULL) barchan_file_cancel(self->core);
}

/* ---- starting ---- */

static int start(lua_State *L, barchan_file_op op)
{
    barchan_sandbox *sbx = bl_check_sandbox(L, 1);
    luaL_checktype(L, 2, LUA_TTABLE);
    lua_settop(L, 2);
    barchan_file_request request = {.struct_size = sizeof request, .op = op};
    request.path = bl_opt_string(L, 2, "path", &request.path_len);
    luaL_argcheck(L, request.path != NULL, 2, "option 'path' is missing");
    request.mode = (uint32_t)bl_opt_integer(L, 2, "mode", 0);
    struct transfer *self = bl_call_new(L, sizeof *self, TRANSFER_META, cancel_transfer);
    bc_buf_init(&self->queue, BL_TRANSFER_QUEUE_BYTES);
    lua_pushvalue(L, 1);
    lua_setiuservalue(L, -2, VALUE_SANDBOX); /* the transfer keeps the sandbox's handle */
    if (op == BARCHAN_FILE_WRITE) request.source = on_source;
    if (op == BARCHAN_FILE_READ) request.sink = on_sink;
    request.ud = self->call.link;
    barchan_error err;
    if (barchan_sandbox_file_start(&self->core, sbx, &request, on_done, self->call.link, &err) <
        0) {
        return bl_call_failed(L, &self->call, &err);
    }
    bl_link_given(self->call.link);
    return 1;
}

int bl_sandbox_upload(lua_State *L)
{
    return start(L, BARCHAN_FILE_WRITE);
}

int bl_sandbox_download(lua_State *L)
{
    return start(L, BARCHAN_FILE_READ);
}

/* ---- in ---- */

static int finish_put(lua_State *L, bl_op *op)
{
    struct transfer *self = (struct transfer *)op;
    if (self->err.code != 0) return bl_fail(L, &self->err);
    lua_pushboolean(L, 1);
    return 1;
}

/* transfer:put(chunk) -> true | nil, err; waits until the chunk is on its way */
static int l_transfer_put(lua_State *L)
{
    struct transfer *self = check(L, 1);
    luaL_checktype(L, 2, LUA_TSTRING);
    lua_settop(L, 2);
    self->chunk = lua_tolstring(L, 2, &self->left);
    lua_setiuservalue(L, 1, VALUE_CHUNK);
    self->call.op.ready = self->ended || self->left == 0;
    if (self->ended) self->left = 0;
    barchan_file_resume(self->core);
    return bl_wait(L, &self->call.op, finish_put);
}

/* transfer:finish() -> true | nil, err; the file has its name */
static int l_transfer_finish(lua_State *L)
{
    struct transfer *self = check(L, 1);
    lua_settop(L, 1);
    self->is_last = 1;
    self->call.op.ready = self->ended;
    barchan_file_resume(self->core);
    return bl_wait(L, &self->call.op, finish_put);
}

/* ---- out ---- */

static int finish_next(lua_State *L, bl_op *op)
{
    struct transfer *self = (struct transfer *)op;
    if (self->queue.len > 0) {
        lua_pushlstring(L, bc_buf_data(&self->queue), self->queue.len);
        bc_buf_reset(&self->queue);
        barchan_file_resume(self->core);
        return 1;
    }
    if (self->err.code != 0) return bl_fail(L, &self->err);
    lua_pushnil(L);
    return 1;
}

/* transfer:next() -> chunk; nil at the end | nil, err */
static int l_transfer_next(lua_State *L)
{
    struct transfer *self = check(L, 1);
    lua_settop(L, 1);
    self->call.op.ready = self->queue.len > 0 || self->ended;
    return bl_wait(L, &self->call.op, finish_next);
}

/* ---- the end ---- */

/* close and __close: gives an unfinished transfer up; never waits. */
static int l_transfer_close(lua_State *L)
{
    cancel_transfer(&check(L, 1)->call.op);
    return 0;
}

static int l_transfer_gc(lua_State *L)
{
    struct transfer *self = check(L, 1);
    bl_op_detach(&self->call.op);
    bl_link_drop(&self->call.link);
    if (self->core != NULL) barchan_file_cancel(self->core);
    self->core = NULL;
    bc_buf_clear(&self->queue);
    return 0;
}

void bl_open_transfer(lua_State *L)
{
    static const luaL_Reg methods[] = {{"put", l_transfer_put},
                                       {"finish", l_transfer_finish},
                                       {"next", l_transfer_next},
                                       {"close", l_transfer_close},
                                       {NULL, NULL}};
    bl_new_class(L, TRANSFER_META, methods, l_transfer_close, NULL);
    luaL_getmetatable(L, TRANSFER_META);
    lua_pushcfunction(L, l_transfer_gc);
    lua_setfield(L, -2, "__gc");
    lua_pop(L, 1);
}
