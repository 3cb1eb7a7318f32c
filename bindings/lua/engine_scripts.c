/* Where an engine's scripts come from: directories, and texts that the host gives. */
#include "engine_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "bounds.h"
#include "runtime/host_file.h"

struct bl_text {
    bl_text *next;
    char *name, *text;
    size_t len;
};

/* Copies directory names without trailing slashes; empty ones are left out. */
static int copy_dirs(char ***out, const char *const *list, barchan_error *err)
{
    size_t n = 0;
    while (list != NULL && list[n] != NULL)
        n++;
    char **copy = calloc(n + 1, sizeof *copy);
    if (copy == NULL) return bc_error_nomem(err);
    *out = copy;
    for (size_t i = 0, to = 0; i < n; i++) {
        size_t len = strlen(list[i]);
        while (len > 1 && list[i][len - 1] == '/')
            len--;
        if (len == 0) continue;
        copy[to] = strndup(list[i], len);
        if (copy[to++] == NULL) return bc_error_nomem(err);
    }
    return 0;
}

/* A safe engine's scripts load code only from below its script directories. */
int bl_engine_path_allowed(const bl_state *state, const char *path)
{
    if (strstr(path, "..") != NULL) return 0;
    for (char **dir = state->engine->script_dirs; *dir != NULL; dir++) {
        size_t len = strlen(*dir);
        if (strcmp(*dir, "/") == 0) return path[0] == '/';
        if (strncmp(path, *dir, len) == 0 && (path[len] == '/' || path[len] == '\0')) return 1;
    }
    return 0;
}

/* ---- texts ---- */

static void free_text(bl_text *text)
{
    if (text == NULL) return;
    free(text->name);
    free(text->text);
    free(text);
}

static bl_text **find_text(bl_host *host, const char *name)
{
    bl_text **at = &host->texts;
    while (*at != NULL && strcmp((*at)->name, name) != 0)
        at = &(*at)->next;
    return at;
}

const char *bl_engine_text(const bl_state *state, const char *name, size_t *len)
{
    const bl_text *text = *find_text(state->host, name);
    if (text == NULL) return NULL;
    *len = text->len;
    return text->text;
}

static int check_name(const char *name, barchan_error *err)
{
    size_t len = name != NULL ? strlen(name) : 0;
    if (len > 4 && len <= BL_SCRIPT_MAX_NAME && strcmp(name + len - 4, ".lua") == 0 &&
        name[0] != '/' && name[0] != '.' && strstr(name, "..") == NULL) {
        return 0;
    }
    return bc_error_set(err, BARCHAN_EINVAL,
                        "a script's name is a path like 'agents/support.lua'; got '%.80s'",
                        name != NULL ? name : "");
}

int barchan_engine_set_script(barchan_engine *engine, const char *name, const char *text,
                              size_t len, barchan_error *err)
{
    BC_OPERATION("engine.set_script");
    int rc = bl_engine_check(engine, err);
    if (rc == 0) rc = check_name(name, err);
    if (rc < 0) return rc;
    if (text != NULL && len > BL_SCRIPT_MAX_BYTES) {
        return bc_error_set(err, BARCHAN_ELIMIT, "the script '%s' is larger than %zu KiB", name,
                            BL_SCRIPT_MAX_BYTES >> 10);
    }
    bl_text *new = NULL;
    if (text != NULL) {
        new = calloc(1, sizeof *new);
        if (new == NULL) return bc_error_nomem(err);
        new->name = strdup(name);
        new->text = malloc(len + 1);
        new->len = len;
        if (new->name == NULL || new->text == NULL) {
            free_text(new);
            return bc_error_nomem(err);
        }
        memcpy(new->text, text, len);
        new->text[len] = '\0';
    }
    bl_text **at = find_text(&engine->host, name), *old = *at;
    if (old != NULL) *at = old->next;
    free_text(old);
    if (new == NULL) return 0;
    new->next = engine->host.texts;
    engine->host.texts = new;
    return 0;
}

int bl_engine_scripts_open(barchan_engine *engine, const barchan_engine_options *options,
                           barchan_error *err)
{
    int rc = copy_dirs(&engine->script_dirs, options->script_dirs, err);
    const barchan_script *script = options->scripts;
    for (; rc == 0 && script != NULL && script->name != NULL; script++) {
        rc = barchan_engine_set_script(engine, script->name, script->text, script->len, err);
    }
    return rc;
}

void bl_engine_scripts_close(barchan_engine *engine)
{
    for (char **dir = engine->script_dirs; dir != NULL && *dir != NULL; dir++) {
        free(*dir);
    }
    free(engine->script_dirs);
    while (engine->host.texts != NULL) {
        bl_text *next = engine->host.texts->next;
        free_text(engine->host.texts);
        engine->host.texts = next;
    }
    free(engine->host.script_path);
}

/* ---- loading ---- */

int barchan_engine_load_string(barchan_engine *engine, const char *name, const char *text,
                               size_t len, barchan_error *err)
{
    BC_OPERATION("engine.load_string");
    int rc = bl_engine_check(engine, err);
    if (rc < 0) return rc;
    if (text == NULL) return bc_error_set(err, BARCHAN_EINVAL, "the script's text is NULL");
    return bl_engine_load(engine, name, text, len, err);
}

/* A name that stands for itself, not for a file in script_dirs. */
static int is_path(const char *name)
{
    return name[0] == '/' || strncmp(name, "./", 2) == 0 || strncmp(name, "../", 3) == 0;
}

static int not_found(const barchan_engine *engine, const char *name, barchan_error *err)
{
    char dirs[300] = "";
    size_t len = 0;
    if (engine->script_dirs == NULL || engine->script_dirs[0] == NULL) {
        return bc_error_set(err, BARCHAN_ENOTFOUND,
                            "the engine has no script directory to look for '%.100s' in", name);
    }
    for (char **dir = engine->script_dirs; *dir != NULL && len < sizeof dirs; dir++) {
        len += (size_t)snprintf(dirs + len, sizeof dirs - len, "%s%s", len > 0 ? ", " : "", *dir);
    }
    return bc_error_set(err, BARCHAN_ENOTFOUND,
                        "the script '%.100s' is in none of the script directories: %s", name, dirs);
}

/* The path of a script in the script directories: the first that is there. */
static int look_up(const barchan_engine *engine, const char *name, char **path, barchan_error *err)
{
    for (char **dir = engine->script_dirs; dir != NULL && *dir != NULL; dir++) {
        size_t size = strlen(*dir) + strlen(name) + 2;
        *path = malloc(size);
        if (*path == NULL) return bc_error_nomem(err);
        snprintf(*path, size, "%s/%s", *dir, name);
        if (bc_host_file_check(*path, NULL) != BARCHAN_ENOTFOUND) return 0;
        free(*path);
    }
    *path = NULL;
    return not_found(engine, name, err);
}

int barchan_engine_load_file(barchan_engine *engine, const char *name, barchan_error *err)
{
    BC_OPERATION("engine.load_file");
    int rc = bl_engine_check(engine, err);
    if (rc < 0) return rc;
    if (name == NULL) return bc_error_set(err, BARCHAN_EINVAL, "the script's name is NULL");
    size_t len;
    if (is_path(name) || bl_engine_text(engine->state, name, &len) != NULL) {
        return bl_engine_load(engine, name, NULL, 0, err);
    }
    char *path;
    rc = look_up(engine, name, &path, err);
    if (rc < 0) return rc;
    rc = bl_engine_load(engine, path, NULL, 0, err);
    free(path);
    return rc;
}

int barchan_engine_reload(barchan_engine *engine, barchan_error *err)
{
    BC_OPERATION("engine.reload");
    int rc = bl_engine_call(engine, "barchan.script:reload", NULL, NULL, NULL, err);
    /* The script's error has its file and line; who called it are this library's own functions. */
    char *traceback = rc < 0 ? strstr(err->message, "\nstack traceback:") : NULL;
    if (traceback != NULL) *traceback = '\0';
    return rc;
}
