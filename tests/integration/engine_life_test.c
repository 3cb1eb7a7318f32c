/* Engines come and go, before and after their runtime. */
#include <stdlib.h>
#include <string.h>
#include "engine_support.h"

START_TEST(destroy_ends_calls_and_runs_what_is_to_be_closed)
{
    struct outcome outcome = {0};
    load(
        "local b = require 'barchan' return { nap = function() local c <close> = setmetatable({}, {"
        " __close = function() print 'closed' end }) b.sleep(60) end }");
    ck_assert_int_eq(barchan_engine_start(engine, "nap", NULL, NULL, on_done, &outcome, &err), 0);
    while (barchan_runtime_pump(rt, 0, &err) > 0) {}
    barchan_engine_destroy(engine);
    ck_assert_int_eq(outcome.called, 1);
    ck_assert_int_eq(outcome.code, BARCHAN_ECANCELLED);
    ck_assert_str_eq(printed, "closed\n");
    open_engine(BARCHAN_LIBRARY_SAFE, 0);
}
END_TEST

START_TEST(the_runtime_may_be_destroyed_first)
{
    struct outcome outcome = {0};
    barchan_runtime *own;
    barchan_engine *left;
    ck_assert_int_eq(barchan_runtime_create(&own, NULL, &err), 0);
    ck_assert_int_eq(barchan_engine_create(&left, own, NULL, &err), 0);
    const char text[] = "local b = require 'barchan' return { nap = function() b.sleep(60) end }";
    ck_assert_int_eq(barchan_engine_load_string(left, "=s", text, strlen(text), &err), 0);
    ck_assert_int_eq(barchan_engine_start(left, "nap", NULL, NULL, on_done, &outcome, &err), 0);
    barchan_runtime_pump(own, 0, &err);
    barchan_runtime_destroy(own);
    ck_assert_int_eq(outcome.called, 1);
    ck_assert_int_eq(outcome.code, BARCHAN_ECANCELLED);
    ck_assert_int_eq(barchan_engine_call(left, "nap", NULL, NULL, NULL, &err), BARCHAN_ECLOSED);
    barchan_engine_destroy(left);
}
END_TEST

START_TEST(a_run_that_is_destroyed_still_tells_its_end)
{
    struct outcome outcome = {0};
    load("local b = require 'barchan' local model = setmetatable({}, { __index = { complete = "
         "function() "
         "b.sleep(60) end } }) return { f = function() return b.agent({ model = model }):run 'q' "
         "end }");
    ck_assert_int_eq(barchan_engine_start(engine, "f", NULL, NULL, on_done, &outcome, &err), 0);
    for (int i = 0; i < 5; i++)
        barchan_runtime_pump(rt, 0, &err);
    ck_assert_ptr_nonnull(strstr(events, "turn_started"));
    barchan_engine_destroy(engine);
    ck_assert_ptr_nonnull(strstr(events, "run_finished"));
    open_engine(BARCHAN_LIBRARY_SAFE, 0);
}
END_TEST

START_TEST(many_engines_come_and_go)
{
    for (int i = 0; i < 200; i++) {
        barchan_engine_destroy(engine);
        open_engine(i % 2 ? BARCHAN_LIBRARY_FULL : BARCHAN_LIBRARY_SAFE, 0);
        load("local b = require 'barchan' return { v = function() return b.version end }");
        barchan_free(call("v", NULL));
    }
}
END_TEST

SUITE_MAIN("engine_life", engine_setup, engine_teardown,
           destroy_ends_calls_and_runs_what_is_to_be_closed, the_runtime_may_be_destroyed_first,
           a_run_that_is_destroyed_still_tells_its_end, many_engines_come_and_go)
