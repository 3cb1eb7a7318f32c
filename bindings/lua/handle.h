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
    int in_core; /* a callback will come and free it */
} bl_link;

bl_link *bl_link_new(lua_State *L, void *owner); /* throws when out of memory */
/* The core has taken it: exactly one last callback will come. */
void bl_link_given(bl_link *link);
/* The handle lets go of it; *link becomes NULL. */
void bl_link_drop(bl_link **link);

/* Pushes a word and a text, and frees `memory` whether or not Lua has room for them. Returns 2. */
int bl_push_pair(lua_State *L, const char *word, const char *text, size_t len, void *memory);

/* Registers a metatable with methods and the closing functions. `close` serves __gc and __close. */
void bl_new_class(lua_State *L, const char *name, const luaL_Reg *methods, lua_CFunction close,
                  lua_CFunction to_string);

/* An argument of a function that C takes as a string: throws when it is none, and over a NUL byte,
 * which would cut it silently. The pointer lives as long as the argument does. */
const char *bl_check_text(lua_State *L, int index);

/* Fields of the options table at `index`, read raw. Each throws when the type is wrong, naming the
 * field. The pointers live as long as the table does. */
const char *bl_opt_string(lua_State *L, int index, const char *key, size_t *len);
int64_t bl_opt_integer(lua_State *L, int index, const char *key, int64_t fallback);
/* A number that is not negative, of any size. */
lua_Number bl_opt_number(lua_State *L, int index, const char *key, lua_Number fallback);
/* Seconds as milliseconds; `fallback` (in ms) when absent; false gives -1 (no limit). */
int64_t bl_opt_ms(lua_State *L, int index, const char *key, int64_t fallback);
/* The same where the core takes an int. */
int bl_opt_int_ms(lua_State *L, int index, const char *key);
int bl_opt_flag(lua_State *L, int index, const char *key);
/* A list of strings as a NULL-terminated array, in a userdata that is left on the stack; NULL (and
 * nil on the stack) when absent. With `pairs`, a table NAME = value becomes "NAME=value" strings.
 */
const char *const *bl_opt_strings(lua_State *L, int index, const char *key, int pairs);

#endif
