/*
 * The holder of a detached sandbox: its place in the directory, its connections, its end.
 *
 * The end goes by steps: the sandbox ends (nobody can connect any more), nothing of it runs any
 * more (its last usage is known), every client has been told or has had its time, done.
 */
#include "hold.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/limits.h"
#include "held_dir.h"
#include "launcher.h"

/* Connections taken in one turn. */
#define ACCEPT_AT_ONCE 16

/* ---- what clients are told ---- */

void bc_hold_send(bc_hold_client *client, uint32_t type, uint32_t stream, const void *head,
                  size_t head_len, const void *body, size_t body_len)
{
    if (client->channel == NULL) return;
    if (bc_channel_send(client->channel, type, stream, head, head_len, body, body_len, NULL) < 0) {
        bc_log(client->hold->rt, BARCHAN_LOG_WARN,
               "sandbox %s: a connection that does not read "
               "was cut off",
               client->hold->sbx->id);
        bc_hold_client_cut(client);
    }
}

void bc_hold_tell(bc_hold_client *client)
{
    const barchan_sandbox *sbx = client->hold->sbx;
    unsigned char bytes[BC_HELD_NEWS_BYTES];
    bc_wire_writer out = {.data = bytes, .cap = sizeof bytes};
    if (!client->greeted) return;
    bc_wire_put_news(&out, &(bc_held_news){
                               .paused = sbx->state == BARCHAN_SANDBOX_PAUSED,
                               .running = (uint32_t)sbx->running - client->running,
                               .age_ms = (uint64_t)(bc_clock_ms() - sbx->born_ms),
                               .lease_left_ms = (uint64_t)bc_lease_left_ms(sbx),
                               .execs = sbx->execs,
                               .bytes_in = sbx->bytes_in,
                               .bytes_out = sbx->bytes_out,
                           });
    bc_hold_send(client, BC_HELD_NEWS, 0, bytes, out.len, NULL, 0);
}

void bc_hold_tell_all(bc_hold *hold)
{
    for (bc_hold_client *client = hold->clients; client != NULL; client = client->next) {
        bc_hold_tell(client);
    }
}

/* ---- the end ---- */

static void stop_listening(bc_hold *hold)
{
    bc_watch_close(hold->listener);
    hold->listener = NULL;
    if (hold->listen_fd >= 0) {
        close(hold->listen_fd);
        bc_held_retract(hold->dir_fd, hold->sbx->id);
    }
    hold->listen_fd = -1;
}

static void free_hold(bc_hold *hold)
{
    bc_hold_log_clear(&hold->log);
    bc_sandbox_unref(hold->sbx);
    free(hold);
}

/* Frees it, unless an answer is still to come, which frees it then. */
static void finish(bc_hold *hold)
{
    barchan_sandbox_done_fn done = hold->done;
    void *ud = hold->ud;
    hold->over = 1;
    hold->done = NULL;
    stop_listening(hold);
    while (hold->clients != NULL) {
        bc_hold_client_free(hold->clients);
    }
    while (hold->orphans != NULL) {
        bc_relay_free(hold->orphans);
    }
    bc_stream_close(&hold->life);
    bc_timer_close(hold->goodbye);
    bc_timer_close(hold->breath);
    hold->goodbye = hold->breath = NULL;
    bc_defer_cancel(&hold->finish);
    bc_resident_remove(&hold->resident);
    if (hold->lock_fd >= 0) close(hold->lock_fd);
    if (hold->dir_fd >= 0) close(hold->dir_fd);
    hold->lock_fd = hold->dir_fd = -1;
    if (!hold->asked) free_hold(hold);
    if (done != NULL) done(NULL, ud);
}

static void finish_deferred(bc_defer *defer)
{
    finish(owner_of(defer, bc_hold, finish));
}

void bc_hold_client_left(bc_hold *hold)
{
    if (hold->over && hold->clients == NULL) {
        bc_defer_schedule(hold->rt, &hold->finish, finish_deferred);
    }
}

/* Who followed and has not asked for the rest is told now, and gets a moment of its own. */
static void on_goodbye(void *ud)
{
    bc_hold *hold = ud;
    int later = 0;
    for (bc_hold_client *client = hold->clients, *next; client != NULL; client = next) {
        next = client->next;
        if (client->told) continue;
        bc_hold_tell_end(client);
        later = 1;
    }
    if (later)
        bc_timer_set(hold->goodbye, BC_HOLD_GOODBYE_MS);
    else
        finish(hold);
}

void bc_hold_tell_end(bc_hold_client *client)
{
    const barchan_sandbox *sbx = client->hold->sbx;
    unsigned char bytes[4 + BC_USAGE_BYTES];
    bc_wire_writer out = {.data = bytes, .cap = sizeof bytes};
    bc_wire_put_u32(&out, (uint32_t)sbx->end_reason);
    bc_wire_put_usage(&out, &sbx->used);
    client->told = 1;
    if (client->greeted) bc_hold_send(client, BC_HELD_ENDED, 0, bytes, out.len, NULL, 0);
    if (client->channel != NULL && bc_channel_waiting(client->channel) == 0) {
        bc_hold_client_cut(client);
    }
}

/* Nothing runs any more. Those who have read all are let go at once, the others get a moment. */
static void tell_end(bc_hold *hold)
{
    if (hold->goodbye != NULL) bc_timer_set(hold->goodbye, BC_HOLD_GOODBYE_MS);
    hold->over = 1;
    for (bc_hold_client *client = hold->clients, *next; client != NULL; client = next) {
        next = client->next; /* cutting frees later */
        if (!client->follows || client->follow_stream != 0) bc_hold_tell_end(client);
    }
    bc_hold_client_left(hold);
}

static void on_last_usage(const barchan_usage *usage, const barchan_error *err, void *ud)
{
    bc_hold *hold = ud;
    (void)usage, (void)err;
    hold->asked = 0;
    if (hold->over) { /* the runtime has ended meanwhile */
        free_hold(hold);
        return;
    }
    /* A launcher that was killed leaves groups and locks; a new one sweeps as it starts. */
    if (hold->sbx->end_reason == BARCHAN_END_CRASHED && hold->sbx->room != NULL) {
        bc_launcher_ensure(hold->sbx->room, NULL);
    }
    tell_end(hold);
}

static const bc_stream_ops life_ops;

static void on_sandbox_ended(bc_stream *stream)
{
    bc_hold *hold = owner_of(stream, bc_hold, life);
    hold->ending = 1;
    stop_listening(hold);
    hold->asked = 1;
    if (barchan_sandbox_usage_start(hold->sbx, on_last_usage, hold, NULL) == 0) return;
    hold->asked = 0;
    tell_end(hold);
}

static void on_paused(bc_stream *stream, int paused)
{
    (void)paused;
    bc_hold_tell_all(owner_of(stream, bc_hold, life));
}

/* Its number is never sent: a frame that bears it is made up. */
static int on_frame(bc_stream *stream, const bc_frame *frame)
{
    (void)stream, (void)frame;
    return -1;
}

static const bc_stream_ops life_ops = {
    .on_frame = on_frame, .on_lost = on_sandbox_ended, .on_paused = on_paused};

/* The runtime ends: there is no time for goodbyes. */
static void end_resident(bc_resident *resident)
{
    bc_hold *hold = owner_of(resident, bc_hold, resident);
    hold->sbx->abandoned = 1;
    if (!hold->over && !hold->ending) {
        hold->ending = 1;
        barchan_sandbox_terminate(hold->sbx); /* clients are told that, at least */
    }
    finish(hold);
}

/* ---- the beginning ---- */

static void on_connection(void *ud, unsigned events)
{
    bc_hold *hold = ud;
    (void)events;
    for (int i = 0; i < ACCEPT_AT_ONCE; i++) {
        int fd = accept4(hold->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0 && errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) {
            bc_watch_set(hold->listener, 0, NULL); /* it would be told of again and again */
            bc_timer_set(hold->breath, BC_HOLD_BREATH_MS);
        }
        if (fd < 0) return;
        bc_hold_accept(hold, fd);
    }
}

static void on_breath(void *ud)
{
    bc_hold *hold = ud;
    if (hold->listener != NULL) bc_watch_set(hold->listener, BC_READABLE, NULL);
}

static int open_hold(bc_hold *hold, barchan_error *err)
{
    int rc = bc_stream_open(&hold->life, hold->sbx, &life_ops, err);
    if (rc == 0) rc = bc_timer_open(&hold->goodbye, hold->rt, on_goodbye, hold, err);
    if (rc == 0) rc = bc_timer_open(&hold->breath, hold->rt, on_breath, hold, err);
    if (rc == 0) {
        rc = bc_held_publish(hold->sbx->id, &hold->dir_fd, &hold->lock_fd, &hold->listen_fd, err);
    }
    if (rc == 0) {
        rc = bc_watch_open(&hold->listener, hold->rt, hold->listen_fd, on_connection, hold, err);
    }
    if (rc == 0) rc = bc_watch_set(hold->listener, BC_READABLE, err);
    return rc;
}

static int may_hold(const barchan_sandbox *sbx, barchan_error *err)
{
    int rc = bc_sandbox_check(sbx, err);
    if (rc < 0) return rc;
    if (sbx->state == BARCHAN_SANDBOX_STARTING) {
        return bc_error_busy(err, "the sandbox is not ready yet");
    }
    if (sbx->connection != NULL) {
        return bc_error_set(err, BARCHAN_EINVAL, "another process holds the sandbox");
    }
    for (const bc_stream *stream = sbx->streams; stream != NULL; stream = stream->next) {
        if (stream->ops == &life_ops) {
            return bc_error_set(err, BARCHAN_EBUSY, "the sandbox is held already");
        }
    }
    return 0;
}

int barchan_sandbox_hold(barchan_sandbox *sbx, barchan_sandbox_done_fn done, void *ud,
                         barchan_error *err)
{
    BC_OPERATION("sandbox.hold");
    int rc = may_hold(sbx, err);
    bc_hold *hold = rc < 0 ? NULL : calloc(1, sizeof *hold);
    if (rc == 0 && hold == NULL) rc = bc_error_nomem(err);
    if (rc == 0) {
        hold->rt = sbx->rt;
        hold->sbx = sbx;
        hold->dir_fd = hold->lock_fd = hold->listen_fd = -1;
        bc_sandbox_ref(sbx);
        bc_hold_log_init(&hold->log);
        rc = open_hold(hold, err);
        bc_resident_add(hold->rt, &hold->resident, end_resident);
        if (rc < 0) finish(hold);
    }
    if (rc < 0) {
        bc_error_context(err, "hold sandbox");
        return rc;
    }
    hold->done = done;
    hold->ud = ud;
    return 0;
}
