/* Holders, their clients, launchers and guests that are killed at any moment: nothing of them
 * stays, and what they leave of names the next list removes. BARCHAN_LONG=1 does a thousand rounds.
 */
#include "detached_support.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* From the start of a holder until a while after its client's commands run. */
#define MOST_US 60000

/* What the processes of a round know of each other. */
struct round {
    char id[24];
    int published, over;
};
static struct round *shared;

static void nap(long us)
{
    nanosleep(&(struct timespec){.tv_nsec = us * 1000L}, NULL);
}

static void note_over(const barchan_error *err, void *ud)
{
    (void)err;
    ((struct round *)ud)->over = 1;
}

static _Noreturn void be_holder(void)
{
    const barchan_limits limits = {.memory_bytes = 64 << 20, .pids = 50};
    if (barchan_runtime_create(&rt, NULL, NULL) == 0 &&
        barchan_sandbox_create(&sbx, rt, PROFILE(.limits = limits), NULL) == 0) {
        memcpy(shared->id, status_of(sbx).id, 20);
        if (barchan_sandbox_hold(sbx, note_over, shared, NULL) == 0) {
            __atomic_store_n(&shared->published, 1, __ATOMIC_RELEASE);
            while (!shared->over) {
                barchan_runtime_pump(rt, -1, NULL);
            }
        }
        barchan_sandbox_destroy(sbx);
    }
    barchan_runtime_destroy(rt);
    _exit(0);
}

/* Works until the sandbox has ended. 3: that had a reason that no crash explains. */
static _Noreturn void be_client(void)
{
    barchan_exec_result r;
    while (!__atomic_load_n(&shared->published, __ATOMIC_ACQUIRE)) {
        if (getppid() == 1 || shared->over) _exit(0);
        nap(500);
    }
    if (barchan_runtime_create(&rt, NULL, NULL) < 0) _exit(2);
    if (barchan_sandbox_connect(&sbx, rt, shared->id, NULL) < 0) _exit(0);
    while (barchan_sandbox_exec(sbx, OPTIONS(.command = "echo x; (setsid sleep 1000 &)"), &r,
                                NULL) == 0) {
        barchan_exec_result_clear(&r);
        barchan_file_write(sbx, "file", "text", 4, NULL);
    }
    barchan_end_reason reason = status_of(sbx).end_reason;
    barchan_sandbox_destroy(sbx);
    barchan_runtime_destroy(rt);
    _exit(reason == BARCHAN_END_TERMINATED || reason == BARCHAN_END_CRASHED ||
                  reason == BARCHAN_END_HOST_GONE
              ? 0
              : 3);
}

/* The holder, its launcher, process 1 or a process of the sandbox; of what there is. */
static int below(int pid, int levels)
{
    for (; levels > 0; levels--) {
        int child = child_of(pid);
        if (child == 0) break;
        pid = child;
    }
    return pid;
}

static void end_it(void)
{
    barchan_sandbox *last;
    if (!is_listed(shared->id)) return;
    if (barchan_sandbox_connect(&last, rt, shared->id, NULL) < 0) return;
    barchan_sandbox_terminate(last);
    barchan_usage u = {.struct_size = sizeof u};
    barchan_sandbox_usage(last, &u, NULL);
    barchan_sandbox_destroy(last);
}

/* Until the holder is gone; whatever was hit, the next command puts it in order. */
static void wait_for_holder(int pid, int round)
{
    int64_t deadline = monotonic_ms() + 30000;
    while (waitpid(pid, NULL, WNOHANG) == 0) {
        ck_assert_msg(monotonic_ms() < deadline, "round %d: the holder is left", round);
        if (__atomic_load_n(&shared->published, __ATOMIC_ACQUIRE)) end_it();
        nap(1000);
    }
}

static void wait_for_client(int pid, int victim, int round)
{
    int status = 0;
    int64_t deadline = monotonic_ms() + 30000;
    shared->over = 1;
    while (waitpid(pid, &status, WNOHANG) == 0) {
        ck_assert_msg(monotonic_ms() < deadline, "round %d: the client is left", round);
        nap(1000);
    }
    if (victim != pid) ck_assert_int_eq(status, 0);
}

/* Those of the sandbox, which this process adopts. */
static void reap_others(int round)
{
    int64_t deadline = monotonic_ms() + 30000;
    for (;;) {
        pid_t pid = waitpid(-1, NULL, WNOHANG);
        if (pid < 0 && errno == ECHILD) return;
        if (pid > 0) continue;
        ck_assert_msg(monotonic_ms() < deadline, "round %d: process %d is left", round,
                      first_child());
        nap(1000);
    }
}

static int group_exists(int launcher)
{
    char command[200];
    snprintf(command, sizeof command,
             "find /sys/fs/cgroup -type d -name 'barchan-%d-*' 2>/dev/null | grep -q . || "
             "ls /run/barchan/groups 2>/dev/null | grep -q '^barchan-%d-'",
             launcher, launcher);
    return system(command) == 0; /* NOLINT: a test's own words */
}

static int groups_are_gone(const int *launchers, int count)
{
    int64_t deadline = monotonic_ms() + 20000;
    for (int i = 0; i < count; i++) {
        while (launchers[i] != 0 && group_exists(launchers[i])) {
            if (monotonic_ms() > deadline) return 0;
            nap(20000);
        }
    }
    return 1;
}

static int one_round(int round, unsigned *seed)
{
    *shared = (struct round){0};
    fflush(stdout);
    pid_t held = fork();
    if (held == 0) be_holder();
    pid_t client = fork();
    if (client == 0) be_client();
    nap(rand_r(seed) % MOST_US);
    int launcher = child_of(held);
    int which = rand_r(seed) % 5;
    int victim = which == 4 ? client : below(held, which);
    kill(victim, SIGKILL);
    ck_assert_int_eq(barchan_runtime_create(&rt, NULL, NULL), 0);
    wait_for_holder(held, round);
    is_listed(shared->id); /* the next command: it removes what was left */
    wait_for_client(client, victim, round);
    barchan_runtime_destroy(rt);
    rt = NULL;
    reap_others(round);
    ck_assert_msg(!name_exists(shared->id, "sock"), "round %d: a socket is left", round);
    ck_assert_msg(!name_exists(shared->id, "lock"), "round %d: a lock is left", round);
    return launcher;
}

START_TEST(killed_at_any_moment)
{
    int rounds = getenv("BARCHAN_LONG") != NULL ? 1000 : 60;
    int *launchers = calloc((size_t)rounds, sizeof *launchers);
    unsigned seed = (unsigned)time(NULL);
    printf("%d rounds, seed %u\n", rounds, seed);
    use_scratch_directory();
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert(shared != MAP_FAILED);
    /* libuv keeps a few descriptors from its first loop on. */
    ck_assert_int_eq(barchan_runtime_create(&rt, NULL, NULL), 0);
    barchan_runtime_destroy(rt);
    int fds = count_fds();
    for (int i = 0; i < rounds; i++) {
        launchers[i] = one_round(i, &seed);
    }
    ck_assert_int_eq(count_fds(), fds);
    ck_assert_int_eq(barchan_runtime_create(&rt, NULL, NULL), 0);
    struct holder last = start_holder(NULL); /* its launcher sweeps as it starts */
    sbx = connect_to(last.id);
    sh_says("echo alive", "alive\n");
    barchan_sandbox_terminate(sbx);
    barchan_sandbox_destroy(sbx);
    ck_assert_int_eq(holder_gone(&last), 0);
    ck_assert_msg(groups_are_gone(launchers, rounds), "a control group is left");
    barchan_runtime_destroy(rt);
    free(launchers);
    remove_scratch_directory();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sandbox_detached_crash");
    const TTest *const tests[] = {killed_at_any_moment, NULL};
    add_tests(suite, "crash", NULL, NULL, tests);
    return run_suite(suite);
}
