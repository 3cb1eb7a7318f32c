/* Completions that end early, in every state a connection can be in; many at once. */
#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <barchan/model.h>
#include "base/clock.h"
#include "server_suite.h"

enum { PROMPT_MS = 5000 }; /* waiting it out would take 15 s at least */
enum { AT_ONCE_MS = 100 };

static int64_t fastest_ms;

static const char request[] =
    "{\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}],\"stream\":true}";

static int open_fds(void)
{
    DIR *dir = opendir("/proc/self/fd");
    int count = 0;
    while (readdir(dir) != NULL)
        count++;
    closedir(dir);
    return count;
}

static barchan_model *model_at(const char *url)
{
    barchan_model *model = NULL;
    barchan_error err;
    barchan_model_options o = {.struct_size = sizeof o,
                               .provider = "anthropic",
                               .name = "m",
                               .base_url = url,
                               .allow_plain_http = 1};
    int rc = barchan_model_create(&model, rt, &o, &err);
    ck_assert_msg(rc == 0, "%s", rc < 0 ? err.message : "");
    return model;
}

typedef struct end {
    int count, code;
} end;

static void on_end(const char *reply, size_t len, const barchan_error *err, void *ud)
{
    end *e = ud;
    e->count++;
    e->code = err != NULL ? err->code : 0;
}

/* A listener whose queue is full: connecting to it hangs. */
static int full_listener(int *port, int fillers[8])
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t len = sizeof address;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, len), 0);
    ck_assert_int_eq(listen(fd, 0), 0);
    getsockname(fd, (struct sockaddr *)&address, &len);
    *port = ntohs(address.sin_port);
    for (int i = 0; i < 8; i++) {
        fillers[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        connect(fillers[i], (struct sockaddr *)&address, len);
    }
    return fd;
}

typedef enum way { BY_HANDLE, BY_TOKEN, BY_MODEL, BY_RUNTIME, WAYS } way;

static void pump_for(int64_t ms)
{
    int64_t until = bc_clock_ms() + ms;
    while (bc_clock_ms() < until)
        barchan_runtime_pump(rt, 10, NULL);
}

/* Starts, lets it come into its state, ends it, and looks at the clock. */
static void end_early(const char *url, int64_t state_ms, way how)
{
    barchan_model *model = model_at(url);
    barchan_completion *c = NULL;
    barchan_cancel *token = NULL;
    end e = {0, 0};
    ck_assert_int_eq(barchan_cancel_create(&token, NULL), 0);
    barchan_complete_options o = {.struct_size = sizeof o, .cancel = token};
    ck_assert_int_eq(
        barchan_model_complete_start(&c, model, request, strlen(request), &o, on_end, &e, NULL), 0);
    if (state_ms > 0) pump_for(state_ms);
    ck_assert_msg(e.count == 0, "%s ended by itself (%d)", url, e.code);
    int64_t start = bc_clock_ms();
    if (how == BY_HANDLE) barchan_completion_cancel(c);
    if (how == BY_TOKEN) barchan_cancel_trigger(token);
    if (how == BY_MODEL) barchan_model_destroy(model);
    if (how == BY_RUNTIME) barchan_runtime_destroy(rt);
    while (how <= BY_TOKEN && e.count == 0 && bc_clock_ms() - start < 5000) {
        barchan_runtime_pump(rt, 100, NULL);
    }
    int64_t took_ms = bc_clock_ms() - start;
    ck_assert_int_eq(e.count, 1);
    ck_assert_int_eq(e.code, BARCHAN_ECANCELLED);
    ck_assert_msg(took_ms < PROMPT_MS, "%s took %ld ms", url, (long)took_ms);
    if (took_ms < fastest_ms) fastest_ms = took_ms;
    if (how <= BY_TOKEN) barchan_model_destroy(model);
    if (how == BY_RUNTIME) server_suite_set_up();
    barchan_cancel_release(token);
}

START_TEST(ends_promptly_in_every_state)
{
    int fillers[8], port, fd = full_listener(&port, fillers);
    char connecting[64], tls[64], silent[64], halfhead[64], headonly[64], stall[64];
    snprintf(connecting, sizeof connecting, "http://127.0.0.1:%d", port);
    snprintf(tls, sizeof tls, "https://127.0.0.1:%d", server.port);
    snprintf(silent, sizeof silent, "http://127.0.0.1:%d/silent", server.port);
    snprintf(halfhead, sizeof halfhead, "http://127.0.0.1:%d/halfhead", server.port);
    snprintf(headonly, sizeof headonly, "http://127.0.0.1:%d/headonly", server.port);
    snprintf(stall, sizeof stall, "http://127.0.0.1:%d/stall", server.port);
    const struct {
        const char *url;
        int64_t state_ms;
    } states[] = {
        {silent, 0},                         /* not even begun */
        {"https://no-such-host.example", 0}, /* resolving */
        {connecting, 50},
        {tls, 50},
        {silent, 50},
        {halfhead, 50},
        {headonly, 50},
        {stall, 50},
    };
    for (size_t i = 0; i < sizeof states / sizeof *states; i++) {
        fastest_ms = PROMPT_MS;
        for (way how = BY_HANDLE; how < WAYS; how++)
            end_early(states[i].url, states[i].state_ms, how);
        /* Each may have had to wait for its turn on a busy machine. */
        ck_assert_msg(fastest_ms < AT_ONCE_MS, "%s: %ld ms", states[i].url, (long)fastest_ms);
    }
    for (int i = 0; i < 8; i++)
        close(fillers[i]);
    close(fd);
}
END_TEST

START_TEST(no_descriptor_is_left)
{
    char url[64];
    snprintf(url, sizeof url, "http://127.0.0.1:%d/stall", server.port);
    end_early(url, 50, BY_RUNTIME);
    int before = open_fds();
    for (int i = 0; i < 20; i++)
        end_early(url, 5, (way)(i % WAYS));
    server_suite_tear_down();
    server_suite_set_up();
    ck_assert_int_eq(open_fds(), before);
}
END_TEST

START_TEST(connections_are_not_inherited)
{
    char url[64], *reply = NULL;
    int connections = 0;
    snprintf(url, sizeof url, "http://127.0.0.1:%d/ok", server.port);
    barchan_model *model = model_at(url);
    ck_assert_int_eq(barchan_model_complete(model, request, strlen(request), NULL, &reply, NULL),
                     0);
    free(reply);
    for (int fd = 3; fd < 256; fd++) {
        struct sockaddr_in peer_address;
        socklen_t len = sizeof peer_address;
        if (getpeername(fd, (struct sockaddr *)&peer_address, &len) < 0) continue;
        if (peer_address.sin_family != AF_INET || ntohs(peer_address.sin_port) != server.port)
            continue;
        connections++;
        int probes = 0;
        socklen_t size = sizeof probes;
        ck_assert_int_eq(getsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &probes, &size), 0);
        ck_assert_msg(probes == 1, "descriptor %d is not probed while it is idle", fd);
        ck_assert_msg((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0, "descriptor %d", fd);
    }
    ck_assert_int_eq(connections, 1); /* the kept one */
    barchan_model_destroy(model);
}
END_TEST

START_TEST(many_at_once)
{
    enum { COUNT = 100 };
    char url[64];
    snprintf(url, sizeof url, "http://127.0.0.1:%d/slow/0.02", server.port);
    barchan_model *model = model_at(url);
    end ends[COUNT] = {{0, 0}};
    for (int i = 0; i < COUNT; i++) {
        ends[i].code = 1;
        ck_assert_int_eq(barchan_model_complete_start(NULL, model, request, strlen(request), NULL,
                                                      on_end, &ends[i], NULL),
                         0);
    }
    int64_t start = bc_clock_ms();
    for (int left = COUNT; left > 0 && bc_clock_ms() - start < 30000;) {
        barchan_runtime_pump(rt, 100, NULL);
        left = 0;
        for (int i = 0; i < COUNT; i++)
            left += ends[i].count == 0;
    }
    for (int i = 0; i < COUNT; i++) {
        ck_assert_int_eq(ends[i].count, 1);
        ck_assert_int_eq(ends[i].code, 0);
    }
    barchan_model_destroy(model);
}
END_TEST

/* Each thread has its own runtime, and they share nothing (ThreadSanitizer looks on). */
static void *own_runtime(void *ud)
{
    long good = 0;
    char url[64];
    barchan_runtime *mine = NULL;
    snprintf(url, sizeof url, "http://127.0.0.1:%d/ok", server.port);
    if (barchan_runtime_create(&mine, NULL, NULL) < 0) return NULL;
    barchan_model *model = NULL;
    barchan_model_options o = {
        .struct_size = sizeof o, .provider = "anthropic", .name = "m", .base_url = url};
    if (barchan_model_create(&model, mine, &o, NULL) == 0) {
        for (int i = 0; i < 10; i++) {
            char *reply = NULL;
            good +=
                barchan_model_complete(model, request, strlen(request), NULL, &reply, NULL) == 0;
            free(reply);
        }
    }
    barchan_runtime_destroy(mine);
    *(long *)ud = good;
    return NULL;
}

START_TEST(threads_share_nothing)
{
    pthread_t threads[4];
    long good[4] = {0};
    for (int i = 0; i < 4; i++) {
        ck_assert_int_eq(pthread_create(&threads[i], NULL, own_runtime, &good[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        ck_assert_int_eq(good[i], 10);
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {ends_promptly_in_every_state,  no_descriptor_is_left,
                                  connections_are_not_inherited, many_at_once,
                                  threads_share_nothing,         NULL};
    return server_suite_run("provider_cancel", byte_server, tests, 1);
}
