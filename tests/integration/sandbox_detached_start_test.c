/* Connecting to a detached sandbox and creating one, without waiting and by what is no holder. */
#include "detached_support.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct outcome {
    int done;
    char id[24];
    barchan_error err;
};

static void on_connected(barchan_sandbox *connected, const barchan_error *err, void *ud)
{
    struct outcome *o = ud;
    (void)connected;
    o->done++;
    if (err != NULL) o->err = *err;
}

static void on_created(const char *id, const barchan_error *err, void *ud)
{
    struct outcome *o = ud;
    o->done++;
    if (id != NULL) snprintf(o->id, sizeof o->id, "%s", id);
    if (err != NULL) o->err = *err;
}

static int is_done(void *ud)
{
    return ((struct outcome *)ud)->done > 0;
}

START_TEST(connecting_later)
{
    struct outcome o = {0}, dropped = {0}, late = {0};
    barchan_sandbox *other;
    ck_assert_int_eq(
        barchan_sandbox_connect_start(&other, rt, holder.id, 0, on_connected, &o, NULL), 0);
    ck_assert_int_eq(o.done, 0);
    ck_assert_int_eq(status_of(other).state, BARCHAN_SANDBOX_STARTING);
    ck_assert(wait_until(is_done, &o, 20000));
    ck_assert_int_eq(o.err.code, 0);
    barchan_sandbox_destroy(other);
    ck_assert_int_eq(
        barchan_sandbox_connect_start(&other, rt, holder.id, 0, on_connected, &dropped, NULL), 0);
    barchan_sandbox_destroy(other);
    ck_assert_int_eq(dropped.done, 1);
    ck_assert_int_eq(dropped.err.code, BARCHAN_ECANCELLED);
    kill(holder.pid, SIGSTOP); /* it does not answer, and is not hurt */
    ck_assert_int_eq(
        barchan_sandbox_connect_start(&other, rt, holder.id, 100, on_connected, &late, NULL), 0);
    ck_assert(wait_until(is_done, &late, 20000));
    ck_assert_int_eq(late.err.code, BARCHAN_ETIMEDOUT);
    kill(holder.pid, SIGCONT);
    barchan_sandbox_destroy(other);
    sh_says("echo here", "here\n");
}
END_TEST

static struct outcome create_by(const char *program, const char *profile)
{
    struct outcome o = {0};
    barchan_error err = {0};
    const barchan_detached_options options = {
        .struct_size = sizeof options, .program = program, .profile_json = profile};
    int rc = barchan_detached_create_start(rt, &options, on_created, &o, &err);
    ck_assert_msg(rc == 0, "%s", err.message);
    ck_assert_int_eq(o.done, 0);
    ck_assert(wait_until(is_done, &o, 40000));
    return o;
}

START_TEST(programs_that_are_no_holder)
{
    barchan_error err = {0};
    struct outcome o = create_by("/bin/true", NULL);
    ck_assert_int_eq(o.err.code, BARCHAN_ELOST);
    ck_assert_str_eq(o.err.where, "detached.create");
    const barchan_detached_options none = {.struct_size = sizeof none, .program = "/no/such"};
    ck_assert_int_eq(barchan_detached_create_start(rt, &none, on_created, &o, &err),
                     BARCHAN_ENOTFOUND);
    const barchan_detached_options found = {.struct_size = sizeof found};
    setenv("PATH", "/no/such/folder", 1);
    ck_assert_int_eq(barchan_detached_create_start(rt, &found, on_created, &o, &err),
                     BARCHAN_ENOTFOUND);
    ck_assert_ptr_nonnull(strstr(err.message, "BARCHAN_PROGRAM"));
    ck_assert_int_eq(barchan_detached_create_start(rt, &found, NULL, NULL, &err), BARCHAN_EINVAL);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sandbox_detached_start");
    const TTest *const tests[] = {connecting_later, programs_that_are_no_holder, NULL};
    add_tests(suite, "detached_start", setup_connected, teardown_connected, tests);
    return run_suite(suite);
}
