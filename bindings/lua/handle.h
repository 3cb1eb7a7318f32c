/* Handles (userdata that own something of the core) and the options that scripts give to them. */
#ifndef BL_HANDLE_H
#define BL_HANDLE_H

#include <stdint.h>
#include <lua.h>
#include <lauxlib.h>

/* Joins a handle and the core's callbacks, whichever ends first: `owner` becomes NULL when the
 * userdata is collected, and the last callback frees the link. */
typedef struct bl_link {
    void *owner;
} bl_link;

bl_link *bl_link_new(lua_State *L, void *owner); /* throws when out of memory */

/* Registers a metatable with methods and the closing functions. `close` serves __gc and __close. */
void bl_new_class(lua_State *L, const char *name, const luaL_Reg *methods, lua_CFunction close,
                  lua_CFunction to_string);

/* Fields of the options table at `index`, read raw. Each throws when the type is wrong, naming the
 * field. The pointers live as long as the table does. */
const char *bl_opt_string(lua_State *L, int index, const char *key, size_t *len);
int64_t bl_opt_integer(lua_State *L, int index, const char *key, int64_t fallback);
/* Seconds as milliseconds; `fallback` (in ms) when absent; false gives -1 (no limit). */
int64_t bl_opt_ms(lua_State *L, int index, const char *key, int64_t fallback);
int bl_opt_flag(lua_State *L, int index, const char *key);
/* A list of strings as a NULL-terminated array, in a userdata that is left on the stack; NULL (and
 * nil on the stack) when absent. With `pairs`, a table NAME = value becomes "NAME=value" strings.
 */
const char *const *bl_opt_strings(lua_State *L, int index, const char *key, int pairs);

#endif
