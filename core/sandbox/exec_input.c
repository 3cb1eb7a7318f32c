/* What a command reads: given as a whole, or written by the caller as credit allows. */
#include "exec.h"

int bc_exec_keep_input(barchan_exec *exec, const barchan_exec_options *options, barchan_error *err)
{
    exec->in_credit = BC_FRAME_WINDOW;
    exec->in_open = options->input_streaming != 0;
    exec->in_end_due = options->input_len > 0;
    bc_buf_init(&exec->in_data, options->input_len);
    if (bc_buf_append(&exec->in_data, options->input, options->input_len) < 0) {
        return bc_error_nomem(err);
    }
    return 0;
}

void bc_exec_send_input(barchan_exec *exec)
{
    while (exec->in_data.len > 0 && exec->in_credit > 0) {
        size_t len = exec->in_data.len;
        if (len > exec->in_credit) len = exec->in_credit;
        if (len > BC_FRAME_MAX_DATA) len = BC_FRAME_MAX_DATA;
        if (bc_stream_send(&exec->stream, BC_FRAME_INPUT, bc_buf_data(&exec->in_data), len, NULL, 0,
                           NULL) < 0) {
            return;
        }
        bc_buf_consume(&exec->in_data, len);
        exec->in_credit -= (uint32_t)len;
    }
    if (exec->in_data.len == 0 && exec->in_end_due) {
        exec->in_end_due = 0;
        bc_stream_send(&exec->stream, BC_FRAME_INPUT_END, NULL, 0, NULL, 0, NULL);
    }
}

int bc_exec_on_grant(barchan_exec *exec, const bc_frame *frame)
{
    bc_wire_reader in = bc_wire_read(frame);
    uint32_t bytes = bc_wire_u32(&in);
    if (!bc_wire_done(&in) || bytes > BC_FRAME_WINDOW - exec->in_credit) return -1;
    exec->in_credit += bytes;
    bc_exec_send_input(exec);
    if (exec->in_open && exec->in_full) {
        exec->in_full = 0;
        if (exec->on_drain != NULL) exec->on_drain(exec, exec->ud);
    }
    return 0;
}

int barchan_exec_write(barchan_exec *exec, const void *data, size_t len, barchan_error *err)
{
    BC_OPERATION("exec.write");
    if (exec == NULL || (data == NULL && len > 0)) {
        return bc_error_set(err, BARCHAN_EINVAL, "exec and data are needed");
    }
    if (exec->finished) return bc_error_set(err, BARCHAN_ECLOSED, "the command has ended");
    if (!exec->in_open) {
        return bc_error_set(err, BARCHAN_EINVAL,
                            "the command's input is not open: set input_streaming, and do not "
                            "write after barchan_exec_close_input");
    }
    size_t taken = 0;
    while (taken < len && exec->in_credit > 0) {
        size_t part = len - taken;
        if (part > exec->in_credit) part = exec->in_credit;
        if (part > BC_FRAME_MAX_DATA) part = BC_FRAME_MAX_DATA;
        int rc = bc_stream_send(&exec->stream, BC_FRAME_INPUT, (const char *)data + taken, part,
                                NULL, 0, err);
        if (rc < 0) return rc;
        exec->in_credit -= (uint32_t)part;
        taken += part;
    }
    if (taken < len) exec->in_full = 1;
    return (int)taken;
}

int barchan_exec_close_input(barchan_exec *exec, barchan_error *err)
{
    BC_OPERATION("exec.close_input");
    if (exec == NULL) return bc_error_set(err, BARCHAN_EINVAL, "exec is NULL");
    if (!exec->in_open) return 0;
    exec->in_open = 0;
    return bc_stream_send(&exec->stream, BC_FRAME_INPUT_END, NULL, 0, NULL, 0, err);
}
