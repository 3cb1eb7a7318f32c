#include "loader.h"

#include <lauxlib.h>
#include <stdlib.h>
#include <string.h>
#include <errno.h>
#include <stdio.h>
#include "bounds.h"
#include "call.h"
#include "errors.h"
#include "handle.h"
#include "runtime/host_file.h"
#include "runtime/script_dir.h"
#include "state.h"

static const bl_script *find_script(const char *path)
{
    for (const bl_script *script = bl_scripts; script->path != NULL; script++) {
        if (strcmp(script->path, path) == 0) return script;
    }
    return NULL;
}

int bl_is_own_script(const char *filename)
{
    const char *dir = secure_getenv("BARCHAN_SCRIPTS");
    size_t len = dir != NULL ? strlen(dir) : 0;
    if (len > 0 && strncmp(filename, dir, len) == 0 && filename[len] == '/') filename += len + 1;
    return strncmp(filename, "barchan/", 8) == 0 && strncmp(filename, "barchan/cli/", 12) != 0 &&
           find_script(filename) != NULL;
}

/* What a file holds, at most `max` bytes and one more; NULL, with errno set. */
static char *read_file(const char *filename, size_t max, size_t *len)
{
    FILE *file = fopen(filename, "re");
    if (file == NULL) return NULL;
    size_t size = 4096, used = 0;
    char *text = malloc(size);
    while (text != NULL) {
        used += fread(text + used, 1, size - used, file);
        if (used < size || used > max) break;
        char *more = realloc(text, size *= 2);
        if (more == NULL) free(text);
        text = more;
    }
    int os_error = text == NULL ? ENOMEM : ferror(file) ? errno : 0;
    fclose(file);
    if (os_error != 0) {
        free(text);
        text = NULL;
    }
    errno = os_error;
    *len = used;
    return text;
}

/* The text without a byte order mark and a first line "#!"; its newline stays, so lines keep their
 * numbers. */
static const char *skip_heading(const char *text, size_t *len)
{
    const char *end = text + *len;
    if (*len >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0) text += 3;
    if (text < end && *text == '#') {
        while (text < end && *text != '\n')
            text++;
    }
    *len = (size_t)(end - text);
    return text;
}

int bl_load_file(lua_State *L, const char *filename)
{
    size_t len;
    const char *chunk_name = lua_pushfstring(L, "@%s", filename);
    char *text = read_file(filename, BL_SCRIPT_MAX_BYTES, &len);
    int status = LUA_ERRFILE;
    if (text == NULL) {
        lua_pushfstring(L, "cannot read %s: %s", filename, strerror(errno));
    } else if (len > BL_SCRIPT_MAX_BYTES) {
        free(text);
        lua_pushfstring(L, "%s is larger than %d KiB", filename, (int)(BL_SCRIPT_MAX_BYTES >> 10));
    } else {
        const char *code = skip_heading(text, &len);
        status = luaL_loadbufferx(L, code, len, chunk_name, "t"); /* it does not throw */
        free(text);
    }
    lua_remove(L, -2);
    return status;
}

int bl_load_host_script(lua_State *L, const char *name)
{
    const bl_state *state = bl_state_of(L);
    size_t len;
    const char *text = state->host_text != NULL ? state->host_text(state, name, &len) : NULL;
    if (text != NULL) {
        const char *code = skip_heading(text, &len);
        int status = luaL_loadbufferx(L, code, len, lua_pushfstring(L, "@%s", name), "t");
        lua_remove(L, -2);
        return status;
    }
    barchan_error err;
    if (bc_host_file_check(name, &err) == 0) return bl_load_file(L, name);
    bl_push_error(L, &err);
    return LUA_ERRFILE;
}

/* Compiles the override of a script: 1 when there is one (the chunk is pushed), else 0. */
static int load_override(lua_State *L, const char *path)
{
    const char *dir = bl_state_of(L)->safe ? NULL : secure_getenv("BARCHAN_SCRIPTS");
    if (dir == NULL || dir[0] == '\0') return 0;
    const char *filename = lua_pushfstring(L, "%s/%s", dir, path);
    barchan_error err;
    int rc = bc_host_file_check(filename, &err);
    if (rc == BARCHAN_ENOTFOUND) {
        if (bc_host_file_check(dir, &err) != BARCHAN_ENOTREG) {
            luaL_error(L, "BARCHAN_SCRIPTS: '%s' is no directory", dir);
        }
        lua_pop(L, 1);
        return 0; /* the embedded one */
    }
    if (rc < 0) luaL_error(L, "BARCHAN_SCRIPTS: %s", err.message);
    if (bl_load_file(L, filename) != LUA_OK) lua_error(L);
    lua_remove(L, -2);
    return 1;
}

void bl_load_script(lua_State *L, const char *path)
{
    if (load_override(L, path)) return;
    const bl_script *script = find_script(path);
    if (script == NULL) luaL_error(L, "there is no embedded script '%s'", path);
    const char *name = lua_pushfstring(L, "@%s", path);
    size_t len = (size_t)(script->end - script->data);
    if (luaL_loadbufferx(L, script->data, len, name, "t") != LUA_OK) lua_error(L);
    lua_remove(L, -2);
}

/* The loader in package.preload: the chunk gets its name and the primitives. */
static int l_preloaded(lua_State *L)
{
    lua_settop(L, 1);
    bl_load_script(L, lua_tostring(L, lua_upvalueindex(1)));
    lua_insert(L, 1);
    bl_push_core(L);
    lua_call(L, 2, 1);
    return 1;
}

/* Pushes the module name of "barchan/cli/init.lua": "barchan.cli". */
static void push_module_name(lua_State *L, const char *path)
{
    size_t len = strlen(path) - strlen(".lua");
    if (len > 5 && strncmp(path + len - 5, "/init", 5) == 0) len -= 5;
    lua_pushlstring(L, path, len);
    luaL_gsub(L, lua_tostring(L, -1), "/", ".");
    lua_remove(L, -2);
}

void bl_preload_modules(lua_State *L, int package_index)
{
    int safe = bl_state_of(L)->safe; /* the program's commands are the operator's */
    lua_getfield(L, package_index, "preload");
    for (const bl_script *script = bl_scripts; script->path != NULL; script++) {
        if (strncmp(script->path, "barchan/", 8) != 0) continue;
        if (safe && strncmp(script->path, "barchan/cli/", 12) == 0) continue;
        push_module_name(L, script->path);
        lua_pushstring(L, script->path);
        lua_pushcclosure(L, l_preloaded, 1);
        lua_rawset(L, -3);
    }
    lua_pop(L, 1);
}

static int is_module_name(const char *name, size_t len)
{
    if (len == 0 || len > 200 || strlen(name) != len || strstr(name, "..") != NULL) return 0;
    return strpbrk(name, "/\\%?;") == NULL && name[0] != '.' && name[len - 1] != '.';
}

static const char file_modules_key; /* in the registry: names of modules that came from files */

static void push_file_modules(lua_State *L)
{
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &file_modules_key) == LUA_TTABLE) return;
    lua_pop(L, 1);
    lua_newtable(L);
    lua_pushvalue(L, -1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &file_modules_key);
}

/* Notes that a module came from a script that may change, and returns its loader and its place: the
 * name of the script and its chunk are at the top. */
static int found_module(lua_State *L, const char *name)
{
    push_file_modules(L);
    lua_pushboolean(L, 1);
    lua_setfield(L, -2, name);
    lua_pop(L, 1);
    lua_insert(L, -2);
    return 2;
}

/* Whether the host gave the module as text: then its name and its chunk are pushed. */
static int load_text_module(lua_State *L, const char *name)
{
    const bl_state *state = bl_state_of(L);
    static const char *const endings[] = {".lua", "/init.lua"};
    size_t len;
    if (state->host_text == NULL) return 0;
    const char *base = luaL_gsub(L, name, ".", "/");
    for (int i = 0; i < 2; i++) {
        const char *path = lua_pushfstring(L, "%s%s", base, endings[i]);
        if (state->host_text(state, path, &len) != NULL) {
            if (bl_load_host_script(L, path) != LUA_OK) lua_error(L);
            lua_remove(L, -3);
            return 1;
        }
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
    return 0;
}

/* A searcher over the host's texts and package.path. Upvalue 1: the package table, 2:
 * package.searchpath. */
static int l_search_path(lua_State *L)
{
    size_t len;
    const char *name = luaL_checklstring(L, 1, &len);
    if (!is_module_name(name, len)) {
        lua_pushliteral(L, "not a module name: letters, digits, _ and single dots are");
        return 1;
    }
    if (load_text_module(L, name)) return found_module(L, name);
    lua_pushvalue(L, lua_upvalueindex(2));
    lua_pushvalue(L, 1);
    lua_getfield(L, lua_upvalueindex(1), "path");
    if (!lua_isstring(L, -1)) return luaL_error(L, "'package.path' must be a string");
    lua_call(L, 2, 2);
    if (lua_isnil(L, -2)) return 1; /* where it looked */
    lua_pop(L, 1);
    const char *filename = lua_tostring(L, -1);
    if (bl_load_host_script(L, filename) != LUA_OK) return lua_error(L);
    return found_module(L, name);
}

void bl_set_searchers(lua_State *L, int package_index)
{
    lua_getfield(L, package_index, "searchers");
    lua_newtable(L);
    lua_rawgeti(L, -2, 1); /* Lua's own, for package.preload */
    lua_rawseti(L, -2, 1);
    lua_pushvalue(L, package_index);
    lua_getfield(L, package_index, "searchpath");
    lua_pushcclosure(L, l_search_path, 2);
    lua_rawseti(L, -2, 2);
    /* In place: require holds on to this table's owner, and scripts may hold the table. */
    for (int i = 1; i <= 4; i++) {
        lua_rawgeti(L, -1, i);
        lua_rawseti(L, -3, i);
    }
    lua_pop(L, 2);
}

/* load(path) -> the chunk of an embedded script */
static int l_scripts_load(lua_State *L)
{
    bl_load_script(L, bl_check_text(L, 1));
    return 1;
}

/* text(path) -> the text of an embedded script | nil */
static int l_scripts_text(lua_State *L)
{
    const bl_script *script = find_script(bl_check_text(L, 1));
    if (script == NULL)
        lua_pushnil(L);
    else
        lua_pushlstring(L, script->data, (size_t)(script->end - script->data));
    return 1;
}

/* list(prefix) -> the paths of the embedded scripts that begin so */
static int l_scripts_list(lua_State *L)
{
    size_t len;
    const char *prefix = luaL_checklstring(L, 1, &len);
    lua_Integer n = 0;
    lua_newtable(L);
    for (const bl_script *script = bl_scripts; script->path != NULL; script++) {
        if (strncmp(script->path, prefix, len) != 0) continue;
        lua_pushstring(L, script->path);
        lua_rawseti(L, -2, ++n);
    }
    return 1;
}

/* load_string(text, name, env) -> chunk | nil, message; text only */
static int l_scripts_load_string(lua_State *L)
{
    size_t len;
    const char *text = luaL_checklstring(L, 1, &len);
    const char *name = bl_check_text(L, 2);
    if (luaL_loadbufferx(L, text, len, name, "t") != LUA_OK) {
        lua_pushnil(L);
        lua_insert(L, -2);
        return 2;
    }
    if (lua_istable(L, 3)) {
        lua_pushvalue(L, 3);
        if (lua_setupvalue(L, -2, 1) == NULL) lua_pop(L, 1);
    }
    return 1;
}

/* load_file(path) -> chunk | nil, message */
static int l_scripts_load_file(lua_State *L)
{
    if (bl_load_host_script(L, bl_check_text(L, 1)) == LUA_OK) return 1;
    lua_pushnil(L);
    lua_insert(L, -2);
    return 2;
}

/* exchange_modules(loaded) -> what was loaded: takes the modules that came from files out of
 * `require`'s memory, and puts those of an earlier exchange (or none) in their place. */
static int l_scripts_exchange_modules(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 1);
    luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
    push_file_modules(L);
    lua_newtable(L);
    for (lua_pushnil(L); lua_next(L, 3) != 0;) { /* 1 given, 2 loaded, 3 names, 4 taken */
        lua_pop(L, 1);
        lua_pushvalue(L, -1);
        lua_rawget(L, 2);
        lua_pushvalue(L, -2);
        lua_insert(L, -2);
        lua_rawset(L, 4);
        lua_pushvalue(L, -1);
        lua_pushvalue(L, -1);
        lua_rawget(L, 1);
        lua_rawset(L, 2);
    }
    return 1;
}

struct file_list {
    bc_script_file *files;
    size_t count;
};

static int push_files(lua_State *L)
{
    struct file_list *list = lua_touserdata(L, 1);
    lua_createtable(L, (int)list->count, 0);
    for (size_t i = 0; i < list->count; i++) {
        lua_createtable(L, 0, 2);
        lua_pushstring(L, list->files[i].name);
        lua_setfield(L, -2, "name");
        lua_pushlstring(L, list->files[i].text, list->files[i].len);
        lua_setfield(L, -2, "text");
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    return 1;
}

/* read_dir(path) -> list of { name, text } | nil, message: every script of a directory. A safe
 * engine reads only below its script directories. */
static int l_scripts_read_dir(lua_State *L)
{
    const char *path = bl_check_text(L, 1);
    bl_state *state = bl_state_of(L);
    struct file_list list;
    barchan_error err;
    if (state->path_allowed != NULL && !state->path_allowed(state, path)) {
        lua_pushnil(L);
        lua_pushfstring(L, "'%s' is outside the script directories", path);
        return 2;
    }
    if (bc_script_dir_read(path, &list.files, &list.count, &err) < 0) {
        lua_pushnil(L);
        lua_pushstring(L, err.message);
        return 2;
    }
    lua_pushcfunction(L, push_files);
    lua_pushlightuserdata(L, &list);
    int status = bl_call_plain(L, 1, 1);
    bc_script_files_free(list.files, list.count);
    return status == LUA_OK ? 1 : lua_error(L);
}

void bl_open_scripts(lua_State *L)
{
    static const luaL_Reg functions[] = {{"read_dir", l_scripts_read_dir},
                                         {"load", l_scripts_load},
                                         {"text", l_scripts_text},
                                         {"list", l_scripts_list},
                                         {"load_string", l_scripts_load_string},
                                         {"load_file", l_scripts_load_file},
                                         {"exchange_modules", l_scripts_exchange_modules},
                                         {NULL, NULL}};
    luaL_newlib(L, functions);
    lua_setfield(L, -2, "scripts");
}
