/*
 * Where Lua code comes from: the scripts embedded at build time (or the directory that
 * BARCHAN_SCRIPTS names, to work on them without a build), and the directories that the host
 * configured. Text only, everywhere.
 */
#ifndef BL_LOADER_H
#define BL_LOADER_H

#include <lua.h>
#include <stddef.h>

typedef struct bl_script {
    const char *path; /* "barchan/agent.lua" */
    const char *data;
    const char *end;
} bl_script;

/* Made by the build (bindings/cmake/EmbedScripts.cmake); sorted by path, ended by a NULL path. */
extern const bl_script bl_scripts[];

/* Pushes the compiled chunk of an embedded script, or throws. */
void bl_load_script(lua_State *L, const char *path);
/* Whether code of this file name is the library's, but for its commands, who call like others. */
int bl_is_own_script(const char *filename);
/* Fills package.preload with the embedded modules: each is called with its name and the table of
 * primitives. `package_index` is the package table's. */
void bl_preload_modules(lua_State *L, int package_index);
/* Replaces package.searchers by preload and a text-only search of package.path. */
void bl_set_searchers(lua_State *L, int package_index);
/* loadfile in text mode, of at most BL_SCRIPT_MAX_BYTES, that understands a byte order mark and a
 * first line "#!": pushes the chunk or a message. */
int bl_load_file(lua_State *L, const char *filename);
/* The same for a script of the host's: a text that it gave under this name, or a regular file. */
int bl_load_host_script(lua_State *L, const char *name);
/* core.scripts: what the embedded scripts load code with. */
void bl_open_scripts(lua_State *L);

#endif
