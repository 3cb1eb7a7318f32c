/* The file operations: each of them, each of its errors, and nothing that hangs. */
#include "sandbox_support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

START_TEST(write_and_read)
{
    file_put_text("a/b/c.txt", "hello");
    file_contains("a/b/c.txt", "hello");
    file_contains("/workspace/a/b/c.txt", "hello");
    file_put_text("a/b/c.txt", "");
    file_contains("a/b/c.txt", "");
    sh_says("stat -c '%U %a %s' a a/b/c.txt; ls -A a/b", "user 755 60\nuser 644 0\nc.txt\n");
    barchan_file_result r;
    file_put_text("n", "0123456789");
    r = file_done(REQUEST(.op = BARCHAN_FILE_READ, .path = "n", .offset = 3, .limit = 4));
    ck_assert_str_eq(r.data.data, "3456");
    ck_assert_uint_eq(r.size, 10);
    ck_assert_uint_eq(r.bytes, 4);
    barchan_file_result_clear(&r);
    r = file_done(REQUEST(.op = BARCHAN_FILE_READ, .path = "n", .offset = 100));
    ck_assert_uint_eq(r.data.len, 0);
    barchan_file_result_clear(&r);
    sh_says("ln -s n link", "");
    file_contains("link", "0123456789");
    file_contains("/etc/hostname", "sandbox\n");
}
END_TEST

START_TEST(modes_and_appending)
{
    file_does(REQUEST(.op = BARCHAN_FILE_WRITE, .path = "s", .data = "#!/bin/sh\necho ran\n",
                      .data_len = 19, .mode = 0750));
    sh_says("./s; stat -c %a s", "ran\n750\n");
    file_put_text("s", "#!/bin/sh\necho again\n"); /* keeps the mode of what it replaces */
    sh_says("./s; stat -c %a s", "again\n750\n");
    file_does(
        REQUEST(.op = BARCHAN_FILE_APPEND, .path = "new/log", .data = "one\n", .data_len = 4));
    barchan_file_result r = file_done(
        REQUEST(.op = BARCHAN_FILE_APPEND, .path = "new/log", .data = "two\n", .data_len = 4));
    ck_assert_uint_eq(r.bytes, 4);
    ck_assert_uint_eq(r.size, 8);
    barchan_file_result_clear(&r);
    file_contains("new/log", "one\ntwo\n");
}
END_TEST

START_TEST(writing_is_atomic)
{
    /* A reader of the old file keeps it; nobody sees a half-written one. */
    file_put_text("f", "old");
    sh_says("exec 3< f; ls -i f > before", "");
    file_put_text("f", "new");
    sh_says("ls -i f > after; cmp -s before after || echo replaced; ls -A",
            "replaced\nafter\nbefore\nf\n");
}
END_TEST

START_TEST(directories)
{
    file_does(REQUEST(.op = BARCHAN_FILE_MKDIR, .path = "d/e/f"));
    file_does(REQUEST(.op = BARCHAN_FILE_MKDIR, .path = "d/e/f")); /* an existing one is fine */
    file_does(REQUEST(.op = BARCHAN_FILE_MKDIR, .path = "private", .mode = 0700));
    sh_says("stat -c %a d/e/f private", "755\n700\n");
    file_put_text("d/e/file", "x");
    file_fails(REQUEST(.op = BARCHAN_FILE_MKDIR, .path = "d/e/file"), BARCHAN_EEXISTS);
    file_fails(REQUEST(.op = BARCHAN_FILE_MKDIR, .path = "d/e/file/g"), BARCHAN_ENOTDIR);
    file_fails(REQUEST(.op = BARCHAN_FILE_REMOVE, .path = "d"), BARCHAN_ENOTEMPTY);
    file_does(REQUEST(.op = BARCHAN_FILE_REMOVE, .path = "d/e/f"));
    file_does(REQUEST(.op = BARCHAN_FILE_REMOVE, .path = "d", .recursive = 1));
    file_fails(REQUEST(.op = BARCHAN_FILE_REMOVE, .path = "d", .recursive = 1), BARCHAN_ENOTFOUND);
    /* A link is removed, not what it leads to. */
    sh_says("mkdir real; touch real/kept; ln -s real link", "");
    file_does(REQUEST(.op = BARCHAN_FILE_REMOVE, .path = "link", .recursive = 1));
    sh_says("mkdir t; ln -s ../real t/link", "");
    file_does(REQUEST(.op = BARCHAN_FILE_REMOVE, .path = "t", .recursive = 1));
    sh_says("ls real", "kept\n");
}
END_TEST

START_TEST(a_very_deep_tree_is_removed)
{
    sh_says("python3 -c \""
            "import os\n"
            "os.mkdir('top'); os.chdir('top')\n"
            "for i in range(3000): os.mkdir('d'); os.chdir('d'); open('f', 'w').write('x')\"",
            "");
    file_does(REQUEST(.op = BARCHAN_FILE_REMOVE, .path = "top", .recursive = 1));
    sh_says("ls -A", "");
}
END_TEST

START_TEST(renaming)
{
    file_put_text("a", "1");
    file_put_text("b", "2");
    file_does(REQUEST(.op = BARCHAN_FILE_RENAME, .path = "a", .new_path = "b"));
    file_contains("b", "1");
    ck_assert_int_eq(barchan_file_exists(sbx, "a", NULL), 0);
    ck_assert_int_eq(barchan_file_exists(sbx, "b", NULL), 1);
    ck_assert_int_eq(barchan_file_exists(sbx, "b/c", NULL), 0);
    file_fails(REQUEST(.op = BARCHAN_FILE_RENAME, .path = "a", .new_path = "c"), BARCHAN_ENOTFOUND);
    file_fails(REQUEST(.op = BARCHAN_FILE_RENAME, .path = "b", .new_path = "no/c"),
               BARCHAN_ENOTFOUND);
    file_does(REQUEST(.op = BARCHAN_FILE_MKDIR, .path = "d"));
    file_fails(REQUEST(.op = BARCHAN_FILE_RENAME, .path = "b", .new_path = "d"), BARCHAN_EISDIR);
}
END_TEST

START_TEST(listing)
{
    sh_says("mkdir -p l/z/deep l/a; echo 12345 > l/file; ln -s file l/link; mkfifo l/fifo; "
            "touch l/z/deep/leaf; chmod 640 l/file",
            "");
    barchan_file_result r = file_done(REQUEST(.op = BARCHAN_FILE_LIST, .path = "l"));
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
    r = file_done(REQUEST(.op = BARCHAN_FILE_LIST, .path = "l", .depth = 3));
    ck_assert_uint_eq(r.entry_count, 7);
    ck_assert_str_eq(r.entries[6].path, "z/deep/leaf");
    barchan_file_result_clear(&r);
    r = file_done(REQUEST(.op = BARCHAN_FILE_STAT, .path = "l/link"));
    ck_assert_int_eq(r.entries[0].type, BARCHAN_FILE_SYMLINK);
    barchan_file_result_clear(&r);
    file_fails(REQUEST(.op = BARCHAN_FILE_LIST, .path = "l/file"), BARCHAN_ENOTDIR);
    file_fails(REQUEST(.op = BARCHAN_FILE_LIST, .path = "missing"), BARCHAN_ENOTFOUND);
    file_fails(REQUEST(.op = BARCHAN_FILE_LIST, .path = "l", .depth = 65), BARCHAN_EINVAL);
}
END_TEST

START_TEST(many_entries)
{
    sh_says("mkdir m; cd m; seq -f 'entry-%.0f' 101000 | xargs touch", "");
    barchan_file_result r = file_done(REQUEST(.op = BARCHAN_FILE_LIST, .path = "m"));
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
    barchan_file_result r = file_done(REQUEST(.op = BARCHAN_FILE_LIST, .path = ".", .depth = 64));
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
    file_fails(REQUEST(.op = BARCHAN_FILE_READ, .path = "missing"), BARCHAN_ENOTFOUND);
    file_fails(REQUEST(.op = BARCHAN_FILE_READ, .path = "d"), BARCHAN_EISDIR);
    file_fails(REQUEST(.op = BARCHAN_FILE_READ, .path = "fifo"), BARCHAN_ENOTREG);
    file_fails(REQUEST(.op = BARCHAN_FILE_READ, .path = "/dev/zero"), BARCHAN_ENOTREG);
    file_fails(REQUEST(.op = BARCHAN_FILE_READ, .path = "dangling"), BARCHAN_ENOTFOUND);
    file_fails(REQUEST(.op = BARCHAN_FILE_READ, .path = "loop"), BARCHAN_ELINK);
    file_fails(REQUEST(.op = BARCHAN_FILE_READ, .path = "ro"), BARCHAN_EPERMISSION);
    file_fails(REQUEST(.op = BARCHAN_FILE_READ, .path = "plain/x"), BARCHAN_ENOTDIR);
    file_fails(REQUEST(.op = BARCHAN_FILE_READ, .path = ""), BARCHAN_EINVAL);
    file_fails(REQUEST(.op = BARCHAN_FILE_READ, .path = "a\0b", .path_len = 3), BARCHAN_EINVAL);
    file_fails(REQUEST(.op = BARCHAN_FILE_WRITE, .path = "d"), BARCHAN_EISDIR);
    file_fails(REQUEST(.op = BARCHAN_FILE_WRITE, .path = "new/"), BARCHAN_EISDIR);
    file_fails(REQUEST(.op = BARCHAN_FILE_WRITE, .path = "fifo"), BARCHAN_ENOTREG);
    file_fails(REQUEST(.op = BARCHAN_FILE_WRITE, .path = "link"), BARCHAN_ELINK);
    file_fails(REQUEST(.op = BARCHAN_FILE_WRITE, .path = "dangling"), BARCHAN_ELINK);
    file_fails(REQUEST(.op = BARCHAN_FILE_APPEND, .path = "fifo"), BARCHAN_ENOTREG);
    file_fails(REQUEST(.op = BARCHAN_FILE_APPEND, .path = "link"), BARCHAN_ELINK);
    file_fails(REQUEST(.op = BARCHAN_FILE_WRITE, .path = "plain/x"), BARCHAN_ENOTDIR);
    file_fails(REQUEST(.op = BARCHAN_FILE_WRITE, .path = "/usr/x"), BARCHAN_EPERMISSION);
    file_fails(REQUEST(.op = BARCHAN_FILE_WRITE, .path = "/etc/passwd"), BARCHAN_EPERMISSION);
    file_fails(REQUEST(.op = BARCHAN_FILE_WRITE, .path = "/dev/null"), BARCHAN_ENOTREG);
    file_fails(REQUEST(.op = BARCHAN_FILE_REMOVE, .path = "/workspace", .recursive = 1),
               BARCHAN_EPERMISSION);
    char name[400];
    memset(name, 'n', 300);
    name[300] = '\0';
    file_fails(REQUEST(.op = BARCHAN_FILE_WRITE, .path = name), BARCHAN_EINVAL);
    file_contains("plain", "secret\n");
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
    barchan_file_result r = file_done(REQUEST(.op = BARCHAN_FILE_LIST, .path = "."));
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

int main(void)
{
    Suite *suite = suite_create("sandbox_files");
    const TTest *const tests[] = {write_and_read,
                                  modes_and_appending,
                                  writing_is_atomic,
                                  directories,
                                  a_very_deep_tree_is_removed,
                                  renaming,
                                  listing,
                                  many_entries,
                                  very_long_names,
                                  errors_of_reading_and_writing,
                                  any_name_and_any_bytes,
                                  NULL};
    add_tests(suite, "files", setup_sandbox, teardown, tests);
    return run_suite(suite);
}
