/* A thousand streams at a time on one runtime, all half-way at the same moment. */
#include <arpa/inet.h>
#include <dirent.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include <barchan/model.h>
#include "base/clock.h"
#include "suite.h"

enum { STREAMS = 1000, LIMIT_MS = 60000, MAX_BYTES_PER_STREAM = 128 << 10 };

static const char request[] =
    "{\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}],\"stream\":true}";

static const char first_half[] =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
    "data: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"role\":\"assistant\","
    "\"content\":[],\"model\":\"m\",\"usage\":{\"input_tokens\":1,\"output_tokens\":1}}}\n\n"
    "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":"
    "{\"type\":\"text\",\"text\":\"\"}}\n\n"
    "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":"
    "{\"type\":\"text_delta\",\"text\":\"half\"}}\n\n";
static const char second_half[] =
    "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":"
    "{\"type\":\"text_delta\",\"text\":\"way\"}}\n\n"
    "data: {\"type\":\"content_block_stop\",\"index\":0}\n\n"
    "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},"
    "\"usage\":{\"output_tokens\":2}}\n\n"
    "data: {\"type\":\"message_stop\"}\n\n";

/* ---- the server: a thread of this process ---- */

struct server {
    int listen_fd, port;
    int go_on; /* atomic: send the second halves */
    int fds[STREAMS];
    pthread_t thread;
};

/* A request has arrived when its body's last byte has; the body is JSON, and so ends in '}'. */
static int read_request(int fd)
{
    char bytes[4096];
    size_t len = 0;
    while (len == 0 || bytes[len - 1] != '}') {
        ssize_t n = recv(fd, bytes + len, sizeof bytes - len, 0);
        if (n <= 0) return -1;
        len += (size_t)n;
    }
    return 0;
}

static void *serve(void *ud)
{
    struct server *server = ud;
    for (int i = 0; i < STREAMS; i++) {
        server->fds[i] = accept(server->listen_fd, NULL, NULL);
        if (server->fds[i] < 0 || read_request(server->fds[i]) < 0) return NULL;
        send(server->fds[i], first_half, sizeof first_half - 1, MSG_NOSIGNAL);
    }
    while (!__atomic_load_n(&server->go_on, __ATOMIC_ACQUIRE)) {
        poll(NULL, 0, 1);
    }
    for (int i = 0; i < STREAMS; i++) {
        send(server->fds[i], second_half, sizeof second_half - 1, MSG_NOSIGNAL);
        close(server->fds[i]);
    }
    return NULL;
}

static void start_server(struct server *server)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t len = sizeof address;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    server->listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(server->listen_fd, (struct sockaddr *)&address, len), 0);
    ck_assert_int_eq(listen(server->listen_fd, STREAMS), 0);
    getsockname(server->listen_fd, (struct sockaddr *)&address, &len);
    server->port = ntohs(address.sin_port);
    ck_assert_int_eq(pthread_create(&server->thread, NULL, serve, server), 0);
}

/* ---- the streams ---- */

static int halves, ended;

static void on_delta(barchan_delta_kind kind, const char *data, size_t len, void *ud)
{
    (void)data, (void)len, (void)ud;
    halves += kind == BARCHAN_DELTA_TEXT;
}

static void on_end(const char *reply, size_t len, const barchan_error *err, void *ud)
{
    (void)len, (void)ud;
    ck_assert_msg(err == NULL, "%s", err != NULL ? err->message : "");
    ck_assert_ptr_nonnull(strstr(reply, "halfway"));
    ended++;
}

static void pump_until(barchan_runtime *rt, const int *count, int wanted)
{
    int64_t deadline = bc_clock_ms() + LIMIT_MS;
    while (*count < wanted && bc_clock_ms() < deadline) {
        barchan_runtime_pump(rt, 50, NULL);
    }
    ck_assert_int_eq(*count, wanted);
}

static int open_fds(void)
{
    DIR *dir = opendir("/proc/self/fd");
    int count = 0;
    while (readdir(dir) != NULL) {
        count++;
    }
    closedir(dir);
    return count;
}

static long resident_bytes(void)
{
    long pages = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    ck_assert_int_eq(fscanf(file, "%ld %ld", &pages, &resident), 2);
    fclose(file);
    return resident * sysconf(_SC_PAGESIZE);
}

START_TEST(a_thousand_streams)
{
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_max < 2 * STREAMS + 100) {
        printf("SKIP at most %ld descriptors\n", (long)limit.rlim_max);
        return;
    }
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    barchan_runtime *rt = NULL;
    ck_assert_int_eq(barchan_runtime_create(&rt, NULL, NULL), 0);
    barchan_runtime_destroy(rt); /* libuv keeps a pipe for the life of the process */
    int before = open_fds();
    static struct server server;
    start_server(&server);
    char url[64];
    snprintf(url, sizeof url, "http://127.0.0.1:%d", server.port);
    barchan_model *model = NULL;
    barchan_model_options o = {
        .struct_size = sizeof o, .provider = "anthropic", .name = "m", .base_url = url};
    ck_assert_int_eq(barchan_runtime_create(&rt, NULL, NULL), 0);
    ck_assert_int_eq(barchan_model_create(&model, rt, &o, NULL), 0);
    barchan_complete_options options = {.struct_size = sizeof options, .on_delta = on_delta};
    long memory = resident_bytes();
    for (int i = 0; i < STREAMS; i++) {
        ck_assert_int_eq(barchan_model_complete_start(NULL, model, request, strlen(request),
                                                      &options, on_end, NULL, NULL),
                         0);
    }
    pump_until(rt, &halves, STREAMS);
    ck_assert_int_eq(ended, 0);
    long each = (resident_bytes() - memory) / STREAMS;
    printf("memory of an open stream: %ld KiB\n", each >> 10);
    ck_assert_int_lt(each, MAX_BYTES_PER_STREAM);
    __atomic_store_n(&server.go_on, 1, __ATOMIC_RELEASE);
    pump_until(rt, &ended, STREAMS);
    ck_assert_int_eq(halves, 2 * STREAMS);
    pthread_join(server.thread, NULL);
    close(server.listen_fd);
    barchan_model_destroy(model);
    barchan_runtime_destroy(rt);
    ck_assert_int_eq(open_fds(), before);
}
END_TEST

UNIT_MAIN("provider_scale", a_thousand_streams)
