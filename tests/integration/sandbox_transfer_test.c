/* Files that are moved in parts, given up half-way, or do not fit. */
#include "sandbox_support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* ---- streams ---- */

struct flow {
    uint64_t left, total, sum;
    int give_up_after;
};

static long source(void *buffer, size_t capacity, void *ud)
{
    struct flow *flow = ud;
    size_t len = flow->left < capacity ? (size_t)flow->left : capacity;
    if (flow->give_up_after > 0 && --flow->give_up_after == 0) return -1;
    memset(buffer, (int)(flow->left >> 20), len);
    flow->left -= len;
    return (long)len;
}

static int sink(const void *data, size_t len, void *ud)
{
    struct flow *flow = ud;
    if (flow->give_up_after > 0 && --flow->give_up_after == 0) return -1;
    flow->total += len;
    flow->sum += ((const unsigned char *)data)[0];
    return 0;
}

static long max_rss_kib(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}

START_TEST(large_files_stream)
{
    uint64_t size = 256ull << 20;
    if (getenv("BARCHAN_TEST_LARGE") != NULL) size = 1ull << 30;
    barchan_sandbox_destroy(sbx);
    barchan_error err;
    ck_assert_int_eq(
        barchan_sandbox_create(&sbx, rt, PROFILE(.limits.disk_bytes = size + (64ull << 20)), &err),
        0);
    long before = max_rss_kib();
    struct flow flow = {.left = size};
    barchan_file_result r =
        file_done(REQUEST(.op = BARCHAN_FILE_WRITE, .path = "big", .source = source, .ud = &flow));
    ck_assert_uint_eq(r.bytes, size);
    barchan_file_result_clear(&r);
    memset(&flow, 0, sizeof flow);
    r = file_done(REQUEST(.op = BARCHAN_FILE_READ, .path = "big", .sink = sink, .ud = &flow));
    ck_assert_uint_eq(flow.total, size);
    ck_assert_uint_gt(flow.sum, 0);
    barchan_file_result_clear(&r);
    printf("%llu MiB each way: this process grew by %ld KiB\n", (unsigned long long)(size >> 20),
           max_rss_kib() - before);
    ck_assert_int_lt(max_rss_kib() - before, 32 * 1024);
    file_fails(REQUEST(.op = BARCHAN_FILE_READ, .path = "big"), BARCHAN_ELIMIT);
}
END_TEST

START_TEST(giving_up_leaves_nothing)
{
    struct flow flow = {.left = 100u << 20, .give_up_after = 100};
    file_fails(REQUEST(.op = BARCHAN_FILE_WRITE, .path = "part", .source = source, .ud = &flow),
               BARCHAN_ECANCELLED);
    sh_says("ls -A", "");
    sh_says("head -c 30000000 /dev/zero > big", "");
    flow = (struct flow){.give_up_after = 10};
    file_fails(REQUEST(.op = BARCHAN_FILE_READ, .path = "big", .sink = sink, .ud = &flow),
               BARCHAN_ECANCELLED);
    barchan_cancel *token;
    ck_assert_int_eq(barchan_cancel_create(&token, NULL), 0);
    barchan_cancel_trigger(token);
    flow = (struct flow){.left = 1ull << 40};
    file_fails(REQUEST(.op = BARCHAN_FILE_WRITE, .path = "part", .source = source, .ud = &flow,
                       .cancel = token),
               BARCHAN_ECANCELLED);
    barchan_cancel_release(token);
    sh_says("ls -A", "big\n");
}
END_TEST

static int destroying_sink(const void *data, size_t len, void *ud)
{
    (void)data, (void)len;
    ++*(int *)ud;
    barchan_sandbox_destroy(sbx);
    sbx = NULL;
    return 0;
}

static void on_lost_file(barchan_file_result *result, const barchan_error *err, void *ud)
{
    ck_assert_ptr_null(result);
    ck_assert_int_eq(err->code, BARCHAN_ELOST);
    ++*(int *)ud;
}

static int is_two(void *ud)
{
    return *(int *)ud == 2;
}

START_TEST(a_sink_that_destroys_the_sandbox)
{
    int calls = 0;
    sh_says("head -c 900000 /dev/zero > f", "");
    const barchan_file_request request = {.struct_size = sizeof request,
                                          .op = BARCHAN_FILE_READ,
                                          .path = "f",
                                          .sink = destroying_sink,
                                          .ud = &calls};
    ck_assert_int_eq(barchan_sandbox_file_start(NULL, sbx, &request, on_lost_file, &calls, NULL),
                     0);
    ck_assert(wait_until(is_two, &calls, 20000));
}
END_TEST

START_TEST(removing_dots_is_refused)
{
    const char *const paths[] = {"sub/..", "sub/.", ".", "..", "sub/../", "./", "/tmp/..", "/.."};
    barchan_error err;
    sh_says("mkdir sub; echo precious > keep; echo x > sub/x; echo t > /tmp/t", "");
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        for (int recursive = 0; recursive < 2; recursive++) {
            err = (barchan_error){0};
            ck_assert_msg(barchan_file_remove(sbx, paths[i], recursive, &err) == BARCHAN_EINVAL,
                          "%s: %s", paths[i], err.message);
        }
    }
    sh_says("cat keep sub/x /tmp/t", "precious\nx\nt\n");
    ck_assert_int_eq(barchan_file_remove(sbx, "sub/../sub/", 1, &err), 0);
    sh_says("ls", "keep\n");
}
END_TEST

START_TEST(a_full_disk)
{
    barchan_sandbox_destroy(sbx);
    barchan_error err;
    ck_assert_int_eq(barchan_sandbox_create(&sbx, rt, PROFILE(.limits.disk_bytes = 4u << 20), &err),
                     0);
    struct flow flow = {.left = 100u << 20};
    file_put_text("f", "old");
    file_fails(REQUEST(.op = BARCHAN_FILE_WRITE, .path = "f", .source = source, .ud = &flow),
               BARCHAN_ENOSPACE);
    file_contains("f", "old");
    sh_says("ls -A; head -c 3000000 /dev/zero > ok && echo fits", "f\nfits\n");
    barchan_exec_result r = sh("cat /dev/zero > /tmp/x; cat /dev/zero > /dev/shm/y; exit 0");
    ck_assert_ptr_nonnull(strstr(r.err_out.data, "No space left"));
    barchan_exec_result_clear(&r);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sandbox_transfer");
    const TTest *const tests[] = {large_files_stream,
                                  giving_up_leaves_nothing,
                                  a_sink_that_destroys_the_sandbox,
                                  removing_dots_is_refused,
                                  a_full_disk,
                                  NULL};
    add_tests(suite, "transfer", setup_sandbox, teardown, tests);
    return run_suite(suite);
}
