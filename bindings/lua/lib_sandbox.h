/* What the files of the sandbox binding share. */
#ifndef BL_LIB_SANDBOX_H
#define BL_LIB_SANDBOX_H

#include <stdlib.h>
#include <barchan/exec.h>
#include <barchan/files.h>
#include "handle.h"
#include "scheduler.h"

/* The beginning of every userdata that the core calls back: what is waited for, and the link that
 * the core holds. */
typedef struct bl_call {
    bl_op op; /* first */
    bl_link *link;
} bl_call;

/* Pushes a zeroed userdata of this class that begins with a bl_call, kept alive until
 * bl_op_unref. Give its link to the core, then say so with bl_link_given; or: */
void *bl_call_new(lua_State *L, size_t size, const char *meta, void (*cancel)(bl_op *op));
/* The core refused: returns nil, err. */
int bl_call_failed(lua_State *L, bl_call *call, const barchan_error *err);

/* The sandbox of the handle at index; throws when it is closed or something else. */
barchan_sandbox *bl_check_sandbox(lua_State *L, int index);

int bl_sandbox_exec(lua_State *L);  /* sandbox:exec(options) -> exec handle | nil, err */
int bl_sandbox_usage(lua_State *L); /* sandbox:usage() -> table | nil, err */
int bl_sandbox_pause(lua_State *L); /* sandbox:pause() -> true | nil, err */
int bl_sandbox_resume(lua_State *L);
int bl_sandbox_extend(lua_State *L);    /* sandbox:extend(seconds) -> true | nil, err */
int bl_sandbox_spawn(lua_State *L);     /* sandbox:spawn(options) -> process handle | nil, err */
int bl_sandbox_processes(lua_State *L); /* sandbox:processes() -> list, total | nil, err */
int bl_terminal(lua_State *L);
/* lib_exec.c: what execs and processes share. */
void bl_exec_options(lua_State *L, int index, barchan_exec_options *options);
void bl_push_exec_result(lua_State *L, const barchan_exec_result *result);
int bl_doctor(lua_State *L); /* doctor() -> list of { name, state, detail, remedy } | nil, err */
int bl_sandbox_file(lua_State *L); /* sandbox:file(request) -> result | nil, err */
/* sandbox:upload(request) or :download(request) -> transfer handle | nil, err */
int bl_sandbox_upload(lua_State *L);
int bl_sandbox_download(lua_State *L);
int bl_sandbox_apply(lua_State *L); /* sandbox:apply(options) -> result | nil, err */
/* lib_template.c */
int bl_sandbox_snapshot(lua_State *L); /* sandbox:snapshot(options) -> template | nil, err */
int bl_sandbox_fork(lua_State *L);     /* sandbox:fork(count, seconds) -> handles | nil, err */
void bl_open_template(lua_State *L);
/* lib_sandbox.c: a handle that is closed, and giving the one on top a sandbox; never throws. */
void bl_sandbox_push_closed(lua_State *L);
void bl_sandbox_adopt(lua_State *L, barchan_sandbox *sbx);
/* lib_files.c: words for scripts. */
const char *bl_file_type_name(barchan_file_type type);
const char *bl_change_name(barchan_file_change change);
void bl_open_transfer(lua_State *L);
void bl_open_apply(lua_State *L);
void bl_open_exec(lua_State *L); /* registers the exec handle's class */

/* lib_sandbox_network.c */
/* sandbox:network() -> { { host, connections, … }, … }, how many are open | nil, err */
int bl_sandbox_network(lua_State *L);
void bl_open_sandbox_network(lua_State *L);

/* lib_detached.c */
void bl_check_detached(lua_State *L); /* throws in engines that may not have them */
/* detached_create(profile as JSON, seconds) -> id, claim | nil, err; who closes the claim without
 * claim:keep() ends the sandbox */
int bl_detached_create(lua_State *L);
int bl_detached_ids(lua_State *L); /* detached_ids() -> ids, how many stale ones went | nil, err */
int bl_sandbox_logs(
    lua_State *L); /* sandbox:logs(cursor, follow) -> entries, next, dropped | nil, err */
int bl_sandbox_hold(lua_State *L); /* sandbox:hold() -> hold | nil, err */
void bl_open_detached(lua_State *L);

void bl_open_sandbox_ask(lua_State *L);
void bl_open_process(lua_State *L);

#endif
