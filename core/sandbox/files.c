/*
 * File operations: one stream each, done inside the sandbox by a worker of the guest. Bytes flow
 * under the stream's credit in both directions, so that neither side holds more than a window.
 */
#include "files.h"

#include <stdlib.h>
#include <string.h>
#include "base/limits.h"

#define CREDIT_STEP (BC_FRAME_WINDOW / 4)

static void free_call(barchan_file_call *call)
{
    bc_stream_close(&call->stream);
    bc_timer_close(call->timer);
    bc_cancel_watch_close(call->cancel);
    bc_defer_cancel(&call->defer);
    bc_buf_clear(&call->in_data);
    bc_buf_clear(&call->out_data);
    barchan_file_result_clear(&call->result);
    free(call->path);
    free(call);
}

/* No more calls from the channel, timer or token; the callback may follow later. */
static void detach_call(barchan_file_call *call)
{
    bc_stream_close(&call->stream);
    bc_timer_close(call->timer);
    bc_cancel_watch_close(call->cancel);
    call->timer = NULL;
    call->cancel = NULL;
    call->in_open = 0;
}

static void finish(barchan_file_call *call)
{
    call->finished = 1;
    detach_call(call);
    if (call->error.code != 0 && call->op != BC_FILE_PACK) {
        char what[192];
        bc_file_describe(call, what, sizeof what);
        bc_error_context(&call->error, "%s", what);
        bc_error_where(&call->error, "sandbox.file");
    }
    call->done(call->error.code == 0 ? &call->result : NULL,
               call->error.code == 0 ? NULL : &call->error, call->done_ud);
    free_call(call);
}

static void finish_deferred(bc_defer *defer)
{
    finish(owner_of(defer, barchan_file_call, defer));
}

static void finish_later(barchan_file_call *call)
{
    call->finished = 1;
    detach_call(call);
    bc_defer_schedule(call->rt, &call->defer, finish_deferred);
}

static void on_lost(bc_stream *stream)
{
    barchan_file_call *call = owner_of(stream, barchan_file_call, stream);
    if (call->error.code == 0) bc_error_set(&call->error, BARCHAN_ELOST, "the sandbox ended");
    finish_later(call);
}

/* Stops the worker; the call ends, with the first reason given, when the guest says so. */
static void stop(barchan_file_call *call)
{
    if (call->cancelling || call->finished) return;
    call->cancelling = 1;
    call->in_open = 0;
    bc_stream_send(&call->stream, BC_FRAME_CANCEL, NULL, 0, NULL, 0, NULL);
    bc_timer_set(call->timer, BC_EXEC_MARGIN_MS);
}

void barchan_file_cancel(barchan_file_call *call)
{
    if (call == NULL || call->finished || call->cancelling) return;
    bc_error_set(&call->error, BARCHAN_ECANCELLED, "cancelled");
    stop(call);
}

static void on_token(void *ud)
{
    barchan_file_cancel(ud);
}

/* First: nothing moved for too long. Again while stopping: the guest does not answer. */
static void on_idle(void *ud)
{
    barchan_file_call *call = ud;
    if (call->cancelling) {
        call->stream.sbx->abandoned = 1;
        finish_later(call);
        return;
    }
    bc_error_set(&call->error, BARCHAN_ETIMEDOUT, "no progress for %lld ms",
                 (long long)call->timeout_ms);
    stop(call);
}

static void progressed(barchan_file_call *call)
{
    if (!call->cancelling) bc_timer_set(call->timer, call->waiting ? -1 : call->timeout_ms);
}

static void wait_for_host(barchan_file_call *call)
{
    call->waiting = 1;
    progressed(call);
}

/* ---- bytes to the guest ---- */

/* Refills in_data from the source: 0, 1 when it has nothing yet, or -1. */
static int pull(barchan_file_call *call)
{
    char *room = bc_buf_reserve(&call->in_data, BC_FRAME_MAX_DATA);
    if (room == NULL) {
        bc_error_nomem(&call->error);
        return -1;
    }
    long n = call->source(room, BC_FRAME_MAX_DATA, call->ud);
    if (n == BARCHAN_FILE_LATER) return 1;
    if (n < 0 || n > (long)BC_FRAME_MAX_DATA) {
        bc_error_set(&call->error, BARCHAN_ECANCELLED, "the source gave up");
        return -1;
    }
    if (n == 0) call->source = NULL;
    bc_buf_commit(&call->in_data, (size_t)n);
    return 0;
}

static void send_input(barchan_file_call *call)
{
    while (call->in_open && !call->waiting && call->in_credit > 0) {
        int rc = call->in_data.len == 0 && call->source != NULL ? pull(call) : 0;
        if (rc < 0) stop(call);
        if (rc > 0) wait_for_host(call);
        if (rc != 0) return;
        size_t len = call->in_data.len;
        if (len == 0 && call->source == NULL) {
            call->in_open = 0;
            bc_stream_send(&call->stream, BC_FRAME_INPUT_END, NULL, 0, NULL, 0, NULL);
            return;
        }
        if (len > call->in_credit) len = call->in_credit;
        if (len > BC_FRAME_MAX_DATA) len = BC_FRAME_MAX_DATA;
        if (bc_stream_send(&call->stream, BC_FRAME_INPUT, bc_buf_data(&call->in_data), len, NULL, 0,
                           NULL) < 0) {
            return; /* on_lost follows */
        }
        bc_buf_consume(&call->in_data, len);
        call->in_credit -= (uint32_t)len;
    }
}

static void send_input_deferred(bc_defer *defer)
{
    send_input(owner_of(defer, barchan_file_call, defer));
}

static int on_grant(barchan_file_call *call, const bc_frame *frame)
{
    bc_wire_reader in = bc_wire_read(frame);
    uint32_t bytes = bc_wire_u32(&in);
    if (!bc_wire_done(&in) || bytes > BC_FRAME_WINDOW - call->in_credit) return -1;
    call->in_credit += bytes;
    progressed(call);
    send_input(call);
    return 0;
}

/* ---- bytes from the guest ---- */

/* While the sink wants no more, the guest gets none: it stops at the end of its window. */
static void give_credit(barchan_file_call *call)
{
    if (call->uncredited < CREDIT_STEP || call->stream.sbx == NULL) return;
    uint32_t bytes = call->uncredited;
    call->uncredited = 0;
    bc_stream_credit(&call->stream, BC_FRAME_OUT, bytes);
}

static int on_data(barchan_file_call *call, const bc_frame *frame)
{
    if (frame->length > BC_FRAME_WINDOW - call->uncredited) return -1;
    call->uncredited += frame->length;
    call->out_bytes += frame->length;
    if (call->cancelling) {
        /* dropped, and credited so that the guest can come to its end */
    } else if (call->sink != NULL) {
        int rc = call->sink(frame->payload, frame->length, call->ud);
        if (rc == BARCHAN_FILE_LATER) call->waiting = 1;
        if (rc < 0) {
            bc_error_set(&call->error, BARCHAN_ECANCELLED, "the sink gave up");
            stop(call);
        }
        if (call->finished) return 0; /* the sink ended the sandbox */
    } else {
        int rc = bc_buf_append(&call->out_data, frame->payload, frame->length);
        if (rc == BARCHAN_ELIMIT) return -1;
        if (rc < 0) {
            bc_error_nomem(&call->error);
            stop(call);
        }
    }
    if (!call->waiting || call->cancelling) give_credit(call);
    progressed(call);
    return 0;
}

static void resume_deferred(bc_defer *defer)
{
    barchan_file_call *call = owner_of(defer, barchan_file_call, defer);
    progressed(call);
    if (call->in_open) send_input(call);
    if (!call->finished && call->sink != NULL) give_credit(call);
}

void barchan_file_resume(barchan_file_call *call)
{
    if (call == NULL || call->finished || !call->waiting) return;
    call->waiting = 0;
    bc_defer_schedule(call->rt, &call->defer, resume_deferred);
}

static int gives_entries(barchan_file_op op)
{
    return op == BARCHAN_FILE_LIST || op == BARCHAN_FILE_STAT || op == BARCHAN_FILE_CHANGES;
}

static int take_result(barchan_file_call *call)
{
    barchan_file_result *result = &call->result;
    if (gives_entries(call->op)) {
        int rc = bc_file_read_entries(&call->out_data, call->op, result);
        if (rc == BARCHAN_ENOMEM) bc_error_nomem(&call->error);
        if (call->op == BARCHAN_FILE_STAT && result->entry_count != 1) return -1;
        return rc == -1 ? -1 : 0;
    }
    if (call->op == BARCHAN_FILE_READ && call->sink == NULL) {
        result->data.data = bc_buf_take(&call->out_data, &result->data.len);
        if (result->data.data == NULL) bc_error_nomem(&call->error);
    }
    return 0;
}

static int on_done_frame(barchan_file_call *call, const bc_frame *frame)
{
    bc_wire_reader in = bc_wire_read(frame);
    uint32_t status = bc_wire_u32(&in), os_error = bc_wire_u32(&in);
    call->result.bytes = bc_wire_u64(&in);
    call->result.size = bc_wire_u64(&in);
    call->result.truncated = bc_wire_u32(&in) != 0;
    const char *words = bc_wire_string(&in, BC_FRAME_MAX_MESSAGE);
    if (!bc_wire_done(&in) || status > BC_WIRE_MAX_STATUS || os_error > 4095) return -1;
    if (call->op == BARCHAN_FILE_READ && !call->cancelling && status == 0 && os_error == 0 &&
        call->result.bytes != call->out_bytes) {
        return -1;
    }
    if (call->error.code == 0 && (status != 0 || os_error != 0)) {
        bc_error_of_guest(&call->error, status, os_error, words);
    }
    if (call->error.code == 0 && take_result(call) < 0) return -1;
    finish(call);
    return 0;
}

static int on_frame(bc_stream *stream, const bc_frame *frame)
{
    barchan_file_call *call = owner_of(stream, barchan_file_call, stream);
    switch (frame->type) {
    case BC_FRAME_OUT: return on_data(call, frame);
    case BC_FRAME_GRANT: return on_grant(call, frame);
    case BC_FRAME_FILE_DONE: return on_done_frame(call, frame);
    default: return -1;
    }
}

static const bc_stream_ops file_ops = {.on_frame = on_frame, .on_lost = on_lost};

/* ---- start ---- */

static int copy_request(barchan_file_call *call, const barchan_file_request *request)
{
    call->op = request->op;
    call->path_len = request->path_len == 0 ? strlen(request->path) : request->path_len;
    call->path = malloc(call->path_len + 1);
    if (call->path == NULL) return BARCHAN_ENOMEM;
    memcpy(call->path, request->path, call->path_len);
    call->path[call->path_len] = '\0';
    call->source = request->source;
    call->sink = request->sink;
    call->ud = request->ud;
    call->timeout_ms = request->timeout_ms == 0 ? BC_FILE_IDLE_MS : request->timeout_ms;
    call->in_open = request->op == BARCHAN_FILE_WRITE || request->op == BARCHAN_FILE_APPEND;
    call->in_credit = BC_FRAME_WINDOW;
    bc_buf_init(&call->out_data,
                gives_entries(request->op) ? BC_FILE_MAX_RECORD_BYTES : BC_FILE_MAX_READ_BYTES);
    size_t in_max = request->source != NULL ? 2 * BC_FRAME_MAX_DATA : request->data_len;
    bc_buf_init(&call->in_data, in_max);
    return call->in_open && request->source == NULL
               ? bc_buf_append(&call->in_data, request->data, request->data_len)
               : 0;
}

static int open_call(barchan_file_call *call, barchan_sandbox *sbx,
                     const barchan_file_request *request, barchan_error *err)
{
    bc_buf payload cleanup_buf;
    bc_buf_init(&payload, 2 * BC_FRAME_MAX_PATH + 128);
    if (copy_request(call, request) < 0 || bc_file_encode(&payload, request) < 0) {
        return bc_error_nomem(err);
    }
    call->rt = sbx->rt;
    int rc = bc_stream_open(&call->stream, sbx, &file_ops, err);
    if (rc == 0) rc = bc_timer_open(&call->timer, sbx->rt, on_idle, call, err);
    if (rc == 0) {
        rc = bc_stream_send(&call->stream, BC_FRAME_FILE, bc_buf_data(&payload), payload.len, NULL,
                            0, err);
    }
    if (rc == 0) {
        rc = bc_cancel_watch_open(&call->cancel, sbx->rt, request->cancel, on_token, call, err);
    }
    if (rc < 0) return rc;
    progressed(call);
    /* The source is called from dispatches only. */
    if (call->in_open) bc_defer_schedule(call->rt, &call->defer, send_input_deferred);
    return 0;
}

static int find_target(const barchan_sandbox *sbx, barchan_file_request *request,
                       barchan_error *err)
{
    bc_mount mount;
    if (request->op != BARCHAN_FILE_CHANGES) return 0;
    int rc = bc_mounts_find_copy(sbx, request->path, request->path_len, &mount, err);
    if (rc < 0) return rc;
    request->path = mount.target;
    request->path_len = 0;
    return 0;
}

static int check_snapshots(const barchan_sandbox *sbx, barchan_file_op op, barchan_error *err)
{
    int writes = op == BARCHAN_FILE_WRITE || op == BARCHAN_FILE_APPEND ||
                 op == BARCHAN_FILE_MKDIR || op == BARCHAN_FILE_REMOVE || op == BARCHAN_FILE_RENAME;
    if (!writes || sbx->snapshots == 0) return 0;
    return bc_error_busy(err, "a snapshot of the sandbox is being taken");
}

int barchan_sandbox_file_start(barchan_file_call **out, barchan_sandbox *sbx,
                               const barchan_file_request *given, barchan_file_done_fn done,
                               void *ud, barchan_error *err)
{
    BC_OPERATION("sandbox.file");
    if (given != NULL && given->struct_size > offsetof(barchan_file_request, op) &&
        given->op > BARCHAN_FILE_CHANGES) {
        if (out != NULL) *out = NULL;
        bc_error_set(err, BARCHAN_EINVAL, "unknown file operation %d", (int)given->op);
        return BARCHAN_EINVAL;
    }
    return bc_file_start(out, sbx, given, done, ud, err);
}

int bc_file_start(barchan_file_call **out, barchan_sandbox *sbx, const barchan_file_request *given,
                  barchan_file_done_fn done, void *ud, barchan_error *err)
{
    barchan_file_request request;
    barchan_file_call *call = NULL;
    if (out != NULL) *out = NULL;
    int rc = bc_sandbox_check(sbx, err);
    if (rc == 0 && (given == NULL || done == NULL)) {
        rc = bc_error_set(err, BARCHAN_EINVAL, "request and done are needed");
    }
    if (rc == 0) rc = bc_options_copy(&request, sizeof request, given, err);
    if (rc == 0) rc = find_target(sbx, &request, err);
    if (rc == 0) rc = bc_file_check(&request, err);
    if (rc == 0) rc = check_snapshots(sbx, request.op, err);
    if (rc == 0) {
        call = calloc(1, sizeof *call);
        rc = call == NULL ? bc_error_nomem(err) : open_call(call, sbx, &request, err);
    }
    if (rc < 0) {
        if (call != NULL && call->stream.sbx != NULL) sbx->abandoned = 1; /* it may run */
        if (call != NULL) free_call(call);
        bc_error_where(err, "sandbox.file");
        return rc;
    }
    call->done = done;
    call->done_ud = ud;
    if (out != NULL) *out = call;
    return 0;
}
