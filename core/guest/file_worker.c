/*
 * The worker: an ordinary process of the command's user, with three pipes. Whatever a hostile
 * tree does to it, it has no more rights than the commands themselves; a stuck one is killed.
 */
#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "launcher.h"

int file_fail_os(struct file_result *result, int os_error)
{
    result->os_error = (uint32_t)os_error;
    result->words = NULL;
    return -1;
}

int file_fail(struct file_result *result, uint32_t status, const char *words)
{
    result->status = status;
    result->words = words;
    return -1;
}

int file_fail_type(struct file_result *result, unsigned mode)
{
    switch (mode & S_IFMT) {
    case S_IFDIR: return file_fail(result, BC_WIRE_EISDIR, "it is a directory");
    case S_IFLNK: return file_fail(result, BC_WIRE_ELINK, "it is a symbolic link");
    case S_IFIFO: return file_fail(result, BC_WIRE_ENOTREG, "it is a FIFO, not a regular file");
    case S_IFSOCK: return file_fail(result, BC_WIRE_ENOTREG, "it is a socket, not a regular file");
    default: return file_fail(result, BC_WIRE_ENOTREG, "it is a device, not a regular file");
    }
}

int file_write_all(int fd, const void *data, size_t len)
{
    for (size_t at = 0; at < len;) {
        ssize_t n = write(fd, (const char *)data + at, len - at);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return -1;
        at += (size_t)n;
    }
    return 0;
}

void file_encode_result(bc_wire_writer *out, const struct file_result *result)
{
    const char *words = result->words;
    if (words == NULL) words = result->os_error == 0 ? "" : strerror((int)result->os_error);
    bc_wire_put_u32(out, result->status);
    bc_wire_put_u32(out, result->os_error);
    bc_wire_put_u64(out, result->bytes);
    bc_wire_put_u64(out, result->size);
    bc_wire_put_u32(out, result->truncated);
    bc_wire_put_string(out, words, strlen(words));
}

static int open_to_read(const struct file_request *request, struct file_result *result)
{
    struct stat st;
    /* Looked at before it is opened: opening a FIFO or device could wait or do something. */
    if (stat(request->path, &st) < 0) return file_fail_os(result, errno);
    if (!S_ISREG(st.st_mode)) return file_fail_type(result, st.st_mode);
    int fd = open(request->path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0) return file_fail_os(result, errno);
    /* And again: it may have been replaced meanwhile. */
    if (fstat(fd, &st) < 0) return file_fail_os(result, errno);
    if (!S_ISREG(st.st_mode)) return file_fail_type(result, st.st_mode);
    result->size = (uint64_t)st.st_size;
    if (request->offset > 0 && lseek(fd, (off_t)request->offset, SEEK_SET) < 0) {
        return file_fail_os(result, errno);
    }
    return fd;
}

static int copy_out(int fd, const struct file_request *request, struct file_result *result)
{
    static char chunk[BC_FRAME_MAX_DATA];
    uint64_t left = request->limit == 0 ? UINT64_MAX : request->limit;
    bool whole = request->flags & BC_FILE_WHOLE;
    for (;;) {
        size_t len = left < sizeof chunk ? (size_t)left : sizeof chunk;
        ssize_t n = read(fd, chunk, len == 0 && whole ? 1 : len);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return file_fail_os(result, errno);
        if (n == 0) return 0;
        if (len == 0) break;
        if (file_write_all(FILE_OUT_FD, chunk, (size_t)n) < 0) return file_fail_os(result, errno);
        result->bytes += (uint64_t)n;
        left -= (uint64_t)n;
    }
    return file_fail(result, BC_WIRE_ELIMIT, "the file is larger than the limit of this call");
}

static int file_read(const struct file_request *request, struct file_result *result)
{
    int fd = open_to_read(request, result);
    if (fd < 0) return -1;
    if (request->flags & BC_FILE_WHOLE && result->size > request->offset &&
        result->size - request->offset > request->limit) {
        return file_fail(result, BC_WIRE_ELIMIT, "the file is larger than the limit of this call");
    }
    return copy_out(fd, request, result);
}

static int take_user(struct file_result *result)
{
    if (syscall(SYS_setresgid, SANDBOX_UID, SANDBOX_UID, SANDBOX_UID) < 0 ||
        syscall(SYS_setresuid, SANDBOX_UID, SANDBOX_UID, SANDBOX_UID) < 0) {
        return file_fail_os(result, errno);
    }
    prctl(PR_SET_DUMPABLE, 0); /* the change of user has reset it */
    return 0;
}

static int perform(const struct file_request *request, struct file_result *result)
{
    if (request->path[0] == '\0') return file_fail_os(result, ENOENT);
    switch (request->op) {
    case BC_FILE_OP_READ: return file_read(request, result);
    case BC_FILE_OP_WRITE: return file_write(request, result);
    case BC_FILE_OP_APPEND: return file_append(request, result);
    case BC_FILE_OP_LIST: return file_list(request, result);
    case BC_FILE_OP_STAT: return file_stat(request, result);
    case BC_FILE_OP_MKDIR: return file_mkdir(request, result);
    case BC_FILE_OP_REMOVE: return file_remove(request, result);
    case BC_FILE_OP_CHANGES: return file_changes(request, result);
    case BC_FILE_OP_PACK: return file_pack(request, result);
    default: return file_rename(request, result);
    }
}

_Noreturn void file_worker(const struct file_request *request, bool change_user)
{
    struct file_result result = {0};
    unsigned char bytes[1024];
    if (!change_user || take_user(&result) == 0) perform(request, &result);
    if (result.status == 0 && result.os_error == 0) result.words = "";
    bc_wire_writer out = {.data = bytes, .cap = sizeof bytes};
    file_encode_result(&out, &result);
    file_write_all(FILE_RESULT_FD, bytes, out.len);
    _exit(0);
}
