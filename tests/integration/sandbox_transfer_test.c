/* Files that are moved in parts, given up half-way, or do not fit. */
#include "sandbox_support.h"

#include <signal.h>
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

static int says_something(void *ud)
{
    return ((const struct flow *)ud)->total > 0;
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

/* ---- two at once ---- */

enum { HALVES = 24u << 20 };

/* A file of one letter, a part at a time, so that the other's parts come in between. */
struct writer {
    char letter;
    size_t left;
    int parts, give_up_after;
    int ended, code;
};

static long letters(void *buffer, size_t capacity, void *ud)
{
    struct writer *w = ud;
    size_t len = w->left < capacity ? w->left : capacity;
    if (++w->parts == w->give_up_after) return -1;
    memset(buffer, w->letter, len);
    w->left -= len;
    return (long)len;
}

static void on_written(barchan_file_result *result, const barchan_error *err, void *ud)
{
    struct writer *w = ud;
    (void)result;
    w->ended++;
    w->code = err == NULL ? 0 : err->code;
}

static void start_writer(struct writer *w)
{
    barchan_error err = {0};
    ck_assert_msg(barchan_sandbox_file_start(
                      NULL, sbx,
                      REQUEST(.op = BARCHAN_FILE_WRITE, .path = "same", .source = letters, .ud = w),
                      on_written, w, &err) == 0,
                  "%s", err.message);
}

static int both_written(void *ud)
{
    const struct writer *w = ud;
    return w[0].ended && w[1].ended;
}

static int has_been_read(void *ud)
{
    return ((const struct writer *)ud)->ended;
}

/* Whole, and of one letter; anything else is an error of its own. */
static char one_letter(void)
{
    barchan_exec_result r = sh("tr -d '\\n' < same | fold -w 1048576 | sort -u | cut -c 1 | tr -d "
                               "'\\n'; stat -c ' %s' same; ls -A");
    char letter = 0, rest[64] = "";
    unsigned long size = 0;
    sscanf(r.out.data, "%c %lu %63s", &letter, &size, rest);
    ck_assert_msg(size == HALVES && strcmp(rest, "same") == 0, "%s", r.out.data);
    barchan_exec_result_clear(&r);
    return letter;
}

/* Of two that write one name the later one stays, whole; one that gives up changes nothing; who
 * reads meanwhile has the one or the other from beginning to end. */
START_TEST(two_writers_of_one_name)
{
    char letter = 0;
    for (int round = 0; round < 4; round++) {
        struct writer w[2] = {{.letter = 'a', .left = HALVES}, {.letter = 'b', .left = HALVES}};
        if (round == 2) w[0].give_up_after = 20;
        start_writer(&w[0]);
        start_writer(&w[1]);
        ck_assert(wait_until(both_written, w, 30000));
        ck_assert_int_gt(w[0].parts, 2);
        ck_assert_int_gt(w[1].parts, 2);
        ck_assert_int_eq(w[1].code, 0);
        ck_assert_int_eq(w[0].code, round == 2 ? BARCHAN_ECANCELLED : 0);
        ck_assert_int_eq(w[0].ended + w[1].ended, 2);
        letter = one_letter();
        ck_assert_msg(letter == 'b' || (letter == 'a' && round != 2), "%c", letter);
    }
    struct flow reading = {0};
    struct writer w[2] = {{.letter = 'c', .left = HALVES}, {.ended = 1}};
    struct writer reader = {0};
    ck_assert_int_eq(barchan_sandbox_file_start(NULL, sbx,
                                                REQUEST(.op = BARCHAN_FILE_READ, .path = "same",
                                                        .sink = sink, .ud = &reading),
                                                on_written, &reader, NULL),
                     0);
    ck_assert(wait_until(says_something, &reading, 20000));
    start_writer(&w[0]);
    ck_assert(wait_until(both_written, w, 30000));
    ck_assert(wait_until(has_been_read, &reader, 30000));
    ck_assert_uint_eq(reading.total, HALVES);
    ck_assert_uint_eq(reading.sum % (unsigned char)letter, 0); /* the first byte of each part */
    ck_assert_int_eq(one_letter(), 'c');
}
END_TEST

/* What has the name keeps what it was: a program that runs, another name of the same file. */
START_TEST(what_had_the_name_stays_as_it_was)
{
    struct ended e = {0};
    barchan_exec *exec;
    sh_says("cp /bin/sleep program; ln program twin; echo old > a; ln a b", "");
    ck_assert_int_eq(barchan_sandbox_exec_start(
                         &exec, sbx, OPTIONS(.argv = ARGV("./program", "60")), note_end, &e, NULL),
                     0);
    sh_says("until pgrep -x program > /dev/null; do sleep 0.01; done", "");
    file_put_text("program", "#!/bin/sh\necho new\n");
    file_put_text("a", "new\n");
    sh_says("cat b; cmp -s twin /bin/sleep && echo the program; sh ./program; pkill -x program",
            "old\nthe program\nnew\n");
    ck_assert(wait_until(exec_ended, &e, 20000));
    ck_assert_int_eq(e.result.term_signal, SIGTERM);
    barchan_exec_result_clear(&e.result);
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
                                  two_writers_of_one_name,
                                  what_had_the_name_stays_as_it_was,
                                  NULL};
    add_tests(suite, "transfer", setup_sandbox, teardown, tests);
    return run_suite(suite);
}
