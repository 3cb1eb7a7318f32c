/* Cancel tokens: set by hand, from signals, by deadlines, from threads, and in forked children. */
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
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

static barchan_cancel *token;

static void trigger_in_handler(int sig)
{
    (void)sig;
    barchan_cancel_trigger(token);
}

START_TEST(a_token_wakes_every_watch_once_also_from_a_signal)
{
    int first = 0, second = 0, late = 0;
    bc_cancel_watch *a, *b, *c;
    ck_assert_int_eq(barchan_cancel_create(&token, &err), 0);
    ck_assert_int_eq(barchan_cancel_triggered(token), 0);
    ck_assert_int_eq(bc_cancel_watch_open(&a, rt, token, count_up, &first, &err), 0);
    ck_assert_int_eq(bc_cancel_watch_open(&b, rt, token, count_up, &second, &err), 0);
    signal(SIGUSR1, trigger_in_handler);
    raise(SIGUSR1);
    ck_assert_int_eq(barchan_cancel_triggered(token), 1);
    for (int i = 0; i < 3; i++)
        barchan_runtime_pump(rt, 20, &err);
    ck_assert_int_eq(first, 1);
    ck_assert_int_eq(second, 1);
    ck_assert_int_eq(bc_cancel_watch_open(&c, rt, token, count_up, &late, &err), 0);
    ck_assert_int_eq(bc_runtime_wait(rt, &late, &err), 0);
    barchan_cancel_release(token); /* the watches hold their own references */
    bc_cancel_watch_close(a);
    bc_cancel_watch_close(b);
    bc_cancel_watch_close(c);
    bc_cancel_watch *none = (void *)1;
    ck_assert_int_eq(bc_cancel_watch_open(&none, rt, NULL, count_up, NULL, &err), 0);
    ck_assert_ptr_null(none);
}
END_TEST

START_TEST(a_token_may_have_a_deadline)
{
    int count = 0;
    bc_cancel_watch *watch;
    ck_assert_int_eq(barchan_cancel_create(&token, &err), 0);
    ck_assert_int_eq(bc_cancel_watch_open(&watch, rt, token, count_up, &count, &err), 0);
    barchan_cancel_after(token, 1);
    barchan_cancel_after(token, INT64_MAX); /* moved away in time, or it has come and stays */
    barchan_cancel_after(token, 20);
    ck_assert_int_eq(bc_runtime_wait(rt, &count, &err), 0);
    ck_assert_int_eq(barchan_cancel_triggered(token), 1);
    barchan_cancel_after(token, 60000);
    ck_assert_int_eq(barchan_cancel_triggered(token), 1);
    bc_cancel_watch_close(watch);
    barchan_cancel_release(token);
    ck_assert_int_eq(barchan_cancel_create(&token, &err), 0);
    barchan_cancel_after(token, INT64_MAX);
    ck_assert_int_eq(barchan_cancel_triggered(token), 0);
    barchan_cancel_after(token, -5);
    ck_assert_int_eq(barchan_cancel_triggered(token), 1);
    barchan_cancel_after(NULL, 5);
    barchan_cancel_release(token);
}
END_TEST

/* ---- deadlines from two threads ---- */

static pthread_t second;
static int second_wanted, second_runs;

static void *set_soon(void *ud)
{
    barchan_cancel_after(ud, 1);
    return NULL;
}

/* The library's, with a moment before it in which another thread sets the same token: all of it,
 * unless it has to wait for the first. */
int timerfd_settime(int fd, int flags, const struct itimerspec *spec, struct itimerspec *old)
{
    if (second_wanted) {
        second_wanted = 0;
        second_runs = pthread_create(&second, NULL, set_soon, token) == 0;
        usleep(50000);
    }
    return (int)syscall(SYS_timerfd_settime, fd, flags, spec, old);
}

/* The second thread is the last that sets it: its deadline holds, for the flag and for who waits.
 */
START_TEST(deadlines_of_two_threads_do_not_mix)
{
    int woken = 0;
    bc_cancel_watch *watch;
    ck_assert_int_eq(barchan_cancel_create(&token, &err), 0);
    ck_assert_int_eq(bc_cancel_watch_open(&watch, rt, token, count_up, &woken, &err), 0);
    second_wanted = 1;
    barchan_cancel_after(token, 60000);
    ck_assert_int_eq(second_runs, 1);
    pthread_join(second, NULL);
    int64_t limit = bc_clock_ms() + 20000; /* the first thread's is a minute */
    while (!woken && bc_clock_ms() < limit) {
        barchan_runtime_pump(rt, 100, &err);
    }
    ck_assert_int_eq(woken, 1);
    ck_assert_int_eq(barchan_cancel_triggered(token), 1);
    bc_cancel_watch_close(watch);
    barchan_cancel_release(token);
}
END_TEST

/* One that was read as set stays set, also for those that wait, whatever deadline follows. */
START_TEST(a_deadline_that_was_seen_stays)
{
    int woken = 0;
    bc_cancel_watch *watch;
    ck_assert_int_eq(barchan_cancel_create(&token, &err), 0);
    barchan_cancel_after(token, 1);
    while (!barchan_cancel_triggered(token)) {}
    barchan_cancel_after(token, 60000);
    ck_assert_int_eq(bc_cancel_watch_open(&watch, rt, token, count_up, &woken, &err), 0);
    ck_assert_int_eq(bc_runtime_wait(rt, &woken, &err), 0);
    bc_cancel_watch_close(watch);
    barchan_cancel_release(token);
}
END_TEST

static int in_a_child(void (*act)(barchan_cancel *))
{
    int status, pid = fork();
    if (pid == 0) {
        act(token);
        int set = barchan_cancel_triggered(token);
        barchan_cancel_release(token);
        _exit(set);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void set_far(barchan_cancel *cancel)
{
    barchan_cancel_after(cancel, 60000);
}

static void set_now(barchan_cancel *cancel)
{
    barchan_cancel_after(cancel, 0);
}

START_TEST(a_child_leaves_its_parents_token_alone)
{
    int woken = 0;
    bc_cancel_watch *watch;
    ck_assert_int_eq(barchan_cancel_create(&token, &err), 0);
    ck_assert_int_eq(bc_cancel_watch_open(&watch, rt, token, count_up, &woken, &err), 0);
    ck_assert_int_eq(in_a_child(barchan_cancel_trigger), 1);
    ck_assert_int_eq(in_a_child(set_now), 1);
    barchan_runtime_pump(rt, 20, &err);
    ck_assert_int_eq(woken, 0);
    ck_assert_int_eq(barchan_cancel_triggered(token), 0);
    barchan_cancel_after(token, 20);
    ck_assert_int_eq(in_a_child(set_far), 0);
    ck_assert_int_eq(bc_runtime_wait(rt, &woken, &err), 0); /* at the parent's time */
    ck_assert_int_eq(barchan_cancel_triggered(token), 1);
    bc_cancel_watch_close(watch);
    barchan_cancel_release(token);
}
END_TEST

START_TEST(bad_arguments_are_errors)
{
    ck_assert_int_eq(barchan_cancel_create(NULL, &err), BARCHAN_EINVAL);
    ck_assert_int_eq(barchan_cancel_triggered(NULL), 0);
    barchan_cancel_release(NULL);
    barchan_cancel_trigger(NULL);
}
END_TEST

SUITE_MAIN("cancel", setup, teardown, a_token_wakes_every_watch_once_also_from_a_signal,
           a_token_may_have_a_deadline, deadlines_of_two_threads_do_not_mix,
           a_deadline_that_was_seen_stays, a_child_leaves_its_parents_token_alone,
           bad_arguments_are_errors)
