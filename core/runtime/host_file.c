#include "host_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/cleanup.h"

int bc_host_file_create_open(const char *path, barchan_error *err)
{
    const int flags = O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    int fd = open(path, flags, 0600);
    return fd < 0 ? bc_error_set_os(err, errno, "create '%s'", path) : fd;
}

int bc_host_file_create(const char *path, barchan_error *err)
{
    int fd = bc_host_file_create_open(path, err);
    if (fd < 0) return fd;
    close(fd);
    return 0;
}

int bc_host_file_check(const char *path, barchan_error *err)
{
    struct stat st;
    if (stat(path, &st) < 0) return bc_error_set_os(err, errno, "look at '%s'", path);
    if (!S_ISREG(st.st_mode)) {
        return bc_error_set(err, BARCHAN_ENOTREG, "'%s' is not a regular file", path);
    }
    return 0;
}

/* Where the last line that has an end ends; -1: errno. */
static off_t end_of_lines(int fd, off_t size)
{
    char bytes[4096];
    while (size > 0) {
        size_t len = size < (off_t)sizeof bytes ? (size_t)size : sizeof bytes;
        ssize_t n = pread(fd, bytes, len, size - (off_t)len);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return -1;
        while (n > 0 && bytes[n - 1] != '\n') {
            n--;
        }
        size -= (off_t)len;
        if (n > 0) return size + n;
    }
    return 0;
}

int bc_host_file_cut_line(const char *path, barchan_error *err)
{
    struct stat st;
    cleanup_close int fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0) return bc_error_set_os(err, errno, "open '%s'", path);
    if (!S_ISREG(st.st_mode)) {
        return bc_error_set(err, BARCHAN_ENOTREG, "'%s' is not a regular file", path);
    }
    off_t end = end_of_lines(fd, st.st_size);
    if (end < 0) return bc_error_set_os(err, errno, "read '%s'", path);
    if (end < st.st_size && ftruncate(fd, end) < 0) {
        return bc_error_set_os(err, errno, "shorten '%s'", path);
    }
    return 0;
}
