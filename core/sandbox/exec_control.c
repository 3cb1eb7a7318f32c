/* What can be done to a command while it runs, but for ending it and its input. */
#include "exec.h"

uint32_t barchan_exec_id(const barchan_exec *exec)
{
    return exec == NULL ? 0 : exec->stream.id;
}

int barchan_exec_signal(barchan_exec *exec, int signal_number, barchan_error *err)
{
    BC_OPERATION("exec.signal");
    if (exec == NULL || signal_number < 1 || signal_number > 64) {
        return bc_error_set(err, BARCHAN_EINVAL, "exec and a signal from 1 to 64 are needed");
    }
    if (exec->finished) return bc_error_set(err, BARCHAN_ECLOSED, "the command has ended");
    unsigned char payload[4];
    bc_put_u32(payload, (uint32_t)signal_number);
    return bc_stream_send(&exec->stream, BC_FRAME_SIGNAL, payload, sizeof payload, NULL, 0, err);
}

int barchan_exec_resize(barchan_exec *exec, int columns, int rows, barchan_error *err)
{
    BC_OPERATION("exec.resize");
    if (exec == NULL || columns < 1 || columns > 0xFFFF || rows < 1 || rows > 0xFFFF) {
        return bc_error_set(err, BARCHAN_EINVAL,
                            "exec and a size from 1 to 65535 columns and rows are needed");
    }
    if (!exec->terminal) return bc_error_set(err, BARCHAN_EINVAL, "the command has no terminal");
    if (exec->finished) return bc_error_set(err, BARCHAN_ECLOSED, "the command has ended");
    unsigned char payload[8];
    bc_put_u32(payload, (uint32_t)columns);
    bc_put_u32(payload + 4, (uint32_t)rows);
    return bc_stream_send(&exec->stream, BC_FRAME_RESIZE, payload, sizeof payload, NULL, 0, err);
}
