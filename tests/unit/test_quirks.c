/*
 * What servers of the Chat Completions protocol do, one data file for each quirk of
 * core/provider/README.md: tests/data/provider/quirks, whose README says what a case may hold.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <barchan/model.h>
#include "adapter_run.h"
#include "suite.h"

enum { QUIRKS = 31 };
#define HOST "https://example.test" /* the origin of what adapter_read gives */

static char where[300]; /* file and case, for messages */

/* ---- comparing ---- */

/* Whether each thing that is wanted is there; lists are compared whole. */
static int has_all(const json_t *got, const json_t *want)
{
    const char *key;
    json_t *member;
    size_t i;
    if (json_is_array(want)) {
        if (json_array_size(got) != json_array_size(want)) return 0;
        json_array_foreach(want, i, member)
        {
            if (!has_all(json_array_get(got, i), member)) return 0;
        }
        return 1;
    }
    if (!json_is_object(want)) return json_equal(got, want);
    json_object_foreach((json_t *)want, key, member)
    {
        if (!has_all(json_object_get(got, key), member)) return 0;
    }
    return 1;
}

static void check_parts(const char *body, const json_t *parts, int wanted)
{
    size_t i;
    json_t *part;
    json_array_foreach(parts, i, part)
    {
        const char *text = json_string_value(part);
        ck_assert_msg((strstr(body, text) != NULL) == wanted, "%s: %s%s in %s", where,
                      wanted ? "no " : "", text, body);
    }
}

/* ---- requests ---- */

static char *render(const char *base_url, const char *text)
{
    barchan_error err;
    bc_request request;
    bc_buf body;
    bc_model_info model = {.name = "m", .base_url = base_url};
    bc_buf_init(&body, 1 << 20);
    int rc = bc_request_parse(&request, text, strlen(text), &err);
    ck_assert_msg(rc == 0, "%s: %s", where, err.message);
    rc = bc_provider_openai.render(&model, &request, &body, &err);
    ck_assert_msg(rc == 0, "%s: %s", where, err.message);
    bc_request_clear(&request);
    return bc_buf_take(&body, NULL);
}

static void check_request(const json_t *one)
{
    const char *base_url = bc_json_get_string(one, "base_url", NULL);
    char *text = json_dumps(json_object_get(one, "request"), JSON_COMPACT);
    char *body = render(base_url != NULL ? base_url : HOST, text);
    check_parts(body, json_object_get(one, "sends"), 1);
    check_parts(body, json_object_get(one, "sends_not"), 0);
    if (json_is_true(json_object_get(one, "pairs"))) {
        json_t *sent = json_loads(body, 0, NULL);
        const json_t *messages = json_object_get(sent, "messages");
        const json_t *calls = json_object_get(json_array_get(messages, 1), "tool_calls");
        const char *id = bc_json_get_string(json_array_get(calls, 0), "id", NULL);
        ck_assert_uint_eq(strlen(id), 9);
        ck_assert_str_eq(id, bc_json_get_string(json_array_get(messages, 2), "tool_call_id", NULL));
        json_decref(sent);
    }
    free(text);
    free(body);
}

/* The reply goes back, with a result for each of its calls. */
static void check_echo(const json_t *one, const char *reply)
{
    static const char *const lists[] = {"tool_calls", "invalid_tool_calls"};
    json_t *view = json_loads(reply, 0, NULL), *call;
    json_t *request =
        json_pack("{s:[{s:s,s:s},o]}", "messages", "role", "user", "content", "hi", view);
    for (int list = 0; list < 2; list++) {
        size_t i;
        json_array_foreach(json_object_get(view, lists[list]), i, call)
        {
            json_array_append_new(json_object_get(request, "messages"),
                                  json_pack("{s:s,s:O,s:s}", "role", "tool", "tool_call_id",
                                            json_object_get(call, "id"), "content", "r"));
        }
    }
    char *text = json_dumps(request, JSON_COMPACT);
    char *body = render(HOST, text);
    check_parts(body, json_object_get(one, "echo_has"), 1);
    check_parts(body, json_object_get(one, "echo_lacks"), 0);
    json_decref(request);
    free(text);
    free(body);
}

/* ---- answers ---- */

static void check_error(const json_t *one, const barchan_error *err)
{
    const char *code = bc_json_get_string(one, "error", NULL);
    int any = json_is_true(json_object_get(one, "error_any"));
    ck_assert_msg(code != NULL || any, "%s: %s", where, err->message);
    if (!any) {
        ck_assert_msg(strcmp(barchan_status_name(err->code), code) == 0, "%s: %s: %s", where,
                      barchan_status_name(err->code), err->message);
    }
    if (json_is_true(json_object_get(one, "retryable"))) ck_assert_int_eq(err->retryable, 1);
}

static void check_reply(const json_t *one, const char *reply)
{
    const json_t *want = json_object_get(one, "reply");
    json_t *got = json_loads(reply, 0, NULL);
    ck_assert_msg(want != NULL && has_all(got, want), "%s: %s", where, reply);
    if (json_is_true(json_object_get(one, "made_ids"))) {
        const json_t *call = json_array_get(json_object_get(got, "tool_calls"), 0);
        ck_assert_uint_eq(strlen(bc_json_get_string(call, "id", NULL)), 9);
    }
    json_decref(got);
    check_echo(one, reply);
}

static void check_answer(const json_t *one, int is_stream, const char *text, size_t len)
{
    int status = (int)bc_json_get_integer(one, "status", 200);
    for (size_t step = 0; step < 2; step++) { /* whole, and byte by byte */
        adapter_result got = adapter_read(&bc_provider_openai, status, is_stream, text, len, step);
        if (got.failed) check_error(one, &got.err);
        if (!got.failed) check_reply(one, got.reply);
        adapter_result_clear(&got);
    }
}

static void add_lines(bc_buf *text, const json_t *lines)
{
    size_t i;
    json_t *line;
    json_array_foreach(lines, i, line)
    {
        bc_buf_append_string(text, json_string_value(line));
        bc_buf_append_char(text, '\n');
    }
}

/* An answer whose form is not told: through a model, from a recording. */
static void check_untold(const json_t *one)
{
    int asked = json_is_true(json_object_get(one, "asked"));
    char path[] = "/tmp/barchan_quirk_XXXXXX", request[200];
    FILE *file = fdopen(mkstemp(path), "w");
    ck_assert_ptr_nonnull(file);
    json_t *exchange = json_pack(
        "{s:s,s:s,s:s,s:s,s:i,s:{s:O},s:O}", "type", "exchange", "url",
        "https://h/v1/chat/completions", "request",
        asked ? "{\"model\":\"m\",\"stream\":true,\"stream_options\":{\"include_usage\":true},"
                "\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}"
              : "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}",
        "end", "complete", "status", 200, "headers", "content-type",
        json_object_get(one, "content_type"), "body", json_object_get(one, "answer"));
    char *line = json_dumps(exchange, JSON_COMPACT);
    fprintf(file,
            "{\"type\":\"recording\",\"version\":1,\"provider\":\"openai\",\"model\":\"m\","
            "\"base_url\":\"https://h/v1\"}\n%s\n",
            line);
    fclose(file);
    barchan_runtime *rt;
    barchan_model *model;
    barchan_error err;
    char *reply = NULL;
    barchan_model_options o = {.struct_size = sizeof o,
                               .provider = "openai",
                               .name = "m",
                               .base_url = "https://h/v1",
                               .max_retries = -1,
                               .replay_path = path};
    ck_assert_int_eq(barchan_runtime_create(&rt, NULL, &err), 0);
    ck_assert_msg(barchan_model_create(&model, rt, &o, &err) == 0, "%s", err.message);
    int len = snprintf(request, sizeof request,
                       "{\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}],\"stream\":%s}",
                       asked ? "true" : "false");
    if (barchan_model_complete(model, request, (size_t)len, NULL, &reply, &err) < 0) {
        check_error(one, &err);
    } else {
        check_reply(one, reply);
    }
    barchan_free(reply);
    barchan_model_destroy(model);
    barchan_runtime_destroy(rt);
    unlink(path);
    free(line);
    json_decref(exchange);
}

/* A misspelt member would check nothing. */
static void check_members(const json_t *one)
{
    static const char *const members[] = {
        "answer", "asked",     "base_url", "body",   "content_type", "echo_has", "echo_lacks",
        "error",  "error_any", "made_ids", "pairs",  "reply",        "request",  "retryable",
        "sends",  "sends_not", "status",   "stream", "stream_text",  NULL};
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)one, name, value)
    {
        size_t i = 0;
        while (members[i] != NULL && strcmp(members[i], name) != 0)
            i++;
        ck_assert_msg(members[i] != NULL, "a case has the unknown member '%s'", name);
    }
}

static void check_case(const json_t *one)
{
    check_members(one);
    bc_buf text;
    size_t len;
    bc_buf_init(&text, 1 << 20);
    add_lines(&text, json_object_get(one, "stream"));
    const char *raw = bc_json_get_string(one, "stream_text", &len);
    const char *body = bc_json_get_string(one, "body", NULL);
    if (text.len > 0) check_answer(one, 1, bc_buf_data(&text), text.len);
    if (raw != NULL) check_answer(one, 1, raw, len);
    if (body != NULL) check_answer(one, 0, body, strlen(body));
    if (json_object_get(one, "request") != NULL) check_request(one);
    if (json_object_get(one, "answer") != NULL) check_untold(one);
    bc_buf_clear(&text);
}

START_TEST(each_has_a_file_and_holds)
{
    int seen[QUIRKS + 1] = {0};
    struct dirent **names;
    int count = scandir(TEST_DATA "/quirks", &names, NULL, alphasort);
    ck_assert_int_gt(count, QUIRKS);
    for (int i = 0; i < count; i++) {
        char path[600];
        int number = 0;
        if (sscanf(names[i]->d_name, "Q%2d_", &number) == 1) {
            ck_assert_int_ge(number, 1);
            ck_assert_int_le(number, QUIRKS);
            seen[number] = 1;
            snprintf(path, sizeof path, "%s/quirks/%.200s", TEST_DATA, names[i]->d_name);
            json_error_t wrong;
            json_t *file = json_load_file(path, 0, &wrong), *one;
            ck_assert_msg(file != NULL, "%s: %s", path, wrong.text);
            const json_t *cases = json_object_get(file, "cases");
            size_t at;
            ck_assert_uint_gt(json_array_size(cases), 0);
            json_array_foreach(cases, at, one)
            {
                snprintf(where, sizeof where, "%.200s case %zu", names[i]->d_name, at + 1);
                check_case(one);
            }
            json_decref(file);
        }
        free(names[i]);
    }
    free(names);
    for (int number = 1; number <= QUIRKS; number++)
        ck_assert_msg(seen[number], "Q%d has no file", number);
}
END_TEST

UNIT_MAIN("quirks", each_has_a_file_and_holds)
