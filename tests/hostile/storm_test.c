/* What nobody thought of, and what changes all the time: random calls, names that change places
 * under a file operation, a folder whose entries come and go. The sandbox and its host go on
 * working. */
#include "sandbox_support.h"
#include "upload.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A storm on a busy machine may begin late: who looks for its traces looks so often at most. */
enum { LOOKS = 20000 };

static void make(void)
{
    setup_runtime();
    barchan_error err = {0};
    ck_assert_msg(
        barchan_sandbox_create(
            &sbx, rt, PROFILE(.limits = {.pids = 200, .memory_bytes = 512 << 20}), &err) == 0,
        "%s", err.message);
    upload_probe();
}

START_TEST(random_calls)
{
    int rounds = getenv("BARCHAN_LONG") != NULL ? 30 : 2;
    char seed[16];
    for (int i = 0; i < rounds; i++) {
        snprintf(seed, sizeof seed, "%d", i + 1);
        const char *const argv[] = {"./probe", "storm", "1", seed, NULL};
        /* However it ends: such calls kill, stop and unmap whatever they can. */
        barchan_exec_result r = run(OPTIONS(.argv = argv, .timeout_ms = 4000, .grace_ms = -1));
        barchan_exec_result_clear(&r);
        ck_assert_int_eq(status_of(sbx).state, BARCHAN_SANDBOX_READY);
        sh_says("chmod 755 /workspace; echo alive", "alive\n");
    }
    barchan_usage u = {.struct_size = sizeof u};
    ck_assert_int_eq(barchan_sandbox_usage(sbx, &u, NULL), 0);
}
END_TEST

static barchan_exec *start(const char *const *argv, struct ended *e)
{
    barchan_exec *exec;
    barchan_error err = {0};
    ck_assert_msg(
        barchan_sandbox_exec_start(&exec, sbx, OPTIONS(.argv = argv), note_end, e, &err) == 0, "%s",
        err.message);
    return exec;
}

static void stop(barchan_exec *exec, struct ended *e)
{
    ck_assert_int_eq(e->count, 0); /* it has done it all the time */
    barchan_exec_cancel(exec);
    ck_assert(wait_until(exec_ended, e, 20000));
}

/* A folder and a link to /etc change places: an answer is of the one or the other in the sandbox,
 * or an error, and what is written lands where commands may write. */
START_TEST(a_part_of_a_path_becomes_a_link)
{
    struct ended e = {0};
    int own = 0, linked = 0, failed = 0;
    sh_says("mkdir -p d/sub; echo own > d/passwd; ln -s /etc link", "");
    barchan_exec *exec = start(ARGV("./probe", "exchange", "d", "link"), &e);
    for (int i = 0; i < 200 || ((own == 0 || linked == 0) && i < LOOKS); i++) {
        barchan_bytes bytes;
        barchan_error err = {0};
        if (barchan_file_read(sbx, "d/passwd", &bytes, &err) == 0) {
            int is_own = strcmp(bytes.data, "own\n") == 0;
            ck_assert(is_own || strncmp(bytes.data, "root:", 5) == 0);
            ck_assert(is_own || strstr(bytes.data, "user:x:1000:") != NULL);
            own += is_own;
            linked += !is_own;
            barchan_bytes_clear(&bytes);
        } else {
            failed++;
        }
        barchan_file_write(sbx, "d/sub/written", "w", 1, &err);
        barchan_file_remove(sbx, "d/sub", 1, &err);
        barchan_file_mkdir(sbx, "d/sub", &err);
    }
    stop(exec, &e);
    printf("read %d times as it was, %d through the link, %d not at all\n", own, linked, failed);
    ck_assert_int_gt(own, 0);
    ck_assert_int_gt(linked, 0);
    sh_says("ls /etc/sub 2>/dev/null; ls /etc/passwd", "/etc/passwd\n");
}
END_TEST

static int by_name(const void *a, const void *b)
{
    const barchan_file_info *x = a, *y = b;
    return strcmp(x->path, y->path);
}

START_TEST(a_folder_changes_while_it_is_listed)
{
    struct ended e = {0};
    int most = 0;
    sh_says("mkdir c", "");
    barchan_exec *exec = start(ARGV("./probe", "churn", "c"), &e);
    for (int i = 0; i < 100 || (most <= 1 && i < LOOKS); i++) {
        barchan_file_result result;
        barchan_error err = {0};
        int rc =
            barchan_sandbox_file(sbx, REQUEST(.op = BARCHAN_FILE_LIST, .path = "c"), &result, &err);
        ck_assert_msg(rc == 0, "%s", err.message);
        if (result.entry_count > 0)
            qsort(result.entries, result.entry_count, sizeof *result.entries, by_name);
        for (size_t k = 0; k < result.entry_count; k++) {
            ck_assert_int_eq(strncmp(result.entries[k].path, "file-", 5), 0);
            ck_assert(k == 0 || by_name(&result.entries[k - 1], &result.entries[k]) < 0);
        }
        if ((int)result.entry_count > most) most = (int)result.entry_count;
        barchan_file_result_clear(&result);
    }
    ck_assert_int_gt(most, 1);
    barchan_error err = {0};
    int rc = barchan_file_remove(sbx, "c", 1, &err); /* or it is never empty */
    ck_assert_msg(rc == 0 || rc == BARCHAN_ENOTEMPTY, "%s", err.message);
    stop(exec, &e);
    ck_assert_int_eq(barchan_file_remove(sbx, "c", 1, &err), rc == 0 ? BARCHAN_ENOTFOUND : 0);
    sh_says("ls", "probe\n");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("storm");
    const TTest *const tests[] = {random_calls, a_part_of_a_path_becomes_a_link,
                                  a_folder_changes_while_it_is_listed, NULL};
    add_tests(suite, "storm", make, teardown, tests);
    return run_suite(suite);
}
