/*
 * Out of memory at every allocation of an engine's life: created, loaded, called, reloaded,
 * destroyed. What cannot be done is an error that says so, what has been done stays whole, and
 * nothing leaks (run under AddressSanitizer to see that). First the library's own allocations, then
 * those of the Lua state. And the same life with a full collection at every allocation.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <barchan/engine.h>
#include "failing_alloc.h"
#include "suite.h"

char *__wrap_strdup(const char *text);
char *__wrap_strndup(const char *text, size_t len);

char *__wrap_strndup(const char *text, size_t len)
{
    len = strnlen(text, len);
    char *copy = __wrap_malloc(len + 1);
    if (copy == NULL) return NULL;
    memcpy(copy, text, len);
    copy[len] = '\0';
    return copy;
}

char *__wrap_strdup(const char *text)
{
    return __wrap_strndup(text, strlen(text));
}

/* ---- the allocators of the Lua state ---- */

static void *plain_alloc(void *ptr, size_t old_size, size_t new_size, void *ud)
{
    (void)old_size, (void)ud;
    if (new_size > 0) return __real_realloc(ptr, new_size);
    free(ptr);
    return NULL;
}

static long lua_countdown = -1; /* the growth that fails, and fails again when it is tried again */
static long lua_failures;

static void *failing_alloc(void *ptr, size_t old_size, size_t new_size, void *ud)
{
    if (new_size > (ptr != NULL ? old_size : 0) && lua_countdown >= 0) {
        if (lua_countdown == 0 && lua_failures < 2) {
            lua_failures++;
            return NULL;
        }
        if (lua_countdown > 0) lua_countdown--;
    }
    return plain_alloc(ptr, old_size, new_size, ud);
}

/* Refuses the first try of every n-th growth: Lua collects in full and tries again. A state that is
 * just being made cannot. */
enum { GROWTHS_OF_A_NEW_STATE = 500 };
static long refuse_every = 1, growths;

static void *collecting_alloc(void *ptr, size_t old_size, size_t new_size, void *ud)
{
    static int refused;
    if (new_size > (ptr != NULL ? old_size : 0)) {
        if (!refused && ++growths > GROWTHS_OF_A_NEW_STATE && growths % refuse_every == 0) {
            refused = 1;
            return NULL;
        }
        refused = 0;
    }
    return plain_alloc(ptr, old_size, new_size, ud);
}

/* ---- one life ---- */

static const char script[] =
    "local b = require 'barchan'\n"
    "local word = require 'word'\n"
    "local tools = b.toolset { 'exec' }\n"
    "for _, t in ipairs(b.host.tools) do tools = b.toolset { t } end\n"
    "return { f = function(t)\n"
    "  local c <close> = setmetatable({}, { __close = function() end })\n"
    "  local r = b.gather { function() return tools:dispatch { id = '1', name = 'host', arguments "
    "= t }\n"
    "    end, function() b.sleep(0) return #tools:declarations() end, function() error 'x' end }\n"
    "  return { word, r[1].value and r[1].value.content or false, r[2].value or false, r[3].ok, t "
    "} end }";

static barchan_runtime *rt;
static barchan_error err;

static int answer(barchan_engine *engine, uint64_t id, const char *args, size_t len, void *ud)
{
    (void)ud;
    return barchan_engine_answer(engine, id, args, len, 0, NULL);
}

static void ignore_event(const char *event, size_t len, void *ud)
{
    (void)event, (void)len, (void)ud;
}

/* A failure must be for want of memory, and say so. */
static int check(int rc, const char *what)
{
    if (rc == 0) return 0;
    ck_assert_msg(rc == BARCHAN_ENOMEM || strstr(err.message, "not enough memory") != NULL ||
                      strstr(err.message, "out of memory") != NULL,
                  "%s: %d %s", what, rc, err.message);
    return rc;
}

static int call_f(barchan_engine *engine)
{
    static const char expected[] = "[\"w\",\"{\\\"a\\\":[1,2.5]}\",1,false,{\"a\":[1,2.5]}]";
    char *result = NULL;
    int rc =
        check(barchan_engine_call(engine, "f", "{\"a\":[1,2.5]}", NULL, &result, &err), "call");
    int as_expected = rc == 0 && strcmp(result, expected) == 0;
    barchan_free(result);
    return rc < 0 ? rc : as_expected ? 0 : 1; /* 1: a task of it was without memory */
}

static int life(barchan_alloc_fn alloc)
{
    const barchan_script scripts[] = {
        {"agent.lua", script, sizeof script - 1}, {"word.lua", "return 'w'", 10}, {NULL, NULL, 0}};
    barchan_engine_options options = {.struct_size = sizeof options,
                                      .script_dirs = (const char *[]){"/absent", NULL},
                                      .scripts = scripts,
                                      .alloc = alloc,
                                      .slice_limit_ms = 60000,
                                      .call_limit_ms = 60000,
                                      .on_event = ignore_event};
    barchan_tool tool = {.struct_size = sizeof tool, .name = "host", .call = answer};
    barchan_engine *engine;
    int rc = check(barchan_engine_create(&engine, rt, &options, &err), "create");
    if (rc < 0) return rc;
    rc = check(barchan_engine_add_tool(engine, &tool, &err), "add a tool");
    if (rc == 0) rc = check(barchan_engine_load_file(engine, "agent.lua", &err), "load");
    if (rc == 0) {
        int called = call_f(engine);
        int reloaded = check(barchan_engine_reload(engine, &err), "reload");
        int again = call_f(engine);
        if (called != 0 || reloaded != 0) ck_assert_int_eq(again, 0); /* it works as before */
        rc = called != 0 ? called : reloaded != 0 ? reloaded : again;
    }
    barchan_engine_destroy(engine);
    return rc;
}

static void setup(void)
{
    ck_assert_int_eq(barchan_runtime_create(&rt, NULL, &err), 0);
}

static void teardown(void)
{
    barchan_runtime_destroy(rt);
}

START_TEST(each_allocation_of_the_library_fails)
{
    long at = 0;
    int failed = 0;
    for (;; at++) {
        failures = 0;
        countdown = at;
        int rc = life(plain_alloc);
        countdown = -1;
        failed += rc != 0;
        if (failures == 0) {
            ck_assert_int_eq(rc, 0);
            break;
        }
    }
    printf("%ld allocations of the library, %d of them needed\n", at, failed);
    ck_assert_int_gt(at, 30);
    ck_assert_int_gt(failed, 25);
}
END_TEST

START_TEST(allocations_of_the_lua_state_fail)
{
    /* The first ones one by one, then, with BARCHAN_LONG, each; else some of all. */
    long step = getenv("BARCHAN_LONG") != NULL ? 1 : 7, at = 0, tried = 0;
    int failed = 0;
    for (;; at += at < 200 ? 1 : step, tried++) {
        lua_failures = 0;
        lua_countdown = at;
        int rc = life(failing_alloc);
        lua_countdown = -1;
        failed += rc != 0;
        if (lua_failures == 0) {
            ck_assert_int_eq(rc, 0);
            break;
        }
    }
    printf("%ld growths of the Lua state, %ld of them refused, %d times to its harm\n", at, tried,
           failed);
    ck_assert_int_gt(at, 5000);
    ck_assert_int_gt(failed, 200);
}
END_TEST

START_TEST(a_full_collection_at_every_allocation)
{
    refuse_every = getenv("BARCHAN_LONG") != NULL ? 1 : 7;
    growths = 0;
    ck_assert_msg(life(collecting_alloc) == 0, "%s", err.message);
    ck_assert_int_gt(growths, 5000);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {each_allocation_of_the_library_fails,
                                  allocations_of_the_lua_state_fail,
                                  a_full_collection_at_every_allocation};
    setenv("CK_TIMEOUT_MULTIPLIER", getenv("BARCHAN_LONG") != NULL ? "20" : "2", 0);
    return suite_run("engine_alloc", setup, teardown, tests, sizeof tests / sizeof *tests);
}
