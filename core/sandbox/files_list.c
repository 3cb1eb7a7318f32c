#include <stdlib.h>
#include <string.h>
#include "files.h"

static int compare(const void *a, const void *b)
{
    const barchan_file_info *x = a, *y = b;
    size_t len = x->path_len < y->path_len ? x->path_len : y->path_len;
    int order = memcmp(x->path, y->path, len);
    return order != 0 ? order : (x->path_len > y->path_len) - (x->path_len < y->path_len);
}

/* A path below a folder, in its one spelling: nothing that would lead out of it. */
static int is_below(const char *path)
{
    for (const char *at = path;; at++) {
        size_t len = strcspn(at, "/");
        if (len == 0 || (len <= 2 && strncmp(at, "..", len) == 0)) return 0;
        at += len;
        if (*at == '\0') return 1;
    }
}

static int read_entry(bc_wire_reader *in, barchan_file_op op, barchan_file_info *info)
{
    uint32_t change = op == BARCHAN_FILE_CHANGES ? bc_wire_u32(in) : 0;
    uint32_t type = bc_wire_u32(in);
    info->mode = bc_wire_u32(in);
    info->size = bc_wire_u64(in);
    info->mtime_ms = (int64_t)bc_wire_u64(in);
    const char *path = bc_wire_string(in, BC_FILE_MAX_ENTRY_PATH);
    const char *target = bc_wire_string(in, BC_FRAME_MAX_PATH);
    if (in->bad || type < BARCHAN_FILE_REGULAR || type > BARCHAN_FILE_DEVICE) return -1;
    if (op == BARCHAN_FILE_CHANGES &&
        (change < BARCHAN_FILE_ADDED || change > BARCHAN_FILE_DELETED || !is_below(path))) {
        return -1;
    }
    info->change = (barchan_file_change)change;
    info->type = (barchan_file_type)type;
    info->path_len = strlen(path);
    info->path = strdup(path);
    if (type == BARCHAN_FILE_SYMLINK) info->link_target = strdup(target);
    if (info->path == NULL || (type == BARCHAN_FILE_SYMLINK && info->link_target == NULL)) {
        return BARCHAN_ENOMEM;
    }
    return 0;
}

/* Sorted: one change of each name. */
static int has_doubles(const barchan_file_result *result)
{
    for (size_t i = 1; i < result->entry_count; i++) {
        if (compare(&result->entries[i - 1], &result->entries[i]) == 0) return 1;
    }
    return 0;
}

int bc_file_read_entries(const bc_buf *records, barchan_file_op op, barchan_file_result *result)
{
    bc_wire_reader in = {.at = (const unsigned char *)bc_buf_data(records)};
    in.end = in.at + records->len;
    size_t capacity = 0;
    while (in.at < in.end) {
        if (result->entry_count == BC_FILE_MAX_ENTRIES) return -1;
        if (result->entry_count == capacity) {
            capacity = capacity == 0 ? 16 : capacity * 2;
            barchan_file_info *entries = realloc(result->entries, capacity * sizeof *entries);
            if (entries == NULL) return BARCHAN_ENOMEM;
            result->entries = entries;
        }
        barchan_file_info *info = &result->entries[result->entry_count++];
        *info = (barchan_file_info){0};
        int rc = read_entry(&in, op, info);
        if (rc < 0) return rc;
    }
    if (result->entry_count > 1) {
        qsort(result->entries, result->entry_count, sizeof *result->entries, compare);
    }
    if (op == BARCHAN_FILE_CHANGES && has_doubles(result)) return -1;
    return 0;
}

void barchan_file_result_clear(barchan_file_result *result)
{
    if (result == NULL) return;
    barchan_bytes_clear(&result->data);
    for (size_t i = 0; result->entries != NULL && i < result->entry_count; i++) {
        free(result->entries[i].path);
        free(result->entries[i].link_target);
    }
    free(result->entries);
    *result = (barchan_file_result){0};
}
