#include "loop_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>
#include "base/cleanup.h"

/* A hundred years: as good as never, and far from what a clock can say. */
#define MAX_AFTER_MS (100 * 365 * 86400000LL)

struct barchan_cancel {
    atomic_int references;
    atomic_int triggered;
    _Atomic int64_t deadline_ns;   /* 0: none */
    pthread_mutex_t deadline_lock; /* whoever sets it also sets the timer to it */
    pid_t pid;                     /* a forked child has the same timer and leaves it alone */
    int event_fd;                  /* a timer; readable for ever once triggered: nobody reads it */
};

static int64_t now_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static int is_parents(const barchan_cancel *cancel)
{
    return cancel->pid != getpid();
}

static void arm(const barchan_cancel *cancel, int64_t at_ns)
{
    if (is_parents(cancel)) return;
    struct itimerspec spec = {.it_value = {at_ns / 1000000000, at_ns % 1000000000}};
    timerfd_settime(cancel->event_fd, TFD_TIMER_ABSTIME, &spec, NULL);
}

int barchan_cancel_create(barchan_cancel **out, barchan_error *err)
{
    BC_OPERATION("cancel.create");
    if (out == NULL) return bc_error_set(err, BARCHAN_EINVAL, "out is NULL");
    *out = NULL;
    barchan_cancel *cancel = calloc(1, sizeof *cancel);
    if (cancel == NULL) return bc_error_nomem(err);
    cancel->event_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (cancel->event_fd < 0) {
        int os_error = errno;
        free(cancel);
        return bc_error_set_os(err, os_error, "create a cancel token");
    }
    atomic_store(&cancel->references, 1);
    pthread_mutex_init(&cancel->deadline_lock, NULL);
    cancel->pid = getpid();
    *out = cancel;
    return 0;
}

/* The flag comes first: whoever sets the timer to something else looks at it afterwards. */
void barchan_cancel_trigger(barchan_cancel *cancel)
{
    if (cancel == NULL) return;
    int saved = errno; /* a signal handler must leave it alone */
    atomic_store(&cancel->triggered, 1);
    arm(cancel, 1); /* long past */
    errno = saved;
}

void barchan_cancel_after(barchan_cancel *cancel, int64_t ms)
{
    if (cancel == NULL || barchan_cancel_triggered(cancel)) return;
    if (ms <= 0) {
        barchan_cancel_trigger(cancel);
        return;
    }
    if (ms > MAX_AFTER_MS) ms = MAX_AFTER_MS;
    int64_t at = now_ns() + ms * 1000000;
    if (is_parents(cancel)) { /* where the lock may be held for ever */
        atomic_store(&cancel->deadline_ns, at);
        return;
    }
    pthread_mutex_lock(&cancel->deadline_lock);
    atomic_store(&cancel->deadline_ns, at);
    arm(cancel, at);
    if (atomic_load(&cancel->triggered)) arm(cancel, 1); /* another thread was first */
    pthread_mutex_unlock(&cancel->deadline_lock);
}

int barchan_cancel_triggered(const barchan_cancel *given)
{
    barchan_cancel *cancel = (barchan_cancel *)given;
    if (cancel == NULL) return 0;
    if (atomic_load(&cancel->triggered)) return 1;
    int64_t deadline = atomic_load(&cancel->deadline_ns);
    if (deadline == 0 || now_ns() < deadline) return 0;
    barchan_cancel_trigger(cancel); /* or it would move with a later deadline */
    return 1;
}

barchan_cancel *barchan_cancel_retain(barchan_cancel *cancel)
{
    if (cancel != NULL) atomic_fetch_add(&cancel->references, 1);
    return cancel;
}

void barchan_cancel_release(barchan_cancel *cancel)
{
    if (cancel == NULL || atomic_fetch_sub(&cancel->references, 1) != 1) return;
    close(cancel->event_fd);
    pthread_mutex_destroy(&cancel->deadline_lock);
    free(cancel);
}

/* Each watch polls a duplicate of the token's descriptor, because libuv polls a number once. */
struct bc_cancel_watch {
    bc_watch *watch;
    int fd;
    barchan_cancel *cancel;
    void (*fn)(void *ud);
    void *ud;
};

static void on_readable(void *ud, unsigned events)
{
    bc_cancel_watch *watch = ud;
    (void)events;
    bc_watch_set(watch->watch, 0, NULL); /* once */
    watch->fn(watch->ud);
}

int bc_cancel_watch_open(bc_cancel_watch **out, barchan_runtime *rt, barchan_cancel *cancel,
                         void (*fn)(void *ud), void *ud, barchan_error *err)
{
    *out = NULL;
    if (cancel == NULL) return 0;
    cleanup_free bc_cancel_watch *watch = calloc(1, sizeof *watch);
    if (watch == NULL) return bc_error_nomem(err);
    cleanup_close int fd = fcntl(cancel->event_fd, F_DUPFD_CLOEXEC, 0);
    if (fd < 0) return bc_error_set_os(err, errno, "watch a cancel token");
    int rc = bc_watch_open(&watch->watch, rt, fd, on_readable, watch, err);
    if (rc == 0) rc = bc_watch_set(watch->watch, BC_READABLE, err);
    if (rc < 0) {
        bc_watch_close(watch->watch);
        return rc;
    }
    watch->fd = steal_fd(&fd);
    watch->cancel = barchan_cancel_retain(cancel);
    watch->fn = fn;
    watch->ud = ud;
    *out = steal_pointer(&watch);
    return 0;
}

void bc_cancel_watch_close(bc_cancel_watch *watch)
{
    if (watch == NULL) return;
    bc_watch_close(watch->watch);
    close(watch->fd);
    barchan_cancel_release(watch->cancel);
    free(watch);
}
