/* The engine in a host's own libuv loop: one uv_poll_t on the runtime's descriptor is all it takes.
 * The host's timer ticks while an agent works, and nothing uses processor time while it waits.
 *   embed_uv SCRIPT_DIR TRANSCRIPT.jsonl */
#include <stdio.h>
#include <uv.h>
#include <barchan/engine.h>

struct host {
    uv_loop_t loop;
    uv_poll_t poll;
    uv_timer_t tick;
    barchan_runtime *rt;
    int ticks, code;
};

static int fail(const char *what, const char *why)
{
    fprintf(stderr, "embed_uv: %s: %s\n", what, why);
    return 1;
}

static void on_ready(uv_poll_t *poll, int status, int events)
{
    struct host *host = poll->data;
    barchan_error err;
    (void)status, (void)events;
    if (barchan_runtime_pump(host->rt, 0, &err) < 0) fail("pump", err.message); /* does not wait */
}

static void on_tick(uv_timer_t *timer)
{
    struct host *host = timer->data;
    host->ticks++;
}

/* The answer is there: with its handles closed, the loop has nothing more to run for. */
static void on_done(const char *result, const barchan_error *err, void *ud)
{
    struct host *host = ud;
    host->code = err != NULL ? fail("run", err->message) : 0;
    if (result != NULL) printf("%s\n", result);
    uv_close((uv_handle_t *)&host->poll, NULL);
    uv_close((uv_handle_t *)&host->tick, NULL);
}

static int run(struct host *host, barchan_engine *engine, const char *transcript)
{
    barchan_error err;
    char args[1024];
    snprintf(args, sizeof args, "{\"prompt\":\"Wait a moment.\",\"transcript\":\"%s\"}",
             transcript);
    if (barchan_engine_load_file(engine, "embed_agent.lua", &err) < 0 ||
        barchan_engine_start(engine, "run", args, NULL, on_done, host, &err) < 0) {
        return fail("start", err.message);
    }
    uv_loop_init(&host->loop);
    uv_poll_init(&host->loop, &host->poll, barchan_runtime_fd(host->rt, &err));
    uv_timer_init(&host->loop, &host->tick);
    host->poll.data = host->tick.data = host;
    uv_poll_start(&host->poll, UV_READABLE, on_ready);
    uv_timer_start(&host->tick, on_tick, 50, 50);
    uv_run(&host->loop, UV_RUN_DEFAULT);
    uv_loop_close(&host->loop);
    fprintf(stderr, "the host ticked %d times\n", host->ticks);
    return host->code;
}

int main(int argc, char **argv)
{
    barchan_error err;
    barchan_engine *engine;
    struct host host = {.code = 1};
    if (argc != 3) return fail("usage", "embed_uv SCRIPT_DIR TRANSCRIPT.jsonl");
    if (barchan_runtime_create(&host.rt, NULL, &err) < 0) return fail("runtime", err.message);
    barchan_engine_options options = {.struct_size = sizeof options,
                                      .script_dirs = (const char *[]){argv[1], NULL}};
    int code = 1;
    if (barchan_engine_create(&engine, host.rt, &options, &err) < 0) {
        fail("engine", err.message);
    } else {
        code = run(&host, engine, argv[2]);
        barchan_engine_destroy(engine);
    }
    barchan_runtime_destroy(host.rt);
    return code;
}
