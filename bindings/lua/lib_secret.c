#include "lib_secret.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "errors.h"
#include "handle.h"
#include "lib_sandbox.h"
#include "runtime/host_file.h"

#define SECRETS_META "barchan.core.secrets"

/* A userdata, so that it is wiped whatever fails. */
struct bl_secrets {
    barchan_secret list[BL_MAX_SECRETS];
    size_t count;
    char values[BL_MAX_SECRETS][BARCHAN_SECRET_MAX_BYTES + 2]; /* one byte more is one too many */
};

void bl_secrets_wipe(bl_secrets *secrets)
{
    if (secrets != NULL) explicit_bzero(secrets->values, sizeof secrets->values);
}

static int l_secrets_gc(lua_State *L)
{
    bl_secrets_wipe(lua_touserdata(L, 1));
    return 0;
}

/* ---- where values come from ---- */

static int read_env(const char *name, barchan_secret *secret, barchan_error *err)
{
    secret->value = getenv(name); /* copied by the core at once */
    if (secret->value == NULL) {
        return bc_error_set(err, BARCHAN_ENOTFOUND, "the variable %.80s is not set", name);
    }
    secret->value_len = strlen(secret->value);
    return 0;
}

/* Without a line's end that an editor has left. */
static int read_file(const char *path, barchan_secret *secret, char *value, barchan_error *err)
{
    int rc = bc_host_file_check(path, err);
    if (rc < 0) return rc;
    FILE *file = fopen(path, "re");
    if (file == NULL) return bc_error_set_os(err, errno, "open %.200s", path);
    setvbuf(file, NULL, _IONBF, 0); /* no copy in a buffer of its own */
    size_t len = fread(value, 1, BARCHAN_SECRET_MAX_BYTES + 1, file);
    fclose(file);
    if (len > 0 && value[len - 1] == '\n') len--;
    if (len > 0 && value[len - 1] == '\r') len--;
    secret->value = value;
    secret->value_len = len;
    return 0;
}

static int resolve(lua_State *L, int index, barchan_secret *secret, char *value, barchan_error *err)
{
    secret->value = bl_opt_string(L, index, "value", &secret->value_len);
    if (secret->value != NULL) return 0;
    const char *from = bl_opt_string(L, index, "from", NULL);
    int rc;
    if (from != NULL && strncmp(from, "env:", 4) == 0) {
        rc = read_env(from + 4, secret, err);
    } else if (from != NULL && strncmp(from, "file:", 5) == 0) {
        rc = read_file(from + 5, secret, value, err);
    } else {
        return bl_misuse(L, "option 'from': \"env:NAME\" or \"file:/path\" expected");
    }
    if (rc < 0) {
        bc_error_context(err, "secret %.80s", secret->name == NULL ? "?" : secret->name);
    }
    return rc;
}

/* ---- the profile ---- */

static void read_options(lua_State *L, int index, barchan_secret *secret)
{
    secret->struct_size = sizeof *secret;
    secret->name = bl_opt_string(L, index, "name", NULL);
    secret->header = bl_opt_string(L, index, "header", NULL);
    secret->format = bl_opt_string(L, index, "format", NULL);
    secret->user = bl_opt_string(L, index, "user", NULL);
    secret->ca_file = bl_opt_string(L, index, "ca_file", NULL);
    secret->hosts = bl_opt_strings(L, index, "hosts", 0);
    secret->methods = bl_opt_strings(L, index, "methods", 0);
    secret->paths = bl_opt_strings(L, index, "paths", 0);
    const char *own = bl_opt_string(L, index, "on_guest_authorization", NULL);
    if (own != NULL && strcmp(own, "refuse") == 0) {
        secret->on_guest_authorization = BARCHAN_GUEST_AUTHORIZATION_REFUSE;
    } else if (own != NULL && strcmp(own, "strip") != 0) {
        bl_misuse(L, "option 'on_guest_authorization': \"strip\" or \"refuse\" expected");
    }
}

static bl_secrets *new_secrets(lua_State *L)
{
    bl_secrets *secrets = lua_newuserdatauv(L, sizeof *secrets, 0);
    memset(secrets, 0, sizeof *secrets);
    if (luaL_newmetatable(L, SECRETS_META)) {
        lua_pushcfunction(L, l_secrets_gc);
        lua_setfield(L, -2, "__gc");
    }
    lua_setmetatable(L, -2);
    return secrets;
}

int bl_secrets_read(lua_State *L, barchan_profile *profile, bl_secrets **out, barchan_error *err)
{
    *out = NULL;
    if (lua_getfield(L, 1, "secrets") == LUA_TNIL) return 0;
    bl_refuse_safe(L, "option 'secrets'");
    luaL_checktype(L, -1, LUA_TTABLE);
    int list = lua_gettop(L), rc = 0;
    lua_Integer count = (lua_Integer)lua_rawlen(L, list);
    if (count > BL_MAX_SECRETS) bl_misuse(L, "option 'secrets': at most %d", BL_MAX_SECRETS);
    luaL_checkstack(L, 8 * BL_MAX_SECRETS, "secrets");
    bl_secrets *secrets = new_secrets(L);
    for (lua_Integer i = 1; rc == 0 && i <= count; i++) {
        barchan_secret *secret = &secrets->list[secrets->count];
        lua_rawgeti(L, list, i);
        luaL_checktype(L, -1, LUA_TTABLE);
        int index = lua_gettop(L);
        read_options(L, index, secret);
        rc = resolve(L, index, secret, secrets->values[secrets->count], err);
        secrets->count++;
    }
    if (rc < 0) {
        bc_error_context(err, "create sandbox");
        bl_secrets_wipe(secrets);
        return rc;
    }
    profile->secrets = secrets->list;
    profile->secret_count = secrets->count;
    *out = secrets;
    return 0;
}

int bl_sandbox_set_secret(lua_State *L)
{
    barchan_sandbox *sbx = bl_check_sandbox(L, 1);
    size_t len;
    barchan_error err;
    bl_refuse_safe(L, "set_secret");
    const char *name = bl_check_text(L, 2);
    luaL_checktype(L, 3, LUA_TSTRING);
    const char *value = lua_tolstring(L, 3, &len);
    if (barchan_sandbox_set_secret(sbx, name, value, len, &err) < 0) return bl_fail(L, &err);
    lua_pushboolean(L, 1);
    return 1;
}
