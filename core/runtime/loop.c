#include "loop_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/timerfd.h>
#include <unistd.h>
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/options.h"

int bc_runtime_check(const barchan_runtime *rt, barchan_error *err)
{
    if (rt == NULL) return bc_error_set(err, BARCHAN_EINVAL, "the runtime is NULL");
    if (!bc_runtime_is_own(rt)) {
        return bc_error_set(err, BARCHAN_EINVAL,
                            "the runtime belongs to the process that forked this one; "
                            "create another one in the child");
    }
    if (rt->ending) return bc_error_set(err, BARCHAN_ECLOSED, "the runtime is being destroyed");
    return 0;
}

int bc_runtime_is_own(const barchan_runtime *rt)
{
    return *rt->fork_mark != 0;
}

/* ---- the ready list ---- */

void bc_defer_schedule(barchan_runtime *rt, bc_defer *defer, bc_defer_fn fn)
{
    if (defer->next != NULL) return;
    defer->rt = rt;
    defer->fn = fn;
    defer->next = &rt->ready;
    defer->prev = rt->ready.prev;
    rt->ready.prev->next = defer;
    rt->ready.prev = defer;
    if (rt->waiting) uv_stop(&rt->loop);
    bc_runtime_due(rt);
}

void bc_defer_cancel(bc_defer *defer)
{
    if (defer->next == NULL) return;
    defer->prev->next = defer->next;
    defer->next->prev = defer->prev;
    defer->next = defer->prev = NULL;
}

static void list_init(bc_defer *head)
{
    head->next = head->prev = head;
}

/* Runs what is ready now; what becomes ready meanwhile waits for the next dispatch. */
static int dispatch(barchan_runtime *rt)
{
    bc_defer batch;
    int count = 0;
    if (rt->ready.next == &rt->ready) return 0;
    batch = rt->ready;
    batch.next->prev = batch.prev->next = &batch;
    list_init(&rt->ready);
    rt->dispatching++;
    while (batch.next != &batch) {
        bc_defer *defer = batch.next;
        bc_defer_cancel(defer);
        defer->fn(defer);
        count++;
    }
    rt->dispatching--;
    return count;
}

/* ---- the descriptor for host loops ---- */

void bc_runtime_changed(barchan_runtime *rt)
{
    if (rt->changed) return;
    rt->changed = 1;
    if (rt->exported && !rt->pumping) bc_runtime_kick(rt);
}

void bc_runtime_due(barchan_runtime *rt)
{
    if (!rt->exported || rt->pumping || rt->told) return;
    rt->told = 1;
    bc_runtime_kick(rt);
}

static int add_to_epoll(int epoll_fd, int fd)
{
    struct epoll_event event = {.events = EPOLLIN};
    return epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event);
}

/* Has libuv register what changed, and sets the timer descriptor to its next timer. */
static void rearm(barchan_runtime *rt)
{
    if (!rt->exported) return;
    if (rt->changed) {
        rt->changed = 0;
        uv_run(&rt->loop, UV_RUN_NOWAIT);
    }
    rt->told = 0;
    uv_update_time(&rt->loop);
    int ready = rt->ready.next != &rt->ready || bc_posts_waiting(rt);
    int timeout = ready ? 0 : uv_backend_timeout(&rt->loop);
    struct itimerspec spec = {0};
    if (timeout >= 0) {
        spec.it_value.tv_sec = timeout / 1000;
        spec.it_value.tv_nsec = timeout % 1000 * 1000000L;
        if (timeout == 0) spec.it_value.tv_nsec = 1; /* 0 would disarm it */
    }
    timerfd_settime(rt->timer_fd, 0, &spec, NULL);
}

int barchan_runtime_fd(barchan_runtime *rt, barchan_error *err)
{
    BC_OPERATION("runtime.fd");
    int rc = bc_runtime_check(rt, err);
    if (rc < 0) return rc;
    if (rt->exported) return rt->epoll_fd;
    cleanup_close int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    cleanup_close int timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (epoll_fd < 0 || timer_fd < 0 || add_to_epoll(epoll_fd, uv_backend_fd(&rt->loop)) < 0 ||
        add_to_epoll(epoll_fd, timer_fd) < 0) {
        return bc_error_set_os(err, errno, "export the runtime's descriptor");
    }
    rt->epoll_fd = steal_fd(&epoll_fd);
    rt->timer_fd = steal_fd(&timer_fd);
    rt->exported = 1;
    rt->changed = 1;
    rt->pumping++;
    rearm(rt);
    rt->pumping--;
    return rt->epoll_fd;
}

/* ---- the pump ---- */

enum { HANDED_ON = 3 };

static int collect_and_dispatch(barchan_runtime *rt, uv_run_mode mode)
{
    rt->changed = 0;
    rt->waiting = mode == UV_RUN_ONCE;
    uv_run(&rt->loop, mode);
    rt->waiting = 0;
    int count = bc_posts_run(rt);
    /* What came in is handed on: a socket's bytes to a transfer, that to a reply, that to a script.
     * Looking for more after each would be a system call each. */
    for (int i = 0; i < HANDED_ON; i++)
        count += dispatch(rt);
    return count;
}

/* Waits until libuv has something to do, at most timeout_ms (-1: no limit). */
static void wait_ready(barchan_runtime *rt, int timeout_ms)
{
    if (rt->changed || bc_posts_waiting(rt))
        return; /* what a callback started must be registered first */
    int own = uv_backend_timeout(&rt->loop);
    if (own >= 0 && (timeout_ms < 0 || own < timeout_ms)) timeout_ms = own;
    struct pollfd pfd = {.fd = uv_backend_fd(&rt->loop), .events = POLLIN};
    poll(&pfd, 1, timeout_ms);
    uv_update_time(&rt->loop);
}

/* Something is there already, or not registered yet; otherwise looking before waiting would be for
 * nothing, and each look is a system call. */
static int has_work(const barchan_runtime *rt)
{
    return rt->changed || rt->ready.next != &rt->ready || uv_backend_timeout(&rt->loop) == 0;
}

/* Who waits for one thing need not hear of signals, so libuv itself may wait, which saves a call:
 * it goes on after a signal. Without a handle that is alive it would not wait at all. */
static int wait_in_uv(barchan_runtime *rt)
{
    return !bc_posts_waiting(rt) && uv_loop_alive(&rt->loop);
}

enum { NO_LIMIT = -1 };

/* for_signals: a signal ends the wait, as those expect who wait for more than one thing. */
static int pump(barchan_runtime *rt, int timeout_ms, bool for_signals)
{
    int count = 0;
    rt->pumping++;
    uv_update_time(&rt->loop);
    if (timeout_ms == 0 || has_work(rt) || bc_posts_waiting(rt))
        count = collect_and_dispatch(rt, UV_RUN_NOWAIT);
    if (count == 0 && timeout_ms != 0 && rt->ready.next == &rt->ready) {
        if (timeout_ms == NO_LIMIT && !for_signals && wait_in_uv(rt)) {
            count = collect_and_dispatch(rt, UV_RUN_ONCE);
        } else {
            wait_ready(rt, timeout_ms);
            count = collect_and_dispatch(rt, UV_RUN_NOWAIT);
        }
    }
    rearm(rt);
    rt->pumping--;
    return count;
}

int barchan_runtime_pump(barchan_runtime *rt, int timeout_ms, barchan_error *err)
{
    BC_OPERATION("runtime.pump");
    int rc = bc_runtime_check(rt, err);
    if (rc < 0) return rc;
    if (rt->dispatching > 0) {
        return bc_error_set(err, BARCHAN_EBUSY,
                            "the runtime cannot be pumped from inside one of its callbacks");
    }
    return pump(rt, timeout_ms < 0 ? NO_LIMIT : timeout_ms, true);
}

int bc_runtime_may_wait(barchan_runtime *rt, barchan_error *err)
{
    int rc = bc_runtime_check(rt, err);
    if (rc < 0 || rt->dispatching == 0) return rc;
    return bc_error_set(err, BARCHAN_EBUSY,
                        "a call that waits was made inside a callback of the runtime; "
                        "use its _start form there");
}

int bc_runtime_wait(barchan_runtime *rt, const int *done, barchan_error *err)
{
    int rc = bc_runtime_may_wait(rt, err);
    if (rc < 0) return rc;
    while (rc == 0 && !*done) {
        pump(rt, NO_LIMIT, false);
        rc = bc_runtime_check(rt, err);
    }
    return *done ? 0 : rc;
}

void bc_outcome_set(bc_outcome *outcome, const barchan_error *err)
{
    outcome->done = 1;
    if (err != NULL) outcome->error = *err;
}

int bc_outcome_wait(const bc_outcome *outcome, barchan_runtime *rt, barchan_error *err)
{
    int rc = bc_runtime_wait(rt, &outcome->done, err);
    if (rc < 0 || outcome->error.code == 0) return rc;
    if (err != NULL) *err = outcome->error;
    return outcome->error.code;
}

/* ---- create and destroy ---- */

/* Frees a runtime whose loop was never run. */
static void discard(barchan_runtime *rt)
{
    if (rt->fork_mark != NULL) munmap((void *)rt->fork_mark, (size_t)sysconf(_SC_PAGESIZE));
    free(rt->guest_path);
    free(rt);
}

static int map_fork_mark(barchan_runtime *rt, barchan_error *err)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    void *mark = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mark == MAP_FAILED) return bc_error_set_os(err, errno, "map a page");
    rt->fork_mark = mark;
    if (madvise(mark, page, MADV_WIPEONFORK) < 0) {
        return bc_error_set_os(err, errno, "madvise(MADV_WIPEONFORK)");
    }
    *rt->fork_mark = 1;
    return 0;
}

/* In a host with closed standard descriptors: takes their numbers for a moment. */
static void hold_standard_numbers(int held[3])
{
    for (int i = 0; i < 3; i++) {
        held[i] = fcntl(i, F_GETFD) < 0 ? open("/dev/null", O_RDWR | O_CLOEXEC) : -1;
    }
}

int barchan_runtime_create(barchan_runtime **out, const barchan_runtime_options *options,
                           barchan_error *err)
{
    BC_OPERATION("runtime.create");
    if (out == NULL) return bc_error_set(err, BARCHAN_EINVAL, "out is NULL");
    *out = NULL;
    barchan_runtime *rt = calloc(1, sizeof *rt);
    if (rt == NULL) return bc_error_nomem(err);
    rt->epoll_fd = rt->timer_fd = -1;
    list_init(&rt->ready);
    rt->residents.next = rt->residents.prev = &rt->residents;
    rt->posts_tail = &rt->posts;
    int rc = bc_options_copy(&rt->options, sizeof rt->options, options, err);
    if (rc == 0) rc = map_fork_mark(rt, err);
    if (rc == 0 && rt->options.guest_path != NULL) {
        rt->options.guest_path = rt->guest_path = strdup(rt->options.guest_path);
        if (rt->guest_path == NULL) rc = bc_error_nomem(err);
    }
    if (rc == 0) {
        int held[3], uv; /* libuv aborts when one of its own descriptors is 0, 1 or 2 */
        hold_standard_numbers(held);
        uv = uv_loop_init(&rt->loop);
        for (int i = 0; i < 3; i++) {
            if (held[i] >= 0) close(held[i]);
        }
        if (uv < 0) rc = bc_error_set_os(err, -uv, "create an event loop");
    }
    if (rc < 0) {
        discard(rt);
        bc_error_context(err, "create a runtime");
        return rc;
    }
    pthread_mutex_init(&rt->post_lock, NULL);
    rc = bc_posts_open(rt, err);
    if (rc < 0) {
        bc_error_context(err, "create a runtime");
        barchan_runtime_destroy(rt);
        return rc;
    }
    *out = rt;
    return 0;
}

/* Callbacks made here may not wait, and find the runtime closed to new work: what is ended stays
 * ended, and nothing is started in a room that is gone. */
static void end_everything(barchan_runtime *rt)
{
    bc_posts_run(rt);
    rt->ending = 1;
    rt->dispatching++;
    while (rt->residents.next != &rt->residents) {
        bc_resident *newest = rt->residents.next;
        newest->end(newest); /* removes it, and may free it */
    }
    rt->dispatching--;
    int64_t deadline = bc_clock_ms() + BC_DESTROY_WAIT_MS;
    while (rt->holds > 0 && bc_clock_ms() < deadline)
        pump(rt, 50, false);
    rt->dispatching++;
    for (int i = BC_ROOM_COUNT - 1; i >= 0; i--) {
        void *data = rt->rooms[i].data;
        rt->rooms[i].data = NULL;
        if (data != NULL) rt->rooms[i].end(data);
    }
    rt->dispatching--;
    /* Callbacks of what was just ended are due once more; they may defer further ones. */
    for (int round = 0; round < BC_DESTROY_ROUNDS && (bc_posts_run(rt) + dispatch(rt)) > 0; round++)
        ;
    bc_posts_end(rt);
    dispatch(rt);
}

/* Whatever its owner left open: it must not keep the loop. Its memory is the owner's. */
static void close_handle(uv_handle_t *handle, void *ud)
{
    (void)ud;
    if (!uv_is_closing(handle)) uv_close(handle, NULL);
}

void barchan_runtime_destroy(barchan_runtime *rt)
{
    if (rt == NULL || !bc_runtime_is_own(rt)) return;
    end_everything(rt);
    uv_walk(&rt->loop, close_handle, NULL);
    while (uv_loop_close(&rt->loop) == UV_EBUSY) {
        uv_run(&rt->loop, UV_RUN_ONCE);
    }
    if (rt->post_fd >= 0) close(rt->post_fd);
    if (rt->epoll_fd >= 0) close(rt->epoll_fd);
    if (rt->timer_fd >= 0) close(rt->timer_fd);
    pthread_mutex_destroy(&rt->post_lock);
    discard(rt);
}

const barchan_runtime_options *bc_runtime_options(const barchan_runtime *rt)
{
    return &rt->options;
}

void bc_log(barchan_runtime *rt, barchan_log_level level, const char *format, ...)
{
    if (rt->options.on_log == NULL || level < rt->options.log_level) return;
    char line[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    for (char *c = line; *c != '\0'; c++) {
        if (*c == '\n' || *c == '\r') *c = ' ';
    }
    rt->options.on_log(level, line, rt->options.log_ud);
}
