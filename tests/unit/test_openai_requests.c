/* The Chat Completions adapter: request bodies and addresses. */
#include <stdio.h>
#include <stdlib.h>
#include "adapter_run.h"
#include "provider/message.h"
#include "suite.h"

static barchan_error err;

static char *body_at(const char *base_url, const char *text)
{
    bc_request request;
    bc_buf body;
    bc_model_info model = {.name = "m", .base_url = base_url};
    bc_buf_init(&body, 1 << 20);
    int rc = bc_request_parse(&request, text, strlen(text), &err);
    ck_assert_msg(rc == 0, "%s", err.message);
    rc = bc_provider_openai.render(&model, &request, &body, &err);
    ck_assert_msg(rc == 0, "%s", err.message);
    ck_assert_int_eq(bc_json_validate(bc_buf_data(&body), body.len, NULL), 0);
    bc_request_clear(&request);
    return bc_buf_take(&body, NULL);
}

static void body_is(const char *base_url, const char *request, const char *body)
{
    char *got = body_at(base_url, request);
    ck_assert_str_eq(got, body);
    free(got);
}

#define USER "{\"role\":\"user\",\"content\":\"hi\"}"
#define OTHER "https://h/v1"

START_TEST(requests)
{
    body_is("https://api.openai.com/v1",
            "{\"messages\":[" USER "],\"system\":\"s\",\"max_tokens\":5}",
            "{\"model\":\"m\",\"max_completion_tokens\":5,\"messages\":[{\"role\":\"system\","
            "\"content\":\"s\"}," USER "]}");
    body_is(
        OTHER,
        "{\"messages\":[" USER "],\"max_tokens\":5,\"stream\":true,\"tools\":[],"
        "\"tool_choice\":\"any\",\"parallel_tool_calls\":true,\"stop\":[\"x\"],\"temperature\":"
        "1e0}",
        "{\"model\":\"m\",\"max_tokens\":5,\"temperature\":1e0,\"stop\":[\"x\"],\"stream\":true,"
        "\"stream_options\":{\"include_usage\":true},\"messages\":[" USER "]}");
    body_is("https://api.mistral.ai/v1", "{\"messages\":[" USER "],\"stream\":true}",
            "{\"model\":\"m\",\"stream\":true,\"messages\":[" USER "]}");
    body_is(OTHER,
            "{\"messages\":[" USER
            "],\"tools\":[{\"name\":\"f\",\"description\":\"d\",\"parameters\":{}}],"
            "\"tool_choice\":\"any\",\"parallel_tool_calls\":false}",
            "{\"model\":\"m\",\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"f\","
            "\"description\":\"d\","
            "\"parameters\":{}}}],\"tool_choice\":\"required\",\"parallel_tool_calls\":false,"
            "\"messages\":[" USER "]}");
    char *got = body_at(OTHER, "{\"messages\":[" USER
                               "],\"tools\":[{\"name\":\"f\"}],\"tool_choice\":{\"name\":\"f\"}}");
    ck_assert_ptr_nonnull(
        strstr(got, "\"tool_choice\":{\"type\":\"function\",\"function\":{\"name\":\"f\"}}"));
    free(got);
    body_is(OTHER,
            "{\"messages\":[" USER
            "],\"stream\":true,\"extra\":{\"stream_options\":null,\"seed\":1}}",
            "{\"model\":\"m\",\"stream\":true,\"messages\":[" USER "],\"seed\":1}");
}
END_TEST

#define CALL(id) "{\"id\":\"" id "\",\"name\":\"f\",\"arguments\":{\"x\": 1.0}}"
#define CALL_OUT(id) \
    "{\"id\":\"" id  \
    "\",\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"{\\\"x\\\": 1.0}\"}}"

START_TEST(conversations)
{
    body_is(OTHER,
            "{\"messages\":[" USER
            ",{\"role\":\"assistant\",\"text\":\"\",\"tool_calls\":[" CALL("a") "," CALL(
                "b") "]},{\"role\":\"tool\",\"tool_call_id\":\"a\",\"content\":\"bad\",\"is_"
                     "error\":true},"
                     "{\"role\":\"tool\",\"tool_call_id\":\"b\",\"content\":[{\"type\":\"text\","
                     "\"text\":\"see\"},"
                     "{\"type\":\"image\",\"media_type\":\"image/png\",\"data\":\"AA==\"}]},"
                     "{\"role\":\"assistant\",\"text\":\"done\"},{\"role\":\"assistant\",\"text\":"
                     "\"\"}," USER "]}",
            "{\"model\":\"m\",\"messages\":[" USER
            ",{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[" CALL_OUT("a") "," CALL_OUT(
                "b") "]},{\"role\":\"tool\",\"tool_call_id\":\"a\",\"content\":\"Error: bad\"},"
                     "{\"role\":\"tool\",\"tool_call_id\":\"b\",\"content\":\"see\"},{\"role\":"
                     "\"user\",\"content\":["
                     "{\"type\":\"text\",\"text\":\"Images of the result of tool call "
                     "b:\"},{\"type\":\"image_url\","
                     "\"image_url\":{\"url\":\"data:image/"
                     "png;base64,AA==\"}}]},{\"role\":\"assistant\",\"content\":\"done\"},"
                     "{\"role\":\"assistant\",\"content\":\"\"}," USER "]}");
    /* Q8: Mistral takes ids of nine letters and digits only; both sides are mapped alike. */
    char *got = body_at("https://api.mistral.ai/v1",
                        "{\"messages\":[" USER
                        ",{\"role\":\"assistant\",\"tool_calls\":[" CALL("toolu_0123") "," CALL(
                            "abcDEF123") "]},{\"role\":\"tool\",\"tool_call_id\":\"toolu_0123\"},"
                                         "{\"role\":\"tool\",\"tool_call_id\":\"abcDEF123\"}]}");
    ck_assert_ptr_null(strstr(got, "toolu_0123"));
    ck_assert_ptr_nonnull(strstr(got, "\"tool_call_id\":\"abcDEF123\""));
    char pair[64];
    snprintf(pair, sizeof pair, "\"tool_call_id\":\"%.9s\"", strstr(got, "{\"id\":\"") + 7);
    ck_assert_ptr_nonnull(strstr(got, pair));
    free(got);
}
END_TEST

START_TEST(addresses)
{
    static const char *const urls[][2] = {
        {"https://api.openai.com/v1", "https://api.openai.com/v1/chat/completions"},
        {"https://api.openai.com", "https://api.openai.com/v1/chat/completions"},
        {"http://localhost:11434", "http://localhost:11434/v1/chat/completions"},
        {"https://openrouter.ai/api/v1", "https://openrouter.ai/api/v1/chat/completions"},
        {"https://h/v1beta/openai", "https://h/v1beta/openai/chat/completions"},
        {"https://api.perplexity.ai/chat/completions",
         "https://api.perplexity.ai/chat/completions"},
        {"https://h/x?api-version=1", "https://h/x/chat/completions?api-version=1"},
    };
    for (size_t i = 0; i < sizeof urls / sizeof *urls; i++) {
        bc_model_info m = {.name = "m", .base_url = urls[i][0]};
        bc_buf url;
        bc_buf_init(&url, 200);
        ck_assert_int_eq(bc_provider_openai.endpoint(&m, NULL, &url, &err), 0);
        ck_assert_str_eq(bc_buf_data(&url), urls[i][1]);
        bc_buf_clear(&url);
    }
}
END_TEST

UNIT_MAIN("openai_requests", requests, conversations, addresses)
