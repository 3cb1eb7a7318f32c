#include "registry_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include "base/cleanup.h"

const char *bc_registries_env(const bc_registries *r, const char *name)
{
    const bc_registries_options *o = r->options;
    const char *value = o->env == NULL ? NULL : o->env(name, o->env_ud);
    return value != NULL && value[0] != '\0' ? value : NULL;
}

static bool under_root(const bc_registries *r, const char *path, char out[BC_REGISTRY_PATH])
{
    const char *root = r->options->root == NULL ? "" : r->options->root;
    int len = snprintf(out, BC_REGISTRY_PATH, "%s%s", root, path);
    return len > 0 && len < BC_REGISTRY_PATH && path[0] == '/';
}

bool bc_registries_exists(const bc_registries *r, const char *path)
{
    char full[BC_REGISTRY_PATH];
    return under_root(r, path, full) && access(full, F_OK) == 0;
}

enum { PIECE = 4096 };

/* 1 all of it, 0 too large, -1 it cannot be read, -2 out of memory. */
static int read_all(int fd, bc_buf *out)
{
    for (;;) {
        char *at = bc_buf_reserve(out, PIECE);
        if (at == NULL && out->len + PIECE <= out->max) return -2;
        if (at == NULL) {
            char more;
            ssize_t n = read(fd, &more, 1);
            return n == 0 ? 1 : 0;
        }
        ssize_t n = read(fd, at, PIECE);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return n == 0 ? 1 : -1;
        bc_buf_commit(out, (size_t)n);
    }
}

bool bc_registries_file(bc_registries *r, const char *path, bc_buf *out)
{
    char full[BC_REGISTRY_PATH];
    struct stat st;
    if (!under_root(r, path, full)) return false;
    /* Without O_NONBLOCK a FIFO would wait for its writer. */
    cleanup_close int fd = open(full, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) {
        if (errno == ENOENT || errno == ENOTDIR) return false;
        bc_registries_note(r, "%s: cannot be read", path);
        return false;
    }
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        bc_registries_note(r, "%s: no regular file", path);
        return false;
    }
    if (st.st_size > (off_t)BC_REGISTRIES_MAX_FILE_BYTES) {
        bc_registries_note(r, "%s: larger than a configuration is", path);
        return false;
    }
    int rc = read_all(fd, out);
    if (rc == -2) r->no_memory = true;
    if (rc == 0 || rc == -1) bc_registries_note(r, "%s: cannot be read", path);
    return rc == 1;
}

/* ---- directories ---- */

typedef struct names {
    char (*list)[256];
    size_t count;
} names;

static int compare_names(const void *a, const void *b)
{
    return strcmp(a, b);
}

static bool fits(const char *name, const char *begin, const char *end)
{
    size_t len = strlen(name), tail = strlen(end);
    return strncmp(name, begin, strlen(begin)) == 0 && len >= tail &&
           strcmp(name + len - tail, end) == 0 && name[0] != '.';
}

static void collect(DIR *dir, const char *begin, const char *end, names *out)
{
    struct dirent *entry;
    while (out->count < BC_REGISTRIES_MAX_FILES && (entry = readdir(dir)) != NULL) {
        if (!fits(entry->d_name, begin, end)) continue;
        snprintf(out->list[out->count++], sizeof *out->list, "%s", entry->d_name);
    }
    qsort(out->list, out->count, sizeof *out->list, compare_names);
}

void bc_registries_each(bc_registries *r, const char *dir, const char *begin, const char *end,
                        bc_registries_name_fn fn, void *ud)
{
    char path[BC_REGISTRY_PATH];
    if (!under_root(r, dir, path)) return;
    DIR *opened = opendir(path);
    if (opened == NULL) return;
    names found = {calloc(BC_REGISTRIES_MAX_FILES, sizeof *found.list), 0};
    if (found.list == NULL) {
        r->no_memory = true;
    } else {
        collect(opened, begin, end, &found);
    }
    closedir(opened);
    for (size_t i = 0; i < found.count; i++) {
        if (bc_path_join(path, dir, found.list[i])) fn(r, path, ud);
    }
    free(found.list);
}

void bc_registries_each_prefix(bc_registries *r, bc_registries_name_fn fn, void *ud)
{
    char dir[BC_REGISTRY_PATH];
    const char *path = bc_registries_env(r, "PATH");
    int count = 0;
    for (size_t len; path != NULL && *path != '\0' && count < BC_REGISTRIES_MAX_FILES; count++) {
        len = strcspn(path, ":");
        if (bc_text_copy((bc_text){path, len}, dir, sizeof dir) && dir[0] == '/') {
            char *last = strrchr(dir, '/');
            *last = '\0';
            if (dir[0] != '\0') fn(r, dir, ud);
        }
        path += len + (path[len] == ':');
    }
}

/* ---- text ---- */

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\f' || c == '\v';
}

bc_text bc_text_trim(bc_text text)
{
    while (text.len > 0 && is_space(text.data[0])) {
        text.data++;
        text.len--;
    }
    while (text.len > 0 && is_space(text.data[text.len - 1]))
        text.len--;
    return text;
}

bool bc_text_begins(bc_text text, const char *word)
{
    size_t len = strlen(word);
    if (text.len < len) return false;
    for (size_t i = 0; i < len; i++) {
        char c = text.data[i], d = word[i];
        if (c >= 'A' && c <= 'Z') c = (char)(c - 'A' + 'a');
        if (d >= 'A' && d <= 'Z') d = (char)(d - 'A' + 'a');
        if (c != d) return false;
    }
    return true;
}

bool bc_text_is(bc_text text, const char *word)
{
    return text.len == strlen(word) && bc_text_begins(text, word);
}

bool bc_text_line(bc_text *rest, bc_text *line)
{
    if (rest->len == 0) return false;
    const char *end = memchr(rest->data, '\n', rest->len);
    size_t len = end == NULL ? rest->len : (size_t)(end - rest->data);
    *line = (bc_text){rest->data, len};
    len += end != NULL;
    *rest = (bc_text){rest->data + len, rest->len - len};
    if (line->len > 0 && line->data[line->len - 1] == '\r') line->len--;
    return true;
}

bool bc_text_word(bc_text *rest, bc_text *word)
{
    *rest = bc_text_trim(*rest);
    size_t len = 0;
    while (len < rest->len && !is_space(rest->data[len]))
        len++;
    *word = (bc_text){rest->data, len};
    *rest = (bc_text){rest->data + len, rest->len - len};
    return len > 0;
}

bc_text bc_text_quoted(bc_text text, const char *after)
{
    const char *at = text.len == 0 ? NULL : memmem(text.data, text.len, after, strlen(after));
    const char *end = text.data + text.len;
    if (at == NULL) return (bc_text){"", 0};
    at += strlen(after);
    while (at < end && *at != '"' && *at != '\'')
        at++;
    if (at == end) return (bc_text){"", 0};
    const char *close = memchr(at + 1, *at, (size_t)(end - at - 1));
    return close == NULL ? (bc_text){"", 0} : (bc_text){at + 1, (size_t)(close - at - 1)};
}

bool bc_text_copy(bc_text text, char *out, size_t size)
{
    if (text.len >= size || (text.len > 0 && memchr(text.data, '\0', text.len) != NULL)) {
        out[0] = '\0';
        return false;
    }
    memcpy(out, text.data, text.len);
    out[text.len] = '\0';
    return true;
}

bc_text bc_text_of(const char *string)
{
    return (bc_text){string, strlen(string)};
}

static size_t put(char *out, size_t size, size_t at, const char *text)
{
    size_t len = strlen(text), room = size - 1 - at;
    if (len > room) len = room;
    memcpy(out + at, text, len);
    out[at + len] = '\0';
    return at + len;
}

bool bc_path_join(char out[BC_REGISTRY_PATH], const char *a, const char *b)
{
    size_t at = put(out, BC_REGISTRY_PATH, 0, a);
    at = put(out, BC_REGISTRY_PATH, at, "/");
    put(out, BC_REGISTRY_PATH, at, b);
    return strlen(a) + 1 + strlen(b) < BC_REGISTRY_PATH;
}

void bc_registry_from(char out[BC_REGISTRY_FROM], const char *who, const char *path)
{
    size_t at = put(out, BC_REGISTRY_FROM, 0, who);
    at = put(out, BC_REGISTRY_FROM, at, ": ");
    put(out, BC_REGISTRY_FROM, at, path);
}
