/* The file operations: each of them, each of its errors, and nothing that hangs. */
#include "sandbox_support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define REQUEST(...) \
    (&(barchan_file_request){.struct_size = sizeof(barchan_file_request), __VA_ARGS__})

static barchan_file_result done(const barchan_file_request *request)
{
    barchan_file_result result;
    barchan_error err = {0};
    int rc = barchan_sandbox_file(sbx, request, &result, &err);
    ck_assert_msg(rc == 0, "%s", err.message);
    return result;
}

static void does(const barchan_file_request *request)
{
    barchan_file_result result = done(request);
    barchan_file_result_clear(&result);
}

static void fails(const barchan_file_request *request, int code)
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
    ck_assert_int_lt(monotonic_ms() - began, 3000);
}

static void write_text(const char *path, const char *text)
{
    barchan_error err = {0};
    int rc = barchan_file_write(sbx, path, text, strlen(text), &err);
    ck_assert_msg(rc == 0, "%s", err.message);
}

static void contains(const char *path, const char *text)
{
    barchan_bytes bytes;
    barchan_error err = {0};
    int rc = barchan_file_read(sbx, path, &bytes, &err);
    ck_assert_msg(rc == 0, "%s", err.message);
    ck_assert_str_eq(bytes.data, text);
    ck_assert_uint_eq(bytes.len, strlen(text));
    barchan_bytes_clear(&bytes);
}

START_TEST(write_and_read)
{
    write_text("a/b/c.txt", "hello");
    contains("a/b/c.txt", "hello");
    contains("/workspace/a/b/c.txt", "hello");
    write_text("a/b/c.txt", "");
    contains("a/b/c.txt", "");
    sh_says("stat -c '%U %a %s' a a/b/c.txt; ls -A a/b", "user 755 60\nuser 644 0\nc.txt\n");
    barchan_file_result r;
    write_text("n", "0123456789");
    r = done(REQUEST(.op = BARCHAN_FILE_READ, .path = "n", .offset = 3, .limit = 4));
    ck_assert_str_eq(r.data.data, "3456");
    ck_assert_uint_eq(r.size, 10);
    ck_assert_uint_eq(r.bytes, 4);
    barchan_file_result_clear(&r);
    r = done(REQUEST(.op = BARCHAN_FILE_READ, .path = "n", .offset = 100));
    ck_assert_uint_eq(r.data.len, 0);
    barchan_file_result_clear(&r);
    sh_says("ln -s n link", "");
    contains("link", "0123456789");
    contains("/etc/hostname", "sandbox\n");
}
END_TEST

START_TEST(modes_and_appending)
{
    does(REQUEST(.op = BARCHAN_FILE_WRITE, .path = "s", .data = "#!/bin/sh\necho ran\n",
                 .data_len = 19, .mode = 0750));
    sh_says("./s; stat -c %a s", "ran\n750\n");
    write_text("s", "#!/bin/sh\necho again\n"); /* keeps the mode of what it replaces */
    sh_says("./s; stat -c %a s", "again\n750\n");
    does(REQUEST(.op = BARCHAN_FILE_APPEND, .path = "new/log", .data = "one\n", .data_len = 4));
    barchan_file_result r =
        done(REQUEST(.op = BARCHAN_FILE_APPEND, .path = "new/log", .data = "two\n", .data_len = 4));
    ck_assert_uint_eq(r.bytes, 4);
    ck_assert_uint_eq(r.size, 8);
    barchan_file_result_clear(&r);
    contains("new/log", "one\ntwo\n");
}
END_TEST

START_TEST(writing_is_atomic)
{
    /* A reader of the old file keeps it; nobody sees a half-written one. */
    write_text("f", "old");
    sh_says("exec 3< f; ls -i f > before", "");
    write_text("f", "new");
    sh_says("ls -i f > after; cmp -s before after || echo replaced; ls -A",
            "replaced\nafter\nbefore\nf\n");
}
END_TEST

START_TEST(directories)
{
    does(REQUEST(.op = BARCHAN_FILE_MKDIR, .path = "d/e/f"));
    does(REQUEST(.op = BARCHAN_FILE_MKDIR, .path = "d/e/f")); /* an existing one is fine */
    does(REQUEST(.op = BARCHAN_FILE_MKDIR, .path = "private", .mode = 0700));
    sh_says("stat -c %a d/e/f private", "755\n700\n");
    write_text("d/e/file", "x");
    fails(REQUEST(.op = BARCHAN_FILE_MKDIR, .path = "d/e/file"), BARCHAN_EEXISTS);
    fails(REQUEST(.op = BARCHAN_FILE_MKDIR, .path = "d/e/file/g"), BARCHAN_ENOTDIR);
    fails(REQUEST(.op = BARCHAN_FILE_REMOVE, .path = "d"), BARCHAN_ENOTEMPTY);
    does(REQUEST(.op = BARCHAN_FILE_REMOVE, .path = "d/e/f"));
    does(REQUEST(.op = BARCHAN_FILE_REMOVE, .path = "d", .recursive = 1));
    fails(REQUEST(.op = BARCHAN_FILE_REMOVE, .path = "d", .recursive = 1), BARCHAN_ENOTFOUND);
    /* A link is removed, not what it leads to. */
    sh_says("mkdir real; touch real/kept; ln -s real link", "");
    does(REQUEST(.op = BARCHAN_FILE_REMOVE, .path = "link", .recursive = 1));
    sh_says("mkdir t; ln -s ../real t/link", "");
    does(REQUEST(.op = BARCHAN_FILE_REMOVE, .path = "t", .recursive = 1));
    sh_says("ls real", "kept\n");
}
END_TEST

START_TEST(a_very_deep_tree_is_removed)
{
    sh_says("i=0; mkdir top; cd top; while [ $i -lt 3000 ]; do mkdir d; cd d; echo x > f; "
            "i=$((i+1)); done",
            "");
    does(REQUEST(.op = BARCHAN_FILE_REMOVE, .path = "top", .recursive = 1));
    sh_says("ls -A", "");
}
END_TEST

START_TEST(renaming)
{
    write_text("a", "1");
    write_text("b", "2");
    does(REQUEST(.op = BARCHAN_FILE_RENAME, .path = "a", .new_path = "b"));
    contains("b", "1");
    ck_assert_int_eq(barchan_file_exists(sbx, "a", NULL), 0);
    ck_assert_int_eq(barchan_file_exists(sbx, "b", NULL), 1);
    ck_assert_int_eq(barchan_file_exists(sbx, "b/c", NULL), 0);
    fails(REQUEST(.op = BARCHAN_FILE_RENAME, .path = "a", .new_path = "c"), BARCHAN_ENOTFOUND);
    fails(REQUEST(.op = BARCHAN_FILE_RENAME, .path = "b", .new_path = "no/c"), BARCHAN_ENOTFOUND);
    does(REQUEST(.op = BARCHAN_FILE_MKDIR, .path = "d"));
    fails(REQUEST(.op = BARCHAN_FILE_RENAME, .path = "b", .new_path = "d"), BARCHAN_EISDIR);
}
END_TEST

START_TEST(listing)
{
    sh_says("mkdir -p l/z/deep l/a; echo 12345 > l/file; ln -s file l/link; mkfifo l/fifo; "
            "touch l/z/deep/leaf; chmod 640 l/file",
            "");
    barchan_file_result r = done(REQUEST(.op = BARCHAN_FILE_LIST, .path = "l"));
    const char *const names[] = {"a", "fifo", "file", "link", "z"};
    const barchan_file_type types[] = {BARCHAN_FILE_DIRECTORY, BARCHAN_FILE_FIFO,
                                       BARCHAN_FILE_REGULAR, BARCHAN_FILE_SYMLINK,
                                       BARCHAN_FILE_DIRECTORY};
    ck_assert_uint_eq(r.entry_count, 5);
    for (size_t i = 0; i < 5; i++) {
        ck_assert_str_eq(r.entries[i].path, names[i]);
        ck_assert_int_eq(r.entries[i].type, types[i]);
    }
    ck_assert_uint_eq(r.entries[2].size, 6);
    ck_assert_uint_eq(r.entries[2].mode, 0640);
    ck_assert_str_eq(r.entries[3].link_target, "file");
    ck_assert_int_gt((int)(r.entries[2].mtime_ms / 1000000000), 1000);
    barchan_file_result_clear(&r);
    r = done(REQUEST(.op = BARCHAN_FILE_LIST, .path = "l", .depth = 3));
    ck_assert_uint_eq(r.entry_count, 7);
    ck_assert_str_eq(r.entries[6].path, "z/deep/leaf");
    barchan_file_result_clear(&r);
    r = done(REQUEST(.op = BARCHAN_FILE_STAT, .path = "l/link"));
    ck_assert_int_eq(r.entries[0].type, BARCHAN_FILE_SYMLINK);
    barchan_file_result_clear(&r);
    fails(REQUEST(.op = BARCHAN_FILE_LIST, .path = "l/file"), BARCHAN_ENOTDIR);
    fails(REQUEST(.op = BARCHAN_FILE_LIST, .path = "missing"), BARCHAN_ENOTFOUND);
    fails(REQUEST(.op = BARCHAN_FILE_LIST, .path = "l", .depth = 65), BARCHAN_EINVAL);
}
END_TEST

START_TEST(many_entries)
{
    sh_says("mkdir m; cd m; seq -f 'entry-%.0f' 101000 | xargs touch", "");
    barchan_file_result r = done(REQUEST(.op = BARCHAN_FILE_LIST, .path = "m"));
    ck_assert_uint_eq(r.entry_count, 100000);
    ck_assert_int_eq(r.truncated, 1);
    for (size_t i = 1; i < r.entry_count; i++) {
        ck_assert_int_lt(strcmp(r.entries[i - 1].path, r.entries[i].path), 0);
    }
    barchan_file_result_clear(&r);
}
END_TEST

START_TEST(very_long_names)
{
    /* 20,000 files 3,800 bytes deep: 77 MB of paths. */
    sh_says("n=$(printf %0240d 1); i=0; while [ $i -lt 16 ]; do mkdir $n && cd $n || exit 1; "
            "i=$((i+1)); done; seq -f 'f%.0f' 20000 | xargs touch",
            "");
    barchan_file_result r = done(REQUEST(.op = BARCHAN_FILE_LIST, .path = ".", .depth = 64));
    ck_assert_int_eq(r.truncated, 1);
    ck_assert_uint_gt(r.entry_count, 3000);
    barchan_file_result_clear(&r);
    sh_says("echo alive", "alive\n");
}
END_TEST

START_TEST(errors_of_reading_and_writing)
{
    sh_says("mkdir d; mkfifo fifo; ln -s d dirlink; ln -s nowhere dangling; ln -s loop loop; "
            "echo x > ro; chmod 0 ro; echo secret > plain; ln -s plain link",
            "");
    fails(REQUEST(.op = BARCHAN_FILE_READ, .path = "missing"), BARCHAN_ENOTFOUND);
    fails(REQUEST(.op = BARCHAN_FILE_READ, .path = "d"), BARCHAN_EISDIR);
    fails(REQUEST(.op = BARCHAN_FILE_READ, .path = "fifo"), BARCHAN_ENOTREG);
    fails(REQUEST(.op = BARCHAN_FILE_READ, .path = "/dev/zero"), BARCHAN_ENOTREG);
    fails(REQUEST(.op = BARCHAN_FILE_READ, .path = "dangling"), BARCHAN_ENOTFOUND);
    fails(REQUEST(.op = BARCHAN_FILE_READ, .path = "loop"), BARCHAN_ELINK);
    fails(REQUEST(.op = BARCHAN_FILE_READ, .path = "ro"), BARCHAN_EPERMISSION);
    fails(REQUEST(.op = BARCHAN_FILE_READ, .path = "plain/x"), BARCHAN_ENOTDIR);
    fails(REQUEST(.op = BARCHAN_FILE_READ, .path = ""), BARCHAN_EINVAL);
    fails(REQUEST(.op = BARCHAN_FILE_READ, .path = "a\0b", .path_len = 3), BARCHAN_EINVAL);
    fails(REQUEST(.op = BARCHAN_FILE_WRITE, .path = "d"), BARCHAN_EISDIR);
    fails(REQUEST(.op = BARCHAN_FILE_WRITE, .path = "new/"), BARCHAN_EISDIR);
    fails(REQUEST(.op = BARCHAN_FILE_WRITE, .path = "fifo"), BARCHAN_ENOTREG);
    fails(REQUEST(.op = BARCHAN_FILE_WRITE, .path = "link"), BARCHAN_ELINK);
    fails(REQUEST(.op = BARCHAN_FILE_WRITE, .path = "dangling"), BARCHAN_ELINK);
    fails(REQUEST(.op = BARCHAN_FILE_APPEND, .path = "fifo"), BARCHAN_ENOTREG);
    fails(REQUEST(.op = BARCHAN_FILE_APPEND, .path = "link"), BARCHAN_ELINK);
    fails(REQUEST(.op = BARCHAN_FILE_WRITE, .path = "plain/x"), BARCHAN_ENOTDIR);
    fails(REQUEST(.op = BARCHAN_FILE_WRITE, .path = "/usr/x"), BARCHAN_EPERMISSION);
    fails(REQUEST(.op = BARCHAN_FILE_WRITE, .path = "/etc/passwd"), BARCHAN_EPERMISSION);
    fails(REQUEST(.op = BARCHAN_FILE_WRITE, .path = "/dev/null"), BARCHAN_ENOTREG);
    fails(REQUEST(.op = BARCHAN_FILE_REMOVE, .path = "/workspace", .recursive = 1),
          BARCHAN_EPERMISSION);
    char name[400];
    memset(name, 'n', 300);
    name[300] = '\0';
    fails(REQUEST(.op = BARCHAN_FILE_WRITE, .path = name), BARCHAN_EINVAL);
    contains("plain", "secret\n");
}
END_TEST

START_TEST(any_name_and_any_bytes)
{
    const char *const names[] = {"-rf",      "~",   "$HOME",     "a b\tc\nd", "\x1b[31m",
                                 "\xff\xfe", "*?[", "e\xcc\x81", "...",       "\"'\\"};
    char bytes[256];
    for (int i = 0; i < 256; i++) {
        bytes[i] = (char)i;
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        barchan_bytes back;
        barchan_error err = {0};
        int rc = barchan_file_write(sbx, names[i], bytes, sizeof bytes, &err);
        ck_assert_msg(rc == 0, "%s", err.message);
        ck_assert_int_eq(barchan_file_read(sbx, names[i], &back, &err), 0);
        ck_assert_uint_eq(back.len, 256);
        ck_assert(memcmp(back.data, bytes, 256) == 0);
        barchan_bytes_clear(&back);
    }
    barchan_file_result r = done(REQUEST(.op = BARCHAN_FILE_LIST, .path = "."));
    ck_assert_uint_eq(r.entry_count, sizeof names / sizeof *names);
    for (size_t i = 0; i < r.entry_count; i++) {
        size_t found = 0;
        for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
            found += strcmp(names[k], r.entries[i].path) == 0;
        }
        ck_assert_uint_eq(found, 1);
    }
    barchan_file_result_clear(&r);
}
END_TEST

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
        barchan_sandbox_create(&sbx, rt, PROFILE(.storage_bytes = size + (64ull << 20)), &err), 0);
    long before = max_rss_kib();
    struct flow flow = {.left = size};
    barchan_file_result r =
        done(REQUEST(.op = BARCHAN_FILE_WRITE, .path = "big", .source = source, .ud = &flow));
    ck_assert_uint_eq(r.bytes, size);
    barchan_file_result_clear(&r);
    memset(&flow, 0, sizeof flow);
    r = done(REQUEST(.op = BARCHAN_FILE_READ, .path = "big", .sink = sink, .ud = &flow));
    ck_assert_uint_eq(flow.total, size);
    ck_assert_uint_gt(flow.sum, 0);
    barchan_file_result_clear(&r);
    printf("%llu MiB each way: this process grew by %ld KiB\n", (unsigned long long)(size >> 20),
           max_rss_kib() - before);
    ck_assert_int_lt(max_rss_kib() - before, 32 * 1024);
    fails(REQUEST(.op = BARCHAN_FILE_READ, .path = "big"), BARCHAN_ELIMIT);
}
END_TEST

START_TEST(giving_up_leaves_nothing)
{
    struct flow flow = {.left = 100u << 20, .give_up_after = 100};
    fails(REQUEST(.op = BARCHAN_FILE_WRITE, .path = "part", .source = source, .ud = &flow),
          BARCHAN_ECANCELLED);
    sh_says("ls -A", "");
    sh_says("head -c 30000000 /dev/zero > big", "");
    flow = (struct flow){.give_up_after = 10};
    fails(REQUEST(.op = BARCHAN_FILE_READ, .path = "big", .sink = sink, .ud = &flow),
          BARCHAN_ECANCELLED);
    barchan_cancel *token;
    ck_assert_int_eq(barchan_cancel_create(&token, NULL), 0);
    barchan_cancel_trigger(token);
    flow = (struct flow){.left = 1ull << 40};
    fails(REQUEST(.op = BARCHAN_FILE_WRITE, .path = "part", .source = source, .ud = &flow,
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
    ck_assert_int_eq(barchan_sandbox_create(&sbx, rt, PROFILE(.storage_bytes = 4u << 20), &err), 0);
    struct flow flow = {.left = 100u << 20};
    write_text("f", "old");
    fails(REQUEST(.op = BARCHAN_FILE_WRITE, .path = "f", .source = source, .ud = &flow),
          BARCHAN_ENOSPACE);
    contains("f", "old");
    sh_says("ls -A; head -c 3000000 /dev/zero > ok && echo fits", "f\nfits\n");
    barchan_exec_result r = sh("cat /dev/zero > /tmp/x; cat /dev/zero > /dev/shm/y; exit 0");
    ck_assert_ptr_nonnull(strstr(r.err_out.data, "No space left"));
    barchan_exec_result_clear(&r);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sandbox_files");
    TCase *tc = tcase_create("files");
    tcase_set_timeout(tc, 150);
    tcase_add_checked_fixture(tc, setup_sandbox, teardown);
    tcase_add_test(tc, write_and_read);
    tcase_add_test(tc, modes_and_appending);
    tcase_add_test(tc, writing_is_atomic);
    tcase_add_test(tc, directories);
    tcase_add_test(tc, a_very_deep_tree_is_removed);
    tcase_add_test(tc, renaming);
    tcase_add_test(tc, listing);
    tcase_add_test(tc, many_entries);
    tcase_add_test(tc, very_long_names);
    tcase_add_test(tc, errors_of_reading_and_writing);
    tcase_add_test(tc, any_name_and_any_bytes);
    tcase_add_test(tc, large_files_stream);
    tcase_add_test(tc, giving_up_leaves_nothing);
    tcase_add_test(tc, a_sink_that_destroys_the_sandbox);
    tcase_add_test(tc, removing_dots_is_refused);
    tcase_add_test(tc, a_full_disk);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
