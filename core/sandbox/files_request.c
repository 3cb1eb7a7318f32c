#include <stdio.h>
#include <string.h>
#include "base/limits.h"
#include "files.h"

static int check_path(const char *path, size_t len, const char *what, barchan_error *err)
{
    if (path == NULL) return bc_error_set(err, BARCHAN_EINVAL, "%s is NULL", what);
    if (len == 0) len = strlen(path);
    if (len == 0) return bc_error_set(err, BARCHAN_EINVAL, "%s is empty", what);
    if (len >= BC_FRAME_MAX_PATH) {
        return bc_error_set(err, BARCHAN_EINVAL, "%s is longer than %u bytes", what,
                            BC_FRAME_MAX_PATH - 1);
    }
    if (memchr(path, 0, len) != NULL) {
        return bc_error_set(err, BARCHAN_EINVAL, "%s contains a NUL byte", what);
    }
    return 0;
}

int bc_file_check(const barchan_file_request *request, barchan_error *err)
{
    if (request->op < BARCHAN_FILE_READ || (int)request->op > BC_FILE_OP_PACK) {
        return bc_error_set(err, BARCHAN_EINVAL, "unknown file operation %d", (int)request->op);
    }
    int rc = check_path(request->path, request->path_len, "path", err);
    if (rc == 0 && request->op == BARCHAN_FILE_RENAME) {
        rc = check_path(request->new_path, request->new_path_len, "new_path", err);
    }
    if (rc < 0) return rc;
    if (request->data == NULL && request->data_len > 0) {
        return bc_error_set(err, BARCHAN_EINVAL, "data is NULL but data_len is not 0");
    }
    if (request->data_len > 0 && request->source != NULL) {
        return bc_error_set(err, BARCHAN_EINVAL, "data and source exclude each other");
    }
    if (request->depth < 0 || request->depth > BC_FILE_MAX_DEPTH) {
        return bc_error_set(err, BARCHAN_EINVAL, "depth is 0 to %d", BC_FILE_MAX_DEPTH);
    }
    if (request->offset > INT64_MAX || request->limit > INT64_MAX) {
        return bc_error_set(err, BARCHAN_EINVAL, "offset or limit is too large");
    }
    if (request->op == BARCHAN_FILE_READ && request->sink == NULL &&
        request->limit > BC_FILE_MAX_READ_BYTES) {
        return bc_error_set(err, BARCHAN_ELIMIT,
                            "at most %llu bytes can be read at once; use a sink for more",
                            (unsigned long long)BC_FILE_MAX_READ_BYTES);
    }
    if (request->timeout_ms < 0) return bc_error_set(err, BARCHAN_EINVAL, "timeout_ms is negative");
    return 0;
}

int bc_file_encode(bc_buf *out, const barchan_file_request *request)
{
    uint32_t flags = request->recursive ? BC_FILE_RECURSIVE : 0;
    uint64_t limit = request->limit;
    if (request->op == BARCHAN_FILE_READ && request->sink == NULL) {
        if (limit == 0) flags |= BC_FILE_WHOLE;
        if (limit == 0) limit = BC_FILE_MAX_READ_BYTES;
    }
    int rc = bc_put_wire_u32(out, (uint32_t)request->op);
    if (rc == 0) rc = bc_put_wire_u32(out, flags);
    if (rc == 0) rc = bc_put_wire_u32(out, request->mode);
    if (rc == 0) rc = bc_put_wire_u32(out, (uint32_t)request->depth);
    if (rc == 0) rc = bc_put_wire_u64(out, request->offset);
    if (rc == 0) rc = bc_put_wire_u64(out, limit);
    size_t len = request->path_len == 0 ? strlen(request->path) : request->path_len;
    if (rc == 0) rc = bc_put_wire_string(out, request->path, len);
    if (request->op != BARCHAN_FILE_RENAME) return rc < 0 ? rc : bc_put_wire_string(out, "", 0);
    len = request->new_path_len == 0 ? strlen(request->new_path) : request->new_path_len;
    return rc < 0 ? rc : bc_put_wire_string(out, request->new_path, len);
}

void bc_file_describe(const barchan_file_call *call, char *text, size_t cap)
{
    static const char *const verbs[] = {
        "?",     "read",   "write",  "append to",           "list", "stat",
        "mkdir", "remove", "rename", "list the changes of", "pack"};
    size_t len = call->path_len < 128 ? call->path_len : 128;
    size_t at = (size_t)snprintf(text, cap, "%s '", verbs[call->op]);
    for (size_t i = 0; i < len && at + 5 < cap; i++) {
        unsigned char c = (unsigned char)call->path[i];
        text[at++] = c < 0x20 || c == 0x7F ? '?' : (char)c;
    }
    snprintf(text + at, cap - at, "%s'", len < call->path_len ? "…" : "");
}
