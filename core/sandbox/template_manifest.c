/* manifest.json of a template: what it begins from, how much it holds, how it was made. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/cleanup.h"
#include "base/json_view.h"
#include "base/json_write.h"
#include "base/limits.h"
#include "templates.h"

#define MANIFEST "manifest.json"
#define VERSION 1

static int put(bc_buf *out, const char *key, int64_t value)
{
    return bc_buf_appendf(out, ",\"%s\":%lld", key, (long long)value);
}

static int put_text(bc_buf *out, const char *key, const char *text)
{
    int rc = bc_buf_appendf(out, ",\"%s\":", key);
    return rc < 0 ? rc : bc_json_write_string(out, text, strlen(text));
}

int bc_manifest_write(int folder_fd, const barchan_template *info, barchan_error *err)
{
    bc_buf text cleanup_buf;
    bc_buf_init(&text, BC_TEMPLATE_MAX_MANIFEST);
    int rc = bc_buf_appendf(&text, "{\"version\":%d", VERSION);
    if (rc == 0) rc = put_text(&text, "base", info->base);
    if (rc == 0) rc = put_text(&text, "note", info->note);
    if (rc == 0) rc = put(&text, "created_ms", info->created_ms);
    if (rc == 0) rc = put(&text, "entries", (int64_t)info->entries);
    if (rc == 0) rc = put(&text, "bytes", (int64_t)info->bytes);
    if (rc == 0) rc = put(&text, "left_out", (int64_t)info->left_out);
    if (rc == 0) rc = bc_buf_append_string(&text, "}\n");
    if (rc < 0) return bc_error_nomem(err);
    cleanup_close int fd =
        openat(folder_fd, MANIFEST, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    ssize_t n = fd < 0 ? -1 : write(fd, bc_buf_data(&text), text.len);
    if (n != (ssize_t)text.len) {
        return bc_error_set_os(err, n < 0 ? errno : ENOSPC, "write its manifest");
    }
    return 0;
}

static int take_fields(const json_t *view, barchan_template *info, barchan_error *err)
{
    const char *base = bc_json_get_string(view, "base", NULL);
    const char *note = bc_json_get_string(view, "note", NULL);
    int64_t numbers[] = {
        bc_json_get_integer(view, "created_ms", 0), bc_json_get_integer(view, "entries", 0),
        bc_json_get_integer(view, "bytes", 0), bc_json_get_integer(view, "left_out", 0)};
    for (size_t i = 1; i < 4; i++) {
        if (numbers[i] < 0) numbers[i] = 0;
    }
    if (bc_json_get_integer(view, "version", 0) != VERSION) {
        return bc_error_set(err, BARCHAN_EUNSUPPORTED,
                            "it was made by another version of Barchan: build it again");
    }
    if (base == NULL || (strcmp(base, "host") != 0 && base[0] != '/') ||
        strlen(base) >= BC_FRAME_MAX_PATH) {
        return bc_error_set(err, BARCHAN_EPROTOCOL, "its manifest names no base");
    }
    info->created_ms = numbers[0];
    info->entries = (uint64_t)numbers[1];
    info->bytes = (uint64_t)numbers[2];
    info->left_out = (uint64_t)numbers[3];
    info->base = strdup(base);
    info->note = strdup(note == NULL ? "" : note);
    return info->base == NULL || info->note == NULL ? bc_error_nomem(err) : 0;
}

int bc_manifest_read(int folder_fd, barchan_template *info, barchan_error *err)
{
    json_t *view cleanup_json = NULL;
    char *text cleanup_free = malloc(BC_TEMPLATE_MAX_MANIFEST);
    *info = (barchan_template){0};
    if (text == NULL) return bc_error_nomem(err);
    cleanup_close int fd =
        openat(folder_fd, MANIFEST, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) return bc_error_set_os(err, errno, "open its manifest");
    ssize_t n = read(fd, text, BC_TEMPLATE_MAX_MANIFEST);
    if (n < 0) return bc_error_set_os(err, errno, "read its manifest");
    int rc = bc_json_view(&view, text, (size_t)n, 0, err);
    if (rc == 0) rc = take_fields(view, info, err);
    if (rc < 0) barchan_template_clear(info);
    return rc;
}

void barchan_template_clear(barchan_template *info)
{
    if (info == NULL) return;
    free(info->name);
    free(info->base);
    free(info->note);
    *info = (barchan_template){0};
}
