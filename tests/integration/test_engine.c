/* The engine as a host application uses it. */
#include <check.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <barchan/engine.h>

static barchan_runtime *rt;
static barchan_engine *engine;
static barchan_error err;
static char printed[4096], events[4096];

static void on_print(const char *text, size_t len, void *ud)
{
    (void)ud;
    strncat(printed, text, len < 1000 ? len : 1000);
}

static void on_event(const char *event, size_t len, void *ud)
{
    (void)ud;
    strncat(events, event, len < 1000 ? len : 1000);
}

static void open_engine(barchan_library library, size_t limit)
{
    static const char *const dirs[] = {"/tmp/barchan-no-such-dir", NULL};
    barchan_engine_options options = {.struct_size = sizeof options,
                                      .script_dirs = dirs,
                                      .library = library,
                                      .memory_limit_bytes = limit,
                                      .slice_limit_ms = 20000, /* sanitizers are slow */
                                      .on_print = on_print,
                                      .on_event = on_event};
    ck_assert_msg(barchan_engine_create(&engine, rt, &options, &err) == 0, "%s", err.message);
}

static void setup(void)
{
    ck_assert_int_eq(barchan_runtime_create(&rt, NULL, &err), 0);
    open_engine(BARCHAN_LIBRARY_SAFE, 0);
}

static void teardown(void)
{
    barchan_engine_destroy(engine);
    barchan_runtime_destroy(rt);
}

static void load(const char *text)
{
    int rc = barchan_engine_load_string(engine, "=test", text, strlen(text), &err);
    ck_assert_msg(rc == 0, "%s", err.message);
}

static char *call(const char *function, const char *args)
{
    char *result = NULL;
    int rc = barchan_engine_call(engine, function, args, NULL, &result, &err);
    ck_assert_msg(rc == 0, "%s", err.message);
    return result;
}

static void expect(const char *function, const char *args, const char *expected)
{
    char *result = call(function, args);
    ck_assert_str_eq(result, expected);
    barchan_free(result);
}

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

START_TEST(the_safe_library_has_no_way_out)
{
    load(
        "local function has(name) local v = _G; for k in name:gmatch('[^.]+') do v = v and v[k] end"
        " return v ~= nil end\n"
        "return { leaks = function() local out = {}\n"
        "  for _, n in ipairs { 'io', 'debug', 'package', 'loadfile', 'dofile', 'os.execute',"
        "    'os.exit', 'os.getenv', 'os.remove', 'os.rename', 'os.tmpname', 'os.setlocale',"
        "    'string.dump', 'warn' } do if has(n) then out[#out + 1] = n end end\n"
        "  for _, n in ipairs { 'io', 'debug', 'package' } do\n"
        "    if pcall(require, n) then out[#out + 1] = 'require ' .. n end end\n"
        "  if load('\\27Lua', 'x', 'b') then out[#out + 1] = 'bytecode' end\n"
        "  if pcall(setmetatable, {}, { __gc = print }) then out[#out + 1] = '__gc' end\n"
        "  if getmetatable('') ~= 'locked' then out[#out + 1] = 'strings' end\n"
        "  if pcall(collectgarbage, 'stop') then out[#out + 1] = 'gc stop' end\n"
        "  return table.concat(out, ' ') end,\n"
        "  works = function() return os.time() > 0 and load('return 1')() == 1\n"
        "    and require 'cjson'.encode { 1 } == '[1]' and utf8.char(233) == 'é'\n"
        "    and setmetatable({}, { __index = { a = 1 } }).a == 1 end }");
    expect("leaks", NULL, "\"\"");
    expect("works", NULL, "true");
}
END_TEST

START_TEST(memory_is_capped_and_the_engine_goes_on)
{
    load("return { bomb = function() local t = {} while true do t[#t + 1] = ('x'):rep(1000) .. #t "
         "end end, fine = function() return 1 end }");
    ck_assert_int_eq(barchan_engine_call(engine, "bomb", NULL, NULL, NULL, &err), BARCHAN_ENOMEM);
    expect("fine", NULL, "1");
}
END_TEST

/* The safe library's own pattern matcher against Lua's: random patterns over random subjects must
 * give the same results, or fail both. */
START_TEST(patterns_match_as_in_lua)
{
    static const char script[] =
        "local seed = 1\n"
        "local function random(n) seed = (seed * 1103515245 + 12345) % 2147483648 return seed // "
        "65536 % n + 1 end\n"
        "local pieces = { 'a', 'b', '.', '%a', '%d', '%S', '%w', '[ab]', '[^a]', '[%d-]', '[a-c]', "
        "'[]x]', '(', ')',"
        " '()', '*', '+', '-', '?', '^', '$', '%1', '%2', '%bab', '%f[%a]', '%f[%A]', '%.', ' ', "
        "'1', '%', '[', '%b' }\n"
        "local letters = { 'a', 'b', 'c', '1', ' ', '-', 'x', '.', 'ab', 'A', '\\0', '\\200' }\n"
        "local function text(from, most) local t = {} for i = 1, random(most) - 1 do t[i] = "
        "from[random(#from)] end"
        " return table.concat(t) end\n"
        "local function show(ok, ...) if not ok then return 'error' end local t = table.pack(...)"
        " for i = 1, t.n do t[i] = tostring(t[i]) end return table.concat(t, '|') end\n"
        "return { run = function(start) seed = start local out, sum = {}, 5381\n"
        "  for _ = 1, 4000 do\n"
        "    local s, p = text(letters, 14), text(pieces, 6)\n"
        "    local init, repl = random(20) - 10, text({ '<', '%0', '%1', '%%', '>', '%' }, 4)\n"
        "    local all = {}\n"
        "    local lines = { show(pcall(string.find, s, p, init)), show(pcall(string.match, s, p, "
        "init)),"
        " show(pcall(string.gsub, s, p, repl, random(4))), show(pcall(string.gsub, s, p, { a = "
        "'T', ['1'] = false })),"
        " show(pcall(string.gsub, s, p, function(a, b) return b or a ~= 'b' and 'F' or nil end)),"
        " show(pcall(string.find, s, p, init, true)),"
        " show(pcall(function() for a, b in string.gmatch(s, p) do all[#all + 1] = tostring(a) .. "
        "tostring(b) end"
        " return table.concat(all, ',') end)) }\n"
        "    local line = table.concat(lines, ';')\n"
        "    for i = 1, #line do sum = (sum * 33 + line:byte(i)) & 0xffffffff end\n"
        "    out[#out + 1] = sum\n"
        "  end return out end }";
    char *ours, *theirs;
    for (int seed = 1; seed <= 5; seed++) {
        char args[16];
        snprintf(args, sizeof args, "%d", seed * 7919);
        load(script);
        ours = call("run", args);
        barchan_engine_destroy(engine);
        open_engine(BARCHAN_LIBRARY_FULL, 0);
        load(script);
        theirs = call("run", args);
        size_t same = strspn(ours, ""); /* where they part, for the message */
        while (ours[same] != '\0' && ours[same] == theirs[same])
            same++;
        ck_assert_msg(strcmp(ours, theirs) == 0, "seed %s: they part after %zu bytes", args, same);
        barchan_free(ours);
        barchan_free(theirs);
        barchan_engine_destroy(engine);
        open_engine(BARCHAN_LIBRARY_SAFE, 0);
    }
}
END_TEST

/* Scripts that run away, each in its own way (security.md's kind U03). */
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
    barchan_engine_destroy(engine);
    barchan_engine_options options = {
        .struct_size = sizeof options, .slice_limit_ms = 100, .on_print = on_print};
    ck_assert_int_eq(barchan_engine_create(&engine, rt, &options, &err), 0);
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

START_TEST(what_is_to_be_closed_is_closed_after_a_stop)
{
    printed[0] = '\0';
    barchan_engine_destroy(engine);
    barchan_engine_options options = {
        .struct_size = sizeof options, .slice_limit_ms = 50, .on_print = on_print};
    ck_assert_int_eq(barchan_engine_create(&engine, rt, &options, &err), 0);
    load("return { f = function() local c <close> = setmetatable({}, { __close = function() for i "
         "= 1,"
         " 50000 do end print 'closed' end }) while true do end end }");
    ck_assert_int_eq(barchan_engine_call(engine, "f", NULL, NULL, NULL, &err), BARCHAN_ETIMEDOUT);
    ck_assert_str_eq(printed, "closed\n");
}
END_TEST

START_TEST(a_tool_that_runs_away_is_an_error_result)
{
    barchan_engine_destroy(engine);
    ck_assert_int_eq(barchan_engine_create(&engine, rt, NULL, &err), 0);
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
    barchan_engine_destroy(engine);
    barchan_engine_options options = {
        .struct_size = sizeof options, .slice_limit_ms = 1000, .total_limit_ms = 300};
    ck_assert_int_eq(barchan_engine_create(&engine, rt, &options, &err), 0);
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

START_TEST(print_and_events_reach_the_host)
{
    printed[0] = '\0';
    load("return { hello = function() print('a', 1, nil) end }");
    barchan_free(call("hello", NULL));
    ck_assert_str_eq(printed, "a\t1\tnil\n");
}
END_TEST

struct outcome {
    int called, code;
    char result[256];
};

static void on_done(const char *result, const barchan_error *error, void *ud)
{
    struct outcome *outcome = ud;
    outcome->called++;
    outcome->code = error != NULL ? error->code : 0;
    snprintf(outcome->result, sizeof outcome->result, "%s", result != NULL ? result : "");
}

START_TEST(started_calls_run_side_by_side)
{
    struct outcome slow = {0}, fast = {0};
    load("local b = require 'barchan' return { nap = function(s) b.sleep(s) return s end }");
    ck_assert_int_eq(barchan_engine_start(engine, "nap", "0.1", NULL, on_done, &slow, &err), 0);
    ck_assert_int_eq(barchan_engine_start(engine, "nap", "0.01", NULL, on_done, &fast, &err), 0);
    ck_assert_int_eq(slow.called + fast.called, 0);
    while (!fast.called)
        barchan_runtime_pump(rt, 1000, &err);
    ck_assert_int_eq(slow.called, 0);
    while (!slow.called)
        barchan_runtime_pump(rt, 1000, &err);
    ck_assert_str_eq(fast.result, "0.01");
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

START_TEST(destroy_ends_calls_and_runs_what_is_to_be_closed)
{
    struct outcome outcome = {0};
    printed[0] = '\0';
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

/* ---- tools of the host ---- */

static uint64_t waiting_id;
static char seen_args[256];

static int answer_now(barchan_engine *e, uint64_t id, const char *args, size_t len, void *ud)
{
    snprintf(seen_args, sizeof seen_args, "%.*s", (int)len, args);
    return barchan_engine_answer(e, id, ud, strlen(ud), 0, NULL);
}

static int answer_later(barchan_engine *e, uint64_t id, const char *args, size_t len, void *ud)
{
    (void)e, (void)args, (void)len, (void)ud;
    waiting_id = id;
    return 0;
}

static int answer_never(barchan_engine *e, uint64_t id, const char *args, size_t len, void *ud)
{
    (void)e, (void)id, (void)args, (void)len, (void)ud;
    return BARCHAN_EIO;
}

static void answer_posted(barchan_runtime *runtime, void *ud)
{
    (void)runtime, (void)ud;
    ck_assert_int_eq(barchan_engine_answer(engine, waiting_id, "late", 4, 1, &err), 0);
    ck_assert_int_eq(barchan_engine_answer(engine, waiting_id, "again", 5, 0, &err),
                     BARCHAN_ENOTFOUND);
}

static void *answer_from_thread(void *ud)
{
    (void)ud;
    usleep(10000);
    barchan_runtime_post(rt, answer_posted, NULL, NULL);
    return NULL;
}

static void add(const char *name, barchan_tool_fn fn, void *ud)
{
    barchan_tool tool = {.struct_size = sizeof tool,
                         .name = name,
                         .description = "d",
                         .parameters_json = "{\"type\":\"object\",\"properties\":{\"n\":{\"type\":"
                                            "\"integer\"}},\"required\":[\"n\"]}",
                         .call = fn,
                         .ud = ud};
    ck_assert_msg(barchan_engine_add_tool(engine, &tool, &err) == 0, "%s", err.message);
}

START_TEST(host_tools_answer_at_once_or_later_from_a_thread)
{
    pthread_t thread;
    static char done[] = "done";
    add("now", answer_now, done);
    add("later", answer_later, NULL);
    add("never", answer_never, NULL);
    load("local b = require 'barchan' local list = {}\n"
         "for i, t in ipairs(b.host.tools) do list[i] = t end\n"
         "local tools = b.toolset(list)\n"
         "return { call = function(c) c.id = 'x' local m = tools:dispatch(c)\n"
         "  return m.content .. '|' .. tostring(m.is_error) end }");
    expect("call", "{\"name\":\"now\",\"arguments\":{\"n\":1}}", "\"done|false\"");
    ck_assert_str_eq(seen_args, "{\"n\":1}");
    seen_args[0] = '\0';
    char *result = call("call", "{\"name\":\"now\",\"arguments\":{\"n\":\"1\"}}");
    ck_assert_ptr_nonnull(strstr(result, "integer expected"));
    ck_assert_str_eq(seen_args, ""); /* the schema kept it from the host */
    barchan_free(result);
    pthread_create(&thread, NULL, answer_from_thread, NULL);
    expect("call", "{\"name\":\"later\",\"arguments\":{\"n\":1}}", "\"late|true\"");
    pthread_join(thread, NULL);
    expect("call", "{\"name\":\"never\",\"arguments\":{\"n\":1}}",
           "\"the tool 'never' failed|true\"");
}
END_TEST

START_TEST(bad_tools_are_refused_with_the_reason)
{
    barchan_tool tool = {.struct_size = sizeof tool, .name = "a b", .call = answer_now};
    ck_assert_int_eq(barchan_engine_add_tool(engine, &tool, &err), BARCHAN_EINVAL);
    ck_assert_ptr_nonnull(strstr(err.message, "letters"));
    tool.name = "ab";
    tool.parameters_json = "{\"type\":\"string\"}";
    ck_assert_int_eq(barchan_engine_add_tool(engine, &tool, &err), BARCHAN_EINVAL);
    tool.parameters_json = "{";
    ck_assert_int_lt(barchan_engine_add_tool(engine, &tool, &err), 0);
    tool.parameters_json = NULL;
    tool.call = NULL;
    ck_assert_int_eq(barchan_engine_add_tool(engine, &tool, &err), BARCHAN_EINVAL);
    ck_assert_int_eq(barchan_engine_answer(engine, 0, "x", 1, 0, &err), BARCHAN_ENOTFOUND);
}
END_TEST

/* ---- what a safe script must not reach ---- */

START_TEST(safe_scripts_get_no_keys_files_or_commands)
{
    setenv("OPENAI_API_KEY", "sk-very-secret-key", 1);
    load("local b = require 'barchan' local out = {}\n"
         "local function find(t, seen) for k, v in pairs(t) do if type(v) == 'string' and v:find "
         "'sk%-very'"
         " then out[#out + 1] = tostring(k) end if type(v) == 'table' and not seen[v] then seen[v] "
         "= true"
         " find(v, seen) end end end\n"
         "return { f = function()\n"
         "  if pcall(require, 'barchan.cli.ask') then out[#out + 1] = 'commands' end\n"
         "  local m = require 'barchan.model' local old = m.create\n"
         "  find(m, {}) find(b, {})\n"
         "  if pcall(b.sandbox, { template = '/' }) then out[#out + 1] = 'template' end\n"
         "  if pcall(b.model, { replay = '/etc/passwd' }) then out[#out + 1] = 'replay' end\n"
         "  if pcall(b.toolset, { dir = '/etc' }) then out[#out + 1] = 'dir' end\n"
         "  return table.concat(out, ' ') end }");
    expect("f", NULL, "\"\"");
    unsetenv("OPENAI_API_KEY");
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

static struct outcome second;

static void start_second(const char *text, size_t len, void *ud)
{
    (void)text, (void)len, (void)ud;
    ck_assert_int_eq(barchan_engine_start(engine, "second", NULL, NULL, on_done, &second, &err), 0);
}

START_TEST(a_call_that_a_callback_starts_is_a_call_of_its_own)
{
    barchan_engine_destroy(engine);
    barchan_engine_options options = {.struct_size = sizeof options, .on_print = start_second};
    ck_assert_int_eq(barchan_engine_create(&engine, rt, &options, &err), 0);
    load("local b = require 'barchan' return { first = function() print 'x' end, second = "
         "function() "
         "b.sleep(0.05) return 'lived' end }");
    barchan_free(call("first", NULL));
    while (!second.called)
        barchan_runtime_pump(rt, 1000, &err);
    ck_assert_str_eq(second.result, "\"lived\"");
}
END_TEST

START_TEST(a_run_that_is_destroyed_still_tells_its_end)
{
    struct outcome outcome = {0};
    events[0] = '\0';
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

START_TEST(tools_that_are_added_later_are_seen)
{
    load("local b = require 'barchan' return { n = function() return #b.host.tools end }");
    expect("n", NULL, "0");
    add("late", answer_never, NULL);
    expect("n", NULL, "1");
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

static int nested_code;

static int call_inside(barchan_engine *e, uint64_t id, const char *args, size_t len, void *ud)
{
    (void)args, (void)len, (void)ud;
    nested_code = barchan_engine_call(e, "other", NULL, NULL, NULL, NULL);
    return barchan_engine_answer(e, id, "ok", 2, 0, NULL);
}

START_TEST(a_blocking_call_inside_a_callback_is_busy)
{
    add("inside", call_inside, NULL);
    load("local b = require 'barchan' local tools = b.toolset { b.host.tools[1] }\n"
         "return { go = function() return tools:dispatch({ id = 'x', name = 'inside', arguments = {"
         " n = 1 } }).content end, other = function() end }");
    expect("go", NULL, "\"ok\"");
    ck_assert_int_eq(nested_code, BARCHAN_EBUSY);
    for (int i = 0; i < 5; i++)
        barchan_runtime_pump(rt, 0, &err);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("engine");
    TCase *tc = tcase_create("engine");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, json_goes_in_and_out);
    tcase_add_test(tc, a_script_error_has_its_place_and_a_traceback);
    tcase_add_test(tc, the_safe_library_has_no_way_out);
    tcase_add_test(tc, memory_is_capped_and_the_engine_goes_on);
    tcase_add_test(tc, patterns_match_as_in_lua);
    tcase_add_test(tc, a_script_that_runs_away_is_stopped);
    tcase_add_test(tc, what_is_to_be_closed_is_closed_after_a_stop);
    tcase_add_test(tc, a_tool_that_runs_away_is_an_error_result);
    tcase_add_test(tc, running_time_in_all_is_limited_waits_are_not_counted);
    tcase_add_test(tc, memory_may_run_out_anywhere);
    tcase_add_test(tc, print_and_events_reach_the_host);
    tcase_add_test(tc, started_calls_run_side_by_side);
    tcase_add_test(tc, a_token_cancels_from_another_thread);
    tcase_add_test(tc, destroy_ends_calls_and_runs_what_is_to_be_closed);
    tcase_add_test(tc, host_tools_answer_at_once_or_later_from_a_thread);
    tcase_add_test(tc, bad_tools_are_refused_with_the_reason);
    tcase_add_test(tc, safe_scripts_get_no_keys_files_or_commands);
    tcase_add_test(tc, the_runtime_may_be_destroyed_first);
    tcase_add_test(tc, a_call_that_a_callback_starts_is_a_call_of_its_own);
    tcase_add_test(tc, a_run_that_is_destroyed_still_tells_its_end);
    tcase_add_test(tc, tools_that_are_added_later_are_seen);
    tcase_add_test(tc, many_engines_come_and_go);
    tcase_add_test(tc, a_blocking_call_inside_a_callback_is_busy);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
