#include "guest_image.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
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

/* A file in memory counts against RLIMIT_FSIZE, whose signal would end the host: it is held back
 * and taken, as long as the write lasts. 0, or the system error. */
static int write_image(int fd)
{
    sigset_t signal, before, pending;
    sigemptyset(&signal);
    sigaddset(&signal, SIGXFSZ);
    sigpending(&pending);
    pthread_sigmask(SIG_BLOCK, &signal, &before);
    size_t size = bc_guest_image_size();
    int os_error = 0;
    for (size_t at = 0; at < size && os_error == 0;) {
        ssize_t n = write(fd, bc_guest_image + at, size - at);
        if (n >= 0) {
            at += (size_t)n;
        } else if (errno != EINTR) {
            os_error = errno;
        }
    }
    const struct timespec none = {0};
    if (os_error == EFBIG && !sigismember(&pending, SIGXFSZ)) sigtimedwait(&signal, NULL, &none);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return os_error;
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
    int os_error = write_image(fd);
    if (os_error == EFBIG) {
        return bc_error_set_os(err, os_error,
                               "write the guest program to memory (the limit on file sizes, "
                               "ulimit -f, is too low; or install the program and set guest_path)");
    }
    if (os_error != 0) return bc_error_set_os(err, os_error, "write the guest program");
    if (fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0) {
        return bc_error_set_os(err, errno, "seal the guest program");
    }
    return steal_fd(&fd);
}

int bc_guest_image_open(const char *path, barchan_error *err)
{
    return path != NULL ? open_installed(path, err) : open_in_memory(err);
}
