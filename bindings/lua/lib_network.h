/* What a sandbox can reach, for scripts: the rules of its profile, and what happens under them. */
#ifndef BL_LIB_NETWORK_H
#define BL_LIB_NETWORK_H

#include <barchan/exec.h>
#include <barchan/network.h>
#include "scheduler.h"

/* News that nobody has taken; more are dropped, and the next one says how many. */
#define BL_NETWORK_MAX_NEWS 1024

typedef struct bl_news bl_news;

/* A userdata of its own, which the sandbox's handle keeps: whoever waits for news keeps this, and
 * not the sandbox. */
typedef struct bl_network {
    bl_op op;   /* what network:news waits for */
    int closed; /* its sandbox is */
    bl_news *first, *last;
    size_t count;
    uint64_t dropped;
    struct bl_question {
        barchan_connect *connect;
        lua_Integer id;
        struct bl_question *next;
    } * questions; /* that a script has not answered */
    lua_Integer last_id;
} bl_network;

/* Pushes one. */
bl_network *bl_network_push(lua_State *L);
/* The sandbox is destroyed. */
void bl_network_clear(bl_network *network);
/* Reads the options `network` and `network_rules` of the profile at stack index 1; leaves what they
 * need on the stack. The rules' `ud` has to be a bl_network. */
void bl_network_read(lua_State *L, barchan_profile *profile, barchan_network_rules *rules);
/* Adds `denied` and `unreached` to the table at the top, unless there is nothing. */
void bl_push_denied(lua_State *L, const barchan_exec_result *result);

/* Registers its class: network:news() -> event, as a table, nil when the sandbox is closed; waits;
 * network:answer(id, allow). */
void bl_open_network(lua_State *L);
/* network_describe(profile) -> table | nil, err */
int bl_network_describe(lua_State *L);
int bl_sandbox_set_network(lua_State *L);

#endif
