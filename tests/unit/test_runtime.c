/* The runtime as a host sees it: pumping, its descriptor, posts, forks. */
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "base/clock.h"
#include "runtime/loop.h"
#include "suite.h"

static barchan_runtime *rt;
static barchan_error err;

static void setup(void)
{
    ck_assert_int_eq(barchan_runtime_create(&rt, NULL, &err), 0);
}

static void teardown(void)
{
    barchan_runtime_destroy(rt);
}

static void count_up(void *ud)
{
    ++*(int *)ud;
}

static void post_count(barchan_runtime *runtime, void *ud)
{
    (void)runtime;
    ++*(int *)ud;
}

START_TEST(a_timer_fires_once_and_can_be_set_again)
{
    int fired = 0;
    bc_timer *timer;
    ck_assert_int_eq(bc_timer_open(&timer, rt, count_up, &fired, &err), 0);
    int64_t start = bc_clock_ms();
    bc_timer_set(timer, 20);
    ck_assert_int_eq(bc_runtime_wait(rt, &fired, &err), 0);
    ck_assert_int_ge(bc_clock_ms() - start, 18);
    barchan_runtime_pump(rt, 0, &err);
    ck_assert_int_eq(fired, 1);
    bc_timer_set(timer, 0);
    while (fired < 2)
        ck_assert_int_ge(barchan_runtime_pump(rt, 100, &err), 0);
    bc_timer_set(timer, 5);
    bc_timer_set(timer, -1);
    ck_assert_int_eq(barchan_runtime_pump(rt, 30, &err), 0);
    ck_assert_int_eq(fired, 2);
    bc_timer_close(timer);
}
END_TEST

/* libuv looks at its timers once more before it waits: one that comes due just then must not be
 * followed by a wait for what comes next. */
START_TEST(a_timer_that_comes_due_as_the_wait_begins_ends_it)
{
    bc_timer *timer, *late;
    int fired = 0, was_late = 0;
    ck_assert_int_eq(bc_timer_open(&timer, rt, count_up, &fired, &err), 0);
    ck_assert_int_eq(bc_timer_open(&late, rt, count_up, &was_late, &err), 0);
    for (long i = 0; i < 1500; i++) {
        struct timespec now;
        fired = 0;
        bc_timer_set(late, 20000); /* however long this process may be stopped */
        bc_timer_set(timer, 1);
        do
            clock_gettime(CLOCK_MONOTONIC, &now);
        while (now.tv_nsec % 1000000 < 999999 - i * 2);
        ck_assert_int_eq(bc_runtime_wait(rt, &fired, &err), 0);
        ck_assert_int_eq(was_late, 0);
    }
    bc_timer_close(timer);
    bc_timer_close(late);
}
END_TEST

START_TEST(pump_gives_up_after_its_timeout)
{
    int64_t start = bc_clock_ms();
    ck_assert_int_eq(barchan_runtime_pump(rt, 30, &err), 0);
    ck_assert_int_ge(bc_clock_ms() - start, 28);
}
END_TEST

struct pair {
    int fds[2];
    bc_watch *watch;
    int calls;
    unsigned events;
};

static void on_pair(void *ud, unsigned events)
{
    struct pair *pair = ud;
    pair->calls++;
    pair->events = events;
}

START_TEST(a_watch_is_level_triggered_and_silent_after_close)
{
    struct pair pair = {0};
    ck_assert_int_eq(pipe(pair.fds), 0);
    ck_assert_int_eq(bc_watch_open(&pair.watch, rt, pair.fds[0], on_pair, &pair, &err), 0);
    ck_assert_int_eq(bc_watch_set(pair.watch, BC_READABLE, &err), 0);
    ck_assert_int_eq(barchan_runtime_pump(rt, 0, &err), 0);
    ck_assert_int_eq(write(pair.fds[1], "x", 1), 1);
    barchan_runtime_pump(rt, 100, &err);
    barchan_runtime_pump(rt, 100, &err);
    ck_assert_int_eq(pair.calls, 2);
    ck_assert_uint_eq(pair.events, BC_READABLE);
    bc_watch_close(pair.watch);
    close(pair.fds[0]);
    close(pair.fds[1]);
    barchan_runtime_pump(rt, 10, &err);
    ck_assert_int_eq(pair.calls, 2);
}
END_TEST

/* libuv stops watching what has an error. */
START_TEST(a_watch_is_level_triggered_after_an_error)
{
    struct pair pair = {0};
    ck_assert_int_eq(pipe(pair.fds), 0);
    close(pair.fds[0]);
    ck_assert_int_eq(bc_watch_open(&pair.watch, rt, pair.fds[1], on_pair, &pair, &err), 0);
    ck_assert_int_eq(bc_watch_set(pair.watch, BC_WRITABLE, &err), 0);
    barchan_runtime_pump(rt, 100, &err);
    barchan_runtime_pump(rt, 100, &err);
    ck_assert_int_eq(pair.calls, 2);
    ck_assert_int_eq(bc_watch_set(pair.watch, BC_WRITABLE, &err), 0);
    barchan_runtime_pump(rt, 100, &err);
    ck_assert_int_eq(pair.calls, 3);
    ck_assert_uint_ne(pair.events & BC_WRITABLE, 0);
    ck_assert_int_eq(bc_watch_set(pair.watch, 0, &err), 0);
    barchan_runtime_pump(rt, 50, &err);
    ck_assert_int_eq(pair.calls, 3);
    bc_watch_close(pair.watch);
    close(pair.fds[1]);
}
END_TEST

static int busy_code;

static void wait_inside(void *ud)
{
    int never = 0;
    barchan_error inner;
    busy_code = bc_runtime_wait(rt, &never, &inner);
    ck_assert_ptr_nonnull(strstr(inner.message, "_start"));
    *(int *)ud = 1;
}

START_TEST(waiting_inside_a_callback_is_busy)
{
    int done = 0;
    bc_timer *timer;
    ck_assert_int_eq(bc_timer_open(&timer, rt, wait_inside, &done, &err), 0);
    bc_timer_set(timer, 0);
    ck_assert_int_eq(bc_runtime_wait(rt, &done, &err), 0);
    ck_assert_int_eq(busy_code, BARCHAN_EBUSY);
    bc_timer_close(timer);
}
END_TEST

static int readable(int fd, int timeout_ms)
{
    struct pollfd pfd = {.fd = fd, .events = POLLIN};
    return poll(&pfd, 1, timeout_ms);
}

START_TEST(the_descriptor_wakes_for_work_added_between_pumps)
{
    int fired = 0, fd = barchan_runtime_fd(rt, &err);
    ck_assert_int_ge(fd, 0);
    int outer = epoll_create1(EPOLL_CLOEXEC); /* a host nests it in its own epoll */
    struct epoll_event event = {.events = EPOLLIN};
    ck_assert_int_eq(epoll_ctl(outer, EPOLL_CTL_ADD, fd, &event), 0);
    while (readable(outer, 0) > 0)
        barchan_runtime_pump(rt, 0, &err);
    ck_assert_int_eq(readable(outer, 20), 0); /* idle: silent */

    bc_timer *timer;
    ck_assert_int_eq(bc_timer_open(&timer, rt, count_up, &fired, &err), 0);
    bc_timer_set(timer, 30);
    int wakes = 0;
    int64_t start = bc_clock_ms();
    while (fired == 0 && bc_clock_ms() - start < 2000) {
        ck_assert_int_eq(readable(outer, 1000), 1);
        barchan_runtime_pump(rt, 0, &err);
        wakes++;
    }
    ck_assert_int_eq(fired, 1);
    ck_assert_int_le(wakes, 5); /* it slept between, it did not spin */

    struct pair pair = {0};
    ck_assert_int_eq(pipe(pair.fds), 0);
    ck_assert_int_eq(bc_watch_open(&pair.watch, rt, pair.fds[0], on_pair, &pair, &err), 0);
    ck_assert_int_eq(bc_watch_set(pair.watch, BC_READABLE, &err), 0);
    barchan_runtime_pump(rt, 0, &err);
    ck_assert_int_eq(write(pair.fds[1], "x", 1), 1);
    ck_assert_int_eq(readable(outer, 1000), 1);
    barchan_runtime_pump(rt, 0, &err);
    ck_assert_int_eq(pair.calls, 1);
    bc_watch_close(pair.watch);
    bc_timer_close(timer);
    close(pair.fds[0]);
    close(pair.fds[1]);
    close(outer);
}
END_TEST

static void *post_once(void *ud)
{
    barchan_runtime_post(rt, post_count, ud, NULL);
    return NULL;
}

#define POSTERS 4
#define POSTS 500

static void *post_many(void *ud)
{
    for (int i = 0; i < POSTS; i++) {
        ck_assert_int_eq(barchan_runtime_post(rt, post_count, ud, NULL), 0);
    }
    return NULL;
}

START_TEST(posts_from_threads_all_run_here)
{
    int count = 0;
    pthread_t threads[POSTERS];
    for (int i = 0; i < POSTERS; i++)
        pthread_create(&threads[i], NULL, post_many, &count);
    while (count < POSTERS * POSTS)
        ck_assert_int_ge(barchan_runtime_pump(rt, 1000, &err), 0);
    for (int i = 0; i < POSTERS; i++)
        pthread_join(threads[i], NULL);
    ck_assert_int_eq(count, POSTERS * POSTS);
}
END_TEST

START_TEST(posts_wake_a_host_that_watches_the_descriptor)
{
    int count = 0;
    ck_assert_int_eq(barchan_runtime_post(rt, post_count, &count, &err), 0);
    int fd = barchan_runtime_fd(rt, &err); /* asked for after the post */
    ck_assert_int_eq(readable(fd, 1000), 1);
    barchan_runtime_pump(rt, 0, &err);
    ck_assert_int_eq(count, 1);
    for (int i = 0; i < 200;
         i++) { /* the wake-up may be read by a pump that has passed the posts */
        pthread_t thread;
        int before = count;
        pthread_create(&thread, NULL, post_once, &count);
        while (count == before) {
            ck_assert_int_eq(readable(fd, 2000), 1);
            barchan_runtime_pump(rt, 0, &err);
        }
        pthread_join(thread, NULL);
    }
}
END_TEST

static void post_from_callback(void *ud)
{
    ck_assert_int_eq(barchan_runtime_post(rt, post_count, ud, &err), 0);
}

START_TEST(a_post_made_in_a_callback_wakes_it_too)
{
    int count = 0, fd = barchan_runtime_fd(rt, &err);
    bc_timer *timer;
    ck_assert_int_eq(bc_timer_open(&timer, rt, post_from_callback, &count, &err), 0);
    bc_timer_set(timer, 5);
    while (count == 0) {
        ck_assert_int_eq(readable(fd, 2000), 1);
        barchan_runtime_pump(rt, 0, &err);
    }
    bc_timer_close(timer);
}
END_TEST

START_TEST(a_post_that_is_queued_at_destroy_still_runs)
{
    int count = 0;
    barchan_runtime *other;
    ck_assert_int_eq(barchan_runtime_create(&other, NULL, &err), 0);
    ck_assert_int_eq(barchan_runtime_post(other, post_count, &count, &err), 0);
    barchan_runtime_destroy(other);
    ck_assert_int_eq(count, 1);
}
END_TEST

START_TEST(a_forked_child_is_refused)
{
    int pid = fork();
    if (pid == 0) {
        barchan_error inner;
        int rc = barchan_runtime_pump(rt, 0, &inner);
        barchan_runtime_destroy(rt); /* harmless there */
        _exit(rc == BARCHAN_EINVAL && strstr(inner.message, "fork") != NULL ? 0 : 1);
    }
    int status;
    waitpid(pid, &status, 0);
    ck_assert_int_eq(status, 0);
    ck_assert_int_eq(barchan_runtime_pump(rt, 0, &err), 0);
}
END_TEST

struct chain {
    bc_defer defer;
    int left;
};

static void run_chain(bc_defer *defer)
{
    struct chain *chain = owner_of(defer, struct chain, defer);
    if (--chain->left > 0) bc_defer_schedule(rt, defer, run_chain);
}

START_TEST(deferred_calls_do_not_starve_the_loop)
{
    struct chain chain = {.left = 9}, dropped = {.left = 1};
    bc_defer_schedule(rt, &chain.defer, run_chain);
    bc_defer_schedule(rt, &chain.defer, run_chain); /* queued once */
    bc_defer_schedule(rt, &dropped.defer, run_chain);
    bc_defer_cancel(&dropped.defer);
    /* A pump runs what is ready, and twice more what that has made ready. */
    ck_assert_int_eq(barchan_runtime_pump(rt, 0, &err), 3);
    ck_assert_int_eq(chain.left, 6);
    while (chain.left > 0)
        ck_assert_int_eq(barchan_runtime_pump(rt, -1, &err), 3);
    ck_assert_int_eq(dropped.left, 1);
}
END_TEST

static void *own_runtime(void *ud)
{
    barchan_runtime *mine;
    int fired = 0;
    bc_timer *timer;
    ck_assert_int_eq(barchan_runtime_create(&mine, NULL, NULL), 0);
    ck_assert_int_eq(bc_timer_open(&timer, mine, count_up, &fired, NULL), 0);
    bc_timer_set(timer, 5);
    ck_assert_int_eq(bc_runtime_wait(mine, &fired, NULL), 0);
    bc_timer_close(timer);
    barchan_runtime_destroy(mine);
    return ud;
}

START_TEST(threads_have_runtimes_of_their_own)
{
    pthread_t threads[8];
    for (int i = 0; i < 8; i++)
        pthread_create(&threads[i], NULL, own_runtime, NULL);
    for (int i = 0; i < 8; i++)
        pthread_join(threads[i], NULL);
}
END_TEST

START_TEST(destroy_ends_with_what_was_left_open)
{
    barchan_runtime *other;
    bc_timer *timer;
    ck_assert_int_eq(barchan_runtime_create(&other, NULL, &err), 0);
    ck_assert_int_eq(bc_timer_open(&timer, other, count_up, NULL, &err), 0);
    bc_timer_set(timer, 60000);
    int64_t start = bc_clock_ms();
    barchan_runtime_destroy(other);
    ck_assert_int_lt(bc_clock_ms() - start, 5000);
    free(timer); /* its owner's, not the loop's */
}
END_TEST

START_TEST(bad_arguments_are_errors)
{
    ck_assert_int_eq(barchan_runtime_pump(NULL, 0, &err), BARCHAN_EINVAL);
    ck_assert_int_eq(barchan_runtime_create(NULL, NULL, &err), BARCHAN_EINVAL);
    ck_assert_int_eq(barchan_runtime_post(rt, NULL, NULL, &err), BARCHAN_EINVAL);
    barchan_runtime_destroy(NULL);
}
END_TEST

SUITE_MAIN("runtime", setup, teardown, a_timer_fires_once_and_can_be_set_again,
           a_timer_that_comes_due_as_the_wait_begins_ends_it, pump_gives_up_after_its_timeout,
           a_watch_is_level_triggered_and_silent_after_close,
           a_watch_is_level_triggered_after_an_error, waiting_inside_a_callback_is_busy,
           the_descriptor_wakes_for_work_added_between_pumps, posts_from_threads_all_run_here,
           posts_wake_a_host_that_watches_the_descriptor, a_post_made_in_a_callback_wakes_it_too,
           a_post_that_is_queued_at_destroy_still_runs, a_forked_child_is_refused,
           deferred_calls_do_not_starve_the_loop, threads_have_runtimes_of_their_own,
           destroy_ends_with_what_was_left_open, bad_arguments_are_errors)
