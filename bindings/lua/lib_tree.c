/* core.tree: folders and files of the host's, for copying to and from a sandbox. Not for safe
 * engines. */
#include <string.h>
#include "errors.h"
#include "handle.h"
#include "runtime/host_tree.h"
#include "state.h"

#define ROOT_META "barchan.core.host_root"
#define FILE_META "barchan.core.host_file"

static const char *path_at(lua_State *L, int index)
{
    size_t len;
    const char *path = luaL_checklstring(L, index, &len);
    luaL_argcheck(L, strlen(path) == len, index, "a path without NUL expected");
    bl_refuse_safe(L, "folders of the host");
    return path;
}

static const char *kind_name(bc_host_kind kind)
{
    return kind == BC_HOST_FILE ? "file" : kind == BC_HOST_FOLDER ? "folder" : "other";
}

/* stat(path) -> "file" | "folder" | "other", mode | nil, err */
static int l_tree_stat(lua_State *L)
{
    bc_host_kind kind;
    unsigned mode;
    barchan_error err;
    if (bc_host_stat(path_at(L, 1), &kind, &mode, &err) < 0) return bl_fail(L, &err);
    lua_pushstring(L, kind_name(kind));
    lua_pushinteger(L, mode);
    return 2;
}

static int push_list(lua_State *L)
{
    const bc_host_list *list = lua_touserdata(L, 1);
    lua_createtable(L, (int)list->count, 0);
    for (size_t i = 0; i < list->count; i++) {
        lua_createtable(L, 0, 3);
        lua_pushstring(L, list->entries[i].path);
        lua_setfield(L, -2, "path");
        lua_pushstring(L, kind_name(list->entries[i].kind));
        lua_setfield(L, -2, "kind");
        lua_pushinteger(L, list->entries[i].mode);
        lua_setfield(L, -2, "mode");
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    return 1;
}

/* list(folder) -> list of { path, kind, mode } | nil, err; folders come before what is in them */
static int l_tree_list(lua_State *L)
{
    const char *path = path_at(L, 1);
    bc_host_list list;
    barchan_error err;
    lua_settop(L, 1);
    lua_pushcfunction(L, push_list); /* pushed before there is anything to lose */
    if (bc_host_list_read(&list, path, &err) < 0) return bl_fail(L, &err);
    lua_pushlightuserdata(L, &list);
    int rc = lua_pcall(L, 1, 1, 0);
    bc_host_list_clear(&list);
    return rc == LUA_OK ? 1 : lua_error(L);
}

/* ---- writing below a folder ---- */

/* root(folder) -> handle | nil, err: made when it is not there */
static int l_tree_root(lua_State *L)
{
    const char *path = path_at(L, 1);
    bc_host_new_file *self = lua_newuserdatauv(L, sizeof *self, 0);
    *self = (bc_host_new_file){.folder_fd = -1, .fd = -1};
    luaL_setmetatable(L, ROOT_META);
    barchan_error err;
    self->folder_fd = bc_host_root_open(path, &err);
    return self->folder_fd < 0 ? bl_fail(L, &err) : 1;
}

static int check_root(lua_State *L)
{
    const bc_host_new_file *self = luaL_checkudata(L, 1, ROOT_META);
    if (self->folder_fd < 0) luaL_error(L, "the folder is closed");
    return self->folder_fd;
}

/* root:mkdir(path, mode) -> true | nil, err */
static int l_root_mkdir(lua_State *L)
{
    int fd = check_root(L);
    barchan_error err;
    unsigned mode = (unsigned)luaL_checkinteger(L, 3);
    if (bc_host_root_mkdir(fd, path_at(L, 2), mode, &err) < 0) return bl_fail(L, &err);
    lua_pushboolean(L, 1);
    return 1;
}

/* root:file(path, mode) -> file | nil, err: it appears when it is committed */
static int l_root_file(lua_State *L)
{
    int fd = check_root(L);
    const char *path = path_at(L, 2);
    unsigned mode = (unsigned)luaL_checkinteger(L, 3);
    bc_host_new_file *self = lua_newuserdatauv(L, sizeof *self, 0);
    *self = (bc_host_new_file){.folder_fd = -1, .fd = -1};
    luaL_setmetatable(L, FILE_META);
    barchan_error err;
    return bc_host_new_file_open(self, fd, path, mode, &err) < 0 ? bl_fail(L, &err) : 1;
}

static bc_host_new_file *check_file(lua_State *L)
{
    bc_host_new_file *self = luaL_checkudata(L, 1, FILE_META);
    if (self->fd < 0) luaL_error(L, "the file is closed");
    return self;
}

static int l_file_write(lua_State *L)
{
    bc_host_new_file *self = check_file(L);
    size_t len;
    const char *data = luaL_checklstring(L, 2, &len);
    barchan_error err;
    if (bc_host_new_file_write(self, data, len, &err) < 0) return bl_fail(L, &err);
    lua_pushboolean(L, 1);
    return 1;
}

static int l_file_commit(lua_State *L)
{
    bc_host_new_file *self = check_file(L);
    barchan_error err;
    if (bc_host_new_file_commit(self, &err) < 0) return bl_fail(L, &err);
    lua_pushboolean(L, 1);
    return 1;
}

static int l_file_close(lua_State *L)
{
    bc_host_new_file_close(luaL_checkudata(L, 1, FILE_META));
    return 0;
}

static int l_root_close(lua_State *L)
{
    bc_host_new_file_close(luaL_checkudata(L, 1, ROOT_META));
    return 0;
}

void bl_open_tree(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"stat", l_tree_stat}, {"list", l_tree_list}, {"root", l_tree_root}, {NULL, NULL}};
    static const luaL_Reg root[] = {
        {"mkdir", l_root_mkdir}, {"file", l_root_file}, {"close", l_root_close}, {NULL, NULL}};
    static const luaL_Reg file[] = {
        {"write", l_file_write}, {"commit", l_file_commit}, {"close", l_file_close}, {NULL, NULL}};
    bl_new_class(L, ROOT_META, root, l_root_close, NULL);
    bl_new_class(L, FILE_META, file, l_file_close, NULL);
    luaL_newlib(L, functions);
    lua_setfield(L, -2, "tree");
}
