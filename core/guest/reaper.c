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
/* Deaths taken note of before requests are looked at again. */
#define REAP_AT_ONCE 64
/* A stopped tree settles in two or three; the bound is for a tree that always has somebody new. */
#define MAX_STOP_ROUNDS 32

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

static char *add_text(char *at, const char *text)
{
    size_t len = strlen(text);
    memcpy(at, text, len + 1);
    return at + len;
}

static char *add_number(char *at, int number)
{
    char digits[12];
    int n = 0;
    for (; number > 0; number /= 10) {
        digits[n++] = (char)('0' + number % 10);
    }
    while (n > 0) {
        *at++ = digits[--n];
    }
    *at = '\0';
    return at;
}

/* The children that one thread has forked; -1 when the kernel does not tell. */
static int list_of_thread(int tasks_fd, const char *tid, int *list, int max)
{
    char path[64], text[512];
    add_text(add_text(path, tid), "/children");
    int fd = (int)sys_openat(tasks_fd, path, O_RDONLY | O_CLOEXEC, 0);
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

/* As getdents64 writes it. */
struct entry {
    uint64_t ino;
    int64_t offset;
    unsigned short size;
    unsigned char type;
    char name[];
};

/* The children of a process, of whichever thread, as far as the array goes; 0 when there are none
 * or it is gone, -1 when /proc does not tell. */
static int list_children(int pid, int *list, int max)
{
    char path[64];
    _Alignas(8) char entries[1024];
    add_text(add_number(add_text(path, "/proc/"), pid), "/task");
    int fd = (int)sys_openat(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    if (fd < 0) return -1;
    int count = 0, told = 0;
    long n;
    while (count < max && (n = SYS3(SYS_getdents64, fd, entries, sizeof entries)) > 0) {
        for (long at = 0; at < n;) {
            const struct entry *entry = (const struct entry *)(entries + at);
            at += entry->size;
            if (entry->name[0] == '.') continue;
            int found = list_of_thread(fd, entry->name, list + count, max - count);
            if (found >= 0) told = 1;
            if (found > 0) count += found;
        }
    }
    sys_close(fd);
    return told ? count : -1;
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

/* Which processes a walk leaves out, and when it has become pointless. */
struct walk {
    int sig;
    bool (*spare)(void *ud, int pid);
    void *ud;
    const int *wanted; /* NULL, or what must still be `sig` for the walk to go on */
};

static bool goes_on(const struct walk *walk)
{
    return walk->wanted == NULL || __atomic_load_n(walk->wanted, __ATOMIC_ACQUIRE) == walk->sig;
}

/* Fills the tree from the calling process downwards, sending the signal to each level before the
 * next one is looked up: once stopped, nobody makes more of them, nor takes the processor from this
 * one, which a thousand others would let run every other second. */
static void walk_tree(struct tree *tree, char *stack_top, const struct walk *walk)
{
    int found = list_own_children(stack_top, tree->pids, TREE_MAX);
    tree->count = 0;
    for (int i = 0; i < found; i++) {
        if (walk->spare == NULL || !walk->spare(walk->ud, tree->pids[i])) {
            tree->pids[tree->count++] = tree->pids[i];
        }
    }
    for (int level = 0, end = tree->count; level < end; end = tree->count) {
        for (int i = level; i < end; i++) {
            sys_kill(tree->pids[i], walk->sig);
        }
        for (; level < end && goes_on(walk); level++) {
            int room = TREE_MAX - tree->count;
            int more = list_children(tree->pids[level], tree->pids + tree->count, room);
            if (more > 0) tree->count += more;
        }
        if (!goes_on(walk)) return;
    }
}

/* Whether nobody is in the tree who was not in it a round ago. */
static bool is_settled(const struct tree *tree)
{
    int at = 0; /* most stand in the same order */
    for (int i = 0; i < tree->count; i++) {
        int tried = 0;
        while (tried < tree->before_count && tree->before[at] != tree->pids[i]) {
            at = at + 1 < tree->before_count ? at + 1 : 0;
            tried++;
        }
        if (tried == tree->before_count) return false;
    }
    return true;
}

int reaper_kill_tree(struct tree *tree, char *stack_top, bool (*spare)(void *ud, int pid), void *ud)
{
    const struct walk walk = {.sig = SIGSTOP, .spare = spare, .ud = ud};
    tree->before_count = 0;
    for (int round = 0; round < MAX_STOP_ROUNDS; round++) {
        walk_tree(tree, stack_top, &walk);
        if (is_settled(tree)) break;
        memcpy(tree->before, tree->pids, sizeof tree->pids);
        tree->before_count = tree->count;
    }
    for (int i = 0; i < tree->count; i++) {
        sys_kill(tree->pids[i], SIGKILL);
    }
    return tree->count;
}

/* ---- the supervisor ---- */

static void obey(struct reaper *reaper)
{
    int sig = __atomic_exchange_n(&reaper->signal_main, 0, __ATOMIC_ACQ_REL);
    if (sig != 0 && !reaper->main_done) sys_kill(reaper->main_pid, sig);
    int stop = __atomic_load_n(&reaper->stop, __ATOMIC_ACQUIRE);
    if (stop == reaper->stop_sent) return;
    reaper->stop_sent = stop;
    if (stop != SIGTERM) return; /* the loop kills */
    const struct walk walk = {.sig = SIGTERM, .wanted = &reaper->stop};
    walk_tree(&reaper->tree, (char *)reaper, &walk);
    for (int i = 0; i < reaper->tree.count; i++) {
        sys_kill(reaper->tree.pids[i], SIGCONT); /* a stopped process acts on nothing else */
    }
}

static void add_time(struct timeval *sum, struct timeval more)
{
    sum->tv_usec += more.tv_usec;
    sum->tv_sec += more.tv_sec + sum->tv_usec / 1000000;
    sum->tv_usec %= 1000000;
}

static void note(struct reaper *reaper, int pid, int status, const struct rusage *usage)
{
    add_time(&reaper->usage.ru_utime, usage->ru_utime);
    add_time(&reaper->usage.ru_stime, usage->ru_stime);
    if (usage->ru_maxrss > reaper->usage.ru_maxrss) reaper->usage.ru_maxrss = usage->ru_maxrss;
    if (pid != reaper->main_pid || reaper->main_done) {
        if (reaper->main_done && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) {
            reaper->left_running++;
        }
        return;
    }
    reaper->status = status;
    reaper->ended_us = sys_boot_us();
    __atomic_store_n(&reaper->main_done, 1, __ATOMIC_RELEASE);
    if (reaper->command.detach) sys_kill(1, SIGUSR1); /* the result is wanted now */
}

enum reaped { REAPED_ALL, REAPED_SOME, NO_CHILD_LEFT };

/* Reaps what has died, but not for ever: a storm of forks may die as quickly. */
static enum reaped reap(struct reaper *reaper)
{
    for (int i = 0; i < REAP_AT_ONCE; i++) {
        int status;
        struct rusage usage;
        long pid = sys_wait4(-1, &status, WNOHANG | __WALL, &usage);
        if (pid == -EINTR) continue;
        if (pid <= 0) return pid == 0 ? REAPED_ALL : NO_CHILD_LEFT;
        note(reaper, (int)pid, status, &usage);
    }
    return REAPED_SOME;
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
    enum reaped reaped;
    while ((reaped = reap(reaper)) != NO_CHILD_LEFT) {
        obey(reaper);
        const struct timespec round = {.tv_nsec = KILL_ROUND_NS}, none = {0};
        const struct timespec *limit = reaped == REAPED_SOME ? &none : NULL;
        if ((reaper->main_done && !reaper->command.detach) || reaper->stop_sent == SIGKILL) {
            int left = reaper_kill_tree(&reaper->tree, (char *)reaper, NULL, NULL);
            if (left > reaper->most_left) reaper->most_left = left;
            limit = reaped == REAPED_SOME ? &none : &round;
        }
        sys_sigtimedwait(&wake, limit);
    }
    sys_exit(0);
}

long reaper_start(struct reaper *reaper)
{
    char *stack = (char *)reaper - REAPER_STACK_BYTES;
    int pid = clone(reaper_main, stack, CLONE_VM | SIGCHLD, reaper);
    return pid < 0 ? -EAGAIN : pid;
}
