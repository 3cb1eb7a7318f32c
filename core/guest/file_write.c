/*
 * Writing is atomic: the bytes go to a file without a name, which takes the target's place when
 * it is complete. A worker that is killed half-way leaves nothing. Where there are no nameless
 * files, or no /proc, a temporary name is used and removed on the way out.
 */
#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

/* Of the fallback; removed by the handler of SIGTERM, which is how a cancel begins. */
static char temporary[PATH_MAX];

static void remove_temporary(int sig)
{
    (void)sig;
    unlink(temporary);
    _exit(1);
}

int file_make_parents(const char *path, struct file_result *result)
{
    char part[PATH_MAX];
    size_t len = strlen(path);
    for (size_t i = 1; i < len; i++) {
        if (path[i] != '/') continue;
        memcpy(part, path, i);
        part[i] = '\0';
        if (mkdir(part, 0755) < 0 && errno != EEXIST && errno != EROFS && errno != EACCES) {
            return file_fail_os(result, errno);
        }
    }
    return 0;
}

/* A name next to the target. */
static int make_name(const char *path, char *name)
{
    uint64_t random;
    const char *slash = strrchr(path, '/');
    int dir = slash == NULL ? 0 : (int)(slash - path) + 1;
    if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random) return EIO;
    int n = snprintf(name, PATH_MAX, "%.*s.barchan-%016llx", dir, path, (unsigned long long)random);
    return n >= PATH_MAX ? ENAMETOOLONG : 0;
}

static int open_nameless(const char *path)
{
    char dir[PATH_MAX];
    const char *slash = strrchr(path, '/');
    size_t len = slash == NULL ? 1 : slash == path ? 1 : (size_t)(slash - path);
    memcpy(dir, slash == NULL ? "." : path, len);
    dir[len] = '\0';
    return open(dir, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
}

static int open_target(const char *path, struct file_result *result)
{
    /* Giving it its name later goes through /proc. */
    int fd = access("/proc/self/fd", F_OK) == 0 ? open_nameless(path) : -1;
    if (fd >= 0) return fd;
    if (errno != ENOENT && errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL) {
        return file_fail_os(result, errno);
    }
    int os_error = make_name(path, temporary);
    if (os_error != 0) return file_fail_os(result, os_error);
    signal(SIGTERM, remove_temporary);
    fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    return fd < 0 ? file_fail_os(result, errno) : fd;
}

/* Gives the finished file its name, in the place of what is there. */
static int put_in_place(int fd, const char *path)
{
    if (temporary[0] == '\0') {
        char self[64];
        int os_error = make_name(path, temporary);
        if (os_error != 0) {
            errno = os_error;
            return -1;
        }
        snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
        signal(SIGTERM, remove_temporary);
        if (linkat(AT_FDCWD, self, AT_FDCWD, temporary, AT_SYMLINK_FOLLOW) < 0) return -1;
    }
    int rc = rename(temporary, path);
    int os_error = errno;
    if (rc < 0) unlink(temporary);
    errno = os_error;
    return rc;
}

static int copy_in(int fd, struct file_result *result)
{
    static char chunk[BC_FRAME_MAX_DATA];
    for (;;) {
        ssize_t n = read(FILE_IN_FD, chunk, sizeof chunk);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return file_fail_os(result, errno);
        if (n == 0) return 0;
        if (file_write_all(fd, chunk, (size_t)n) < 0) return file_fail_os(result, errno);
        result->bytes += (uint64_t)n;
    }
}

/* The mode of the new file: as asked; else that of the file it replaces; else 0644. A target
 * that is not a regular file is refused. */
static int choose_mode(const struct file_request *request, mode_t *mode, struct file_result *result)
{
    struct stat st;
    size_t len = strlen(request->path);
    if (request->path[len - 1] == '/') return file_fail_os(result, EISDIR);
    *mode = request->mode == 0 ? 0644 : (mode_t)(request->mode & 07777);
    if (lstat(request->path, &st) < 0) {
        return errno == ENOENT ? 0 : file_fail_os(result, errno);
    }
    if (!S_ISREG(st.st_mode)) return file_fail_type(result, st.st_mode);
    if (request->mode == 0) *mode = st.st_mode & 0777;
    return 0;
}

int file_write(const struct file_request *request, struct file_result *result)
{
    mode_t mode;
    if (file_make_parents(request->path, result) < 0) return -1;
    if (choose_mode(request, &mode, result) < 0) return -1;
    int fd = open_target(request->path, result);
    if (fd < 0) return -1;
    if (copy_in(fd, result) < 0) {
        if (temporary[0] != '\0') unlink(temporary);
        return -1;
    }
    if (fchmod(fd, mode) < 0 || put_in_place(fd, request->path) < 0) {
        int os_error = errno;
        if (temporary[0] != '\0') unlink(temporary);
        return file_fail_os(result, os_error);
    }
    result->size = result->bytes;
    return 0;
}

int file_append(const struct file_request *request, struct file_result *result)
{
    mode_t mode;
    struct stat st;
    if (file_make_parents(request->path, result) < 0) return -1;
    if (choose_mode(request, &mode, result) < 0) return -1;
    int fd =
        open(request->path,
             O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, mode);
    if (fd < 0) return file_fail_os(result, errno);
    if (fstat(fd, &st) < 0) return file_fail_os(result, errno);
    if (!S_ISREG(st.st_mode)) return file_fail_type(result, st.st_mode);
    if (copy_in(fd, result) < 0) return -1;
    result->size = (uint64_t)st.st_size + result->bytes;
    return 0;
}
