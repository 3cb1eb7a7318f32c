/* The second lock on writing, by itself: in a place that is writable otherwise, as whoever runs
 * this. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include "guest/landlock.h"
#include "suite.h"

static char dir[32];
static int listener;
static struct sockaddr_un abstract = {.sun_family = AF_UNIX};

static int make_file(void)
{
    int fd = open("open/new", O_CREAT | O_WRONLY, 0600);
    return fd < 0 ? -errno : close(fd);
}

static int make_file_elsewhere(void)
{
    int fd = open("closed/new", O_CREAT | O_WRONLY, 0600);
    return fd < 0 ? -errno : close(fd);
}

static int write_elsewhere(void)
{
    int fd = open("closed/file", O_WRONLY);
    return fd < 0 ? -errno : close(fd);
}

static int read_elsewhere(void)
{
    int fd = open("closed/file", O_RDONLY);
    return fd < 0 ? -errno : close(fd);
}

static int truncate_elsewhere(void)
{
    return truncate("closed/file", 0) < 0 ? -errno : 0;
}

static int remove_elsewhere(void)
{
    return unlink("closed/file") < 0 ? -errno : 0;
}

static int move_in(void)
{
    return rename("closed/file", "open/file") < 0 ? -errno : 0;
}

static int link_out(void)
{
    return link("open/mine", "closed/mine") < 0 ? -errno : 0;
}

static int move_inside(void)
{
    return rename("open/mine", "open/sub/mine") < 0 ? -errno : 0;
}

static int write_file_only(void)
{
    int fd = open("files/file", O_WRONLY | O_TRUNC);
    return fd < 0 ? -errno : close(fd);
}

static int make_in_files_only(void)
{
    return mkdir("files/new", 0700) < 0 ? -errno : 0;
}

static int call_out(void)
{
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(dir));
    return connect(fd, (struct sockaddr *)&abstract, len) < 0 ? -errno : close(fd);
}

static int signal_out(void)
{
    return kill(getppid(), 0) < 0 ? -errno : 0;
}

static int run(int (*action)(void), int confined)
{
    static const struct landlock_place places[] = {
        {"open", LANDLOCK_TREE}, {"files", LANDLOCK_FILES}, {"no-such-place", LANDLOCK_TREE}};
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        if (confined && (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
                         landlock_confine(landlock_version(), places, 3) < 0)) {
            _exit(255);
        }
        _exit(-action());
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void put(const char *path)
{
    int fd = open(path, O_CREAT | O_WRONLY, 0600);
    ck_assert_int_ge(fd, 0);
    close(fd);
}

static void setup(void)
{
    strcpy(dir, "/tmp/barchan-landlock-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    ck_assert_int_eq(chdir(dir), 0);
    ck_assert(mkdir("open", 0700) == 0 && mkdir("open/sub", 0700) == 0);
    ck_assert(mkdir("closed", 0700) == 0 && mkdir("files", 0700) == 0);
    put("closed/file"), put("open/mine"), put("files/file");
    strcpy(abstract.sun_path + 1, dir);
    listener = socket(AF_UNIX, SOCK_STREAM, 0);
    socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(dir));
    ck_assert_int_eq(bind(listener, (struct sockaddr *)&abstract, len), 0);
    ck_assert_int_eq(listen(listener, 5), 0);
}

static void teardown(void)
{
    char command[64];
    close(listener);
    ck_assert_int_eq(chdir("/"), 0);
    snprintf(command, sizeof command, "rm -rf %s", dir);
    ck_assert_int_eq(system(command), 0);
}

static const struct row {
    const char *name;
    int (*action)(void);
    int denied; /* 0: allowed under it, too */
    int since;  /* the version that it needs */
} rows[] = {
    {"make a file", make_file, 0, 1},
    {"move inside", move_inside, 0, 2},
    {"write to a file of files", write_file_only, 0, 1},
    {"read elsewhere", read_elsewhere, 0, 1},
    {"make a file elsewhere", make_file_elsewhere, EACCES, 1},
    {"write elsewhere", write_elsewhere, EACCES, 1},
    {"truncate elsewhere", truncate_elsewhere, EACCES, 3},
    {"remove elsewhere", remove_elsewhere, EACCES, 1},
    {"move in", move_in, EACCES, 1},
    {"link out", link_out, EACCES, 1},
    {"make in files", make_in_files_only, EACCES, 1},
    {"an abstract socket outside", call_out, EPERM, 6},
    {"a signal outside", signal_out, EPERM, 6},
};

START_TEST(each_row_and_its_oracle)
{
    const struct row *row = &rows[_i];
    int version = landlock_version();
    if (version < row->since) {
        printf("landlock: '%s' skipped: this kernel has version %d\n", row->name, version);
        return;
    }
    int confined = run(row->action, 1);
    ck_assert_msg(confined == row->denied, "%s: %s", row->name, strerror(confined));
    int outside = run(row->action, 0); /* the same without it works */
    ck_assert_msg(outside == 0 || !row->denied, "%s: no oracle: %s", row->name, strerror(outside));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("landlock");
    TCase *tc = tcase_create("rows");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, each_row_and_its_oracle, 0, (int)(sizeof rows / sizeof *rows));
    suite_add_tcase(suite, tc);
    return suite_end(suite);
}
