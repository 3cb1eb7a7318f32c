/* Scripts that want to harm their host: each ends as it should, and the engine goes on. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "engine_support.h"

static void open_small_engine(const char *file, int slice_ms)
{
    reopen_engine(&(barchan_engine_options){.struct_size = sizeof(barchan_engine_options),
                                            .script_dirs = (const char *[]){TEST_DATA, NULL},
                                            .library = BARCHAN_LIBRARY_SAFE,
                                            .memory_limit_bytes = 32 << 20,
                                            .slice_limit_ms = slice_ms});
    ck_assert_msg(barchan_engine_load_file(engine, file, &err) == 0, "%s", err.message);
}

/* Runs one attempt: its code must be among those that its line names. */
static void attempt(int i)
{
    char args[16], *result = NULL;
    snprintf(args, sizeof args, "%d", i);
    char *line = call("describe", args);
    int rc = barchan_engine_call(engine, "run", args, NULL, &result, &err);
    const char *code = rc == 0 ? "ok" : barchan_status_name(rc);
    ck_assert_msg(strstr(strchr(line, ',') + 1, code) != NULL, "%s ended with %s: %s", line, code,
                  rc < 0 ? err.message : result);
    if (rc == 0) ck_assert_msg(strcmp(result, "true") == 0, "%s found %s", line, result);
    if (rc < 0) ck_assert_uint_gt(strlen(err.message), 0);
    barchan_free(result);
    barchan_free(line);
    expect("alive", NULL, "1003");
}

static int case_count(void)
{
    char *count = call("count", NULL);
    int n = (int)strtol(count, NULL, 10);
    barchan_free(count);
    return n;
}

START_TEST(every_attempt_ends_as_it_should_and_the_engine_goes_on)
{
    open_small_engine("hostile.lua", 20000);
    int n = case_count();
    ck_assert_int_gt(n, 60);
    for (int i = 1; i <= n; i++)
        attempt(i);
}
END_TEST

START_TEST(so_it_does_when_the_engine_is_destroyed_right_after)
{
    int n;
    open_small_engine("hostile.lua", 20000);
    n = case_count();
    for (int i = 1; i <= n; i++) {
        char args[16];
        open_small_engine("hostile.lua", 20000);
        snprintf(args, sizeof args, "%d", i);
        barchan_engine_call(engine, "run", args, NULL, NULL, &err);
    }
}
END_TEST

/* That it comes back at all is the point: the suite's own timeout is what would say otherwise. */
START_TEST(what_runs_away_is_stopped)
{
    open_small_engine("runaway.lua", 300);
    int n = case_count();
    ck_assert_int_gt(n, 20);
    for (int i = 1; i <= n; i++)
        attempt(i);
}
END_TEST

static void on_nothing(const char *result, const barchan_error *why, void *ud)
{
    (void)result;
    (void)why;
    (void)ud;
}

static void start_more(const char *text, size_t len, void *ud)
{
    (void)text;
    (void)len;
    int *entries = ud;
    if (++*entries > 3) return;
    ck_assert_msg(barchan_engine_start(engine, "nothing", "null", NULL, on_nothing, NULL, &err) ==
                      0,
                  "%s", err.message);
}

/* An entry from a callback within a slice has limits of its own, and leaves the outer ones. */
START_TEST(an_entry_within_a_slice_lifts_no_limit)
{
    int entries = 0;
    reopen_engine(&(barchan_engine_options){.struct_size = sizeof(barchan_engine_options),
                                            .library = BARCHAN_LIBRARY_SAFE,
                                            .slice_limit_ms = 300,
                                            .on_print = start_more,
                                            .ud = &entries});
    load("return { nothing = function() end, f = function() print 'x' while true do end end }");
    char *result = NULL;
    ck_assert_int_eq(barchan_engine_call(engine, "f", "null", NULL, &result, &err),
                     BARCHAN_ETIMEDOUT);
    ck_assert_int_eq(entries, 1);
}
END_TEST

SUITE_MAIN("engine_hostile", engine_setup, engine_teardown,
           every_attempt_ends_as_it_should_and_the_engine_goes_on,
           so_it_does_when_the_engine_is_destroyed_right_after, what_runs_away_is_stopped,
           an_entry_within_a_slice_lifts_no_limit)
