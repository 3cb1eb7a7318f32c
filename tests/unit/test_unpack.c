/* Hostile streams of files: nothing is made but new names below the folder. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "channel/frame.h"
#include "sandbox/templates.h"
#include "suite.h"
#include "unpack_records.h"

static void whole_tree(void)
{
    out.len = 0;
    entries = data_bytes = 0;
    folder("workspace", 0750);
    file("a", "alpha", 7);
    folder("closed", 07500);
    again(7, "b");
    link_to("link", "/etc/passwd");
    leave();
    file_head("holes", 04755, 1 << 20, 0);
    bc_wire_put_u32(&out, BC_PACK_HOLE);
    bc_wire_put_u64(&out, 4096);
    extent("x", 1);
    bc_wire_put_u32(&out, BC_PACK_HOLE);
    bc_wire_put_u64(&out, (1 << 20) - 4097);
    bc_wire_put_u32(&out, 0);
    leave();
    folder("tmp", 0777);
    leave();
    done();
}

START_TEST(a_tree)
{
    struct stat st;
    barchan_error err = {0};
    static const size_t pieces[] = {1, 2, 3, 7, 64, 1 << 20};
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        whole_tree();
        ck_assert_msg(unpack(pieces[i], &err) == 0, "%zu: %s", pieces[i], err.message);
        reads("workspace/a", "alpha");
        reads("workspace/closed/b", "alpha");
        ck_assert_int_eq(fstatat(root, "workspace/a", &st, 0), 0);
        ck_assert_uint_eq(st.st_nlink, 2);
        ck_assert_uint_eq(st.st_mode, S_IFREG | 0644);
        ck_assert_int_eq(st.st_mtim.tv_sec, 1100000000);
        ck_assert_int_eq(fstatat(root, "workspace/closed", &st, 0), 0);
        ck_assert_uint_eq(st.st_mode, S_IFDIR | 0500); /* and no more */
        ck_assert_int_eq(st.st_mtim.tv_sec, 1000000000);
        ck_assert_int_eq(fstatat(root, "workspace/holes", &st, 0), 0);
        ck_assert_uint_eq(st.st_mode, S_IFREG | 0755);
        ck_assert_int_eq(st.st_size, 1 << 20);
        ck_assert_int_lt(st.st_blocks, 100);
        ck_assert_int_eq(count_in(root), 4); /* the places that did not come, and nothing of ours */
        ck_assert_int_eq(bc_tree_remove(outside, "root"), 0);
        close(root);
        ck_assert_int_eq(mkdirat(outside, "root", 0700), 0);
        root = openat(outside, "root", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    }
}
END_TEST

static const char *const bad_names[] = {"", ".", "..", "a/b", "/etc", "a/", "../x", "../victim/x"};
#define BAD_NAMES (int)(sizeof bad_names / sizeof *bad_names)

START_TEST(names_of_folders)
{
    folder("home", 0755);
    folder(bad_names[_i], 0755);
    leave();
    leave();
    done();
    refused(BARCHAN_EPROTOCOL);
}
END_TEST

START_TEST(names_of_files)
{
    folder("home", 0755);
    if (_i % 2 == 0) file(bad_names[_i], "text", 0);
    if (_i % 2 == 1) link_to(bad_names[_i], "text");
    leave();
    done();
    refused(BARCHAN_EPROTOCOL);
}
END_TEST

START_TEST(further_names)
{
    folder("home", 0755);
    file("x", "text", 1);
    again(1, bad_names[_i]);
    leave();
    done();
    refused(BARCHAN_EPROTOCOL);
}
END_TEST

START_TEST(places)
{
    static const char *const wrong[] = {"etc", "..", "same", "manifest.json", "home/x", ""};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        out.len = 0;
        folder(wrong[i], 0755);
        leave();
        done();
        refused(BARCHAN_EPROTOCOL);
    }
    out.len = 0;
    entries = 0;
    folder("home", 0755);
    leave();
    folder("home", 0755);
    leave();
    done();
    refused(BARCHAN_EPROTOCOL);
}
END_TEST

/* A name that is taken stays what it is: nothing is opened through a link. */
START_TEST(names_twice)
{
    for (int first = 0; first < 3; first++) {
        for (int second = 0; second < 4; second++) {
            char name[16];
            struct stat before, after;
            snprintf(name, sizeof name, "%d%d", first, second);
            out.len = 0;
            entries = data_bytes = 0;
            folder("home", 0755);
            file("id", "y", 1);
            if (first == 0) file(name, "text", 0);
            if (first == 1) link_to(name, "../../victim");
            if (first == 2) folder(name, 0755), leave();
            size_t len = out.len;
            if (second == 0) file(name, "other", 0);
            if (second == 1) link_to(name, "other");
            if (second == 2) folder(name, 0755), file("x", "text", 0), leave();
            if (second == 3) again(1, name);
            barchan_error err = {0};
            bc_unpack *u;
            ck_assert_int_eq(bc_unpack_open(&u, root, &limits, &err), 0);
            ck_assert_int_eq(bc_unpack_write(u, bytes, len, &err), 0);
            char path[64];
            snprintf(path, sizeof path, "home/%s", name);
            ck_assert_int_eq(fstatat(root, path, &before, AT_SYMLINK_NOFOLLOW), 0);
            ck_assert_int_eq(bc_unpack_write(u, bytes + len, out.len - len, &err),
                             BARCHAN_EPROTOCOL);
            ck_assert_int_eq(fstatat(root, path, &after, AT_SYMLINK_NOFOLLOW), 0);
            ck_assert(before.st_ino == after.st_ino && before.st_size == after.st_size);
            ck_assert_int_eq(bc_unpack_write(u, bytes, 1, &err), BARCHAN_EPROTOCOL);
            bc_unpack_free(u);
            close(root);
            ck_assert_int_eq(bc_tree_remove(outside, "root"), 0);
            ck_assert_int_eq(mkdirat(outside, "root", 0700), 0);
            root = openat(outside, "root", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        }
    }
}
END_TEST

/* Each for its own reason: what follows is malformed, too. */
static const char *const reasons[] = {"an extent",
                                      "a file of another size",
                                      "a hole",
                                      "a hole",
                                      "more than 16 TiB",
                                      "an extent",
                                      "a bad id",
                                      "a file",
                                      "a link",
                                      "no folder to leave",
                                      "an unknown record",
                                      "it is not whole",
                                      "a bad id",
                                      "something after its end",
                                      "another count of files",
                                      "another count of files",
                                      "a bad id",
                                      "too deep"};
#define REASONS (int)(sizeof reasons / sizeof *reasons)

START_TEST(sizes)
{
    barchan_error err = {0};
    char more[100];
    memset(more, 'x', sizeof more);
    switch (_i) {
    case 0: /* more than said */
        folder("home", 0755);
        file_head("f", 0644, 50, 0);
        extent(more, 60);
        break;
    case 1: /* less */
        folder("home", 0755);
        file_head("f", 0644, 50, 0);
        extent(more, 40);
        bc_wire_put_u32(&out, 0);
        break;
    case 2:
        folder("home", 0755);
        file_head("f", 0644, 50, 0);
        bc_wire_put_u32(&out, BC_PACK_HOLE);
        bc_wire_put_u64(&out, 51);
        break;
    case 3:
        folder("home", 0755);
        file_head("f", 0644, 50, 0);
        bc_wire_put_u32(&out, BC_PACK_HOLE);
        bc_wire_put_u64(&out, UINT64_MAX);
        break;
    case 4:
        folder("home", 0755);
        file_head("f", 0644, UINT64_MAX, 0);
        break;
    case 5:
        folder("home", 0755);
        file_head("f", 0644, 1 << 20, 0);
        bc_wire_put_u32(&out, BC_PACK_MAX_EXTENT + 1);
        break;
    case 6:
        folder("home", 0755);
        file_head("f", 0644, 50, BC_PACK_MAX_IDS + 1);
        break;
    case 7: file_head("f", 0644, 0, 0); break; /* in no folder */
    case 8: link_to("l", "x"); break;
    case 9: leave(); break;
    case 10: bc_wire_put_u32(&out, 77); break;
    case 11:
        folder("home", 0755);
        bc_wire_put_u32(&out, BC_PACK_LEAVE);
        put_time(5, 1000000000);
        break;
    case 12:
        folder("home", 0755);
        again(3, "x");
        break;
    case 13:
        done();
        bc_wire_put_u32(&out, 1);
        break; /* after its end */
    case 14:
        folder("home", 0755);
        done();
        break;
    case 15:
        entries = 5;
        done();
        break;
    case 16:
        folder("home", 0755);
        file("a", "x", 4);
        file("b", "x", 4);
        break;
    default:
        folder("home", 0755);
        for (unsigned i = 0; i < BC_PACK_MAX_LEVELS + 1; i++) {
            folder("d", 0755);
        }
    }
    if (_i < 13) bc_wire_put(&out, more, sizeof more);
    ck_assert_int_eq(unpack(out.len + 1, &err), _i == 4 ? BARCHAN_ELIMIT : BARCHAN_EPROTOCOL);
    size_t len = strlen(err.message), end = strlen(reasons[_i]);
    ck_assert_msg(len > end && strcmp(err.message + len - end, reasons[_i]) == 0, "%s",
                  err.message);
}
END_TEST

START_TEST(long_names)
{
    static char name[BC_FRAME_MAX_PATH + 10];
    barchan_error err = {0};
    memset(name, 'n', 256);
    folder("home", 0755);
    file(name, "", 0);
    memset(name, 'n', sizeof name - 1);
    for (int i = 0; i < 3; i++) {
        bc_wire_put(&out, name, sizeof name - 1);
    }
    refused(BARCHAN_EPROTOCOL);
    close(root);
    ck_assert_int_eq(bc_tree_remove(outside, "root"), 0);
    ck_assert_int_eq(mkdirat(outside, "root", 0700), 0);
    root = openat(outside, "root", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    out.len = 0;
    entries = data_bytes = 0;
    folder("home", 0755);
    name[255] = '\0';
    file(name, "x", 0);
    name[255] = 'n';
    name[BC_FRAME_MAX_PATH - 1] = '\0';
    link_to("l", name);
    leave();
    done();
    ck_assert_msg(unpack(1000, &err) == 0, "%s", err.message);
}
END_TEST

START_TEST(cut_anywhere)
{
    whole_tree();
    size_t len = out.len;
    for (size_t cut = 0; cut < len; cut++) {
        barchan_error err = {0};
        out.len = cut;
        ck_assert_int_eq(unpack(64, &err), BARCHAN_EPROTOCOL);
        close(root);
        ck_assert_int_eq(bc_tree_remove(outside, "root"), 0);
        ck_assert_int_eq(mkdirat(outside, "root", 0700), 0);
        root = openat(outside, "root", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    }
}
END_TEST

START_TEST(caps)
{
    limits.entries = 3;
    folder("home", 0755);
    file("a", "", 0);
    file("b", "", 0);
    file("c", "", 0);
    refused(BARCHAN_ELIMIT);
    close(root);
    ck_assert_int_eq(bc_tree_remove(outside, "root"), 0);
    ck_assert_int_eq(mkdirat(outside, "root", 0700), 0);
    root = openat(outside, "root", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    limits = (bc_unpack_limits){.bytes = 9, .entries = 10};
    out.len = 0;
    entries = 0;
    folder("home", 0755);
    file("a", "12345", 0);
    file("b", "12345", 0);
    refused(BARCHAN_ELIMIT);
}
END_TEST

/* Times that no calendar has are kept as the file system can. */
START_TEST(odd_times)
{
    static const int64_t seconds[] = {INT64_MIN, -1, 0, INT64_MAX};
    barchan_error err = {0};
    folder("home", 0xFFFFFFFFu);
    for (size_t i = 0; i < 4; i++) {
        char name[2] = {(char)('a' + i), '\0'};
        bc_wire_put_u32(&out, BC_PACK_FILE);
        bc_wire_put_u32(&out, 0xFFFFFFFFu);
        put_time(seconds[i], 999999999);
        bc_wire_put_u64(&out, 0);
        bc_wire_put_u32(&out, 0);
        put_name(name);
        bc_wire_put_u32(&out, 0);
        entries++;
    }
    leave();
    done();
    struct stat st;
    ck_assert_msg(unpack(100, &err) == 0, "%s", err.message);
    ck_assert_int_eq(fstatat(root, "home/a", &st, 0), 0);
    ck_assert_uint_eq(st.st_mode, S_IFREG | 0777);
}
END_TEST

/* More than a second has; among them what utimensat takes for "now", and for "leave it". */
START_TEST(odd_nanoseconds)
{
    static const uint32_t odd[] = {1000000000, UTIME_NOW, UTIME_OMIT, UINT32_MAX};
    folder("home", 0755);
    bc_wire_put_u32(&out, BC_PACK_LEAVE);
    put_time(1000000000, odd[_i]);
    done();
    refused(BARCHAN_EPROTOCOL);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("unpack");
    TCase *tc = tcase_create("all");
    tcase_set_timeout(tc, SUITE_TIMEOUT_SECONDS);
    tcase_add_checked_fixture(tc, begin_tree, end_tree);
    tcase_add_test(tc, a_tree);
    tcase_add_loop_test(tc, names_of_folders, 0, BAD_NAMES);
    tcase_add_loop_test(tc, names_of_files, 0, BAD_NAMES);
    tcase_add_loop_test(tc, further_names, 0, BAD_NAMES);
    tcase_add_test(tc, places);
    tcase_add_test(tc, names_twice);
    tcase_add_loop_test(tc, sizes, 0, REASONS);
    tcase_add_test(tc, long_names);
    tcase_add_test(tc, cut_anywhere);
    tcase_add_test(tc, caps);
    tcase_add_test(tc, odd_times);
    tcase_add_loop_test(tc, odd_nanoseconds, 0, 4);
    suite_add_tcase(suite, tc);
    return suite_end(suite);
}
