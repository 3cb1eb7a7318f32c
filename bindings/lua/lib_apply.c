/* sandbox:apply{ dest = …, … }: changes of a copy-on-write mount onto a folder of the host. */
#include "lib_sandbox.h"

#include <string.h>
#include <barchan/apply.h>
#include "errors.h"
#include "handle.h"

#define APPLY_META "barchan.core.apply"

struct apply {
    bl_call call;             /* first */
    barchan_apply_call *core; /* NULL when ended */
    barchan_apply_result result;
    barchan_error err;
    int failed;
};

static void on_done(barchan_apply_result *result, const barchan_error *err, void *ud)
{
    bl_link *link = ud;
    struct apply *self = link->owner;
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

static void let_go(struct apply *self)
{
    bl_link_drop(&self->call.link);
    if (self->core != NULL) barchan_apply_cancel(self->core);
    self->core = NULL;
}

static void cancel_apply(bl_op *op)
{
    let_go((struct apply *)op);
    bl_op_unref(op);
}

static void push_entry(lua_State *L, const barchan_apply_entry *entry)
{
    static const char *const outcomes[] = {"applied", "conflict", "skipped"};
    lua_createtable(L, 0, 5);
    lua_pushlstring(L, entry->path, entry->path_len);
    lua_setfield(L, -2, "path");
    lua_pushstring(L, bl_change_name(entry->change));
    lua_setfield(L, -2, "kind");
    lua_pushstring(L, bl_file_type_name(entry->type));
    lua_setfield(L, -2, "type");
    lua_pushstring(L, outcomes[entry->outcome]);
    lua_setfield(L, -2, "outcome");
    if (entry->why != NULL) {
        lua_pushstring(L, entry->why);
        lua_setfield(L, -2, "why");
    }
}

static void push_result(lua_State *L, const barchan_apply_result *r)
{
    const struct {
        const char *name;
        uint64_t value;
    } numbers[] = {{"applied", r->applied},
                   {"conflicts", r->conflicts},
                   {"skipped", r->skipped},
                   {"bytes", r->bytes}};
    lua_createtable(L, 0, 5);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        lua_pushinteger(L, (lua_Integer)numbers[i].value);
        lua_setfield(L, -2, numbers[i].name);
    }
    lua_createtable(L, (int)r->entry_count, 0);
    for (size_t i = 0; i < r->entry_count; i++) {
        push_entry(L, &r->entries[i]);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    lua_setfield(L, -2, "entries");
}

static int finish_apply(lua_State *L, bl_op *op)
{
    struct apply *self = (struct apply *)op;
    bl_op_unref(op); /* its userdata stays on the waiter's stack */
    if (self->failed) return bl_fail(L, &self->err);
    push_result(L, &self->result);
    barchan_apply_result_clear(&self->result);
    return 1;
}

static int l_apply_gc(lua_State *L)
{
    struct apply *self = luaL_checkudata(L, 1, APPLY_META);
    bl_op_detach(&self->call.op);
    let_go(self);
    barchan_apply_result_clear(&self->result);
    return 0;
}

static barchan_on_conflict read_conflict(lua_State *L, const char *word)
{
    if (word == NULL || strcmp(word, "refuse") == 0) return BARCHAN_ON_CONFLICT_REFUSE;
    if (strcmp(word, "skip") == 0) return BARCHAN_ON_CONFLICT_SKIP;
    if (strcmp(word, "overwrite") == 0) return BARCHAN_ON_CONFLICT_OVERWRITE;
    return bl_misuse(L, "option 'on_conflict': \"refuse\", \"skip\" or \"overwrite\" expected");
}

int bl_sandbox_apply(lua_State *L)
{
    barchan_sandbox *sbx = bl_check_sandbox(L, 1);
    luaL_checktype(L, 2, LUA_TTABLE);
    lua_settop(L, 2);
    bl_refuse_safe(L, "apply_changes");
    barchan_apply_options options = {.struct_size = sizeof options};
    const char *dest = bl_opt_string(L, 2, "dest", NULL);
    luaL_argcheck(L, dest != NULL, 2, "option 'dest' is missing");
    options.target = bl_opt_string(L, 2, "target", NULL);
    options.on_conflict = read_conflict(L, bl_opt_string(L, 2, "on_conflict", NULL));
    options.dry_run = bl_opt_flag(L, 2, "dry_run");
    options.links = bl_opt_flag(L, 2, "links");
    int64_t max_bytes = bl_opt_integer(L, 2, "max_bytes", 0);
    luaL_argcheck(L, max_bytes >= 0, 2, "option 'max_bytes' is negative");
    options.max_bytes = (uint64_t)max_bytes;
    options.timeout_ms = bl_opt_ms(L, 2, "timeout", 0);
    options.paths = bl_opt_strings(L, 2, "paths", 0);
    struct apply *self = bl_call_new(L, sizeof *self, APPLY_META, cancel_apply);
    lua_pushvalue(L, 1);
    lua_setiuservalue(L, -2, 1); /* the call keeps the sandbox's handle */
    barchan_error err;
    if (barchan_sandbox_apply_changes_start(&self->core, sbx, dest, &options, on_done,
                                            self->call.link, &err) < 0) {
        return bl_call_failed(L, &self->call, &err);
    }
    bl_link_given(self->call.link);
    return bl_wait(L, &self->call.op, finish_apply);
}

void bl_open_apply(lua_State *L)
{
    static const luaL_Reg none[] = {{NULL, NULL}};
    bl_new_class(L, APPLY_META, none, l_apply_gc, NULL);
}
