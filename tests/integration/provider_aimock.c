/*
 * A tool loop against a server that was not written here (@copilotkit/aimock), by every protocol,
 * streaming and not: the model calls a tool, gets the result, answers.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <barchan/model.h>
#include "base/json_view.h"
#include "server_suite.h"

/* Four protocols, streaming and not. */
enum { ROUNDS = 8 };

/* `test` names the client: the server counts for each by itself. */
static barchan_model *model_for(const char *provider, const char *test, int max_retries)
{
    char url[64], header[64];
    const char *const headers[] = {header, NULL};
    snprintf(header, sizeof header, "x-test-id: %s", test);
    barchan_model *model = NULL;
    barchan_error err;
    snprintf(url, sizeof url, "http://127.0.0.1:%d", server.port);
    barchan_model_options o = {.struct_size = sizeof o,
                               .provider = provider,
                               .name = "some-model",
                               .base_url = url,
                               .api_key = "any-key",
                               .headers = headers,
                               .max_retries = max_retries};
    int rc = barchan_model_create(&model, rt, &o, &err);
    ck_assert_msg(rc == 0, "%s", rc < 0 ? err.message : "");
    return model;
}

static barchan_model *model_of(const char *provider)
{
    return model_for(provider, "any", -1);
}

static json_t *conversation(const char *prompt, int stream)
{
    return json_pack("{s:s, s:[{s:s,s:s}], s:b, s:[{s:s,s:s,s:{s:s,s:{s:{s:s}}}}]}", "system",
                     "You may run Python.", "messages", "role", "user", "content", prompt, "stream",
                     stream, "tools", "name", "run_python", "description", "Runs Python code.",
                     "parameters", "type", "object", "properties", "code", "type", "string");
}

static json_t *complete(barchan_model *model, const json_t *request, barchan_delta_fn on_delta,
                        void *ud)
{
    barchan_error err;
    char *reply = NULL, *text = json_dumps(request, JSON_COMPACT);
    json_t *view = NULL;
    barchan_complete_options o = {.struct_size = sizeof o, .on_delta = on_delta, .ud = ud};
    int rc = barchan_model_complete(model, text, strlen(text), &o, &reply, &err);
    ck_assert_msg(rc == 0, "%s", rc < 0 ? err.message : "");
    ck_assert_int_eq(bc_json_view(&view, reply, strlen(reply), BC_JSON_UNIQUE_KEYS, NULL), 0);
    free(text);
    free(reply);
    return view;
}

/* Appends the turn and one result per call, as a loop does. */
static void answer(json_t *request, json_t *reply, const char *result)
{
    json_t *messages = json_object_get(request, "messages"), *call;
    size_t i;
    json_array_append(messages, reply);
    json_array_foreach(json_object_get(reply, "tool_calls"), i, call)
    {
        json_array_append_new(messages, json_pack("{s:s,s:O,s:s}", "role", "tool", "tool_call_id",
                                                  json_object_get(call, "id"), "content", result));
    }
}

typedef struct shown {
    char text[200], calls[200];
    int retries, restarts;
} shown;

static void on_delta(barchan_delta_kind kind, const char *data, size_t len, void *ud)
{
    shown *s = ud;
    s->retries += kind == BARCHAN_DELTA_RETRY;
    s->restarts += kind == BARCHAN_DELTA_RESTART;
    if (kind == BARCHAN_DELTA_RESTART) s->text[0] = '\0';
    if (kind != BARCHAN_DELTA_TOOL_CALL && kind != BARCHAN_DELTA_TEXT) return;
    char *to = kind == BARCHAN_DELTA_TOOL_CALL ? s->calls : s->text;
    snprintf(to + strlen(to), 200 - strlen(to), "%.*s", (int)len, data);
}

static const char *const providers[] = {"anthropic", "openai", "openai-responses", "gemini"};

START_TEST(a_tool_loop)
{
    const char *provider = providers[_i / 2];
    int stream = _i % 2;
    shown first = {.text = ""}, second = {.text = ""};
    barchan_model *model = model_of(provider);
    json_t *request = conversation("What is the 1000th prime number?", stream);
    json_t *reply = complete(model, request, on_delta, &first);
    const json_t *calls = bc_json_get_array(reply, "tool_calls"), *call = json_array_get(calls, 0);
    ck_assert_uint_eq(json_array_size(calls), 1);
    ck_assert_str_eq(bc_json_get_string(reply, "stop_reason", NULL), "tool_use");
    ck_assert_str_eq(bc_json_get_string(call, "name", NULL), "run_python");
    const char *code = bc_json_get_string(bc_json_get_object(call, "arguments"), "code", NULL);
    ck_assert_ptr_nonnull(strstr(code, "while found < 1000"));
    ck_assert_str_eq(first.text, "I will compute it.");
    ck_assert_str_eq(first.calls, "run_python");
    answer(request, reply, "exit_code: 0\nout:\n7919\n");
    json_t *reply2 = complete(model, request, on_delta, &second);
    ck_assert_str_eq(bc_json_get_string(reply2, "text", NULL), "The 1000th prime number is 7919.");
    ck_assert_str_eq(bc_json_get_string(reply2, "stop_reason", NULL), "end_turn");
    ck_assert_uint_eq(json_array_size(bc_json_get_array(reply2, "tool_calls")), 0);
    ck_assert_str_eq(second.text, "The 1000th prime number is 7919.");
    json_decref(reply2);
    json_decref(reply);
    json_decref(request);
    barchan_model_destroy(model);
}
END_TEST

START_TEST(parallel_calls)
{
    barchan_model *model = model_of(providers[_i / 2]);
    json_t *request = conversation("Do two at once.", _i % 2);
    json_t *reply = complete(model, request, NULL, NULL);
    const json_t *calls = bc_json_get_array(reply, "tool_calls");
    ck_assert_uint_eq(json_array_size(calls), 2);
    const json_t *arguments = bc_json_get_object(json_array_get(calls, 1), "arguments");
    ck_assert_str_eq(bc_json_get_string(arguments, "code", NULL), "print('\xE2\x82\xAC')");
    answer(request, reply, "done");
    json_t *reply2 = complete(model, request, NULL, NULL);
    ck_assert_str_eq(bc_json_get_string(reply2, "text", NULL), "Both are done.");
    json_decref(reply2);
    json_decref(reply);
    json_decref(request);
    barchan_model_destroy(model);
}
END_TEST

START_TEST(its_errors_are_typed)
{
    barchan_model *model = model_of(providers[_i / 2]);
    json_t *request = conversation("You are too busy.", _i % 2);
    char *text = json_dumps(request, 0), *reply = NULL;
    barchan_error err;
    ck_assert_int_eq(barchan_model_complete(model, text, strlen(text), NULL, &reply, &err),
                     BARCHAN_ERATE);
    ck_assert_int_eq(err.http_status, 429);
    ck_assert_int_eq(err.retryable, 1);
    free(text);
    json_decref(request);
    barchan_model_destroy(model);
}
END_TEST

/* 429, 529, an answer that breaks off: the loop goes on, and each call runs once. Without streaming
 * there is nothing that breaks off. */
START_TEST(a_loop_through_failures)
{
    char test[16];
    int stream = _i % 2;
    shown first = {.text = ""}, second = {.text = ""};
    snprintf(test, sizeof test, "round-%d", _i);
    barchan_model *model = model_for(providers[_i / 2], test, 3);
    json_t *request = conversation("That is hard to reach.", stream);
    json_t *reply = complete(model, request, on_delta, &first);
    ck_assert_uint_eq(json_array_size(bc_json_get_array(reply, "tool_calls")), 1);
    ck_assert_str_eq(first.calls, "run_python");
    ck_assert_int_eq(first.retries, 2);
    ck_assert_int_eq(first.restarts, 0);
    answer(request, reply, "7");
    json_t *reply2 = complete(model, request, on_delta, &second);
    const char *text = bc_json_get_string(reply2, "text", NULL);
    ck_assert_str_eq(text, stream ? "It is seven."
                                  : "It is seven, and it was not easy to find that out.");
    ck_assert_str_eq(second.text, text);
    ck_assert_int_eq(second.retries, stream);
    ck_assert_int_eq(second.restarts, stream);
    ck_assert_str_eq(bc_json_get_string(reply2, "stop_reason", NULL), "end_turn");
    json_decref(reply2);
    json_decref(reply);
    json_decref(request);
    barchan_model_destroy(model);
}
END_TEST

int main(int argc, char **argv)
{
    if (argc != 4) return fprintf(stderr, "usage: %s AIMOCK.mjs FOLDER FIXTURES\n", argv[0]), 2;
    const char *serve[] = {"node", argv[1], argv[2], argv[3], NULL};
    const TTest *const tests[] = {a_tool_loop, parallel_calls, its_errors_are_typed,
                                  a_loop_through_failures, NULL};
    return server_suite_run("provider_aimock", serve, tests, ROUNDS);
}
