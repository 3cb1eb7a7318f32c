/*
 * The life of a call that applies changes: the list of them comes from the guest, each is checked
 * against the host's folder, and if nothing stands against it they are applied: what is new or
 * changed first, in the order of the paths, then what is to go, the deepest first, then what takes
 * the place of a folder. It works in slices, each in a dispatch of its own.
 */
#include "apply.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/limits.h"

static void step(bc_defer *defer);

/* ---- its end ---- */

void bc_apply_free(barchan_apply_call *call)
{
    bc_cancel_watch_close(call->cancel);
    bc_defer_cancel(&call->defer);
    bc_apply_file_abort(call);
    bc_apply_compare_end(call);
    bc_host_tree_close(&call->dest);
    bc_host_tree_close(&call->source);
    for (size_t i = 0; i < call->change_count; i++) {
        free(call->changes[i].info.path);
        free(call->changes[i].info.link_target);
    }
    free(call->changes);
    for (char **path = call->paths; path != NULL && *path != NULL; path++) {
        free(*path);
    }
    free(call->paths);
    free(call->dest_path);
    if (call->sbx != NULL) bc_sandbox_unref(call->sbx);
    free(call);
}

static int fill_result(barchan_apply_call *call, barchan_apply_result *result)
{
    result->entries = calloc(call->change_count + 1, sizeof *result->entries);
    if (result->entries == NULL) return bc_error_nomem(&call->error);
    for (size_t i = 0; i < call->change_count; i++) {
        struct change *change = &call->changes[i];
        result->entries[result->entry_count++] =
            (barchan_apply_entry){.path = change->info.path,
                                  .path_len = change->info.path_len,
                                  .change = change->info.change,
                                  .type = change->info.type,
                                  .outcome = change->outcome,
                                  .why = change->why};
        change->info.path = NULL; /* taken */
        if (change->outcome == BARCHAN_APPLY_APPLIED) result->applied++;
        if (change->outcome == BARCHAN_APPLY_CONFLICT) result->conflicts++;
        if (change->outcome == BARCHAN_APPLY_SKIPPED) result->skipped++;
    }
    result->bytes = call->bytes;
    return 0;
}

static void finish(barchan_apply_call *call)
{
    barchan_apply_result result = {0};
    if (call->error.code == 0) fill_result(call, &result);
    if (call->error.code != 0) {
        if (call->applied > 0) {
            bc_error_context(&call->error, "apply changes to '%.128s' (%zu of %zu are applied)",
                             call->dest_path, call->applied, call->change_count);
        } else {
            bc_error_context(&call->error, "apply changes to '%.128s'", call->dest_path);
        }
        bc_error_where(&call->error, "sandbox.apply");
        call->done(NULL, &call->error, call->ud);
    } else {
        call->done(&result, NULL, call->ud);
    }
    barchan_apply_result_clear(&result);
    bc_apply_free(call);
}

static void go_on(barchan_apply_call *call)
{
    bc_defer_schedule(call->rt, &call->defer, step);
}

void barchan_apply_cancel(barchan_apply_call *call)
{
    if (call == NULL || call->error.code != 0) return;
    bc_error_set(&call->error, BARCHAN_ECANCELLED, "cancelled");
    if (call->file != NULL) {
        barchan_file_cancel(call->file);
    } else {
        go_on(call);
    }
}

/* ---- the list ---- */

static int is_at_or_below(const char *path, const char *tree)
{
    size_t len = strlen(tree);
    return strncmp(path, tree, len) == 0 && (path[len] == '/' || path[len] == '\0');
}

/* What was asked for, and the new folders that it is in. */
static int is_wanted(const barchan_apply_call *call, const barchan_file_info *info)
{
    if (call->paths == NULL) return 1;
    for (char **path = call->paths; *path != NULL; path++) {
        if (is_at_or_below(info->path, *path)) return 1;
        if (info->change != BARCHAN_FILE_DELETED && info->type == BARCHAN_FILE_DIRECTORY &&
            is_at_or_below(*path, info->path)) {
            return 1;
        }
    }
    return 0;
}

static int take_changes(barchan_apply_call *call, barchan_file_result *list)
{
    if (list->truncated) {
        return bc_error_set(&call->error, BARCHAN_ELIMIT,
                            "the list of changes is not complete: there are more than 100,000, or "
                            "some lie too deep or could not be looked at, as in folders that "
                            "commands have closed to themselves; nothing was applied. Remove or "
                            "open those in the sandbox, or download single files");
    }
    call->changes = calloc(list->entry_count + 1, sizeof *call->changes);
    if (call->changes == NULL) return bc_error_nomem(&call->error);
    for (size_t i = 0; i < list->entry_count; i++) {
        barchan_file_info *info = &list->entries[i];
        if (!is_wanted(call, info)) continue;
        call->changes[call->change_count++].info = *info;
        info->path = info->link_target = NULL; /* taken */
    }
    return 0;
}

void bc_apply_listed(barchan_file_result *list, const barchan_error *err, void *ud)
{
    barchan_apply_call *call = ud;
    call->file = NULL;
    if (err != NULL && call->error.code == 0) call->error = *err;
    if (err == NULL && call->error.code == 0) take_changes(call, list);
    call->stage = APPLY_CHECKING;
    go_on(call);
}

/* ---- checking ---- */

static void end_checking(barchan_apply_call *call)
{
    char name[128];
    size_t conflicts = 0;
    const struct change *first = NULL;
    for (size_t i = 0; i < call->change_count; i++) {
        if (call->changes[i].outcome != BARCHAN_APPLY_CONFLICT) continue;
        if (conflicts++ == 0) first = &call->changes[i];
    }
    if (conflicts > 0 && call->on_conflict == BARCHAN_ON_CONFLICT_REFUSE && !call->dry_run) {
        bc_error_set(&call->error, BARCHAN_ECONFLICT,
                     "'%s': %s (conflicts: %zu); nothing was applied",
                     bc_printable(name, sizeof name, first->info.path), first->why, conflicts);
    }
    bc_apply_check_folders(call);
    call->next = 0;
    call->stage = call->dry_run ? APPLY_FINISHED : APPLY_WRITING;
}

/* ---- applying ---- */

/* Notes how one change went. A conflict that arose meanwhile ends the whole, unless they are to be
 * left out. */
static void settle(barchan_apply_call *call, const struct change *change, int rc)
{
    if (rc == 0) call->applied++;
    if (rc != BARCHAN_ECONFLICT || call->error.code != 0) return;
    if (call->on_conflict == BARCHAN_ON_CONFLICT_REFUSE) {
        char name[128];
        bc_error_set(&call->error, BARCHAN_ECONFLICT, "'%s': %s",
                     bc_printable(name, sizeof name, change->info.path), change->why);
    }
}

static int on_bytes(const void *data, size_t len, void *ud)
{
    barchan_apply_call *call = ud;
    return bc_apply_file_write(call, data, len) < 0 ? -1 : 0;
}

static void on_file(barchan_file_result *result, const barchan_error *err, void *ud)
{
    barchan_apply_call *call = ud;
    struct change *change = &call->changes[call->next++];
    (void)result;
    call->file = NULL;
    if (err != NULL && call->error.code == 0) call->error = *err;
    if (call->error.code != 0) {
        bc_apply_file_abort(call);
    } else {
        settle(call, change, bc_apply_file_end(call, change));
    }
    go_on(call);
}

static int start_file(barchan_apply_call *call, struct change *change)
{
    char path[BC_FRAME_MAX_PATH];
    int rc = bc_apply_file_begin(call, change);
    if (rc < 0) return rc;
    size_t len = strlen(call->mount.target); /* both fit: see bc_apply_check */
    memcpy(path, call->mount.target, len);
    path[len] = '/';
    memcpy(path + len + 1, change->info.path, change->info.path_len + 1);
    const barchan_file_request request = {.struct_size = sizeof request,
                                          .op = BARCHAN_FILE_READ,
                                          .path = path,
                                          .sink = on_bytes,
                                          .ud = call,
                                          .timeout_ms = call->timeout_ms};
    rc = barchan_sandbox_file_start(&call->file, call->sbx, &request, on_file, call, &call->error);
    if (rc < 0) bc_apply_file_abort(call);
    return rc;
}

/* 1: a file is on its way, and the call goes on when it is there. */
static int write_one(barchan_apply_call *call, struct change *change)
{
    if (change->outcome != BARCHAN_APPLY_APPLIED || change->info.change == BARCHAN_FILE_DELETED ||
        change->late != (call->stage == APPLY_REPLACING)) {
        return 0;
    }
    int rc;
    if (change->info.type == BARCHAN_FILE_DIRECTORY) {
        rc = bc_apply_folder(call, change);
    } else if (change->info.type == BARCHAN_FILE_SYMLINK) {
        rc = bc_apply_link(call, change);
    } else {
        rc = start_file(call, change);
        if (rc == 0) return 1;
    }
    settle(call, change, rc);
    return 0;
}

static void remove_one(barchan_apply_call *call, struct change *change)
{
    if (change->outcome != BARCHAN_APPLY_APPLIED || change->info.change != BARCHAN_FILE_DELETED) {
        return;
    }
    settle(call, change, bc_apply_remove(call, change));
}

/* ---- slices ---- */

static void next_stage(barchan_apply_call *call)
{
    call->next = 0;
    if (call->stage == APPLY_CHECKING) {
        end_checking(call);
    } else {
        call->stage++;
    }
}

/* AGAIN: in the next slice; WAIT: for a file that is on its way. */
enum done { NEXT, AGAIN, WAIT };

static enum done do_one(barchan_apply_call *call)
{
    size_t at = call->stage == APPLY_REMOVING ? call->change_count - 1 - call->next : call->next;
    struct change *change = &call->changes[at];
    if (call->stage == APPLY_CHECKING) {
        if (bc_apply_check(call, change)) return AGAIN;
    } else if (call->stage == APPLY_REMOVING) {
        remove_one(call, change);
    } else if (write_one(call, change)) {
        return WAIT;
    }
    call->next++;
    return NEXT;
}

static void step(bc_defer *defer)
{
    barchan_apply_call *call = owner_of(defer, barchan_apply_call, defer);
    if (call->error.code == 0) bc_sandbox_check(call->sbx, &call->error);
    for (int i = 0; i < BC_APPLY_SLICE && call->error.code == 0; i++) {
        if (call->stage == APPLY_FINISHED) break;
        if (call->next >= call->change_count) {
            next_stage(call);
            continue;
        }
        enum done done = do_one(call);
        if (done == WAIT) return;
        if (done == AGAIN) break;
    }
    if (call->error.code != 0 || call->stage == APPLY_FINISHED) {
        finish(call);
    } else {
        go_on(call);
    }
}
