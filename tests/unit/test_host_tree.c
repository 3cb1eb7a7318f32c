/* Names below a folder of the host, with openat2 and without: no link is followed, nothing outside
 * is found. */
#include "sandbox/host_tree.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "suite.h"

static char dir[64], path[128];
static bc_host_tree tree;

static const char *at(const char *name)
{
    snprintf(path, sizeof path, "%s/%s", dir, name);
    return path;
}

static void set_up(void)
{
    strcpy(dir, "/tmp/barchan-tree-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    ck_assert_int_eq(mkdir(at("root"), 0755), 0);
    ck_assert_int_eq(mkdir(at("root/a"), 0755), 0);
    ck_assert_int_eq(mkdir(at("root/a/b"), 0755), 0);
    ck_assert_int_eq(mkdir(at("outside"), 0755), 0);
    ck_assert_int_eq(symlink("a", at("root/inner")), 0);
    ck_assert_int_eq(symlink("../outside", at("root/outer")), 0);
    ck_assert_int_eq(symlink("/", at("root/top")), 0);
    close(open(at("root/a/b/file"), O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
    close(open(at("outside/file"), O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
    ck_assert_int_eq(bc_host_tree_open(&tree, at("root")), 0);
}

static void tear_down(void)
{
    char command[100];
    bc_host_tree_close(&tree);
    snprintf(command, sizeof command, "rm -rf %s", dir);
    ck_assert_int_eq(system(command), 0);
}

static int look(const char *name)
{
    struct stat st;
    int missing;
    int rc = bc_host_tree_stat(&tree, name, &st, &missing);
    return rc == -ENOENT && missing ? -ENXIO : rc;
}

static int is_link_error(int rc)
{
    return rc == -ELOOP || rc == -ENOTDIR;
}

START_TEST(names)
{
    static const char *const odd[] = {"",     ".",      "..",   "/",
                                      "/etc", "a/",     "a//b", "./a",
                                      "a/.",  "a/../a", "../x", "a/b/../../../outside/file"};
    tree.no_openat2 = _i;
    ck_assert_int_eq(look("a"), 0);
    ck_assert_int_eq(look("a/b/file"), 0);
    ck_assert_int_eq(look("inner"), 0); /* the link itself */
    ck_assert_int_eq(look("none"), -ENOENT);
    ck_assert_int_eq(look("a/none"), -ENOENT);
    ck_assert_int_eq(look("a/none/x"), -ENXIO);
    ck_assert_int_eq(look("a/b/file/x"), -ENOTDIR);
    ck_assert(is_link_error(look("inner/b")));
    ck_assert(is_link_error(look("outer/file")));
    ck_assert(is_link_error(look("top/etc")));
    ck_assert(is_link_error(look("top/etc/passwd")));
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        ck_assert_msg(look(odd[i]) == -EINVAL, "%s", odd[i]);
    }
    char name[400];
    memset(name, 'x', 399);
    name[399] = '\0';
    ck_assert_int_eq(look(name), -ENAMETOOLONG);
    name[300] = '/';
    ck_assert_int_eq(look(name), -ENAMETOOLONG);
}
END_TEST

START_TEST(parents)
{
    const char *name = NULL;
    struct stat st, expected;
    tree.no_openat2 = _i;
    int fd = bc_host_tree_parent(&tree, "a/b/new", &name);
    ck_assert_int_ge(fd, 0);
    ck_assert_str_eq(name, "new");
    ck_assert_int_eq(fstat(fd, &st), 0);
    ck_assert_int_eq(stat(at("root/a/b"), &expected), 0);
    ck_assert_uint_eq(st.st_ino, expected.st_ino);
    close(fd);
    fd = bc_host_tree_parent(&tree, "new", &name);
    ck_assert_int_ge(fd, 0);
    close(fd);
}
END_TEST

START_TEST(trees)
{
    bc_host_tree other;
    ck_assert_int_eq(bc_host_tree_open(&other, at("root/a/..")), 0);
    ck_assert_int_eq(bc_host_tree_is_same(&tree, &other), 1);
    bc_host_tree_close(&other);
    ck_assert_int_eq(bc_host_tree_is_same(&tree, &other), 0);
    ck_assert_int_eq(bc_host_tree_open(&other, at("root/outer")), 0); /* the caller's own path */
    ck_assert_int_eq(bc_host_tree_is_same(&tree, &other), 0);
    bc_host_tree_close(&other);
    ck_assert_int_eq(bc_host_tree_open(&other, at("outside/file")), -ENOTDIR);
    ck_assert_int_eq(other.fd, -1);
    ck_assert_int_eq(bc_host_tree_open(&other, at("none")), -ENOENT);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("host_tree");
    TCase *tc = tcase_create("all");
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_loop_test(tc, names, 0, 2);
    tcase_add_loop_test(tc, parents, 0, 2);
    tcase_add_test(tc, trees);
    suite_add_tcase(suite, tc);
    return suite_end(suite);
}
