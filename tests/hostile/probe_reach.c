/* What is reached by a way around: descriptors and processes that lead to other namespaces, a file
 * opened again with other rights, a program that would run as its owner, everything that a walk
 * finds. See probe.h. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probe.h"

/* ---- other namespaces ---- */

static int is_pid(const char *name)
{
    return name[strspn(name, "0123456789")] == '\0';
}

/* By each file of each process that is seen; the first that can be entered is enough. */
static int namespace_of_anyone(void)
{
    static const char *const kinds[] = {"mnt", "net", "uts", "ipc", "pid", "cgroup", "user"};
    DIR *proc = opendir("/proc");
    int why = -ENOENT;
    char path[300];
    for (struct dirent *entry; proc != NULL && (entry = readdir(proc)) != NULL;) {
        if (!is_pid(entry->d_name)) continue;
        for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
            snprintf(path, sizeof path, "/proc/%s/ns/%s", entry->d_name, kinds[i]);
            int fd = open(path, O_RDONLY | O_CLOEXEC);
            if (fd < 0) continue;
            why = answer(setns(fd, 0));
            close(fd);
            if (why == 0) return 0;
        }
    }
    return why;
}

static int namespace_by_pidfd(void)
{
    int fd = (int)syscall(SYS_pidfd_open, getppid(), 0);
    return fd < 0 ? -errno : answer(setns(fd, CLONE_NEWUTS | CLONE_NEWIPC));
}

static int namespace_received(void)
{
    int pair[2], fd = open("/proc/self/ns/ipc", O_RDONLY | O_CLOEXEC);
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    char byte = 0;
    struct iovec iov = {.iov_base = &byte, .iov_len = 1};
    struct msghdr msg = {.msg_iov = &iov,
                         .msg_iovlen = 1,
                         .msg_control = control.bytes,
                         .msg_controllen = sizeof control.bytes};
    if (fd < 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0) return -errno;
    if (send_descriptors(pair[0], &fd, 1) < 0 || recvmsg(pair[1], &msg, 0) < 0) return -errno;
    memcpy(&fd, CMSG_DATA(&control.head), sizeof fd);
    return answer(setns(fd, 0));
}

/* ---- files ---- */

/* A program of the machine, held by its name only, opened anew for writing. */
static int program_opened_again(void)
{
    char path[64];
    int fd = open("/usr/bin/env", O_PATH | O_CLOEXEC);
    if (fd < 0) return -errno;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return can_open(path, O_RDWR);
}

static int program_linked(void)
{
    int fd = open("/usr/bin/env", O_RDONLY | O_CLOEXEC);
    char from[64];
    snprintf(from, sizeof from, "/proc/self/fd/%d", fd);
    int rc = answer(linkat(AT_FDCWD, from, AT_FDCWD, "/usr/probe-link", AT_SYMLINK_FOLLOW));
    unlink("/usr/probe-link");
    return rc;
}

/* A file that cannot be removed would stay when everything else goes. */
static int file_for_ever(void)
{
    char name[] = "/tmp/probe-ever-XXXXXX";
    int fd = mkstemp(name), flags = FS_IMMUTABLE_FL;
    if (fd < 0) return -errno;
    int rc = answer(ioctl(fd, FS_IOC_SETFLAGS, &flags));
    flags = 0;
    if (rc == 0) ioctl(fd, FS_IOC_SETFLAGS, &flags);
    unlink(name);
    return rc;
}

/* A format that the kernel would start programs of its own for. */
static int binary_format(void)
{
    mount("b", "/tmp", "binfmt_misc", 0, NULL);
    return can_open("/tmp/register", O_WRONLY);
}

/* A program that is in no folder: it runs like any other. */
static int fine_memfd_program(void)
{
    static const char *const argv[] = {"true", NULL};
    char bytes[1 << 16];
    int from = open("/usr/bin/true", O_RDONLY | O_CLOEXEC), to = memfd_create("true", MFD_CLOEXEC);
    ssize_t len;
    while ((len = read(from, bytes, sizeof bytes)) > 0) {
        if (write(to, bytes, (size_t)len) != len) return -EIO;
    }
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        syscall(SYS_execveat, to, "", argv, NULL, AT_EMPTY_PATH);
        _exit(1);
    }
    waitpid(pid, &status, 0);
    return status == 0 ? 0 : -EIO;
}

/* The effective user of a process that runs su(1), by its own account; -1: it does not yet. */
static int user_of_su(pid_t pid)
{
    char path[64], line[256] = "";
    int user = -1;
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *file = fopen(path, "re");
    if (file == NULL) return -1;
    int is_su = fgets(line, sizeof line, file) != NULL && strcmp(line, "Name:\tsu\n") == 0;
    while (is_su && fgets(line, sizeof line, file) != NULL) {
        if (sscanf(line, "Uid: %*d %d", &user) == 1) break;
    }
    fclose(file);
    return user;
}

/* su(1) belongs to root and would run as root; it waits for a password meanwhile. */
static int program_of_root(void)
{
    int fds[2], user = -1;
    if (pipe(fds) < 0) return -errno;
    pid_t pid = fork();
    if (pid == 0) {
        if (getuid() == 0 && setresuid(1000, 1000, 1000) < 0) _exit(126);
        dup2(fds[0], 0);
        close(fds[1]);
        int null_fd = open("/dev/null", O_WRONLY);
        dup2(null_fd, 1);
        dup2(null_fd, 2);
        execl("/usr/bin/su", "su", "root", (char *)NULL);
        _exit(127);
    }
    for (int i = 0; i < 100 && user != 0; i++) {
        usleep(10000);
        user = user_of_su(pid);
    }
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    return user == 0 ? 0 : -EPERM;
}

/* ---- everything that can be walked to ---- */

struct wanted {
    unsigned long long dev, ino;
    unsigned left; /* names that are still looked at */
};

static int is_wanted(struct wanted *wanted, const char *path)
{
    struct stat st;
    if (wanted->left > 0) wanted->left--;
    return stat(path, &st) == 0 && st.st_dev == wanted->dev && st.st_ino == wanted->ino;
}

static int walk(struct wanted *wanted, const char *dir, int depth)
{
    char path[PATH_MAX];
    int found = 0;
    DIR *d = opendir(dir);
    for (struct dirent *e; d != NULL && !found && wanted->left > 0 && (e = readdir(d)) != NULL;) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
        int len = snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
        if (len >= (int)sizeof path) continue;
        found = is_wanted(wanted, path) ||
                (e->d_type == DT_DIR && depth > 0 && walk(wanted, path, depth - 1));
    }
    if (d != NULL) closedir(d);
    return found;
}

/* The canary, by any name: below the root, and by what /proc has of each process. */
static int census(void)
{
    struct wanted wanted = {.dev = strtoull(parameter("dev"), NULL, 10),
                            .ino = strtoull(parameter("ino"), NULL, 10),
                            .left = 1000000};
    static const char *const first[] = {"/tmp", "/dev", "/home", "/workspace", "/etc", "/run"};
    alarm(60);
    for (size_t i = 0; i < sizeof first / sizeof *first; i++) {
        if (walk(&wanted, first[i], 16)) return 0;
    }
    return walk(&wanted, "", 16) ? 0 : wanted.left == 0 ? -ETIME : -ENOENT;
}

static int others_descriptors(void)
{
    struct wanted wanted = {.dev = strtoull(parameter("dev"), NULL, 10),
                            .ino = strtoull(parameter("ino"), NULL, 10),
                            .left = 1000000};
    static const char *const ways[] = {"root", "cwd", "fd", "map_files"};
    DIR *proc = opendir("/proc");
    char path[512];
    for (struct dirent *e; proc != NULL && (e = readdir(proc)) != NULL;) {
        if (!is_pid(e->d_name)) continue;
        for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
            snprintf(path, sizeof path, "/proc/%s/%s", e->d_name, ways[i]);
            if (i < 2) strcat(path, parameter("file"));
            if (i < 2 ? is_wanted(&wanted, path) : walk(&wanted, path, 0)) return 0;
        }
    }
    return -ENOENT;
}

const struct probe probes_reach[] = {
    PROBE(namespace_of_anyone, DENIED), PROBE(namespace_by_pidfd, DENIED),
    PROBE(namespace_received, DENIED),  PROBE(program_opened_again, DENIED),
    PROBE(program_linked, DENIED),      PROBE(file_for_ever, DENIED),
    PROBE(program_of_root, DENIED),     PROBE(census, DENIED),
    PROBE(others_descriptors, DENIED),  PROBE(binary_format, DENIED),
    PROBE(fine_memfd_program, WORKS),   {NULL, NULL, DENIED},
};
