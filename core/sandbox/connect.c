/*
 * A connection to the holder of a detached sandbox. Commands and files go over it as over the
 * channel of any sandbox; here is what is different: how it begins, what the holder tells of the
 * sandbox, and that letting go is not ending.
 *
 * To end the sandbox a second connection says so, whatever the first is full of; the holder closes
 * it when nothing of the sandbox runs any more.
 */
#include "connect.h"

#include <stdlib.h>
#include <string.h>
#include "base/clock.h"
#include "base/limits.h"
#include "channel/held.h"
#include "held_dir.h"
#include "internal.h"

struct bc_connection {
    barchan_sandbox *sbx;
    int paused;  /* by the news that came before it was ready */
    int told;    /* the holder has said that the sandbox has ended */
    int leaving; /* the end is being reported */
    bc_defer gone;
    bc_channel *last; /* the second connection */
    bc_timer *patience;
};

void bc_connection_free(struct bc_connection *connection)
{
    if (connection == NULL) return;
    bc_defer_cancel(&connection->gone);
    bc_channel_close(connection->last);
    bc_timer_close(connection->patience);
    free(connection);
}

static int start(barchan_sandbox *sbx, int *channel_fd, barchan_error *err)
{
    sbx->connection = calloc(1, sizeof *sbx->connection);
    if (sbx->connection == NULL) return bc_error_nomem(err);
    sbx->connection->sbx = sbx;
    return bc_held_connect(sbx->id, channel_fd, err);
}

/* ---- what the holder tells ---- */

static int on_news(barchan_sandbox *sbx, bc_wire_reader *in)
{
    bc_held_news news;
    bc_wire_get_news(in, &news);
    if (!bc_wire_done(in) || news.age_ms > BC_USAGE_MAX || news.running > INT32_MAX ||
        news.lease_left_ms > BC_SANDBOX_MAX_LEASE_MS) {
        return -1;
    }
    int64_t now = bc_clock_ms();
    sbx->born_ms = now - (int64_t)news.age_ms;
    sbx->lease_end_ms = now + (int64_t)news.lease_left_ms;
    sbx->running_elsewhere = (int)news.running;
    sbx->execs = bc_usage_bound(news.execs);
    sbx->bytes_in = bc_usage_bound(news.bytes_in);
    sbx->bytes_out = bc_usage_bound(news.bytes_out);
    sbx->connection->paused = news.paused != 0;
    if (sbx->state != BARCHAN_SANDBOX_STARTING) bc_sandbox_set_paused(sbx, news.paused != 0);
    return 0;
}

static int read_env(barchan_sandbox *sbx, bc_wire_reader *in)
{
    uint32_t count = bc_wire_u32(in);
    if (in->bad || count > BC_ENV_MAX) return -1;
    char **env = calloc(count + 1, sizeof *env);
    for (uint32_t i = 0; env != NULL && i < count; i++) {
        const char *pair = bc_wire_string(in, BC_HELD_MAX_READY);
        if (strchr(pair, '=') == NULL) in->bad = 1;
        env[i] = strdup(pair);
        if (env[i] == NULL) in->bad = 1;
        if (in->bad) break;
    }
    if (env == NULL) return -1;
    free(sbx->env); /* it was empty */
    sbx->env = env;
    return in->bad ? -1 : 0;
}

static int on_ready(barchan_sandbox *sbx, bc_wire_reader *in)
{
    if (sbx->state != BARCHAN_SANDBOX_STARTING) return -1;
    uint64_t wall_ms = bc_wire_u64(in);
    const char *template_name = bc_wire_string(in, BC_FRAME_MAX_PATH - 1);
    const char *layers = bc_wire_string(in, sbx->layers.max);
    if (read_env(sbx, in) < 0) return -1;
    if (bc_profile_take(sbx, in) < 0) return -1;
    if (bc_mounts_take(sbx, in) < 0 || !bc_wire_done(in) || wall_ms > BC_USAGE_MAX) return -1;
    char *copy = strdup(template_name);
    if (copy == NULL || bc_buf_append_string(&sbx->layers, layers) < 0) {
        free(copy);
        return -1;
    }
    free(sbx->template_name);
    sbx->template_name = copy;
    sbx->wall_ms = (int64_t)wall_ms;
    sbx->state = sbx->connection->paused ? BARCHAN_SANDBOX_PAUSED : BARCHAN_SANDBOX_READY;
    bc_created_succeed(sbx);
    return 0;
}

static int read_end(barchan_sandbox *sbx, bc_wire_reader *in, barchan_end_reason *reason)
{
    uint32_t told = bc_wire_u32(in);
    bc_usage used;
    bc_wire_get_usage(in, &used);
    if (!bc_wire_done(in) || told == BARCHAN_END_NONE || told > BARCHAN_END_OOM) return -1;
    bc_usage_told(sbx, &used);
    sbx->connection->told = 1;
    *reason = (barchan_end_reason)told;
    return 0;
}

static int on_frame(barchan_sandbox *sbx, const bc_frame *frame)
{
    bc_wire_reader in = bc_wire_read(frame);
    barchan_end_reason reason;
    switch (frame->type) {
    case BC_HELD_NEWS: return on_news(sbx, &in);
    case BC_HELD_READY: return on_ready(sbx, &in);
    case BC_HELD_ENDED:
        if (read_end(sbx, &in, &reason) < 0) return -1;
        bc_sandbox_end(sbx, reason, NULL);
        return 0;
    default: return -1;
    }
}

/* ---- the end ---- */

static void report_gone(bc_defer *defer)
{
    struct bc_connection *connection = owner_of(defer, struct bc_connection, gone);
    barchan_error why;
    bc_error_set(&why, BARCHAN_ELOST, "the process that holds the sandbox is gone");
    bc_timer_close(connection->patience);
    connection->patience = NULL;
    bc_channel_close(connection->last);
    connection->last = NULL;
    bc_sandbox_gone(connection->sbx, BC_ENDING_HOST, &why); /* may free it all */
}

static void gone_later(struct bc_connection *connection)
{
    bc_defer_schedule(connection->sbx->rt, &connection->gone, report_gone);
}

static int on_last_frame(void *ud, const bc_frame *frame)
{
    struct bc_connection *connection = ud;
    bc_wire_reader in = bc_wire_read(frame);
    barchan_end_reason reason;
    if (frame->type == BC_HELD_ENDED) return read_end(connection->sbx, &in, &reason);
    return 0; /* its greeting */
}

static void on_last_end(void *ud, const barchan_error *why)
{
    (void)why;
    gone_later(ud);
}

static const bc_channel_handler last_handler = {
    .on_frame = on_last_frame, .on_end = on_last_end, .max_of = bc_held_max_from_holder};

static void on_late(void *ud)
{
    gone_later(ud);
}

static int ask_for_end(struct bc_connection *connection)
{
    barchan_sandbox *sbx = connection->sbx;
    unsigned char hello[8];
    int fd;
    bc_put_u32(hello, BC_HELD_VERSION);
    bc_put_u32(hello + 4, 0);
    if (bc_held_connect(sbx->id, &fd, NULL) < 0) return -1;
    if (bc_channel_open(&connection->last, sbx->rt, fd, &last_handler, connection, NULL) < 0 ||
        bc_timer_open(&connection->patience, sbx->rt, on_late, connection, NULL) < 0) {
        return -1;
    }
    bc_timer_set(connection->patience, BC_HOLD_END_MS);
    int rc =
        bc_channel_send(connection->last, BC_FRAME_HELLO, 0, hello, sizeof hello, NULL, 0, NULL);
    if (rc == 0) {
        rc = bc_channel_send(connection->last, BC_HELD_TERMINATE, 0, NULL, 0, NULL, 0, NULL);
    }
    return rc;
}

/* Called when the sandbox has ended for this handle, and when the holder closes the connection. */
static void end(barchan_sandbox *sbx)
{
    struct bc_connection *connection = sbx->connection;
    if (connection == NULL || !sbx->backend_held || connection->leaving) return;
    connection->leaving = 1;
    int wanted = sbx->state == BARCHAN_SANDBOX_ENDED && !connection->told &&
                 (sbx->end_reason == BARCHAN_END_TERMINATED ||
                  sbx->end_reason == BARCHAN_END_PROTOCOL_ERROR);
    if (!wanted || ask_for_end(connection) < 0) gone_later(connection);
}

/* The holder tells the launcher: it has the question. */
static void extend(barchan_sandbox *sbx)
{
    (void)sbx;
}

const bc_backend bc_backend_held = {
    .name = "held",
    .start = start,
    .kill = end,
    .extend = extend,
    .on_frame = on_frame,
    .hello = BC_HELD_VERSION,
    .max_of = bc_held_max_from_holder,
    .verb = "connect to sandbox",
    .when_dropped = BARCHAN_END_DETACHED,
};

/* ---- the public side ---- */

int barchan_sandbox_connect_start(barchan_sandbox **out, barchan_runtime *rt, const char *id,
                                  int timeout_ms, barchan_sandbox_created_fn done, void *ud,
                                  barchan_error *err)
{
    BC_OPERATION("sandbox.connect");
    if (out == NULL) return bc_error_set(err, BARCHAN_EINVAL, "out is NULL");
    *out = NULL;
    barchan_profile profile = {.struct_size = sizeof profile, .timeout_ms = timeout_ms};
    int rc = bc_runtime_check(rt, err);
    if (rc == 0 && !bc_held_id_is_valid(id)) {
        rc = bc_error_set(err, BARCHAN_EINVAL,
                          "'%.40s' is no id of a sandbox: sbx- and 16 hexadecimal digits expected",
                          id == NULL ? "" : id);
    }
    if (rc == 0) {
        rc = bc_sandbox_open_with(out, rt, &profile, &bc_backend_held, id, NULL, done, ud, err);
    }
    if (rc < 0) {
        bc_error_context(err, "connect to sandbox");
    }
    return rc;
}

int barchan_sandbox_connect(barchan_sandbox **out, barchan_runtime *rt, const char *id,
                            barchan_error *err)
{
    BC_OPERATION("sandbox.connect");
    bc_outcome outcome = {0};
    int rc = bc_runtime_may_wait(rt, err);
    if (rc == 0) rc = barchan_sandbox_connect_start(out, rt, id, 0, bc_created_note, &outcome, err);
    return rc < 0 ? rc : bc_created_wait(out, &outcome, err);
}
