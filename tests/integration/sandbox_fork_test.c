/* Forks, and what is left when something fails or is killed on the way. */
#include "snapshot_support.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static barchan_sandbox *forks[BARCHAN_FORK_MAX];

static void fork_it(size_t count)
{
    barchan_error err = {0};
    int rc = barchan_sandbox_fork(sbx, forks, count, NULL, &err);
    ck_assert_msg(rc == 0, "fork: %d, %s", rc, err.message);
}

static void in(barchan_sandbox *other, const char *command, const char *expected)
{
    barchan_sandbox *own = sbx;
    sbx = other;
    sh_says(command, expected);
    sbx = own;
}

static void end(barchan_sandbox *other)
{
    barchan_sandbox *own = sbx;
    sbx = other;
    end_sandbox();
    sbx = own;
}

START_TEST(none_sees_another)
{
    char command[64], expected[64];
    sh_says("echo common > file; ln file hard; mkdir d; echo home > ~/x", "");
    fork_it(3);
    for (int i = 0; i < 3; i++) {
        snprintf(command, sizeof command, "echo %d > file; rm -r d; cat hard ~/x", i);
        in(forks[i], command, "common\nhome\n");
    }
    for (int i = 0; i < 3; i++) {
        snprintf(expected, sizeof expected, "%d\nfile\nhard\n", i);
        in(forks[i], "cat file; ls", expected);
    }
    sh_says("cat file; ls; echo parent > file", "common\nd\nfile\nhard\n");
    in(forks[2], "cat file", "2\n");
    ck_assert_int_eq(count_folders(), 1);
    ck_assert_str_eq(status_of(forks[0]).template_name, "host");
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(count_folders(), 1);
        end(forks[i]);
    }
    ck_assert_int_eq(count_folders(), 0);
}
END_TEST

START_TEST(the_profile_is_the_parents)
{
    static const char *const env[] = {"WHO=parent", NULL};
    folder("data", 0755);
    put("data/a", "alpha\n", 0644);
    const barchan_mount mounts[] = {{at("data"), "/workspace/data", BARCHAN_MOUNT_COPY_ON_WRITE}};
    begin_with(PROFILE(.env = env, .mounts = mounts, .mount_count = 1, .lease_ms = 500000,
                       .limits = {.disk_bytes = 2 << 20,
                                  .files = 100,
                                  .wall_ms = 2000,
                                  .open_files = 64,
                                  .cpu_ms = 5000}));
    sh_says("echo own > own; echo b > data/a", "");
    ck_assert_int_eq(barchan_sandbox_extend(sbx, 100000, NULL), 0);
    fork_it(2);
    ck_assert_int_gt(status_of(forks[1]).lease_left_ms, 480000);
    ck_assert_int_le(status_of(forks[1]).lease_left_ms, 500000);
    in(forks[1],
       "echo $WHO; cat own data/a; ulimit -Hn; ulimit -t; head -c 3000000 /dev/zero > big "
       "2>/dev/null"
       " || echo full",
       "parent\nown\nalpha\n64\n6\nfull\n");
    barchan_exec_result r;
    ck_assert_int_eq(barchan_sandbox_exec(forks[0], OPTIONS(.command = "sleep 100"), &r, NULL), 0);
    ck_assert_int_eq(r.reason, BARCHAN_EXEC_TIMEOUT);
    barchan_exec_result_clear(&r);
    barchan_sandbox_destroy(forks[0]);
    barchan_sandbox_destroy(forks[1]);
    host_has("data/a", "alpha\n");
}
END_TEST

START_TEST(forks_of_forks)
{
    barchan_sandbox *first = sbx, *second;
    sh_says("echo 1 > one", "");
    fork_it(1);
    second = sbx = forks[0];
    sh_says("cat one; echo 2 > two", "1\n");
    fork_it(1);
    sbx = first;
    end(second);
    in(forks[0], "cat one two; echo 3 > three", "1\n2\n");
    end_sandbox();
    sbx = forks[0];
    snapshot("all");
    begin_from("all");
    sh_says("cat one two three", "1\n2\n3\n");
    ck_assert_int_eq(count_folders(), 1);
}
END_TEST

START_TEST(many)
{
    sh_says("echo x > x", "");
    fork_it(BARCHAN_FORK_MAX);
    for (size_t i = 0; i < BARCHAN_FORK_MAX; i++) {
        if (i % 21 == 0) in(forks[i], "cat x", "x\n");
        barchan_sandbox_destroy(forks[i]);
    }
    barchan_error err = {0};
    ck_assert_int_eq(barchan_sandbox_fork(sbx, forks, 0, NULL, &err), BARCHAN_EINVAL);
    ck_assert_int_eq(barchan_sandbox_fork(sbx, forks, 65, NULL, &err), BARCHAN_EINVAL);
}
END_TEST

/* One that cannot be made: none is. */
START_TEST(all_or_nothing)
{
    folder("data", 0755);
    const barchan_mount mounts[] = {{at("data"), "/mnt/data", BARCHAN_MOUNT_READ_ONLY}};
    begin_with(PROFILE(.mounts = mounts, .mount_count = 1));
    ck_assert_int_eq(rmdir(at("data")), 0);
    barchan_error err = {0};
    ck_assert_int_eq(barchan_sandbox_fork(sbx, forks, 4, NULL, &err), BARCHAN_ENOTFOUND);
    ck_assert_msg(strncmp(err.message, "fork: create sandbox: mount ", 28) == 0, "%s", err.message);
    ck_assert_uint_eq(barchan_sandbox_list(rt, NULL, 0), 1);
    ck_assert(wait_until(has_ended, sbx, 100) == 0);
    ck_assert_int_eq(count_folders(), 0);
    sh_says("echo it lives on", "it lives on\n");
}
END_TEST

struct outcome {
    int count, code;
};

static void note_forked(barchan_sandbox **made, size_t count, const barchan_error *err, void *ud)
{
    struct outcome *outcome = ud;
    outcome->count++;
    outcome->code = err == NULL ? 0 : err->code;
    for (size_t i = 0; i < count; i++) {
        barchan_sandbox_destroy(made[i]);
    }
}

static int is_over(void *ud)
{
    return ((struct outcome *)ud)->count;
}

START_TEST(cancelled_at_any_moment)
{
    barchan_error err = {0};
    sh_says("head -c 3000000 /dev/urandom > big; for i in $(seq 50); do echo $i > $i; done", "");
    for (int i = 0; i < 60; i++) {
        struct outcome outcome = {0};
        barchan_snapshot_call *call;
        ck_assert_int_eq(
            barchan_sandbox_fork_start(&call, sbx, 3, NULL, note_forked, &outcome, &err), 0);
        for (int k = 0; k < i && !outcome.count; k++) {
            barchan_runtime_pump(rt, 1, NULL);
        }
        if (!outcome.count) barchan_snapshot_cancel(call);
        ck_assert(wait_until(is_over, &outcome, 20000));
        ck_assert_int_eq(outcome.count, 1);
        ck_assert(outcome.code == 0 || outcome.code == BARCHAN_ECANCELLED);
    }
    sh_says("ls | wc -l", "51\n");
    ck_assert_uint_eq(barchan_sandbox_list(rt, NULL, 0), 1);
}
END_TEST

/* The runtime ends in the middle: the callback comes, and nothing is left. */
START_TEST(the_runtime_ends)
{
    for (int i = 0; i < 12; i++) {
        struct outcome outcome = {0};
        if (rt == NULL) {
            ck_assert_int_eq(barchan_runtime_create(&rt, NULL, NULL), 0);
            sbx = NULL;
            begin_from("host");
        }
        sh_says("head -c 1000000 /dev/urandom > big", "");
        ck_assert_int_eq(
            barchan_sandbox_fork_start(NULL, sbx, 3, NULL, note_forked, &outcome, NULL), 0);
        for (int k = 0; k < i * 2 && !outcome.count; k++) {
            barchan_runtime_pump(rt, 1, NULL);
        }
        barchan_runtime_destroy(rt);
        rt = NULL;
        sbx = NULL;
        ck_assert_int_eq(outcome.count, 1);
        ck_assert_int_eq(count_folders(), 0);
    }
    ck_assert_int_eq(barchan_runtime_create(&rt, NULL, NULL), 0);
}
END_TEST

/* ---- killed ---- */

static _Noreturn void be_host(int round)
{
    const barchan_snapshot_options replace = {.struct_size = sizeof replace, .replace = 1};
    rt = NULL;
    sbx = NULL;
    if (barchan_runtime_create(&rt, NULL, NULL) < 0) _exit(1);
    begin_from("host");
    char command[128];
    snprintf(command, sizeof command, "for i in $(seq 30); do echo %d > $i; done", round);
    sh_says(command, "");
    for (;;) {
        barchan_sandbox_snapshot(sbx, "kept", &replace, NULL, NULL);
        if (barchan_sandbox_fork(sbx, forks, 2, NULL, NULL) < 0) continue;
        barchan_sandbox_destroy(forks[0]);
        barchan_sandbox_destroy(forks[1]);
    }
}

/* This process is the subreaper of what the killed leave. */
static void reap_all(void)
{
    int64_t deadline = monotonic_ms() + 20000;
    for (pid_t pid = 1; pid >= 0 || errno != ECHILD; pid = waitpid(-1, NULL, WNOHANG)) {
        ck_assert_msg(monotonic_ms() < deadline, "process %d is left", first_child());
        if (pid == 0) nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
}

START_TEST(killed_at_any_moment)
{
    unsigned seed = 4711;
    sh_says("for i in $(seq 30); do echo first > $i; done", "");
    snapshot("kept"); /* so it stays where the machine is too busy for any of them to get there */
    end_sandbox();
    barchan_runtime_destroy(rt);
    for (int round = 0; round < 25; round++) {
        pid_t pid = fork();
        if (pid == 0) be_host(round);
        long us = 20000 + (long)(rand_r(&seed) % 40000);
        nanosleep(&(struct timespec){.tv_nsec = us * 1000}, NULL);
        kill(pid, SIGKILL);
        reap_all();
        ck_assert_int_eq(barchan_runtime_create(&rt, NULL, NULL), 0);
        barchan_templates all;
        ck_assert_int_eq(barchan_template_list(rt, &all, NULL), 0);
        ck_assert_uint_eq(all.count, 1);
        ck_assert_str_eq(all.list[0].name, "kept");
        barchan_templates_clear(&all);
        ck_assert_int_eq(count_folders(), 1);
        barchan_runtime_destroy(rt);
    }
    ck_assert_int_eq(barchan_runtime_create(&rt, NULL, NULL), 0);
    begin_from("kept"); /* whole, whosever it is */
    sh_says("cat 1 2 30 2>/dev/null | sort -u | wc -l", "1\n");
}
END_TEST

/* Killed with a name in hand, and with a folder that nobody has: both go at once. */
START_TEST(what_is_left_over)
{
    barchan_templates all;
    snapshot("kept");
    ck_assert_int_eq(mkdir(at("share/barchan/templates/.t-0123456789abcdef"), 0700), 0);
    put("share/barchan/templates/.t-0123456789abcdef/file", "text", 0000);
    ck_assert_int_eq(
        symlink(".t-0123456789abcdef", at("share/barchan/templates/.n-0123456789abcdef")), 0);
    ck_assert_int_eq(
        symlink(".t-1123456789abcdef", at("share/barchan/templates/.n-1123456789abcdef")), 0);
    put("share/barchan/templates/.other", "nobody's business", 0600);
    ck_assert_int_eq(barchan_template_list(rt, &all, NULL), 0);
    ck_assert_uint_eq(all.removed, 1);
    ck_assert_uint_eq(all.count, 1);
    barchan_templates_clear(&all);
    ck_assert_int_eq(count_folders(), 1);
    char path[256];
    ck_assert_int_lt(readlink(at("share/barchan/templates/.n-0123456789abcdef"), path, sizeof path),
                     0);
    ck_assert_int_lt(readlink(at("share/barchan/templates/.n-1123456789abcdef"), path, sizeof path),
                     0);
    host_has("share/barchan/templates/.other", "nobody's business");
    begin_from("kept");
}
END_TEST

START_TEST(a_full_disk)
{
    if (!is_root() && skip("only root mounts")) return;
    folder("full", 0700);
    if (mount("t", at("full"), "tmpfs", 0, "size=1m") < 0) {
        ck_assert_int_eq(errno, EPERM);
        if (skip("this root may not mount")) return;
    }
    ck_assert_int_eq(chown(at("full"), 0, 0), 0);
    ck_assert_int_eq(setenv("XDG_DATA_HOME", at("full"), 1), 0);
    end_sandbox();
    barchan_runtime_destroy(rt); /* a launcher may not see what is mounted later */
    ck_assert_int_eq(barchan_runtime_create(&rt, NULL, NULL), 0);
    begin_from("host");
    sh_says("echo small > small", "");
    snapshot("small");
    sh_says("head -c 3000000 /dev/urandom > big", "");
    snapshot_fails("big", BARCHAN_ENOSPACE, "No space left");
    sh_says("rm big", "");
    snapshot("small2");
    begin_from("small2");
    sh_says("ls", "small\n");
    end_sandbox();
    ck_assert_int_eq(umount2(at("full"), MNT_DETACH), 0);
}
END_TEST

int main(void)
{
    if (!copies_work()) return 77;
    Suite *suite = suite_create("sandbox_fork");
    const TTest *const tests[] = {none_sees_another,
                                  the_profile_is_the_parents,
                                  forks_of_forks,
                                  many,
                                  all_or_nothing,
                                  cancelled_at_any_moment,
                                  the_runtime_ends,
                                  killed_at_any_moment,
                                  what_is_left_over,
                                  a_full_disk,
                                  NULL};
    add_tests(suite, "fork", setup_templates, teardown_templates, tests);
    return run_suite(suite);
}
