/*
 * Lua values <-> JSON text. Integers stay integers, empty arrays stay arrays, null is
 * `barchan.json.null` (a light userdata NULL, as in lua-cjson), keys are written in byte order so
 * that equal values give equal bytes. Tables are read raw: no metamethod runs.
 */
#ifndef BL_VALUE_H
#define BL_VALUE_H

#include <lua.h>
#include "base/buf.h"

/* Pushes the value of a JSON text. Negative with err set when it is not JSON. May throw (memory).
 */
int bl_push_json(lua_State *L, const char *text, size_t len, barchan_error *err);
/* Pushes a string with the JSON text of the value at `index`, or throws an error that names the
 * place: "cannot encode a function at .tools[1].run". */
void bl_encode_json(lua_State *L, int index);
/* The same without a string: pushes what holds the bytes, which may be let go early. */
const bc_buf *bl_encode_bytes(lua_State *L, int index);
void bl_encoded_clear(lua_State *L, int index);
/* For value.c: a userdata that begins with a bc_buf and frees it. */
#define BL_ENCODER_META "barchan.json.encoder"
void bl_open_encoder(lua_State *L);
/* Pushes the metatable that marks a table as an array. */
void bl_push_array_meta(lua_State *L);

#endif
