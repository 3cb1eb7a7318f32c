/* SIGPIPE is a per-process disposition that belongs to the host: mask it in this thread, and
 * swallow the one that our own write raised. */
#include "loop.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>

static sigset_t only_sigpipe(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGPIPE);
    return set;
}

void bc_sigpipe_block(bc_sigpipe *state)
{
    sigset_t pending, old, set = only_sigpipe();
    pthread_sigmask(SIG_BLOCK, &set, &old);
    state->blocked = sigismember(&old, SIGPIPE) == 1;
    /* It waits only where it was blocked: else it would have arrived. */
    state->pending =
        state->blocked && sigpending(&pending) == 0 && sigismember(&pending, SIGPIPE) == 1;
}

void bc_sigpipe_restore(bc_sigpipe *state)
{
    sigset_t set = only_sigpipe();
    const struct timespec now = {0, 0};
    if (!state->pending) {
        while (sigtimedwait(&set, NULL, &now) == -1 && errno == EINTR) {}
    }
    if (!state->blocked) pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}
