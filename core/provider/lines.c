#include "lines.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/cleanup.h"

static int read_file(const char *path, const char *what, bc_buf *file, barchan_error *err)
{
    struct stat st;
    /* Non-blocking: a FIFO must not hang the open. */
    cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 || fstat(fd, &st) < 0) {
        return bc_error_set_os(err, errno, "read the %s %.200s", what, path);
    }
    if (!S_ISREG(st.st_mode)) {
        return bc_error_set(err, S_ISDIR(st.st_mode) ? BARCHAN_EISDIR : BARCHAN_ENOTREG,
                            "read the %s %.200s: it is no regular file", what, path);
    }
    char block[1 << 16];
    for (;;) {
        ssize_t n = read(fd, block, sizeof block);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return bc_error_set_os(err, errno, "read the %s %.200s", what, path);
        if (n == 0) return 0;
        int rc = bc_buf_append(file, block, (size_t)n);
        if (rc == BARCHAN_ENOMEM) return bc_error_nomem(err);
        if (rc < 0) {
            return bc_error_set(err, rc, "the %s %.200s is larger than %u bytes", what, path,
                                BC_JSON_MAX_BYTES);
        }
    }
}

static int take_line(bc_json_span line, bc_line_fn fn, void *ud, barchan_error *err)
{
    cleanup_json json_t *view = NULL;
    if (strspn(line.data, " \t\r") >= line.len) return 0;
    int rc = bc_json_view(&view, line.data, line.len, 0, err);
    return rc < 0 ? rc : fn(view, line, ud, err);
}

int bc_lines_read(const char *path, const char *what, bc_buf *file, bc_line_fn fn, void *ud,
                  barchan_error *err)
{
    int rc = read_file(path, what, file, err);
    if (rc < 0) return rc;
    const char *at = bc_buf_data(file);
    size_t left = file->len;
    for (size_t number = 1; left > 0; number++) {
        const char *lf = memchr(at, '\n', left);
        size_t len = lf != NULL ? (size_t)(lf - at) : left;
        rc = take_line((bc_json_span){at, len}, fn, ud, err);
        if (rc < 0) {
            bc_error_context(err, "the %s %.200s, line %zu", what, path, number);
            return rc;
        }
        len += lf != NULL;
        at += len;
        left -= len;
    }
    return 0;
}
