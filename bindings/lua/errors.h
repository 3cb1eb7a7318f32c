/* Error objects: tables with code, message, status, request_id, retryable, where, whose tostring
 * reads well. The world failing returns `nil, err`; iterators and cancellation throw it. */
#ifndef BL_ERRORS_H
#define BL_ERRORS_H

#include <lua.h>
#include <barchan/error.h>

/* Pushes an error object. */
void bl_push_error(lua_State *L, const barchan_error *err);
/* Pushes nil and an error object; returns 2. */
int bl_fail(lua_State *L, const barchan_error *err);
/* Throws an error object of this code. */
int bl_throw(lua_State *L, int code, const char *message);
/* Fills err from the value at index: an error object, or any value that a script threw. */
void bl_error_from(lua_State *L, int index, barchan_error *err);
/* Pushes the place of who called the library, "agent.lua:7: ": the first line on the way out that
 * is not one of its own scripts; "" when there is none, as in a task that it has made itself. */
void bl_push_caller(lua_State *L);
/* Throws what is wrong with a call, there, after the name by which the library has published the
 * function (core.util.published). Of the formats of lua_pushfstring. */
int bl_misuse(lua_State *L, const char *format, ...);
/* Pushes the table of published functions and their names. */
void bl_push_published(lua_State *L);
/* Pushes the metatable that error objects share. */
void bl_push_error_meta(lua_State *L);

#endif
