/* Secrets of a sandbox, for scripts that name them. What "env:" and "file:" lead to is read here
 * and is never a string of Lua's. */
#ifndef BL_LIB_SECRET_H
#define BL_LIB_SECRET_H

#include <barchan/secret.h>
#include "state.h"

#define BL_MAX_SECRETS 16 /* as the core has it */

typedef struct bl_secrets bl_secrets;

/* Reads the option `secrets` of the profile at stack index 1; leaves what it needs on the stack.
 * `*out` may be NULL. Negative: a source cannot be read; `err` says which. */
int bl_secrets_read(lua_State *L, barchan_profile *profile, bl_secrets **out, barchan_error *err);
/* The core has copied them. NULL is ignored. */
void bl_secrets_wipe(bl_secrets *secrets);

/* sandbox:set_secret(name, value) -> true | nil, err */
int bl_sandbox_set_secret(lua_State *L);

#endif
