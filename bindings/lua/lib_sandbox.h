/* What the files of the sandbox binding share. */
#ifndef BL_LIB_SANDBOX_H
#define BL_LIB_SANDBOX_H

#include <stdlib.h>
#include <barchan/sandbox.h>
#include "scheduler.h"

/* The sandbox of the handle at index; throws when it is closed or something else. */
barchan_sandbox *bl_check_sandbox(lua_State *L, int index);

int bl_sandbox_exec(lua_State *L); /* sandbox:exec(options) -> exec handle | nil, err */
int bl_sandbox_file(lua_State *L); /* sandbox:file(request) -> result | nil, err */
void bl_open_exec(lua_State *L);   /* registers the exec handle's class */

#endif
