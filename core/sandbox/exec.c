/*
 * Commands: one stream each. The guest runs the command, holds its deadline and reports its end;
 * the library holds a later deadline of its own, should the guest not be able to.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/clock.h"
#include "base/limits.h"
#include "channel/held.h"
#include "exec.h"

const char *barchan_exec_reason_name(barchan_exec_reason reason)
{
    static const char *const names[] = {"exited",    "signaled", "timeout",      "oom",
                                        "cancelled", "lost",     "spawn_failed", "pids",
                                        "disk_full", "cpu_time", "output"};
    return (size_t)reason < sizeof names / sizeof *names ? names[reason] : "unknown";
}

void barchan_bytes_clear(barchan_bytes *bytes)
{
    if (bytes == NULL) return;
    free(bytes->data);
    *bytes = (barchan_bytes){0};
}

void barchan_exec_result_clear(barchan_exec_result *result)
{
    if (result == NULL) return;
    barchan_bytes_clear(&result->out);
    barchan_bytes_clear(&result->err_out);
    free(result->denied);
    free(result->unreached);
    *result = (barchan_exec_result){0};
}

/* ---- the end ---- */

static void free_exec(barchan_exec *exec)
{
    bc_stream_close(&exec->stream);
    bc_timer_close(exec->timer);
    bc_cancel_watch_close(exec->cancel);
    bc_defer_cancel(&exec->defer);
    bc_exec_output_clear(&exec->out);
    bc_exec_output_clear(&exec->err_out);
    bc_buf_clear(&exec->in_data);
    barchan_exec_result_clear(&exec->result);
    free(exec);
}

/* No more calls from the channel, timer or token; the callback may follow later. */
static void detach_exec(barchan_exec *exec)
{
    /* A lost stream is unlinked already, but still counted. */
    if (exec->counted != NULL) {
        exec->counted->running--;
        bc_egress_told_since(exec->counted->egress, exec->before, &exec->result);
    }
    exec->counted = NULL;
    bc_stream_close(&exec->stream);
    bc_timer_close(exec->timer);
    bc_cancel_watch_close(exec->cancel);
    exec->timer = NULL;
    exec->cancel = NULL;
    exec->in_open = 0;
}

void bc_exec_finish(barchan_exec *exec)
{
    exec->finished = 1;
    detach_exec(exec);
    barchan_exec_result *result = &exec->result;
    /* What arrived before an end without a report; never NULL in a result. */
    if (result->out.data == NULL) bc_exec_take_output(&exec->out, 0, &result->out);
    if (result->err_out.data == NULL) bc_exec_take_output(&exec->err_out, 0, &result->err_out);
    exec->done(exec, result, exec->done_ud);
    free_exec(exec);
}

static void finish_deferred(bc_defer *defer)
{
    barchan_exec *exec = owner_of(defer, barchan_exec, defer);
    bc_exec_deliver(exec);
    bc_exec_finish(exec);
}

/* Ends it in the next dispatch, with this reason unless its end was reported already. */
static void finish_later(barchan_exec *exec, barchan_exec_reason reason)
{
    exec->finished = 1;
    detach_exec(exec);
    exec->paused = 0;
    if (!exec->exit_pending) {
        exec->result.reason = reason;
        exec->result.exit_code = -1;
    }
    bc_defer_cancel(&exec->defer); /* a delivery that was due: the end delivers too */
    bc_defer_schedule(exec->rt, &exec->defer, finish_deferred);
}

static void on_lost(bc_stream *stream)
{
    finish_later(owner_of(stream, barchan_exec, stream), BARCHAN_EXEC_LOST);
}

static int exited_by_itself(const bc_exit *e)
{
    return e->term_signal == 0 && (e->reason == BC_EXIT_EXITED || e->reason == BC_EXIT_OOM ||
                                   e->reason == BC_EXIT_PIDS || e->reason == BC_EXIT_DISK_FULL);
}

static int read_exit(barchan_exec *exec, const bc_frame *frame)
{
    bc_wire_reader in = bc_wire_read(frame);
    bc_exit e;
    bc_wire_get_exit(&in, &e);
    if (!bc_wire_done(&in) || e.reason > BC_EXIT_OUTPUT || e.reason == BARCHAN_EXEC_LOST ||
        e.exit_code > 255 || e.term_signal > 64 || e.spawn_errno > 4095) {
        return -1;
    }
    barchan_exec_result *result = &exec->result;
    result->reason = (barchan_exec_reason)e.reason;
    result->exit_code = exited_by_itself(&e) ? (int)e.exit_code : -1;
    result->term_signal = (int)e.term_signal;
    result->spawn_errno = (int)e.spawn_errno;
    result->spawn_cwd = e.spawn_cwd != 0;
    result->left_running = (int)(e.left_running & 0x7FFFFFFF);
    result->usage = (barchan_exec_usage){.wall_us = (int64_t)bc_usage_bound(e.wall_us),
                                         .user_us = (int64_t)bc_usage_bound(e.user_us),
                                         .system_us = (int64_t)bc_usage_bound(e.system_us),
                                         .max_rss_bytes = (int64_t)bc_usage_bound(e.max_rss_bytes)};
    bc_usage_add(exec->stream.sbx, &result->usage);
    if (exec->streaming) return e.out_dropped != 0 || e.err_dropped != 0 ? -1 : 0;
    if (bc_exec_take_output(&exec->out, e.out_dropped, &result->out) == -1) return -1;
    return bc_exec_take_output(&exec->err_out, e.err_dropped, &result->err_out) == -1 ? -1 : 0;
}

/* ---- frames, deadlines, control ---- */

/* A negative time stops it. */
static void set_timer(barchan_exec *exec, int64_t after_ms)
{
    exec->late_ms = after_ms < 0 ? 0 : bc_clock_ms() + after_ms;
    bc_timer_set(exec->timer, after_ms);
}

/* Its time stands still with it; what was asked of it meanwhile does not. */
static void on_paused(bc_stream *stream, int paused)
{
    barchan_exec *exec = owner_of(stream, barchan_exec, stream);
    if (exec->cancelled || exec->exit_pending) return;
    if (paused) {
        exec->late_left_ms = exec->late_ms == 0 ? -1 : exec->late_ms - bc_clock_ms();
        if (exec->late_ms != 0 && exec->late_left_ms < 0) exec->late_left_ms = 0;
        set_timer(exec, -1);
    } else {
        set_timer(exec, exec->late_left_ms);
    }
}

static int on_frame(bc_stream *stream, const bc_frame *frame)
{
    barchan_exec *exec = owner_of(stream, barchan_exec, stream);
    switch (frame->type) {
    case BC_FRAME_OUT:
    case BC_FRAME_ERR: return bc_exec_on_output(exec, frame);
    case BC_FRAME_GRANT: return bc_exec_on_grant(exec, frame);
    case BC_FRAME_EXIT:
        if (exec->exit_pending || read_exit(exec, frame) < 0) return -1;
        exec->exit_pending = 1;
        set_timer(exec, -1);
        if (bc_exec_deliver(exec)) bc_exec_finish(exec);
        return 0;
    case BC_HELD_DENIED:
    case BC_HELD_UNREACHED:
        if (stream->sbx->connection == NULL || exec->exit_pending) return -1;
        return bc_held_take_told(frame, &exec->result);
    default: return -1;
    }
}

static const bc_stream_ops exec_ops = {on_frame, on_lost, on_paused};

/* The guest did not end it in time. */
static void on_late(void *ud)
{
    barchan_exec *exec = ud;
    if (exec->paused) { /* it may be over, and its end waits behind output that nobody takes */
        set_timer(exec, BC_EXEC_MARGIN_MS);
        return;
    }
    exec->stream.sbx->abandoned = 1;
    bc_stream_send(&exec->stream, BC_FRAME_CANCEL, NULL, 0, NULL, 0, NULL);
    finish_later(exec, exec->cancelled ? BARCHAN_EXEC_CANCELLED : BARCHAN_EXEC_TIMEOUT);
}

void barchan_exec_cancel(barchan_exec *exec)
{
    if (exec == NULL || exec->finished || exec->cancelled) return;
    exec->cancelled = 1;
    bc_stream_send(&exec->stream, BC_FRAME_CANCEL, NULL, 0, NULL, 0, NULL);
    if (!exec->exit_pending) set_timer(exec, BC_EXEC_PATIENCE_MS);
    barchan_exec_resume(exec); /* the end comes after the last output */
}

static void on_token(void *ud)
{
    barchan_exec_cancel(ud);
}

void barchan_exec_pause(barchan_exec *exec)
{
    if (exec != NULL && exec->streaming && !exec->finished) exec->paused = 1;
}

static void deliver_deferred(bc_defer *defer)
{
    barchan_exec *exec = owner_of(defer, barchan_exec, defer);
    if (bc_exec_deliver(exec) && exec->exit_pending && !exec->finished) bc_exec_finish(exec);
}

/* Output is given out by the next dispatch, never inside this call. */
void barchan_exec_resume(barchan_exec *exec)
{
    if (exec == NULL || !exec->paused) return;
    exec->paused = 0;
    bc_defer_schedule(exec->rt, &exec->defer, deliver_deferred);
}

/* ---- start ---- */

static int check(const barchan_exec_options *options, barchan_error *err)
{
    if ((options->command == NULL) == (options->argv == NULL)) {
        return bc_error_set(err, BARCHAN_EINVAL, "give either command or argv");
    }
    if (options->argv != NULL && options->argv[0] == NULL) {
        return bc_error_set(err, BARCHAN_EINVAL, "argv is empty");
    }
    if (options->cwd != NULL && strlen(options->cwd) >= BC_FRAME_MAX_PATH) {
        return bc_error_set(err, BARCHAN_EINVAL, "cwd is too long");
    }
    if (options->input == NULL && options->input_len > 0) {
        return bc_error_set(err, BARCHAN_EINVAL, "input is NULL but input_len is not 0");
    }
    if (options->input_len > 0 && options->input_streaming) {
        return bc_error_set(err, BARCHAN_EINVAL, "input and input_streaming exclude each other");
    }
    if ((options->pty_cols == 0) != (options->pty_rows == 0) || options->pty_cols > 0xFFFF ||
        options->pty_rows > 0xFFFF) {
        return bc_error_set(err, BARCHAN_EINVAL,
                            "a terminal has pty_cols and pty_rows, each from 1 to 65535");
    }
    if (options->streaming && options->on_output == NULL) {
        return bc_error_set(err, BARCHAN_EINVAL, "streaming needs on_output");
    }
    if (options->timeout_ms < -1 || options->grace_ms < -1 || options->out_limit_bytes < -1 ||
        options->err_limit_bytes < -1) {
        return bc_error_set(err, BARCHAN_EINVAL, "a time or limit is below -1");
    }
    if (options->timeout_ms > BC_SANDBOX_MAX_LEASE_MS ||
        options->grace_ms > BC_SANDBOX_MAX_LEASE_MS) {
        return bc_error_set(err, BARCHAN_EINVAL, "a time is above 7 days");
    }
    if (options->out_limit_bytes > BC_FRAME_MAX_OUTPUT_LIMIT ||
        options->err_limit_bytes > BC_FRAME_MAX_OUTPUT_LIMIT) {
        return bc_error_set(err, BARCHAN_ELIMIT,
                            "at most %u bytes of output can be kept; use streaming for more",
                            BC_FRAME_MAX_OUTPUT_LIMIT);
    }
    return bc_env_check(options->env, "env", err);
}

static int send_request(barchan_exec *exec, const barchan_exec_options *options, barchan_error *err)
{
    bc_buf request cleanup_buf;
    bc_buf_init(&request, BC_FRAME_MAX_TO_GUEST);
    int rc = bc_exec_encode(&request, exec->stream.sbx, options, err);
    if (rc == BARCHAN_ELIMIT) { /* no execve would take it: the same answer */
        exec->result.spawn_errno = E2BIG;
        finish_later(exec, BARCHAN_EXEC_SPAWN_FAILED);
        return 0;
    }
    if (rc < 0) return rc;
    rc = bc_stream_send(&exec->stream, BC_FRAME_EXEC, bc_buf_data(&request), request.len, NULL, 0,
                        err);
    if (rc < 0) return rc;
    bc_exec_send_input(exec);
    if (options->timeout_ms > 0) {
        int64_t grace = options->grace_ms > 0 ? options->grace_ms : 0;
        set_timer(exec, options->timeout_ms + grace + BC_EXEC_PATIENCE_MS);
    }
    return 0;
}

static int open_exec(barchan_exec *exec, barchan_sandbox *sbx, const barchan_exec_options *options,
                     barchan_error *err)
{
    exec->rt = sbx->rt;
    exec->streaming = options->streaming != 0;
    exec->terminal = options->pty_cols > 0;
    exec->on_output = options->on_output;
    exec->on_drain = options->on_drain;
    exec->ud = options->ud;
    bc_exec_output_init(&exec->out, (uint64_t)options->out_limit_bytes, exec->streaming);
    bc_exec_output_init(&exec->err_out, (uint64_t)options->err_limit_bytes, exec->streaming);
    int rc = bc_exec_keep_input(exec, options, err);
    if (rc == 0) rc = bc_stream_open(&exec->stream, sbx, &exec_ops, err);
    if (rc < 0) return rc;
    sbx->running++;
    sbx->execs++;
    exec->counted = sbx;
    exec->before = bc_egress_mark(sbx->egress);
    rc = bc_timer_open(&exec->timer, sbx->rt, on_late, exec, err);
    if (rc == 0) rc = send_request(exec, options, err);
    if (rc == 0 && !exec->finished) {
        rc = bc_cancel_watch_open(&exec->cancel, sbx->rt, options->cancel, on_token, exec, err);
    }
    if (rc < 0) {
        sbx->abandoned = 1; /* the guest may have got the request */
        detach_exec(exec);
    }
    return rc;
}

int barchan_sandbox_exec_start(barchan_exec **out, barchan_sandbox *sbx,
                               const barchan_exec_options *given, barchan_exec_done_fn done,
                               void *done_ud, barchan_error *err)
{
    BC_OPERATION("sandbox.exec");
    barchan_exec_options options;
    barchan_exec *exec = NULL;
    if (out != NULL) *out = NULL;
    int rc = bc_sandbox_check(sbx, err);
    if (rc == 0 && sbx->state == BARCHAN_SANDBOX_PAUSED) {
        int over = sbx->pause_at_lease_end && bc_lease_left_ms(sbx) == 0;
        rc = bc_error_set(
            err, BARCHAN_EBUSY,
            over ? "the lease is over and the sandbox paused: extend it, then resume it"
                 : "the sandbox is paused: resume it first");
    } else if (rc == 0 && sbx->pauses_asked > 0) {
        rc = bc_error_set(err, BARCHAN_EBUSY, "the sandbox is just being paused");
    } else if (rc == 0 && sbx->snapshots > 0) {
        rc = bc_error_busy(err, "a snapshot of the sandbox is being taken");
    }
    if (rc == 0 && (given == NULL || done == NULL)) {
        rc = bc_error_set(err, BARCHAN_EINVAL, "options and done are needed");
    }
    if (rc == 0) rc = bc_options_copy(&options, sizeof options, given, err);
    if (rc == 0) rc = check(&options, err);
    if (rc == 0) {
        bc_exec_defaults(&options, sbx);
        exec = calloc(1, sizeof *exec);
        rc = exec == NULL ? bc_error_nomem(err) : open_exec(exec, sbx, &options, err);
    }
    if (rc < 0) {
        if (exec != NULL) free_exec(exec);
        bc_error_context(err, "exec");
        return rc;
    }
    exec->done = done;
    exec->done_ud = done_ud;
    if (out != NULL) *out = exec;
    return 0;
}

struct exec_wait {
    int done;
    barchan_exec_result *result;
};

static void on_done(barchan_exec *exec, barchan_exec_result *result, void *ud)
{
    struct exec_wait *wait = ud;
    (void)exec;
    *wait->result = *result;
    *result = (barchan_exec_result){0}; /* the bytes are the caller's now */
    wait->done = 1;
}

int barchan_sandbox_exec(barchan_sandbox *sbx, const barchan_exec_options *options,
                         barchan_exec_result *result, barchan_error *err)
{
    BC_OPERATION("sandbox.exec");
    struct exec_wait wait = {.result = result};
    barchan_exec *exec;
    if (result == NULL) return bc_error_set(err, BARCHAN_EINVAL, "exec: result is NULL");
    *result = (barchan_exec_result){0};
    int rc = bc_sandbox_check(sbx, err);
    if (rc == 0) rc = bc_runtime_may_wait(sbx->rt, err); /* before anything is started */
    barchan_exec_options copy = {0};
    if (rc == 0 && options != NULL) rc = bc_options_copy(&copy, sizeof copy, options, err);
    if (rc == 0 && copy.input_streaming) {
        rc = bc_error_set(err, BARCHAN_EINVAL,
                          "input_streaming needs barchan_sandbox_exec_start: nobody could write "
                          "while this call waits");
    }
    if (rc < 0) {
        bc_error_context(err, "exec");
        return rc;
    }
    barchan_runtime *rt = sbx->rt;
    rc = barchan_sandbox_exec_start(&exec, sbx, options, on_done, &wait, err);
    return rc < 0 ? rc : bc_runtime_wait(rt, &wait.done, err);
}
