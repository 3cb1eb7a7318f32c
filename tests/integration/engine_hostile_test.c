/* Scripts that want to harm their host: each ends as it should, and the engine goes on. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "engine_support.h"

static void open_small_engine(barchan_library library)
{
    reopen_engine(&(barchan_engine_options){.struct_size = sizeof(barchan_engine_options),
                                            .script_dirs = (const char *[]){TEST_DATA, NULL},
                                            .library = library,
                                            .memory_limit_bytes = 32 << 20,
                                            .slice_limit_ms = 20000});
    ck_assert_msg(barchan_engine_load_file(engine, "hostile.lua", &err) == 0, "%s", err.message);
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
    open_small_engine(BARCHAN_LIBRARY_SAFE);
    int n = case_count();
    ck_assert_int_gt(n, 60);
    for (int i = 1; i <= n; i++)
        attempt(i);
}
END_TEST

START_TEST(so_it_does_when_the_engine_is_destroyed_right_after)
{
    int n;
    open_small_engine(BARCHAN_LIBRARY_SAFE);
    n = case_count();
    for (int i = 1; i <= n; i++) {
        char args[16];
        open_small_engine(BARCHAN_LIBRARY_SAFE);
        snprintf(args, sizeof args, "%d", i);
        barchan_engine_call(engine, "run", args, NULL, NULL, &err);
    }
}
END_TEST

SUITE_MAIN("engine_hostile", engine_setup, engine_teardown,
           every_attempt_ends_as_it_should_and_the_engine_goes_on,
           so_it_does_when_the_engine_is_destroyed_right_after)
