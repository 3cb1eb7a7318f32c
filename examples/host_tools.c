/* Tools of the host's own, one of each kind: `stock_level` answers at once, `price_quote` asks a
 * slow service in another thread and answers when that is done. The agent waits for neither: while
 * a quote is under way, other calls go on. host_tools SCRIPT_DIR TRANSCRIPT.jsonl The script is
 * embed_agent.lua; the model's turns are replayed from the transcript. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <barchan/engine.h>

static int fail(const char *what, const barchan_error *err)
{
    fprintf(stderr, "host_tools: %s: %s\n", what, err->message);
    return 1;
}

/* ---- a tool that answers at once ---- */

static int stock_level(barchan_engine *engine, uint64_t call_id, const char *args, size_t len,
                       void *ud)
{
    static const char answer[] = "{\"item\":\"tent\",\"in_stock\":3}";
    (void)args, (void)len,
        (void)ud; /* the arguments fit the tool's schema; a real tool reads them */
    return barchan_engine_answer(engine, call_id, answer, strlen(answer), 0, NULL);
}

/* ---- a tool that answers later, from another thread ---- */

struct host {
    barchan_runtime *rt;
    barchan_engine *engine; /* NULL once it is gone */
    int quotes;             /* under way */
};

struct quote {
    struct host *host;
    uint64_t call_id;
    pthread_t thread;
    char text[64];
};

/* On the runtime's thread again, where the engine may be used. A call that was cancelled meanwhile
 * takes no answer (BARCHAN_ENOTFOUND), and that is fine. */
static void give_answer(barchan_runtime *rt, void *ud)
{
    struct quote *quote = ud;
    struct host *host = quote->host;
    (void)rt;
    pthread_join(quote->thread, NULL);
    if (host->engine != NULL) {
        barchan_engine_answer(host->engine, quote->call_id, quote->text, strlen(quote->text), 0,
                              NULL);
    }
    host->quotes--;
    free(quote);
}

/* The thread: anything slow, but no call of Barchan's than post. */
static void *ask_service(void *ud)
{
    struct quote *quote = ud;
    nanosleep(&(struct timespec){.tv_nsec = 300 * 1000000}, NULL);
    snprintf(quote->text, sizeof quote->text, "{\"item\":\"tent\",\"price\":249.5}");
    barchan_runtime_post(quote->host->rt, give_answer, quote, NULL);
    return NULL;
}

static int price_quote(barchan_engine *engine, uint64_t call_id, const char *args, size_t len,
                       void *ud)
{
    struct host *host = ud;
    struct quote *quote = calloc(1, sizeof *quote);
    (void)engine, (void)args, (void)len;
    if (quote == NULL) return BARCHAN_ENOMEM;
    quote->host = host;
    quote->call_id = call_id;
    if (pthread_create(&quote->thread, NULL, ask_service, quote) != 0) {
        free(quote);
        return BARCHAN_EIO;
    }
    host->quotes++;
    return 0; /* answered later */
}

/* ---- the host ---- */

static void show_event(const char *event, size_t len, void *ud)
{
    (void)ud;
    fprintf(stderr, "%.*s\n", (int)len, event);
}

static int add_tools(struct host *host, barchan_error *err)
{
    static const char item[] =
        "{\"type\":\"object\",\"properties\":{\"item\":{\"type\":\"string\"}},"
        "\"required\":[\"item\"]}";
    barchan_tool stock = {.struct_size = sizeof stock,
                          .name = "stock_level",
                          .description = "How many of an item are in stock.",
                          .parameters_json = item,
                          .call = stock_level};
    barchan_tool price = {.struct_size = sizeof price,
                          .name = "price_quote",
                          .description = "The price of an item today.",
                          .parameters_json = item,
                          .call = price_quote,
                          .ud = host};
    int rc = barchan_engine_add_tool(host->engine, &stock, err);
    return rc < 0 ? rc : barchan_engine_add_tool(host->engine, &price, err);
}

static int run(struct host *host, const char *transcript)
{
    barchan_error err;
    char args[1024], *answer;
    if (add_tools(host, &err) < 0) return fail("tools", &err);
    if (barchan_engine_load_file(host->engine, "embed_agent.lua", &err) < 0)
        return fail("load", &err);
    snprintf(args, sizeof args, "{\"prompt\":\"Can I buy a tent?\",\"transcript\":\"%s\"}",
             transcript);
    if (barchan_engine_call(host->engine, "run", args, NULL, &answer, &err) < 0) {
        return fail("call", &err);
    }
    printf("%s\n", answer);
    barchan_free(answer);
    return 0;
}

int main(int argc, char **argv)
{
    barchan_error err;
    struct host host = {0};
    if (argc != 3) {
        fprintf(stderr, "usage: host_tools SCRIPT_DIR TRANSCRIPT.jsonl\n");
        return 2;
    }
    if (barchan_runtime_create(&host.rt, NULL, &err) < 0) return fail("runtime", &err);
    barchan_engine_options options = {.struct_size = sizeof options,
                                      .script_dirs = (const char *[]){argv[1], NULL},
                                      .on_event = show_event};
    int code = 1;
    if (barchan_engine_create(&host.engine, host.rt, &options, &err) < 0) {
        fail("engine", &err);
    } else {
        code = run(&host, argv[2]);
        barchan_engine_destroy(host.engine);
        host.engine = NULL;
    }
    while (host.quotes > 0) /* a thread may post as long as there is a runtime */
        barchan_runtime_pump(host.rt, -1, &err);
    barchan_runtime_destroy(host.rt);
    return code;
}
