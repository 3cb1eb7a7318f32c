/*
 * pip: its configuration files in the order in which they override each other, its environment,
 * and where none of them names an index, the one that stands in pip's own source.
 * https://pip.pypa.io/en/stable/topics/configuration/
 */
#include <stdio.h>
#include <string.h>
#include "base/cleanup.h"
#include "registry_files.h"

typedef enum key { INDEX_URL, EXTRA_INDEX_URL, FIND_LINKS, NO_INDEX, KEYS } key;

static const char *const key_names[KEYS] = {"index-url", "extra-index-url", "find-links",
                                            "no-index"};
static const char *const env_names[KEYS] = {"PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL",
                                            "PIP_FIND_LINKS", "PIP_NO_INDEX"};

/* What the last file that has it says. Sections are pip's commands, and "global". */
typedef struct setting {
    char section[32];
    key key;
    char value[BC_REGISTRIES_MAX_VALUE];
    char from[BC_REGISTRY_FROM];
} setting;

enum { SETTINGS = 32 };

typedef struct settings {
    setting list[SETTINGS];
    size_t count;
    bool over[KEYS]; /* the environment says it */
} settings;

static setting *find_setting(bc_registries *r, settings *all, bc_text section, key which)
{
    for (size_t i = 0; i < all->count; i++) {
        setting *s = &all->list[i];
        if (s->key == which && bc_text_is(section, s->section)) return s;
    }
    if (all->count == SETTINGS) {
        bc_registries_note(r, "pip: more settings than are read");
        return NULL;
    }
    setting *s = &all->list[all->count];
    if (!bc_text_copy(section, s->section, sizeof s->section)) return NULL;
    s->key = which;
    all->count++;
    return s;
}

/* pip takes '_' for '-' in names. */
static bool is_key(bc_text name, const char *word)
{
    char copy[32];
    if (!bc_text_copy(name, copy, sizeof copy)) return false;
    for (char *c = copy; *c != '\0'; c++)
        if (*c == '_') *c = '-';
    return bc_text_is((bc_text){copy, name.len}, word);
}

static setting *begin_setting(bc_registries *r, settings *all, bc_text section, bc_text name,
                              const char *path)
{
    for (int k = 0; k < KEYS; k++) {
        if (!is_key(name, key_names[k])) continue;
        setting *s = find_setting(r, all, section, (key)k);
        if (s == NULL) return NULL;
        s->value[0] = '\0';
        bc_registry_from(s->from, "pip", path);
        return s;
    }
    return NULL;
}

static void append_value(bc_registries *r, setting *s, bc_text value)
{
    size_t at = strlen(s->value);
    value = bc_text_trim(value);
    if (at + value.len + 2 > sizeof s->value || memchr(value.data, '\0', value.len) != NULL) {
        bc_registries_note(r, "%s: a value that is too long", s->from);
        return;
    }
    snprintf(s->value + at, sizeof s->value - at, "%s%.*s", at > 0 ? " " : "", (int)value.len,
             value.data);
}

/* Python's configparser: sections, name = value or name: value, indented lines go on with the
 * value. */
static void read_file(bc_registries *r, settings *all, const char *path)
{
    cleanup_buf bc_buf file;
    bc_buf_init(&file, BC_REGISTRIES_MAX_FILE_BYTES);
    if (!bc_registries_file(r, path, &file)) return;
    bc_text rest = {bc_buf_data(&file), file.len}, line, section = {"", 0};
    setting *open = NULL;
    while (bc_text_line(&rest, &line)) {
        bc_text text = bc_text_trim(line);
        if (text.len == 0 || text.data[0] == '#' || text.data[0] == ';') continue;
        if (text.data != line.data) {
            if (open != NULL) append_value(r, open, text);
            continue;
        }
        open = NULL;
        const char *close = memchr(text.data, ']', text.len);
        if (text.data[0] == '[') {
            if (close != NULL) section = (bc_text){text.data + 1, (size_t)(close - text.data) - 1};
            continue;
        }
        size_t name = 0;
        while (name < text.len && text.data[name] != '=' && text.data[name] != ':')
            name++;
        if (name == text.len) continue;
        open = begin_setting(r, all, section, bc_text_trim((bc_text){text.data, name}), path);
        if (open == NULL) continue;
        append_value(r, open, (bc_text){text.data + name + 1, text.len - name - 1});
    }
}

static void read_in(bc_registries *r, settings *all, const char *dir, const char *name)
{
    char path[BC_REGISTRY_PATH];
    if (dir != NULL && bc_path_join(path, dir, name)) read_file(r, all, path);
}

static void read_files(bc_registries *r, settings *all)
{
    char dir[BC_REGISTRY_PATH];
    const char *own = bc_registries_env(r, "PIP_CONFIG_FILE");
    const char *dirs = bc_registries_env(r, "XDG_CONFIG_DIRS");
    const char *config = bc_registries_env(r, "XDG_CONFIG_HOME");
    /* pip's way of saying: no files at all. */
    if (own != NULL && strcmp(own, "/dev/null") == 0) return;
    if (dirs == NULL) dirs = "/etc/xdg";
    for (size_t len; *dirs != '\0'; dirs += len + (dirs[len] == ':')) {
        len = strcspn(dirs, ":");
        if (bc_text_copy((bc_text){dirs, len}, dir, sizeof dir)) {
            read_in(r, all, dir, "pip/pip.conf");
        }
    }
    read_file(r, all, "/etc/pip.conf");
    read_in(r, all, r->options->home, ".pip/pip.conf");
    if (config != NULL) {
        read_in(r, all, config, "pip/pip.conf");
    } else {
        read_in(r, all, r->options->home, ".config/pip/pip.conf");
    }
    read_in(r, all, bc_registries_env(r, "VIRTUAL_ENV"), "pip.conf");
    if (own != NULL) read_file(r, all, own);
}

static void add_setting(bc_registries *r, const setting *s)
{
    bc_registries_add_urls(r, bc_text_of(s->value), s->from);
}

static bool is_true(const char *value)
{
    bc_text text = bc_text_trim(bc_text_of(value));
    return bc_text_is(text, "true") || bc_text_is(text, "yes") || bc_text_is(text, "on") ||
           bc_text_is(text, "1");
}

/* ---- the default ---- */

typedef struct search {
    bool found;
} search;

/* PyPI = PackageIndex("https://…/", file_storage_domain="…") */
static void read_source(bc_registries *r, const char *packages, void *ud)
{
    char path[BC_REGISTRY_PATH], from[BC_REGISTRY_FROM], url[300];
    search *s = ud;
    if (s->found || !bc_path_join(path, packages, "pip/_internal/models/index.py")) return;
    cleanup_buf bc_buf file;
    bc_buf_init(&file, BC_REGISTRIES_MAX_FILE_BYTES);
    if (!bc_registries_file(r, path, &file)) return;
    const char *at = strstr(bc_buf_data(&file), "\nPyPI = PackageIndex(");
    const char *close = at == NULL ? NULL : strchr(at, ')');
    if (close == NULL) return;
    bc_text call = {at, (size_t)(close - at)};
    bc_text index = bc_text_quoted(call, "PackageIndex(");
    bc_text files = bc_text_quoted(call, "file_storage_domain");
    if (index.len == 0) return;
    s->found = true;
    bc_registry_from(from, "pip: built in", path);
    bc_registries_add_url(r, index, from);
    if (files.len == 0 || files.len > 253) return;
    snprintf(url, sizeof url, "https://%.*s/", (int)files.len, files.data);
    bc_registries_add_url(r, bc_text_of(url), from);
}

static void read_python(bc_registries *r, const char *python, void *ud)
{
    static const char *const packages[] = {"dist-packages", "site-packages"};
    char path[BC_REGISTRY_PATH];
    for (size_t i = 0; i < sizeof packages / sizeof *packages; i++) {
        if (bc_path_join(path, python, packages[i])) read_source(r, path, ud);
    }
}

/* prefix/lib/python3*: where a Python has its packages. */
static void read_prefix(bc_registries *r, const char *prefix, void *ud)
{
    char path[BC_REGISTRY_PATH];
    search *s = ud;
    if (s->found || !bc_path_join(path, prefix, "lib")) return;
    bc_registries_each(r, path, "python3", "", read_python, ud);
}

static void add_default(bc_registries *r)
{
    char local[BC_REGISTRY_PATH];
    search s = {false};
    const char *env = bc_registries_env(r, "VIRTUAL_ENV"), *home = r->options->home;
    if (env != NULL) read_prefix(r, env, &s);
    bc_registries_each_prefix(r, read_prefix, &s);
    read_prefix(r, "/usr/local", &s);
    read_prefix(r, "/usr", &s);
    if (home != NULL && bc_path_join(local, home, ".local")) read_prefix(r, local, &s);
    if (!s.found) bc_registries_note(r, "pip: no index configured, and no pip found to ask");
}

void bc_registries_pip(bc_registries *r)
{
    cleanup_free settings *all = calloc(1, sizeof *all);
    bool index = false, none = false;
    if (all == NULL) {
        r->no_memory = true;
        return;
    }
    read_files(r, all);
    for (int k = 0; k < KEYS; k++) {
        const char *value = bc_registries_env(r, env_names[k]);
        if (value == NULL) continue;
        char from[BC_REGISTRY_FROM];
        snprintf(from, sizeof from, "pip: $%s", env_names[k]);
        all->over[k] = true;
        if (k == INDEX_URL) index = true;
        if (k == NO_INDEX) none = is_true(value);
        if (k != NO_INDEX) bc_registries_add_urls(r, bc_text_of(value), from);
    }
    for (size_t i = 0; i < all->count; i++) {
        const setting *s = &all->list[i];
        if (all->over[s->key]) continue;
        if (s->key == NO_INDEX) {
            none = none || is_true(s->value);
            continue;
        }
        if (s->key == INDEX_URL && s->value[0] != '\0') index = true;
        add_setting(r, s);
    }
    if (!index && !none) add_default(r);
}
