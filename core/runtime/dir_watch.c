#include "dir_watch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/limits.h"

#define EVENTS                                                                        \
    (IN_CLOSE_WRITE | IN_MODIFY | IN_ATTRIB | IN_CREATE | IN_DELETE | IN_MOVED_FROM | \
     IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR)
struct dir {
    char *path;
    int wd; /* -1: not there */
};

struct bc_dir_watch {
    bc_watch *watch;
    bc_timer *quiet, *retry;
    barchan_runtime *rt;
    int failed; /* said so already */
    int fd;
    struct dir *dirs;
    size_t count;
    int64_t first_event_ms; /* of those that have not been told; 0: none */
    void (*fn)(void *ud);
    void *ud;
};

static void something_happened(bc_dir_watch *self)
{
    int64_t now = bc_clock_ms(), wait = BC_DIR_WATCH_QUIET_MS;
    if (self->first_event_ms == 0) self->first_event_ms = now;
    int64_t left = self->first_event_ms + BC_DIR_WATCH_MOST_MS - now;
    if (left < wait) wait = left > 0 ? left : 0;
    bc_timer_set(self->quiet, wait);
}

static void on_quiet(void *ud)
{
    bc_dir_watch *self = ud;
    self->first_event_ms = 0;
    self->fn(self->ud);
}

/* Whether it is just not there now. Anything else (no right, no watch left) would go on in silence.
 */
static int is_missing(int os_error)
{
    return os_error == ENOENT || os_error == ENOTDIR;
}

/* Watches each directory under its name anew: a replaced one is another inode. The first failure
 * other than a missing directory is told; the others are watched all the same. */
static int attach(bc_dir_watch *self, barchan_error *err)
{
    int rc = 0;
    for (size_t i = 0; i < self->count; i++) {
        int wd = inotify_add_watch(self->fd, self->dirs[i].path, EVENTS);
        if (wd < 0 && rc == 0 && !is_missing(errno)) {
            rc =
                bc_error_set_os(err, errno, "watch '%s'%s", self->dirs[i].path,
                                errno == ENOSPC ? " (fs.inotify.max_user_watches is used up)" : "");
        }
        if (wd != self->dirs[i].wd) {
            if (self->dirs[i].wd >= 0) inotify_rm_watch(self->fd, self->dirs[i].wd);
            self->dirs[i].wd = wd;
            something_happened(self);
        }
    }
    /* A rename of a parent gives no event here, so names are looked up now and then all the same.
     */
    bc_timer_set(self->retry, BC_DIR_WATCH_RETRY_MS);
    return rc;
}

static void on_retry(void *ud)
{
    bc_dir_watch *self = ud;
    barchan_error err;
    int failed = attach(self, &err) < 0;
    if (failed && !self->failed) bc_log(self->rt, BARCHAN_LOG_WARN, "%s", err.message);
    self->failed = failed;
}

static void on_readable(void *ud, unsigned events)
{
    bc_dir_watch *self = ud;
    char buffer[16 * 1024] __attribute__((aligned(8)));
    (void)events;
    /* What the events say does not matter, an overflow of the queue included: all is read anew. */
    while (read(self->fd, buffer, sizeof buffer) > 0) {
        something_happened(self);
    }
}

int bc_dir_watch_pending(bc_dir_watch *self)
{
    on_readable(self, BC_READABLE);
    return self->first_event_ms != 0;
}

static int copy_dirs(bc_dir_watch *self, const char *const *dirs, barchan_error *err)
{
    size_t count = 0;
    while (dirs[count] != NULL)
        count++;
    if (count == 0 || count > BC_DIR_WATCH_MAX_DIRS) {
        return bc_error_set(err, BARCHAN_EINVAL, "1 to %d directories can be watched",
                            BC_DIR_WATCH_MAX_DIRS);
    }
    self->dirs = calloc(count, sizeof *self->dirs);
    if (self->dirs == NULL) return bc_error_nomem(err);
    self->count = count;
    for (size_t i = 0; i < count; i++) {
        self->dirs[i] = (struct dir){.path = strdup(dirs[i]), .wd = -1};
        if (self->dirs[i].path == NULL) return bc_error_nomem(err);
    }
    return 0;
}

int bc_dir_watch_open(bc_dir_watch **out, barchan_runtime *rt, const char *const *dirs,
                      void (*fn)(void *ud), void *ud, barchan_error *err)
{
    *out = NULL;
    bc_dir_watch *self = calloc(1, sizeof *self);
    if (self == NULL) return bc_error_nomem(err);
    self->rt = rt;
    self->fn = fn;
    self->ud = ud;
    self->fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    int rc = self->fd < 0 ? bc_error_set_os(err, errno, "watch directories (inotify)") : 0;
    if (rc == 0) rc = copy_dirs(self, dirs, err);
    if (rc == 0) rc = bc_timer_open(&self->quiet, rt, on_quiet, self, err);
    if (rc == 0) rc = bc_timer_open(&self->retry, rt, on_retry, self, err);
    if (rc == 0) rc = bc_watch_open(&self->watch, rt, self->fd, on_readable, self, err);
    if (rc == 0) rc = bc_watch_set(self->watch, BC_READABLE, err);
    if (rc == 0) rc = attach(self, err);
    if (rc < 0) {
        bc_dir_watch_close(self);
        return rc;
    }
    bc_timer_set(self->quiet, -1); /* the listener has read them, or is about to */
    self->first_event_ms = 0;
    *out = self;
    return 0;
}

void bc_dir_watch_close(bc_dir_watch *self)
{
    if (self == NULL) return;
    bc_watch_close(self->watch);
    bc_timer_close(self->quiet);
    bc_timer_close(self->retry);
    if (self->fd >= 0) close(self->fd);
    for (size_t i = 0; i < self->count; i++) {
        free(self->dirs[i].path);
    }
    free(self->dirs);
    free(self);
}
