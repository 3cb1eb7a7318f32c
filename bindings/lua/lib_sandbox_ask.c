/* What is asked of sandboxes: usage, pause, resume, more lease; and what this machine can do. */
#include "lib_sandbox.h"

#include <string.h>
#include "errors.h"
#include "value.h"

/* ---- usage ---- */

#define USAGE_META "barchan.core.usage"

struct usage {
    bl_call call; /* first */
    int failed;
    barchan_usage usage;
    barchan_error err;
};

static void on_usage(const barchan_usage *usage, const barchan_error *err, void *ud)
{
    bl_link *link = ud;
    struct usage *self = link->owner;
    free(link);
    if (self == NULL) return;
    self->call.link = NULL;
    self->failed = err != NULL;
    if (err != NULL) self->err = *err;
    if (usage != NULL) self->usage = *usage;
    bl_op_ready(&self->call.op);
}

static void cancel_usage(bl_op *op)
{
    bl_link_drop(&((struct usage *)op)->call.link);
    bl_op_unref(op);
}

static int finish_usage(lua_State *L, bl_op *op)
{
    struct usage *self = (struct usage *)op;
    bl_op_unref(op);
    if (self->failed) return bl_fail(L, &self->err);
    const barchan_usage *u = &self->usage;
    const struct {
        const char *name;
        lua_Number value;
    } numbers[] = {
        {"wall", (lua_Number)u->wall_us / 1e6},
        {"user", (lua_Number)u->user_us / 1e6},
        {"system", (lua_Number)u->system_us / 1e6},
        {"cpu", (lua_Number)(u->user_us + u->system_us) / 1e6},
        {"memory_byte_seconds", u->memory_byte_seconds},
    };
    const struct {
        const char *name;
        uint64_t value;
    } integers[] = {
        {"memory", u->memory_bytes}, {"memory_peak", u->memory_peak_bytes}, {"disk", u->disk_bytes},
        {"bytes_in", u->bytes_in},   {"bytes_out", u->bytes_out},           {"execs", u->execs},
    };
    lua_createtable(L, 0, 13);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        lua_pushnumber(L, numbers[i].value);
        lua_setfield(L, -2, numbers[i].name);
    }
    for (size_t i = 0; i < sizeof integers / sizeof *integers; i++) {
        lua_pushinteger(L, (lua_Integer)integers[i].value);
        lua_setfield(L, -2, integers[i].name);
    }
    lua_pushboolean(L, u->cpu_counted);
    lua_setfield(L, -2, "cpu_counted");
    lua_pushboolean(L, u->memory_counted);
    lua_setfield(L, -2, "memory_counted");
    return 1;
}

static int l_usage_gc(lua_State *L)
{
    struct usage *self = luaL_checkudata(L, 1, USAGE_META);
    bl_op_detach(&self->call.op);
    bl_link_drop(&self->call.link);
    return 0;
}

int bl_sandbox_usage(lua_State *L)
{
    barchan_sandbox *sbx = bl_check_sandbox(L, 1);
    lua_settop(L, 1);
    struct usage *self = bl_call_new(L, sizeof *self, USAGE_META, cancel_usage);
    barchan_error err;
    if (barchan_sandbox_usage_start(sbx, on_usage, self->call.link, &err) < 0) {
        return bl_call_failed(L, &self->call, &err);
    }
    bl_link_given(self->call.link);
    return bl_wait(L, &self->call.op, finish_usage);
}

/* ---- pause and resume ---- */

#define PAUSE_META "barchan.core.pause"

struct pause {
    bl_call call; /* first */
    int failed;
    barchan_error err;
};

static void on_paused(const barchan_error *err, void *ud)
{
    bl_link *link = ud;
    struct pause *self = link->owner;
    free(link);
    if (self == NULL) return;
    self->call.link = NULL;
    self->failed = err != NULL;
    if (err != NULL) self->err = *err;
    bl_op_ready(&self->call.op);
}

static void cancel_pause(bl_op *op)
{
    bl_link_drop(&((struct pause *)op)->call.link);
    bl_op_unref(op);
}

static int finish_pause(lua_State *L, bl_op *op)
{
    struct pause *self = (struct pause *)op;
    bl_op_unref(op);
    if (self->failed) return bl_fail(L, &self->err);
    lua_pushboolean(L, 1);
    return 1;
}

static int l_pause_gc(lua_State *L)
{
    struct pause *self = luaL_checkudata(L, 1, PAUSE_META);
    bl_op_detach(&self->call.op);
    bl_link_drop(&self->call.link);
    return 0;
}

static int pause_or_resume(lua_State *L, int (*start)(barchan_sandbox *, barchan_sandbox_done_fn,
                                                      void *, barchan_error *))
{
    barchan_sandbox *sbx = bl_check_sandbox(L, 1);
    lua_settop(L, 1);
    struct pause *self = bl_call_new(L, sizeof *self, PAUSE_META, cancel_pause);
    barchan_error err;
    if (start(sbx, on_paused, self->call.link, &err) < 0) {
        return bl_call_failed(L, &self->call, &err);
    }
    bl_link_given(self->call.link);
    return bl_wait(L, &self->call.op, finish_pause);
}

int bl_sandbox_pause(lua_State *L)
{
    return pause_or_resume(L, barchan_sandbox_pause_start);
}

int bl_sandbox_resume(lua_State *L)
{
    return pause_or_resume(L, barchan_sandbox_resume_start);
}

int bl_sandbox_extend(lua_State *L)
{
    barchan_sandbox *sbx = bl_check_sandbox(L, 1);
    lua_Number seconds = luaL_checknumber(L, 2);
    luaL_argcheck(L, seconds > 0 && seconds <= 1e9, 2,
                  "a number of seconds greater than 0 expected");
    barchan_error err;
    if (barchan_sandbox_extend(sbx, (int64_t)(seconds * 1000 + 0.5), &err) < 0) {
        return bl_fail(L, &err);
    }
    lua_pushboolean(L, 1);
    return 1;
}

/* ---- doctor ---- */

#define DOCTOR_META "barchan.core.doctor"

struct doctor {
    bl_call call; /* first */
    char *json;
    barchan_error err;
};

static void on_report(const char *json, const barchan_error *err, void *ud)
{
    bl_link *link = ud;
    struct doctor *self = link->owner;
    free(link);
    if (self == NULL) return;
    self->call.link = NULL;
    if (json != NULL) self->json = strdup(json);
    if (err != NULL)
        self->err = *err;
    else if (self->json == NULL)
        bc_error_nomem(&self->err);
    bl_op_ready(&self->call.op);
}

static void forget_report(struct doctor *self)
{
    bl_link_drop(&self->call.link);
    free(self->json);
    self->json = NULL;
}

static void cancel_doctor(bl_op *op)
{
    forget_report((struct doctor *)op);
    bl_op_unref(op);
}

static int finish_doctor(lua_State *L, bl_op *op)
{
    struct doctor *self = (struct doctor *)op;
    bl_op_unref(op);
    if (self->json == NULL) return bl_fail(L, &self->err);
    if (bl_push_json(L, self->json, strlen(self->json), &self->err) < 0) {
        return bl_fail(L, &self->err);
    }
    return 1;
}

static int l_doctor_gc(lua_State *L)
{
    struct doctor *self = luaL_checkudata(L, 1, DOCTOR_META);
    bl_op_detach(&self->call.op);
    forget_report(self);
    return 0;
}

/* doctor() -> list of { name, state, detail, remedy } | nil, err */
int bl_doctor(lua_State *L)
{
    lua_settop(L, 0);
    struct doctor *self = bl_call_new(L, sizeof *self, DOCTOR_META, cancel_doctor);
    barchan_error err;
    if (barchan_doctor_start(self->call.op.state->rt, on_report, self->call.link, &err) < 0) {
        return bl_call_failed(L, &self->call, &err);
    }
    bl_link_given(self->call.link);
    return bl_wait(L, &self->call.op, finish_doctor);
}

void bl_open_sandbox_ask(lua_State *L)
{
    static const luaL_Reg none[] = {{NULL, NULL}};
    bl_new_class(L, USAGE_META, none, l_usage_gc, NULL);
    bl_new_class(L, PAUSE_META, none, l_pause_gc, NULL);
    bl_new_class(L, DOCTOR_META, none, l_doctor_gc, NULL);
}
