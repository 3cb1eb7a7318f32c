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

/* A fifth of a second is enough for much. */
START_TEST(orderly)
{
    static const char script[] =
        "local b, saved = require 'barchan', 0\n"
        "return { save = function()\n"
        "  local _ <close> = setmetatable({}, { __close = function()\n"
        "    for i = 1, 50000 do saved = saved + (i == 50000 and 1 or 0) end end })\n"
        "  pcall(b.sleep, 60)\n"
        "  local list = {}\n"
        "  for i = 1, 5000 do table.insert(list, i) end\n"
        "  saved = saved + #b.json.decode(b.json.encode(list))\n"
        "  error 'done'\n"
        "end, saved = function() return saved end }";
    for (int by_token = 0; by_token < 2; by_token++) {
        barchan_cancel *cancel;
        open_restless(by_token ? 0 : 200);
        ck_assert_int_eq(barchan_cancel_create(&cancel, &err), 0);
        if (by_token) barchan_cancel_after(cancel, 200);
        load(script);
        int rc = barchan_engine_call(engine, "save", NULL, cancel, NULL, &err);
        ck_assert_int_eq(rc, by_token ? BARCHAN_ESCRIPT : BARCHAN_ETIMEDOUT);
        ck_assert_int_eq(number("saved"), 5001);
        barchan_cancel_release(cancel);
    }
}
END_TEST

START_TEST(an_agent_tells_its_end)
{
    static const char script[] =
        "local b, told = require 'barchan', {}\n"
        "return { run = function()\n"
        "  return b.agent { model = { complete = function()\n"
        "    local calls = {}\n"
        "    for i = 1, 20 do calls[i] = { id = 'c' .. i, name = 'wait', arguments = {} } end\n"
        "    return { tool_calls = calls } end },\n"
        "    tools = { { name = 'wait', run = function() b.sleep(60) end } },\n"
        "    on_event = function(e) told[e.type] = (told[e.type] or 0) + 1 end,\n"
        "  }:run('go').stop_reason\n"
        "end, told = function() return { told.tool_call, told.tool_result, told.run_finished } end "
        "}";
    open_restless(500);
    load(script);
    expect("run", NULL, "\"cancelled\"");
    expect("told", NULL, "[20,20,1]");
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
        long all = number("ticks");
        ck_assert_msg(all > 0 || i == n, "case %d", i); /* the last one only waits, at first */
        open_restless(0);
        ck_assert_int_eq(outcome.code, BARCHAN_ECANCELLED);
    }
}
END_TEST

SUITE_MAIN("engine_ends", engine_setup, engine_teardown, by_the_limit_of_calls, by_a_token,
           by_a_tools_timeout, orderly, an_agent_tells_its_end, with_their_engine)
