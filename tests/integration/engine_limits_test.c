/* What an engine takes from its host: memory and time, and never more. */
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "engine_support.h"

START_TEST(memory_is_capped_and_the_engine_goes_on)
{
    load("return { bomb = function() local t = {} while true do t[#t + 1] = ('x'):rep(1000) .. #t "
         "end end, fine = function() return 1 end }");
    ck_assert_int_eq(barchan_engine_call(engine, "bomb", NULL, NULL, NULL, &err), BARCHAN_ENOMEM);
    expect("fine", NULL, "1");
}
END_TEST

/* Scripts that run away, each in its own way. */
START_TEST(a_script_that_runs_away_is_stopped)
{
    static const char *const bodies[] = {
        "while true do end",
        "while true do pcall(function() while true do end end) end",
        "local function f() return f() end f()",
        "repeat local ok = xpcall(function() while true do end end, function() while true do end "
        "end) until false",
        "while true do coroutine.wrap(function() while true do end end)() end",
        "while true do pcall(coroutine.wrap(function() while true do end end)) end",
        "local t = setmetatable({}, { __index = function() while true do end end }) return t.x",
        "table.sort({ 3, 2, 1 }, function() while true do end end)",
        "('x'):gsub('x', function() while true do end end)",
        "return ('').rep('', 1 << 60)",
        "table.move({}, 1, 1 << 60, 2)",
        "return ((' '):rep(1 << 20) .. 'x'):gsub('%s+$', '')",
        "return ('a'):rep(1 << 20):find(('a-'):rep(20) .. 'b')",
        "return ('('):rep(1 << 22):find('%b()')",
        "for _ in ('a'):rep(1 << 20):gmatch('.-.-.-b') do end",
        "table.move({}, -1 << 62, 1 << 62, 2)",
        "load(function() while true do end end)",
        "for _ in function() while true do end end do end",
        "local x <close> = setmetatable({}, { __close = function() while true do end end })",
        "error(setmetatable({}, { __tostring = function() while true do end end }))",
        "local b = require 'barchan' b.spawn(function() while true do end end):wait() while true "
        "do "
        "end",
    };
    barchan_engine_options options = {
        .struct_size = sizeof options, .slice_limit_ms = 100, .on_print = keep_print};
    reopen_engine(&options);
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        char script[512];
        snprintf(script, sizeof script,
                 "return { f = function() %s end, g = function() return 1 end }", bodies[i]);
        load(script);
        int rc = barchan_engine_call(engine, "f", NULL, NULL, NULL, &err);
        ck_assert_msg(rc < 0 || strstr(bodies[i], "<close>") || strstr(bodies[i], "load("), "%s",
                      bodies[i]);
        expect("g", NULL, "1");
    }
    load("return { f = function() while true do end end }");
    ck_assert_int_eq(barchan_engine_call(engine, "f", NULL, NULL, NULL, &err), BARCHAN_ETIMEDOUT);
    ck_assert_ptr_nonnull(strstr(err.message, "0.1 s"));
}
END_TEST

/* In one call of C what is long is gone through again and again. */
START_TEST(one_call_in_C_does_not_run_on)
{
    static const char script[] =
        "local function long(ends) return ('1'):rep(1 << 20):rep(9) .. ends end\n"
        "local function many(n, a, b) local t = {} for i = 1, n do t[i] = i % 2 == 0 and a or b "
        "end "
        "return t end\n"
        "return { compare = function() table.sort(many(500, long '1', long '2')) end,\n"
        "  compare_by = function() table.sort(many(500, long '1', long '2'), rawequal) end,\n"
        "  compare_all = function() table.sort(many(1 << 20, 1, 2), math.ult) while true do end "
        "end,\n"
        "  format = function() local s = long '' return "
        "('%g'):rep(400):format(table.unpack(many(400, "
        "s, s))) end,\n"
        "  pack = function() local s = long '' return ('d'):rep(400):pack(table.unpack(many(400, "
        "s, "
        "s))) end,\n"
        "  max = function() local s = long '' return math.max(table.unpack(many(400, s, s))) end,\n"
        "  date = function() return #os.date(('%c'):rep(1 << 20)) end,\n"
        "  liar = function() local n = 0 table.remove(setmetatable({}, { __len = function()\n"
        "    n = n + 1 return n == 1 and 1 or math.maxinteger end }), 1) end,\n"
        "  named = function() string.format('%d', 'x') end,\n"
        "  order = function() local t = { 3, 'b', 1 } local ok, why = pcall(table.sort, t) return "
        "why "
        "end,\n"
        "  sorted = function() local t = { 'c', 'a', 'b' } table.sort(t) return table.concat(t) .. "
        "string.format('%s%d', 'x', '12') .. math.max(2, 10) .. string.char(65, '66') end }";
    static const struct {
        const char *name;
        int rc;
        const char *words;
    } cases[] = {{"compare", BARCHAN_ETIMEDOUT, "without waiting"},
                 {"compare_by", BARCHAN_ETIMEDOUT, "without waiting"},
                 {"compare_all", BARCHAN_ETIMEDOUT, "without waiting"},
                 {"format", BARCHAN_ESCRIPT, "texts of more than 256 MB"},
                 {"pack", BARCHAN_ESCRIPT, "texts of more than 256 MB"},
                 {"max", BARCHAN_ESCRIPT, "texts of more than 256 MB"},
                 {"date", BARCHAN_ESCRIPT, "the format is too long"},
                 {"liar", BARCHAN_ESCRIPT, "__len"},
                 {"named", BARCHAN_ESCRIPT, "test:12: bad argument #2 to 'format'"}};
    reopen_engine(&(barchan_engine_options){.struct_size = sizeof(barchan_engine_options),
                                            .slice_limit_ms = 200});
    load(script);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int rc = barchan_engine_call(engine, cases[i].name, NULL, NULL, NULL, &err);
        ck_assert_msg(rc == cases[i].rc && strstr(err.message, cases[i].words) != NULL, "%s: %d %s",
                      cases[i].name, rc, err.message);
    }
    expect("order", NULL, "\"attempt to compare string with number\"");
    expect("sorted", NULL, "\"abcx1210AB\"");
}
END_TEST

/* What a coroutine left to be closed is closed in it when it was stopped, and there stopped again.
 */
START_TEST(coroutines_of_the_full_library_are_stopped)
{
    static const char script[] =
        "local function f() local _ <close> = setmetatable({}, { __close = function() while true "
        "do "
        "end end }) while true do end end\n"
        "return { wrap = function() coroutine.wrap(f)() end,\n"
        "  close = function() local co = coroutine.create(f)\n"
        "    local _ <close> = setmetatable({}, { __close = function() coroutine.close(co) end })\n"
        "    coroutine.resume(co) while true do end end }";
    for (int by_token = 0; by_token < 2; by_token++) {
        reopen_engine(&(barchan_engine_options){.struct_size = sizeof(barchan_engine_options),
                                                .library = BARCHAN_LIBRARY_FULL,
                                                .slice_limit_ms = by_token ? 0 : 100});
        load(script);
        for (int i = 0; i < 2; i++) {
            barchan_cancel *cancel;
            ck_assert_int_eq(barchan_cancel_create(&cancel, &err), 0);
            if (by_token) barchan_cancel_after(cancel, 100);
            int rc = barchan_engine_call(engine, i ? "close" : "wrap", NULL, cancel, NULL, &err);
            ck_assert_int_eq(rc, by_token ? BARCHAN_ECANCELLED : BARCHAN_ETIMEDOUT);
            barchan_cancel_release(cancel);
        }
    }
}
END_TEST

/* An instruction goes through all of a long string, which takes milliseconds: of such there are not
 * hundreds between two looks at the clock, wherever they are done. */
START_TEST(long_strings_are_looked_at_often)
{
    static const char script[] =
        "local s, n = '0', 0\n"
        "local function grow() s = ('0'):rep(1 << 20):rep(16) end\n"
        "local function work() while true do n = n + 1 local x = -s end end\n"
        "local function left_open() return setmetatable({}, { __close = work }) end\n"
        "local function waiting() local _ <close> = left_open() while true do coroutine.yield() "
        "end end\n"
        "local function begun(f) local co = coroutine.create(f) coroutine.resume(co) return co "
        "end\n"
        "return { here = function() grow() work() end,\n"
        "  caught = function() grow() while true do pcall(work) end end,\n"
        "  within = function() local co = begun(function() coroutine.yield() work() end)\n"
        "    grow() coroutine.resume(co) end,\n"
        "  ending = function() local _ <close> = left_open() grow() work() end,\n"
        "  closing = function() local co = begun(waiting) grow() coroutine.close(co) end,\n"
        "  closed_anew = function() local co = begun(function()\n"
        "    local _ <close> = setmetatable({}, { __close = function() grow() work() end }) "
        "coroutine.yield() end)\n"
        "    coroutine.close(co) end,\n"
        "  given_up = function() local b = require 'barchan' local t = b.spawn(waiting)\n"
        "    b.sleep(0) grow() t:cancel() b.sleep(0) end,\n"
        "  anew = function() grow() local t while true do n = n + 1 t = s .. n end end,\n"
        "  count = function() local m = n n, s = 0, '0' collectgarbage() return m end }";
    static const char *const ways[] = {"here",    "caught",      "within",   "ending",
                                       "closing", "closed_anew", "given_up", "anew"};
    barchan_engine_options options = {
        .struct_size = sizeof options, .library = BARCHAN_LIBRARY_SAFE, .slice_limit_ms = 100};
    reopen_engine(&options);
    load(script);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        barchan_engine_call(engine, ways[i], NULL, NULL, NULL, &err);
        char *text = call("count", NULL);
        ck_assert_msg(atoi(text) > 0 && atoi(text) < 100, "%s: %s", ways[i], text);
        barchan_free(text);
    }
}
END_TEST

enum { OTHERS = 8 };

/* A script is limited by the time that it runs, not by that of others. */
START_TEST(a_busy_machine_stops_no_script)
{
    cpu_set_t here;
    pid_t others[OTHERS];
    barchan_engine_options options = {.struct_size = sizeof options, .slice_limit_ms = 500};
    CPU_ZERO(&here);
    CPU_SET(sched_getcpu(), &here);
    ck_assert_int_eq(sched_setaffinity(0, sizeof here, &here), 0);
    for (int i = 0; i < OTHERS; i++) {
        others[i] = fork();
        ck_assert_int_ge(others[i], 0);
        if (others[i] > 0) continue;
        alarm(30);
        for (;;) {}
    }
    reopen_engine(&options);
    load("return { f = function() local c = os.clock() while os.clock() - c < 0.1 do end return 1 "
         "end }");
    expect("f", NULL, "1");
    for (int i = 0; i < OTHERS; i++) {
        kill(others[i], SIGKILL);
        waitpid(others[i], NULL, 0);
    }
}
END_TEST

START_TEST(what_is_to_be_closed_is_closed_after_a_stop)
{
    barchan_engine_options options = {
        .struct_size = sizeof options, .slice_limit_ms = 50, .on_print = keep_print};
    reopen_engine(&options);
    load("return { f = function() local c <close> = setmetatable({}, { __close = function() for i "
         "= 1,"
         " 50000 do end print 'closed' end }) while true do end end }");
    ck_assert_int_eq(barchan_engine_call(engine, "f", NULL, NULL, NULL, &err), BARCHAN_ETIMEDOUT);
    ck_assert_str_eq(printed, "closed\n");
}
END_TEST

START_TEST(a_tool_that_runs_away_is_an_error_result)
{
    reopen_engine(NULL);
    load("local b = require 'barchan' local tools = b.toolset { { name = 'spin', description = '', "
         "run"
         " = function() while true do end end } } return { f = function() local m = "
         "tools:dispatch({ id"
         " = '1', name = 'spin', arguments = {} }) return { m.is_error, m.content } end }");
    char *result = call("f", NULL);
    ck_assert_ptr_nonnull(strstr(result, "[true,\"the script ran for 1 s without waiting"));
    barchan_free(result);
}
END_TEST

START_TEST(running_time_in_all_is_limited_waits_are_not_counted)
{
    barchan_engine_options options = {
        .struct_size = sizeof options, .slice_limit_ms = 1000, .total_limit_ms = 300};
    reopen_engine(&options);
    load("local b = require 'barchan' return { naps = function() for i = 1, 5 do b.sleep(0.1) end "
         "return 1 end, works = function() while true do for i = 1, 100000 do end b.sleep(0) end "
         "end }");
    expect("naps", NULL, "1");
    ck_assert_int_eq(barchan_engine_call(engine, "works", NULL, NULL, NULL, &err),
                     BARCHAN_ETIMEDOUT);
    ck_assert_ptr_nonnull(strstr(err.message, "0.3 s of running time"));
}
END_TEST

/* A few kilobytes more each time: memory runs out at every place of the start, of a call, of an
 * error and of the end. The host lives through all of them. */
START_TEST(memory_may_run_out_anywhere)
{
    static const char script[] =
        "local b = require 'barchan'\n"
        "return { go = function(t) local x <close> = setmetatable({}, { __close = function() end "
        "})\n"
        "  local more = ('y'):rep(60000)\n" /* a call may need more than loading did */
        "  local r = b.gather { function() return b.json.encode(t) end, function() b.sleep(0) "
        "error("
        "'x') end, function() error({ code = 'not_found', message = ('m'):rep(100) }) end }\n"
        "  return { r[1].value, tostring(r[2].error), r[3].ok, b.toolset { 'exec' }:declarations() "
        "}"
        "end }";
    int created = 0, loaded = 0, done = 0;
    barchan_engine_destroy(engine);
    for (size_t limit = 16 << 10; limit < 1200 << 10; limit += 3 << 10) {
        barchan_engine_options options = {.struct_size = sizeof options,
                                          .memory_limit_bytes = limit};
        if (barchan_engine_create(&engine, rt, &options, &err) < 0) {
            ck_assert_int_eq(err.code, BARCHAN_ENOMEM);
            continue;
        }
        created++;
        if (barchan_engine_load_string(engine, "=s", script, strlen(script), &err) == 0) {
            loaded++;
            if (barchan_engine_call(engine, "go", "{\"a\":[1,2,3]}", NULL, NULL, &err) == 0)
                done++;
            else
                ck_assert_int_lt(err.code, 0);
        }
        barchan_engine_destroy(engine);
    }
    ck_assert_int_gt(done, 10);
    ck_assert_int_gt(loaded, done);
    ck_assert_int_gt(created, loaded);
    open_engine(BARCHAN_LIBRARY_SAFE, 0);
}
END_TEST

SUITE_MAIN("engine_limits", engine_setup, engine_teardown, memory_is_capped_and_the_engine_goes_on,
           a_script_that_runs_away_is_stopped, one_call_in_C_does_not_run_on,
           coroutines_of_the_full_library_are_stopped, long_strings_are_looked_at_often,
           a_busy_machine_stops_no_script, what_is_to_be_closed_is_closed_after_a_stop,
           a_tool_that_runs_away_is_an_error_result,
           running_time_in_all_is_limited_waits_are_not_counted, memory_may_run_out_anywhere)
