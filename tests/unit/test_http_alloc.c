/* A request for which there is no memory fails; those beside it and after it do not. */
#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/clock.h"
#include "runtime/http.h"
#include "failing_alloc.h"
#include "suite.h"

static char url[64], hold_url[64];

/* Answers, and keeps the connection; to /hold it gives half an answer. */
static _Noreturn void serve_one(int fd)
{
    static const char answer[] = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
    static const char half[] = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\no";
    char request[4096];
    ssize_t n;
    while ((n = recv(fd, request, sizeof request - 1, 0)) > 0) {
        request[n] = '\0';
        const char *reply = strstr(request, "/hold") != NULL ? half : answer;
        send(fd, reply, strlen(reply), MSG_NOSIGNAL);
    }
    _exit(0);
}

static void start_server(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t len = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ck_assert_int_eq(bind(listener, (struct sockaddr *)&address, len), 0);
    ck_assert_int_eq(listen(listener, 64), 0);
    ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&address, &len), 0);
    snprintf(url, sizeof url, "http://127.0.0.1:%d/", ntohs(address.sin_port));
    snprintf(hold_url, sizeof hold_url, "http://127.0.0.1:%d/hold", ntohs(address.sin_port));
    if (fork() == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        signal(SIGCHLD, SIG_IGN);
        for (;;) {
            int fd = accept(listener, NULL, NULL);
            if (fd >= 0 && fork() == 0) {
                prctl(PR_SET_PDEATHSIG, SIGKILL);
                serve_one(fd);
            }
            close(fd);
        }
    }
    close(listener);
}

typedef struct outcome {
    size_t bytes;
    int done;
    barchan_error err;
} outcome;

static void on_body(bc_http *http, const char *data, size_t len, void *ud)
{
    (void)http, (void)data;
    ((outcome *)ud)->bytes += len;
}

static void on_done(bc_http *http, const barchan_error *err, void *ud)
{
    outcome *o = ud;
    (void)http;
    o->done = 1;
    if (err != NULL) o->err = *err;
}

static int start(bc_http **http, barchan_runtime *rt, const char *to, outcome *o)
{
    bc_http_options options = {.url = to,
                               .connect_timeout_ms = 5000,
                               .idle_timeout_ms = 30000,
                               .timeout_ms = 60000,
                               .max_body_bytes = 1000};
    bc_http_handlers handlers = {NULL, on_body, on_done, o};
    *o = (outcome){0};
    return bc_http_start(http, rt, &options, &handlers, &o->err);
}

/* Long before any timeout. */
static void pump_until_done(barchan_runtime *rt, const outcome *o)
{
    int64_t limit = bc_clock_ms() + 4000;
    while (!o->done && bc_clock_ms() < limit)
        barchan_runtime_pump(rt, 100, NULL);
    countdown = -1; /* the checks need memory */
    ck_assert_msg(o->done, "a request neither failed nor ended");
}

/* One round with its n-th allocation failing; 0 when there are not as many. */
static int round_of(barchan_runtime *rt, long n)
{
    bc_http *http, *holder;
    outcome held, failing, later;
    ck_assert_int_eq(start(&holder, rt, hold_url, &held), 0);
    int64_t limit = bc_clock_ms() + 4000;
    while (held.bytes == 0 && bc_clock_ms() < limit)
        barchan_runtime_pump(rt, 100, NULL);
    ck_assert_uint_eq(held.bytes, 1);
    failures = 0;
    countdown = n;
    if (start(&http, rt, url, &failing) == 0) pump_until_done(rt, &failing);
    countdown = -1;
    int failed = failures > 0;
    if (failing.err.code != 0) {
        ck_assert_msg(failing.err.code == BARCHAN_ENOMEM, "allocation %ld: %s", n,
                      failing.err.message);
    } else {
        ck_assert_uint_eq(failing.bytes, 2);
    }
    bc_http_close(http);
    ck_assert_int_eq(held.done, 0);
    ck_assert_int_eq(start(&http, rt, url, &later), 0);
    pump_until_done(rt, &later);
    ck_assert_msg(later.err.code == 0, "after allocation %ld: %s", n, later.err.message);
    ck_assert_uint_eq(later.bytes, 2);
    bc_http_close(http);
    ck_assert_int_eq(held.done, 0);
    bc_http_close(holder);
    return failed;
}

START_TEST(others_go_on)
{
    start_server();
    for (int reuse = 0; reuse < 2; reuse++) {
        barchan_runtime *rt = NULL;
        barchan_error err;
        long n = 0;
        do {
            /* With a kept connection, and with none. */
            if (!reuse || rt == NULL) {
                barchan_runtime_destroy(rt);
                ck_assert_int_eq(barchan_runtime_create(&rt, NULL, &err), 0);
            }
        } while (round_of(rt, n++));
        ck_assert_int_gt(n, 4);
        barchan_runtime_destroy(rt);
    }
}
END_TEST

UNIT_MAIN("http_alloc", others_go_on)
