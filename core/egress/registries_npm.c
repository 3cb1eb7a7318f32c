/*
 * npm: the npmrc files and the environment, and where none of them names a registry, the default
 * that stands in npm's own definitions.
 * https://docs.npmjs.com/cli/configuring-npm/npmrc
 */
#include <stdio.h>
#include <string.h>
#include "base/cleanup.h"
#include "registry_files.h"

typedef struct found {
    char value[BC_REGISTRIES_MAX_VALUE]; /* of "registry", by the file that overrides the others */
    char from[BC_REGISTRY_FROM];
} found;

/* ${NAME} is the environment's; what is not set stays as it is, and is then no URL. */
static bool expand(bc_registries *r, bc_text text, char *out, size_t size)
{
    size_t at = 0;
    while (text.len > 0) {
        char name[64];
        const char *close = memchr(text.data, '}', text.len);
        bc_text piece = {text.data, 1};
        size_t used = 1;
        if (text.len > 3 && text.data[0] == '$' && text.data[1] == '{' && close != NULL) {
            bc_text inner = {text.data + 2, (size_t)(close - text.data) - 2};
            const char *value =
                bc_text_copy(inner, name, sizeof name) ? bc_registries_env(r, name) : NULL;
            if (value != NULL) {
                piece = bc_text_of(value);
                used = inner.len + 3;
            }
        }
        if (at + piece.len >= size) return false;
        memcpy(out + at, piece.data, piece.len);
        at += piece.len;
        text = (bc_text){text.data + used, text.len - used};
    }
    out[at] = '\0';
    return memchr(out, '\0', at) == NULL;
}

static bc_text unquote(bc_text text)
{
    if (text.len >= 2 && (text.data[0] == '"' || text.data[0] == '\'') &&
        text.data[text.len - 1] == text.data[0]) {
        return (bc_text){text.data + 1, text.len - 2};
    }
    return text;
}

static void read_line(bc_registries *r, bc_text line, const char *from, found *registry)
{
    char value[BC_REGISTRIES_MAX_VALUE];
    const char *equals = memchr(line.data, '=', line.len);
    if (equals == NULL) return;
    bc_text name = unquote(bc_text_trim((bc_text){line.data, (size_t)(equals - line.data)}));
    bc_text right = {equals + 1, line.len - (size_t)(equals + 1 - line.data)};
    static const char suffix[] = ":registry";
    bool scope = name.len > sizeof suffix && name.data[0] == '@' &&
                 memcmp(name.data + name.len - (sizeof suffix - 1), suffix, sizeof suffix - 1) == 0;
    if (!scope && !bc_text_is(name, "registry")) return;
    if (!expand(r, unquote(bc_text_trim(right)), value, sizeof value)) {
        bc_registries_note(r, "%s: a value that is too long", from);
        return;
    }
    if (scope) {
        bc_registries_add_url(r, bc_text_of(value), from);
    } else if (value[0] != '\0') {
        memcpy(registry->value, value, sizeof value);
        memcpy(registry->from, from, strlen(from) + 1);
    }
}

static void read_file(bc_registries *r, const char *path, found *registry)
{
    char from[BC_REGISTRY_FROM];
    cleanup_buf bc_buf file;
    bc_buf_init(&file, BC_REGISTRIES_MAX_FILE_BYTES);
    if (!bc_registries_file(r, path, &file)) return;
    bc_registry_from(from, "npm", path);
    bc_text rest = {bc_buf_data(&file), file.len}, line;
    while (bc_text_line(&rest, &line)) {
        line = bc_text_trim(line);
        if (line.len == 0 || line.data[0] == ';' || line.data[0] == '#') continue;
        /* What follows is in a section, where npm looks for nothing. */
        if (line.data[0] == '[') return;
        read_line(r, line, from, registry);
    }
}

/* npm reads its variables in either case. */
static const char *npm_env(bc_registries *r, const char *lower, const char *upper)
{
    const char *value = bc_registries_env(r, lower);
    return value != NULL ? value : bc_registries_env(r, upper);
}

/* ---- an installed npm ---- */

typedef struct installed {
    char path[BC_REGISTRY_PATH];   /* its own directory, "" when none is found */
    char global[BC_REGISTRY_PATH]; /* the npmrc of its prefix */
} installed;

static void look(bc_registries *r, const char *lib, installed *npm)
{
    char path[BC_REGISTRY_PATH], own[BC_REGISTRY_PATH];
    if (!bc_path_join(own, lib, "npm")) return;
    if (!bc_path_join(path, own, "package.json") || !bc_registries_exists(r, path)) return;
    memcpy(npm->path, own, sizeof own);
}

/* The first that is found is the one that a shell would run. */
static void look_in_prefix(bc_registries *r, const char *prefix, void *ud)
{
    static const char *const libs[] = {"lib/node_modules", "share/nodejs"};
    char path[BC_REGISTRY_PATH];
    installed *npm = ud;
    for (size_t i = 0; i < sizeof libs / sizeof *libs; i++) {
        if (npm->path[0] != '\0' || !bc_path_join(path, prefix, libs[i])) continue;
        look(r, path, npm);
        if (npm->path[0] != '\0') bc_path_join(npm->global, prefix, "etc/npmrc");
    }
}

/* define('registry', { default: 'https://…' */
static bool add_default_of(bc_registries *r, const char *path)
{
    char from[BC_REGISTRY_FROM];
    cleanup_buf bc_buf file;
    bc_buf_init(&file, BC_REGISTRIES_MAX_FILE_BYTES);
    if (!bc_registries_file(r, path, &file)) return false;
    const char *at = strstr(bc_buf_data(&file), "('registry', {");
    if (at == NULL) return false;
    const char *end = strchr(at, '}');
    bc_text definition = {at, end == NULL ? strlen(at) : (size_t)(end - at)};
    bc_text url = bc_text_quoted(definition, "default:");
    if (url.len == 0) return false;
    bc_registry_from(from, "npm: built in", path);
    bc_registries_add_url(r, url, from);
    return true;
}

static void add_default(bc_registries *r, const installed *npm)
{
    static const char *const files[] = {
        "lib/utils/config/definitions.js",
        "node_modules/@npmcli/config/lib/definitions/definitions.js",
        "../@npmcli/config/lib/definitions/definitions.js", /* as Debian packages it */
    };
    char path[BC_REGISTRY_PATH];
    for (size_t i = 0; i < sizeof files / sizeof *files && npm->path[0] != '\0'; i++) {
        if (bc_path_join(path, npm->path, files[i]) && add_default_of(r, path)) return;
    }
    bc_registries_note(r, npm->path[0] != '\0'
                              ? "npm: no registry configured, and its default was not found in it"
                              : "npm: no registry configured, and no npm found to ask");
}

void bc_registries_npm(bc_registries *r)
{
    char path[BC_REGISTRY_PATH];
    found registry = {.value = ""};
    installed npm = {.path = "", .global = ""};
    bc_registries_each_prefix(r, look_in_prefix, &npm);
    look_in_prefix(r, "/usr/local", &npm);
    look_in_prefix(r, "/usr", &npm);
    if (npm.path[0] != '\0' && bc_path_join(path, npm.path, "npmrc")) {
        read_file(r, path, &registry);
    }
    const char *global = npm_env(r, "npm_config_globalconfig", "NPM_CONFIG_GLOBALCONFIG");
    const char *user = npm_env(r, "npm_config_userconfig", "NPM_CONFIG_USERCONFIG");
    const char *value = npm_env(r, "npm_config_registry", "NPM_CONFIG_REGISTRY");
    read_file(r, "/etc/npmrc", &registry);
    if (global == NULL) global = npm.global;
    if (global[0] != '\0') read_file(r, global, &registry);
    const char *home = r->options->home;
    if (user == NULL && home != NULL && bc_path_join(path, home, ".npmrc")) user = path;
    if (user != NULL) read_file(r, user, &registry);
    if (value != NULL) {
        bc_registries_add_url(r, bc_text_of(value), "npm: $npm_config_registry");
    } else if (registry.value[0] != '\0') {
        bc_registries_add_url(r, bc_text_of(registry.value), registry.from);
    } else {
        add_default(r, &npm);
    }
}
