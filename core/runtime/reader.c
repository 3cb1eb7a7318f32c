#include "reader.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>
#include "base/cleanup.h"

#define READ_BYTES (64 * 1024)

struct bc_reader {
    bc_defer defer; /* for files that epoll refuses: they are always readable */
    barchan_runtime *rt;
    bc_watch *watch; /* on an epoll of the descriptor; NULL for such files */
    int epoll_fd;
    int fd;
    bc_reader_fn fn;
    void *ud;
    char data[READ_BYTES];
};

static void read_once(bc_reader *reader)
{
    ssize_t n = read(reader->fd, reader->data, sizeof reader->data);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) {
        bc_reader_next(reader, NULL);
        return;
    }
    reader->fn(reader->data, n, n < 0 ? errno : 0, reader->ud);
}

static void on_readable(void *ud, unsigned events)
{
    bc_reader *reader = ud;
    (void)events;
    bc_watch_set(reader->watch, 0, NULL); /* until the next is asked for */
    read_once(reader);
}

static void on_deferred(bc_defer *defer)
{
    read_once(owner_of(defer, bc_reader, defer));
}

int bc_reader_open(bc_reader **out, barchan_runtime *rt, int fd, bc_reader_fn fn, void *ud,
                   barchan_error *err)
{
    *out = NULL;
    cleanup_free bc_reader *reader = calloc(1, sizeof *reader);
    if (reader == NULL) return bc_error_nomem(err);
    reader->rt = rt;
    reader->fd = fd;
    reader->fn = fn;
    reader->ud = ud;
    reader->epoll_fd = -1;
    cleanup_close int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (epoll_fd < 0) return bc_error_set_os(err, errno, "epoll_create1");
    struct epoll_event event = {.events = EPOLLIN};
    if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0) {
        int rc = bc_watch_open(&reader->watch, rt, epoll_fd, on_readable, reader, err);
        if (rc < 0) return rc;
        reader->epoll_fd = steal_fd(&epoll_fd);
    } else if (errno != EPERM) {
        return bc_error_set_os(err, errno, "read descriptor %d", fd);
    }
    *out = steal_pointer(&reader);
    return 0;
}

int bc_reader_next(bc_reader *reader, barchan_error *err)
{
    if (reader->watch != NULL) return bc_watch_set(reader->watch, BC_READABLE, err);
    bc_defer_schedule(reader->rt, &reader->defer, on_deferred);
    return 0;
}

void bc_reader_close(bc_reader *reader)
{
    if (reader == NULL) return;
    bc_defer_cancel(&reader->defer);
    bc_watch_close(reader->watch);
    if (reader->epoll_fd >= 0) close(reader->epoll_fd);
    free(reader);
}

int bc_is_terminal(int fd)
{
    return isatty(fd);
}
