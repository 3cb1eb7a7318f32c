/*
 * What a server sends in bulk, passed on without being copied: from its socket into a pipe and from
 * there to the program's, by splice(2). Nobody looks at these bytes. A connection that does so has
 * a pipe of its own, for what the program is slower to take stays in it; it is given back when the
 * server has no more for the moment.
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>
#include "base/cleanup.h"
#include "base/limits.h"
#include "egress/relay.h"

bool bc_pass_open(bc_relay *relay)
{
    bc_egress *egress = relay->egress;
    if (relay->pipe[0] >= 0) return true;
    if (egress->pipes == BC_EGRESS_MAX_PIPES || pipe2(relay->pipe, O_CLOEXEC | O_NONBLOCK) < 0) {
        relay->pipe[0] = relay->pipe[1] = -1;
        return false;
    }
    egress->pipes++;
    fcntl(relay->pipe[1], F_SETPIPE_SZ, BC_PASS_BYTES); /* or as it is */
    return true;
}

void bc_pass_end(bc_relay *relay)
{
    if (relay->pipe[0] < 0) return;
    close(steal_fd(&relay->pipe[0]));
    close(steal_fd(&relay->pipe[1]));
    relay->egress->pipes--;
    relay->piped = 0;
}

static ssize_t move(int from, int to, size_t len)
{
    ssize_t n;
    do {
        n = splice(from, NULL, to, NULL, len, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
    } while (n < 0 && errno == EINTR);
    return n;
}

/* A program that has closed its end would raise SIGPIPE: splice(2) cannot be told not to. */
static ssize_t move_out(bc_relay *relay)
{
    bc_sigpipe state;
    bc_sigpipe_block(&state);
    ssize_t n = move(relay->pipe[0], relay->fds[INNER], relay->piped);
    int os_error = errno;
    bc_sigpipe_restore(&state);
    errno = os_error;
    return n;
}

bc_moved bc_pass_flush(bc_relay *relay)
{
    while (relay->piped > 0) {
        ssize_t n = move_out(relay);
        if (n < 0 && errno == EAGAIN) return BC_WAITS;
        if (n <= 0) return BC_FAILED;
        relay->piped -= (size_t)n;
        bc_relay_count(relay, OUTER, (size_t)n);
    }
    return BC_MOVED;
}

bc_moved bc_pass(bc_relay *relay)
{
    size_t may = bc_budget_take(relay->egress, BC_PASS_BYTES);
    if (may == 0) return BC_WAITS;
    ssize_t n = move(relay->fds[OUTER], relay->pipe[1], may);
    if (n < 0 && errno == EAGAIN) {
        relay->last_read = 0;
        bc_pass_end(relay);
        return BC_WAITS;
    }
    if (n < 0) return BC_FAILED;
    if (n == 0) {
        relay->flows[OUTER].ended = 1;
        bc_pass_end(relay);
        return BC_WAITS;
    }
    bc_budget_spend(relay->egress, (size_t)n);
    relay->piped = (size_t)n;
    return bc_pass_flush(relay);
}
