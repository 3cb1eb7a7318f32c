/*
 * What it costs to go from C into a script and back with a kilobyte of JSON, and from the script to
 * a tool of the host's. The measure is what the JSON alone costs: jansson parsing it and writing it
 * anew.
 *
 *     bench_engine [CALLS]
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <barchan/engine.h>

#define MAX_CALLS 1000000
#define ROUNDS 20

static char json[1025];
static barchan_runtime *rt;
static barchan_engine *engine;
static barchan_error err;

static double now_us(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
}

static _Noreturn void die(const char *what)
{
    fprintf(stderr, "bench_engine: %s: %s\n", what, err.message);
    exit(1);
}

/* A kilobyte as agents send it: names, numbers, a list, a text that fills it up. */
static void make_json(void)
{
    int len =
        snprintf(json, sizeof json,
                 "{\"id\":17,\"name\":\"support\",\"ratio\":0.25,\"tags\":[\"a\",\"b\",\"c\"],"
                 "\"user\":{\"id\":123456789,\"active\":true,\"plan\":null},\"list\":[");
    for (int i = 0; i < 40; i++)
        len += snprintf(json + len, sizeof json - (size_t)len, "%s%d", i > 0 ? "," : "", i * 37);
    len += snprintf(json + len, sizeof json - (size_t)len, "],\"text\":\"");
    memset(json + len, 'x', sizeof json - 3 - (size_t)len);
    memcpy(json + sizeof json - 3, "\"}", 3);
}

static int answer_with_arguments(barchan_engine *e, uint64_t id, const char *args, size_t len,
                                 void *ud)
{
    (void)ud;
    return barchan_engine_answer(e, id, args, len, 0, NULL);
}

static void by_jansson(void)
{
    json_error_t error;
    json_t *value = json_loads(json, 0, &error);
    char *text = json_dumps(value, JSON_COMPACT);
    if (text == NULL) die("jansson");
    free(text);
    json_decref(value);
}

static void call(const char *function)
{
    char *result;
    if (barchan_engine_call(engine, function, json, NULL, &result, &err) < 0) die(function);
    barchan_free(result);
}

static void empty(void)
{
    if (barchan_engine_call(engine, "nothing", NULL, NULL, NULL, &err) < 0) die("nothing");
}
static void echo(void)
{
    call("echo");
}
static void through_tool(void)
{
    call("through_tool");
}

static const struct {
    const char *name;
    void (*fn)(void);
} rows[] = {{"jansson: parse and write", by_jansson},
            {"C -> Lua -> C, no JSON", empty},
            {"C -> Lua -> C, 1 KiB in and out", echo},
            {"C -> Lua -> host tool -> Lua -> C", through_tool}};
enum { ROWS = sizeof rows / sizeof *rows };

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void measure(int calls)
{
    static double samples[ROWS][ROUNDS];
    for (int round = 0; round < ROUNDS; round++) {
        for (int row = 0; row < ROWS; row++) {
            double began = now_us();
            for (int i = 0; i < calls; i++)
                rows[row].fn();
            samples[row][round] = (now_us() - began) / calls;
        }
    }
    for (int row = 0; row < ROWS; row++)
        qsort(samples[row], ROUNDS, sizeof(double), by_size);
    for (int row = 0; row < ROWS; row++) {
        printf("%-36s %8.2f us  %6.2f\n", rows[row].name, samples[row][ROUNDS / 2],
               samples[row][ROUNDS / 2] / samples[0][ROUNDS / 2]);
    }
}

int main(int argc, char **argv)
{
    static const char script[] =
        "local call = require 'barchan'.host.tools[1].run\n"
        "return { nothing = function() end, echo = function(t) return t end,\n"
        " through_tool = function(t) return call(t).text end }";
    int calls = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 1000;
    barchan_tool tool = {.struct_size = sizeof tool, .name = "echo", .call = answer_with_arguments};
    if (calls < 1 || calls > MAX_CALLS) return fprintf(stderr, "1 to %d calls\n", MAX_CALLS), 2;
    make_json();
    if (barchan_runtime_create(&rt, NULL, &err) < 0) die("runtime");
    if (barchan_engine_create(&engine, rt, NULL, &err) < 0) die("engine");
    if (barchan_engine_add_tool(engine, &tool, &err) < 0) die("tool");
    if (barchan_engine_load_string(engine, "=bench", script, sizeof script - 1, &err) < 0)
        die("load");
    measure(calls);
    barchan_engine_destroy(engine);
    barchan_runtime_destroy(rt);
    return 0;
}
