/* Calling a script's functions: JSON in and out, side by side, cancelled, from callbacks. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "engine_support.h"

START_TEST(json_goes_in_and_out)
{
    load("return { double = function(t) return { n = t.n * 2, list = t.list, x = t.x } end,"
         "         nothing = function() end, fails = function() return nil, 'no luck' end }");
    expect("double", "{\"n\":21,\"list\":[],\"x\":null}", "{\"list\":[],\"n\":42,\"x\":null}");
    expect("nothing", NULL, "null");
    ck_assert_int_eq(barchan_engine_call(engine, "fails", NULL, NULL, NULL, &err), BARCHAN_ESCRIPT);
    ck_assert_str_eq(err.message, "no luck");
    ck_assert_int_eq(barchan_engine_call(engine, "absent", NULL, NULL, NULL, &err),
                     BARCHAN_ENOTFOUND);
    ck_assert_int_eq(barchan_engine_call(engine, "double", "{", NULL, NULL, &err), BARCHAN_EINVAL);
}
END_TEST

START_TEST(a_script_error_has_its_place_and_a_traceback)
{
    load("local function inner() error 'broken' end\n"
         "return { f = function() inner() end, g = function() error({ code = 'not_found', message "
         "= 'gone' }) end }");
    ck_assert_int_eq(barchan_engine_call(engine, "f", NULL, NULL, NULL, &err), BARCHAN_ESCRIPT);
    ck_assert_ptr_nonnull(strstr(err.message, "test:1: broken"));
    ck_assert_ptr_nonnull(strstr(err.message, "traceback"));
    ck_assert_int_eq(barchan_engine_call(engine, "g", NULL, NULL, NULL, &err), BARCHAN_ENOTFOUND);
    ck_assert_str_eq(err.message, "gone");
    const char bad[] = "return {";
    ck_assert_int_eq(barchan_engine_load_string(engine, "=bad", bad, strlen(bad), &err),
                     BARCHAN_ESCRIPT);
    ck_assert_ptr_nonnull(strstr(err.message, "bad:1:"));
    ck_assert_int_eq(barchan_engine_call(engine, "f", NULL, NULL, NULL, &err), BARCHAN_ESCRIPT);
}
END_TEST

START_TEST(print_and_events_reach_the_host)
{
    load("return { hello = function() print('a', 1, nil) end }");
    barchan_free(call("hello", NULL));
    ck_assert_str_eq(printed, "a\t1\tnil\n");
}
END_TEST

START_TEST(started_calls_run_side_by_side)
{
    struct outcome slow = {0}, fast = {0};
    load(
        "local b = require 'barchan' local go = false return { fast = function() b.sleep(0.01)"
        " return 'fast' end, slow = function() while not go do b.sleep(0.01) end return 'slow' end,"
        " release = function() go = true end }");
    ck_assert_int_eq(barchan_engine_start(engine, "slow", NULL, NULL, on_done, &slow, &err), 0);
    ck_assert_int_eq(barchan_engine_start(engine, "fast", NULL, NULL, on_done, &fast, &err), 0);
    ck_assert_int_eq(slow.called + fast.called, 0);
    pump_until(&fast.called);
    ck_assert_int_eq(slow.called, 0);
    barchan_free(call("release", NULL));
    pump_until(&slow.called);
    ck_assert_str_eq(fast.result, "\"fast\"");
    ck_assert_int_eq(fast.called, 1);
}
END_TEST

static void *trigger_later(void *ud)
{
    usleep(20000);
    barchan_cancel_trigger(ud);
    return NULL;
}

START_TEST(a_token_cancels_from_another_thread)
{
    barchan_cancel *cancel;
    pthread_t thread;
    load("local b = require 'barchan' return { nap = function() pcall(b.sleep, 60) b.sleep(60) end,"
         " fine = function() return 1 end }");
    ck_assert_int_eq(barchan_cancel_create(&cancel, &err), 0);
    pthread_create(&thread, NULL, trigger_later, cancel);
    ck_assert_int_eq(barchan_engine_call(engine, "nap", NULL, cancel, NULL, &err),
                     BARCHAN_ECANCELLED);
    pthread_join(thread, NULL);
    barchan_cancel_release(cancel);
    expect("fine", NULL, "1");
}
END_TEST

static struct outcome second;

static void start_second(const char *text, size_t len, void *ud)
{
    (void)text, (void)len, (void)ud;
    ck_assert_int_eq(barchan_engine_start(engine, "second", NULL, NULL, on_done, &second, &err), 0);
}

START_TEST(a_call_that_a_callback_starts_is_a_call_of_its_own)
{
    reopen_engine(&(barchan_engine_options){.struct_size = sizeof(barchan_engine_options),
                                            .on_print = start_second});
    load("local b = require 'barchan' return { first = function() print 'x' end, second = "
         "function() "
         "b.sleep(0.05) return 'lived' end }");
    barchan_free(call("first", NULL));
    pump_until(&second.called);
    ck_assert_str_eq(second.result, "\"lived\"");
}
END_TEST

static int nested_code;

static int call_inside(barchan_engine *e, uint64_t id, const char *args, size_t len, void *ud)
{
    (void)args, (void)len, (void)ud;
    nested_code = barchan_engine_call(e, "other", NULL, NULL, NULL, NULL);
    return barchan_engine_answer(e, id, "ok", 2, 0, NULL);
}

START_TEST(a_blocking_call_inside_a_callback_is_busy)
{
    add_tool("inside", call_inside, NULL);
    load("local b = require 'barchan' local tools = b.toolset { b.host.tools[1] }\n"
         "return { go = function() return tools:dispatch({ id = 'x', name = 'inside', arguments = {"
         " n = 1 } }).content end, other = function() end }");
    expect("go", NULL, "\"ok\"");
    ck_assert_int_eq(nested_code, BARCHAN_EBUSY);
    for (int i = 0; i < 5; i++)
        barchan_runtime_pump(rt, 0, &err);
}
END_TEST

SUITE_MAIN("engine_calls", engine_setup, engine_teardown, json_goes_in_and_out,
           a_script_error_has_its_place_and_a_traceback, print_and_events_reach_the_host,
           started_calls_run_side_by_side, a_token_cancels_from_another_thread,
           a_call_that_a_callback_starts_is_a_call_of_its_own,
           a_blocking_call_inside_a_callback_is_busy)
