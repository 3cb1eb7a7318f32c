#include "engine_support.h"

#include <stdio.h>
#include <string.h>

barchan_runtime *rt;
barchan_engine *engine;
barchan_error err;
char printed[4096], events[4096];

static void append(char *to, size_t size, const char *text, size_t len)
{
    size_t used = strlen(to);
    snprintf(to + used, size - used, "%.*s", (int)len, text);
}

void keep_print(const char *text, size_t len, void *ud)
{
    (void)ud;
    append(printed, sizeof printed, text, len);
}

void keep_event(const char *event, size_t len, void *ud)
{
    (void)ud;
    append(events, sizeof events, event, len);
    append(events, sizeof events, "\n", 1);
}

void open_engine(barchan_library library, size_t memory_limit_bytes)
{
    static const char *const dirs[] = {"/tmp/barchan-no-such-dir", NULL};
    barchan_engine_options options = {.struct_size = sizeof options,
                                      .script_dirs = dirs,
                                      .library = library,
                                      .memory_limit_bytes = memory_limit_bytes,
                                      .slice_limit_ms = 20000, /* sanitizers are slow */
                                      .on_print = keep_print,
                                      .on_event = keep_event};
    ck_assert_msg(barchan_engine_create(&engine, rt, &options, &err) == 0, "%s", err.message);
}

void reopen_engine(const barchan_engine_options *options)
{
    barchan_engine_destroy(engine);
    ck_assert_msg(barchan_engine_create(&engine, rt, options, &err) == 0, "%s", err.message);
}

void engine_setup(void)
{
    printed[0] = events[0] = '\0';
    ck_assert_int_eq(barchan_runtime_create(&rt, NULL, &err), 0);
    open_engine(BARCHAN_LIBRARY_SAFE, 0);
}

void engine_teardown(void)
{
    barchan_engine_destroy(engine);
    barchan_runtime_destroy(rt);
}

void load(const char *text)
{
    int rc = barchan_engine_load_string(engine, "=test", text, strlen(text), &err);
    ck_assert_msg(rc == 0, "%s", err.message);
}

char *call(const char *function, const char *args)
{
    char *result = NULL;
    int rc = barchan_engine_call(engine, function, args, NULL, &result, &err);
    ck_assert_msg(rc == 0, "%s", err.message);
    return result;
}

void expect(const char *function, const char *args, const char *expected)
{
    char *result = call(function, args);
    ck_assert_str_eq(result, expected);
    barchan_free(result);
}

void expect_error(const char *function, const char *args, int code, const char *message)
{
    char *result = NULL;
    int rc = barchan_engine_call(engine, function, args, NULL, &result, &err);
    ck_assert_msg(rc == code, "%s gave %d (%s), not %d", function, rc, rc < 0 ? err.message : "",
                  code);
    ck_assert_ptr_null(result);
    ck_assert_msg(strstr(err.message, message) != NULL, "'%s' does not say '%s'", err.message,
                  message);
}

void on_done(const char *result, const barchan_error *error, void *ud)
{
    struct outcome *outcome = ud;
    outcome->called++;
    outcome->code = error != NULL ? error->code : 0;
    snprintf(outcome->result, sizeof outcome->result, "%s",
             error != NULL    ? error->message
             : result != NULL ? result
                              : "");
}

void pump_until(const int *done)
{
    while (!*done)
        ck_assert_int_ge(barchan_runtime_pump(rt, 1000, &err), 0);
}

void add_tool(const char *name, barchan_tool_fn fn, void *ud)
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
