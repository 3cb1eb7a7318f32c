/* sandbox:snapshot{ name = …, … } and sandbox:fork(count); core.template: this user's templates. */
#include "lib_sandbox.h"

#include <string.h>
#include <barchan/template.h>
#include "errors.h"

#define SNAPSHOT_META "barchan.core.snapshot"
#define FORK_META "barchan.core.fork"

static void push_template(lua_State *L, const barchan_template *info)
{
    lua_createtable(L, 0, 7);
    lua_pushstring(L, info->name);
    lua_setfield(L, -2, "name");
    lua_pushstring(L, info->base);
    lua_setfield(L, -2, "base");
    lua_pushstring(L, info->note);
    lua_setfield(L, -2, "note");
    lua_pushnumber(L, (lua_Number)info->created_ms / 1000);
    lua_setfield(L, -2, "created");
    lua_pushinteger(L, (lua_Integer)info->entries);
    lua_setfield(L, -2, "entries");
    lua_pushinteger(L, (lua_Integer)info->bytes);
    lua_setfield(L, -2, "bytes");
    lua_pushinteger(L, (lua_Integer)info->left_out);
    lua_setfield(L, -2, "left_out");
}

/* ---- a snapshot ---- */

struct snapshot {
    bl_call call;                /* first */
    barchan_snapshot_call *core; /* NULL when ended */
    barchan_template info;
    barchan_error err;
    int failed;
};

static int copy_info(barchan_template *to, const barchan_template *from)
{
    *to = *from;
    to->name = strdup(from->name);
    to->base = strdup(from->base);
    to->note = strdup(from->note);
    if (to->name != NULL && to->base != NULL && to->note != NULL) return 0;
    barchan_template_clear(to);
    return -1;
}

static void on_taken(const barchan_template *info, const barchan_error *err, void *ud)
{
    bl_link *link = ud;
    struct snapshot *self = link->owner;
    free(link);
    if (self == NULL) return;
    self->call.link = NULL;
    self->core = NULL;
    if (err != NULL) {
        self->failed = 1;
        self->err = *err;
    } else if (copy_info(&self->info, info) < 0) {
        self->failed = 1;
        bc_error_nomem(&self->err);
    }
    bl_op_ready(&self->call.op);
}

static void let_go(struct snapshot *self)
{
    barchan_snapshot_call *core = self->core;
    bl_link_drop(&self->call.link);
    self->core = NULL;
    barchan_snapshot_cancel(core);
}

static void cancel_snapshot(bl_op *op)
{
    let_go((struct snapshot *)op);
    bl_op_unref(op);
}

static int finish_snapshot(lua_State *L, bl_op *op)
{
    struct snapshot *self = (struct snapshot *)op;
    bl_op_unref(op); /* its userdata stays on the waiter's stack, and frees the rest */
    if (self->failed) return bl_fail(L, &self->err);
    push_template(L, &self->info);
    return 1;
}

static int l_snapshot_gc(lua_State *L)
{
    struct snapshot *self = luaL_checkudata(L, 1, SNAPSHOT_META);
    bl_op_detach(&self->call.op);
    let_go(self);
    barchan_template_clear(&self->info);
    return 0;
}

int bl_sandbox_snapshot(lua_State *L)
{
    barchan_sandbox *sbx = bl_check_sandbox(L, 1);
    luaL_checktype(L, 2, LUA_TTABLE);
    lua_settop(L, 2);
    bl_refuse_safe(L, "snapshot");
    barchan_snapshot_options options = {.struct_size = sizeof options};
    const char *name = bl_opt_string(L, 2, "name", NULL);
    luaL_argcheck(L, name != NULL, 2, "option 'name' is missing");
    options.replace = bl_opt_flag(L, 2, "replace");
    options.note = bl_opt_string(L, 2, "note", NULL);
    options.timeout_ms = bl_opt_ms(L, 2, "timeout", 0);
    struct snapshot *self = bl_call_new(L, sizeof *self, SNAPSHOT_META, cancel_snapshot);
    lua_pushvalue(L, 1);
    lua_setiuservalue(L, -2, 1); /* the call keeps the sandbox's handle */
    barchan_error err;
    if (barchan_sandbox_snapshot_start(&self->core, sbx, name, &options, on_taken, self->call.link,
                                       &err) < 0) {
        return bl_call_failed(L, &self->call, &err);
    }
    bl_link_given(self->call.link);
    return bl_wait(L, &self->call.op, finish_snapshot);
}

/* ---- forks ---- */

struct fork {
    bl_call call;                /* first; its second user value is the list of handles */
    barchan_snapshot_call *core; /* NULL when ended */
    barchan_sandbox *forks[BARCHAN_FORK_MAX];
    size_t count; /* of those that no handle has yet */
    barchan_error err;
    int failed;
};

static void destroy_all(barchan_sandbox **forks, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        barchan_sandbox_destroy(forks[i]);
    }
}

static void on_forked(barchan_sandbox **forks, size_t count, const barchan_error *err, void *ud)
{
    bl_link *link = ud;
    struct fork *self = link->owner;
    free(link);
    if (self == NULL) {
        destroy_all(forks, count);
        return;
    }
    self->call.link = NULL;
    self->core = NULL;
    self->failed = err != NULL;
    if (err != NULL) self->err = *err;
    if (err == NULL) memcpy(self->forks, forks, count * sizeof *forks);
    self->count = count;
    bl_op_ready(&self->call.op);
}

static void let_go_of_forks(struct fork *self)
{
    barchan_snapshot_call *core = self->core;
    bl_link_drop(&self->call.link);
    self->core = NULL;
    barchan_snapshot_cancel(core);
    size_t count = self->count;
    self->count = 0;
    destroy_all(self->forks, count);
}

static void cancel_fork(bl_op *op)
{
    let_go_of_forks((struct fork *)op);
    bl_op_unref(op);
}

/* Nothing here throws before every fork has its handle. */
static int finish_fork(lua_State *L, bl_op *op)
{
    struct fork *self = (struct fork *)op;
    lua_rawgeti(L, LUA_REGISTRYINDEX, op->self_ref);
    bl_op_unref(op);
    if (self->failed) return bl_fail(L, &self->err);
    lua_getiuservalue(L, -1, 2);
    for (size_t i = 0; i < self->count; i++) {
        lua_rawgeti(L, -1, (lua_Integer)i + 1);
        bl_sandbox_adopt(L, self->forks[i]);
        lua_pop(L, 1);
    }
    self->count = 0;
    return 1;
}

static int l_fork_gc(lua_State *L)
{
    struct fork *self = luaL_checkudata(L, 1, FORK_META);
    bl_op_detach(&self->call.op);
    let_go_of_forks(self);
    return 0;
}

int bl_sandbox_fork(lua_State *L)
{
    barchan_sandbox *sbx = bl_check_sandbox(L, 1);
    lua_Integer count = luaL_checkinteger(L, 2);
    luaL_argcheck(L, count >= 1 && count <= BARCHAN_FORK_MAX, 2, "1 to 64 expected");
    lua_Number timeout = luaL_optnumber(L, 3, 0);
    luaL_argcheck(L, timeout >= 0 && timeout <= 1e6, 3, "seconds expected");
    lua_settop(L, 2);
    bl_refuse_safe(L, "fork");
    const barchan_fork_options options = {.struct_size = sizeof options,
                                          .timeout_ms = (int64_t)(timeout * 1000)};
    lua_createtable(L, (int)count, 0);
    for (lua_Integer i = 1; i <= count; i++) {
        bl_sandbox_push_closed(L);
        lua_rawseti(L, -2, i);
    }
    struct fork *self = bl_call_new(L, sizeof *self, FORK_META, cancel_fork);
    lua_pushvalue(L, 1);
    lua_setiuservalue(L, -2, 1);
    lua_pushvalue(L, -2);
    lua_setiuservalue(L, -2, 2);
    barchan_error err;
    if (barchan_sandbox_fork_start(&self->core, sbx, (size_t)count, &options, on_forked,
                                   self->call.link, &err) < 0) {
        return bl_call_failed(L, &self->call, &err);
    }
    bl_link_given(self->call.link);
    return bl_wait(L, &self->call.op, finish_fork);
}

/* ---- this user's templates ---- */

static int push_list(lua_State *L)
{
    const barchan_templates *templates = lua_touserdata(L, 1);
    lua_createtable(L, (int)templates->count, 0);
    for (size_t i = 0; i < templates->count; i++) {
        push_template(L, &templates->list[i]);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    lua_pushinteger(L, (lua_Integer)templates->removed);
    return 2;
}

/* list() -> templates, how many leftovers went | nil, err */
static int l_template_list(lua_State *L)
{
    barchan_templates templates;
    barchan_error err;
    bl_refuse_safe(L, "templates");
    lua_settop(L, 0);
    lua_pushcfunction(L, push_list); /* pushed before there is anything to lose */
    if (barchan_template_list(bl_state_of(L)->rt, &templates, &err) < 0) return bl_fail(L, &err);
    lua_pushlightuserdata(L, &templates);
    int rc = lua_pcall(L, 1, 2, 0);
    barchan_templates_clear(&templates);
    return rc == LUA_OK ? 2 : lua_error(L);
}

static int push_info(lua_State *L)
{
    push_template(L, lua_touserdata(L, 1));
    return 1;
}

/* info(name) -> template | nil, err */
static int l_template_info(lua_State *L)
{
    const char *name = bl_check_text(L, 1);
    barchan_template info;
    barchan_error err;
    bl_refuse_safe(L, "templates");
    lua_settop(L, 1);
    lua_pushcfunction(L, push_info);
    if (barchan_template_info(bl_state_of(L)->rt, name, &info, &err) < 0) return bl_fail(L, &err);
    lua_pushlightuserdata(L, &info);
    int rc = lua_pcall(L, 1, 1, 0);
    barchan_template_clear(&info);
    return rc == LUA_OK ? 1 : lua_error(L);
}

/* remove(name) -> true | nil, err */
static int l_template_remove(lua_State *L)
{
    const char *name = bl_check_text(L, 1);
    barchan_error err;
    bl_refuse_safe(L, "templates");
    if (barchan_template_remove(bl_state_of(L)->rt, name, &err) < 0) return bl_fail(L, &err);
    lua_pushboolean(L, 1);
    return 1;
}

void bl_open_template(lua_State *L)
{
    static const luaL_Reg none[] = {{NULL, NULL}};
    static const luaL_Reg functions[] = {{"list", l_template_list},
                                         {"info", l_template_info},
                                         {"remove", l_template_remove},
                                         {NULL, NULL}};
    bl_new_class(L, SNAPSHOT_META, none, l_snapshot_gc, NULL);
    bl_new_class(L, FORK_META, none, l_fork_gc, NULL);
    luaL_newlib(L, functions);
    lua_setfield(L, -2, "template");
}
