#include "host_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

int bc_host_file_create(const char *path, barchan_error *err)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0) return bc_error_set_os(err, errno, "create '%s'", path);
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
