#include "guest_image.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/cleanup.h"

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U /* Linux 6.3 */
#endif

/* Whether the file holds exactly the embedded bytes. */
static int is_copy(int fd)
{
    struct stat st;
    size_t size = bc_guest_image_size(), at = 0;
    char chunk[16384];
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || (size_t)st.st_size != size) return 0;
    while (at < size) {
        ssize_t n = pread(fd, chunk, sizeof chunk, (off_t)at);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0 || at + (size_t)n > size) return 0;
        if (memcmp(chunk, bc_guest_image + at, (size_t)n) != 0) return 0;
        at += (size_t)n;
    }
    return 1;
}

static int open_installed(const char *path, barchan_error *err)
{
    cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return bc_error_set_os(err, errno, "open the guest program %s", path);
    if (!is_copy(fd)) {
        return bc_error_set(err, BARCHAN_EINVAL,
                            "the guest program %s is not the one of this library; install them "
                            "together, or leave guest_path unset to use the embedded one",
                            path);
    }
    return steal_fd(&fd);
}

/* Sealed, so that nothing can change the program while it runs (CVE-2019-5736). */
static int open_in_memory(barchan_error *err)
{
    int flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
    cleanup_close int fd = memfd_create("barchan-guest", flags | MFD_EXEC);
    if (fd < 0 && errno == EINVAL) fd = memfd_create("barchan-guest", flags);
    if (fd < 0) {
        return bc_error_set_os(err, errno,
                               "create a file in memory for the guest program (with "
                               "vm.memfd_noexec=2, install the program and set guest_path)");
    }
    size_t size = bc_guest_image_size();
    for (size_t at = 0; at < size;) {
        ssize_t n = write(fd, bc_guest_image + at, size - at);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return bc_error_set_os(err, errno, "write the guest program");
        at += (size_t)n;
    }
    if (fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0) {
        return bc_error_set_os(err, errno, "seal the guest program");
    }
    return steal_fd(&fd);
}

int bc_guest_image_open(const char *path, barchan_error *err)
{
    return path != NULL ? open_installed(path, err) : open_in_memory(err);
}
