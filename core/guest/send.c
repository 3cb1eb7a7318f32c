#include "init.h"

#include <errno.h>

void send_frame(struct init *init, uint32_t type, uint32_t stream, const void *payload, size_t len)
{
    unsigned char header[BC_FRAME_HEADER];
    bc_frame_put_header(header, type, stream, (uint32_t)len);
    if (!queue_put(&init->out, header, sizeof header) || !queue_put(&init->out, payload, len)) {
        init_die(init, "out of memory");
    }
}

void send_flush(struct init *init)
{
    while (init->out.len > 0) {
        /* A socket or a pipe; SIGPIPE is blocked. */
        long n = sys_write(init->out_fd, init->out.data + init->out.start, init->out.len);
        if (n == -EINTR) continue;
        if (n == -EAGAIN) return;
        if (n < 0) init_die(init, "the library is gone");
        queue_drop(&init->out, (size_t)n);
    }
    if (init->out.cap > 2 * OUT_QUEUE_HIGH) queue_free(&init->out); /* a burst is over */
}
