/* The creation of a sandbox, to its one outcome. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include "base/clock.h"
#include "base/limits.h"
#include "internal.h"

/* ---- creation's outcome: exactly one callback, from a dispatch ---- */

static void deliver_created(bc_defer *defer)
{
    barchan_sandbox *sbx = owner_of(defer, barchan_sandbox, created_defer);
    barchan_sandbox_created_fn created = sbx->created;
    barchan_error error = sbx->created_error;
    sbx->created = NULL;
    /* The sandbox may be destroyed inside. */
    if (created != NULL) created(sbx, error.code == 0 ? NULL : &error, sbx->created_ud);
}

static void close_watches(barchan_sandbox *sbx)
{
    bc_timer_close(sbx->create_timer);
    bc_cancel_watch_close(sbx->create_cancel);
    sbx->create_timer = NULL;
    sbx->create_cancel = NULL;
}

void bc_created_succeed(barchan_sandbox *sbx)
{
    close_watches(sbx);
    deliver_created(&sbx->created_defer);
}

static const char *verb_of(const barchan_sandbox *sbx)
{
    return sbx->backend->verb == NULL ? "create sandbox" : sbx->backend->verb;
}

void bc_created_fail(barchan_sandbox *sbx, const barchan_error *why)
{
    close_watches(sbx);
    if (sbx->created == NULL) return;
    sbx->created_error = *why;
    bc_error_context(&sbx->created_error, "%s", verb_of(sbx));
    bc_error_where(&sbx->created_error, "sandbox.create");
    bc_defer_schedule(sbx->rt, &sbx->created_defer, deliver_created);
}

void bc_created_abandon(barchan_sandbox *sbx)
{
    bc_defer_cancel(&sbx->created_defer);
    if (sbx->created == NULL) return;
    bc_error_set(&sbx->created_error, BARCHAN_ECANCELLED,
                 "%s: it was destroyed before it was ready", verb_of(sbx));
    bc_error_where(&sbx->created_error, "sandbox.create");
    deliver_created(&sbx->created_defer);
}

/* ---- what it takes ---- */

static void on_create_timeout(void *ud)
{
    barchan_error why;
    bc_error_set(&why, BARCHAN_ETIMEDOUT, "it was not ready in time");
    bc_sandbox_end(ud, BARCHAN_END_CREATE_FAILED, &why);
}

static void on_create_cancelled(void *ud)
{
    barchan_error why;
    bc_error_set(&why, BARCHAN_ECANCELLED, "cancelled");
    bc_sandbox_end(ud, BARCHAN_END_CREATE_FAILED, &why);
}

static void end_resident(bc_resident *resident)
{
    barchan_sandbox *sbx = owner_of(resident, barchan_sandbox, resident);
    /* The runtime still looks at the resident after this call. */
    sbx->refs++;
    sbx->kept_for_runtime = 1;
    barchan_sandbox_destroy(sbx);
}

static int make_id(char *id, size_t cap, barchan_error *err)
{
    uint64_t random;
    if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random) {
        return bc_error_set(err, BARCHAN_EIO, "no random numbers");
    }
    snprintf(id, cap, "sbx-%016llx", (unsigned long long)random);
    return 0;
}

static int open_watches(barchan_sandbox *sbx, const barchan_profile *profile, barchan_error *err)
{
    int rc = bc_timer_open(&sbx->create_timer, sbx->rt, on_create_timeout, sbx, err);
    if (rc < 0) return rc;
    bc_timer_set(sbx->create_timer,
                 profile->timeout_ms == 0 ? BC_SANDBOX_DEFAULT_CREATE_MS : profile->timeout_ms);
    return bc_cancel_watch_open(&sbx->create_cancel, sbx->rt, profile->cancel, on_create_cancelled,
                                sbx, err);
}

static int send_carried(void *ud, uint32_t type, uint32_t stream, const void *payload, size_t len)
{
    barchan_sandbox *sbx = ud;
    if (sbx->channel == NULL) return BARCHAN_ELOST;
    return bc_channel_send(sbx->channel, type, stream, payload, len, NULL, 0, NULL);
}

static int send_begin(barchan_sandbox *sbx, barchan_error *err)
{
    bc_buf payload cleanup_buf;
    bc_buf_init(&payload, BC_CONTROL_MAX_START);
    if (bc_start_put(sbx, &payload) < 0) return bc_error_nomem(err);
    return bc_channel_send(sbx->channel, BC_FRAME_BEGIN, 0, bc_buf_data(&payload), payload.len,
                           NULL, 0, err);
}

static int open_channel(barchan_sandbox *sbx, barchan_error *err)
{
    int fd;
    int rc = sbx->backend->start(sbx, &fd, err);
    if (rc < 0) return rc;
    sbx->refs++;
    sbx->backend_held = 1;
    bc_runtime_hold(sbx->rt);
    const bc_backend *backend = sbx->backend;
    rc = bc_channel_open(&sbx->channel, sbx->rt, fd,
                         backend->max_of == NULL ? &bc_sandbox_channel : &bc_sandbox_held_channel,
                         sbx, err);
    if (rc < 0) return rc;
    if (backend->carries_network && sbx->egress != NULL) {
        bc_egress_carry(sbx->egress, send_carried, sbx);
    }
    unsigned char hello[8];
    bc_put_u32(hello, backend->hello == 0 ? BC_FRAME_VERSION : backend->hello);
    bc_put_u32(hello + 4, 0);
    rc = bc_channel_send(sbx->channel, BC_FRAME_HELLO, 0, hello, sizeof hello, NULL, 0, err);
    return rc == 0 && backend->tells_begin ? send_begin(sbx, err) : rc;
}

static int open_sandbox(barchan_sandbox *sbx, const barchan_profile *profile, const char *id,
                        barchan_error *err)
{
    int rc = bc_profile_read(sbx, profile, err);
    sbx->lease_end_ms = sbx->born_ms + sbx->lease_ms;
    if (rc == 0 && id != NULL) snprintf(sbx->id, sizeof sbx->id, "%s", id);
    if (rc == 0 && id == NULL) rc = make_id(sbx->id, sizeof sbx->id, err);
    if (rc == 0) rc = open_watches(sbx, profile, err);
    if (rc == 0) rc = open_channel(sbx, err);
    return rc;
}

int bc_sandbox_open_with(barchan_sandbox **out, barchan_runtime *rt, const barchan_profile *given,
                         const bc_backend *backend, const char *id, const void *backend_options,
                         barchan_sandbox_created_fn done, void *ud, barchan_error *err)
{
    barchan_profile profile;
    int rc = bc_options_copy(&profile, sizeof profile, given, err);
    if (rc < 0) return rc;
    bc_room *room = bc_sandbox_room(rt);
    barchan_sandbox *sbx = room == NULL ? NULL : calloc(1, sizeof *sbx);
    if (sbx == NULL) return bc_error_nomem(err);
    sbx->rt = rt;
    sbx->room = room;
    sbx->backend = backend;
    sbx->backend_options = backend_options;
    sbx->refs = 1;
    sbx->guest_fd = -1;
    sbx->born_ms = bc_clock_ms();
    bc_buf_init(&sbx->mounts, BC_CONTROL_MAX_START);
    bc_buf_init(&sbx->layers, BC_FRAME_MAX_FROM_GUEST * 8);
    sbx->next = room->sandboxes;
    if (sbx->next != NULL) sbx->next->prev = sbx;
    room->sandboxes = sbx;
    bc_resident_add(rt, &sbx->resident, end_resident);
    rc = open_sandbox(sbx, &profile, id, err);
    sbx->backend_options = NULL;
    if (rc < 0) {
        barchan_sandbox_destroy(sbx);
        return rc;
    }
    sbx->created = done;
    sbx->created_ud = ud;
    *out = sbx;
    return 0;
}

int bc_sandbox_create_with(barchan_sandbox **out, barchan_runtime *rt,
                           const barchan_profile *profile, const bc_backend *backend,
                           barchan_sandbox_created_fn done, void *ud, barchan_error *err)
{
    return bc_sandbox_open_with(out, rt, profile, backend, NULL, NULL, done, ud, err);
}

int barchan_sandbox_create_start(barchan_sandbox **out, barchan_runtime *rt,
                                 const barchan_profile *profile, barchan_sandbox_created_fn done,
                                 void *ud, barchan_error *err)
{
    BC_OPERATION("sandbox.create");
    if (out == NULL) return bc_error_set(err, BARCHAN_EINVAL, "out is NULL");
    *out = NULL;
    int rc = bc_runtime_check(rt, err);
    if (rc == 0) {
        rc = bc_sandbox_create_with(out, rt, profile, &bc_backend_namespace, done, ud, err);
    }
    if (rc < 0) {
        bc_error_context(err, "create sandbox");
    }
    return rc;
}

void bc_created_note(barchan_sandbox *sbx, const barchan_error *err, void *ud)
{
    (void)sbx;
    bc_outcome_set(ud, err);
}

int bc_created_wait(barchan_sandbox **out, const bc_outcome *outcome, barchan_error *err)
{
    int rc = bc_outcome_wait(outcome, (*out)->rt, err);
    if (rc < 0) {
        if (!outcome->done) (*out)->created = NULL; /* `outcome` is going away */
        barchan_sandbox_destroy(*out);
        *out = NULL;
    }
    return rc;
}

int barchan_sandbox_create(barchan_sandbox **out, barchan_runtime *rt,
                           const barchan_profile *profile, barchan_error *err)
{
    BC_OPERATION("sandbox.create");
    bc_outcome outcome = {0};
    int rc = bc_runtime_may_wait(rt, err);
    if (rc == 0) {
        rc = barchan_sandbox_create_start(out, rt, profile, bc_created_note, &outcome, err);
    }
    return rc < 0 ? rc : bc_created_wait(out, &outcome, err);
}
