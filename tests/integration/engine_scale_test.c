/* Many of everything: conversations in one engine, engines in one process, engines one after the
 * other. With BARCHAN_LONG set, as many as a busy host has; else a smaller number of the same. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "engine_support.h"

static int many(int of_long, int of_short)
{
    return getenv("BARCHAN_LONG") != NULL ? of_long : of_short;
}

/* ---- conversations ---- */

/* One agent run: a model that thinks, a tool that waits, another turn. What it says depends on n.
 */
#define CONVERSATION                                                                              \
    "local b = require 'barchan'\n"                                                               \
    "local look = { name = 'look', description = '', run = function(args, ctx)\n"                 \
    "  ctx.state.n = args.n b.sleep(0.05) return 'saw ' .. ctx.state.n end }\n"                   \
    "local function complete(self, request)\n"                                                    \
    "  b.sleep(0.02)\n"                                                                           \
    "  local last = request.messages[#request.messages]\n"                                        \
    "  local reply = { role = 'assistant', text = '', tool_calls = {}, stop_reason = "            \
    "'end_turn',\n"                                                                               \
    "    usage = { output_tokens = 1 } }\n"                                                       \
    "  if last.role == 'user' then\n"                                                             \
    "    reply.stop_reason = 'tool_use'\n"                                                        \
    "    reply.tool_calls[1] = { id = 'c', name = 'look', arguments = { n = self.n } }\n"         \
    "    request.tools:stamp(reply)\n"                                                            \
    "  else reply.text = last.content end\n"                                                      \
    "  return reply\n"                                                                            \
    "end\n"                                                                                       \
    "local M = {}\n"                                                                              \
    "function M.talk(n)\n"                                                                        \
    "  local agent = b.agent { model = { complete = complete, n = n }, tools = b.toolset { look " \
    "} "                                                                                          \
    "}\n"                                                                                         \
    "  local r = agent:run 'look'\n"                                                              \
    "  return r.text .. ', ' .. r.stop_reason .. ', ' .. r.turns end\n"

static const char conversation[] = CONVERSATION "return M";

START_TEST(a_thousand_conversations_in_one_engine)
{
    int count = 1000;
    struct outcome *outcomes = calloc((size_t)count, sizeof *outcomes);
    ck_assert_ptr_nonnull(outcomes);
    load(conversation);
    for (int i = 0; i < count; i++) {
        char args[16];
        snprintf(args, sizeof args, "%d", i);
        ck_assert_int_eq(
            barchan_engine_start(engine, "talk", args, NULL, on_done, &outcomes[i], &err), 0);
    }
    for (int i = 0; i < count; i++) {
        char expected[64];
        pump_until(&outcomes[i].called);
        snprintf(expected, sizeof expected, "\"saw %d, end_turn, 2\"", i);
        REQUIRE(strcmp(outcomes[i].result, expected) == 0);
        REQUIRE(outcomes[i].called == 1);
    }
    free(outcomes);
}
END_TEST

START_TEST(a_thousand_conversations_as_tasks_of_one_call)
{
    load(CONVERSATION
         "function M.all()\n"
         "  local functions, good = {}, 0\n"
         "  for i = 1, 1000 do functions[i] = function() return M.talk(i) end end\n"
         "  for i, outcome in ipairs(b.gather(functions)) do\n"
         "    if outcome.value == 'saw ' .. i .. ', end_turn, 2' then good = good + 1 end end\n"
         "  return good end\n"
         "return M");
    expect("all", NULL, "1000");
}
END_TEST

/* ---- engines ---- */

START_TEST(a_hundred_engines_in_one_process)
{
    enum { COUNT = 100 };
    barchan_engine *engines[COUNT];
    struct outcome outcomes[COUNT] = {{0}};
    for (int i = 0; i < COUNT; i++) {
        char args[16];
        barchan_engine_options options = {.struct_size = sizeof options,
                                          .library =
                                              i % 2 ? BARCHAN_LIBRARY_FULL : BARCHAN_LIBRARY_SAFE,
                                          .slice_limit_ms = 20000};
        ck_assert_int_eq(barchan_engine_create(&engines[i], rt, &options, &err), 0);
        ck_assert_int_eq(barchan_engine_load_string(engines[i], "=talk", conversation,
                                                    strlen(conversation), &err),
                         0);
        snprintf(args, sizeof args, "%d", i);
        ck_assert_int_eq(
            barchan_engine_start(engines[i], "talk", args, NULL, on_done, &outcomes[i], &err), 0);
    }
    for (int i = 0; i < COUNT; i++) {
        char expected[64];
        pump_until(&outcomes[i].called);
        snprintf(expected, sizeof expected, "\"saw %d, end_turn, 2\"", i);
        ck_assert_str_eq(outcomes[i].result, expected);
        barchan_engine_destroy(engines[i]);
    }
}
END_TEST

static int open_descriptors(void)
{
    int count = 0;
    DIR *dir = opendir("/proc/self/fd");
    while (readdir(dir) != NULL)
        count++;
    closedir(dir);
    return count;
}

static long resident_kib(void)
{
    long pages, resident;
    FILE *file = fopen("/proc/self/statm", "r");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fscanf(file, "%ld %ld", &pages, &resident), 2);
    fclose(file);
    return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

static void create_use_destroy(int i)
{
    struct outcome outcome = {0};
    open_engine(i % 2 ? BARCHAN_LIBRARY_FULL : BARCHAN_LIBRARY_SAFE, 0);
    load("local b = require 'barchan' return { f = function() return b.version end,"
         " nap = function() b.sleep(60) end }");
    barchan_free(call("f", NULL));
    ck_assert_int_eq(barchan_engine_start(engine, "nap", NULL, NULL, on_done, &outcome, &err), 0);
    barchan_runtime_pump(rt, 0, &err);
    barchan_engine_destroy(engine); /* with a call under way */
    ck_assert_int_eq(outcome.code, BARCHAN_ECANCELLED);
    engine = NULL;
}

/* Sanitizers keep freed memory for a while, and have a leak checker of their own. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define GROWTH_KIB 1000000
#else
#define GROWTH_KIB 2048 /* 280 bytes an engine, of 7,500 */
#endif

START_TEST(engines_come_and_go_and_leave_nothing)
{
    int count = many(10000, 400), warm = count / 4;
    long resident = 0;
    int descriptors = 0;
    barchan_engine_destroy(engine);
    engine = NULL;
    for (int i = 0; i < count; i++) {
        if (i == warm) {
            resident = resident_kib();
            descriptors = open_descriptors();
        }
        create_use_destroy(i);
    }
    ck_assert_int_eq(open_descriptors(), descriptors);
    long grown = resident_kib() - resident;
    ck_assert_msg(grown < GROWTH_KIB, "%d engines have left %ld KiB", count - warm, grown);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        a_thousand_conversations_in_one_engine, a_thousand_conversations_as_tasks_of_one_call,
        a_hundred_engines_in_one_process, engines_come_and_go_and_leave_nothing};
    setenv("CK_TIMEOUT_MULTIPLIER", getenv("BARCHAN_LONG") != NULL ? "10" : "1", 0);
    return suite_run("engine_scale", engine_setup, engine_teardown, tests,
                     sizeof tests / sizeof *tests);
}
