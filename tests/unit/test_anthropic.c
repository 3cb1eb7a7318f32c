/* Anthropic's protocol: what is asked for. Its answers are in test_anthropic_answers.c. */
#include <stdio.h>
#include <stdlib.h>
#include "adapter_run.h"
#include "provider/message.h"
#include "suite.h"

static barchan_error err;

static char *body_with(const bc_model_info *model, const char *text)
{
    bc_request request;
    bc_buf body;
    bc_buf_init(&body, 1 << 20);
    int rc = bc_request_parse(&request, text, strlen(text), &err);
    ck_assert_msg(rc == 0, "%s", err.message);
    rc = bc_provider_anthropic.render(model, &request, &body, &err);
    ck_assert_msg(rc == 0, "%s", err.message);
    ck_assert_int_eq(bc_json_validate(bc_buf_data(&body), body.len, NULL), 0);
    bc_request_clear(&request);
    return bc_buf_take(&body, NULL);
}

static const bc_model_info model = {.name = "m", .base_url = "https://h"};

static void body_is(const char *request, const char *body)
{
    char *got = body_with(&model, request);
    ck_assert_str_eq(got, body);
    free(got);
}

#define USER "{\"role\":\"user\",\"content\":\"hi\"}"
#define USER_OUT "{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"hi\"}]}"

START_TEST(requests)
{
    body_is("{\"messages\":[" USER "]}",
            "{\"model\":\"m\",\"max_tokens\":16000,\"messages\":[" USER_OUT "]}");
    body_is(
        "{\"messages\":[" USER "],\"system\":\"s\",\"max_tokens\":5,\"temperature\":0.10,"
        "\"stop\":[\"x\",\"y\"],\"stream\":true,\"tools\":[]}",
        "{\"model\":\"m\",\"max_tokens\":5,\"temperature\":0.10,\"stop_sequences\":[\"x\",\"y\"],"
        "\"stream\":true,\"system\":\"s\",\"messages\":[" USER_OUT "]}");
    body_is(
        "{\"messages\":[" USER "],\"tools\":[{\"name\":\"f\",\"description\":\"d\",\"parameters\":"
        "{\"type\": \"object\"}}],\"tool_choice\":\"any\",\"parallel_tool_calls\":false}",
        "{\"model\":\"m\",\"max_tokens\":16000,\"tools\":[{\"name\":\"f\",\"description\":\"d\","
        "\"input_schema\":{\"type\": \"object\"}}],\"tool_choice\":{\"type\":\"any\","
        "\"disable_parallel_tool_use\":true},\"messages\":[" USER_OUT "]}");
    body_is("{\"messages\":[" USER "],\"tools\":[{\"name\":\"f\"}],\"tool_choice\":\"none\","
            "\"parallel_tool_calls\":false}",
            "{\"model\":\"m\",\"max_tokens\":16000,\"tools\":[{\"name\":\"f\",\"input_schema\":"
            "{\"type\":\"object\",\"properties\":{}}}],\"tool_choice\":{\"type\":\"none\"},"
            "\"messages\":[" USER_OUT "]}");
    /* What is about tools goes only with tools. */
    body_is("{\"messages\":[" USER "],\"tool_choice\":\"any\",\"parallel_tool_calls\":false}",
            "{\"model\":\"m\",\"max_tokens\":16000,\"messages\":[" USER_OUT "]}");
    /* extra replaces, adds and removes, and is copied as it stands. */
    body_is("{\"messages\":[" USER
            "],\"stream\":true,\"extra\":{\"max_tokens\":1e3,\"stream\":null,"
            "\"thinking\":{\"type\": \"adaptive\"}}}",
            "{\"model\":\"m\",\"messages\":[" USER_OUT "],\"max_tokens\":1e3,"
            "\"thinking\":{\"type\": \"adaptive\"}}");
}
END_TEST

#define CALL(id) "{\"id\":\"" id "\",\"name\":\"f\",\"arguments\":{\"x\": 1.0}}"
#define USE(id) "{\"type\":\"tool_use\",\"id\":\"" id "\",\"name\":\"f\",\"input\":{\"x\": 1.0}}"
#define RESULT(id, rest) "{\"role\":\"tool\",\"tool_call_id\":\"" id "\"" rest "}"

START_TEST(conversations)
{
    /* Parallel results in one user message, before what the user says. */
    body_is(
        "{\"messages\":[" USER
        ",{\"role\":\"assistant\",\"text\":\"t\",\"tool_calls\":[" CALL("a") "," CALL(
            "b") "]}," RESULT("a", ",\"content\":\"1\"") "," RESULT("b", ",\"content\":\"2\",\"is_"
                                                                         "error\":true") "," USER
                                                                                         "]}",
        "{\"model\":\"m\",\"max_tokens\":16000,\"messages\":[" USER_OUT
        ",{\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":\"t\"}," USE(
            "a") "," USE("b") "]},{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\",\"tool_"
                              "use_id\":\"a\",\"content\":"
                              "[{\"type\":\"text\",\"text\":\"1\"}]},{\"type\":\"tool_result\","
                              "\"tool_use_id\":\"b\",\"content\":"
                              "[{\"type\":\"text\",\"text\":\"2\"}],\"is_error\":true},{\"type\":"
                              "\"text\",\"text\":\"hi\"}]}]}");
    /* Empty results have no content, empty turns do not go, images do. */
    body_is("{\"messages\":[" USER
            ",{\"role\":\"assistant\",\"text\":\"\"},{\"role\":\"user\",\"content\":"
            "[{\"type\":\"text\",\"text\":\"\"},{\"type\":\"image\",\"media_type\":\"image/"
            "png\",\"data\":\"AA==\"}]},"
            "{\"role\":\"assistant\",\"tool_calls\":[" CALL("a") "]}," RESULT(
                "a", ",\"content\":\"\"") "]}",
            "{\"model\":\"m\",\"max_tokens\":16000,\"messages\":[" USER_OUT
            ",{\"role\":\"user\",\"content\":"
            "[{\"type\":\"image\",\"source\":{\"type\":\"base64\",\"media_type\":\"image/"
            "png\",\"data\":\"AA==\"}}]},"
            "{\"role\":\"assistant\",\"content\":[" USE(
                "a") "]},{\"role\":\"user\",\"content\":"
                     "[{\"type\":\"tool_result\",\"tool_use_id\":\"a\"}]}]}");
    /* A call that could not be run is sent with an empty input; a foreign id is mapped on both
     * sides. */
    char *got = body_with(
        &model,
        "{\"messages\":[" USER ",{\"role\":\"assistant\",\"tool_calls\":[],"
        "\"invalid_tool_calls\":[{\"id\":\"call|1\",\"name\":\"f\",\"arguments_text\":\"{\","
        "\"error\":\"e\"}]}," RESULT("call|1", "") "]}");
    ck_assert_ptr_null(strstr(got, "call|1"));
    const char *id = strstr(got, "\"tool_use\",\"id\":\"");
    ck_assert_ptr_nonnull(id);
    char mapped[64];
    snprintf(mapped, sizeof mapped, "\"tool_use_id\":\"%.9s\"", id + 17);
    ck_assert_ptr_nonnull(strstr(got, mapped));
    ck_assert_ptr_nonnull(strstr(got, "\"input\":{}"));
    free(got);
}
END_TEST

typedef struct headers {
    char text[512];
} headers;

static int put(const char *name, const char *value, void *ud)
{
    headers *h = ud;
    size_t at = strlen(h->text);
    snprintf(h->text + at, sizeof h->text - at, "%s: %s\n", name, value);
    return 0;
}

START_TEST(keys_and_addresses)
{
    static const struct {
        const char *key, *own, *want;
    } keys[] = {
        {"k", NULL, "x-api-key: k\nanthropic-version: 2023-06-01\n"},
        {"sk-ant-oat01-x", NULL,
         "authorization: Bearer sk-ant-oat01-x\nanthropic-version: 2023-06-01\n"},
        {"Bearer t", NULL, "authorization: Bearer t\nanthropic-version: 2023-06-01\n"},
        {NULL, NULL, "anthropic-version: 2023-06-01\n"},
        {"k", "Authorization: Bearer own", "anthropic-version: 2023-06-01\n"},
        {"k", "Anthropic-Version: 2024-01-01", "x-api-key: k\n"},
    };
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        headers h = {.text = ""};
        const char *const own[] = {keys[i].own, NULL};
        bc_model_info m = {
            .name = "m", .base_url = "https://h", .api_key = keys[i].key, .headers = own};
        ck_assert_int_eq(bc_provider_anthropic.headers(&m, put, &h), 0);
        ck_assert_str_eq(h.text, keys[i].want);
    }
    static const char *const urls[][2] = {
        {"https://api.anthropic.com", "https://api.anthropic.com/v1/messages"},
        {"https://api.anthropic.com/v1", "https://api.anthropic.com/v1/messages"},
        {"https://h/anthropic", "https://h/anthropic/v1/messages"},
        {"https://h/v1/messages", "https://h/v1/messages"},
        {"https://h/x?key=1", "https://h/x/v1/messages?key=1"},
        {"https://h/?a=b/c", "https://h/v1/messages?a=b/c"},
    };
    for (size_t i = 0; i < sizeof urls / sizeof *urls; i++) {
        bc_model_info m = {.name = "m", .base_url = urls[i][0]};
        bc_buf url;
        bc_buf_init(&url, 200);
        ck_assert_int_eq(bc_provider_anthropic.endpoint(&m, NULL, &url, &err), 0);
        ck_assert_str_eq(bc_buf_data(&url), urls[i][1]);
        bc_buf_clear(&url);
    }
}
END_TEST

UNIT_MAIN("anthropic", requests, conversations, keys_and_addresses)
