/* The engine in a program that draws: sixty frames a second, and two milliseconds of each for
 * Barchan. Between frames the program sleeps. Scripts that run for long without waiting would
 * stretch a frame, so the engine's slice limit is short. embed_frames SCRIPT_DIR TRANSCRIPT.jsonl
 */
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <barchan/engine.h>

enum { FRAME_US = 1000000 / 60, OURS_US = 2000, SLICE_LIMIT_MS = 100 };

struct host {
    barchan_runtime *rt;
    int frames, late, done, code;
};

static int fail(const char *what, const char *why)
{
    fprintf(stderr, "embed_frames: %s: %s\n", what, why);
    return 1;
}

static int64_t now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static void sleep_until(int64_t us)
{
    struct timespec t = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

static void on_done(const char *result, const barchan_error *err, void *ud)
{
    struct host *host = ud;
    host->done = 1;
    host->code = err != NULL ? fail("run", err->message) : 0;
    if (result != NULL) printf("%s\n", result);
}

/* What is ready, until there is nothing or our part of the frame is over. */
static void pump_a_little(struct host *host)
{
    barchan_error err;
    int64_t end = now_us() + OURS_US;
    while (barchan_runtime_pump(host->rt, 0, &err) > 0 && now_us() < end) {}
}

static void draw(struct host *host)
{
    host->frames++;
}

static void loop(struct host *host)
{
    for (int64_t next = now_us() + FRAME_US; !host->done; next += FRAME_US) {
        pump_a_little(host);
        draw(host);
        if (now_us() > next) host->late++;
        sleep_until(next);
    }
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
    loop(host);
    fprintf(stderr, "%d frames were drawn, %d of them late\n", host->frames, host->late);
    return host->code;
}

int main(int argc, char **argv)
{
    barchan_error err;
    barchan_engine *engine;
    struct host host = {0};
    if (argc != 3) return fail("usage", "embed_frames SCRIPT_DIR TRANSCRIPT.jsonl");
    if (barchan_runtime_create(&host.rt, NULL, &err) < 0) return fail("runtime", err.message);
    barchan_engine_options options = {.struct_size = sizeof options,
                                      .script_dirs = (const char *[]){argv[1], NULL},
                                      .slice_limit_ms = SLICE_LIMIT_MS};
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
