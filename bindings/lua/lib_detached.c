/* Detached sandboxes: making, finding and holding them, and what their commands have printed. */
#include "lib_sandbox.h"

#include <stdio.h>
#include <string.h>
#include <barchan/detached.h>
#include "errors.h"
#include "sandbox/holder.h"

#define CREATE_META "barchan.core.detached_create"
#define LOGS_META "barchan.core.logs"
#define HOLD_META "barchan.core.hold"

void bl_check_detached(lua_State *L)
{
    bl_refuse_safe(L, "detached sandboxes");
}

/* ---- making one ---- */

struct create {
    bl_call call; /* first */
    int failed;
    char id[24];
    int has_claim, claim_fd;
    barchan_error err;
};

static void on_made(const char *id, int claim_fd, const barchan_error *err, void *ud)
{
    bl_link *link = ud;
    struct create *self = link->owner;
    free(link);
    if (self == NULL) { /* nobody waits any more */
        if (id != NULL) bc_claim_drop(claim_fd);
        return;
    }
    self->call.link = NULL;
    self->failed = err != NULL;
    if (err != NULL) self->err = *err;
    if (id != NULL) {
        snprintf(self->id, sizeof self->id, "%s", id);
        self->claim_fd = claim_fd;
        self->has_claim = 1;
    }
    bl_op_ready(&self->call.op);
}

static void drop_claim(struct create *self)
{
    if (self->has_claim) bc_claim_drop(self->claim_fd);
    self->has_claim = 0;
}

static void cancel_create(bl_op *op)
{
    struct create *self = (struct create *)op;
    bl_link_drop(&self->call.link);
    drop_claim(self);
    bl_op_unref(op);
}

static int finish_create(lua_State *L, bl_op *op)
{
    struct create *self = (struct create *)op;
    lua_rawgeti(L, LUA_REGISTRYINDEX, op->self_ref);
    bl_op_unref(op);
    if (self->failed) return bl_fail(L, &self->err);
    lua_pushstring(L, self->id);
    lua_insert(L, -2);
    return 2;
}

/* claim:keep() -> true | nil, err */
static int l_claim_keep(lua_State *L)
{
    struct create *self = luaL_checkudata(L, 1, CREATE_META);
    barchan_error err;
    if (!self->has_claim) bl_misuse(L, "the claim is closed");
    self->has_claim = 0;
    if (bc_claim_keep(self->claim_fd, &err) < 0) return bl_fail(L, &err);
    lua_pushboolean(L, 1);
    return 1;
}

static int l_create_gc(lua_State *L)
{
    struct create *self = luaL_checkudata(L, 1, CREATE_META);
    bl_op_detach(&self->call.op);
    bl_link_drop(&self->call.link);
    drop_claim(self);
    return 0;
}

int bl_detached_create(lua_State *L)
{
    bl_check_detached(L);
    barchan_detached_options options = {.struct_size = sizeof options,
                                        .profile_json = bl_check_text(L, 1)};
    lua_Number timeout = luaL_optnumber(L, 2, 0);
    luaL_argcheck(L, timeout >= 0 && timeout <= 1e6, 2, "seconds expected");
    options.timeout_ms = (int64_t)(timeout * 1000);
    lua_settop(L, 1);
    struct create *self = bl_call_new(L, sizeof *self, CREATE_META, cancel_create);
    barchan_error err;
    if (bc_detached_create_start(self->call.op.state->rt, &options, on_made, self->call.link,
                                 &err) < 0) {
        return bl_call_failed(L, &self->call, &err);
    }
    bl_link_given(self->call.link);
    return bl_wait(L, &self->call.op, finish_create);
}

/* ---- finding them ---- */

static int push_ids(lua_State *L)
{
    const barchan_detached_list *list = lua_touserdata(L, 1);
    lua_createtable(L, (int)list->count, 0);
    for (size_t i = 0; i < list->count; i++) {
        lua_pushstring(L, list->ids[i]);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    lua_pushinteger(L, (lua_Integer)list->removed);
    return 2;
}

int bl_detached_ids(lua_State *L)
{
    bl_check_detached(L);
    barchan_detached_list list;
    barchan_error err;
    lua_settop(L, 0);
    lua_pushcfunction(L, push_ids); /* pushed before there is anything to lose */
    if (barchan_detached_ids(bl_state_of(L)->rt, &list, &err) < 0) return bl_fail(L, &err);
    lua_pushlightuserdata(L, &list);
    int rc = lua_pcall(L, 1, 2, 0);
    barchan_detached_list_clear(&list);
    return rc == LUA_OK ? 2 : lua_error(L);
}

/* ---- what was printed ---- */

struct logs {
    bl_call call; /* first */
    int failed;
    barchan_log_entry *entries; /* one allocation with their bytes */
    size_t count;
    uint64_t dropped, next;
    barchan_error err;
};

static int copy_logs(struct logs *self, const barchan_logs *logs)
{
    size_t bytes = logs->count * sizeof *logs->entries;
    for (size_t i = 0; i < logs->count; i++) {
        bytes += logs->entries[i].len;
    }
    self->entries = malloc(bytes + 1);
    if (self->entries == NULL) return -1;
    char *at = (char *)(self->entries + logs->count);
    for (size_t i = 0; i < logs->count; i++) {
        const barchan_log_entry *entry = &logs->entries[i];
        self->entries[i] = *entry;
        self->entries[i].data = at;
        memcpy(at, entry->data, entry->len);
        at += entry->len;
    }
    self->count = logs->count;
    self->dropped = logs->dropped;
    self->next = logs->next;
    return 0;
}

static void on_logs(const barchan_logs *logs, const barchan_error *err, void *ud)
{
    bl_link *link = ud;
    struct logs *self = link->owner;
    free(link);
    if (self == NULL) return;
    self->call.link = NULL;
    self->failed = err != NULL;
    if (err != NULL) self->err = *err;
    if (logs != NULL && copy_logs(self, logs) < 0) {
        self->failed = 1;
        bc_error_nomem(&self->err);
    }
    bl_op_ready(&self->call.op);
}

static void cancel_logs(bl_op *op)
{
    bl_link_drop(&((struct logs *)op)->call.link);
    bl_op_unref(op);
}

static int finish_logs(lua_State *L, bl_op *op)
{
    struct logs *self = (struct logs *)op;
    bl_op_unref(op); /* its userdata stays on the waiter's stack, and frees the bytes */
    if (self->failed) return bl_fail(L, &self->err);
    lua_createtable(L, (int)self->count, 0);
    for (size_t i = 0; i < self->count; i++) {
        const barchan_log_entry *entry = &self->entries[i];
        lua_createtable(L, 0, 3);
        lua_pushinteger(L, entry->command);
        lua_setfield(L, -2, "command");
        lua_pushstring(L, entry->stream == BARCHAN_STREAM_OUT ? "out" : "err");
        lua_setfield(L, -2, "stream");
        lua_pushlstring(L, entry->data, entry->len);
        lua_setfield(L, -2, "data");
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    lua_pushinteger(L, (lua_Integer)self->next);
    lua_pushinteger(L, (lua_Integer)self->dropped);
    return 3;
}

static int l_logs_gc(lua_State *L)
{
    struct logs *self = luaL_checkudata(L, 1, LOGS_META);
    bl_op_detach(&self->call.op);
    bl_link_drop(&self->call.link);
    free(self->entries);
    self->entries = NULL;
    return 0;
}

int bl_sandbox_logs(lua_State *L)
{
    barchan_sandbox *sbx = bl_check_sandbox(L, 1);
    lua_Integer cursor = luaL_optinteger(L, 2, 0);
    luaL_argcheck(L, cursor >= 0, 2, "a cursor expected");
    int follow = lua_toboolean(L, 3);
    lua_settop(L, 1);
    struct logs *self = bl_call_new(L, sizeof *self, LOGS_META, cancel_logs);
    barchan_error err;
    int rc = (follow ? barchan_sandbox_logs_follow_start : barchan_sandbox_logs_start)(
        sbx, (uint64_t)cursor, on_logs, self->call.link, &err);
    if (rc < 0) {
        return bl_call_failed(L, &self->call, &err);
    }
    bl_link_given(self->call.link);
    return bl_wait(L, &self->call.op, finish_logs);
}

/* ---- holding one ---- */

static void on_over(const barchan_error *err, void *ud)
{
    bl_link *link = ud;
    bl_call *self = link->owner;
    (void)err;
    free(link);
    if (self == NULL) return;
    self->link = NULL;
    bl_op_ready(&self->op);
}

static void cancel_hold(bl_op *op)
{
    bl_link_drop(&((bl_call *)op)->link);
    bl_op_unref(op);
}

static int finish_hold(lua_State *L, bl_op *op)
{
    (void)L;
    bl_op_unref(op);
    return 0;
}

/* hold:wait(): until the sandbox has ended and all have been told */
static int l_hold_wait(lua_State *L)
{
    bl_call *self = luaL_checkudata(L, 1, HOLD_META);
    lua_settop(L, 1);
    return bl_wait(L, &self->op, finish_hold);
}

static int l_hold_gc(lua_State *L)
{
    bl_call *self = luaL_checkudata(L, 1, HOLD_META);
    bl_op_detach(&self->op);
    bl_link_drop(&self->link);
    return 0;
}

int bl_sandbox_hold(lua_State *L)
{
    barchan_sandbox *sbx = bl_check_sandbox(L, 1);
    bl_check_detached(L);
    lua_settop(L, 1);
    bl_call *self = bl_call_new(L, sizeof *self, HOLD_META, cancel_hold);
    barchan_error err;
    if (barchan_sandbox_hold(sbx, on_over, self->link, &err) < 0) {
        return bl_call_failed(L, self, &err);
    }
    bl_link_given(self->link);
    return 1;
}

void bl_open_detached(lua_State *L)
{
    static const luaL_Reg none[] = {{NULL, NULL}};
    static const luaL_Reg claim[] = {{"keep", l_claim_keep}, {NULL, NULL}};
    static const luaL_Reg hold[] = {{"wait", l_hold_wait}, {NULL, NULL}};
    bl_new_class(L, CREATE_META, claim, l_create_gc, NULL);
    bl_new_class(L, LOGS_META, none, l_logs_gc, NULL);
    bl_new_class(L, HOLD_META, hold, l_hold_gc, NULL);
}
