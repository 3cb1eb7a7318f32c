/* The engine in a C program: an agent script, a tool of the host's own, events on standard error.
 *   embed_agent SCRIPT_DIR TRANSCRIPT.jsonl
 * The script is embed_agent.lua; the model's turns are replayed from the transcript. */
#include <stdio.h>
#include <string.h>
#include <barchan/engine.h>

static int fail(const char *what, const barchan_error *err)
{
    fprintf(stderr, "embed_agent: %s: %s\n", what, err->message);
    return 1;
}

/* The host's own data, which no sandbox can see: the model reaches it by this tool alone. */
static int lookup_order(barchan_engine *engine, uint64_t call_id, const char *args, size_t len,
                        void *ud)
{
    static const char found[] = "{\"order\":17,\"status\":\"shipped\",\"carrier\":\"camel\"}";
    static const char unknown[] = "there is no such order";
    (void)ud;
    int ok = len == strlen("{\"order\":17}") && memcmp(args, "{\"order\":17}", len) == 0;
    return barchan_engine_answer(engine, call_id, ok ? found : unknown,
                                 strlen(ok ? found : unknown), !ok, NULL);
}

static void show_event(const char *event, size_t len, void *ud)
{
    (void)ud;
    fprintf(stderr, "%.*s\n", (int)len, event);
}

static int run(barchan_engine *engine, const char *transcript)
{
    barchan_error err;
    barchan_tool tool = {.struct_size = sizeof tool,
                         .name = "lookup_order",
                         .description = "Look up an order by its number.",
                         .parameters_json = "{\"type\":\"object\",\"properties\":{\"order\":"
                                            "{\"type\":\"integer\"}},\"required\":[\"order\"]}",
                         .call = lookup_order};
    if (barchan_engine_add_tool(engine, &tool, &err) < 0) return fail("tool", &err);
    if (barchan_engine_load_file(engine, "embed_agent.lua", &err) < 0) return fail("load", &err);
    char args[1024], *answer;
    snprintf(args, sizeof args, "{\"prompt\":\"Where is order 17?\",\"transcript\":\"%s\"}",
             transcript);
    if (barchan_engine_call(engine, "run", args, NULL, &answer, &err) < 0) {
        return fail("call", &err);
    }
    printf("%s\n", answer);
    barchan_free(answer);
    return 0;
}

int main(int argc, char **argv)
{
    barchan_error err;
    barchan_runtime *rt;
    barchan_engine *engine;
    if (argc != 3) {
        fprintf(stderr, "usage: embed_agent SCRIPT_DIR TRANSCRIPT.jsonl\n");
        return 2;
    }
    if (barchan_runtime_create(&rt, NULL, &err) < 0) return fail("runtime", &err);
    barchan_engine_options options = {.struct_size = sizeof options,
                                      .script_dirs = (const char *[]){argv[1], NULL},
                                      .library = BARCHAN_LIBRARY_SAFE,
                                      .on_event = show_event};
    int code = 1;
    if (barchan_engine_create(&engine, rt, &options, &err) < 0) {
        fail("engine", &err);
    } else {
        code = run(engine, argv[2]);
        barchan_engine_destroy(engine);
    }
    barchan_runtime_destroy(rt);
    return code;
}
