/* Completions over real connections on loopback. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/json_view.h"
#include "provider_server.h"

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
    const TTest *const tests[] = {answers_plain_and_streaming,
                                  deltas_come_in_whole_characters_and_restart,
                                  a_complete_turn_without_an_end_is_an_answer,
                                  waiting_in_a_callback_is_refused,
                                  keys_travel_in_headers_only,
                                  connections_are_reused,
                                  the_environment_is_ignored,
                                  NULL};
    return server_suite_run("provider_http", byte_server, tests, 1);
}
