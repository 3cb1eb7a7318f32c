/* Starting to apply changes: what is asked for, checked and copied; and waiting for it. */
#include "apply.h"

#include <stdlib.h>
#include <string.h>

static void on_token(void *ud)
{
    barchan_apply_cancel(ud);
}

static int copy_paths(barchan_apply_call *call, const char *const *paths, barchan_error *err)
{
    size_t count = 0;
    if (paths == NULL) return 0;
    while (paths[count] != NULL) {
        const char *path = paths[count++];
        if (path[0] == '\0' || path[0] == '/' || path[strlen(path) - 1] == '/') {
            return bc_error_set(err, BARCHAN_EINVAL,
                                "paths: '%.64s' must be relative to the mount, as in the list of "
                                "changes",
                                path);
        }
    }
    call->paths = calloc(count + 1, sizeof *call->paths);
    for (size_t i = 0; call->paths != NULL && i < count; i++) {
        call->paths[i] = strdup(paths[i]);
        if (call->paths[i] == NULL) return bc_error_nomem(err);
    }
    return call->paths == NULL ? bc_error_nomem(err) : 0;
}

static int check_options(const barchan_apply_options *options, const char *dest, barchan_error *err)
{
    if (dest == NULL || dest[0] == '\0') {
        return bc_error_set(err, BARCHAN_EINVAL, "a folder to apply to is needed");
    }
    if (options->on_conflict < BARCHAN_ON_CONFLICT_REFUSE ||
        options->on_conflict > BARCHAN_ON_CONFLICT_OVERWRITE) {
        return bc_error_set(err, BARCHAN_EINVAL, "unknown on_conflict %d",
                            (int)options->on_conflict);
    }
    if (options->timeout_ms < 0) return bc_error_set(err, BARCHAN_EINVAL, "timeout_ms is negative");
    return 0;
}

static int open_folders(barchan_apply_call *call, const char *dest, barchan_error *err)
{
    int rc = bc_host_tree_open(&call->dest, dest);
    if (rc < 0) return bc_error_set_os(err, -rc, "open the folder");
    if (call->mount.source != NULL) bc_host_tree_open(&call->source, call->mount.source);
    call->same_tree = bc_host_tree_is_same(&call->dest, &call->source);
    return 0;
}

static int open_call(barchan_apply_call *call, barchan_sandbox *sbx, const char *dest,
                     const barchan_apply_options *options, barchan_error *err)
{
    call->rt = sbx->rt;
    call->sbx = sbx;
    bc_sandbox_ref(sbx);
    call->on_conflict = options->on_conflict;
    call->dry_run = options->dry_run != 0;
    call->links = options->links != 0;
    call->timeout_ms = options->timeout_ms;
    call->max_bytes = options->max_bytes == 0 ? sbx->limits.disk_bytes : options->max_bytes;
    call->dest_path = strdup(dest);
    if (call->dest_path == NULL) return bc_error_nomem(err);
    int rc = copy_paths(call, options->paths, err);
    if (rc == 0) rc = bc_mounts_find_copy(sbx, options->target, 0, &call->mount, err);
    if (rc == 0) rc = open_folders(call, dest, err);
    if (rc == 0) {
        rc = bc_cancel_watch_open(&call->cancel, sbx->rt, options->cancel, on_token, call, err);
    }
    if (rc < 0) return rc;
    const barchan_file_request request = {.struct_size = sizeof request,
                                          .op = BARCHAN_FILE_CHANGES,
                                          .path = call->mount.target,
                                          .timeout_ms = call->timeout_ms};
    return barchan_sandbox_file_start(&call->file, sbx, &request, bc_apply_listed, call, err);
}

int barchan_sandbox_apply_changes_start(barchan_apply_call **out, barchan_sandbox *sbx,
                                        const char *dest, const barchan_apply_options *given,
                                        barchan_apply_done_fn done, void *ud, barchan_error *err)
{
    BC_OPERATION("sandbox.apply");
    barchan_apply_options options;
    barchan_apply_call *call = NULL;
    if (out != NULL) *out = NULL;
    int rc = bc_sandbox_check(sbx, err);
    if (rc == 0 && done == NULL) rc = bc_error_set(err, BARCHAN_EINVAL, "done is needed");
    if (rc == 0) rc = bc_options_copy(&options, sizeof options, given, err);
    if (rc == 0) rc = check_options(&options, dest, err);
    if (rc == 0) {
        call = calloc(1, sizeof *call);
        rc = call == NULL ? bc_error_nomem(err) : 0;
    }
    if (rc == 0) {
        call->dest.fd = call->source.fd = call->parent_fd = call->out_fd = -1;
        call->compare.fds[0] = call->compare.fds[1] = -1;
        rc = open_call(call, sbx, dest, &options, err);
    }
    if (rc < 0) {
        if (call != NULL) bc_apply_free(call);
        if (dest != NULL && err != NULL) bc_error_context(err, "apply changes to '%.128s'", dest);
        return rc;
    }
    call->done = done;
    call->ud = ud;
    if (out != NULL) *out = call;
    return 0;
}

/* ---- waiting ---- */

struct apply_wait {
    bc_outcome outcome;
    barchan_apply_result *result;
};

static void on_applied(barchan_apply_result *result, const barchan_error *err, void *ud)
{
    struct apply_wait *wait = ud;
    bc_outcome_set(&wait->outcome, err);
    if (err == NULL && wait->result != NULL) {
        *wait->result = *result;
        *result = (barchan_apply_result){0};
    }
}

int barchan_sandbox_apply_changes(barchan_sandbox *sbx, const char *dest,
                                  const barchan_apply_options *options,
                                  barchan_apply_result *result, barchan_error *err)
{
    BC_OPERATION("sandbox.apply");
    struct apply_wait wait = {.result = result};
    if (result != NULL) *result = (barchan_apply_result){0};
    int rc = bc_sandbox_check(sbx, err);
    if (rc < 0) return rc;
    barchan_runtime *rt = sbx->rt;
    rc = bc_runtime_may_wait(rt, err);
    if (rc == 0) {
        rc = barchan_sandbox_apply_changes_start(NULL, sbx, dest, options, on_applied, &wait, err);
    }
    return rc < 0 ? rc : bc_outcome_wait(&wait.outcome, rt, err);
}

void barchan_apply_result_clear(barchan_apply_result *result)
{
    if (result == NULL) return;
    for (size_t i = 0; i < result->entry_count; i++) {
        free(result->entries[i].path);
    }
    free(result->entries);
    *result = (barchan_apply_result){0};
}
