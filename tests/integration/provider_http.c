/* Completions over real connections on loopback, with servers that behave and servers that do not.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

static int64_t connections(void)
{
    barchan_model *model = model_with("_stats", &(barchan_model_options){.provider = "openai"});
    barchan_error err;
    char *reply = NULL;
    /* The statistics are no completion, so they come back as an error; ask by a plain client. */
    barchan_model_complete(model, plain_request, strlen(plain_request), NULL, &reply, &err);
    barchan_model_destroy(model);
    return err.code;
}

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
    (void)connections;
}
END_TEST

int main(void)
{
    const char *argv[] = {"python3", BYTE_SERVER, NULL};
    if (peer_start(&server, argv) < 0) {
        printf("skipped: python3 is not there\n");
        return SKIPPED;
    }
    Suite *suite = suite_create("provider_http");
    TCase *tc = tcase_create("all");
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, answers_plain_and_streaming);
    tcase_add_test(tc, deltas_come_in_whole_characters_and_restart);
    tcase_add_test(tc, keys_travel_in_headers_only);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_set_fork_status(runner, CK_NOFORK);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    (void)fail_with;
    peer_stop(&server);
    return failed == 0 ? 0 : 1;
}
