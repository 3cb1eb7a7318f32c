/* The registry of id ranges at its narrowest moments: between a lock file's opening and its lock.
 * In a /run of its own, so as root only. */
#include <check.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "guest/launcher.h"
#include "suite.h"

#define RANGE "/run/barchan/ids/7"

static void (*meanwhile)(void);

/* The library's, with a moment before it in which others do something. */
int flock(int fd, int operation)
{
    void (*now)(void) = meanwhile;
    meanwhile = NULL;
    if (now != NULL) now();
    return (int)syscall(SYS_flock, fd, operation);
}

static int lock_of_range(void)
{
    int fd = open(RANGE, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(flock(fd, LOCK_EX | LOCK_NB), 0);
    return fd;
}

static int holder = -1;

/* One launcher gives the range back, the next takes it. */
static void change_hands(void)
{
    ck_assert_int_eq(unlink(RANGE), 0);
    if (holder >= 0) close(holder);
    holder = lock_of_range();
}

static void own_run(void)
{
    ck_assert_int_eq(unshare(CLONE_NEWNS), 0);
    ck_assert_int_eq(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
    ck_assert_int_eq(mount("tmpfs", "/run", "tmpfs", 0, "mode=755"), 0);
    ck_assert_int_eq(mkdir("/run/barchan", 0755), 0);
    ck_assert_int_eq(mkdir("/run/barchan/ids", 0700), 0);
}

static void open_registry(struct world *world)
{
    struct failure why = {0};
    ck_assert_msg(slots_open(world, &why) == 0, "%s", why.message);
}

START_TEST(what_a_killed_launcher_left)
{
    static struct world world;
    int fd = open(RANGE, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    ck_assert(fd >= 0 && close(fd) == 0);
    open_registry(&world);
    ck_assert_int_eq(access(RANGE, F_OK), -1);
}
END_TEST

START_TEST(a_range_that_changes_hands)
{
    static struct world world;
    struct stat held, found;
    holder = _i == 0 ? -1 : lock_of_range(); /* 0: a killed launcher's file */
    if (_i == 0) {
        int fd = open(RANGE, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        ck_assert(fd >= 0 && close(fd) == 0);
    }
    meanwhile = change_hands;
    open_registry(&world);
    ck_assert_ptr_null((void *)meanwhile);
    ck_assert_int_eq(fstat(holder, &held), 0);
    ck_assert_msg(stat(RANGE, &found) == 0, "the lock of its new holder was removed");
    ck_assert_uint_eq(found.st_ino, held.st_ino);
    close(holder);
}
END_TEST

int main(void)
{
    if (geteuid() != 0) {
        puts("SKIP slots: only root has a registry of ids");
        return 77;
    }
    Suite *suite = suite_create("slots");
    TCase *tcase = tcase_create("slots");
    tcase_add_checked_fixture(tcase, own_run, NULL);
    tcase_add_test(tcase, what_a_killed_launcher_left);
    tcase_add_loop_test(tcase, a_range_that_changes_hands, 0, 2);
    suite_add_tcase(suite, tcase);
    return suite_end(suite);
}
