/* Lives and deaths: of sandboxes, of the launcher, of the host; and what is left afterwards. */
#include "sandbox_support.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

START_TEST(status_and_list)
{
    barchan_sandbox *list[4], *other;
    barchan_error err = {0};
    barchan_sandbox_info info = status_of(sbx);
    ck_assert_int_eq(info.state, BARCHAN_SANDBOX_READY);
    ck_assert_int_eq(strncmp(info.id, "sbx-", 4), 0);
    ck_assert_uint_eq(strlen(info.id), 20);
    ck_assert_str_eq(info.template_name, "host");
    ck_assert_int_gt(info.lease_left_ms, 29 * 60 * 1000);
    ck_assert_ptr_nonnull(strstr(info.layers, "\"seccomp\":\"allow-list"));
    ck_assert_ptr_null(strstr(info.layers, "missing"));
    ck_assert_ptr_nonnull(strstr(info.layers, "\"memory\":\"not limited"));
    ck_assert_uint_eq(barchan_sandbox_list(rt, list, 4), 1);
    ck_assert_ptr_eq(list[0], sbx);
    ck_assert_int_eq(barchan_sandbox_create(&other, rt, NULL, &err), 0);
    ck_assert_uint_eq(barchan_sandbox_list(rt, list, 1), 2);
    ck_assert_str_ne(status_of(other).id, info.id);
    barchan_sandbox_destroy(other);
    ck_assert_uint_eq(barchan_sandbox_list(rt, NULL, 0), 1);
}
END_TEST

START_TEST(terminating)
{
    barchan_error err = {0};
    barchan_exec_result r;
    barchan_sandbox_terminate(sbx);
    barchan_sandbox_terminate(sbx);
    barchan_sandbox_info info = status_of(sbx);
    ck_assert_int_eq(info.state, BARCHAN_SANDBOX_ENDED);
    ck_assert_int_eq(info.end_reason, BARCHAN_END_TERMINATED);
    ck_assert_int_eq(info.lease_left_ms, 0);
    ck_assert_int_eq(barchan_sandbox_exec(sbx, OPTIONS(.command = "true"), &r, &err),
                     BARCHAN_ECLOSED);
    ck_assert_ptr_nonnull(strstr(err.message, "terminated"));
    ck_assert_int_eq(barchan_file_exists(sbx, "x", &err), BARCHAN_ECLOSED);
}
END_TEST

static void on_exec_done(barchan_exec *exec, barchan_exec_result *result, void *ud)
{
    (void)exec;
    *(int *)ud = (int)result->reason + 1;
}

static int is_set(void *ud)
{
    return *(int *)ud;
}

START_TEST(a_forked_child_of_the_host)
{
    barchan_error err = {0};
    barchan_exec_result r;
    struct barchan_exec *exec;
    int done = 0, status;
    ck_assert_int_eq(barchan_sandbox_exec_start(&exec, sbx, OPTIONS(.command = "sleep 0.5"),
                                                on_exec_done, &done, NULL),
                     0);
    pid_t pid = fork();
    if (pid == 0) {
        /* Nothing here is its own: calls fail, ends have no effect. */
        int rc = barchan_sandbox_exec(sbx, OPTIONS(.command = "true"), &r, &err);
        barchan_exec_cancel(exec);
        barchan_sandbox_terminate(sbx);
        barchan_sandbox_destroy(sbx);
        barchan_runtime_destroy(rt);
        _exit(rc == BARCHAN_EINVAL ? 0 : 1);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    ck_assert(wait_until(is_set, &done, 20000));
    ck_assert_int_eq(done - 1, BARCHAN_EXEC_EXITED);
    sh_says("echo alive", "alive\n");
}
END_TEST

START_TEST(terminating_under_a_command)
{
    int done = 0;
    ck_assert_int_eq(barchan_sandbox_exec_start(NULL, sbx, OPTIONS(.command = "sleep 100"),
                                                on_exec_done, &done, NULL),
                     0);
    barchan_runtime_pump(rt, 100, NULL);
    barchan_sandbox_terminate(sbx);
    ck_assert_int_eq(done, 0); /* told by the next pump */
    ck_assert(wait_until(is_set, &done, 20000));
    ck_assert_int_eq(done - 1, BARCHAN_EXEC_LOST);
    ck_assert_int_eq(status_of(sbx).running, 0);
}
END_TEST

struct created {
    int calls, code;
};

static void on_created(barchan_sandbox *sandbox, const barchan_error *err, void *ud)
{
    struct created *created = ud;
    ck_assert_ptr_nonnull(sandbox);
    created->calls++;
    created->code = err == NULL ? 0 : err->code;
}

static int is_created(void *ud)
{
    return ((struct created *)ud)->calls > 0;
}

START_TEST(creating_without_waiting)
{
    struct created created = {0};
    int done = 0;
    ck_assert_int_eq(barchan_sandbox_create_start(&sbx, rt, NULL, on_created, &created, NULL), 0);
    ck_assert_int_eq(created.calls, 0);
    ck_assert_int_eq(status_of(sbx).state, BARCHAN_SANDBOX_STARTING);
    /* A command may be asked for before the sandbox is ready. */
    ck_assert_int_eq(barchan_sandbox_exec_start(NULL, sbx, OPTIONS(.command = "exit 0"),
                                                on_exec_done, &done, NULL),
                     0);
    ck_assert(wait_until(is_set, &done, 20000));
    ck_assert_int_eq(done - 1, BARCHAN_EXEC_EXITED);
    ck_assert_int_eq(created.calls, 1);
    ck_assert_int_eq(created.code, 0);
}
END_TEST

START_TEST(destroyed_before_it_is_ready)
{
    struct created created = {0};
    ck_assert_int_eq(barchan_sandbox_create_start(&sbx, rt, NULL, on_created, &created, NULL), 0);
    barchan_sandbox_destroy(sbx);
    ck_assert_int_eq(created.calls, 1);
    ck_assert_int_eq(created.code, BARCHAN_ECANCELLED);
    barchan_cancel *token;
    ck_assert_int_eq(barchan_cancel_create(&token, NULL), 0);
    barchan_cancel_trigger(token);
    created = (struct created){0};
    ck_assert_int_eq(barchan_sandbox_create_start(&sbx, rt, PROFILE(.cancel = token), on_created,
                                                  &created, NULL),
                     0);
    ck_assert(wait_until(is_created, &created, 20000));
    ck_assert_int_eq(created.code, BARCHAN_ECANCELLED);
    ck_assert_int_eq(status_of(sbx).end_reason, BARCHAN_END_CREATE_FAILED);
    barchan_cancel_release(token);
}
END_TEST

static void create_fails(const barchan_profile *profile, int code, const char *words)
{
    barchan_sandbox *none;
    barchan_error err = {0};
    ck_assert_int_eq(barchan_sandbox_create(&none, rt, profile, &err), code);
    ck_assert_ptr_null(none);
    ck_assert_msg(strstr(err.message, words) != NULL, "%s", err.message);
    ck_assert_int_eq(strncmp(err.message, "create sandbox: ", 16), 0);
    ck_assert_str_eq(err.where, "sandbox.create");
}

START_TEST(profiles_are_checked)
{
    const char *const bad_env[] = {"NOVALUE", NULL};
    setenv("XDG_DATA_HOME", "/nonexistent", 1); /* whoever runs this may not read what HOME says */
    create_fails(PROFILE(.template_name = "hots"), BARCHAN_ENOTFOUND, "unknown template 'hots'");
    create_fails(PROFILE(.template_name = "/no/such/dir"), BARCHAN_ENOTFOUND, "/no/such/dir");
    create_fails(PROFILE(.template_name = "/etc/passwd"), BARCHAN_ENOTDIR, "/etc/passwd");
    create_fails(PROFILE(.lease_ms = -1), BARCHAN_EINVAL, "lease");
    create_fails(PROFILE(.lease_ms = 8ll * 24 * 3600 * 1000), BARCHAN_EINVAL, "7 days");
    create_fails(PROFILE(.limits.disk_bytes = 100), BARCHAN_EINVAL, "disk: 100 bytes given");
    create_fails(PROFILE(.network = (barchan_network)7), BARCHAN_EINVAL, "network");
    create_fails(PROFILE(.env = bad_env), BARCHAN_EINVAL, "NOVALUE");
}
END_TEST

START_TEST(profile_environment)
{
    const char *const env[] = {"COLOR=red", "LANG=x", NULL};
    const char *const more[] = {"COLOR=blue", NULL};
    ck_assert_int_eq(barchan_sandbox_create(&sbx, rt, PROFILE(.env = env), NULL), 0);
    sh_says("echo $COLOR $LANG", "red x\n");
    barchan_exec_result r = run(OPTIONS(.command = "echo $COLOR $LANG", .env = more));
    ck_assert_str_eq(r.out.data, "blue x\n");
    barchan_exec_result_clear(&r);
}
END_TEST

START_TEST(a_lease_ends)
{
    int done = 0;
    ck_assert_int_eq(barchan_sandbox_create(&sbx, rt, PROFILE(.lease_ms = 400), NULL), 0);
    ck_assert_int_eq(barchan_sandbox_exec_start(NULL, sbx,
                                                OPTIONS(.command = "trap '' TERM; sleep 100"),
                                                on_exec_done, &done, NULL),
                     0);
    ck_assert(wait_until(has_ended, sbx, 20000));
    ck_assert_int_eq(status_of(sbx).end_reason, BARCHAN_END_LEASE_EXPIRED);
    ck_assert(wait_until(is_set, &done, 20000));
    ck_assert_int_eq(done - 1, BARCHAN_EXEC_LOST);
}
END_TEST

START_TEST(many_at_once)
{
    barchan_sandbox *many[50];
    struct created created = {0};
    for (int i = 0; i < 50; i++) {
        ck_assert_int_eq(
            barchan_sandbox_create_start(&many[i], rt, NULL, on_created, &created, NULL), 0);
    }
    int64_t deadline = monotonic_ms() + 30000;
    while (created.calls < 50 && monotonic_ms() < deadline) {
        barchan_runtime_pump(rt, 100, NULL);
    }
    ck_assert_int_eq(created.calls, 50);
    ck_assert_int_eq(created.code, 0);
    for (int i = 0; i < 50; i++) {
        sbx = many[i];
        sh_says("cat mine 2>/dev/null; echo x > mine; cat mine", "x\n");
    }
}
END_TEST

START_TEST(a_host_with_a_limit_on_file_sizes)
{
    struct rlimit old, small;
    barchan_sandbox *none;
    barchan_error err = {0};
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &old), 0);
    small = old;
    small.rlim_cur = 65536;
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
    int rc = barchan_sandbox_create(&none, rt, NULL, &err); /* no SIGXFSZ */
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &old), 0);
    ck_assert_int_lt(rc, 0);
    ck_assert_int_eq(err.os_error, EFBIG);
    ck_assert_ptr_nonnull(strstr(err.message, "ulimit -f"));
    ck_assert_int_eq(barchan_sandbox_create(&sbx, rt, NULL, &err), 0);
}
END_TEST

START_TEST(the_doctor_reports)
{
    char *json;
    barchan_error err = {0};
    ck_assert_msg(barchan_doctor(rt, &json, &err) == 0, "%s", err.message);
    const char *const entries[] = {"kernel",  "user_namespaces", "cgroups",         "landlock",
                                   "seccomp", "sandbox",         "sandbox.seccomp", "sandbox.proc"};
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
        char needle[64];
        snprintf(needle, sizeof needle, "{\"name\":\"%s\",\"state\":\"", entries[i]);
        ck_assert_msg(strstr(json, needle) != NULL, "%s in %s", needle, json);
    }
    /* Where sandboxes can be made, as here, nothing that they need is missing. */
    ck_assert_msg(strstr(json, "\"name\":\"sandbox\",\"state\":\"ok\"") != NULL, "%s", json);
    ck_assert_msg(strstr(json, "\"state\":\"missing\"") == NULL, "%s", json);
    barchan_free(json);
    ck_assert_uint_eq(barchan_sandbox_list(rt, NULL, 0), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sandbox_life");
    const TTest *const with_sandbox[] = {status_and_list, terminating, terminating_under_a_command,
                                         a_forked_child_of_the_host, NULL};
    const TTest *const with_runtime[] = {creating_without_waiting,
                                         destroyed_before_it_is_ready,
                                         profiles_are_checked,
                                         profile_environment,
                                         a_lease_ends,
                                         many_at_once,
                                         a_host_with_a_limit_on_file_sizes,
                                         the_doctor_reports,
                                         NULL};
    add_tests(suite, "sandbox", setup_sandbox, teardown, with_sandbox);
    add_tests(suite, "runtime", setup_runtime, teardown, with_runtime);
    return run_suite(suite);
}
