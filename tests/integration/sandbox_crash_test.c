/* Hosts, launchers and guests that are killed at any moment: nothing of them stays, and the next
 * sandbox works. BARCHAN_LONG=1 does a thousand rounds. */
#include "sandbox_support.h"

#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* From the start of a host until a while after its command runs. */
#define MOST_US 25000

/* A program that uses the library, as far as it comes. */
static _Noreturn void be_host(void)
{
    barchan_exec_result r;
    const barchan_limits limits = {.memory_bytes = 64 << 20, .pids = 50, .cpu_ms = 100000};
    if (barchan_runtime_create(&rt, NULL, NULL) == 0 &&
        barchan_sandbox_create(&sbx, rt, PROFILE(.limits = limits), NULL) == 0 &&
        barchan_sandbox_exec(sbx, OPTIONS(.command = "(setsid sleep 1000 &); sleep 0.02"), &r,
                             NULL) == 0) {
        barchan_exec_result_clear(&r);
    }
    barchan_runtime_destroy(rt);
    _exit(0);
}

/* The host, its launcher, or a process of the sandbox; of what there is. */
static int victim(int host, int which)
{
    int pid = host;
    for (; which > 0; which--) {
        int child = child_of(pid);
        if (child == 0) break;
        pid = child;
    }
    return pid;
}

/* Those that have ended here, by number: groups of others, in another process namespace maybe, are
 * not this test's. */
enum { PIDS = 1 << 22 }; /* the most that the kernel gives */
static unsigned char ended[PIDS / 8];

static void reap_all(int round)
{
    int64_t deadline = monotonic_ms() + 30000;
    for (;;) {
        pid_t pid = waitpid(-1, NULL, WNOHANG);
        if (pid < 0 && errno == ECHILD) return;
        if (pid > 0) ended[pid / 8] |= (unsigned char)(1 << pid % 8);
        if (pid > 0) continue;
        ck_assert_msg(monotonic_ms() < deadline, "round %d: process %d is left", round,
                      first_child());
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
}

/* ---- groups and registry entries of launchers that are dead ---- */

static char dead_group[256];

static int is_dead(const char *name)
{
    int pid;
    return sscanf(name, "barchan-%d-", &pid) == 1 && pid > 0 && pid < PIDS &&
           (ended[pid / 8] >> pid % 8 & 1) != 0 && kill(pid, 0) < 0 && errno == ESRCH;
}

static int note_group(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    if (type == FTW_D && is_dead(path + at->base)) {
        snprintf(dead_group, sizeof dead_group, "%s", path);
    }
    return 0;
}

static int nothing_of_the_dead(void *ud)
{
    (void)ud;
    dead_group[0] = '\0';
    nftw("/sys/fs/cgroup", note_group, 16, FTW_PHYS);
    DIR *dir = is_root() ? opendir("/run/barchan/groups") : NULL;
    struct dirent *entry;
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        if (is_dead(entry->d_name)) snprintf(dead_group, sizeof dead_group, "%s", entry->d_name);
    }
    if (dir != NULL) closedir(dir);
    return dead_group[0] == '\0';
}

START_TEST(killed_at_any_moment)
{
    int rounds = getenv("BARCHAN_LONG") != NULL ? 1000 : 60;
    unsigned seed = (unsigned)time(NULL);
    printf("%d rounds, seed %u\n", rounds, seed);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    for (int i = 0; i < rounds; i++) {
        pid_t host = fork();
        if (host == 0) be_host();
        nanosleep(&(struct timespec){.tv_nsec = rand_r(&seed) % MOST_US * 1000L}, NULL);
        kill(victim(host, rand_r(&seed) % 4), SIGKILL);
        reap_all(i);
    }
    ck_assert_int_eq(barchan_runtime_create(&rt, NULL, NULL), 0);
    ck_assert_int_eq(barchan_sandbox_create(&sbx, rt, NULL, NULL), 0);
    ck_assert_msg(wait_until(nothing_of_the_dead, NULL, 20000), "%s is left", dead_group);
    sh_says("echo alive", "alive\n");
    barchan_runtime_destroy(rt);
    reap_all(rounds);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sandbox_crash");
    const TTest *const tests[] = {killed_at_any_moment, NULL};
    add_tests(suite, "crash", NULL, NULL, tests);
    return run_suite(suite);
}
