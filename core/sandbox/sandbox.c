/*
 * Life and death of a sandbox.
 *
 * STARTING -> READY -> ENDED, or STARTING -> ENDED. Ending is one function, bc_sandbox_end, for
 * every reason; it starts the kill and never waits. The memory stays until both the handle and
 * the backend have let go, because the kill is reported later.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/json_write.h"
#include "base/limits.h"
#include "internal.h"
#include "launcher.h"

/* ---- the room ---- */

static void unref(barchan_sandbox *sbx);

static barchan_sandbox *still_here(bc_room *room)
{
    barchan_sandbox *sbx = room->sandboxes;
    while (sbx != NULL && !sbx->backend_held && !sbx->kept_for_runtime) {
        sbx = sbx->next;
    }
    return sbx;
}

static void end_room(void *data)
{
    bc_room *room = data;
    barchan_sandbox *sbx;
    bc_launcher_close(room->launcher);
    room->launcher = NULL;
    /* From the head each time: what is called may free any of them. */
    while ((sbx = still_here(room)) != NULL) {
        int kept = sbx->kept_for_runtime;
        sbx->kept_for_runtime = 0;
        /* Its kill was not reported in time; the launcher's death has ended it. */
        if (sbx->backend_held) bc_sandbox_gone(sbx, BC_ENDING_KILLED, NULL);
        if (kept) unref(sbx);
    }
    free(room);
}

bc_room *bc_sandbox_room(barchan_runtime *rt)
{
    bc_room *room = bc_runtime_room(rt, BC_ROOM_SANDBOX);
    if (room != NULL) return room;
    room = calloc(1, sizeof *room);
    if (room == NULL) return NULL;
    room->rt = rt;
    bc_runtime_set_room(rt, BC_ROOM_SANDBOX, room, end_room);
    return room;
}

/* ---- references ---- */

static void unref(barchan_sandbox *sbx)
{
    if (--sbx->refs > 0) return;
    if (sbx->prev != NULL) sbx->prev->next = sbx->next;
    if (sbx->next != NULL) sbx->next->prev = sbx->prev;
    if (sbx->room->sandboxes == sbx) sbx->room->sandboxes = sbx->next;
    bc_profile_clear(sbx);
    bc_buf_clear(&sbx->layers);
    if (sbx->guest_fd >= 0) close(sbx->guest_fd);
    free(sbx);
}

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

static void settle_created(barchan_sandbox *sbx, const barchan_error *why)
{
    bc_timer_close(sbx->create_timer);
    bc_cancel_watch_close(sbx->create_cancel);
    sbx->create_timer = NULL;
    sbx->create_cancel = NULL;
    if (sbx->created == NULL) return;
    if (why != NULL) {
        sbx->created_error = *why;
        bc_error_context(&sbx->created_error, "create sandbox");
        bc_error_where(&sbx->created_error, "sandbox.create");
    }
    bc_defer_schedule(sbx->rt, &sbx->created_defer, deliver_created);
}

/* ---- the end ---- */

static void lose_streams(barchan_sandbox *sbx)
{
    while (sbx->streams != NULL) {
        bc_stream *stream = sbx->streams;
        bc_stream_close(stream);
        stream->ops->on_lost(stream);
    }
}

void bc_sandbox_end(barchan_sandbox *sbx, barchan_end_reason reason, const barchan_error *why)
{
    if (sbx->state == BARCHAN_SANDBOX_ENDED) return;
    int was_starting = sbx->state == BARCHAN_SANDBOX_STARTING;
    sbx->state = BARCHAN_SANDBOX_ENDED;
    sbx->end_reason = reason;
    sbx->ended_ms = bc_clock_ms();
    bc_channel *channel = sbx->channel;
    sbx->channel = NULL;
    bc_channel_close(channel);
    sbx->backend->kill(sbx);
    lose_streams(sbx);
    /* Asked for, or reported to whoever created it: no news. */
    int expected = reason == BARCHAN_END_TERMINATED || reason == BARCHAN_END_CREATE_FAILED;
    if (sbx->id[0] != '\0') { /* without an id it was refused, and the caller knows why */
        bc_log(sbx->rt, expected ? BARCHAN_LOG_DEBUG : BARCHAN_LOG_WARN, "sandbox %s ended: %s%s%s",
               sbx->id, barchan_end_reason_name(reason), why == NULL ? "" : ": ",
               why == NULL ? "" : why->message);
    }
    if (was_starting) {
        barchan_error cancelled;
        if (why == NULL) bc_error_set(&cancelled, BARCHAN_ECANCELLED, "it was terminated");
        settle_created(sbx, why == NULL ? &cancelled : why);
    }
}

void bc_sandbox_gone(barchan_sandbox *sbx, uint32_t ending, const barchan_error *why)
{
    /* What it said before it died explains more than its death. */
    if (sbx->channel != NULL) bc_channel_read_now(sbx->channel);
    barchan_error died;
    bc_error_set(&died, BARCHAN_ELOST, "process 1 of the sandbox died");
    if (why == NULL) why = &died;
    if (ending == BC_ENDING_LEASE) {
        bc_sandbox_end(sbx, BARCHAN_END_LEASE_EXPIRED, why);
    } else if (sbx->state == BARCHAN_SANDBOX_STARTING) {
        bc_sandbox_end(sbx, BARCHAN_END_CREATE_FAILED, why);
    } else {
        bc_sandbox_end(sbx, BARCHAN_END_CRASHED, why);
    }
    bc_runtime_release(sbx->rt);
    sbx->backend_held = 0;
    unref(sbx);
}

/* ---- frames about the sandbox itself ---- */

static int read_layers(bc_wire_reader *in, bc_buf *json)
{
    uint32_t count = bc_wire_u32(in);
    if (count > BC_FRAME_MAX_LAYERS) return -1;
    int rc = bc_buf_append_char(json, '{');
    for (uint32_t i = 0; i < count && rc == 0; i++) {
        const char *name = bc_wire_string(in, 256), *how = bc_wire_string(in, 256);
        if (i > 0) rc = bc_buf_append_char(json, ',');
        if (rc == 0) rc = bc_json_write_string(json, name, strlen(name));
        if (rc == 0) rc = bc_buf_append_char(json, ':');
        if (rc == 0) rc = bc_json_write_string(json, how, strlen(how));
    }
    if (rc == 0) rc = bc_buf_append_char(json, '}');
    return rc < 0 || !bc_wire_done(in) ? -1 : 0;
}

static int on_ready(barchan_sandbox *sbx, bc_wire_reader *in)
{
    if (sbx->state != BARCHAN_SANDBOX_STARTING) return -1;
    uint32_t version = bc_wire_u32(in);
    bc_wire_u32(in); /* features: none is defined yet */
    if (version != BC_FRAME_VERSION || read_layers(in, &sbx->layers) < 0) return -1;
    sbx->state = BARCHAN_SANDBOX_READY;
    settle_created(sbx, NULL);
    return 0;
}

static int on_failed(barchan_sandbox *sbx, bc_wire_reader *in)
{
    barchan_error why;
    if (sbx->state != BARCHAN_SANDBOX_STARTING || bc_read_failure(in, &why) < 0) return -1;
    bc_sandbox_end(sbx, BARCHAN_END_CREATE_FAILED, &why);
    return 0;
}

static int on_ending(barchan_sandbox *sbx, bc_wire_reader *in)
{
    if (bc_wire_u32(in) != BC_ENDING_LEASE || !bc_wire_done(in)) return -1;
    bc_sandbox_end(sbx, BARCHAN_END_LEASE_EXPIRED, NULL);
    return 0;
}

static int on_frame(void *ud, const bc_frame *frame)
{
    barchan_sandbox *sbx = ud;
    bc_wire_reader in = bc_wire_read(frame);
    if (frame->stream == 0) {
        switch (frame->type) {
        case BC_FRAME_READY: return on_ready(sbx, &in);
        case BC_FRAME_FAILED: return on_failed(sbx, &in);
        case BC_FRAME_ENDING: return on_ending(sbx, &in);
        default: return -1;
        }
    }
    if (sbx->state != BARCHAN_SANDBOX_READY) return -1;
    for (bc_stream *stream = sbx->streams; stream != NULL; stream = stream->next) {
        if (stream->id == frame->stream) return stream->ops->on_frame(stream, frame);
    }
    return sbx->abandoned && frame->stream <= sbx->last_stream ? 0 : -1;
}

static void on_channel_end(void *ud, const barchan_error *why)
{
    barchan_sandbox *sbx = ud;
    if (why != NULL) {
        bc_sandbox_end(sbx, BARCHAN_END_PROTOCOL_ERROR, why);
    } else {
        sbx->backend->kill(sbx); /* bc_sandbox_gone follows and knows why */
    }
}

static const bc_channel_handler channel_handler = {on_frame, on_channel_end};

/* ---- create ---- */

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

static int open_channel(barchan_sandbox *sbx, barchan_error *err)
{
    int fd;
    int rc = sbx->backend->start(sbx, &fd, err);
    if (rc < 0) return rc;
    sbx->refs++;
    sbx->backend_held = 1;
    bc_runtime_hold(sbx->rt);
    rc = bc_channel_open(&sbx->channel, sbx->rt, fd, &channel_handler, sbx, err);
    if (rc < 0) return rc;
    unsigned char hello[8];
    bc_put_u32(hello, BC_FRAME_VERSION);
    bc_put_u32(hello + 4, 0);
    return bc_channel_send(sbx->channel, BC_FRAME_HELLO, 0, hello, sizeof hello, NULL, 0, err);
}

static int open_sandbox(barchan_sandbox *sbx, const barchan_profile *profile, barchan_error *err)
{
    int rc = bc_profile_read(sbx, profile, err);
    if (rc == 0) rc = make_id(sbx->id, sizeof sbx->id, err);
    if (rc == 0) rc = open_watches(sbx, profile, err);
    if (rc == 0) rc = open_channel(sbx, err);
    return rc;
}

int bc_sandbox_create_with(barchan_sandbox **out, barchan_runtime *rt, const barchan_profile *given,
                           const bc_backend *backend, barchan_sandbox_created_fn done, void *ud,
                           barchan_error *err)
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
    sbx->refs = 1;
    sbx->guest_fd = -1;
    sbx->born_ms = bc_clock_ms();
    bc_buf_init(&sbx->layers, BC_FRAME_MAX_FROM_GUEST * 8);
    sbx->next = room->sandboxes;
    if (sbx->next != NULL) sbx->next->prev = sbx;
    room->sandboxes = sbx;
    bc_resident_add(rt, &sbx->resident, end_resident);
    rc = open_sandbox(sbx, &profile, err);
    if (rc < 0) {
        barchan_sandbox_destroy(sbx);
        return rc;
    }
    sbx->created = done;
    sbx->created_ud = ud;
    *out = sbx;
    return 0;
}

int barchan_sandbox_create_start(barchan_sandbox **out, barchan_runtime *rt,
                                 const barchan_profile *profile, barchan_sandbox_created_fn done,
                                 void *ud, barchan_error *err)
{
    if (out == NULL) return bc_error_set(err, BARCHAN_EINVAL, "out is NULL");
    *out = NULL;
    int rc = bc_runtime_check(rt, err);
    if (rc == 0) {
        rc = bc_sandbox_create_with(out, rt, profile, &bc_backend_namespace, done, ud, err);
    }
    if (rc < 0) {
        bc_error_context(err, "create sandbox");
        bc_error_where(err, "sandbox.create");
    }
    return rc;
}

struct create_wait {
    int done;
    barchan_error error;
};

static void on_created(barchan_sandbox *sbx, const barchan_error *err, void *ud)
{
    struct create_wait *wait = ud;
    (void)sbx;
    wait->done = 1;
    if (err != NULL) wait->error = *err;
}

int barchan_sandbox_create(barchan_sandbox **out, barchan_runtime *rt,
                           const barchan_profile *profile, barchan_error *err)
{
    struct create_wait wait = {0};
    int rc = bc_runtime_may_wait(rt, err);
    if (rc == 0) rc = barchan_sandbox_create_start(out, rt, profile, on_created, &wait, err);
    if (rc < 0) return rc;
    rc = bc_runtime_wait(rt, &wait.done, err);
    if (rc == 0 && wait.error.code != 0) {
        rc = wait.error.code;
        if (err != NULL) *err = wait.error;
    }
    if (rc < 0) {
        if (!wait.done) (*out)->created = NULL; /* `wait` is going away */
        barchan_sandbox_destroy(*out);
        *out = NULL;
    }
    return rc;
}

void barchan_sandbox_terminate(barchan_sandbox *sbx)
{
    /* In a forked child the sandbox is the parent's. */
    if (sbx == NULL || !bc_runtime_is_own(sbx->rt)) return;
    bc_sandbox_end(sbx, BARCHAN_END_TERMINATED, NULL);
}

void barchan_sandbox_destroy(barchan_sandbox *sbx)
{
    if (sbx == NULL || !bc_runtime_is_own(sbx->rt)) return;
    bc_resident_remove(&sbx->resident);
    barchan_sandbox_terminate(sbx);
    bc_defer_cancel(&sbx->created_defer);
    if (sbx->created != NULL) {
        bc_error_set(&sbx->created_error, BARCHAN_ECANCELLED,
                     "create sandbox: it was destroyed before it was ready");
        bc_error_where(&sbx->created_error, "sandbox.create");
        deliver_created(&sbx->created_defer);
    }
    sbx->handle_dropped = 1;
    unref(sbx);
}
