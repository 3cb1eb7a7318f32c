#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/limits.h"

#define CHILD_STACK_BYTES (64 * 1024)

struct bc_child {
    barchan_runtime *rt;
    bc_watch *watch;
    bc_child_exit_fn on_exit;
    void *ud;
    int pidfd;
    int reaped;
};

/* Shared with the child while the parent is suspended (CLONE_VFORK). */
struct start {
    const bc_child_options *options;
    int fds[BC_CHILD_MAX_FDS]; /* copies above the target range, the program's own too */
    int program_fd;
    sigset_t mask;
    int error;
};

/* Runs in the parent's memory, on a stack of its own, with every signal blocked: only plain
 * system calls here. */
static int child_main(void *argument)
{
    struct start *start = argument;
    const bc_child_options *options = start->options;
    struct sigaction def = {.sa_handler = SIG_DFL};
    for (int sig = 1; sig < _NSIG; sig++) {
        sigaction(sig, &def, NULL);
    }
    for (int i = 0; i < options->fd_count; i++) {
        if (dup3(start->fds[i], i, 0) < 0) goto failed;
    }
    /* The program's own descriptor stays open for the exec and closes with it (CLOEXEC). */
    if (syscall(SYS_close_range, (unsigned)options->fd_count, ~0U, CLOSE_RANGE_CLOEXEC) < 0) {
        goto failed; /* the host's descriptors would go along */
    }
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    syscall(SYS_execveat, start->program_fd, "", options->argv, options->envp, AT_EMPTY_PATH);
failed:
    start->error = errno;
    _exit(127);
}

static void on_readable(void *ud, unsigned events)
{
    bc_child *child = ud;
    siginfo_t info = {0};
    (void)events;
    bc_watch_set(child->watch, 0, NULL);
    int status = -1;
    if (waitid(P_PIDFD, (id_t)child->pidfd, &info, WEXITED | WNOHANG | __WALL) == 0 &&
        info.si_pid != 0) {
        status = info.si_code == CLD_EXITED ? (info.si_status & 0xFF) << 8 : info.si_status;
    }
    child->reaped = 1;
    child->on_exit(child, status, child->ud);
}

/* Copies each descriptor above the range that dup3 will fill, so that no order matters. */
static int lift_fds(struct start *start, int *null_fd)
{
    for (int i = 0; i < start->options->fd_count; i++) {
        int fd = start->options->fds[i];
        if (fd < 0 && *null_fd < 0) *null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
        if (fd < 0 && *null_fd < 0) return -1;
        start->fds[i] = fcntl(fd < 0 ? *null_fd : fd, F_DUPFD_CLOEXEC, BC_CHILD_MAX_FDS);
        if (start->fds[i] < 0) return -1;
    }
    start->program_fd = fcntl(start->options->program_fd, F_DUPFD_CLOEXEC, BC_CHILD_MAX_FDS);
    return start->program_fd < 0 ? -1 : 0;
}

static int clone_child(struct start *start, int *pidfd)
{
    void *stack = mmap(NULL, CHILD_STACK_BYTES, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (stack == MAP_FAILED) return -1;
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int pid = clone(child_main, (char *)stack + CHILD_STACK_BYTES,
                    CLONE_VM | CLONE_VFORK | CLONE_PIDFD | SIGCHLD, start, pidfd);
    int saved = errno;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    munmap(stack, CHILD_STACK_BYTES);
    errno = saved;
    return pid;
}

static int start_child(const bc_child_options *options, int *pidfd)
{
    struct start start = {.options = options, .program_fd = -1};
    cleanup_close int null_fd = -1;
    for (int i = 0; i < BC_CHILD_MAX_FDS; i++) {
        start.fds[i] = -1;
    }
    int pid = lift_fds(&start, &null_fd) < 0 ? -1 : clone_child(&start, pidfd);
    int saved = errno;
    for (int i = 0; i < BC_CHILD_MAX_FDS; i++) {
        if (start.fds[i] >= 0) close(start.fds[i]);
    }
    if (start.program_fd >= 0) close(start.program_fd);
    if (pid > 0 && start.error != 0) {
        waitid(P_PIDFD, (id_t)*pidfd, &(siginfo_t){0}, WEXITED | __WALL);
        close(steal_fd(pidfd));
        errno = start.error;
        return -1;
    }
    errno = saved;
    return pid;
}

int bc_child_spawn(bc_child **out, barchan_runtime *rt, const bc_child_options *options,
                   bc_child_exit_fn on_exit, void *ud, barchan_error *err)
{
    *out = NULL;
    if (options->fd_count < 3 || options->fd_count > BC_CHILD_MAX_FDS) {
        return bc_error_set(err, BARCHAN_EINVAL, "a child takes 3 to %d descriptors",
                            BC_CHILD_MAX_FDS);
    }
    bc_child *child = calloc(1, sizeof *child);
    if (child == NULL) return bc_error_nomem(err);
    *child = (bc_child){.rt = rt, .on_exit = on_exit, .ud = ud, .pidfd = -1};
    if (start_child(options, &child->pidfd) < 0) {
        int os_error = errno;
        free(child);
        return bc_error_set_os(err, os_error, "start a process");
    }
    int rc = bc_watch_open(&child->watch, rt, child->pidfd, on_readable, child, err);
    if (rc == 0) rc = bc_watch_set(child->watch, BC_READABLE, err);
    if (rc < 0) {
        bc_child_close(child);
        return rc;
    }
    *out = child;
    return 0;
}

int bc_child_pidfd(const bc_child *child)
{
    return child->pidfd;
}

void bc_child_kill(bc_child *child, int signal_number)
{
    syscall(SYS_pidfd_send_signal, child->pidfd, signal_number, NULL, 0);
}

/* The watch made the descriptor non-blocking, so waitid says EAGAIN until the death has happened;
 * it takes microseconds, unless the kernel holds the process. ECHILD means that the host reaped
 * it. */
static void reap_killed(bc_child *child)
{
    struct pollfd pfd = {.fd = child->pidfd, .events = POLLIN};
    int64_t deadline = bc_clock_ms() + BC_DESTROY_WAIT_MS;
    while (waitid(P_PIDFD, (id_t)child->pidfd, &(siginfo_t){0}, WEXITED | __WALL) < 0 &&
           (errno == EINTR || errno == EAGAIN)) {
        int64_t left = deadline - bc_clock_ms();
        if (left <= 0) return;
        poll(&pfd, 1, (int)left);
    }
}

void bc_child_close(bc_child *child)
{
    if (child == NULL) return;
    bc_watch_close(child->watch);
    if (!child->reaped) {
        bc_child_kill(child, SIGKILL);
        reap_killed(child);
    }
    close(child->pidfd);
    free(child);
}
