/*
 * apt: its sources in both forms, its lists of mirrors, and the proxies of its configuration.
 * sources.list(5), apt.conf(5), apt-transport-mirror(1)
 */
#include <stdio.h>
#include <string.h>
#include "base/cleanup.h"
#include "registry_files.h"

/* ---- addresses ---- */

static void read_mirrors(bc_registries *r, const char *path)
{
    char from[BC_REGISTRY_FROM];
    cleanup_buf bc_buf file;
    bc_buf_init(&file, BC_REGISTRIES_MAX_FILE_BYTES);
    if (!bc_registries_file(r, path, &file)) return;
    bc_registry_from(from, "apt", path);
    bc_text rest = {bc_buf_data(&file), file.len}, line, word;
    while (bc_text_line(&rest, &line)) {
        /* The address is the first word; what follows says what it is good for. */
        if (bc_text_word(&line, &word) && word.data[0] != '#') bc_registries_add_url(r, word, from);
    }
}

/* A list of mirrors comes from a file, or from a server that is one more registry. */
static void add_uri(bc_registries *r, bc_text uri, const char *from)
{
    char path[BC_REGISTRY_PATH];
    if (bc_text_begins(uri, "mirror+file:")) {
        uri = (bc_text){uri.data + 12, uri.len - 12};
        if (bc_text_begins(uri, "//")) uri = (bc_text){uri.data + 2, uri.len - 2};
        if (bc_text_copy(uri, path, sizeof path)) read_mirrors(r, path);
        return;
    }
    if (bc_text_begins(uri, "mirror")) {
        bc_registries_note(r, "%s: mirrors that a server lists are not known here", from);
    }
    if (bc_text_begins(uri, "mirror+")) uri = (bc_text){uri.data + 7, uri.len - 7};
    if (bc_text_begins(uri, "mirror://")) {
        int len = snprintf(path, sizeof path, "http%.*s", (int)(uri.len - 6), uri.data + 6);
        uri = (bc_text){path, len > 0 && (size_t)len < sizeof path ? (size_t)len : 0};
    }
    bc_registries_add_url(r, uri, from);
}

/* ---- sources ---- */

/* deb [options] address suite component… */
static void read_list(bc_registries *r, const char *path, void *ud)
{
    char from[BC_REGISTRY_FROM];
    cleanup_buf bc_buf file;
    bc_buf_init(&file, BC_REGISTRIES_MAX_FILE_BYTES);
    (void)ud;
    if (!bc_registries_file(r, path, &file)) return;
    bc_registry_from(from, "apt", path);
    bc_text rest = {bc_buf_data(&file), file.len}, line, word;
    while (bc_text_line(&rest, &line)) {
        if (!bc_text_word(&line, &word)) continue;
        if (!bc_text_is(word, "deb") && !bc_text_is(word, "deb-src")) continue;
        line = bc_text_trim(line);
        const char *close = line.len == 0 ? NULL : memchr(line.data, ']', line.len);
        if (line.len > 0 && line.data[0] == '[' && close != NULL) {
            line.len -= (size_t)(close + 1 - line.data);
            line.data = close + 1;
        }
        if (bc_text_word(&line, &word)) add_uri(r, word, from);
    }
}

typedef struct stanza {
    bc_text uris[BC_REGISTRIES_MAX_LINES]; /* the lines of its addresses */
    size_t count;
    bool disabled, in_uris;
} stanza;

static void end_stanza(bc_registries *r, stanza *s, const char *from)
{
    bc_text word;
    for (size_t i = 0; i < s->count && !s->disabled; i++)
        while (bc_text_word(&s->uris[i], &word))
            add_uri(r, word, from);
    *s = (stanza){.count = 0};
}

static void read_stanza_line(bc_registries *r, stanza *s, bc_text line, const char *from)
{
    bool more = line.data[0] == ' ' || line.data[0] == '\t';
    const char *colon = memchr(line.data, ':', line.len);
    bc_text value = line;
    if (!more) {
        if (colon == NULL) return;
        bc_text name = bc_text_trim((bc_text){line.data, (size_t)(colon - line.data)});
        value = bc_text_trim((bc_text){colon + 1, line.len - (size_t)(colon + 1 - line.data)});
        s->in_uris = bc_text_is(name, "uris");
        bool no = bc_text_is(value, "no") || bc_text_is(value, "false") || bc_text_is(value, "off");
        if (bc_text_is(name, "enabled")) s->disabled = no || bc_text_is(value, "0");
    }
    if (!s->in_uris) return;
    if (s->count == BC_REGISTRIES_MAX_LINES) {
        bc_registries_note(r, "%s: more addresses than are read", from);
        return;
    }
    s->uris[s->count++] = value;
}

/* deb822: fields "URIs:" and "Enabled:", stanzas between empty lines. */
static void read_sources(bc_registries *r, const char *path, void *ud)
{
    char from[BC_REGISTRY_FROM];
    cleanup_buf bc_buf file;
    bc_buf_init(&file, BC_REGISTRIES_MAX_FILE_BYTES);
    stanza s = {.count = 0};
    (void)ud;
    if (!bc_registries_file(r, path, &file)) return;
    bc_registry_from(from, "apt", path);
    bc_text rest = {bc_buf_data(&file), file.len}, line;
    while (bc_text_line(&rest, &line)) {
        if (bc_text_trim(line).len == 0) {
            end_stanza(r, &s, from);
        } else if (line.data[0] != '#') {
            read_stanza_line(r, &s, line, from);
        }
    }
    end_stanza(r, &s, from);
}

/* ---- proxies ---- */

enum { SCOPES = 16, SCOPE_BYTES = 256 };

/* The name that is being read: the scopes around it, joined with "::". */
typedef struct scope {
    char name[SCOPE_BYTES];
    size_t ends[SCOPES]; /* the length of the name before each brace */
    int depth;
} scope;

static bool is_proxy(const char *name)
{
    bc_text text = {name, strlen(name)};
    return bc_text_is(text, "Acquire::http::Proxy") || bc_text_is(text, "Acquire::https::Proxy") ||
           bc_text_is(text, "Acquire::Proxy");
}

static void append_name(scope *s, bc_text word)
{
    size_t at = strlen(s->name);
    if (at + word.len + 3 > sizeof s->name) return;
    snprintf(s->name + at, sizeof s->name - at, "%s%.*s", at > 0 ? "::" : "", (int)word.len,
             word.data);
}

/* The next word, quoted text or mark, comments skipped; *quoted tells the second kind. */
static bool next_token(bc_text *rest, bc_text *token, bool *quoted)
{
    for (;;) {
        bc_text at = bc_text_trim(*rest);
        const char *end = NULL;
        if (at.len == 0) return false;
        if (at.data[0] == '#' || bc_text_begins(at, "//"))
            end = memchr(at.data, '\n', at.len);
        else if (bc_text_begins(at, "/*"))
            end = memmem(at.data, at.len, "*/", 2);
        else
            break;
        if (end == NULL) return false;
        size_t used = (size_t)(end - at.data) + (*end == '*' ? 2 : 1);
        *rest = (bc_text){at.data + used, at.len - used};
    }
    *rest = bc_text_trim(*rest);
    *quoted = rest->data[0] == '"';
    size_t len = 1, skip = *quoted ? 1 : 0;
    if (*quoted) {
        const char *close = memchr(rest->data + 1, '"', rest->len - 1);
        len = close == NULL ? rest->len - 1 : (size_t)(close - rest->data) - 1;
    } else if (strchr("{};", rest->data[0]) == NULL) {
        while (len < rest->len && strchr(" \t\r\n{};\"", rest->data[len]) == NULL)
            len++;
    }
    *token = (bc_text){rest->data + skip, len};
    size_t used = len + 2 * skip < rest->len ? len + 2 * skip : rest->len;
    *rest = (bc_text){rest->data + used, rest->len - used};
    return true;
}

static bool step(bc_registries *r, scope *s, bc_text token, bool quoted, const char *from)
{
    size_t outer = s->depth > 0 ? s->ends[s->depth - 1] : 0;
    char mark = !quoted && token.len == 1 ? token.data[0] : '\0';
    if (mark == '{') {
        if (s->depth == SCOPES) return false;
        s->ends[s->depth++] = strlen(s->name);
    } else if (mark == '}') {
        if (s->depth > 0) s->depth--;
        s->name[s->depth > 0 ? s->ends[s->depth - 1] : 0] = '\0';
    } else if (mark == ';') {
        s->name[outer] = '\0';
    } else if (is_proxy(s->name)) {
        bc_registries_add_url(r, token, from);
    } else if (!quoted) {
        append_name(s, token);
    }
    return true;
}

static void read_conf(bc_registries *r, const char *path, void *ud)
{
    char from[BC_REGISTRY_FROM];
    cleanup_buf bc_buf file;
    bc_buf_init(&file, BC_REGISTRIES_MAX_FILE_BYTES);
    (void)ud;
    if (!bc_registries_file(r, path, &file)) return;
    bc_registry_from(from, "apt: proxy", path);
    bc_text rest = {bc_buf_data(&file), file.len}, token;
    scope s = {.depth = 0};
    bool quoted;
    while (next_token(&rest, &token, &quoted)) {
        if (step(r, &s, token, quoted, from)) continue;
        bc_registries_note(r, "%s: deeper than is read", from);
        return;
    }
}

void bc_registries_apt(bc_registries *r)
{
    if (!bc_registries_exists(r, "/etc/apt")) {
        bc_registries_note(r, "apt: not installed");
        return;
    }
    read_list(r, "/etc/apt/sources.list", NULL);
    bc_registries_each(r, "/etc/apt/sources.list.d", "", ".list", read_list, NULL);
    bc_registries_each(r, "/etc/apt/sources.list.d", "", ".sources", read_sources, NULL);
    read_conf(r, "/etc/apt/apt.conf", NULL);
    bc_registries_each(r, "/etc/apt/apt.conf.d", "", "", read_conf, NULL);
}
