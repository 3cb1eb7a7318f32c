/* Completions over real connections on loopback, with servers that behave and servers that do not.
 */
#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <barchan/model.h>
#include "base/clock.h"
#include "base/json_view.h"
#include "peer.h"

enum { SKIPPED = 77 };

static peer server;
static barchan_runtime *rt;

static void set_up(void)
{
    barchan_error err;
    ck_assert_int_eq(barchan_runtime_create(&rt, NULL, &err), 0);
}

static void tear_down(void)
{
    barchan_runtime_destroy(rt);
}

/* ---- helpers ---- */

static const char plain_request[] = "{\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}";
static const char stream_request[] =
    "{\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}],\"stream\":true}";

static barchan_model *model_with(const char *scenario, const barchan_model_options *more)
{
    barchan_model_options o = more != NULL ? *more : (barchan_model_options){0};
    barchan_error err;
    barchan_model *model = NULL;
    char url[512];
    snprintf(url, sizeof url, "http://127.0.0.1:%d/%s", server.port, scenario);
    o.struct_size = sizeof o;
    if (o.provider == NULL) o.provider = "anthropic";
    if (o.name == NULL) o.name = "claude-test";
    if (o.base_url == NULL) o.base_url = url;
    int rc = barchan_model_create(&model, rt, &o, &err);
    ck_assert_msg(rc == 0, "%s", rc < 0 ? err.message : "");
    return model;
}

static json_t *complete(barchan_model *model, const char *request)
{
    barchan_error err;
    char *reply = NULL;
    json_t *view = NULL;
    int rc = barchan_model_complete(model, request, strlen(request), NULL, &reply, &err);
    ck_assert_msg(rc == 0, "%s", rc < 0 ? err.message : "");
    ck_assert_int_eq(bc_json_view(&view, reply, strlen(reply), 0, NULL), 0);
    free(reply);
    return view;
}

static barchan_error fail_with(const char *scenario, const char *request,
                               const barchan_model_options *more)
{
    barchan_error err = {0};
    char *reply = NULL;
    barchan_model *model = model_with(scenario, more);
    int rc = barchan_model_complete(model, request, strlen(request), NULL, &reply, &err);
    ck_assert_msg(rc < 0, "%s was taken for an answer: %s", scenario, reply);
    ck_assert_int_eq(rc, err.code);
    ck_assert_ptr_null(reply);
    ck_assert_int_gt((int)strlen(err.message), 10);
    barchan_model_destroy(model);
    return err;
}

static const char *text_of(const json_t *reply)
{
    return bc_json_get_string(reply, "text", NULL);
}

/* ---- what works ---- */

START_TEST(answers_plain_and_streaming)
{
    static const char *const scenarios[] = {
        "ok", "bytewise", "jsonforstream", "streamforjson", "interim/few", "neverclose", "cookie"};
    for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++) {
        barchan_model *model = model_with(scenarios[i], NULL);
        const char *const requests[] = {plain_request, stream_request};
        for (int j = 0; j < 2; j++) {
            json_t *reply = complete(model, requests[j]);
            ck_assert_str_eq(text_of(reply), "Hello \xE2\x82\xAC\xF0\x9F\x98\x80");
            ck_assert_str_eq(bc_json_get_string(reply, "stop_reason", NULL), "end_turn");
            json_decref(reply);
        }
        barchan_model_destroy(model);
    }
}
END_TEST

typedef struct shown {
    char text[256];
    int restarts, calls;
} shown;

static void on_delta(barchan_delta_kind kind, const char *data, size_t len, void *ud)
{
    shown *s = ud;
    s->calls++;
    if (kind == BARCHAN_DELTA_RESTART) {
        s->restarts++;
        s->text[0] = '\0';
    } else if (kind == BARCHAN_DELTA_TEXT) {
        snprintf(s->text + strlen(s->text), sizeof s->text - strlen(s->text), "%.*s", (int)len,
                 data);
    }
}

START_TEST(deltas_come_in_whole_characters_and_restart)
{
    static const char *const scenarios[] = {"bytewise", "restart", "ok"};
    for (int i = 0; i < 3; i++) {
        shown s = {.calls = 0};
        barchan_model *model = model_with(scenarios[i], NULL);
        barchan_complete_options o = {.struct_size = sizeof o, .on_delta = on_delta, .ud = &s};
        barchan_error err;
        char *reply = NULL;
        ck_assert_int_eq(
            barchan_model_complete(model, stream_request, strlen(stream_request), &o, &reply, &err),
            0);
        ck_assert_str_eq(s.text, "Hello \xE2\x82\xAC\xF0\x9F\x98\x80");
        ck_assert_int_eq(s.restarts, i == 1);
        ck_assert_int_ge(s.calls, 3);
        free(reply);
        barchan_model_destroy(model);
    }
}
END_TEST

START_TEST(a_complete_turn_without_an_end_is_an_answer)
{
    static const char *const scenarios[] = {"nodone/silent", "nodone/usage", "nodone/reset"};
    for (int i = 0; i < 3; i++) {
        barchan_model *model =
            model_with(scenarios[i], &(barchan_model_options){.provider = "openai"});
        int64_t start = bc_clock_ms();
        json_t *reply = complete(model, stream_request);
        ck_assert_str_eq(text_of(reply), "Hello");
        ck_assert_str_eq(bc_json_get_string(reply, "stop_reason", NULL), "end_turn");
        int64_t counted =
            bc_json_get_integer(bc_json_get_object(reply, "usage"), "output_tokens", -1);
        ck_assert_int_eq(counted, i == 1 ? 4 : -1);
        ck_assert_int_lt(bc_clock_ms() - start, 8000);
        json_decref(reply);
        barchan_model_destroy(model);
    }
}
END_TEST

typedef struct nested {
    barchan_model *model;
    int calls, rc;
} nested;

static void on_nested_delta(barchan_delta_kind kind, const char *data, size_t len, void *ud)
{
    nested *n = ud;
    char *reply = NULL;
    n->calls++;
    n->rc =
        barchan_model_complete(n->model, plain_request, strlen(plain_request), NULL, &reply, NULL);
    free(reply);
}

START_TEST(waiting_in_a_callback_is_refused)
{
    nested n = {.model = model_with("ok", NULL)};
    barchan_complete_options o = {.struct_size = sizeof o, .on_delta = on_nested_delta, .ud = &n};
    barchan_error err;
    char *reply = NULL;
    ck_assert_int_eq(
        barchan_model_complete(n.model, stream_request, strlen(stream_request), &o, &reply, &err),
        0);
    ck_assert_int_gt(n.calls, 0);
    ck_assert_int_eq(n.rc, BARCHAN_EBUSY);
    free(reply);
    barchan_model_destroy(n.model);
}
END_TEST

START_TEST(keys_travel_in_headers_only)
{
    barchan_model *model = model_with(
        "echo", &(barchan_model_options){.api_key = "secret-key-1",
                                         .headers = (const char *const[]){"x-more: 1", NULL}});
    json_t *reply = complete(model, plain_request), *seen = NULL;
    ck_assert_int_eq(bc_json_view(&seen, text_of(reply), strlen(text_of(reply)), 0, NULL), 0);
    const json_t *headers = bc_json_get_object(seen, "headers");
    ck_assert_str_eq(bc_json_get_string(headers, "x-api-key", NULL), "secret-key-1");
    ck_assert_str_eq(bc_json_get_string(headers, "anthropic-version", NULL), "2023-06-01");
    ck_assert_str_eq(bc_json_get_string(headers, "x-more", NULL), "1");
    ck_assert_ptr_null(json_object_get(headers, "authorization"));
    ck_assert_ptr_null(json_object_get(headers, "cookie"));
    ck_assert_ptr_null(json_object_get(headers, "accept-encoding"));
    ck_assert_ptr_null(strstr(bc_json_get_string(seen, "path", NULL), "secret"));
    ck_assert_str_eq(bc_json_get_string(seen, "path", NULL), "/echo/v1/messages");
    json_decref(seen);
    json_decref(reply);
    barchan_model_destroy(model);
}
END_TEST

/* ---- errors ---- */

START_TEST(errors_are_typed)
{
    static const struct {
        const char *scenario;
        int code, http_status, retryable;
        long retry_after_ms;
    } cases[] = {
        {"status/529/overloaded", BARCHAN_EOVERLOADED, 529, 1, -1},
        {"status/529/overloaded/retry=5", BARCHAN_EOVERLOADED, 529, 1, 5000},
        {"status/529/overloaded/retry=1.5", BARCHAN_EOVERLOADED, 529, 1, 1500},
        {"status/429/empty/retry=-3", BARCHAN_ERATE, 429, 1, -1},
        {"status/429/empty/retry=soon", BARCHAN_ERATE, 429, 1, -1},
        {"status/429/empty/retry=99999999999999999999", BARCHAN_ERATE, 429, 1, 86400000},
        {"status/429/empty/retry=Mon,_01_Jan_2001_00:00:00_GMT", BARCHAN_ERATE, 429, 1, 0},
        {"status/400/empty", BARCHAN_EREQUEST, 400, 0, -1},
        {"status/401/key", BARCHAN_EAUTH, 401, 0, -1},
        {"status/402/empty", BARCHAN_EQUOTA, 402, 0, -1},
        {"status/403/empty", BARCHAN_EPERMISSION, 403, 0, -1},
        {"status/404/empty", BARCHAN_ENOTFOUND, 404, 0, -1},
        {"status/408/empty", BARCHAN_ETIMEDOUT, 408, 1, -1},
        {"status/413/html", BARCHAN_ECONTEXT, 413, 0, -1},
        {"status/500/empty", BARCHAN_ESERVER, 500, 1, -1},
        {"status/502/html", BARCHAN_ESERVER, 502, 1, -1},
        {"status/503/empty", BARCHAN_EOVERLOADED, 503, 1, -1},
        {"status/504/html", BARCHAN_ETIMEDOUT, 504, 1, -1},
        {"status/529/overloaded/should=false", BARCHAN_EOVERLOADED, 529, 0, -1},
        {"status/400/empty/should=true", BARCHAN_EREQUEST, 400, 1, -1},
        {"brokenerror", BARCHAN_EOVERLOADED, 529, 1, -1},
        {"empty/200", BARCHAN_EPROTOCOL, 0, 1, -1},
        {"empty/204", BARCHAN_EPROTOCOL, 0, 1, -1},
        {"errorinstream", BARCHAN_EOVERLOADED, 0, 1, -1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        barchan_error err = fail_with(cases[i].scenario, stream_request,
                                      &(barchan_model_options){.api_key = "secret-key-2"});
        ck_assert_msg(err.code == cases[i].code, "%s: %s", cases[i].scenario, err.message);
        ck_assert_int_eq(err.http_status, cases[i].http_status);
        ck_assert_int_eq(err.retryable, cases[i].retryable);
        ck_assert_int_eq(err.retry_after_ms, cases[i].retry_after_ms);
        ck_assert_ptr_null(strstr(err.message, "secret-key"));
        ck_assert_str_eq(err.where, "model.complete");
    }
    barchan_error err = fail_with("status/529/overloaded", plain_request, NULL);
    ck_assert_str_eq(err.provider_code, "overloaded_error");
    ck_assert_str_eq(err.request_id, "req_body");
    err = fail_with("status/500/empty", plain_request, NULL);
    ck_assert_str_eq(err.request_id, "req_head");
    /* Blanks around a header's value are no part of it. */
    err = fail_with("quote/header", plain_request, NULL);
    ck_assert_str_eq(err.request_id, "?   [2J");
    err = fail_with("html", plain_request, NULL);
    ck_assert_ptr_nonnull(strstr(err.message, "HTML"));
    ck_assert_int_eq(err.code, BARCHAN_EPROTOCOL);
}
END_TEST

/* However it was given, and wherever the server puts it: no part of a key is in an error, and
 * neither are control characters. */
START_TEST(errors_quote_no_credentials)
{
    static const char *const lines[] = {"x-gate-token: secret-key-9-0123456789", NULL};
    static const char *const bearer[] = {"Authorization:  Bearer secret-key-9-0123456789 ", NULL};
    const barchan_model_options ways[] = {
        {.api_key = "secret-key-9-0123456789"},
        {.api_key = "Bearer secret-key-9-0123456789"},
        {.api_key = "secret-key-9-0123456789", .provider = "openai"},
        {.headers = lines},
        {.headers = bearer, .provider = "openai"},
        {.api_key = "****************"},
    };
    static const char *const places[] = {"message",     "cut/3",     "cut/10", "cut/22",
                                         "code",        "id",        "header", "stream",
                                         "location/15", "location/1"};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        for (size_t j = 0; j < sizeof places / sizeof *places; j++) {
            char scenario[64];
            snprintf(scenario, sizeof scenario, "quote/%s", places[j]);
            barchan_error err = fail_with(scenario, stream_request, &ways[i]);
            const char *texts[] = {err.message, err.provider_code, err.request_id};
            for (int k = 0; k < 3; k++) {
                ck_assert_msg(strstr(texts[k], "sec") == NULL, "%s: %s", scenario, texts[k]);
                ck_assert_msg(strpbrk(texts[k], "\x1b\t") == NULL, "%s: %s", scenario, texts[k]);
                ck_assert_msg(strstr(texts[k], "****") == NULL, "%s: %s", scenario, texts[k]);
            }
        }
    }
}
END_TEST

START_TEST(redirects_are_refused_and_the_key_stays)
{
    static const char *const codes[] = {"301", "302", "303", "307", "308"};
    static const char *const targets[] = {"same", "host", "file", "loop"};
    for (int i = 0; i < 5; i++) {
        for (int j = 0; j < 4; j++) {
            char scenario[64];
            snprintf(scenario, sizeof scenario, "redirect/%s/%s", codes[i], targets[j]);
            barchan_error err = fail_with(scenario, plain_request,
                                          &(barchan_model_options){.api_key = "secret-key-3"});
            ck_assert_int_eq(err.code, BARCHAN_EPROTOCOL);
            ck_assert_int_eq(err.retryable, 0);
            ck_assert_ptr_nonnull(strstr(err.message, "redirect"));
        }
    }
    ck_assert_int_eq(peer_stat(&server, "stolen"), 0);
}
END_TEST

START_TEST(what_means_nothing_harms_nothing)
{
    static const char *const scenarios[] = {"blanks/1", "blanks/5000", "late/junk",
                                            "late/cut", "late/error",  "late/long"};
    for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++) {
        int64_t start = bc_clock_ms();
        barchan_model *model = model_with(scenarios[i], NULL);
        json_t *reply = complete(model, stream_request);
        ck_assert_str_eq(text_of(reply), "Hello \xE2\x82\xAC\xF0\x9F\x98\x80");
        ck_assert_int_lt(bc_clock_ms() - start, 10000);
        json_decref(reply);
        barchan_model_destroy(model);
    }
    barchan_error err = fail_with("cutevent", stream_request, NULL);
    ck_assert_int_eq(err.code, BARCHAN_ENETWORK);
    ck_assert_int_eq(err.retryable, 1);
}
END_TEST

START_TEST(broken_answers_are_errors)
{
    static const struct {
        const char *scenario;
        int code; /* 0: protocol or network */
    } cases[] = {
        {"garbage/line", 0},
        {"garbage/http09", 0},
        {"garbage/icy", 0},
        {"garbage/status", 0},
        {"garbage/zero", 0},
        {"garbage/nul", 0},
        {"garbage/h2", 0},
        {"bigheaders", BARCHAN_ELIMIT},
        {"interim/flood", BARCHAN_ELIMIT},
        {"earlyclose", BARCHAN_ENETWORK},
        {"closenow", BARCHAN_ENETWORK},
        {"reset", BARCHAN_ENETWORK},
        {"cutstream/1", BARCHAN_ENETWORK},
        {"cutstream/4", BARCHAN_ENETWORK},
        {"cutstream/7", BARCHAN_ENETWORK},
        {"length/negative", 0},
        {"length/huge", 0},
        {"length/two", 0},
        {"length/both", 0},
        {"badchunk/size", 0},
        {"badchunk/text", 0},
        {"badchunk/extension", 0},
        {"gzip", BARCHAN_EPROTOCOL},
        {"bigevent", BARCHAN_ELIMIT},
        {"endless", BARCHAN_ELIMIT},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        barchan_error err = fail_with(cases[i].scenario, stream_request, NULL);
        int good = cases[i].code != 0
                       ? err.code == cases[i].code
                       : err.code == BARCHAN_EPROTOCOL || err.code == BARCHAN_ENETWORK;
        ck_assert_msg(good, "%s: %d %s", cases[i].scenario, err.code, err.message);
    }
}
END_TEST

START_TEST(silence_and_slowness_have_deadlines)
{
    static const char *const silent[] = {"silent", "halfhead", "headonly", "stall"};
    barchan_model_options idle = {.idle_timeout_ms = 200};
    for (int i = 0; i < 4; i++) {
        int64_t start = bc_clock_ms();
        barchan_error err = fail_with(silent[i], stream_request, &idle);
        ck_assert_msg(err.code == BARCHAN_ETIMEDOUT, "%s: %s", silent[i], err.message);
        ck_assert_int_eq(err.retryable, 1);
        ck_assert_int_ge(bc_clock_ms() - start, 190);
        ck_assert_int_lt(bc_clock_ms() - start, 3000);
    }
    /* Never silent, never done. */
    barchan_error err =
        fail_with("comments", stream_request, &(barchan_model_options){.timeout_ms = 500});
    ck_assert_int_eq(err.code, BARCHAN_ETIMEDOUT);
    /* Slower in all than the idle timeout, but never silent for that long. */
    barchan_model *model = model_with("slow/0.1", &(barchan_model_options){.idle_timeout_ms = 600});
    json_t *reply = complete(model, stream_request);
    ck_assert_str_eq(bc_json_get_string(reply, "stop_reason", NULL), "end_turn");
    json_decref(reply);
    barchan_model_destroy(model);
}
END_TEST

START_TEST(connections_are_reused)
{
    barchan_model *model = model_with("ok", NULL);
    int64_t before = peer_stat(&server, "connections");
    for (int i = 0; i < 6; i++) {
        json_t *reply = complete(model, i % 2 == 0 ? plain_request : stream_request);
        json_decref(reply);
    }
    /* One for the six, one for asking. */
    ck_assert_int_eq(peer_stat(&server, "connections") - before, 2);
    barchan_model_destroy(model);
}
END_TEST

/* The peer is gone while the request is still being sent: an error, never a signal. */
START_TEST(large_requests_and_early_refusals)
{
    enum { MANY = 8 << 20 };
    char *request = malloc(MANY + 200);
    int at = snprintf(request, 200, "{\"messages\":[{\"role\":\"user\",\"content\":\"");
    memset(request + at, 'x', MANY);
    memcpy(request + at + MANY, "\"}]}", 5);
    struct sigaction before, now;
    sigaction(SIGPIPE, NULL, &before);
    ck_assert(before.sa_handler == SIG_DFL); /* the oracle: a signal would end the test */
    barchan_error err = fail_with("early413", request, NULL);
    ck_assert_msg(err.code == BARCHAN_ECONTEXT, "%s", err.message);
    for (int i = 0; i < 5; i++) {
        err = fail_with("earlyreset", request, NULL);
        ck_assert_msg(err.code == BARCHAN_ENETWORK, "%s", err.message);
    }
    sigaction(SIGPIPE, NULL, &now);
    ck_assert(now.sa_handler == SIG_DFL);
    barchan_model *model = model_with("ok", NULL);
    json_t *reply = complete(model, request);
    ck_assert_str_eq(text_of(reply), "Hello \xE2\x82\xAC\xF0\x9F\x98\x80");
    json_decref(reply);
    barchan_model_destroy(model);
    free(request);
}
END_TEST

START_TEST(the_environment_is_ignored)
{
    char home[] = "/tmp/barchan-home-XXXXXX", path[64];
    ck_assert_ptr_nonnull(mkdtemp(home));
    snprintf(path, sizeof path, "%s/.netrc", home);
    FILE *file = fopen(path, "w");
    fputs("machine 127.0.0.1 login thief password stolen\ndefault login x password y\n", file);
    fclose(file);
    setenv("HOME", home, 1);
    setenv("http_proxy", "http://127.0.0.1:1", 1);
    setenv("ALL_PROXY", "http://127.0.0.1:1", 1);
    barchan_model *model = model_with("echo", NULL);
    for (int i = 0; i < 2; i++) {
        json_t *reply = complete(model, plain_request);
        ck_assert_ptr_null(strstr(text_of(reply), "authorization"));
        ck_assert_ptr_null(strstr(text_of(reply), "cookie"));
        json_decref(reply);
    }
    barchan_model_destroy(model);
    unsetenv("http_proxy");
    unsetenv("ALL_PROXY");
    unlink(path);
    rmdir(home);
}
END_TEST

int main(void)
{
    const char *argv[] = {"python3", BYTE_SERVER, NULL};
    if (peer_start(&server, argv) < 0) {
        printf("SKIP python3 is not there\n");
        return SKIPPED;
    }
    Suite *suite = suite_create("provider_http");
    TCase *tc = tcase_create("all");
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, answers_plain_and_streaming);
    tcase_add_test(tc, deltas_come_in_whole_characters_and_restart);
    tcase_add_test(tc, a_complete_turn_without_an_end_is_an_answer);
    tcase_add_test(tc, waiting_in_a_callback_is_refused);
    tcase_add_test(tc, keys_travel_in_headers_only);
    tcase_add_test(tc, errors_are_typed);
    tcase_add_test(tc, errors_quote_no_credentials);
    tcase_add_test(tc, redirects_are_refused_and_the_key_stays);
    tcase_add_test(tc, what_means_nothing_harms_nothing);
    tcase_add_test(tc, broken_answers_are_errors);
    tcase_add_test(tc, silence_and_slowness_have_deadlines);
    tcase_add_test(tc, connections_are_reused);
    tcase_add_test(tc, large_requests_and_early_refusals);
    tcase_add_test(tc, the_environment_is_ignored);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_set_fork_status(runner, CK_NOFORK);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    peer_stop(&server);
    return failed == 0 ? 0 : 1;
}
