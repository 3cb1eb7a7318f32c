/* Completions that end early, in every state a connection can be in; TLS; many at once. */
#include <arpa/inet.h>
#include <check.h>
#include <curl/curl.h>
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
#include "peer.h"
#include "runtime/http.h"

enum { SKIPPED = 77, PROMPT_MS = 1000 };

static peer server, tls_server;
static int has_tls;
static barchan_runtime *rt;
static const char request[] =
    "{\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}],\"stream\":true}";

static void set_up(void)
{
    ck_assert_int_eq(barchan_runtime_create(&rt, NULL, NULL), 0);
}

static void tear_down(void)
{
    barchan_runtime_destroy(rt);
    rt = NULL;
}

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
    ck_assert_int_eq(e.count, 1);
    ck_assert_int_eq(e.code, BARCHAN_ECANCELLED);
    ck_assert_msg(bc_clock_ms() - start < PROMPT_MS, "%s took %ld ms", url,
                  (long)(bc_clock_ms() - start));
    if (how <= BY_TOKEN) barchan_model_destroy(model);
    if (how == BY_RUNTIME) set_up();
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
        for (way how = BY_HANDLE; how < WAYS; how++)
            end_early(states[i].url, states[i].state_ms, how);
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
    tear_down();
    set_up();
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

static barchan_error fail_at(const char *url)
{
    barchan_error err = {0};
    char *reply = NULL;
    barchan_model *model = model_at(url);
    ck_assert_int_lt(barchan_model_complete(model, request, strlen(request), NULL, &reply, &err),
                     0);
    barchan_model_destroy(model);
    return err;
}

static long unverified_status(int port)
{
    char url[64];
    long status = 0;
    CURL *easy = curl_easy_init();
    snprintf(url, sizeof url, "https://127.0.0.1:%d/_stats", port);
    curl_easy_setopt(easy, CURLOPT_URL, url);
    curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 0L);
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 0L);
    if (curl_easy_perform(easy) == CURLE_OK) {
        curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    }
    curl_easy_cleanup(easy);
    return status;
}

START_TEST(unknown_certificates_are_refused)
{
    char url[64];
    if (!has_tls) {
        printf("SKIP no oracle: a certificate could not be made (openssl is missing)\n");
        return;
    }
    snprintf(url, sizeof url, "https://127.0.0.1:%d/ok", tls_server.port);
    barchan_error err = fail_at(url);
    ck_assert_int_eq(err.code, BARCHAN_ENETWORK);
    ck_assert_ptr_nonnull(strstr(err.message, "not trusted"));
    ck_assert_int_eq(err.retryable, 0);
    snprintf(url, sizeof url, "https://localhost:%d/ok", tls_server.port);
    err = fail_at(url);
    ck_assert_ptr_nonnull(strstr(err.message, "not trusted"));
    /* The same server answers one who does not look at the certificate. */
    ck_assert_int_eq(unverified_status(tls_server.port), 200);
}
END_TEST

START_TEST(a_closed_port_is_a_clear_error)
{
    int fillers[8], port;
    close(full_listener(&port, fillers));
    for (int i = 0; i < 8; i++)
        close(fillers[i]);
    char url[64];
    snprintf(url, sizeof url, "http://127.0.0.1:%d", port);
    barchan_error err = fail_at(url);
    ck_assert_int_eq(err.code, BARCHAN_ENETWORK);
    ck_assert_int_eq(err.retryable, 1);
    ck_assert_ptr_nonnull(strstr(err.message, "cannot connect"));
}
END_TEST

/* ---- addresses ---- */

static int create_at(const char *url, int allow_plain, const char *key)
{
    barchan_model *model = NULL;
    barchan_error err = {0};
    barchan_model_options o = {.struct_size = sizeof o,
                               .provider = "openai",
                               .name = "m",
                               .base_url = url,
                               .allow_plain_http = allow_plain,
                               .api_key = key};
    int rc = barchan_model_create(&model, rt, &o, &err);
    ck_assert((rc == 0) == (model != NULL));
    if (rc < 0 && key != NULL) ck_assert_ptr_null(strstr(err.message, key));
    barchan_model_destroy(model);
    return rc;
}

START_TEST(addresses_are_checked)
{
    static const char *const good[] = {
        "https://api.example.com/v1", "https://api.example.com:8443/v1/?x=1",
        "http://localhost:11434",     "http://127.0.0.1:1/v1",
        "http://127.9.9.9",           "http://[::1]:8080/v1",
        "HTTPS://API.EXAMPLE.COM",
    };
    static const char *const bad[] = {
        "",
        "api.example.com",
        "ftp://example.com",
        "file:///etc/passwd",
        "https://",
        "https://user:pass@example.com",
        "https://user@h",
        "https://example.com/#x",
        "https://exa mple.com",
        "https://example.com:0",
        "https://example.com:65536",
        "https://example.com\r\nx: y",
        "gopher://127.0.0.1",
        "javascript:alert(1)",
        " https://example.com",
    };
    static const char *const plain[] = {
        "http://example.com",
        "http://localhost.example.com",
        "http://127.0.0.1.example.com",
        "http://10.0.0.1",
        "http://[::2]",
        "http://0.0.0.0",
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        ck_assert_msg(create_at(good[i], 0, NULL) == 0, "%s", good[i]);
    }
    /* An empty one means the provider's own. */
    for (size_t i = 1; i < sizeof bad / sizeof *bad; i++) {
        ck_assert_msg(create_at(bad[i], 1, NULL) < 0, "%s", bad[i]);
    }
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++) {
        ck_assert_msg(create_at(plain[i], 0, NULL) == BARCHAN_EPERMISSION, "%s", plain[i]);
        ck_assert_msg(create_at(plain[i], 1, NULL) == 0, "%s", plain[i]);
    }
    ck_assert_int_eq(create_at("https://h", 0, "key\r\nx-injected: 1"), BARCHAN_EINVAL);
    ck_assert_int_eq(create_at("https://h", 0, "key-with-newline\n"), BARCHAN_EINVAL);
    ck_assert_int_eq(bc_http_check_header("x-good: v", NULL), 0);
    ck_assert_int_lt(bc_http_check_header("no colon", NULL), 0);
    ck_assert_int_lt(bc_http_check_header("x: a\r\ny: b", NULL), 0);
    ck_assert_int_lt(bc_http_check_header("bad name: b", NULL), 0);
}
END_TEST

static int start_tls(void)
{
    static char folder[] = "/tmp/barchan-tls-XXXXXX";
    char command_key[64], command_cert[64];
    if (mkdtemp(folder) == NULL) return -1;
    snprintf(command_key, sizeof command_key, "%s/key.pem", folder);
    snprintf(command_cert, sizeof command_cert, "%s/cert.pem", folder);
    const char *make[] = {"openssl",       "req",       "-x509",
                          "-newkey",       "rsa:2048",  "-nodes",
                          "-days",         "1",         "-subj",
                          "/CN=localhost", "-addext",   "subjectAltName=DNS:localhost,IP:127.0.0.1",
                          "-keyout",       command_key, "-out",
                          command_cert,    NULL};
    const char *serve[] = {"python3", BYTE_SERVER, command_cert, command_key, NULL};
    int rc = peer_run(make) == 0 ? peer_start(&tls_server, serve) : -1;
    unlink(command_key);
    unlink(command_cert);
    rmdir(folder);
    return rc;
}

int main(void)
{
    const char *argv[] = {"python3", BYTE_SERVER, NULL};
    if (peer_start(&server, argv) < 0) {
        printf("SKIP python3 is not there\n");
        return SKIPPED;
    }
    has_tls = start_tls() == 0;
    Suite *suite = suite_create("provider_cancel");
    TCase *tc = tcase_create("all");
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, ends_promptly_in_every_state);
    tcase_add_test(tc, no_descriptor_is_left);
    tcase_add_test(tc, connections_are_not_inherited);
    tcase_add_test(tc, many_at_once);
    tcase_add_test(tc, threads_share_nothing);
    tcase_add_test(tc, unknown_certificates_are_refused);
    tcase_add_test(tc, a_closed_port_is_a_clear_error);
    tcase_add_test(tc, addresses_are_checked);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_set_fork_status(runner, CK_NOFORK);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    peer_stop(&server);
    if (has_tls) peer_stop(&tls_server);
    return failed == 0 ? 0 : 1;
}
