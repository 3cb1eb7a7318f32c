/* The engine's own struct, for the engine_*.c. */
#ifndef BL_ENGINE_INTERNAL_H
#define BL_ENGINE_INTERNAL_H

#include "host.h"

typedef struct engine_call engine_call;

struct barchan_engine {
    barchan_runtime *rt;
    lua_State *L;
    bl_state *state;
    bl_host host;
    size_t used_bytes, limit_bytes; /* limit 0: none */
    size_t large_bytes;             /* of used_bytes, in blocks of BL_LARGE_BYTES and more */
    barchan_alloc_fn alloc;
    void *ud;              /* of the host's functions */
    int64_t call_limit_ms; /* 0: none */
    char **script_dirs;
    engine_call *calls; /* that have not ended */
    bc_resident resident;
};

/* Checks the handle and that the runtime may be used here. */
int bl_engine_check(const barchan_engine *engine, barchan_error *err);
/* Runs fn(L) protected, with `ud` as its only argument; turns what it throws into err. */
int bl_engine_protect(barchan_engine *engine, lua_CFunction fn, void *ud, barchan_error *err);
/* Ends calls that are left, with BARCHAN_ECANCELLED. */
void bl_engine_end_calls(barchan_engine *engine);
void bl_host_clear(bl_host *host);
/* Runs a script (the text, or the file of this name) as a task, waiting, and keeps what it returns.
 */
int bl_engine_load(barchan_engine *engine, const char *name, const char *text, size_t len,
                   barchan_error *err);
/* barchan_engine_call, for another operation. */
int bl_engine_call(barchan_engine *engine, const char *function, const char *args,
                   barchan_cancel *cancel, char **result, barchan_error *err);
/* engine_scripts.c */
int bl_engine_scripts_open(barchan_engine *engine, const barchan_engine_options *options,
                           barchan_error *err);
void bl_engine_scripts_close(barchan_engine *engine);
int bl_engine_path_allowed(const bl_state *state, const char *path);
const char *bl_engine_text(const bl_state *state, const char *name, size_t *len);

#endif
