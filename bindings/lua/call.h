/* The one way from C into Lua: protected. */
#ifndef BL_CALL_H
#define BL_CALL_H

#include <lua.h>

/* lua_pcall of the function and its arguments at the top. On failure the message (an error object
 * keeps its kind and gets a `traceback` field) is at the top and the result is not LUA_OK. */
int bl_call(lua_State *L, int nargs, int nresults);
/* The same without a traceback, for functions of our own whose errors are passed on or dropped. */
int bl_call_plain(lua_State *L, int nargs, int nresults);
/* The body of a coroutine, to be run in it: calls the function and its arguments below the top, and
 * throws what it throws. What the function leaves to be closed is closed here, where hooks work:
 * Lua runs none in a coroutine that died by an error out of a hook. `traceback`: the error gets
 * one. */
void bl_push_body(lua_State *L, int traceback);
/* Adds a traceback of the (dead) coroutine `co` to the error value at the top of L. */
void bl_add_traceback(lua_State *L, lua_State *co);

#endif
