/* Random calls with random arguments, from many processes, until the time is over: what nobody
 * thought of. And names that change all the time under whoever works with them. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "probe.h"

enum { LAST_CALL = 470, CALLS_PER_PROCESS = 2000, WORKERS = 8, SCRATCH = 1 << 16 };

static uint64_t state;

static uint64_t next_random(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static double now_s(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* What calls take: descriptors, sizes, flags, pointers into memory of ours, and nonsense. */
static long some_argument(char *scratch)
{
    static const long odd[] = {0,          -1,        1,    INT32_MAX, INT32_MIN,
                               UINT32_MAX, INT64_MAX, 4096, 1 << 20};
    switch (next_random() % 6) {
    case 0: return (long)(next_random() % 12);
    case 1: return odd[next_random() % (sizeof odd / sizeof *odd)];
    case 2: return (long)(scratch + next_random() % SCRATCH);
    case 3: return 1l << next_random() % 63;
    case 4: return (long)next_random();
    default: return (long)(next_random() % 4096);
    }
}

/* Those that would only end or stop the process itself. */
static int is_dull(long call)
{
    return call == SYS_exit || call == SYS_exit_group || call == SYS_pause ||
           call == SYS_rt_sigsuspend || call == SYS_rt_sigreturn || call == SYS_vfork;
}

static _Noreturn void call_around(void)
{
    char *scratch = mmap(NULL, SCRATCH, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (scratch == MAP_FAILED) _exit(1);
    for (size_t i = 0; i < SCRATCH; i++)
        scratch[i] = (char)next_random();
    strcpy(scratch, "name");
    alarm(2);
    for (int i = 0; i < CALLS_PER_PROCESS; i++) {
        long call = (long)(next_random() % LAST_CALL), a[6];
        if (is_dull(call)) continue;
        for (int k = 0; k < 6; k++)
            a[k] = some_argument(scratch);
        syscall(call, a[0], a[1], a[2], a[3], a[4], a[5]);
    }
    _exit(0);
}

/* storm SECONDS SEED */
int storm(const char *seconds, const char *seed)
{
    double until = now_s() + atof(seconds);
    int running = 0;
    unsigned long begun = 0;
    state = strtoull(seed, NULL, 10) * 2654435761u + 88172645463325252u;
    while (now_s() < until || running > 0) {
        while (running < WORKERS && now_s() < until) {
            next_random();
            pid_t pid = fork();
            if (pid == 0) call_around();
            if (pid < 0) break;
            running++;
            begun++;
        }
        if (running > 0 && waitpid(-1, NULL, 0) > 0) running--;
        if (running == 0) usleep(1000);
        if (errno == ECHILD) running = 0;
        errno = 0;
    }
    printf("%lu processes\n", begun);
    return begun > 0 ? 0 : 1;
}

/* exchange A B: the two names change places until it is killed. */
int exchange(const char *a, const char *b)
{
    for (;;) {
        if (syscall(SYS_renameat2, AT_FDCWD, a, AT_FDCWD, b, 2 /* RENAME_EXCHANGE */) < 0) return 1;
    }
}

/* churn DIR: files come and go there until it is killed. */
int churn(const char *dir)
{
    char path[256];
    for (unsigned i = 0;; i++) {
        snprintf(path, sizeof path, "%s/file-%u", dir, i % 500);
        int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
        if (fd >= 0) close(fd);
        snprintf(path, sizeof path, "%s/file-%u", dir, (i * 7 + 250) % 500);
        unlink(path);
    }
}
