#include "files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>
#include <stdio.h>
#include <stdlib.h>

/* Of 1000: before the programs of the host, after what was marked as the first to go. */
#define OOM_SCORE 800

static int write_to(const char *path, int flags, const char *text)
{
    int fd = open(path, flags | O_WRONLY | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd < 0) return -1;
    size_t len = strlen(text);
    ssize_t n = len == 0 ? 0 : write(fd, text, len);
    int os_error = n < 0 ? errno : EIO;
    close(fd);
    errno = os_error;
    return n == (ssize_t)len ? 0 : -1;
}

int write_file(const char *path, const char *text)
{
    return write_to(path, 0, text);
}

int create_file(const char *path, const char *text)
{
    return write_to(path, O_CREAT | O_EXCL, text);
}

int read_file(const char *path, char *text, size_t cap)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return -1;
    ssize_t n = read(fd, text, cap - 1);
    int os_error = errno;
    close(fd);
    errno = os_error;
    if (n < 0) return -1;
    text[n] = '\0';
    if (n > 0 && text[n - 1] == '\n') text[n - 1] = '\0';
    return 0;
}

int raise_oom_score(const char *process)
{
    char path[64], value[16], *end;
    snprintf(path, sizeof path, "/proc/%s/oom_score_adj", process);
    if (read_file(path, value, sizeof value) < 0) return -1;
    if (strtol(value, &end, 10) >= OOM_SCORE) return write_file(path, value);
    snprintf(value, sizeof value, "%d", OOM_SCORE);
    return write_file(path, value);
}

int copy_file(const char *from, const char *to, size_t max)
{
    int in = open(from, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (in < 0) return errno == ENOENT || errno == EACCES ? 0 : -1;
    struct stat st;
    int out = -1, rc = -1;
    if (fstat(in, &st) < 0 || !S_ISREG(st.st_mode)) {
        rc = 0;
        goto end;
    }
    out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (out < 0) goto end;
    char chunk[16384];
    size_t total = 0;
    ssize_t n;
    while ((n = read(in, chunk, sizeof chunk)) > 0 && total < max) {
        if (write(out, chunk, (size_t)n) != n) goto end;
        total += (size_t)n;
    }
    rc = n < 0 ? -1 : 0;
end:;
    int os_error = errno;
    close(in);
    if (out >= 0) close(out);
    errno = os_error;
    return rc;
}

int make_dirs(const char *path)
{
    char part[PATH_MAX];
    size_t len = strlen(path);
    if (len >= sizeof part) {
        errno = ENAMETOOLONG;
        return -1;
    }
    for (size_t i = 1; i <= len; i++) {
        if (path[i] != '/' && path[i] != '\0') continue;
        memcpy(part, path, i);
        part[i] = '\0';
        if (mkdir(part, 0755) < 0 && errno != EEXIST) return -1;
    }
    return 0;
}

int clone_tree(const char *path)
{
    return open_tree(AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
}

int attach_tree(int fd, const char *path)
{
    int rc = move_mount(fd, "", AT_FDCWD, path, MOVE_MOUNT_F_EMPTY_PATH);
    int os_error = errno;
    close(fd);
    errno = os_error;
    return rc;
}

int protect_tree(const char *path, int devices)
{
    struct mount_attr attr = {
        .attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | (devices ? 0 : MOUNT_ATTR_NODEV),
        .propagation = MS_PRIVATE,
    };
    return mount_setattr(AT_FDCWD, path, AT_RECURSIVE, &attr, sizeof attr);
}
