/* barchan_engine_reload: new functions between calls, the old ones on failure, and the events. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "engine_support.h"

static char dir[64];

static void write_script(const char *name, const char *text)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(text, file), 0);
    ck_assert_int_eq(fclose(file), 0);
}

static void setup(void)
{
    snprintf(dir, sizeof dir, "/tmp/barchan-reload-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    engine_setup();
    reopen_engine(&(barchan_engine_options){.struct_size = sizeof(barchan_engine_options),
                                            .script_dirs = (const char *[]){dir, NULL},
                                            .on_print = keep_print,
                                            .on_event = keep_event});
}

static void teardown(void)
{
    char command[128];
    engine_teardown();
    snprintf(command, sizeof command, "rm -rf '%s'", dir);
    ck_assert_int_eq(system(command), 0);
}

static void load_agent(const char *text)
{
    write_script("agent.lua", text);
    ck_assert_msg(barchan_engine_load_file(engine, "agent.lua", &err) == 0, "%s", err.message);
}

START_TEST(new_calls_find_the_new_functions)
{
    load_agent("return { f = function() return 1 end, gone = function() end }");
    expect("f", NULL, "1");
    write_script("agent.lua", "return { f = function() return 2 end, more = function() end }");
    ck_assert_msg(barchan_engine_reload(engine, &err) == 0, "%s", err.message);
    expect("f", NULL, "2");
    expect_error("gone", NULL, BARCHAN_ENOTFOUND, "no function 'gone'");
    ck_assert_ptr_nonnull(strstr(events, "\"type\":\"script_reloaded\""));
    ck_assert_ptr_nonnull(strstr(events, "\"added\":[\"more\"]"));
    ck_assert_ptr_nonnull(strstr(events, "\"removed\":[\"gone\"]"));
    ck_assert_ptr_nonnull(strstr(events, "\"time\":"));
}
END_TEST

START_TEST(a_broken_script_changes_nothing_and_says_why)
{
    static const struct {
        const char *text, *message;
        int code;
    } cases[] = {
        {"return {", "agent.lua:1:", BARCHAN_ESCRIPT},
        {"\n\nerror 'at the top'", "agent.lua:3: at the top", BARCHAN_ESCRIPT},
        {"return 7", "a table of functions expected, got number", BARCHAN_ESCRIPT},
        {"", "a table of functions expected, got nil", BARCHAN_ESCRIPT},
        {"while true do end", "without waiting", BARCHAN_ETIMEDOUT},
        {"return { ('x'):rep(8e6):rep(9) }", "not enough memory", BARCHAN_ENOMEM},
        {"require 'barchan'.sleep(60)", "did not end within 3 s", BARCHAN_ESCRIPT},
        {"require 'helper'", "helper.lua:1:", BARCHAN_ESCRIPT},
        {"error { code = 'not_found', message = 'gone' }", "gone", BARCHAN_ENOTFOUND},
        {"\033Lua", "binary", BARCHAN_ESCRIPT},
    };
    load_agent("return { f = function() return require 'word' end }");
    write_script("word.lua", "return 'old'");
    expect("f", NULL, "\"old\"");
    write_script("helper.lua", "return (");
    write_script("word.lua", "return 'new'");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        events[0] = '\0';
        write_script("agent.lua", cases[i].text);
        int rc = barchan_engine_reload(engine, &err);
        ck_assert_msg(rc == cases[i].code, "%s: %d: %s", cases[i].text, rc, err.message);
        ck_assert_msg(strstr(err.message, cases[i].message) != NULL, "%s: %s", cases[i].text,
                      err.message);
        ck_assert_ptr_null(strchr(err.message, '\n')); /* no insides of the library */
        ck_assert_str_eq(err.where, "engine.reload");
        ck_assert_ptr_nonnull(strstr(events, "\"type\":\"script_reload_failed\""));
        ck_assert_ptr_nonnull(strstr(events, i == 7 ? "helper.lua" : "agent.lua"));
        expect("f", NULL, "\"old\"");
    }
}
END_TEST

START_TEST(modules_that_it_requires_are_loaded_again)
{
    write_script("word.lua", "return 'old'");
    load_agent("local w = require 'word' return { f = function() return w .. require 'word' end }");
    expect("f", NULL, "\"oldold\"");
    write_script("word.lua", "return 'new'");
    expect("f", NULL, "\"oldold\"");
    ck_assert_int_eq(barchan_engine_reload(engine, &err), 0);
    expect("f", NULL, "\"newnew\"");
}
END_TEST

START_TEST(a_call_that_runs_finishes_with_what_it_began)
{
    struct outcome outcome = {0};
    load_agent("local b = require 'barchan' local function word() return 'old' end "
               "return { f = function() print 'begun' b.sleep(0.2) return word() end }");
    ck_assert_int_eq(barchan_engine_start(engine, "f", NULL, NULL, on_done, &outcome, &err), 0);
    while (printed[0] == '\0')
        barchan_runtime_pump(rt, 1000, &err);
    write_script("agent.lua", "return { f = function() return 'new' end }");
    ck_assert_int_eq(barchan_engine_reload(engine, &err), 0);
    ck_assert_int_eq(outcome.called, 0);
    pump_until(&outcome.called);
    ck_assert_str_eq(outcome.result, "\"old\"");
    expect("f", NULL, "\"new\"");
}
END_TEST

/* A host tool in whose midst the script is edited and loaded again. */
static int edits;

static void reload_later(barchan_runtime *runtime, void *ud)
{
    (void)runtime;
    edits = 1;
    (void)ud;
}

static int edit(barchan_engine *e, uint64_t id, const char *args, size_t len, void *ud)
{
    (void)args, (void)len, (void)ud;
    barchan_runtime_post(rt, reload_later, NULL, NULL);
    return barchan_engine_answer(e, id, "edited", 6, 0, NULL);
}

static const char loop[] = "local b = require 'barchan' return {"
                           " open = function(s) s.tools = b.toolset(b.host.tools) s.said = {} end,"
                           " turn = function(s) s.said[#s.said + 1] = '%s' .. #s.said + 1 %s"
                           "  if #s.said == 1 then s.tools:dispatch { id = '1', name = 'edit',"
                           "   arguments = { n = 1 } } b.sleep(0.2) end"
                           "  if #s.said == 3 then return s.said end end }";

static void run_loop_with_edit(const char *word, const char *extra, const char *expected)
{
    char text[1024];
    struct outcome outcome = {0};
    edits = 0;
    add_tool("edit", edit, NULL);
    snprintf(text, sizeof text, loop, "old", "");
    load_agent(text);
    ck_assert_int_eq(
        barchan_engine_start(engine, "barchan.script:run", NULL, NULL, on_done, &outcome, &err), 0);
    pump_until(&edits);
    snprintf(text, sizeof text, loop, word, extra);
    write_script("agent.lua", text);
    ck_assert_msg(barchan_engine_reload(engine, &err) == 0, "%s", err.message);
    pump_until(&outcome.called);
    ck_assert_int_eq(outcome.code, 0);
    ck_assert_str_eq(outcome.result, expected);
}

START_TEST(a_loop_changes_between_two_turns)
{
    run_loop_with_edit("new", "", "[\"old1\",\"new2\",\"new3\"]");
}
END_TEST

START_TEST(a_loop_goes_back_when_the_new_turn_throws)
{
    run_loop_with_edit("new", "error 'no good'", "[\"old1\",\"old2\",\"old3\"]");
    ck_assert_ptr_nonnull(strstr(events, "\"type\":\"script_rolled_back\""));
    ck_assert_ptr_nonnull(strstr(events, "no good"));
    ck_assert_ptr_nonnull(strstr(events, "agent.lua"));
}
END_TEST

START_TEST(text_and_nothing_cannot_be_loaded_again)
{
    ck_assert_int_eq(barchan_engine_reload(engine, &err), BARCHAN_EINVAL);
    load("return {}");
    ck_assert_int_eq(barchan_engine_reload(engine, &err), BARCHAN_EINVAL);
    ck_assert_ptr_nonnull(strstr(err.message, "barchan_engine_load_string"));
    ck_assert_int_eq(barchan_engine_reload(NULL, &err), BARCHAN_EINVAL);
}
END_TEST

SUITE_MAIN("engine_reload", setup, teardown, new_calls_find_the_new_functions,
           a_broken_script_changes_nothing_and_says_why, modules_that_it_requires_are_loaded_again,
           a_call_that_runs_finishes_with_what_it_began, a_loop_changes_between_two_turns,
           a_loop_goes_back_when_the_new_turn_throws, text_and_nothing_cannot_be_loaded_again)
