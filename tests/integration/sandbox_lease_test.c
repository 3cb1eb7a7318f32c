/* Leases, idleness and pauses: how a sandbox ends or stands still by itself, and goes on. */
#include "sandbox_support.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void make(const barchan_profile *profile)
{
    barchan_error err = {0};
    barchan_sandbox_destroy(sbx);
    ck_assert_msg(barchan_sandbox_create(&sbx, rt, profile, &err) == 0, "%s", err.message);
}

static int is_paused(void *ud)
{
    return status_of(ud).state == BARCHAN_SANDBOX_PAUSED;
}

static void pause_it(void)
{
    barchan_error err = {0};
    ck_assert_msg(barchan_sandbox_pause(sbx, &err) == 0, "%s", err.message);
    ck_assert_int_eq(status_of(sbx).state, BARCHAN_SANDBOX_PAUSED);
}

static void resume_it(void)
{
    barchan_error err = {0};
    ck_assert_msg(barchan_sandbox_resume(sbx, &err) == 0, "%s", err.message);
    ck_assert_int_eq(status_of(sbx).state, BARCHAN_SANDBOX_READY);
}

static void pumped(int64_t ms)
{
    int64_t until = monotonic_ms() + ms;
    while (monotonic_ms() < until) {
        barchan_runtime_pump(rt, 50, NULL);
    }
}

/* What commands write to the file "ticks" while they run. */
#define TICKING "while :; do echo x >> ticks; sleep 0.01; done"

static size_t ticks(void)
{
    barchan_bytes bytes;
    barchan_error err = {0};
    if (barchan_file_exists(sbx, "ticks", NULL) == 0) return 0;
    ck_assert_msg(barchan_file_read(sbx, "ticks", &bytes, &err) == 0, "%s", err.message);
    size_t len = bytes.len;
    barchan_bytes_clear(&bytes);
    return len;
}

static int more_ticks(void *ud)
{
    return ticks() > *(size_t *)ud;
}

static void it_goes_on(void)
{
    size_t before = ticks();
    ck_assert(wait_until(more_ticks, &before, 20000));
}

static void it_stands_still(void)
{
    size_t before = ticks();
    pumped(300);
    ck_assert_uint_eq(ticks(), before); /* file operations work meanwhile */
}

START_TEST(pausing_a_command)
{
    struct ended e = {0};
    barchan_exec_result r;
    barchan_error err = {0};
    ck_assert_int_eq(barchan_sandbox_exec_start(
                         NULL, sbx, OPTIONS(.command = "(" TICKING ") & wait"), note_end, &e, NULL),
                     0);
    it_goes_on();
    pause_it();
    it_stands_still();
    ck_assert_int_eq(barchan_sandbox_exec(sbx, OPTIONS(.command = "true"), &r, &err),
                     BARCHAN_EBUSY);
    ck_assert_ptr_nonnull(strstr(err.message, "resume it first"));
    ck_assert_int_eq(err.retryable, 0); /* it does not go on by itself */
    barchan_usage u = {.struct_size = sizeof u};
    ck_assert_int_eq(barchan_sandbox_usage(sbx, &u, NULL), 0); /* questions are answered */
    pause_it();
    resume_it();
    it_goes_on();
    resume_it();
    sh_says("echo fine", "fine\n");
    pause_it(); /* now with process 1 out of the group */
    it_stands_still();
    barchan_sandbox_terminate(sbx);
    ck_assert(wait_until(exec_ended, &e, 20000));
    ck_assert_int_eq(e.result.reason, BARCHAN_EXEC_LOST);
}
END_TEST

START_TEST(pausing_a_storm)
{
    barchan_exec *exec;
    struct ended e = {0};
    const char *const storm = /* one that a failing fork does not end */
        "perl -e 'while (1) { my $child = fork; if (defined $child && $child == 0) "
        "{ open my $f, q(>>), q(ticks); print $f qq(x\\n); exit } 1 while waitpid(-1, 1) > 0 }'";
    make(PROFILE(.limits = {.pids = 60}));
    ck_assert_int_eq(
        barchan_sandbox_exec_start(&exec, sbx, OPTIONS(.command = storm), note_end, &e, NULL), 0);
    it_goes_on();
    pause_it();
    it_stands_still();
    barchan_exec_cancel(exec); /* what stands still can be killed */
    ck_assert(wait_until(exec_ended, &e, 20000));
    ck_assert_int_eq(e.result.reason, BARCHAN_EXEC_CANCELLED);
    resume_it();
    sh_says("echo fine", "fine\n");
}
END_TEST

START_TEST(time_stands_still)
{
    struct ended e = {0};
    ck_assert_int_eq(barchan_sandbox_exec_start(
                         NULL, sbx, OPTIONS(.command = TICKING, .timeout_ms = 2000, .grace_ms = -1),
                         note_end, &e, NULL),
                     0);
    it_goes_on();
    pause_it();
    pumped(2500); /* past the deadline */
    ck_assert_int_eq(e.count, 0);
    resume_it();
    it_goes_on();
    ck_assert(wait_until(exec_ended, &e, 20000));
    ck_assert_int_eq(e.result.reason, BARCHAN_EXEC_TIMEOUT);
    ck_assert_int_gt(e.result.usage.wall_us, 4000000);
}
END_TEST

START_TEST(a_pause_is_seen_or_not)
{
    /* A parent that asks for stopped children: what the status says is what happens. */
    static const char watcher[] = "import os, time\n"
                                  "pid = os.fork()\n"
                                  "if pid == 0: time.sleep(100)\n"
                                  "open('ticks', 'w').write('x')\n"
                                  "_, status = os.waitpid(pid, os.WUNTRACED | os.WCONTINUED)\n"
                                  "print('seen')\n";
    struct ended e = {0};
    barchan_exec *exec;
    int freezer = strstr(status_of(sbx).layers, "\"pause\":\"by the freezer") != NULL;
    ck_assert_int_eq(freezer, has_groups());
    const char *const argv[] = {"python3", "-c", watcher, NULL};
    ck_assert_int_eq(
        barchan_sandbox_exec_start(&exec, sbx, OPTIONS(.argv = argv), note_end, &e, NULL), 0);
    it_goes_on();
    pause_it();
    resume_it();
    if (freezer) {
        pumped(300);
        ck_assert_int_eq(e.count, 0);
        barchan_exec_cancel(exec);
    }
    ck_assert(wait_until(exec_ended, &e, 20000));
}
END_TEST

START_TEST(a_lease_is_extended)
{
    make(PROFILE(.lease_ms = 2000));
    ck_assert_int_eq(barchan_sandbox_extend(sbx, 4000, NULL), 0);
    int64_t left = status_of(sbx).lease_left_ms;
    ck_assert_int_gt(left, 4000);
    ck_assert_int_le(left, 6000);
    pumped(2600); /* past the first end, and the launcher's margin */
    sh_says("echo alive", "alive\n");
    ck_assert(wait_until(has_ended, sbx, 20000));
    ck_assert_int_eq(status_of(sbx).end_reason, BARCHAN_END_LEASE_EXPIRED);
    barchan_error err = {0};
    ck_assert_int_eq(barchan_sandbox_extend(sbx, 1000, &err), BARCHAN_ECLOSED);
    make(NULL);
    ck_assert_int_eq(barchan_sandbox_extend(sbx, 0, &err), BARCHAN_EINVAL);
    ck_assert_int_eq(barchan_sandbox_extend(sbx, INT64_MAX, &err), BARCHAN_EINVAL);
    ck_assert_int_eq(barchan_sandbox_extend(sbx, 7ll * 24 * 3600 * 1000, &err), BARCHAN_EINVAL);
}
END_TEST

START_TEST(a_lease_that_pauses)
{
    struct ended e = {0};
    make(PROFILE(.lease_ms = 2000, .on_lease_end = BARCHAN_LEASE_PAUSE));
    ck_assert_int_eq(
        barchan_sandbox_exec_start(NULL, sbx, OPTIONS(.command = TICKING), note_end, &e, NULL), 0);
    it_goes_on();
    ck_assert(wait_until(is_paused, sbx, 20000));
    ck_assert_int_eq(status_of(sbx).lease_left_ms, 0);
    it_stands_still();
    pumped(1000); /* the launcher leaves it alone */
    barchan_error err = {0};
    ck_assert_int_eq(barchan_sandbox_resume(sbx, &err), BARCHAN_ELIMIT);
    ck_assert_ptr_nonnull(strstr(err.message, "extend it first"));
    barchan_exec_result r;
    ck_assert_int_eq(barchan_sandbox_exec(sbx, OPTIONS(.command = "true"), &r, &err),
                     BARCHAN_EBUSY);
    ck_assert_msg(strstr(err.message, "extend it, then resume it") != NULL, "%s", err.message);
    ck_assert_int_eq(err.retryable, 0);
    it_stands_still();
    ck_assert_int_eq(barchan_sandbox_extend(sbx, 2000, NULL), 0);
    resume_it();
    it_goes_on();
    ck_assert(wait_until(is_paused, sbx, 20000)); /* and again */
    ck_assert_int_eq(e.count, 0);
    barchan_sandbox_terminate(sbx);
    ck_assert(wait_until(exec_ended, &e, 20000));
}
END_TEST

static void note_done(const barchan_error *err, void *ud)
{
    *(int *)ud = err == NULL ? 1 : err->code;
}

static int is_set(void *ud)
{
    return *(int *)ud != 0;
}

START_TEST(no_command_begins_during_a_pause)
{
    int paused = 0, resumed = 0;
    barchan_exec_result r;
    barchan_error err = {0};
    ck_assert_int_eq(barchan_sandbox_pause_start(sbx, note_done, &paused, NULL), 0);
    ck_assert_int_eq(barchan_sandbox_exec(sbx, OPTIONS(.command = "true"), &r, &err),
                     BARCHAN_EBUSY);
    ck_assert_ptr_nonnull(strstr(err.message, "just being paused"));
    ck_assert(wait_until(is_set, &paused, 20000));
    ck_assert_int_eq(paused, 1);
    ck_assert_int_eq(barchan_sandbox_resume_start(sbx, note_done, &resumed, NULL), 0);
    ck_assert(wait_until(is_set, &resumed, 20000));
    ck_assert_int_eq(resumed, 1);
    sh_says("echo fine", "fine\n");
}
END_TEST

/* Each wakes all others. */
#define RESTLESS                                                                   \
    "for i in 1 2 3 4 5 6; do python3 -c \"import os, signal\nprint(flush=True)\n" \
    "while True: os.kill(-1, signal.SIGCONT)\" & done; wait"

/* What cannot be paused goes on, when its lease is extended in time. The freezer holds them;
 * signals often do not. */
START_TEST(a_lease_end_that_is_called_off)
{
    static struct ended e[5]; /* an end may still come when the test is over */
    barchan_exec *exec;
    int restless = 0, i;
    for (i = 0; i < 5 && !restless && !has_groups(); i++) {
        make(PROFILE(.lease_ms = 1500, .on_lease_end = BARCHAN_LEASE_PAUSE));
        ck_assert_int_eq(barchan_sandbox_exec_start(&exec, sbx, OPTIONS(.command = RESTLESS),
                                                    note_end, &e[i], NULL),
                         0);
        pumped(2000);
        ck_assert_int_eq(barchan_sandbox_extend(sbx, 60000, NULL), 0);
        restless = status_of(sbx).state == BARCHAN_SANDBOX_READY;
    }
    if (!restless) {
        skip(has_groups() ? "the freezer holds them all" : "they all stood still");
        return;
    }
    pumped(3500); /* longer than process 1 tries to pause */
    ck_assert_int_eq(status_of(sbx).state, BARCHAN_SANDBOX_READY);
    barchan_exec_cancel(exec);
    ck_assert(wait_until(exec_ended, &e[i - 1], 20000));
    sh_says("echo fine", "fine\n");
}
END_TEST

START_TEST(an_idle_sandbox_ends)
{
    make(PROFILE(.idle_timeout_ms = 2000));
    sh_says("sleep 3; echo busy", "busy\n"); /* a command is business */
    for (int i = 0; i < 30; i++) {           /* so are questions and files */
        ck_assert_int_ge(barchan_file_exists(sbx, "x", NULL), 0);
        barchan_runtime_pump(rt, 100, NULL);
    }
    ck_assert_int_eq(status_of(sbx).state, BARCHAN_SANDBOX_READY);
    barchan_exec_result r = run(OPTIONS(.command = "sleep 100 & echo x", .detach = 1));
    barchan_exec_result_clear(&r);
    ck_assert(wait_until(has_ended, sbx, 20000)); /* what was left behind is not */
    ck_assert_int_eq(status_of(sbx).end_reason, BARCHAN_END_IDLE);
    make(PROFILE(.idle_timeout_ms = 1500));
    pause_it();
    pumped(2500);
    ck_assert_int_eq(status_of(sbx).state, BARCHAN_SANDBOX_PAUSED);
    resume_it();
    ck_assert(wait_until(has_ended, sbx, 20000));
}
END_TEST

/* Memory of a group that the host itself is in runs out: the kernel takes process 1, which has
 * collected output, because sandboxes go first. */
static int host_without_memory(const char *group)
{
    char path[160];
    snprintf(path, sizeof path, "%s/cgroup.procs", group);
    FILE *file = fopen(path, "we");
    if (file == NULL || fputs("0", file) < 0 || fclose(file) != 0) return 10;
    if (barchan_runtime_create(&rt, NULL, NULL) < 0) return 11;
    if (barchan_sandbox_create(&sbx, rt, PROFILE(.limits = {.memory_bytes = 1 << 30}), NULL) < 0) {
        return 12;
    }
    barchan_exec_result r;
    barchan_sandbox_exec(sbx, OPTIONS(.command = "exec yes", .out_limit_bytes = 250 << 20), &r,
                         NULL);
    barchan_exec_result_clear(&r);
    int reason = (int)status_of(sbx).end_reason;
    barchan_runtime_destroy(rt);
    return reason;
}

START_TEST(the_kernel_takes_process_1)
{
#ifdef __SANITIZE_ADDRESS__
    printf("SKIP the_kernel_takes_process_1: with a sanitizer the host is the largest\n");
    return;
#endif
    char group[64], limit[96];
    int status;
    snprintf(group, sizeof group, "/sys/fs/cgroup/memory/barchan-test-%d", (int)getpid());
    /* One that a run which failed has left is as good. */
    int made = is_root() && (mkdir(group, 0755) == 0 || errno == EEXIST);
    if (!made && skip("needs cgroup version 1 and root")) return;
    snprintf(limit, sizeof limit, "%s/memory.limit_in_bytes", group);
    FILE *file = fopen(limit, "we");
    ck_assert(file != NULL && fputs("209715200", file) >= 0 && fclose(file) == 0);
    pid_t pid = fork();
    if (pid == 0) _exit(host_without_memory(group));
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, BARCHAN_END_OOM << 8);
    ck_assert_int_eq(rmdir(group), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sandbox_lease");
    const TTest *const tests[] = {pausing_a_command,
                                  pausing_a_storm,
                                  time_stands_still,
                                  a_pause_is_seen_or_not,
                                  a_lease_is_extended,
                                  a_lease_that_pauses,
                                  no_command_begins_during_a_pause,
                                  a_lease_end_that_is_called_off,
                                  an_idle_sandbox_ends,
                                  the_kernel_takes_process_1,
                                  NULL};
    add_tests(suite, "lease", setup_sandbox, teardown, tests);
    return run_suite(suite);
}
