/* What a host may choose: scripts from memory, the allocator, the log, limits and tokens of calls,
 * and structs of other versions of the header. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "engine_support.h"

#define OPTIONS(...)                                                           \
    &(barchan_engine_options)                                                  \
    {                                                                          \
        .struct_size = sizeof(barchan_engine_options), .on_print = keep_print, \
        .on_event = keep_event, __VA_ARGS__                                    \
    }

/* ---- scripts from memory ---- */

static void set_script(const char *name, const char *text)
{
    int rc = barchan_engine_set_script(engine, name, text, text != NULL ? strlen(text) : 0, &err);
    ck_assert_msg(rc == 0, "%s", err.message);
}

START_TEST(scripts_come_from_memory)
{
    static const char main_text[] = "#!/usr/bin/env barchan\n"
                                    "local deep, dir = require 'lib.deep', require 'lib'\n"
                                    "return { f = function() return deep .. dir end }";
    const barchan_script scripts[] = {{"agent.lua", main_text, sizeof main_text - 1},
                                      {"lib/deep.lua", "return 'deep'", 13},
                                      {"lib/init.lua", "return 'dir'", 12},
                                      {NULL, NULL, 0}};
    reopen_engine(OPTIONS(.scripts = scripts));
    ck_assert_msg(barchan_engine_load_file(engine, "agent.lua", &err) == 0, "%s", err.message);
    expect("f", NULL, "\"deepdir\"");
    set_script("lib/deep.lua", "return 'new'");
    expect("f", NULL, "\"deepdir\"");
    ck_assert_msg(barchan_engine_reload(engine, &err) == 0, "%s", err.message);
    expect("f", NULL, "\"newdir\"");
    set_script("lib/init.lua", NULL);
    ck_assert_int_eq(barchan_engine_reload(engine, &err), BARCHAN_ESCRIPT);
    ck_assert_ptr_nonnull(strstr(err.message, "module 'lib' not found"));
    expect("f", NULL, "\"newdir\"");
    set_script("agent.lua", NULL);
    ck_assert_int_eq(barchan_engine_reload(engine, &err), BARCHAN_ENOTFOUND);
    ck_assert_int_eq(barchan_engine_load_file(engine, "agent.lua", &err), BARCHAN_ENOTFOUND);
}
END_TEST

START_TEST(bad_scripts_from_memory_are_refused)
{
    static const char *const names[] = {"",     "agent", "/etc/agent.lua", "../agent.lua",
                                        ".lua", NULL};
    for (int i = 0; i == 0 || names[i - 1] != NULL; i++) {
        ck_assert_int_eq(barchan_engine_set_script(engine, names[i], "x", 1, &err), BARCHAN_EINVAL);
    }
    ck_assert_int_eq(barchan_engine_set_script(engine, "a.lua", "x", (size_t)2 << 20, &err),
                     BARCHAN_ELIMIT);
    set_script("a.lua", "return {");
    ck_assert_int_eq(barchan_engine_load_file(engine, "a.lua", &err), BARCHAN_ESCRIPT);
    ck_assert_ptr_nonnull(strstr(err.message, "a.lua:1:"));
    ck_assert_int_eq(barchan_engine_set_script(engine, "a.lua", "\033Lua", 4, &err), 0);
    ck_assert_int_eq(barchan_engine_load_file(engine, "a.lua", &err), BARCHAN_ESCRIPT);
}
END_TEST

/* ---- the allocator ---- */

struct heap {
    size_t used, most, calls;
    size_t fail_at; /* the call that fails; 0: none */
};

static void *count_alloc(void *ptr, size_t old_size, size_t new_size, void *ud)
{
    struct heap *heap = ud;
    if (new_size == 0) {
        heap->used -= old_size;
        free(ptr);
        return NULL;
    }
    if (++heap->calls == heap->fail_at) return NULL;
    void *out = realloc(ptr, new_size);
    if (out == NULL) return NULL;
    heap->used += new_size - (ptr != NULL ? old_size : 0);
    if (heap->used > heap->most) heap->most = heap->used;
    return out;
}

START_TEST(the_hosts_allocator_is_used_and_gets_all_back)
{
    struct heap heap = {0};
    reopen_engine(&(barchan_engine_options){
        .struct_size = sizeof(barchan_engine_options), .alloc = count_alloc, .ud = &heap});
    load("return { f = function() return #('x'):rep(100000) end }");
    size_t before = heap.most;
    expect("f", NULL, "100000");
    ck_assert_uint_ge(heap.most, before + 100000);
    barchan_engine_destroy(engine);
    ck_assert_uint_eq(heap.used, 0);
    engine = NULL;
}
END_TEST

/* ---- the log ---- */

static char logged[1024];

static void keep_log(barchan_log_level level, const char *message, void *ud)
{
    size_t used = strlen(logged);
    (void)ud;
    snprintf(logged + used, sizeof logged - used, "%d:%s\n", (int)level, message);
}

START_TEST(what_scripts_log_goes_to_the_engines_log)
{
    reopen_engine(&(barchan_engine_options){.struct_size = sizeof(barchan_engine_options),
                                            .on_log = keep_log});
    load("local b = require 'barchan'\n"
         "local tools = b.toolset { { name = 't', description = '', run = function(_, ctx)\n"
         " ctx.log('a', 1) return 'x' end } }\n"
         "return { f = function() print 'two\\nlines'\n"
         " tools:dispatch { id = '1', name = 't', arguments = {} }\n"
         " b.spawn(function() error('lost', 0) end) b.sleep(0.01) collectgarbage() end }");
    barchan_free(call("f", NULL));
    ck_assert_ptr_nonnull(strstr(logged, "1:two\n1:lines\n1:t:\ta\t1\n"));
    ck_assert_ptr_nonnull(strstr(logged, "2:a task failed and nobody waited for it: lost\n"));
}
END_TEST

/* ---- ending calls ---- */

START_TEST(a_call_has_a_limit_waits_included)
{
    static const char script[] =
        "local b = require 'barchan' return { nap = function() b.sleep(60) end,"
        " naps = function() while true do pcall(b.sleep, 60) end end,"
        " spin = function() while true do pcall(function() while true do end end) end end,"
        " child = function() b.spawn(function() while true do end end):wait() b.sleep(60) end,"
        " quick = function() return 1 end }";
    static const char *const names[] = {"nap", "naps", "spin", "child"};
    for (int library = 0; library < 2; library++) {
        reopen_engine(OPTIONS(.library = (barchan_library)library, .call_limit_ms = 100));
        load(script);
        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
            expect_error(names[i], NULL, BARCHAN_ETIMEDOUT, "the call took longer than 0.1 s");
            expect("quick", NULL, "1");
        }
    }
}
END_TEST

static void *trigger(void *ud)
{
    usleep(50000);
    barchan_cancel_trigger(ud);
    return NULL;
}

START_TEST(a_token_stops_what_runs_without_waiting)
{
    static const char *const names[] = {"spin", "held", "child"};
    reopen_engine(OPTIONS(.library = BARCHAN_LIBRARY_FULL, .slice_limit_ms = -1));
    load("local b = require 'barchan' return {"
         " spin = function() while true do end end,"
         " held = function() while true do pcall(function() while true do end end) end end,"
         " child = function() b.spawn(function() while true do end end):wait() end,"
         " quick = function() return 1 end }");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        barchan_cancel *cancel;
        pthread_t thread;
        ck_assert_int_eq(barchan_cancel_create(&cancel, &err), 0);
        pthread_create(&thread, NULL, trigger, cancel);
        int rc = barchan_engine_call(engine, names[i], NULL, cancel, NULL, &err);
        ck_assert_msg(rc == BARCHAN_ECANCELLED, "%s: %d %s", names[i], rc, err.message);
        pthread_join(thread, NULL);
        barchan_cancel_release(cancel);
        expect("quick", NULL, "1");
    }
}
END_TEST

START_TEST(a_token_may_have_a_deadline)
{
    static const char *const names[] = {"spin", "nap"};
    reopen_engine(OPTIONS(.library = BARCHAN_LIBRARY_FULL, .slice_limit_ms = -1));
    load("local b = require 'barchan' return { spin = function() while true do end end,"
         " nap = function() b.sleep(60) end, quick = function() return 1 end }");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        barchan_cancel *cancel;
        ck_assert_int_eq(barchan_cancel_create(&cancel, &err), 0);
        barchan_cancel_after(cancel, 60000);
        expect("quick", NULL, "1");
        ck_assert_int_eq(barchan_engine_call(engine, "quick", NULL, cancel, NULL, &err), 0);
        barchan_cancel_after(cancel, 50);
        int rc = barchan_engine_call(engine, names[i], NULL, cancel, NULL, &err);
        ck_assert_msg(rc == BARCHAN_ECANCELLED, "%s: %d %s", names[i], rc, err.message);
        barchan_cancel_release(cancel);
        expect("quick", NULL, "1");
    }
}
END_TEST

START_TEST(what_is_cancelled_may_finish_in_an_orderly_way)
{
    barchan_cancel *cancel;
    pthread_t thread;
    load("local b = require 'barchan' return { f = function() pcall(b.sleep, 60)"
         " for i = 1, 200000 do end print 'finished' end }");
    ck_assert_int_eq(barchan_cancel_create(&cancel, &err), 0);
    pthread_create(&thread, NULL, trigger, cancel);
    ck_assert_int_eq(barchan_engine_call(engine, "f", NULL, cancel, NULL, &err), 0);
    pthread_join(thread, NULL);
    barchan_cancel_release(cancel);
    ck_assert_str_eq(printed, "finished\n");
}
END_TEST

START_TEST(conversations_of_one_engine_have_their_own_tokens)
{
    enum { COUNT = 5, CANCELLED = 2 };
    barchan_cancel *tokens[COUNT];
    struct outcome outcomes[COUNT] = {{0}};
    load("local b = require 'barchan' return { talk = function(n)\n"
         " local model = setmetatable({}, { __index = { complete = function()\n"
         "  print 'asked' b.sleep(0.2) return { role = 'assistant', text = 'answer ' .. n, "
         "tool_calls = {},\n"
         "   stop_reason = 'end_turn' } end } })\n"
         " local r = b.agent({ model = model }):run 'q' return r.text .. ' ' .. r.stop_reason end "
         "}");
    for (int i = 0; i < COUNT; i++) {
        char args[8];
        snprintf(args, sizeof args, "%d", i);
        ck_assert_int_eq(barchan_cancel_create(&tokens[i], &err), 0);
        ck_assert_int_eq(
            barchan_engine_start(engine, "talk", args, tokens[i], on_done, &outcomes[i], &err), 0);
    }
    while (printed[0] == '\0')
        barchan_runtime_pump(rt, 1000, &err);
    barchan_cancel_trigger(tokens[CANCELLED]);
    for (int i = 0; i < COUNT; i++) {
        char expected[32];
        pump_until(&outcomes[i].called);
        snprintf(expected, sizeof expected, "\"answer %d end_turn\"", i);
        ck_assert_str_eq(outcomes[i].result, i == CANCELLED ? "\" cancelled\"" : expected);
        ck_assert_int_eq(outcomes[i].called, 1);
        barchan_cancel_release(tokens[i]);
    }
}
END_TEST

START_TEST(each_stop_has_its_own_traceback)
{
    reopen_engine(OPTIONS(.slice_limit_ms = 50));
    load("local b = require 'barchan'\n"
         "local function first() while true do end end\n"
         "local function second() while true do end end\n"
         "local function trace(fn) local _, e = b.spawn(fn):wait() e.message = 'mine'\n"
         " return e.traceback end\n"
         "return { f = function() return { trace(first), trace(second) } end,\n"
         " g = function() while true do end end }");
    char *result = call("f", NULL);
    char *second = strstr(result, "test:3:");
    ck_assert_ptr_nonnull(strstr(result, "test:2:"));
    ck_assert_ptr_nonnull(second);
    barchan_free(result);
    expect_error("g", NULL, BARCHAN_ETIMEDOUT, "the script ran for 0.05 s");
}
END_TEST

/* ---- structs of other versions ---- */

START_TEST(an_older_smaller_struct_is_accepted)
{
    struct {
        size_t struct_size;
        const char *const *script_dirs;
        barchan_library library;
        char after[64]; /* not a part of it: nobody may look */
    } old = {.struct_size = offsetof(barchan_engine_options, memory_limit_bytes),
             .library = BARCHAN_LIBRARY_FULL};
    memset(old.after, 0xff, sizeof old.after);
    reopen_engine((const barchan_engine_options *)&old);
    load("return { f = function() return io ~= nil end }");
    expect("f", NULL, "true");
    struct {
        size_t struct_size;
        const char *name, *description, *parameters_json;
        barchan_tool_fn call;
        void *after;
    } tool = {.struct_size = offsetof(barchan_tool, ud), .name = "t", .after = (void *)-1};
    ck_assert_int_eq(barchan_engine_add_tool(engine, (const barchan_tool *)&tool, &err),
                     BARCHAN_EINVAL);
    ck_assert_ptr_nonnull(strstr(err.message, "call is NULL")); /* it was read so far */
}
END_TEST

START_TEST(a_newer_larger_struct_is_accepted_when_it_asks_for_nothing_new)
{
    struct {
        barchan_engine_options known;
        void *unknown;
    } new = {.known = {.struct_size = sizeof new}};
    reopen_engine(&new.known);
    load("return { f = function() return 1 end }");
    expect("f", NULL, "1");
    barchan_engine *other = (barchan_engine *)&new;
    new.unknown = &new;
    ck_assert_int_eq(barchan_engine_create(&other, rt, &new.known, &err), BARCHAN_EUNSUPPORTED);
    ck_assert_ptr_null(other);
    ck_assert_ptr_nonnull(strstr(err.message, "does not have"));
}
END_TEST

START_TEST(what_is_no_struct_is_refused)
{
    static const size_t sizes[] = {0, 1, sizeof(size_t) - 1, 5000, (size_t)-1};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        barchan_engine *other;
        barchan_engine_options options = {.struct_size = sizes[i]};
        barchan_tool tool = {.struct_size = sizes[i], .name = "t"};
        ck_assert_int_eq(barchan_engine_create(&other, rt, &options, &err), BARCHAN_EINVAL);
        ck_assert_ptr_nonnull(strstr(err.message, "set it to sizeof the struct"));
        ck_assert_int_eq(barchan_engine_add_tool(engine, &tool, &err), BARCHAN_EINVAL);
    }
    barchan_engine *other;
    barchan_engine_options options = {.struct_size = sizeof options, .library = 7};
    ck_assert_int_eq(barchan_engine_create(&other, rt, &options, &err), BARCHAN_EINVAL);
    ck_assert_ptr_nonnull(strstr(err.message, "library is 7"));
}
END_TEST

SUITE_MAIN("engine_options", engine_setup, engine_teardown, scripts_come_from_memory,
           bad_scripts_from_memory_are_refused, the_hosts_allocator_is_used_and_gets_all_back,
           what_scripts_log_goes_to_the_engines_log, a_call_has_a_limit_waits_included,
           a_token_stops_what_runs_without_waiting, a_token_may_have_a_deadline,
           what_is_cancelled_may_finish_in_an_orderly_way,
           conversations_of_one_engine_have_their_own_tokens, each_stop_has_its_own_traceback,
           an_older_smaller_struct_is_accepted,
           a_newer_larger_struct_is_accepted_when_it_asks_for_nothing_new,
           what_is_no_struct_is_refused)
