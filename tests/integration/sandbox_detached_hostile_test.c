/* Those who should not reach a detached sandbox, and a client that says anything at all: the real
 * holder, the real guest. tests/unit/test_hold.c has each breach by itself. */
#include "detached_support.h"

#include <errno.h>
#include <sched.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define OTHER_USER 65533

/* A connection of one's own making; -1: errno. */
static int dial(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char path[320];
    snprintf(path, sizeof path, "%s/%s.sock", held_directory, holder.id);
    ck_assert_uint_lt(strlen(path), sizeof address.sun_path);
    memcpy(address.sun_path, path, strlen(path));
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0) return fd;
    int os_error = errno;
    close(fd);
    errno = os_error;
    return -1;
}

static void put_u32(unsigned char *at, uint32_t value)
{
    for (int i = 0; i < 4; i++) {
        at[i] = (unsigned char)(value >> (8 * i));
    }
}

static const unsigned char hello[20] = {8, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1};

/* How many bytes the greeting is answered with; 0: it is hung up. */
static long greeted(int fd)
{
    char bytes[4096];
    if (send(fd, hello, sizeof hello, MSG_NOSIGNAL) < 0) return 0;
    return recv(fd, bytes, sizeof bytes, 0);
}

/* In a process of another user: 0 connected and answered, 1 refused by the system, 2 hung up. */
static int as_other_user(void)
{
    int status;
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        if (setgid(OTHER_USER) < 0 || setuid(OTHER_USER) < 0) _exit(9);
        int fd = dial();
        if (fd < 0) _exit(errno == EACCES ? 1 : 8);
        _exit(greeted(fd) > 0 ? 0 : 2);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFEXITED(status));
    return WEXITSTATUS(status);
}

START_TEST(other_users)
{
    char path[320];
    if (!is_root() && skip("only root can be somebody else")) return;
    int fd = dial();
    ck_assert_int_gt(greeted(fd), 0); /* the oracle: this user's own is answered */
    close(fd);
    ck_assert_int_eq(as_other_user(), 1);
    /* Were the rights of the names lost, the holder would still look at who it is. */
    snprintf(path, sizeof path, "%s/%s.sock", held_directory, holder.id);
    ck_assert_int_eq(chmod(held_directory, 0755), 0);
    ck_assert_int_eq(as_other_user(), 1);
    ck_assert_int_eq(chmod(path, 0666), 0);
    ck_assert_int_eq(as_other_user(), 2);
    ck_assert_int_eq(chmod(held_directory, 0700), 0);
    sh_says("echo mine", "mine\n");
}
END_TEST

/* As a command of an ordinary user's sandbox is: of the same user, in a namespace of its own. */
static int from_another_namespace(void)
{
    int status;
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        if (unshare(CLONE_NEWUSER) < 0) _exit(9);
        int fd = dial();
        if (fd < 0) _exit(1);
        _exit(greeted(fd) > 0 ? 0 : 2);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFEXITED(status));
    return WEXITSTATUS(status);
}

START_TEST(other_namespaces)
{
    int fd = dial();
    ck_assert_int_gt(greeted(fd), 0); /* the oracle */
    close(fd);
    ck_assert_int_gt(from_another_namespace(), 0);
    ck_assert_int_lt(from_another_namespace(), 9);
}
END_TEST

/* Where the sockets are, or may come to be, is shown to no sandbox, whole or in part. */
START_TEST(their_place_is_no_mount)
{
    char path[320];
    snprintf(path, sizeof path, "%s", held_directory);
    for (char *slash; (slash = strrchr(path, '/')) != NULL && slash != path; *slash = '\0') {
        const barchan_mount mounts[] = {{path, "/mnt/x", BARCHAN_MOUNT_READ_ONLY}};
        barchan_sandbox *other;
        barchan_error err = {0};
        ck_assert_int_eq(
            barchan_sandbox_create(&other, rt, PROFILE(.mounts = mounts, .mount_count = 1), &err),
            BARCHAN_EINVAL);
        ck_assert_msg(strstr(err.message, "the sockets of detached sandboxes") != NULL, "%s: %s",
                      path, err.message);
    }
}
END_TEST

START_TEST(directories_of_others)
{
    barchan_detached_list list;
    barchan_error err = {0};
    char path[320];
    if (is_root()) return; /* its place is fixed, and root's */
    snprintf(path, sizeof path, "%s", held_directory);
    ck_assert_int_eq(chmod(path, 0777), 0); /* others could have put something there */
    ck_assert_int_eq(barchan_detached_ids(rt, &list, &err), BARCHAN_EPERMISSION);
    ck_assert_ptr_nonnull(strstr(err.message, "XDG_RUNTIME_DIR"));
    ck_assert_int_eq(chmod(path, 0700), 0);
    ck_assert(is_listed(holder.id));
    setenv("XDG_RUNTIME_DIR", "/no/such/folder", 1);
    ck_assert_int_eq(barchan_detached_ids(rt, &list, &err), BARCHAN_ENOTFOUND);
    *strstr(path, "/barchan/sandboxes") = '\0';
    setenv("XDG_RUNTIME_DIR", path, 1);
}
END_TEST

/* A sandbox cannot be given the way to another. */
START_TEST(its_socket_is_no_mount)
{
    barchan_sandbox *other;
    barchan_error err = {0};
    const barchan_mount mount = {.source = held_directory, .target = "/mnt/held"};
    ck_assert_int_lt(
        barchan_sandbox_create(&other, rt, PROFILE(.mounts = &mount, .mount_count = 1), &err), 0);
    ck_assert_ptr_null(other);
}
END_TEST

START_TEST(a_silent_connection)
{
    int fd = dial();
    struct pollfd pfd = {.fd = fd, .events = POLLIN};
    char byte;
    ck_assert_int_eq(poll(&pfd, 1, 20000), 1); /* after 5 s */
    ck_assert_int_eq(recv(fd, &byte, 1, 0), 0);
    close(fd);
    sh_says("echo on", "on\n");
}
END_TEST

/* Frames of all types, mostly well-formed heads with payloads of any bytes. Never the end of the
 * sandbox, which is a client's right. */
static void rave(int fd, unsigned *seed)
{
    enum { ASK = 9, TERMINATE = 33 };
    static const unsigned char questions[] = {0, 1, 3, 4, 5, 33}; /* but for less lease */
    unsigned char bytes[600];
    for (int i = 0; i < 60; i++) {
        uint32_t type = (uint32_t)rand_r(seed) % 11, len = (uint32_t)rand_r(seed) % 64;
        if (rand_r(seed) % 40 == 0) type = (uint32_t)rand_r(seed) % 256;
        if (type == TERMINATE) continue;
        put_u32(bytes, rand_r(seed) % 50 == 0 ? (uint32_t)rand_r(seed) : len);
        put_u32(bytes + 4, type);
        put_u32(bytes + 8, rand_r(seed) % 3 == 0 ? (uint32_t)i : (uint32_t)rand_r(seed) % 4);
        for (uint32_t at = 0; at < len; at++) {
            bytes[12 + at] = (unsigned char)(rand_r(seed) % 3 == 0 ? rand_r(seed) : 0);
        }
        if (type == ASK && len > 0) bytes[12] = questions[(size_t)rand_r(seed) % sizeof questions];
        if (send(fd, bytes, 12 + len, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) return;
    }
}

START_TEST(a_client_that_raves)
{
    int rounds = getenv("BARCHAN_LONG") != NULL ? 20000 : 400;
    unsigned seed = (unsigned)time(NULL);
    printf("%d rounds, seed %u\n", rounds, seed);
    for (int i = 0; i < rounds; i++) {
        int fd = dial();
        ck_assert_int_ge(fd, 0);
        if (rand_r(&seed) % 10 > 0) send(fd, hello, sizeof hello, MSG_NOSIGNAL);
        rave(fd, &seed);
        close(fd);
        if (i % 50 > 0) continue;
        barchan_error err = {0};
        barchan_sandbox_resume(sbx, NULL); /* it may have paused it, which is allowed */
        ck_assert_int_eq(status_of(sbx).state, BARCHAN_SANDBOX_READY);
        barchan_sandbox_extend(sbx, 600000, &err);
        sh_says("echo on", "on\n");
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sandbox_detached_hostile");
    const TTest *const tests[] = {other_users,
                                  other_namespaces,
                                  their_place_is_no_mount,
                                  directories_of_others,
                                  its_socket_is_no_mount,
                                  a_silent_connection,
                                  a_client_that_raves,
                                  NULL};
    add_tests(suite, "hostile", setup_connected, teardown_connected, tests);
    return run_suite(suite);
}
