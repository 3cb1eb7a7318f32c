/* Calls end when they are to, whatever their tasks do instead of waiting. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "engine_support.h"

static void open_restless(int64_t call_limit_ms)
{
    reopen_engine(&(barchan_engine_options){.struct_size = sizeof(barchan_engine_options),
                                            .script_dirs = (const char *[]){TEST_DATA, NULL},
                                            .library = BARCHAN_LIBRARY_SAFE,
                                            .slice_limit_ms = 20000,
                                            .call_limit_ms = call_limit_ms});
    ck_assert_msg(barchan_engine_load_file(engine, "restless.lua", &err) == 0, "%s", err.message);
}

/* Its turn may come late, after all that ends: then it is called again. */
static long number(const char *function)
{
    char *text = NULL;
    int rc;
    do {
        rc = barchan_engine_call(engine, function, NULL, NULL, &text, &err);
    } while (rc == BARCHAN_ETIMEDOUT);
    ck_assert_msg(rc == 0, "%s", err.message);
    long value = strtol(text, NULL, 10);
    barchan_free(text);
    return value;
}

/* What the call has left behind has ended as well, after a while at the most. */
static void all_is_quiet(long before)
{
    long last, now = number("ticks");
    ck_assert_int_gt(now, before);
    do {
        last = now;
        for (int i = 0; i < 100; i++)
            ck_assert_int_ge(barchan_runtime_pump(rt, 1, &err), 0);
        now = number("ticks");
    } while (now != last);
}

static char *argument(int i)
{
    static char text[16];
    snprintf(text, sizeof text, "%d", i);
    return text;
}

START_TEST(by_the_limit_of_calls)
{
    open_restless(200);
    for (int i = 1, n = (int)number("count"); i <= n; i++) {
        long before = number("ticks");
        expect_error("run", argument(i), BARCHAN_ETIMEDOUT, "the call took longer than 0.2 s");
        all_is_quiet(before);
    }
}
END_TEST

START_TEST(by_a_token)
{
    open_restless(0);
    for (int i = 1, n = (int)number("count"); i <= n; i++) {
        barchan_cancel *cancel;
        long before = number("ticks");
        ck_assert_int_eq(barchan_cancel_create(&cancel, &err), 0);
        barchan_cancel_after(cancel, 200);
        ck_assert_int_eq(barchan_engine_call(engine, "run", argument(i), cancel, NULL, &err),
                         BARCHAN_ECANCELLED);
        barchan_cancel_release(cancel);
        all_is_quiet(before);
    }
}
END_TEST

START_TEST(by_a_tools_timeout)
{
    open_restless(0);
    for (int i = 1, n = (int)number("count"); i <= n; i++) {
        long before = number("ticks");
        char *result = call("tool", argument(i));
        ck_assert_msg(strstr(result, "[true,") != NULL && strstr(result, "0.2 s") != NULL, "%s",
                      result);
        barchan_free(result);
        all_is_quiet(before);
    }
}
END_TEST

START_TEST(with_their_engine)
{
    open_restless(0);
    for (int i = 1, n = (int)number("count"); i <= n; i++) {
        struct outcome outcome = {0};
        ck_assert_int_eq(
            barchan_engine_start(engine, "run", argument(i), NULL, on_done, &outcome, &err), 0);
        for (int turn = 0; turn < 20; turn++)
            ck_assert_int_ge(barchan_runtime_pump(rt, 1, &err), 0);
        open_restless(0);
        ck_assert_int_eq(outcome.code, BARCHAN_ECANCELLED);
    }
}
END_TEST

SUITE_MAIN("engine_ends", engine_setup, engine_teardown, by_the_limit_of_calls, by_a_token,
           by_a_tools_timeout, with_their_engine)
