/* Snapshots and forks of a detached sandbox, over the connection to its holder. */
#include "detached_support.h"
#include "snapshot_support.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void setup(void)
{
    host_dir_make();
    ck_assert_int_eq(setenv("XDG_DATA_HOME", at("share"), 1), 0);
    setup_connected();
}

static void end(void)
{
    teardown_connected();
    host_dir_remove();
}

START_TEST(files_come_over_the_connection)
{
    barchan_sandbox *forks[2];
    barchan_error err = {0};
    sh_says("echo text > file; head -c 3000000 /dev/urandom > big; md5sum < big > sum", "");
    snapshot("held");
    int rc = barchan_sandbox_fork(sbx, forks, 2, NULL, &err);
    ck_assert_msg(rc == 0, "%s", err.message);
    barchan_sandbox *own = sbx;
    for (int i = 0; i < 2; i++) {
        sbx = forks[i];
        sh_says("cat file; md5sum < big | diff - sum; echo $? > file", "text\n");
        barchan_sandbox_destroy(sbx);
    }
    ck_assert_int_eq(barchan_sandbox_create(&sbx, rt, PROFILE(.template_name = "held"), &err), 0);
    sh_says("cat file; md5sum < big | diff - sum && echo same", "text\nsame\n");
    barchan_sandbox_destroy(sbx);
    sbx = own;
    sh_says("cat file", "text\n");
}
END_TEST

/* A holder's template, and what it is based on and its limits, are known to those who connect. */
START_TEST(from_a_template)
{
    static const char *const env[] = {"WHO=held", NULL};
    barchan_sandbox *fork, *first = sbx;
    barchan_error err = {0};
    sh_says("head -c 1500000 /dev/urandom > big; echo 1 > one", "");
    snapshot("first");
    struct holder other =
        start_holder(PROFILE(.template_name = "first", .env = env, .lease_ms = 500000,
                             .limits = {.disk_bytes = 1 << 20}));
    sbx = connect_to(other.id);
    sh_says("cat one; echo 2 > two", "1\n");
    snapshot("second"); /* more than its limits alone would allow */
    ck_assert_int_eq(barchan_template_remove(rt, "first", &err), BARCHAN_EBUSY);
    barchan_template info = info_of("second");
    ck_assert_str_eq(info.base, "host");
    barchan_template_clear(&info);
    ck_assert_int_eq(barchan_sandbox_fork(sbx, &fork, 1, NULL, &err), 0);
    ck_assert_int_gt(status_of(fork).lease_left_ms, 450000);
    ck_assert_str_eq(status_of(fork).template_name, "first");
    barchan_sandbox_terminate(sbx);
    barchan_sandbox_destroy(sbx);
    sbx = fork;
    sh_says("echo $WHO; cat one two; head -c 2000000 /dev/zero > more 2>/dev/null || echo full",
            "held\n1\n2\nfull\n");
    barchan_sandbox_destroy(sbx);
    sbx = first;
    ck_assert_int_eq(holder_gone(&other), 0);
    ck_assert_int_eq(barchan_template_remove(rt, "first", &err), 0);
}
END_TEST

static void note(const barchan_template *info, const barchan_error *err, void *ud)
{
    (void)info;
    *(int *)ud = err == NULL ? 1 : err->code;
}

static int is_set(void *ud)
{
    return *(int *)ud;
}

static int has_begun(void *ud)
{
    (void)ud;
    return count_folders() == 2;
}

/* One that takes a snapshot and then reads nothing more; meanwhile another asks for things. */
START_TEST(nothing_begins_meanwhile)
{
    barchan_error err = {0};
    barchan_exec_result r;
    barchan_runtime *own = rt;
    barchan_sandbox *taken = sbx;
    int outcome = 0;
    sh_says("head -c 30000000 /dev/urandom > big; echo text > file", "");
    snapshot("before");
    ck_assert_int_eq(
        barchan_sandbox_snapshot_start(NULL, sbx, "during", NULL, note, &outcome, &err), 0);
    ck_assert(wait_until(has_begun, NULL, 10000));
    for (int i = 0; i < 3; i++) {
        barchan_runtime_pump(rt, 20, NULL);
    }
    ck_assert_int_eq(outcome, 0);
    ck_assert_int_eq(barchan_runtime_create(&rt, NULL, NULL), 0);
    sbx = connect_to(holder.id);
    ck_assert_int_eq(barchan_sandbox_exec(sbx, OPTIONS(.command = "true"), &r, &err), 0);
    ck_assert_int_eq(r.reason, BARCHAN_EXEC_SPAWN_FAILED);
    ck_assert_int_eq(r.spawn_errno, EAGAIN);
    barchan_exec_result_clear(&r);
    ck_assert_int_eq(barchan_file_write(sbx, "file", "x", 1, &err), BARCHAN_EBUSY);
    ck_assert_msg(strstr(err.message, "a snapshot is being taken") != NULL, "%s", err.message);
    ck_assert_int_eq(barchan_file_mkdir(sbx, "d", &err), BARCHAN_EBUSY);
    file_contains("file", "text\n"); /* reading is fine */
    snapshot_fails("third", BARCHAN_EBUSY, "snapshot: another one is being taken");
    barchan_sandbox_destroy(sbx);
    barchan_runtime_destroy(rt);
    rt = own;
    sbx = taken;
    ck_assert(wait_until(is_set, &outcome, 20000));
    ck_assert_int_eq(outcome, 1);
    sh_says("cat file", "text\n");
}
END_TEST

/* Whoever takes one goes away: what it had begun is gone with the next list, and the sandbox works.
 */
START_TEST(the_client_goes)
{
    barchan_error err = {0};
    int outcome = 0;
    sh_says("head -c 30000000 /dev/urandom > big", "");
    ck_assert_int_eq(barchan_sandbox_snapshot_start(NULL, sbx, "gone", NULL, note, &outcome, &err),
                     0);
    for (int i = 0; i < 3; i++) {
        barchan_runtime_pump(rt, 20, NULL);
    }
    barchan_runtime_destroy(rt);
    ck_assert_int_lt(outcome, 0);
    ck_assert_int_eq(count_folders(), 0);
    ck_assert_int_eq(barchan_runtime_create(&rt, NULL, NULL), 0);
    sbx = connect_to(holder.id);
    for (int i = 0; i < 500; i++) {
        barchan_exec_result r;
        ck_assert_int_eq(barchan_sandbox_exec(sbx, OPTIONS(.command = "true"), &r, &err), 0);
        int failed = r.reason == BARCHAN_EXEC_SPAWN_FAILED; /* its worker is being ended */
        barchan_exec_result_clear(&r);
        if (!failed) break;
        usleep(10000);
    }
    sh_says("stat -c %s big", "30000000\n");
    snapshot("again");
}
END_TEST

int main(void)
{
    if (!copies_work()) return 77;
    Suite *suite = suite_create("sandbox_snapshot_held");
    const TTest *const tests[] = {files_come_over_the_connection, from_a_template,
                                  nothing_begins_meanwhile, the_client_goes, NULL};
    add_tests(suite, "held", setup, end, tests);
    return run_suite(suite);
}
