/*
 * The hostile program: tries one forbidden thing after the other and says what the kernel
 * answered, one line each: "name ok", "name EPERM", "name signal 31".
 *
 *     probe run NAME=VALUE…      as it stands, inside a sandbox
 *     probe oracle NAME=VALUE…   outside: first takes the rights that a sandbox takes away
 *     probe storm SECONDS SEED   random calls; probe exchange A B, probe churn DIR: see
 * probe_storm.c probe self WHAT            what it may do to itself; probe fill KIND: see
 * probe_self.c
 *
 * "ok" means that the action had its effect, or got as far as only a missing prerequisite of the
 * test itself (a terminal, a device) stops it. Static, libc only: it runs in any sandbox.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "probe.h"

static char **parameters;

const char *parameter(const char *name)
{
    size_t len = strlen(name);
    for (char **p = parameters; *p != NULL; p++) {
        if (strncmp(*p, name, len) == 0 && (*p)[len] == '=') return *p + len + 1;
    }
    return "";
}

/* 0 or -errno, of a system call's return value. */
int answer(long rc)
{
    return rc < 0 ? -errno : 0;
}

/* The same, where this error also shows that the call was let through. */
int answer_or(long rc, int fine)
{
    return rc < 0 && errno != fine ? -errno : 0;
}

int can_open(const char *path, int flags)
{
    int fd = open(path, flags | O_CLOEXEC | O_NONBLOCK);
    int result = answer(fd);
    if (fd >= 0) close(fd);
    return result;
}

/* Whether there is something to read. */
int can_read(const char *path)
{
    char bytes[64];
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return -errno;
    ssize_t n = read(fd, bytes, sizeof bytes);
    int result = n < 0 ? -errno : n == 0 ? -ENODATA : 0;
    close(fd);
    return result;
}

long send_descriptors(int socket, const int *fds, size_t count)
{
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(sizeof(int) * MOST_SENT)];
    } control = {.head = {.cmsg_level = SOL_SOCKET,
                          .cmsg_type = SCM_RIGHTS,
                          .cmsg_len = CMSG_LEN(sizeof(int) * count)}};
    char byte = 0;
    struct iovec iov = {.iov_base = &byte, .iov_len = 1};
    struct msghdr msg = {.msg_iov = &iov,
                         .msg_iovlen = 1,
                         .msg_control = control.bytes,
                         .msg_controllen = CMSG_SPACE(sizeof(int) * count)};
    memcpy(CMSG_DATA(&control.head), fds, sizeof(int) * count);
    return sendmsg(socket, &msg, 0);
}

static void write_map(const char *path, const char *id)
{
    char text[64];
    int fd = open(path, O_WRONLY);
    int n = snprintf(text, sizeof text, "%s", id);
    if (fd >= 0 && write(fd, text, (size_t)n) < 0) perror(path);
    if (fd >= 0) close(fd);
}

/* Outside: all rights within namespaces of its own, for each probe anew, so that what succeeds
 * changes nothing. */
static void take_rights(void)
{
    unsigned uid = getuid(), gid = getgid();
    if (uid != 0) {
        unshare(CLONE_NEWUSER);
        char map[32];
        write_map("/proc/self/setgroups", "deny");
        snprintf(map, sizeof map, "0 %u 1", uid);
        write_map("/proc/self/uid_map", map);
        snprintf(map, sizeof map, "0 %u 1", gid);
        write_map("/proc/self/gid_map", map);
    }
    unshare(CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC);
    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
}

static void report(const struct probe *probe, int oracle)
{
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        alarm(5);
        if (oracle) take_rights();
        int result = probe->try();
        _exit(result == 0 ? 0 : -result <= 254 ? -result : 255);
    }
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {}
    if (WIFSIGNALED(status)) {
        printf("%s signal %d\n", probe->name, WTERMSIG(status));
    } else if (WEXITSTATUS(status) == 0) {
        printf("%s ok\n", probe->name);
    } else {
        printf("%s %s\n", probe->name, strerrorname_np(WEXITSTATUS(status)));
    }
    fflush(stdout);
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "storm") == 0) return storm(argv[2], argv[3]);
    if (argc == 4 && strcmp(argv[1], "exchange") == 0) return exchange(argv[2], argv[3]);
    if (argc == 3 && strcmp(argv[1], "churn") == 0) return churn(argv[2]);
    if (argc == 3 && strcmp(argv[1], "self") == 0) return self(argv[2]);
    if (argc == 3 && strcmp(argv[1], "fill") == 0) return fill_up(argv[2]);
    if (argc < 2) return 2;
    parameters = argv + 2;
    int oracle = strcmp(argv[1], "oracle") == 0;
    const struct probe *const groups[] = {probes_files, probes_kernel, probes_reach, probes_world};
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) {
        for (const struct probe *probe = groups[i]; probe->name != NULL; probe++) {
            report(probe, oracle);
        }
    }
    return 0;
}
