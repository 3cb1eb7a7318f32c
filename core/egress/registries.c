#include "registries.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "base/cleanup.h"
#include "base/json_write.h"
#include "policy_entry.h"
#include "registry_files.h"

void bc_registries_note(bc_registries *r, const char *format, ...)
{
    va_list args;
    if (r->note_count == BC_REGISTRIES_MAX_NOTES) return;
    va_start(args, format);
    vsnprintf(r->notes[r->note_count], sizeof r->notes[0], format, args);
    va_end(args);
    for (size_t i = 0; i < r->note_count; i++)
        if (strcmp(r->notes[i], r->notes[r->note_count]) == 0) return;
    r->note_count++;
}

static void add(bc_registries *r, const char *entry, const char *from)
{
    for (size_t i = 0; i < r->count; i++)
        if (strcmp(r->list[i].entry, entry) == 0) return;
    if (r->count == BC_REGISTRIES_MAX) {
        bc_registries_note(r, "more than %d registries: the rest is left out", BC_REGISTRIES_MAX);
        return;
    }
    bc_registry *registry = &r->list[r->count++];
    snprintf(registry->entry, sizeof registry->entry, "%s", entry);
    snprintf(registry->from, sizeof registry->from, "%s", from);
}

/* "host", "host:port", "[v6]:port", behind the user's name and password if there are any. */
static bool read_authority(bc_text text, unsigned port, char out[BC_POLICY_ENTRY_TEXT])
{
    bc_policy_entry entry;
    char copy[BC_POLICY_ENTRY_TEXT], why[BC_POLICY_ENTRY_WHY];
    for (size_t i = text.len; i > 0; i--) {
        if (text.data[i - 1] != '@') continue;
        text = (bc_text){text.data + i, text.len - i};
        break;
    }
    /* A wildcard or a range is an entry, but no host. */
    if (!bc_text_copy(text, copy, sizeof copy) || strpbrk(copy, "*/") != NULL) return false;
    if (bc_policy_entry_read(copy, true, &entry, why) != 0) return false;
    if (entry.port == 0) entry.port = port;
    bc_policy_entry_print(&entry, out);
    return true;
}

void bc_registries_add_url(bc_registries *r, bc_text url, const char *from)
{
    char entry[BC_POLICY_ENTRY_TEXT];
    const char *colon = url.len == 0 ? NULL : memmem(url.data, url.len, "://", 3);
    if (colon == NULL) return;
    bc_text scheme = {url.data, (size_t)(colon - url.data)};
    unsigned port = bc_text_is(scheme, "https") ? 443 : bc_text_is(scheme, "http") ? 80 : 0;
    if (port == 0) {
        if (!bc_text_is(scheme, "file")) bc_registries_note(r, "%s: not http or https", from);
        return;
    }
    size_t begin = scheme.len + 3, end = begin;
    while (end < url.len && strchr("/?#", url.data[end]) == NULL)
        end++;
    if (read_authority((bc_text){url.data + begin, end - begin}, port, entry)) {
        add(r, entry, from);
    } else {
        bc_registries_note(r, "%s: an address that is not understood", from);
    }
}

void bc_registries_add_urls(bc_registries *r, bc_text urls, const char *from)
{
    bc_text word;
    while (bc_text_word(&urls, &word))
        bc_registries_add_url(r, word, from);
}

static int write_pair(bc_buf *out, const char *name, const char *value)
{
    int rc = bc_buf_appendf(out, "\"%s\":", name);
    return rc < 0 ? rc : bc_json_write_string(out, value, strlen(value));
}

static int write_all(const bc_registries *r, bc_buf *out)
{
    int rc = bc_buf_append_string(out, "{\"registries\":[");
    for (size_t i = 0; i < r->count && rc >= 0; i++) {
        rc = bc_buf_append_string(out, i > 0 ? ",{" : "{");
        if (rc >= 0) rc = write_pair(out, "entry", r->list[i].entry);
        if (rc >= 0) rc = bc_buf_append_char(out, ',');
        if (rc >= 0) rc = write_pair(out, "from", r->list[i].from);
        if (rc >= 0) rc = bc_buf_append_char(out, '}');
    }
    if (rc >= 0) rc = bc_buf_append_string(out, "],\"notes\":[");
    for (size_t i = 0; i < r->note_count && rc >= 0; i++) {
        if (i > 0) rc = bc_buf_append_char(out, ',');
        if (rc >= 0) rc = bc_json_write_string(out, r->notes[i], strlen(r->notes[i]));
    }
    return rc < 0 ? rc : bc_buf_append_string(out, "]}");
}

int bc_registries_read(const bc_registries_options *options, bc_buf *out, barchan_error *err)
{
    cleanup_free bc_registries *r = calloc(1, sizeof *r);
    if (r == NULL) return bc_error_nomem(err);
    r->options = options;
    bc_registries_pip(r);
    bc_registries_npm(r);
    bc_registries_apt(r);
    int rc = r->no_memory ? BARCHAN_ENOMEM : write_all(r, out);
    if (rc == BARCHAN_ELIMIT) return bc_error_set(err, rc, "the list of registries is too long");
    return rc < 0 ? bc_error_nomem(err) : 0;
}
