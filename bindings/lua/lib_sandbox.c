/* core.sandbox: create, list, and the sandbox handle. Execs are in lib_exec.c, files in
 * lib_files.c. */
#include "lib_sandbox.h"

#include <string.h>
#include <barchan/detached.h>
#include "errors.h"
#include "handle.h"
#include "lib_network.h"
#include "sandbox/network.h"
#include "lib_secret.h"
#include "value.h"

#define SANDBOX_META "barchan.core.sandbox"
#define BL_MAX_MOUNTS 16 /* as the core has it */

/* The creation is the handle's own operation; after it the handle just owns the sandbox. */
struct bl_sandbox {
    bl_call call;         /* first */
    barchan_sandbox *sbx; /* NULL once destroyed */
    int failed;
    barchan_error err;
    bl_network *network; /* its second user value */
};

void *bl_call_new(lua_State *L, size_t size, const char *meta, void (*cancel)(bl_op *op))
{
    bl_call *call = lua_newuserdatauv(L, size, 2);
    memset(call, 0, size);
    luaL_setmetatable(L, meta);
    call->link = bl_link_new(L, call);
    bl_op_init(L, lua_gettop(L), &call->op, cancel);
    return call;
}

int bl_call_failed(lua_State *L, bl_call *call, const barchan_error *err)
{
    bl_op_unref(&call->op);
    return bl_fail(L, err);
}

barchan_sandbox *bl_check_sandbox(lua_State *L, int index)
{
    struct bl_sandbox *self = luaL_checkudata(L, index, SANDBOX_META);
    if (self->sbx == NULL) bl_misuse(L, "the sandbox is closed");
    return self->sbx;
}

/* sandbox:network_object() -> what has its news, and does not keep the sandbox */
static int l_sandbox_network_object(lua_State *L)
{
    bl_check_sandbox(L, 1);
    lua_getiuservalue(L, 1, 2);
    return 1;
}

static void on_created(barchan_sandbox *sbx, const barchan_error *err, void *ud)
{
    bl_link *link = ud;
    struct bl_sandbox *self = link->owner;
    (void)sbx;
    free(link);
    if (self == NULL) return;
    self->call.link = NULL;
    if (err != NULL) {
        self->failed = 1;
        self->err = *err;
    }
    bl_op_ready(&self->call.op);
}

static void destroy(struct bl_sandbox *self)
{
    barchan_sandbox *sbx = self->sbx;
    self->sbx = NULL;
    bl_link_drop(&self->call.link);
    barchan_sandbox_destroy(sbx);
    if (self->network != NULL) bl_network_clear(self->network);
}

static void cancel_create(bl_op *op)
{
    destroy((struct bl_sandbox *)op);
    bl_op_unref(op);
}

/* Pushes a handle without a sandbox. */
static struct bl_sandbox *push_handle(lua_State *L)
{
    bl_network *network = bl_network_push(L);
    struct bl_sandbox *self = bl_call_new(L, sizeof *self, SANDBOX_META, cancel_create);
    lua_rotate(L, -2, 1);
    lua_setiuservalue(L, -2, 2);
    self->network = network;
    return self;
}

static int finish_create(lua_State *L, bl_op *op)
{
    struct bl_sandbox *self = (struct bl_sandbox *)op;
    lua_rawgeti(L, LUA_REGISTRYINDEX, op->self_ref);
    bl_op_unref(op);
    if (!self->failed) return 1;
    destroy(self);
    return bl_fail(L, &self->err);
}

void bl_sandbox_push_closed(lua_State *L)
{
    struct bl_sandbox *self = push_handle(L);
    bl_op_unref(&self->call.op);
    bl_link_drop(&self->call.link);
}

void bl_sandbox_adopt(lua_State *L, barchan_sandbox *sbx)
{
    struct bl_sandbox *self = lua_touserdata(L, -1);
    self->sbx = sbx;
    bc_sandbox_set_network_ud(sbx, self->network);
}

/* What is more than the core's field holds is more than it allows, which it tells. */
static uint32_t saturated(int64_t value)
{
    return value < 0 ? 0 : value > UINT32_MAX ? UINT32_MAX : (uint32_t)value;
}

static int64_t opt_thousandths(lua_State *L, int index, const char *key)
{
    lua_Number value = bl_opt_number(L, index, key, 0) * 1000;
    if (value == 0) return 0;
    if (value < 1) return 1; /* 0 would mean none */
    return value < 1e15 ? (int64_t)(value + 0.5) : (int64_t)1e15;
}

static void read_limits(lua_State *L, barchan_limits *limits)
{
    if (lua_getfield(L, 1, "limits") != LUA_TNIL) {
        int index = lua_gettop(L);
        limits->memory_bytes = (uint64_t)bl_opt_integer(L, index, "memory", 0);
        limits->disk_bytes = (uint64_t)bl_opt_integer(L, index, "disk", 0);
        limits->files = (uint64_t)bl_opt_integer(L, index, "files", 0);
        limits->output_bytes = (uint64_t)bl_opt_integer(L, index, "output", 0);
        limits->cpus_milli = saturated(opt_thousandths(L, index, "cpus"));
        limits->pids = saturated(bl_opt_integer(L, index, "pids", 0));
        limits->open_files = saturated(bl_opt_integer(L, index, "open_files", 0));
        limits->cpu_ms = opt_thousandths(L, index, "cpu_seconds");
        limits->wall_ms = opt_thousandths(L, index, "wall");
    }
    lua_pop(L, 1);
}

static barchan_mount_mode mount_mode(lua_State *L, const char *word)
{
    if (word == NULL || strcmp(word, "ro") == 0) return BARCHAN_MOUNT_READ_ONLY;
    if (strcmp(word, "rw") == 0) return BARCHAN_MOUNT_READ_WRITE;
    if (strcmp(word, "cow") == 0) return BARCHAN_MOUNT_COPY_ON_WRITE;
    return bl_misuse(L, "option 'mode': \"ro\", \"rw\" or \"cow\" expected");
}

/* The list `mounts` of { source, target, mode }, whose strings live as long as the profile. */
static void read_mounts(lua_State *L, barchan_profile *profile, barchan_mount *mounts)
{
    if (lua_getfield(L, 1, "mounts") != LUA_TNIL) {
        luaL_checktype(L, -1, LUA_TTABLE);
        lua_Integer count = (lua_Integer)lua_rawlen(L, -1);
        if (count > BL_MAX_MOUNTS) bl_misuse(L, "option 'mounts': at most %d", BL_MAX_MOUNTS);
        for (lua_Integer i = 1; i <= count; i++) {
            barchan_mount *m = &mounts[i - 1];
            lua_rawgeti(L, -1, i);
            int index = lua_gettop(L);
            m->source = bl_opt_string(L, index, "source", NULL);
            m->target = bl_opt_string(L, index, "target", NULL);
            m->mode = mount_mode(L, bl_opt_string(L, index, "mode", NULL));
            lua_pop(L, 1);
        }
        profile->mounts = mounts;
        profile->mount_count = (size_t)count;
    }
    lua_pop(L, 1);
}

static int l_sandbox_create(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 1);
    barchan_profile profile = {.struct_size = sizeof profile};
    profile.template_name = bl_opt_string(L, 1, "template", NULL);
    if (bl_state_of(L)->safe && profile.template_name != NULL &&
        strcmp(profile.template_name, "host") != 0) {
        return bl_misuse(L, "option 'template': only \"host\" is available to these scripts");
    }
    profile.lease_ms = bl_opt_ms(L, 1, "lease", 0);
    profile.idle_timeout_ms = bl_opt_ms(L, 1, "idle_timeout", 0);
    const char *lease_end = bl_opt_string(L, 1, "on_lease_end", NULL);
    if (lease_end != NULL && strcmp(lease_end, "pause") == 0) {
        profile.on_lease_end = BARCHAN_LEASE_PAUSE;
    } else if (lease_end != NULL && strcmp(lease_end, "terminate") != 0) {
        return bl_misuse(L, "option 'on_lease_end': \"terminate\" or \"pause\" expected");
    }
    barchan_mount mounts[BL_MAX_MOUNTS] = {{0}};
    read_limits(L, &profile.limits);
    read_mounts(L, &profile, mounts);
    if (profile.mount_count > 0) bl_refuse_safe(L, "option 'mounts'");
    profile.timeout_ms = bl_opt_int_ms(L, 1, "timeout");
    profile.best_effort = bl_opt_flag(L, 1, "best_effort");
    profile.env = bl_opt_strings(L, 1, "env", 1);
    barchan_network_rules rules = {.struct_size = sizeof rules};
    bl_network_read(L, &profile, &rules);
    barchan_error err;
    bl_secrets *secrets;
    if (bl_secrets_read(L, &profile, &secrets, &err) < 0) return bl_fail(L, &err);
    struct bl_sandbox *self = push_handle(L);
    rules.ud = self->network;
    int rc = barchan_sandbox_create_start(&self->sbx, self->call.op.state->rt, &profile, on_created,
                                          self->call.link, &err);
    bl_secrets_wipe(secrets);
    if (rc < 0) return bl_call_failed(L, &self->call, &err);
    bl_link_given(self->call.link);
    return bl_wait(L, &self->call.op, finish_create);
}

/* connect(id, seconds) -> sandbox handle | nil, err */
static int l_sandbox_connect(lua_State *L)
{
    const char *id = bl_check_text(L, 1);
    lua_Number timeout = luaL_optnumber(L, 2, 0);
    luaL_argcheck(L, timeout >= 0 && timeout <= 1e6, 2, "seconds expected");
    bl_check_detached(L);
    lua_settop(L, 1);
    struct bl_sandbox *self = push_handle(L);
    barchan_error err;
    int rc =
        barchan_sandbox_connect_start(&self->sbx, self->call.op.state->rt, id,
                                      (int)(timeout * 1000), on_created, self->call.link, &err);
    if (rc < 0) return bl_call_failed(L, &self->call, &err);
    bl_link_given(self->call.link);
    return bl_wait(L, &self->call.op, finish_create);
}

static int l_sandbox_close(lua_State *L)
{
    struct bl_sandbox *self = luaL_checkudata(L, 1, SANDBOX_META);
    bl_op_detach(&self->call.op);
    destroy(self);
    return 0;
}

static int l_sandbox_terminate(lua_State *L)
{
    struct bl_sandbox *self = luaL_checkudata(L, 1, SANDBOX_META);
    if (self->sbx != NULL) barchan_sandbox_terminate(self->sbx);
    return 0;
}

static void push_layers(lua_State *L, const char *layers)
{
    barchan_error err;
    if (layers == NULL || bl_push_json(L, layers, strlen(layers), &err) < 0) lua_newtable(L);
}

static void push_info(lua_State *L, const barchan_sandbox_info *info)
{
    lua_createtable(L, 0, 8);
    lua_pushstring(L, info->id);
    lua_setfield(L, -2, "id");
    lua_pushstring(L, barchan_sandbox_state_name(info->state));
    lua_setfield(L, -2, "state");
    if (info->end_reason != BARCHAN_END_NONE) {
        lua_pushstring(L, barchan_end_reason_name(info->end_reason));
        lua_setfield(L, -2, "end_reason");
    }
    lua_pushstring(L, info->template_name);
    lua_setfield(L, -2, "template");
    lua_pushnumber(L, (lua_Number)info->age_ms / 1000);
    lua_setfield(L, -2, "age");
    lua_pushnumber(L, (lua_Number)info->lease_left_ms / 1000);
    lua_setfield(L, -2, "lease_left");
    lua_pushinteger(L, info->running);
    lua_setfield(L, -2, "running");
    push_layers(L, info->layers);
    lua_setfield(L, -2, "layers");
}

static int l_sandbox_status(lua_State *L)
{
    barchan_sandbox_info info = {.struct_size = sizeof info};
    barchan_error err;
    if (barchan_sandbox_status(bl_check_sandbox(L, 1), &info, &err) < 0) return bl_fail(L, &err);
    push_info(L, &info);
    return 1;
}

static int l_sandbox_tostring(lua_State *L)
{
    struct bl_sandbox *self = luaL_checkudata(L, 1, SANDBOX_META);
    barchan_sandbox_info info = {.struct_size = sizeof info};
    if (self->sbx == NULL || barchan_sandbox_status(self->sbx, &info, NULL) < 0) {
        lua_pushliteral(L, "sandbox (closed)");
    } else {
        lua_pushfstring(L, "sandbox %s (%s)", info.id, barchan_sandbox_state_name(info.state));
    }
    return 1;
}

void bl_open_sandbox(lua_State *L)
{
    static const luaL_Reg functions[] = {{"create", l_sandbox_create},
                                         {"connect", l_sandbox_connect},
                                         {"detached_create", bl_detached_create},
                                         {"detached_ids", bl_detached_ids},
                                         {"doctor", bl_doctor},
                                         {"network_describe", bl_network_describe},
                                         {"terminal", bl_terminal},
                                         {NULL, NULL}};
    static const luaL_Reg methods[] = {{"exec", bl_sandbox_exec},
                                       {"file", bl_sandbox_file},
                                       {"apply", bl_sandbox_apply},
                                       {"snapshot", bl_sandbox_snapshot},
                                       {"fork", bl_sandbox_fork},
                                       {"upload", bl_sandbox_upload},
                                       {"download", bl_sandbox_download},
                                       {"status", l_sandbox_status},
                                       {"usage", bl_sandbox_usage},
                                       {"spawn", bl_sandbox_spawn},
                                       {"processes", bl_sandbox_processes},
                                       {"pause", bl_sandbox_pause},
                                       {"resume", bl_sandbox_resume},
                                       {"extend", bl_sandbox_extend},
                                       {"terminate", l_sandbox_terminate},
                                       {"close", l_sandbox_close},
                                       {"logs", bl_sandbox_logs},
                                       {"hold", bl_sandbox_hold},
                                       {"network", bl_sandbox_network},
                                       {"network_object", l_sandbox_network_object},
                                       {"set_network", bl_sandbox_set_network},
                                       {"set_secret", bl_sandbox_set_secret},
                                       {NULL, NULL}};
    bl_new_class(L, SANDBOX_META, methods, l_sandbox_close, l_sandbox_tostring);
    bl_open_network(L);
    bl_open_exec(L);
    bl_open_transfer(L);
    bl_open_apply(L);
    bl_open_template(L);
    bl_open_sandbox_ask(L);
    bl_open_process(L);
    bl_open_detached(L);
    bl_open_sandbox_network(L);
    luaL_newlib(L, functions);
    lua_setfield(L, -2, "sandbox");
}
