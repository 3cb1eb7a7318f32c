/* Tools of the host: answered at once, later, from another thread, never. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "engine_support.h"

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

START_TEST(host_tools_answer_at_once_or_later_from_a_thread)
{
    pthread_t thread;
    static char done[] = "done";
    add_tool("now", answer_now, done);
    add_tool("later", answer_later, NULL);
    add_tool("never", answer_never, NULL);
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

START_TEST(tools_that_are_added_later_are_seen)
{
    load("local b = require 'barchan' return { n = function() return #b.host.tools end }");
    expect("n", NULL, "0");
    add_tool("late", answer_never, NULL);
    expect("n", NULL, "1");
}
END_TEST

SUITE_MAIN("engine_tools", engine_setup, engine_teardown,
           host_tools_answer_at_once_or_later_from_a_thread, bad_tools_are_refused_with_the_reason,
           tools_that_are_added_later_are_seen)
