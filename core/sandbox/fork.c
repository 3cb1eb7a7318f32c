/* Forks: a snapshot without a name, then as many sandboxes from it as were asked for; all or none.
 */
#include <stdlib.h>
#include <string.h>
#include "base/limits.h"
#include "snapshot.h"

struct fork_call {
    barchan_snapshot_call call; /* first */
    barchan_runtime *rt;
    barchan_sandbox *sbx; /* a reference */
    barchan_fork_fn done;
    void *ud;
    bc_cancel_watch *cancel;
    barchan_snapshot_call *snapshot; /* while it is taken */
    bc_template_build build;
    barchan_error error; /* code 0: none so far */
    size_t wanted, opened, waiting;
    barchan_sandbox *forks[BARCHAN_FORK_MAX];
};

static void free_fork(struct fork_call *f)
{
    bc_cancel_watch_close(f->cancel);
    bc_template_end(&f->build);
    if (f->sbx != NULL) bc_sandbox_unref(f->sbx);
    free(f);
}

static void fail(struct fork_call *f, const barchan_error *err)
{
    if (f->error.code != 0) return;
    f->error = *err;
    if (f->snapshot == NULL) bc_error_context(&f->error, "fork");
}

static void finish(struct fork_call *f)
{
    /* A runtime that ends destroys them itself. */
    int closing = bc_runtime_check(f->rt, NULL) < 0;
    for (size_t i = 0; f->error.code != 0 && !closing && i < f->opened; i++) {
        barchan_sandbox_destroy(f->forks[i]);
    }
    bc_template_end(&f->build); /* the forks have it, or nobody */
    if (f->error.code != 0) {
        f->done(NULL, 0, &f->error, f->ud);
    } else {
        f->done(f->forks, f->wanted, NULL, f->ud);
    }
    free_fork(f);
}

static void cancel_fork(barchan_snapshot_call *call)
{
    struct fork_call *f = (struct fork_call *)call;
    barchan_error why;
    if (f->snapshot != NULL) {
        barchan_snapshot_cancel(f->snapshot);
        return;
    }
    bc_error_set(&why, BARCHAN_ECANCELLED, "cancelled");
    fail(f, &why);
    for (size_t i = 0; i < f->opened; i++) { /* those that are not ready say so in a dispatch */
        barchan_sandbox_terminate(f->forks[i]);
    }
}

static void on_token(void *ud)
{
    barchan_snapshot_cancel(ud);
}

/* ---- the sandboxes ---- */

static void on_created(barchan_sandbox *sbx, const barchan_error *err, void *ud)
{
    struct fork_call *f = ud;
    (void)sbx;
    if (err != NULL) fail(f, err);
    if (--f->waiting == 0) finish(f);
}

static barchan_limits limits_of(const barchan_sandbox *sbx)
{
    const bc_limits *l = &sbx->limits;
    return (barchan_limits){
        .memory_bytes = l->memory_bytes,
        .disk_bytes = l->disk_bytes,
        .files = l->files,
        .cpus_milli = l->cpus_milli,
        .pids = l->pids,
        .open_files = l->open_files,
        .cpu_ms = (int64_t)(l->cpu_us / 1000),
        .output_bytes = l->output_bytes,
        .wall_ms = sbx->wall_ms,
    };
}

static size_t mounts_of(const barchan_sandbox *sbx, barchan_mount mounts[BC_FRAME_MAX_MOUNTS])
{
    size_t count = 0;
    bc_mount mount;
    for (bc_wire_reader in = bc_mounts_of(sbx);
         count < BC_FRAME_MAX_MOUNTS && bc_mount_next(&in, &mount);) {
        mounts[count++] = (barchan_mount){
            .source = mount.source, .target = mount.target, .mode = (barchan_mount_mode)mount.mode};
    }
    return count;
}

/* Its state says the template that was asked for, not the folder that it has instead. */
static int open_one(struct fork_call *f, const barchan_profile *profile, barchan_error *err)
{
    barchan_sandbox **fork = &f->forks[f->opened];
    char *name = strdup(f->sbx->template_name);
    if (name == NULL) return bc_error_nomem(err);
    int rc =
        bc_sandbox_create_with(fork, f->rt, profile, &bc_backend_namespace, on_created, f, err);
    if (rc < 0) {
        free(name);
        return rc;
    }
    f->opened++;
    f->waiting++;
    free((*fork)->template_name);
    (*fork)->template_name = name;
    return 0;
}

static void on_snapshot(bc_template_build *build, const barchan_template *info,
                        const barchan_error *err, void *ud)
{
    struct fork_call *f = ud;
    barchan_mount mounts[BC_FRAME_MAX_MOUNTS];
    barchan_error why;
    (void)info;
    if (err != NULL) {
        fail(f, err); /* in the words of the snapshot, which knows that it is for a fork */
        f->snapshot = NULL;
        finish(f);
        return;
    }
    f->snapshot = NULL;
    f->build = *build;
    *build = (bc_template_build){.dir_fd = -1, .fd = -1};
    const barchan_sandbox *sbx = f->sbx;
    const barchan_network_rules *rules;
    barchan_network network = bc_egress_rules(sbx->egress, &rules);
    const barchan_profile profile = {
        .struct_size = sizeof profile,
        .template_name = f->build.id,
        .network = network,
        .network_rules = rules,
        .lease_ms = sbx->lease_ms,
        .best_effort = sbx->best_effort,
        .env = (const char *const *)sbx->env,
        .limits = limits_of(sbx),
        .mounts = mounts,
        .mount_count = mounts_of(sbx, mounts),
        .on_lease_end = sbx->pause_at_lease_end ? BARCHAN_LEASE_PAUSE : BARCHAN_LEASE_TERMINATE,
        .idle_timeout_ms = sbx->idle_ms,
    };
    f->waiting = 1; /* this loop */
    while (f->opened < f->wanted && f->error.code == 0) {
        if (open_one(f, &profile, &why) < 0) fail(f, &why);
    }
    if (--f->waiting == 0) finish(f);
}

/* ---- start ---- */

int barchan_sandbox_fork_start(barchan_snapshot_call **out, barchan_sandbox *sbx, size_t count,
                               const barchan_fork_options *given, barchan_fork_fn done, void *ud,
                               barchan_error *err)
{
    BC_OPERATION("sandbox.fork");
    barchan_fork_options options;
    if (out != NULL) *out = NULL;
    int rc = bc_sandbox_check(sbx, err);
    if (rc == 0 && (count == 0 || count > BARCHAN_FORK_MAX)) {
        rc = bc_error_set(err, BARCHAN_EINVAL, "fork: 1 to %d sandboxes, not %zu", BARCHAN_FORK_MAX,
                          count);
    }
    if (rc == 0 && bc_egress_secrets(sbx->egress) != NULL) {
        rc = bc_error_set(
            err, BARCHAN_EUNSUPPORTED,
            "fork: not of a sandbox with secrets: its forks would have its placeholders "
            "and no values; make a snapshot, and sandboxes with secrets from that");
    }
    if (rc == 0 && done == NULL) rc = bc_error_set(err, BARCHAN_EINVAL, "done is needed");
    if (rc == 0) rc = bc_options_copy(&options, sizeof options, given, err);
    if (rc < 0) return rc;
    struct fork_call *f = calloc(1, sizeof *f);
    if (f == NULL) return bc_error_nomem(err);
    f->call.cancel = cancel_fork;
    f->build = (bc_template_build){.dir_fd = -1, .fd = -1};
    f->rt = sbx->rt;
    f->sbx = sbx;
    bc_sandbox_ref(sbx);
    f->done = done;
    f->ud = ud;
    f->wanted = count;
    const barchan_snapshot_options snapshot = {.struct_size = sizeof snapshot,
                                               .timeout_ms = options.timeout_ms};
    rc = bc_cancel_watch_open(&f->cancel, f->rt, options.cancel, on_token, f, err);
    if (rc == 0) rc = bc_snapshot_start(&f->snapshot, sbx, NULL, &snapshot, on_snapshot, f, err);
    if (rc < 0) {
        free_fork(f);
        return rc;
    }
    if (out != NULL) *out = &f->call;
    return 0;
}

/* ---- waiting ---- */

struct fork_wait {
    bc_outcome outcome;
    barchan_sandbox **forks;
};

static void on_forked(barchan_sandbox **forks, size_t count, const barchan_error *err, void *ud)
{
    struct fork_wait *wait = ud;
    bc_outcome_set(&wait->outcome, err);
    if (err == NULL) memcpy(wait->forks, forks, count * sizeof *forks);
}

int barchan_sandbox_fork(barchan_sandbox *sbx, barchan_sandbox **forks, size_t count,
                         const barchan_fork_options *options, barchan_error *err)
{
    BC_OPERATION("sandbox.fork");
    struct fork_wait wait = {.forks = forks};
    if (forks == NULL) return bc_error_set(err, BARCHAN_EINVAL, "forks is NULL");
    int rc = bc_sandbox_check(sbx, err);
    if (rc < 0) return rc;
    barchan_runtime *rt = sbx->rt;
    rc = bc_runtime_may_wait(rt, err);
    if (rc == 0) rc = barchan_sandbox_fork_start(NULL, sbx, count, options, on_forked, &wait, err);
    return rc < 0 ? rc : bc_outcome_wait(&wait.outcome, rt, err);
}
