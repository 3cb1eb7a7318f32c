/* The file operations that wait, and the common ones in a line each. */
#include "files.h"

struct file_wait {
    bc_outcome outcome;
    barchan_file_result *result;
};

static void on_done(barchan_file_result *result, const barchan_error *err, void *ud)
{
    struct file_wait *wait = ud;
    bc_outcome_set(&wait->outcome, err);
    if (err == NULL && wait->result != NULL) {
        *wait->result = *result;
        *result = (barchan_file_result){0}; /* its parts are the caller's now */
    }
}

int barchan_sandbox_file(barchan_sandbox *sbx, const barchan_file_request *request,
                         barchan_file_result *result, barchan_error *err)
{
    BC_OPERATION("sandbox.file");
    struct file_wait wait = {.result = result};
    if (result != NULL) *result = (barchan_file_result){0};
    int rc = bc_sandbox_check(sbx, err);
    if (rc < 0) return rc;
    barchan_runtime *rt = sbx->rt;
    rc = bc_runtime_may_wait(rt, err);
    if (rc == 0) rc = barchan_sandbox_file_start(NULL, sbx, request, on_done, &wait, err);
    return rc < 0 ? rc : bc_outcome_wait(&wait.outcome, rt, err);
}

int barchan_file_read(barchan_sandbox *sbx, const char *path, barchan_bytes *out,
                      barchan_error *err)
{
    BC_OPERATION("sandbox.file");
    barchan_file_result result;
    const barchan_file_request request = {
        .struct_size = sizeof request, .op = BARCHAN_FILE_READ, .path = path};
    if (out == NULL) return bc_error_set(err, BARCHAN_EINVAL, "out is NULL");
    int rc = barchan_sandbox_file(sbx, &request, &result, err);
    if (rc == 0) *out = result.data;
    return rc;
}

int barchan_file_write(barchan_sandbox *sbx, const char *path, const void *data, size_t len,
                       barchan_error *err)
{
    const barchan_file_request request = {.struct_size = sizeof request,
                                          .op = BARCHAN_FILE_WRITE,
                                          .path = path,
                                          .data = data,
                                          .data_len = len};
    return barchan_sandbox_file(sbx, &request, NULL, err);
}

int barchan_file_mkdir(barchan_sandbox *sbx, const char *path, barchan_error *err)
{
    const barchan_file_request request = {
        .struct_size = sizeof request, .op = BARCHAN_FILE_MKDIR, .path = path};
    return barchan_sandbox_file(sbx, &request, NULL, err);
}

int barchan_file_remove(barchan_sandbox *sbx, const char *path, int recursive, barchan_error *err)
{
    const barchan_file_request request = {.struct_size = sizeof request,
                                          .op = BARCHAN_FILE_REMOVE,
                                          .path = path,
                                          .recursive = recursive};
    return barchan_sandbox_file(sbx, &request, NULL, err);
}

int barchan_file_changes(barchan_sandbox *sbx, const char *target, barchan_file_result *result,
                         barchan_error *err)
{
    BC_OPERATION("sandbox.file");
    const barchan_file_request request = {
        .struct_size = sizeof request, .op = BARCHAN_FILE_CHANGES, .path = target};
    if (result == NULL) return bc_error_set(err, BARCHAN_EINVAL, "result is NULL");
    return barchan_sandbox_file(sbx, &request, result, err);
}

int barchan_file_exists(barchan_sandbox *sbx, const char *path, barchan_error *err)
{
    const barchan_file_request request = {
        .struct_size = sizeof request, .op = BARCHAN_FILE_STAT, .path = path};
    barchan_error why;
    int rc = barchan_sandbox_file(sbx, &request, NULL, &why);
    if (rc == 0) return 1;
    if (rc == BARCHAN_ENOTFOUND || rc == BARCHAN_ENOTDIR) return 0;
    if (err != NULL) *err = why;
    return rc;
}
