#include "lib_network.h"

#include <stdlib.h>
#include <string.h>
#include "errors.h"
#include "handle.h"
#include "lib_sandbox.h"
#include "value.h"

#define NETWORK_META "barchan.core.network"

struct bl_news {
    bl_news *next;
    barchan_network_event event; /* kind 0: a question */
    lua_Integer question;
    uint64_t dropped; /* before this one */
    char *host, *rule, *address;
};

/* ---- from the core ---- */

static void free_news(bl_news *news)
{
    if (news == NULL) return;
    free(news->host);
    free(news->rule);
    free(news->address);
    free(news);
}

static bl_news *make_news(const barchan_network_event *event)
{
    bl_news *news = calloc(1, sizeof *news);
    if (news == NULL) return NULL;
    news->event = *event;
    news->host = strdup(event->host);
    news->rule = strdup(event->rule);
    news->address = strdup(event->address);
    if (news->host != NULL && news->rule != NULL && news->address != NULL) return news;
    free_news(news);
    return NULL;
}

static int add_news(bl_network *network, const barchan_network_event *event, lua_Integer question)
{
    bl_news *news = network->count < BL_NETWORK_MAX_NEWS ? make_news(event) : NULL;
    network->dropped += event->dropped;
    if (news == NULL) {
        network->dropped++;
        return -1;
    }
    news->question = question;
    news->dropped = network->dropped;
    network->dropped = 0;
    if (network->last != NULL) network->last->next = news;
    if (network->first == NULL) network->first = news;
    network->last = news;
    network->count++;
    bl_op_ready(&network->op);
    return 0;
}

static void on_event(barchan_sandbox *sbx, const barchan_network_event *event, void *ud)
{
    (void)sbx;
    add_news(ud, event, 0);
}

static void on_connect(barchan_sandbox *sbx, barchan_connect *connect, const char *host, int port,
                       void *ud)
{
    bl_network *network = ud;
    const barchan_network_event event = {.host = host, .port = port, .rule = "", .address = ""};
    struct bl_question *question = calloc(1, sizeof *question);
    (void)sbx;
    if (question == NULL || add_news(network, &event, network->last_id + 1) < 0) {
        free(question);
        barchan_connect_answer(connect, 0);
        return;
    }
    question->connect = connect;
    question->id = ++network->last_id;
    question->next = network->questions;
    network->questions = question;
}

static void answer(bl_network *network, lua_Integer id, int allow)
{
    struct bl_question **link = &network->questions;
    while (*link != NULL && (*link)->id != id) {
        link = &(*link)->next;
    }
    struct bl_question *question = *link;
    if (question == NULL) return;
    *link = question->next;
    barchan_connect_answer(question->connect, allow);
    free(question);
}

static bl_news *take_news(bl_network *network)
{
    bl_news *news = network->first;
    if (news == NULL) return NULL;
    network->first = news->next;
    if (network->first == NULL) network->last = NULL;
    network->count--;
    return news;
}

bl_network *bl_network_push(lua_State *L)
{
    bl_network *network = lua_newuserdatauv(L, sizeof *network, 0);
    memset(network, 0, sizeof *network);
    network->op = (bl_op){.state = bl_state_of(L)};
    luaL_setmetatable(L, NETWORK_META);
    return network;
}

void bl_network_clear(bl_network *network)
{
    network->closed = 1;
    while (network->questions != NULL) {
        answer(network, network->questions->id, 0);
    }
    while (network->first != NULL) {
        free_news(take_news(network));
    }
    bl_op_ready(&network->op); /* who waits for news is told that there is none any more */
}

/* ---- the profile ---- */

static barchan_network read_mode(lua_State *L, const char *word)
{
    static const char *const names[] = {"off", "allow", "restricted", "open"};
    for (size_t i = 0; word != NULL && i < sizeof names / sizeof *names; i++) {
        if (strcmp(word, names[i]) == 0) return (barchan_network)i;
    }
    if (word == NULL) return BARCHAN_NETWORK_OFF;
    bl_misuse(L, "option 'network': \"off\", \"allow\", \"restricted\" or \"open\" expected");
    return BARCHAN_NETWORK_OFF;
}

static uint64_t opt_count(lua_State *L, int index, const char *key)
{
    int64_t value = bl_opt_integer(L, index, key, 0);
    if (value < 0) bl_misuse(L, "option '%s' must not be negative", key);
    return (uint64_t)value;
}

static void read_rules(lua_State *L, int index, barchan_network_rules *rules)
{
    rules->struct_size = sizeof *rules;
    rules->max_bytes = opt_count(L, index, "max_bytes");
    rules->bytes_per_second = opt_count(L, index, "bytes_per_second");
    rules->max_connections = (size_t)opt_count(L, index, "max_connections");
    rules->on_connect = bl_opt_flag(L, index, "ask") ? on_connect : NULL;
    rules->on_event = bl_opt_flag(L, index, "tell") ? on_event : NULL;
    rules->allow = bl_opt_strings(L, index, "allow", 0);
    rules->deny = bl_opt_strings(L, index, "deny", 0);
    rules->hosts = bl_opt_strings(L, index, "hosts", 1);
}

void bl_network_read(lua_State *L, barchan_profile *profile, barchan_network_rules *rules)
{
    profile->network = read_mode(L, bl_opt_string(L, 1, "network", NULL));
    if (profile->network == BARCHAN_NETWORK_OFF) return;
    bl_refuse_safe(L, "option 'network'");
    if (lua_getfield(L, 1, "network_rules") == LUA_TNIL) return;
    luaL_checktype(L, -1, LUA_TTABLE);
    read_rules(L, lua_gettop(L), rules);
    profile->network_rules = rules;
}

int bl_network_describe(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 1);
    barchan_profile profile = {.struct_size = sizeof profile};
    barchan_network_rules rules = {.struct_size = sizeof rules};
    barchan_error err;
    char *json;
    bl_network_read(L, &profile, &rules);
    if (profile.network == BARCHAN_NETWORK_OFF) {
        return bl_misuse(L, "option 'network': \"off\" has no list");
    }
    if (barchan_network_describe(profile.network, &rules, &json, &err) < 0) return bl_fail(L, &err);
    int rc = bl_push_json(L, json, strlen(json), &err);
    barchan_free(json);
    return rc < 0 ? bl_fail(L, &err) : 1;
}

/* sandbox:set_network { network = mode, network_rules = … } */
int bl_sandbox_set_network(lua_State *L)
{
    barchan_sandbox *sbx = bl_check_sandbox(L, 1);
    barchan_profile profile = {.struct_size = sizeof profile};
    barchan_network_rules rules = {.struct_size = sizeof rules};
    barchan_error err;
    luaL_checktype(L, 2, LUA_TTABLE);
    lua_remove(L, 1);
    lua_settop(L, 1);
    bl_network_read(L, &profile, &rules);
    if (barchan_sandbox_set_network(sbx, profile.network, &rules, &err) < 0)
        return bl_fail(L, &err);
    lua_pushboolean(L, 1);
    return 1;
}

/* ---- for scripts ---- */

static void set_integer(lua_State *L, const char *key, uint64_t value)
{
    lua_pushinteger(L, (lua_Integer)value);
    lua_setfield(L, -2, key);
}

static void set_string(lua_State *L, const char *key, const char *value)
{
    lua_pushstring(L, value);
    lua_setfield(L, -2, key);
}

static void push_news(lua_State *L, const bl_news *news)
{
    const barchan_network_event *event = &news->event;
    lua_createtable(L, 0, 8);
    set_string(L, "host", news->host);
    set_integer(L, "port", (uint64_t)event->port);
    if (news->dropped > 0) set_integer(L, "dropped", news->dropped);
    if (news->question > 0) {
        set_integer(L, "question", (uint64_t)news->question);
        return;
    }
    set_string(L, "type", barchan_network_event_name(event->kind));
    set_string(L, "rule", news->rule);
    lua_pushnumber(L, (lua_Number)event->time_ms / 1000);
    lua_setfield(L, -2, "time");
    if (news->address[0] != '\0') set_string(L, "address", news->address);
    set_integer(L, "bytes_sent", event->bytes_sent);
    set_integer(L, "bytes_received", event->bytes_received);
}

/* The news stays first until Lua has had the memory for it. */
static int finish_news(lua_State *L, bl_op *op)
{
    bl_network *network = (bl_network *)op;
    if (network->first == NULL) return 0;
    push_news(L, network->first);
    free_news(take_news(network));
    return 1;
}

static int l_network_news(lua_State *L)
{
    bl_network *network = luaL_checkudata(L, 1, NETWORK_META);
    lua_settop(L, 1);
    network->op.ready = network->first != NULL || network->closed;
    return bl_wait(L, &network->op, finish_news);
}

static int l_network_answer(lua_State *L)
{
    answer(luaL_checkudata(L, 1, NETWORK_META), luaL_checkinteger(L, 2), lua_toboolean(L, 3));
    return 0;
}

void bl_open_network(lua_State *L)
{
    static const luaL_Reg methods[] = {
        {"news", l_network_news}, {"answer", l_network_answer}, {NULL, NULL}};
    luaL_newmetatable(L, NETWORK_META);
    luaL_newlib(L, methods);
    lua_setfield(L, -2, "__index");
    lua_pop(L, 1);
}

static void push_list(lua_State *L, const char *key, const barchan_denied *list, size_t count,
                      uint64_t more)
{
    if (count == 0 && more == 0) return;
    lua_createtable(L, (int)count, 1);
    for (size_t i = 0; i < count; i++) {
        const barchan_denied *denied = &list[i];
        lua_createtable(L, 0, 5);
        set_string(L, "host", denied->host);
        set_integer(L, "port", (uint64_t)denied->port);
        set_string(L, "rule", denied->rule);
        set_integer(L, "tries", denied->tries);
        lua_pushnumber(L, (lua_Number)denied->time_ms / 1000);
        lua_setfield(L, -2, "time");
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    if (more > 0) set_integer(L, "more", more);
    lua_setfield(L, -2, key);
}

void bl_push_denied(lua_State *L, const barchan_exec_result *result)
{
    push_list(L, "denied", result->denied, result->denied_count, result->denied_more);
    push_list(L, "unreached", result->unreached, result->unreached_count, result->unreached_more);
}
