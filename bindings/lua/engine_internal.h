/* The engine's own struct, for engine.c, engine_call.c and engine_tools.c. */
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

#endif
