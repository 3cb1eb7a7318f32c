/*
 * Taking a snapshot: process 1 says that nothing runs and has a worker send all files as one
 * stream; they are unpacked as they come, below a folder that has no name yet. When all is there,
 * and as much as the guest says, the folder gets its name.
 */
#include "snapshot.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "base/limits.h"
#include "files.h"
#include "unpack.h"

struct snapshot {
    barchan_snapshot_call call; /* first */
    barchan_sandbox *sbx;       /* a reference */
    int taking;                 /* counted in sbx->snapshots */
    bc_snapshot_fn done;
    void *ud;
    char *name; /* NULL: none */
    int replace;
    barchan_template info;
    bc_template_build build;
    bc_unpack *unpack;
    barchan_file_call *file;
    bc_cancel_watch *cancel;
    barchan_error error; /* code 0: none so far */
};

static void free_snapshot(struct snapshot *s)
{
    bc_cancel_watch_close(s->cancel);
    bc_unpack_free(s->unpack);
    bc_template_end(&s->build);
    barchan_template_clear(&s->info);
    if (s->taking) s->sbx->snapshots--;
    if (s->sbx != NULL) bc_sandbox_unref(s->sbx);
    free(s->name);
    free(s);
}

static void cancel_snapshot(barchan_snapshot_call *call)
{
    struct snapshot *s = (struct snapshot *)call;
    if (s->error.code == 0) bc_error_set(&s->error, BARCHAN_ECANCELLED, "cancelled");
    barchan_file_cancel(s->file);
}

void barchan_snapshot_cancel(barchan_snapshot_call *call)
{
    if (call != NULL) call->cancel(call);
}

static void on_token(void *ud)
{
    barchan_snapshot_cancel(ud);
}

/* ---- what comes ---- */

/* What breaks the rules of the stream ends the sandbox, and nothing else. */
static void end_for(struct snapshot *s)
{
    barchan_error why = s->error;
    if (why.code == BARCHAN_EPROTOCOL) {
        bc_sandbox_end(s->sbx, BARCHAN_END_PROTOCOL_ERROR, &why);
    }
}

static int on_bytes(const void *data, size_t len, void *ud)
{
    struct snapshot *s = ud;
    if (s->error.code != 0) return -1;
    int rc = bc_unpack_write(s->unpack, data, len, &s->error);
    if (rc < 0) end_for(s);
    return rc < 0 ? -1 : 0;
}

static int64_t wall_clock_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int complete(struct snapshot *s)
{
    bc_unpack_totals totals;
    int rc = bc_unpack_finish(s->unpack, &totals, &s->error);
    if (rc < 0) {
        end_for(s);
        return rc;
    }
    s->info.created_ms = wall_clock_ms();
    s->info.bytes = totals.bytes;
    s->info.entries = totals.entries;
    s->info.left_out = totals.left_out;
    rc = bc_manifest_write(s->build.fd, &s->info, &s->error);
    return rc < 0 ? rc : bc_template_publish(&s->build, s->name, s->replace, &s->error);
}

static void on_packed(barchan_file_result *result, const barchan_error *err, void *ud)
{
    struct snapshot *s = ud;
    (void)result;
    s->file = NULL;
    if (s->error.code == 0 && err != NULL) s->error = *err;
    if (s->error.code == 0) complete(s);
    s->sbx->snapshots--; /* the callback may run commands again */
    s->taking = 0;
    if (s->error.code != 0) {
        bc_error_context(&s->error, s->name == NULL ? "fork" : "snapshot");
        s->error.where[0] = '\0';
        bc_error_where(&s->error, s->name == NULL ? "sandbox.fork" : "sandbox.snapshot");
        s->done(NULL, NULL, &s->error, s->ud);
    } else {
        s->done(&s->build, &s->info, NULL, s->ud);
    }
    free_snapshot(s);
}

/* ---- start ---- */

static int check(const barchan_sandbox *sbx, const char *name,
                 const barchan_snapshot_options *options, barchan_error *err)
{
    if (name != NULL && bc_template_check_name(name, err) < 0) return BARCHAN_EINVAL;
    if (options->timeout_ms < 0) return bc_error_set(err, BARCHAN_EINVAL, "timeout_ms is negative");
    if (options->note != NULL && strlen(options->note) > BC_TEMPLATE_MAX_NOTE_BYTES) {
        return bc_error_set(err, BARCHAN_EINVAL, "the note is longer than %d bytes",
                            BC_TEMPLATE_MAX_NOTE_BYTES);
    }
    if (sbx->state == BARCHAN_SANDBOX_STARTING) {
        return bc_error_busy(err, "the sandbox is not ready yet");
    }
    if (sbx->snapshots > 0) return bc_error_busy(err, "another one is being taken");
    return 0;
}

/* What can be in the sandbox: what it began with, and what its limits let it have. */
static bc_unpack_limits limits_of(const barchan_sandbox *sbx)
{
    const bc_limits *l = &sbx->limits;
    bc_unpack_limits limits = {.bytes = l->disk_bytes, .entries = l->files};
    if (limits.entries == 0) limits.entries = l->disk_bytes / 4096 + 1024;
    limits.entries += BC_PACK_PLACES;
    if (sbx->template_use != NULL) {
        limits.bytes += sbx->template_use->bytes;
        limits.entries += sbx->template_use->entries;
    }
    return limits;
}

static int open_snapshot(struct snapshot *s, barchan_sandbox *sbx, const char *name,
                         const barchan_snapshot_options *options, barchan_error *err)
{
    s->sbx = sbx;
    bc_sandbox_ref(sbx);
    sbx->snapshots++;
    s->taking = 1;
    s->replace = options->replace != 0;
    s->name = name == NULL ? NULL : strdup(name);
    s->info.name = strdup(name == NULL ? "" : name);
    s->info.note = strdup(options->note == NULL ? "" : options->note);
    s->info.base = strdup(bc_template_base(sbx));
    if ((name != NULL && s->name == NULL) || s->info.name == NULL || s->info.note == NULL ||
        s->info.base == NULL) {
        return bc_error_nomem(err);
    }
    int rc = bc_template_begin(&s->build, err);
    if (rc == 0 && name != NULL) {
        rc = bc_template_may_name(s->build.dir_fd, name, s->replace, err);
    }
    const bc_unpack_limits limits = limits_of(sbx);
    if (rc == 0) rc = bc_unpack_open(&s->unpack, s->build.fd, &limits, err);
    if (rc == 0) {
        rc = bc_cancel_watch_open(&s->cancel, sbx->rt, options->cancel, on_token, s, err);
    }
    if (rc < 0) return rc;
    const barchan_file_request request = {.struct_size = sizeof request,
                                          .op = BC_FILE_PACK,
                                          .path = "/",
                                          .sink = on_bytes,
                                          .ud = s,
                                          .timeout_ms = options->timeout_ms};
    return bc_file_start(&s->file, sbx, &request, on_packed, s, err);
}

int bc_snapshot_start(barchan_snapshot_call **out, barchan_sandbox *sbx, const char *name,
                      const barchan_snapshot_options *options, bc_snapshot_fn done, void *ud,
                      barchan_error *err)
{
    struct snapshot *s = NULL;
    int rc = check(sbx, name, options, err);
    if (rc == 0) {
        s = calloc(1, sizeof *s);
        rc = s == NULL ? bc_error_nomem(err) : 0;
    }
    if (rc == 0) {
        s->call.cancel = cancel_snapshot;
        s->build = (bc_template_build){.dir_fd = -1, .fd = -1};
        s->done = done;
        s->ud = ud;
        rc = open_snapshot(s, sbx, name, options, err);
    }
    if (rc < 0) {
        if (s != NULL) free_snapshot(s);
        bc_error_context(err, name == NULL ? "fork" : "snapshot");
        bc_error_where(err, name == NULL ? "sandbox.fork" : "sandbox.snapshot");
        return rc;
    }
    *out = &s->call;
    return 0;
}

/* ---- the public side ---- */

struct named {
    barchan_snapshot_fn done;
    void *ud;
};

static void on_named(bc_template_build *build, const barchan_template *info,
                     const barchan_error *err, void *ud)
{
    struct named call = *(struct named *)ud;
    (void)build;
    free(ud);
    call.done(info, err, call.ud);
}

int barchan_sandbox_snapshot_start(barchan_snapshot_call **out, barchan_sandbox *sbx,
                                   const char *name, const barchan_snapshot_options *given,
                                   barchan_snapshot_fn done, void *ud, barchan_error *err)
{
    BC_OPERATION("sandbox.snapshot");
    barchan_snapshot_options options;
    barchan_snapshot_call *call = NULL;
    if (out != NULL) *out = NULL;
    int rc = bc_sandbox_check(sbx, err);
    if (rc == 0 && (name == NULL || done == NULL)) {
        rc = bc_error_set(err, BARCHAN_EINVAL, "name and done are needed");
    }
    if (rc == 0) rc = bc_options_copy(&options, sizeof options, given, err);
    if (rc < 0) return rc;
    struct named *named = malloc(sizeof *named);
    if (named == NULL) return bc_error_nomem(err);
    *named = (struct named){.done = done, .ud = ud};
    rc = bc_snapshot_start(&call, sbx, name, &options, on_named, named, err);
    if (rc < 0) free(named);
    if (out != NULL) *out = call;
    return rc;
}

struct snapshot_wait {
    bc_outcome outcome;
    barchan_template *info;
};

static void on_done(const barchan_template *info, const barchan_error *err, void *ud)
{
    struct snapshot_wait *wait = ud;
    barchan_error nomem;
    if (err == NULL && wait->info != NULL) {
        *wait->info = *info;
        wait->info->name = strdup(info->name);
        wait->info->base = strdup(info->base);
        wait->info->note = strdup(info->note);
        if (wait->info->name == NULL || wait->info->base == NULL || wait->info->note == NULL) {
            barchan_template_clear(wait->info);
            bc_error_nomem(&nomem);
            err = &nomem;
        }
    }
    bc_outcome_set(&wait->outcome, err);
}

int barchan_sandbox_snapshot(barchan_sandbox *sbx, const char *name,
                             const barchan_snapshot_options *options, barchan_template *info,
                             barchan_error *err)
{
    BC_OPERATION("sandbox.snapshot");
    struct snapshot_wait wait = {.info = info};
    if (info != NULL) *info = (barchan_template){0};
    int rc = bc_sandbox_check(sbx, err);
    if (rc < 0) return rc;
    barchan_runtime *rt = sbx->rt;
    rc = bc_runtime_may_wait(rt, err);
    if (rc == 0) {
        rc = barchan_sandbox_snapshot_start(NULL, sbx, name, options, on_done, &wait, err);
    }
    return rc < 0 ? rc : bc_outcome_wait(&wait.outcome, rt, err);
}
