#include "sandbox_support.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>
#include "sandbox_path.h"
#include "suite.h"

barchan_runtime *rt;
barchan_sandbox *sbx;
static int fds_before, mounts_before, children_before;

int64_t monotonic_ms(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

int child_of(int pid)
{
    char path[64];
    int child = 0;
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", pid, pid);
    FILE *file = fopen(path, "re");
    if (file == NULL) return 0;
    if (fscanf(file, "%d", &child) != 1) child = 0;
    fclose(file);
    return child;
}

int skip(const char *why)
{
    printf("SKIP %s\n", why);
    fflush(stdout);
    return 1;
}

int is_root(void)
{
    return geteuid() == 0;
}

int has_groups(void)
{
    static const char *const hierarchies[] = {"", "/unified", "/memory"};
    char path[64];
    int found = 0;
    for (size_t i = 0; i < sizeof hierarchies / sizeof *hierarchies; i++) {
        snprintf(path, sizeof path, "/sys/fs/cgroup%s/cgroup.procs", hierarchies[i]);
        found = found || access(path, W_OK) == 0;
    }
    return is_root() && found;
}

int count_children(void)
{
    char path[64];
    int count = 0, pid;
    snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    FILE *file = fopen(path, "re");
    ck_assert_ptr_nonnull(file);
    while (fscanf(file, "%d", &pid) == 1) {
        count++;
    }
    fclose(file);
    return count;
}

int first_child(void)
{
    char path[64];
    int pid = 0;
    snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    FILE *file = fopen(path, "re");
    if (fscanf(file, "%d", &pid) != 1) pid = 0;
    fclose(file);
    return pid;
}

int count_descendants(int pid)
{
    char path[64];
    int count = 0, child;
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", pid, pid);
    FILE *file = fopen(path, "re");
    if (file == NULL) return 0;
    while (fscanf(file, "%d", &child) == 1) {
        count += 1 + count_descendants(child);
    }
    fclose(file);
    return count;
}

int count_fds(void)
{
    DIR *dir = opendir("/proc/self/fd");
    int count = 0;
    ck_assert_ptr_nonnull(dir);
    while (readdir(dir) != NULL) {
        count++;
    }
    closedir(dir);
    return count;
}

int count_mounts(void)
{
    FILE *file = fopen("/proc/self/mountinfo", "re");
    int count = 0, c;
    ck_assert_ptr_nonnull(file);
    while ((c = fgetc(file)) != EOF) {
        if (c == '\n') count++;
    }
    fclose(file);
    return count;
}

void setup_runtime(void)
{
    barchan_error err;
    /* What the library loses would be adopted by init; this way it is found. */
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    /* libuv keeps a few descriptors from its first loop on; they are not counted. */
    ck_assert_msg(barchan_runtime_create(&rt, NULL, &err) == 0, "%s", err.message);
    barchan_runtime_destroy(rt);
    fds_before = count_fds();
    mounts_before = count_mounts();
    children_before = count_children();
    ck_assert_msg(barchan_runtime_create(&rt, NULL, &err) == 0, "%s", err.message);
    sbx = NULL;
}

void setup_sandbox(void)
{
    barchan_error err = {0};
    setup_runtime();
    ck_assert_msg(create_sandbox(&sbx, rt, NULL, &err) == 0, "%s", err.message);
}

void teardown(void)
{
    int64_t began = monotonic_ms();
    barchan_runtime_destroy(rt);
    ck_assert_int_lt(monotonic_ms() - began, 20000);
    ck_assert_int_eq(count_children(), children_before);
    ck_assert_int_eq(count_fds(), fds_before);
    ck_assert_int_eq(count_mounts(), mounts_before);
}

int wait_until(int (*condition)(void *ud), void *ud, int limit_ms)
{
    int64_t deadline = monotonic_ms() + limit_ms;
    while (!condition(ud)) {
        if (monotonic_ms() > deadline) return 0;
        barchan_runtime_pump(rt, 20, NULL);
    }
    return 1;
}

barchan_exec_result run(const barchan_exec_options *options)
{
    barchan_exec_result result;
    barchan_error err = {0};
    int rc = barchan_sandbox_exec(sbx, options, &result, &err);
    ck_assert_msg(rc == 0, "exec: %s", err.message);
    return result;
}

barchan_exec_result sh(const char *command)
{
    return run(OPTIONS(.command = command));
}

void note_end(barchan_exec *exec, barchan_exec_result *result, void *ud)
{
    struct ended *ended = ud;
    (void)exec;
    ended->count++;
    ended->result = *result;
    ended->result.out = ended->result.err_out = (barchan_bytes){0};
    ended->result.denied = ended->result.unreached = NULL; /* the caller's */
}

int exec_ended(void *ud)
{
    return ((struct ended *)ud)->count > 0;
}

void sh_says(const char *command, const char *expected)
{
    barchan_exec_result r = sh(command);
    ck_assert_msg(r.reason == BARCHAN_EXEC_EXITED && r.exit_code == 0,
                  "%s: %s, code %d, signal %d, err: %.1000s", command,
                  barchan_exec_reason_name(r.reason), r.exit_code, r.term_signal, r.err_out.data);
    ck_assert_str_eq(r.out.data, expected);
    barchan_exec_result_clear(&r);
}

barchan_sandbox_info status_of(barchan_sandbox *sandbox)
{
    barchan_sandbox_info info = {.struct_size = sizeof info};
    ck_assert_int_eq(barchan_sandbox_status(sandbox, &info, NULL), 0);
    return info;
}

int has_ended(void *ud)
{
    return status_of(ud).state == BARCHAN_SANDBOX_ENDED;
}

barchan_file_result file_done(const barchan_file_request *request)
{
    barchan_file_result result;
    barchan_error err = {0};
    int rc = barchan_sandbox_file(sbx, request, &result, &err);
    ck_assert_msg(rc == 0, "%s", err.message);
    return result;
}

void file_does(const barchan_file_request *request)
{
    barchan_file_result result = file_done(request);
    barchan_file_result_clear(&result);
}

void file_fails(const barchan_file_request *request, int code)
{
    barchan_file_result result;
    barchan_error err = {0};
    int64_t began = monotonic_ms();
    int rc = barchan_sandbox_file(sbx, request, &result, &err);
    ck_assert_msg(rc == code, "%s: %s, not %s: %s", request->path, barchan_status_name(rc),
                  barchan_status_name(code), err.message);
    ck_assert_int_eq(err.code, code);
    ck_assert_str_ne(err.message, "");
    ck_assert_str_eq(err.where, "sandbox.file");
    ck_assert_int_lt(monotonic_ms() - began, 20000);
}

void file_put_text(const char *path, const char *text)
{
    barchan_error err = {0};
    int rc = barchan_file_write(sbx, path, text, strlen(text), &err);
    ck_assert_msg(rc == 0, "%s", err.message);
}

void file_contains(const char *path, const char *text)
{
    barchan_bytes bytes;
    barchan_error err = {0};
    int rc = barchan_file_read(sbx, path, &bytes, &err);
    ck_assert_msg(rc == 0, "%s", err.message);
    ck_assert_str_eq(bytes.data, text);
    ck_assert_uint_eq(bytes.len, strlen(text));
    barchan_bytes_clear(&bytes);
}

void add_tests(Suite *suite, const char *name, void (*setup)(void), void (*end)(void),
               const TTest *const *tests)
{
    TCase *tc = tcase_create(name);
    tcase_set_timeout(tc, 150);
    if (setup != NULL) tcase_add_checked_fixture(tc, setup, end);
    for (; *tests != NULL; tests++) {
        tcase_add_test(tc, *tests);
    }
    suite_add_tcase(suite, tc);
}

int run_suite(Suite *suite)
{
    printf("running as %s\n", is_root() ? "root" : "an ordinary user");
    return suite_end(suite);
}
