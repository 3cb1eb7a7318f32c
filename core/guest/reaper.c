#include "reaper.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "sys.h"

#define GUARD_BYTES 4096u
#define BLOCK_BYTES (GUARD_BYTES + 2 * REAPER_STACK_BYTES + sizeof(struct reaper))
/* While the tree is being killed: how soon to look for newly adopted children. */
#define KILL_ROUND_NS 2000000

struct reaper *reaper_new(void)
{
    long at = SYS6(SYS_mmap, NULL, BLOCK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                   -1, 0);
    if (at < 0) return NULL;
    SYS3(SYS_mprotect, at, GUARD_BYTES, PROT_NONE);
    return (struct reaper *)(at + GUARD_BYTES + 2 * REAPER_STACK_BYTES);
}

void reaper_free(struct reaper *reaper)
{
    SYS2(SYS_munmap, (char *)reaper - GUARD_BYTES - 2 * REAPER_STACK_BYTES, BLOCK_BYTES);
}

/* ---- the process tree ---- */

/* The children of a process, as far as the array goes; 0 when there are none or it is gone, -1
 * when /proc does not tell. */
static int list_children(int pid, int *list, int max)
{
    char path[64] = "/proc/", text[512];
    size_t at = 6;
    for (int part = 0; part < 2; part++) {
        char digits[12];
        int n = 0;
        for (int rest = pid; rest > 0; rest /= 10) {
            digits[n++] = (char)('0' + rest % 10);
        }
        while (n > 0) {
            path[at++] = digits[--n];
        }
        const char *next = part == 0 ? "/task/" : "/children";
        memcpy(path + at, next, strlen(next) + 1);
        at += strlen(next);
    }
    int fd = (int)sys_openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0) return -1;
    int count = 0, value = 0;
    long n;
    while (count < max && (n = sys_read(fd, text, sizeof text)) > 0) {
        for (long i = 0; i < n && count < max; i++) {
            if (text[i] >= '0' && text[i] <= '9') {
                value = value * 10 + (text[i] - '0');
            } else if (value > 0) {
                list[count++] = value;
                value = 0;
            }
        }
    }
    sys_close(fd);
    return count;
}

static int own_pid(void)
{
    return (int)SYS1(SYS_getpid, 0);
}

static int exit_at_once(void *unused)
{
    (void)unused;
    sys_exit(0);
}

/* Without /proc (or a kernel that lists children there): asks for each process id up to the
 * newest one whether it is a child. Ids of a sandbox are small numbers. */
static int probe_children(char *stack_top, int *list, int max)
{
    int newest = clone(exit_at_once, stack_top, CLONE_VM | CLONE_VFORK | SIGCHLD, NULL);
    int count = 0;
    for (int pid = 2; pid <= newest && count < max; pid++) {
        if (SYS5(SYS_waitid, P_PID, pid, NULL, WEXITED | WNOHANG | WNOWAIT | __WALL, NULL) == 0) {
            list[count++] = pid;
        }
    }
    return count;
}

static int list_own_children(char *stack_top, int *list, int max)
{
    int count = list_children(own_pid(), list, max);
    return count < 0 ? probe_children(stack_top, list, max) : count;
}

/* To every process below this one that can be found; they may fork meanwhile, which is why the
 * final kill works on adopted children instead. */
static void signal_tree(struct reaper *reaper, int sig)
{
    int count = list_own_children((char *)reaper, reaper->queue, REAPER_QUEUE);
    for (int i = 0; i < count; i++) {
        int more = list_children(reaper->queue[i], reaper->queue + count, REAPER_QUEUE - count);
        if (more > 0) count += more;
    }
    for (int i = 0; i < count; i++) {
        sys_kill(reaper->queue[i], sig);
    }
}

void reaper_kill_children(char *stack_top, bool (*spare)(void *ud, int pid), void *ud)
{
    int list[256];
    int count = list_own_children(stack_top, list, 256);
    for (int i = 0; i < count; i++) {
        if (spare == NULL || !spare(ud, list[i])) sys_kill(list[i], SIGKILL);
    }
}

/* ---- the supervisor ---- */

static void obey(struct reaper *reaper)
{
    int sig = __atomic_exchange_n(&reaper->signal_main, 0, __ATOMIC_ACQ_REL);
    if (sig != 0 && !reaper->main_done) sys_kill(reaper->main_pid, sig);
    int stop = __atomic_load_n(&reaper->stop, __ATOMIC_ACQUIRE);
    if (stop == reaper->stop_sent) return;
    reaper->stop_sent = stop;
    signal_tree(reaper, stop);
    if (stop == SIGTERM) signal_tree(reaper, SIGCONT); /* a stopped process acts on nothing else */
}

static void note(struct reaper *reaper, int pid, int status, const struct rusage *usage)
{
    if (pid != reaper->main_pid || reaper->main_done) {
        if (reaper->main_done && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) {
            reaper->left_running++;
        }
        return;
    }
    reaper->status = status;
    reaper->usage = *usage;
    reaper->ended_us = sys_boot_us();
    __atomic_store_n(&reaper->main_done, 1, __ATOMIC_RELEASE);
    if (reaper->command.detach) sys_kill(1, SIGUSR1); /* the result is wanted now */
}

/* Reaps what has died; false when no child is left. */
static bool reap(struct reaper *reaper)
{
    for (;;) {
        int status;
        struct rusage usage;
        long pid = sys_wait4(-1, &status, WNOHANG | __WALL, &usage);
        if (pid == -EINTR) continue;
        if (pid <= 0) return pid == 0;
        note(reaper, (int)pid, status, &usage);
    }
}

static int reaper_main(void *argument)
{
    struct reaper *reaper = argument;
    sys_prctl(PR_SET_CHILD_SUBREAPER, 1);
    reaper->main_pid = clone(spawn_main, (char *)reaper, CLONE_VM | CLONE_VFORK | SIGCHLD, reaper);
    /* The pipes' ends must not stay open here: their ends are how process 1 sees a close. */
    sys_close_range(0, ~0U, 0);
    if (reaper->main_pid < 0) {
        reaper->spawn_errno = EAGAIN; /* RLIMIT_NPROC or memory; errno is shared, see sys.h */
        sys_exit(0);
    }
    const sys_sigset wake = SYS_SIGSET_OF(SIGCHLD) | SYS_SIGSET_OF(SIGUSR1);
    while (reap(reaper)) {
        obey(reaper);
        if ((reaper->main_done && !reaper->command.detach) || reaper->stop_sent == SIGKILL) {
            reaper_kill_children((char *)reaper, NULL, NULL);
            const struct timespec round = {.tv_nsec = KILL_ROUND_NS};
            sys_sigtimedwait(&wake, &round);
        } else {
            sys_sigtimedwait(&wake, NULL);
        }
    }
    sys_exit(0);
}

long reaper_start(struct reaper *reaper)
{
    char *stack = (char *)reaper - REAPER_STACK_BYTES;
    int pid = clone(reaper_main, stack, CLONE_VM | SIGCHLD, reaper);
    return pid < 0 ? -EAGAIN : pid;
}
