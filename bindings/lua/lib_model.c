/* core.model: create a model, start a completion, read its deltas, take its reply. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <barchan/model.h>
#include "errors.h"
#include "handle.h"
#include "provider/check.h"
#include "scheduler.h"
#include "util.h"
#include "value.h"

#define MODEL_META "barchan.core.model"
#define COMPLETION_META "barchan.core.completion"

/* Text that nobody has read yet is joined, so that a server of one-byte deltas fills no memory. A
 * lone delta has room for most, so that its memory serves the next one too. */
#define JOINED_BYTES ((size_t)65536)
#define LONE_BYTES ((size_t)256)

typedef struct delta {
    struct delta *next;
    barchan_delta_kind kind;
    size_t len, cap;
    char data[];
} delta;

struct completion {
    bl_op op; /* first */
    bl_link *link;
    barchan_completion *core; /* NULL when ended */
    delta *first, *last;
    delta *told; /* the one that was read last: its memory is used again */
    char *reply;
    size_t reply_len;
    barchan_error err;
    int ended, failed;
    int lost; /* there was no memory for a delta */
};

static barchan_model *check_model(lua_State *L, int index)
{
    barchan_model **self = luaL_checkudata(L, index, MODEL_META);
    if (*self == NULL) bl_misuse(L, "the model is closed");
    return *self;
}

/* Which variables belong together is decided here: a script that could pair them itself would send
 * one service's key to another's address. */
static const struct variables {
    const char *provider, *key, *base_url;
} environment[] = {
    {"anthropic", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"},
    {"openai", "OPENAI_API_KEY", "OPENAI_BASE_URL"},
    {"openai-responses", "OPENAI_API_KEY", "OPENAI_BASE_URL"},
    {"gemini", "GEMINI_API_KEY", "GEMINI_BASE_URL"},
};

/* environment() -> list of { provider, key, base_url }: the names of the variables */
static int l_model_environment(lua_State *L)
{
    lua_newtable(L);
    for (size_t i = 0; i < sizeof environment / sizeof *environment; i++) {
        lua_createtable(L, 0, 4);
        lua_pushstring(L, environment[i].provider);
        lua_setfield(L, -2, "provider");
        lua_pushstring(L, environment[i].key);
        lua_setfield(L, -2, "key");
        lua_pushstring(L, environment[i].base_url);
        lua_setfield(L, -2, "base_url");
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    return 1;
}

static const struct variables *variables_of(const char *provider)
{
    for (size_t i = 0; i < sizeof environment / sizeof *environment; i++) {
        if (provider != NULL && strcmp(environment[i].provider, provider) == 0) {
            return &environment[i];
        }
    }
    return NULL;
}

/* The address and the key: given, or with `use_environment` from the variables of the provider. The
 * key's value never passes through Lua. A script that is not the operator's own must not send the
 * operator's key to an address of its choice, nor read files of the host as transcripts. */
static void read_address(lua_State *L, int index, barchan_model_options *options)
{
    bl_state *state = bl_state_of(L);
    const struct variables *known =
        bl_opt_flag(L, index, "use_environment") ? variables_of(options->provider) : NULL;
    options->api_key = bl_opt_string(L, index, "api_key", NULL);
    options->base_url = bl_opt_string(L, index, "base_url", NULL);
    options->replay_path = bl_opt_string(L, index, "replay", NULL);
    int chosen = options->base_url != NULL;
    if (!chosen && known != NULL) options->base_url = bl_getenv(known->base_url, "_BASE_URL");
    if (options->api_key == NULL && known != NULL && !(state->safe && chosen)) {
        options->api_key = bl_getenv(known->key, "_API_KEY");
    }
    /* Of a preset: an operator's own script may pair what it likes. */
    const char *key_variable = bl_opt_string(L, index, "key_variable", NULL);
    if (options->api_key == NULL && key_variable != NULL && !state->safe) {
        options->api_key = bl_getenv(key_variable, "_API_KEY");
    }
    if (options->replay_path != NULL && state->path_allowed != NULL &&
        !state->path_allowed(state, options->replay_path)) {
        bl_misuse(L, "option 'replay': '%s' is outside the script directories",
                  options->replay_path);
    }
    options->record_path = bl_opt_string(L, index, "record", NULL);
    options->recorded_extra = bl_opt_string(L, index, "recorded_extra", NULL);
    if (options->record_path != NULL) bl_refuse_safe(L, "option 'record'");
}

static int l_model_create(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 1);
    barchan_model_options options = {.struct_size = sizeof options};
    options.provider = bl_opt_string(L, 1, "provider", NULL);
    options.name = bl_opt_string(L, 1, "name", NULL);
    read_address(L, 1, &options);
    options.allow_plain_http = bl_opt_flag(L, 1, "allow_plain_http");
    options.max_tokens = bl_opt_integer(L, 1, "max_tokens", 0);
    options.connect_timeout_ms = bl_opt_int_ms(L, 1, "connect_timeout");
    options.idle_timeout_ms = bl_opt_int_ms(L, 1, "idle_timeout");
    options.timeout_ms = bl_opt_ms(L, 1, "timeout", 0);
    int64_t retries = bl_opt_integer(L, 1, "max_retries", 0);
    if (retries < -1 || retries > INT_MAX) bl_misuse(L, "option 'max_retries' is out of range");
    options.max_retries = (int)retries;
    options.max_retry_wait_ms = bl_opt_int_ms(L, 1, "max_retry_wait");
    options.headers = bl_opt_strings(L, 1, "headers", 0);
    barchan_model **self = lua_newuserdatauv(L, sizeof *self, 0);
    *self = NULL;
    luaL_setmetatable(L, MODEL_META);
    barchan_error err;
    if (barchan_model_create(self, bl_state_of(L)->rt, &options, &err) < 0) {
        return bl_fail(L, &err);
    }
    return 1;
}

static int l_model_close(lua_State *L)
{
    barchan_model **self = luaL_checkudata(L, 1, MODEL_META);
    barchan_model *model = *self;
    *self = NULL;
    barchan_model_destroy(model);
    return 0;
}

/* ---- callbacks of the core ---- */

static int joins(const delta *last, barchan_delta_kind kind, size_t len)
{
    int is_text = kind == BARCHAN_DELTA_TEXT || kind == BARCHAN_DELTA_REASONING;
    return last != NULL && is_text && last->kind == kind && len <= last->cap - last->len;
}

/* One for `len` bytes at least. */
static delta *new_delta(struct completion *self, barchan_delta_kind kind, size_t len)
{
    size_t cap = self->last == NULL ? LONE_BYTES : JOINED_BYTES;
    if (cap < len || kind == BARCHAN_DELTA_TOOL_CALL) cap = len;
    delta *item = self->told;
    if (item != NULL && self->last == NULL && item->cap >= cap) {
        self->told = NULL;
        cap = item->cap;
    } else {
        item = malloc(sizeof *item + cap);
    }
    if (item != NULL) *item = (delta){.kind = kind, .cap = cap};
    return item;
}

static int keep_delta(struct completion *self, barchan_delta_kind kind, const char *data,
                      size_t len)
{
    delta *last = self->last;
    if (!joins(last, kind, len)) {
        delta *item = new_delta(self, kind, len);
        if (item == NULL) return -1;
        if (last != NULL)
            last->next = item;
        else
            self->first = item;
        self->last = last = item;
    }
    memcpy(last->data + last->len, data, len);
    last->len += len;
    return 0;
}

static void on_delta(barchan_delta_kind kind, const char *data, size_t len, void *ud)
{
    struct completion *self = ((bl_link *)ud)->owner;
    if (self == NULL || self->lost) return;
    if (keep_delta(self, kind, data, len) < 0) {
        self->lost = 1;
        if (self->core != NULL) barchan_completion_cancel(self->core);
    }
    bl_op_ready(&self->op);
}

static void on_complete(const char *reply, size_t len, const barchan_error *err, void *ud)
{
    bl_link *link = ud;
    struct completion *self = link->owner;
    free(link);
    if (self == NULL) return;
    self->link = NULL;
    self->core = NULL;
    self->ended = 1;
    if (self->lost) {
        self->failed = 1;
        bc_error_nomem(&self->err);
    } else if (err == NULL) {
        self->reply = malloc(len + 1);
        if (self->reply != NULL) {
            memcpy(self->reply, reply, len);
            self->reply[len] = '\0';
            self->reply_len = len;
        } else {
            self->failed = 1;
            bc_error_nomem(&self->err);
        }
    } else {
        self->failed = 1;
        self->err = *err;
    }
    bl_op_ready(&self->op);
    bl_op_unref(&self->op);
}

static void cancel_completion(bl_op *op)
{
    struct completion *self = (struct completion *)op;
    if (self->core != NULL) barchan_completion_cancel(self->core);
}

/* model:start(request, want_deltas) -> completion | nil, err */
static int l_model_start(lua_State *L)
{
    barchan_model *model = check_model(L, 1);
    luaL_checktype(L, 2, LUA_TTABLE);
    int want_deltas = lua_toboolean(L, 3);
    lua_settop(L, 2);
    const bc_buf *request = bl_encode_bytes(L, 2);
    struct completion *self = lua_newuserdatauv(L, sizeof *self, 1);
    memset(self, 0, sizeof *self);
    luaL_setmetatable(L, COMPLETION_META);
    lua_pushvalue(L, 1);
    lua_setiuservalue(L, 4, 1); /* the completion keeps the model's handle */
    self->link = bl_link_new(L, self);
    bl_op_init(L, 4, &self->op, cancel_completion);
    barchan_complete_options options = {
        .struct_size = sizeof options, .on_delta = want_deltas ? on_delta : NULL, .ud = self->link};
    barchan_error err;
    int rc = barchan_model_complete_start(&self->core, model, bc_buf_data(request), request->len,
                                          &options, on_complete, self->link, &err);
    bl_encoded_clear(L, 3);
    if (rc < 0) {
        bl_op_unref(&self->op);
        return bl_fail(L, &err);
    }
    bl_link_given(self->link);
    return 1;
}

/* ---- the completion handle ---- */

static struct completion *check_completion(lua_State *L, int index)
{
    return luaL_checkudata(L, index, COMPLETION_META);
}

static const char *kind_name(barchan_delta_kind kind)
{
    switch (kind) {
    case BARCHAN_DELTA_TEXT: return "text";
    case BARCHAN_DELTA_REASONING: return "reasoning";
    case BARCHAN_DELTA_TOOL_CALL: return "tool_call";
    case BARCHAN_DELTA_RETRY: return "retry";
    default: return "restart";
    }
}

static int finish_piece(lua_State *L, bl_op *op)
{
    struct completion *self = (struct completion *)op;
    delta *item = self->first;
    if (item == NULL) {
        lua_pushnil(L);
        return 1;
    }
    barchan_delta_kind kind = item->kind;
    self->first = item->next;
    if (self->first == NULL) self->last = NULL;
    op->ready = self->first != NULL || self->ended;
    free(self->told);
    self->told = item;
    /* Copied before anything else runs: a finalizer may read the next one, which frees this. */
    lua_pushlstring(L, item->data, item->len);
    lua_pushstring(L, kind_name(kind));
    lua_insert(L, -2);
    return 2;
}

static int l_next_piece(lua_State *L)
{
    struct completion *self = lua_touserdata(L, lua_upvalueindex(1));
    lua_settop(L, 0);
    self->op.ready = self->first != NULL || self->ended;
    return bl_wait(L, &self->op, finish_piece);
}

/* for kind, data in completion:pieces(): until the reply is there or the completion failed */
static int l_completion_pieces(lua_State *L)
{
    check_completion(L, 1);
    lua_settop(L, 1);
    lua_pushcclosure(L, l_next_piece, 1);
    return 1;
}

/* completion:result() -> reply | nil, err; after the last piece */
static int l_completion_result(lua_State *L)
{
    struct completion *self = check_completion(L, 1);
    if (!self->ended) return luaL_error(L, "the completion has not ended");
    if (self->failed) return bl_fail(L, &self->err);
    barchan_error err;
    if (bl_push_json(L, self->reply, self->reply_len, &err) < 0) return bl_fail(L, &err);
    return 1;
}

static int l_completion_cancel(lua_State *L)
{
    cancel_completion(&check_completion(L, 1)->op);
    return 0;
}

static int l_completion_gc(lua_State *L)
{
    struct completion *self = check_completion(L, 1);
    bl_link_drop(&self->link); /* the core still calls back once */
    bl_op_unref(&self->op);
    if (self->core != NULL) barchan_completion_cancel(self->core);
    self->core = NULL;
    while (self->first != NULL) {
        delta *next = self->first->next;
        free(self->first);
        self->first = next;
    }
    self->last = NULL;
    free(self->told);
    self->told = NULL;
    free(self->reply);
    self->reply = NULL;
    if (!self->ended) {
        self->ended = self->failed = 1;
        bc_error_set(&self->err, BARCHAN_ECLOSED, "the completion is closed");
    }
    bl_op_ready(&self->op);
    bl_op_detach(&self->op);
    return 0;
}

/* render_tools(format, tools) -> value | nil, err */
static int l_render_tools(lua_State *L)
{
    const char *format = bl_check_text(L, 1);
    luaL_checktype(L, 2, LUA_TTABLE);
    lua_settop(L, 2);
    bl_encode_json(L, 2);
    size_t len;
    const char *tools = lua_tolstring(L, 3, &len);
    char *json = NULL;
    barchan_error err;
    if (barchan_tools_render(format, tools, len, &json, &err) < 0) return bl_fail(L, &err);
    bl_push_pair(L, "", json, strlen(json), json);
    return 1;
}

/* check(request) -> a copy of it | nil, err; what a model over HTTP would find before it sends one
 */
static int l_model_check(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 1);
    const bc_buf *request = bl_encode_bytes(L, 1);
    barchan_error err;
    int rc = bc_request_check(bc_buf_data(request), request->len, &err);
    if (rc == 0) rc = bl_push_json(L, bc_buf_data(request), request->len, &err);
    bl_encoded_clear(L, 2);
    return rc < 0 ? bl_fail(L, &err) : 1;
}

void bl_open_model(lua_State *L)
{
    static const luaL_Reg functions[] = {{"create", l_model_create},
                                         {"environment", l_model_environment},
                                         {"check", l_model_check},
                                         {"render_tools", l_render_tools},
                                         {NULL, NULL}};
    static const luaL_Reg methods[] = {
        {"start", l_model_start}, {"close", l_model_close}, {NULL, NULL}};
    static const luaL_Reg completion_methods[] = {{"pieces", l_completion_pieces},
                                                  {"result", l_completion_result},
                                                  {"cancel", l_completion_cancel},
                                                  {NULL, NULL}};
    bl_new_class(L, MODEL_META, methods, l_model_close, NULL);
    bl_new_class(L, COMPLETION_META, completion_methods, l_completion_gc, NULL);
    luaL_newlib(L, functions);
    lua_setfield(L, -2, "model");
}
