/* Addresses that a model may have, and what a connection to a wrong one ends with; TLS. */
#include <arpa/inet.h>
#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "provider_server.h"
#include "runtime/http.h"

static barchan_error fail_at(const char *url)
{
    barchan_error err = {0};
    char *reply = NULL;
    barchan_model *model = NULL;
    barchan_model_options o = {.struct_size = sizeof o,
                               .provider = "anthropic",
                               .name = "m",
                               .base_url = url,
                               .max_retries = -1};
    ck_assert_int_eq(barchan_model_create(&model, rt, &o, NULL), 0);
    ck_assert_int_lt(
        barchan_model_complete(model, plain_request, strlen(plain_request), NULL, &reply, &err), 0);
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

static int start_tls(peer *tls_server)
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
    int rc = peer_run(make) == 0 ? peer_start(tls_server, serve) : -1;
    unlink(command_key);
    unlink(command_cert);
    rmdir(folder);
    return rc;
}

START_TEST(unknown_certificates_are_refused)
{
    char url[64];
    peer tls_server;
    if (start_tls(&tls_server) < 0) {
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
    peer_stop(&tls_server);
}
END_TEST

START_TEST(a_closed_port_is_a_clear_error)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t len = sizeof address;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    /* Held, and not listened at, so that nobody else does. */
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, len), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&address, &len), 0);
    char url[64];
    snprintf(url, sizeof url, "http://127.0.0.1:%d", ntohs(address.sin_port));
    barchan_error err = fail_at(url);
    ck_assert_int_eq(err.code, BARCHAN_ENETWORK);
    ck_assert_int_eq(err.retryable, 1);
    ck_assert_ptr_nonnull(strstr(err.message, "cannot connect"));
    close(fd);
}
END_TEST

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

/* A second length, or another host, and somebody on the way reads another request. */
START_TEST(what_frames_a_request_is_no_header_of_the_hosts)
{
    static const char *const refused[] = {"Content-Length: 5", "transfer-encoding:chunked",
                                          "HOST: a", "Content-Type: text/plain", "te: trailers"};
    static const char *const taken[] = {"x-host: a", "Content-Language: de", "hosts: a"};
    const size_t bad = sizeof refused / sizeof *refused;
    for (size_t i = 0; i < bad + sizeof taken / sizeof *taken; i++) {
        const char *const lines[] = {"x-first: 1", i < bad ? refused[i] : taken[i - bad], NULL};
        barchan_model *model = NULL;
        barchan_error err = {0};
        barchan_model_options o = {
            .struct_size = sizeof o, .provider = "openai", .name = "m", .headers = lines};
        int rc = barchan_model_create(&model, rt, &o, &err);
        ck_assert_msg(rc == (i < bad ? BARCHAN_EINVAL : 0), "%s: %d", lines[1], rc);
        if (i < bad) ck_assert_ptr_nonnull(strstr(err.message, "is set by the library"));
        barchan_model_destroy(model);
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {unknown_certificates_are_refused, a_closed_port_is_a_clear_error,
                                  addresses_are_checked,
                                  what_frames_a_request_is_no_header_of_the_hosts, NULL};
    return server_suite_run("provider_addresses", byte_server, tests, 1);
}
