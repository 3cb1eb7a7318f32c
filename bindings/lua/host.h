/* What an engine gives its scripts: output, events, arguments, the host's tools. Kept by the
 * engine, used by lib_host.c. */
#ifndef BL_HOST_H
#define BL_HOST_H

#include <barchan/engine.h>
#include "scheduler.h"

typedef struct bl_host_tool {
    struct bl_host_tool *next;
    char *name, *description, *parameters;
    barchan_tool_fn call;
    void *ud;
} bl_host_tool;

/* One call of a host tool that has not been answered: an operation of the script's. */
typedef struct bl_host_call {
    bl_op op; /* first */
    struct bl_host_call *next, *prev;
    uint64_t id;
    char *text;
    size_t len;
    int is_error;
} bl_host_call;

typedef struct bl_text bl_text; /* engine_scripts.c */

struct bl_host {
    barchan_event_fn on_event;
    barchan_print_fn on_print;
    barchan_log_fn on_log;
    void *ud;
    bl_host_tool *tools;
    bl_host_call *calls; /* newest first */
    uint64_t last_id;
    int functions_ref; /* the table that the last loaded script returned; LUA_NOREF: none */
    char *script_path; /* of that script, or its name among the texts; NULL: none of either */
    bl_text *texts;    /* scripts that the host gave as texts */
};

/* Logs a text line by line: to the engine's on_log, or the runtime's. */
void bl_log(const bl_state *state, barchan_log_level level, const char *text);
void bl_host_call_unlink(bl_host *host, bl_host_call *call);
/* print of an engine: to on_print, or to the runtime's log. */
int bl_host_print(lua_State *L);

#endif
