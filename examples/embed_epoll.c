/* The engine inside a host's own epoll loop: nothing here blocks but epoll_wait. The host ticks
 * while an agent works, and uses no processor time while it waits. embed_epoll SCRIPT_DIR
 * TRANSCRIPT.jsonl */
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/timerfd.h>
#include <unistd.h>
#include <barchan/engine.h>

struct host {
    int epoll_fd, tick_fd;
    int ticks, done, code;
    barchan_runtime *rt;
};

static int fail(const char *what, const char *why)
{
    fprintf(stderr, "embed_epoll: %s: %s\n", what, why);
    return 1;
}

static void on_done(const char *result, const barchan_error *err, void *ud)
{
    struct host *host = ud;
    host->done = 1;
    host->code = err != NULL ? fail("run", err->message) : 0;
    if (result != NULL) printf("%s\n", result);
}

static void watch(struct host *host, int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    epoll_ctl(host->epoll_fd, EPOLL_CTL_ADD, fd, &event);
}

static void loop(struct host *host)
{
    barchan_error err;
    struct epoll_event events[8];
    while (!host->done) {
        int n = epoll_wait(host->epoll_fd, events, 8, -1);
        for (int i = 0; i < n; i++) {
            unsigned long long count;
            if (events[i].data.fd == host->tick_fd) {
                if (read(host->tick_fd, &count, sizeof count) > 0) host->ticks++;
            } else {
                barchan_runtime_pump(host->rt, 0, &err); /* never waits with a timeout of 0 */
            }
        }
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
    host->tick_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    struct itimerspec every = {{0, 50 * 1000000}, {0, 50 * 1000000}};
    timerfd_settime(host->tick_fd, 0, &every, NULL);
    watch(host, host->tick_fd);
    watch(host, barchan_runtime_fd(host->rt, &err));
    loop(host);
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    fprintf(stderr, "the host ticked %d times and used %ld ms of processor time\n", host->ticks,
            (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000 +
                (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1000);
    close(host->tick_fd);
    return host->code;
}

int main(int argc, char **argv)
{
    barchan_error err;
    barchan_engine *engine;
    struct host host = {.epoll_fd = epoll_create1(EPOLL_CLOEXEC)};
    if (argc != 3) return fail("usage", "embed_epoll SCRIPT_DIR TRANSCRIPT.jsonl");
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
    close(host.epoll_fd);
    return code;
}
