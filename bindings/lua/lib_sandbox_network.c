/* What a sandbox has reached so far; of a detached one its holder is asked. */
#include <string.h>
#include <barchan/network.h>
#include "errors.h"
#include "lib_sandbox.h"

#define NETWORK_USAGE_META "barchan.core.network_usage"

struct network_usage {
    bl_call call; /* first */
    int failed;
    barchan_network_usage usage;
    barchan_error err;
};

static void on_usage(barchan_network_usage *usage, const barchan_error *err, void *ud)
{
    bl_link *link = ud;
    struct network_usage *self = link->owner;
    free(link);
    if (self == NULL) return;
    self->call.link = NULL;
    self->failed = err != NULL;
    if (err != NULL) self->err = *err;
    if (usage != NULL) {
        self->usage = *usage; /* taken */
        *usage = (barchan_network_usage){0};
    }
    bl_op_ready(&self->call.op);
}

static void cancel(bl_op *op)
{
    bl_link_drop(&((struct network_usage *)op)->call.link);
    bl_op_unref(op);
}

static void push_host(lua_State *L, const barchan_network_host *host)
{
    const struct {
        const char *name;
        uint64_t value;
    } counts[] = {{"connections", host->connections},
                  {"denied", host->denied},
                  {"failed", host->failed},
                  {"bytes_sent", host->bytes_sent},
                  {"bytes_received", host->bytes_received}};
    lua_createtable(L, 0, 6);
    lua_pushstring(L, host->host);
    lua_setfield(L, -2, "host");
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        lua_pushinteger(L, (lua_Integer)counts[i].value);
        lua_setfield(L, -2, counts[i].name);
    }
}

static int finish(lua_State *L, bl_op *op)
{
    struct network_usage *self = (struct network_usage *)op;
    bl_op_unref(op); /* its userdata stays on the waiter's stack, and frees the hosts */
    if (self->failed) return bl_fail(L, &self->err);
    lua_createtable(L, (int)self->usage.count, 0);
    for (size_t i = 0; i < self->usage.count; i++) {
        push_host(L, &self->usage.hosts[i]);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    lua_pushinteger(L, (lua_Integer)self->usage.open);
    return 2;
}

static int l_network_usage_gc(lua_State *L)
{
    struct network_usage *self = luaL_checkudata(L, 1, NETWORK_USAGE_META);
    bl_op_detach(&self->call.op);
    bl_link_drop(&self->call.link);
    barchan_network_usage_clear(&self->usage);
    return 0;
}

int bl_sandbox_network(lua_State *L)
{
    barchan_sandbox *sbx = bl_check_sandbox(L, 1);
    lua_settop(L, 1);
    struct network_usage *self = bl_call_new(L, sizeof *self, NETWORK_USAGE_META, cancel);
    barchan_error err;
    if (barchan_sandbox_network_start(sbx, on_usage, self->call.link, &err) < 0) {
        return bl_call_failed(L, &self->call, &err);
    }
    bl_link_given(self->call.link);
    return bl_wait(L, &self->call.op, finish);
}

void bl_open_sandbox_network(lua_State *L)
{
    static const luaL_Reg none[] = {{NULL, NULL}};
    bl_new_class(L, NETWORK_USAGE_META, none, l_network_usage_gc, NULL);
}
