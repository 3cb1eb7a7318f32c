/* Hosts that end, hang or do not listen: their sandboxes end. */
#include "sandbox_support.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static void on_exec_done(barchan_exec *exec, barchan_exec_result *result, void *ud)
{
    (void)exec, (void)result, (void)ud;
}

/* ---- the host ---- */

/* A host process of its own: creates a sandbox, starts something that would stay, says so. */
static void be_a_host(int say_fd, int keep_a_child, int64_t lease_ms)
{
    int done = 0;
    setup_runtime();
    if (barchan_sandbox_create(&sbx, rt, PROFILE(.lease_ms = lease_ms), NULL) < 0) _exit(1);
    sh_says("setsid sleep 1000 > /dev/null 2>&1 & echo ok", "ok\n");
    barchan_sandbox_exec_start(NULL, sbx, OPTIONS(.command = "sleep 1000", .timeout_ms = -1),
                               on_exec_done, &done, NULL);
    barchan_runtime_pump(rt, 100, NULL);
    if (keep_a_child && fork() == 0) {
        for (;;) {
            pause(); /* holds copies of every descriptor */
        }
    }
    (void)!write(say_fd, "r", 1);
    for (;;) {
        pause();
    }
}

static int start_host(int keep_a_child, int64_t lease_ms)
{
    int pipe_fds[2];
    char byte;
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    ck_assert_int_eq(pipe(pipe_fds), 0);
    int pid = fork();
    if (pid == 0) be_a_host(pipe_fds[1], keep_a_child, lease_ms);
    close(pipe_fds[1]);
    ck_assert_int_eq(read(pipe_fds[0], &byte, 1), 1);
    close(pipe_fds[0]);
    return pid;
}

/* Waits until this process has `count` children, reaping what dies. */
static int children_become(int count)
{
    int64_t deadline = monotonic_ms() + 20000;
    for (;;) {
        while (waitpid(-1, NULL, WNOHANG) > 0) {}
        if (count_children() == count) return 1;
        if (monotonic_ms() > deadline) return 0;
        usleep(5000);
    }
}

START_TEST(a_killed_host)
{
    int pid = start_host(0, 0);
    kill(pid, SIGKILL);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
    ck_assert(children_become(0));
}
END_TEST

START_TEST(a_killed_host_with_a_living_child)
{
    int pid = start_host(1, 0);
    kill(pid, SIGKILL);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
    ck_assert(children_become(1)); /* only the host's own child is left */
    kill(first_child(), SIGKILL);
    ck_assert(children_become(0));
}
END_TEST

START_TEST(a_lease_with_a_stuck_host)
{
    int pid = start_host(0, 1500);
    kill(pid, SIGSTOP);
    ck_assert_int_ge(count_descendants(pid), 3); /* launcher, process 1, commands */
    int64_t deadline = monotonic_ms() + 20000;
    while (count_descendants(pid) > 1 && monotonic_ms() < deadline) {
        usleep(10000);
    }
    ck_assert_int_eq(count_descendants(pid), 1); /* the launcher waits for the host */
    kill(pid, SIGKILL);
    ck_assert(children_become(0));
}
END_TEST

/* ---- hosts that do not listen ---- */

/* More than a socket takes reports of. */
enum { MANY = 320 };

static barchan_sandbox *many[MANY];

/* Kills process 1 of every sandbox, reads nothing, and waits until the launcher has buried them. */
static int all_die_unheard(void)
{
    char path[64];
    int pids[MANY], count = 0;
    for (int i = 0; i < MANY; i++) {
        if (barchan_sandbox_create(&many[i], rt, NULL, NULL) < 0) return 0;
    }
    int launcher = first_child();
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", launcher, launcher);
    FILE *file = fopen(path, "re");
    while (count < MANY && fscanf(file, "%d", &pids[count]) == 1) {
        count++;
    }
    fclose(file);
    for (int i = 0; i < count; i++) {
        kill(pids[i], SIGKILL);
    }
    int64_t deadline = monotonic_ms() + 20000;
    while (count_descendants(launcher) > 0 && monotonic_ms() < deadline) {
        usleep(5000);
    }
    return count_descendants(launcher) == 0;
}

START_TEST(many_unheard_deaths_are_told_later)
{
    setup_runtime();
    ck_assert(all_die_unheard());
    for (int i = 0; i < MANY; i++) {
        ck_assert(wait_until(has_ended, many[i], 20000));
        ck_assert_int_eq(status_of(many[i]).end_reason, BARCHAN_END_CRASHED);
        barchan_sandbox_destroy(many[i]);
    }
    ck_assert_int_eq(barchan_sandbox_create(&sbx, rt, NULL, NULL), 0); /* by the same launcher */
    sh_says("echo fine", "fine\n");
    barchan_sandbox_destroy(sbx);
    barchan_runtime_destroy(rt);
}
END_TEST

START_TEST(a_killed_host_that_did_not_listen)
{
    char byte;
    int fds[2];
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    ck_assert_int_eq(pipe(fds), 0);
    int pid = fork();
    if (pid == 0) {
        setup_runtime();
        if (!all_die_unheard()) _exit(1);
        if (fork() > 0) (void)!write(fds[1], "r", 1); /* the child keeps the launcher's socket */
        for (;;) {
            pause();
        }
    }
    close(fds[1]);
    ck_assert_int_eq(read(fds[0], &byte, 1), 1);
    close(fds[0]);
    kill(pid, SIGKILL);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
    ck_assert(children_become(1)); /* the host's own child */
    kill(first_child(), SIGKILL);
    ck_assert(children_become(0));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sandbox_host_end");
    const TTest *const tests[] = {a_killed_host,
                                  a_killed_host_with_a_living_child,
                                  a_lease_with_a_stuck_host,
                                  many_unheard_deaths_are_told_later,
                                  a_killed_host_that_did_not_listen,
                                  NULL};
    add_tests(suite, "ends", NULL, NULL, tests);
    return run_suite(suite);
}
