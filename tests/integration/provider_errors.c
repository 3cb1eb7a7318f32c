/* Completions that fail: refused, cut, broken, silent, or answered before they were asked. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/clock.h"
#include "provider_server.h"

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
        {"status/409/empty", BARCHAN_EREQUEST, 409, 1, -1},
        {"garbage/999", BARCHAN_EREQUEST, 999, 0, -1},
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
        {"garbage/billion", 0},
        {"length/short", 0},
        {"badchunk/trailer", BARCHAN_ELIMIT},
        {"encoding/gzip", BARCHAN_EPROTOCOL},
        {"encoding/br", BARCHAN_EPROTOCOL},
        {"encoding/nonsense", BARCHAN_EPROTOCOL},
        {"encoding/gzip+gzip", BARCHAN_EPROTOCOL},
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

int main(void)
{
    const TTest *const tests[] = {errors_are_typed,
                                  errors_quote_no_credentials,
                                  redirects_are_refused_and_the_key_stays,
                                  what_means_nothing_harms_nothing,
                                  broken_answers_are_errors,
                                  silence_and_slowness_have_deadlines,
                                  large_requests_and_early_refusals,
                                  NULL};
    return server_suite_run("provider_errors", byte_server, tests, 1);
}
