/* Requests that fail in passing and are sent again, against a server that counts them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/clock.h"
#include "base/limits.h"
#include "provider_server.h"

typedef struct seen {
    barchan_completion *handle;
    char text[256];
    int restarts, retries, attempts[8], waits[8];
    char code[8][32];
    int cancel_in_retry, ends, end_code;
} seen;

static void on_delta(barchan_delta_kind kind, const char *data, size_t len, void *ud)
{
    seen *s = ud;
    if (kind == BARCHAN_DELTA_RESTART) {
        s->restarts++;
        s->text[0] = '\0';
    } else if (kind == BARCHAN_DELTA_TEXT) {
        size_t at = strlen(s->text);
        snprintf(s->text + at, sizeof s->text - at, "%.*s", (int)len, data);
    } else if (kind == BARCHAN_DELTA_RETRY && s->retries < 8) {
        json_t *view = NULL;
        ck_assert_int_eq(bc_json_view(&view, data, len, BC_JSON_UNIQUE_KEYS, NULL), 0);
        s->attempts[s->retries] = (int)bc_json_get_integer(view, "attempt", 0);
        s->waits[s->retries] = (int)bc_json_get_integer(view, "wait_ms", -1);
        snprintf(s->code[s->retries], 32, "%s", bc_json_get_string(view, "code", NULL));
        ck_assert_ptr_nonnull(bc_json_get_string(view, "error", NULL));
        s->retries++;
        json_decref(view);
        if (s->cancel_in_retry) barchan_completion_cancel(s->handle);
    }
}

/* The scenario of a name that no other test uses, so that its count is its own. */
static barchan_model *flaky(const char *scenario, const barchan_model_options *more)
{
    static int names;
    char path[256];
    snprintf(path, sizeof path, "flaky/%d/%s", names++, scenario);
    return model_with(path, more);
}

static int run(barchan_model *model, seen *s, char **reply, barchan_error *err)
{
    barchan_complete_options o = {.struct_size = sizeof o, .on_delta = on_delta, .ud = s};
    return barchan_model_complete(model, stream_request, strlen(stream_request), &o, reply, err);
}

static const barchan_model_options twice = {.max_retries = 2};

START_TEST(what_passes_is_tried_again)
{
    static const char *const scenarios[] = {"2/status/529/overloaded", "1/earlyclose", "1/reset",
                                            "1/empty/200"};
    for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++) {
        long before = peer_stat(&server, "flaky");
        barchan_model *model = flaky(scenarios[i], &twice);
        seen s = {.text = ""};
        char *reply = NULL;
        barchan_error err;
        int rc = run(model, &s, &reply, &err);
        ck_assert_msg(rc == 0, "%s: %s", scenarios[i], rc < 0 ? err.message : "");
        ck_assert_str_eq(s.text, "Hello \xE2\x82\xAC\xF0\x9F\x98\x80");
        ck_assert_msg(s.retries == scenarios[i][0] - '0', "%s: %d", scenarios[i], s.retries);
        ck_assert_int_eq(peer_stat(&server, "flaky") - before, s.retries + 1);
        for (int j = 0; j < s.retries; j++) {
            int most = BC_MODEL_FIRST_BACKOFF_MS << j;
            ck_assert_int_eq(s.attempts[j], j + 2);
            ck_assert_msg(s.waits[j] > most * 3 / 4 - 1 && s.waits[j] <= most, "%d", s.waits[j]);
        }
        free(reply);
        barchan_model_destroy(model);
    }
}
END_TEST

START_TEST(shown_text_is_void_when_the_stream_breaks)
{
    barchan_model *model = flaky("1/cutstream/4", &twice);
    seen s = {.text = ""};
    char *reply = NULL;
    ck_assert_int_eq(run(model, &s, &reply, NULL), 0);
    ck_assert_int_eq(s.restarts, 1);
    ck_assert_int_eq(s.retries, 1);
    ck_assert_str_eq(s.code[0], "network");
    ck_assert_str_eq(s.text, "Hello \xE2\x82\xAC\xF0\x9F\x98\x80");
    ck_assert_ptr_nonnull(strstr(reply, "\"text\":\"Hello \xE2\x82\xAC\xF0\x9F\x98\x80\""));
    free(reply);
    barchan_model_destroy(model);
}
END_TEST

START_TEST(it_comes_to_an_end)
{
    static const struct {
        const char *scenario;
        int max_retries, requests, code;
        long after_ms;
        const char *why; /* it was not sent again; NULL: nothing is said of that */
    } cases[] = {
        {"9/status/529/overloaded/retry=0.01", 0, 3, BARCHAN_EOVERLOADED, 10, NULL}, /* default */
        {"9/status/529/overloaded/retry=0.01", 5, 6, BARCHAN_EOVERLOADED, 10, NULL},
        {"9/status/529/overloaded/retry=0.01", -1, 1, BARCHAN_EOVERLOADED, 10, NULL},
        /* Told to wait for longer than it may: at once, with the time. */
        {"9/status/429/empty/retry=61", 2, 1, BARCHAN_ERATE, 61000,
         "the server asks to wait 61 s, longer than max_retry_wait of 60 s"},
        {"9/status/429/empty/retry=61", -1, 1, BARCHAN_ERATE, 61000, NULL},
        {"9/status/429/empty/retry=50", 2, 1, BARCHAN_ERATE, 50000,
         "the server asks to wait 50 s, longer than what is left of the timeout of 40 s"},
        /* What does not pass. */
        {"9/status/402/empty", 2, 1, BARCHAN_EQUOTA, -1, NULL},
        {"9/status/400/empty", 2, 1, BARCHAN_EREQUEST, -1, NULL},
        {"9/status/401/key", 2, 1, BARCHAN_EAUTH, -1, NULL},
        {"9/status/529/overloaded/should=false", 2, 1, BARCHAN_EOVERLOADED, -1, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        long before = peer_stat(&server, "flaky");
        char path[128], url[256];
        snprintf(path, sizeof path, "flaky/end%zu/%s", i, cases[i].scenario);
        snprintf(url, sizeof url, "http://127.0.0.1:%d/%s", server.port, path);
        barchan_model *model = NULL;
        barchan_model_options o = {.struct_size = sizeof o,
                                   .provider = "anthropic",
                                   .name = "m",
                                   .base_url = url,
                                   .timeout_ms = 40000,
                                   .max_retries = cases[i].max_retries};
        ck_assert_int_eq(barchan_model_create(&model, rt, &o, NULL), 0);
        seen s = {.text = ""};
        char *reply = NULL;
        barchan_error err;
        ck_assert_int_eq(run(model, &s, &reply, &err), cases[i].code);
        ck_assert_int_eq(peer_stat(&server, "flaky") - before, cases[i].requests);
        ck_assert_int_eq(s.retries, cases[i].requests - 1);
        ck_assert_int_eq(err.retry_after_ms, cases[i].after_ms);
        const char *why = strstr(err.message, "; not sent again: ");
        ck_assert_msg(cases[i].why == NULL ? why == NULL
                                           : why != NULL && strcmp(why + 18, cases[i].why) == 0,
                      "%s", err.message);
        for (int j = 0; j < s.retries; j++)
            ck_assert_int_eq(s.waits[j], cases[i].after_ms);
        barchan_model_destroy(model);
    }
}
END_TEST

/* The time of the whole counts, not that of one request. */
START_TEST(the_timeout_holds_for_all_of_it)
{
    barchan_model_options o = {.max_retries = 50, .timeout_ms = 900};
    barchan_model *model = flaky("99/status/529/overloaded/retry=0.2", &o);
    seen s = {.text = ""};
    char *reply = NULL;
    int64_t start = bc_clock_ms();
    barchan_error err;
    ck_assert_int_eq(run(model, &s, &reply, &err), BARCHAN_EOVERLOADED);
    ck_assert_int_lt(bc_clock_ms() - start, 900);
    ck_assert_ptr_nonnull(strstr(err.message, "longer than what is left of the timeout of "));
    ck_assert_int_ge(s.retries, 1);
    ck_assert_int_le(s.retries, 4);
    barchan_model_destroy(model);
}
END_TEST

static void on_end(const char *reply, size_t len, const barchan_error *err, void *ud)
{
    seen *s = ud;
    s->ends++;
    s->end_code = err != NULL ? err->code : 0;
}

typedef enum way { BY_HANDLE, BY_TOKEN, BY_DELTA, BY_MODEL, BY_RUNTIME, WAYS } way;

START_TEST(a_wait_can_be_cancelled)
{
    for (way how = BY_HANDLE; how < WAYS; how++) {
        barchan_model *model = flaky("9/status/529/overloaded/retry=30", &twice);
        barchan_cancel *token = NULL;
        seen s = {.cancel_in_retry = how == BY_DELTA};
        ck_assert_int_eq(barchan_cancel_create(&token, NULL), 0);
        barchan_complete_options o = {
            .struct_size = sizeof o, .on_delta = on_delta, .ud = &s, .cancel = token};
        ck_assert_int_eq(barchan_model_complete_start(&s.handle, model, stream_request,
                                                      strlen(stream_request), &o, on_end, &s, NULL),
                         0);
        int64_t start = bc_clock_ms();
        while (s.retries == 0 && bc_clock_ms() - start < 5000)
            barchan_runtime_pump(rt, 50, NULL);
        ck_assert_int_eq(s.retries, 1);
        if (how == BY_HANDLE) barchan_completion_cancel(s.handle);
        if (how == BY_TOKEN) barchan_cancel_trigger(token);
        if (how == BY_MODEL) barchan_model_destroy(model);
        if (how == BY_RUNTIME) server_suite_tear_down();
        while (how <= BY_DELTA && s.ends == 0 && bc_clock_ms() - start < 5000)
            barchan_runtime_pump(rt, 50, NULL);
        ck_assert_int_eq(s.ends, 1);
        ck_assert_int_eq(s.end_code, BARCHAN_ECANCELLED);
        ck_assert_int_lt(bc_clock_ms() - start, 5000);
        if (how <= BY_DELTA) barchan_model_destroy(model);
        if (how == BY_RUNTIME) server_suite_set_up();
        barchan_cancel_release(token);
    }
}
END_TEST

START_TEST(options_are_checked)
{
    barchan_model *model = NULL;
    barchan_error err;
    barchan_model_options o = {.struct_size = sizeof o, .provider = "anthropic", .name = "m"};
    o.max_retries = BC_MODEL_MAX_RETRIES + 1;
    ck_assert_int_eq(barchan_model_create(&model, rt, &o, &err), BARCHAN_EINVAL);
    ck_assert_ptr_nonnull(strstr(err.message, "max_retries"));
    o.max_retries = 0;
    o.max_retry_wait_ms = -1;
    ck_assert_int_eq(barchan_model_create(&model, rt, &o, &err), BARCHAN_EINVAL);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {what_passes_is_tried_again,
                                  shown_text_is_void_when_the_stream_breaks,
                                  it_comes_to_an_end,
                                  the_timeout_holds_for_all_of_it,
                                  a_wait_can_be_cancelled,
                                  options_are_checked,
                                  NULL};
    return server_suite_run("provider_retry", byte_server, tests, 1);
}
