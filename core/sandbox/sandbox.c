/*
 * Life and death of a sandbox.
 *
 * STARTING -> READY -> ENDED, or STARTING -> ENDED. Ending is one function, bc_sandbox_end, for
 * every reason; it starts the kill and never waits. The memory stays until both the handle and
 * the backend have let go, because the kill is reported later.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/json_write.h"
#include "base/limits.h"
#include "channel/held.h"
#include "command.h"
#include "connect.h"
#include "internal.h"
#include "launcher.h"
#include "templates.h"

/* ---- the room ---- */

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
        if (kept) bc_sandbox_unref(sbx);
    }
    /* A last question may still hold one; its answer is about to be given. */
    for (sbx = room->sandboxes; sbx != NULL; sbx = sbx->next) {
        sbx->room = NULL;
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

void bc_sandbox_ref(barchan_sandbox *sbx)
{
    sbx->refs++;
}

void bc_sandbox_unref(barchan_sandbox *sbx)
{
    if (--sbx->refs > 0) return;
    if (sbx->prev != NULL) sbx->prev->next = sbx->next;
    if (sbx->next != NULL) sbx->next->prev = sbx->prev;
    if (sbx->room != NULL && sbx->room->sandboxes == sbx) sbx->room->sandboxes = sbx->next;
    bc_profile_clear(sbx);
    bc_connection_free(sbx->connection);
    bc_command_run_free(sbx->command);
    bc_buf_clear(&sbx->layers);
    if (sbx->guest_fd >= 0) close(sbx->guest_fd);
    free(sbx);
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
    int was_starting = sbx->state == BARCHAN_SANDBOX_STARTING || sbx->installing;
    sbx->state = BARCHAN_SANDBOX_ENDED;
    sbx->installing = 0;
    sbx->end_reason = reason;
    sbx->ended_ms = bc_clock_ms();
    bc_channel *channel = sbx->channel;
    sbx->channel = NULL;
    bc_channel_close(channel);
    sbx->backend->kill(sbx);
    bc_egress_stop(sbx->egress);
    lose_streams(sbx);
    /* Asked for, or reported to whoever created it: no news. */
    int expected = reason == BARCHAN_END_TERMINATED || reason == BARCHAN_END_CREATE_FAILED ||
                   reason == BARCHAN_END_DETACHED;
    if (sbx->id[0] != '\0') { /* without an id it was refused, and the caller knows why */
        bc_log(sbx->rt, expected ? BARCHAN_LOG_DEBUG : BARCHAN_LOG_WARN, "sandbox %s ended: %s%s%s",
               sbx->id, barchan_end_reason_name(reason), why == NULL ? "" : ": ",
               why == NULL ? "" : why->message);
    }
    if (was_starting) {
        barchan_error cancelled;
        if (why == NULL) bc_error_set(&cancelled, BARCHAN_ECANCELLED, "it was terminated");
        bc_created_fail(sbx, why == NULL ? &cancelled : why);
    }
}

/* Of the ends that process 1 and the launcher bring about; NONE: another. */
static barchan_end_reason reason_of(uint32_t ending)
{
    switch (ending) {
    case BC_ENDING_LEASE: return BARCHAN_END_LEASE_EXPIRED;
    case BC_ENDING_IDLE: return BARCHAN_END_IDLE;
    case BC_ENDING_OOM: return BARCHAN_END_OOM;
    case BC_ENDING_HOST: return BARCHAN_END_HOST_GONE;
    default: return BARCHAN_END_NONE;
    }
}

void bc_sandbox_gone(barchan_sandbox *sbx, uint32_t ending, const barchan_error *why)
{
    /* What it said before it died explains more than its death, but for connections. */
    sbx->is_gone = 1;
    bc_egress_stop(sbx->egress);
    if (sbx->channel != NULL) bc_channel_read_now(sbx->channel);
    barchan_error died;
    bc_error_set(&died, BARCHAN_ELOST, "process 1 of the sandbox died");
    if (why == NULL) why = &died;
    barchan_end_reason known = reason_of(ending);
    if (known != BARCHAN_END_NONE) {
        bc_sandbox_end(sbx, known, why);
    } else if (sbx->state == BARCHAN_SANDBOX_STARTING) {
        bc_sandbox_end(sbx, BARCHAN_END_CREATE_FAILED, why);
    } else {
        bc_sandbox_end(sbx, BARCHAN_END_CRASHED, why);
    }
    bc_runtime_release(sbx->rt);
    sbx->backend_held = 0;
    bc_template_let_go(sbx);
    bc_usage_settle(sbx);
    bc_sandbox_unref(sbx);
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
    if (bc_egress_secrets(sbx->egress) != NULL) {
        bc_secrets_install(sbx);
    } else {
        bc_created_succeed(sbx);
    }
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
    uint32_t ending = bc_wire_u32(in);
    if ((ending != BC_ENDING_LEASE && ending != BC_ENDING_IDLE) || !bc_wire_done(in)) return -1;
    bc_sandbox_end(sbx, reason_of(ending), NULL);
    return 0;
}

/* The lease is over, and the profile says to pause then. */
static int on_state(barchan_sandbox *sbx, bc_wire_reader *in)
{
    if (bc_wire_u32(in) != 1 || !bc_wire_done(in) || !sbx->pause_at_lease_end) return -1;
    bc_log(sbx->rt, BARCHAN_LOG_WARN, "sandbox %s paused: its lease is over", sbx->id);
    bc_sandbox_set_paused(sbx, 1);
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
        case BC_FRAME_STATE: return on_state(sbx, &in);
        default: return sbx->backend->on_frame == NULL ? -1 : sbx->backend->on_frame(sbx, frame);
        }
    }
    if (sbx->state == BARCHAN_SANDBOX_STARTING) return -1;
    if (frame->stream & BC_FRAME_CARRIED) {
        if (sbx->is_gone) return 0;
        return sbx->egress == NULL ? -1 : bc_egress_take_frame(sbx->egress, frame);
    }
    if (frame->type == BC_FRAME_OUT || frame->type == BC_FRAME_ERR) sbx->bytes_out += frame->length;
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

const bc_channel_handler bc_sandbox_channel = {
    .on_frame = on_frame, .on_end = on_channel_end, .asks = 1};
const bc_channel_handler bc_sandbox_held_channel = {
    .on_frame = on_frame, .on_end = on_channel_end, .max_of = bc_held_max_from_holder};

/* ---- the handle ---- */

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
    barchan_end_reason reason = sbx->backend->when_dropped;
    bc_sandbox_end(sbx, reason == BARCHAN_END_NONE ? BARCHAN_END_TERMINATED : reason, NULL);
    bc_created_abandon(sbx);
    bc_egress_mute(sbx->egress);
    sbx->handle_dropped = 1;
    bc_sandbox_unref(sbx);
}
