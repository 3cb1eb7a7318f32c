/* The Gemini adapter: request bodies, parts, and what goes back. */
#include <stdio.h>
#include <stdlib.h>
#include "adapter_view.h"
#include "provider/message.h"
#include "suite.h"

static barchan_error err;

/* ---- requests ---- */

static char *body_for(const char *name, const char *text)
{
    bc_model_info model = {.name = name, .base_url = "https://example.test"};
    bc_request request;
    bc_buf body;
    bc_buf_init(&body, 1 << 20);
    int rc = bc_request_parse(&request, text, strlen(text), &err);
    ck_assert_msg(rc == 0, "%s", err.message);
    rc = bc_provider_gemini.render(&model, &request, &body, &err);
    ck_assert_msg(rc == 0, "%s", err.message);
    ck_assert_int_eq(bc_json_validate(bc_buf_data(&body), body.len, NULL), 0);
    bc_request_clear(&request);
    return bc_buf_take(&body, NULL);
}

static void body_is(const char *name, const char *request, const char *body)
{
    char *got = body_for(name, request);
    ck_assert_str_eq(got, body);
    free(got);
}

#define NEW "gemini-3-flash"
#define OLD "gemini-2.5-flash"
#define USER "{\"role\":\"user\",\"content\":\"hi\"}"
#define USER_OUT "{\"role\":\"user\",\"parts\":[{\"text\":\"hi\"}]}"

START_TEST(requests)
{
    body_is(NEW, "{\"messages\":[" USER "],\"stream\":true,\"tools\":[]}",
            "{\"contents\":[" USER_OUT "]}");
    body_is(NEW,
            "{\"messages\":[" USER "],\"system\":\"s\",\"max_tokens\":5,\"temperature\":0.10,"
            "\"stop\":[\"x\"]}",
            "{\"systemInstruction\":{\"parts\":[{\"text\":\"s\"}]},\"generationConfig\":{"
            "\"maxOutputTokens\":5,\"temperature\":0.10,\"stopSequences\":[\"x\"]},"
            "\"contents\":[" USER_OUT "]}");
    body_is(NEW,
            "{\"messages\":[" USER "],\"tools\":[{\"name\":\"f\",\"description\":\"d\"}],"
            "\"tool_choice\":{\"name\":\"f\"}}",
            "{\"tools\":[{\"functionDeclarations\":[{\"name\":\"f\",\"description\":\"d\","
            "\"parametersJsonSchema\":{\"type\":\"object\",\"properties\":{}}}]}],\"toolConfig\":{"
            "\"functionCallingConfig\":{\"mode\":\"ANY\",\"allowedFunctionNames\":[\"f\"]}},"
            "\"contents\":[" USER_OUT "]}");
    body_is(NEW,
            "{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"image\",\"media_type\":"
            "\"image/png\",\"data\":\"AA==\"}]}],\"extra\":{\"safetySettings\":[]}}",
            "{\"contents\":[{\"role\":\"user\",\"parts\":[{\"inlineData\":{\"mimeType\":"
            "\"image/png\",\"data\":\"AA==\"}}]}],\"safetySettings\":[]}");
}
END_TEST

#define FOREIGN                                                                                    \
    "{\"messages\":[" USER ",{\"role\":\"assistant\",\"text\":\"t\",\"tool_calls\":[{\"id\":"      \
    "\"a\",\"name\":\"f\",\"arguments\":{\"x\":1.50}},{\"id\":\"b\",\"name\":\"g\",\"arguments\":" \
    "{}}]},{\"role\":\"tool\",\"tool_call_id\":\"b\",\"content\":[{\"type\":\"text\",\"text\":"    \
    "\"see\"},{\"type\":\"image\",\"media_type\":\"image/png\",\"data\":\"AA==\"}]},"              \
    "{\"role\":\"tool\",\"tool_call_id\":\"a\",\"content\":\"bad\",\"is_error\":true}]}"

/* Results stand in the order of the calls, whatever the order of the messages. */
START_TEST(turns_of_other_models)
{
    body_is(
        NEW, FOREIGN,
        "{\"contents\":[" USER_OUT ",{\"role\":\"model\",\"parts\":[{\"text\":\"t\"},"
        "{\"functionCall\":{\"name\":\"f\",\"args\":{\"x\":1.50}},\"thoughtSignature\":"
        "\"skip_thought_signature_validator\"},{\"functionCall\":{\"name\":\"g\",\"args\":{}}}]},"
        "{\"role\":\"user\",\"parts\":[{\"functionResponse\":{\"name\":\"f\",\"response\":{"
        "\"error\":\"bad\"}}},{\"functionResponse\":{\"name\":\"g\",\"response\":{\"output\":"
        "\"see\"},\"parts\":[{\"inlineData\":{\"mimeType\":\"image/png\",\"data\":\"AA==\"}}]"
        "}}]}]}");
    body_is(
        OLD, FOREIGN,
        "{\"contents\":[" USER_OUT ",{\"role\":\"model\",\"parts\":[{\"text\":\"t\"},"
        "{\"functionCall\":{\"name\":\"f\",\"args\":{\"x\":1.50}}},{\"functionCall\":{\"name\":"
        "\"g\",\"args\":{}}}]},{\"role\":\"user\",\"parts\":[{\"functionResponse\":{\"name\":"
        "\"f\",\"response\":{\"error\":\"bad\"}}},{\"functionResponse\":{\"name\":\"g\","
        "\"response\":{\"output\":\"see\"}}},{\"text\":\"Images of a result:\"},{\"inlineData\":"
        "{\"mimeType\":\"image/png\",\"data\":\"AA==\"}}]}]}");
}
END_TEST

START_TEST(what_the_wire_lacks_is_refused)
{
    static const char text[] = "{\"messages\":[" USER "],\"parallel_tool_calls\":false}";
    bc_model_info model = {.name = NEW, .base_url = "https://h"};
    bc_request request;
    bc_buf body;
    bc_buf_init(&body, 1 << 20);
    ck_assert_int_eq(bc_request_parse(&request, text, sizeof text - 1, &err), 0);
    ck_assert_int_eq(bc_provider_gemini.render(&model, &request, &body, &err), BARCHAN_EINVAL);
    ck_assert_ptr_nonnull(strstr(err.message, "parallel_tool_calls"));
    bc_request_clear(&request);
    bc_buf_clear(&body);
}
END_TEST

START_TEST(addresses_and_keys)
{
    static const struct {
        const char *base, *name, *url;
        int stream;
    } cases[] = {
        {"https://g/v1beta", "m", "https://g/v1beta/models/m:generateContent", 0},
        {"https://g/v1beta", "m", "https://g/v1beta/models/m:streamGenerateContent?alt=sse", 1},
        {"http://127.0.0.1:1", "m", "http://127.0.0.1:1/v1beta/models/m:generateContent", 0},
        {"https://v/v1/projects/p/publishers/google", "m",
         "https://v/v1/projects/p/publishers/google/models/m:streamGenerateContent?alt=sse", 1},
        {"https://g/v1beta?x=1", "m", "https://g/v1beta/models/m:streamGenerateContent?x=1&alt=sse",
         1},
        {"https://g/v1beta", "tunedModels/t", "https://g/v1beta/tunedModels/t:generateContent", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bc_model_info model = {.name = cases[i].name, .base_url = cases[i].base};
        bc_request request = {.stream = cases[i].stream};
        bc_buf url;
        bc_buf_init(&url, 1000);
        ck_assert_int_eq(bc_provider_gemini.endpoint(&model, &request, &url, &err), 0);
        ck_assert_str_eq(bc_buf_data(&url), cases[i].url);
        bc_buf_clear(&url);
    }
    static const char *const bad[] = {"a?key=b", "a b", "../x", "a#b", "a%2fb"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        bc_model_info model = {.name = bad[i], .base_url = "https://g"};
        bc_buf url;
        bc_buf_init(&url, 1000);
        ck_assert_int_eq(bc_provider_gemini.endpoint(&model, NULL, &url, &err), BARCHAN_EINVAL);
        bc_buf_clear(&url);
    }
}
END_TEST

/* ---- answers ---- */

#define EVENT(parts, more)                                                                \
    "data: {\"candidates\":[{\"content\":{\"role\":\"model\",\"parts\":[" parts "]}" more \
    "}]}\r\n\r\n"
#define STOP ",\"finishReason\":\"STOP\""

START_TEST(signed_parts_go_back_as_they_came)
{
    char shown[64];
    json_t *r = adapter_view(
        &bc_provider_gemini, 1,
        EVENT("{\"text\":\"hm\",\"thought\":true}", "")
            EVENT("{\"text\":\"m\\/\",\"thought\":true},{\"text\":\"a\\ud83d\"}", "")
                EVENT("{\"text\":\"\\ude00b\"}", "")
                    EVENT("{\"thoughtSignature\":\"s1\",\"text\":\"c\"}", "")
                        EVENT("{\"text\":\"\",\"thoughtSignature\":\"s2\"},{\"text\":\"\"},"
                              "{\"text\":\"d\"}",
                              STOP),
        shown, sizeof shown);
    ck_assert_str_eq(view_string(r, "text"), "a\xF0\x9F\x98\x80"
                                             "bcd");
    ck_assert_str_eq(shown, view_string(r, "text"));
    ck_assert_str_eq(view_string(r, "reasoning"), "hmm/");
    ck_assert_str_eq(view_string(bc_json_get_object(r, "raw"), "turn"),
                     "{\"content\":{\"role\":\"model\",\"parts\":[{\"text\":\"hmm\\/\",\"thought\":"
                     "true},{\"text\":\"a\\ud83d\\ude00b\"},{\"thoughtSignature\":\"s1\",\"text\":"
                     "\"c\"},{\"text\":\"\",\"thoughtSignature\":\"s2\"},{\"text\":\"d\"}]},"
                     "\"calls\":[]}");
    json_decref(r);
}
END_TEST

/* The conversation goes on with each call answered, the last one first. */
static char *next_body(const json_t *reply)
{
    json_t *messages = json_pack("[{s:s,s:s},O]", "role", "user", "content", "x", reply);
    const json_t *calls = json_object_get(reply, "tool_calls");
    for (size_t i = json_array_size(calls); i > 0; i--) {
        const json_t *call = json_array_get(calls, i - 1);
        json_array_append_new(messages, json_pack("{s:s,s:O,s:O}", "role", "tool", "tool_call_id",
                                                  json_object_get(call, "id"), "content",
                                                  json_object_get(call, "name")));
    }
    json_t *request = json_pack("{s:o}", "messages", messages);
    char *text = json_dumps(request, 0), *body = body_for("m", text);
    json_decref(request);
    free(text);
    return body;
}

/* An id goes back only where the server gave one. */
START_TEST(results_answer_calls_with_and_without_ids)
{
    json_t *r =
        adapter_view(&bc_provider_gemini, 1,
                     EVENT("{\"functionCall\":{\"name\":\"f\",\"args\":{\"x\": 0.10}},"
                           "\"thoughtSignature\":\"s\"},{\"functionCall\":{\"id\":\"i\",\"name\":"
                           "\"g\"}}",
                           STOP),
                     NULL, 0);
    ck_assert_str_eq(view_string(r, "stop_reason"), "tool_use");
    ck_assert_uint_eq(json_array_size(json_object_get(r, "tool_calls")), 2);
    char *body = next_body(r);
    ck_assert_ptr_nonnull(
        strstr(body, "{\"role\":\"model\",\"parts\":[{\"functionCall\":{\"name\":\"f\",\"args\":"
                     "{\"x\": 0.10}},\"thoughtSignature\":\"s\"},{\"functionCall\":{\"id\":\"i\","
                     "\"name\":\"g\"}}]},{\"role\":\"user\",\"parts\":[{\"functionResponse\":{"
                     "\"name\":\"f\",\"response\":{\"output\":\"f\"}}},{\"functionResponse\":{"
                     "\"id\":\"i\",\"name\":\"g\",\"response\":{\"output\":\"g\"}}}]}]}"));
    free(body);
    json_decref(r);
}
END_TEST

static const char *arguments_of(const char *stream)
{
    static char out[1024];
    json_t *r = adapter_view(&bc_provider_gemini, 1, stream, NULL, 0);
    json_t *call = json_array_get(json_object_get(r, "tool_calls"), 0);
    char *text = json_dumps(json_object_get(call, "arguments"), JSON_COMPACT | JSON_SORT_KEYS);
    snprintf(out, sizeof out, "%s:%s", view_string(call, "name"), text);
    free(text);
    json_decref(r);
    return out;
}

#define PIECE(args) "{\"functionCall\":{\"partialArgs\":[" args "],\"willContinue\":true}}"
#define BEGIN "{\"functionCall\":{\"name\":\"f\",\"willContinue\":true},\"thoughtSignature\":\"s\"}"

START_TEST(arguments_by_their_paths)
{
    static const char pieces[] = EVENT(BEGIN, "") EVENT(
        PIECE("{\"jsonPath\":\"$.a[0].b\",\"stringValue\":\"x\",\"willContinue\":true}"), "")
        EVENT(PIECE("{\"jsonPath\":\"$.a[0].b\",\"stringValue\":\"y\"},{\"jsonPath\":\"$.a[1]\","
                    "\"numberValue\":7},{\"jsonPath\":\"$['o k']\",\"boolValue\":false},"
                    "{\"jsonPath\":\"$.n\",\"nullValue\":\"NULL_VALUE\"}"),
              "");
    static const char want[] = "f:{\"a\":[{\"b\":\"xy\"},7],\"n\":null,\"o k\":false}";
    char stream[4096];
    static const char *const ends[] = {
        EVENT("{\"functionCall\":{}}", STOP),                       /* a last piece */
        EVENT("{\"text\":\"\"}", STOP),                             /* another part */
        "data: {\"candidates\":[{\"finishReason\":\"STOP\"}]}\n\n", /* the stream's end */
    };
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        snprintf(stream, sizeof stream, "%s%s", pieces, ends[i]);
        ck_assert_str_eq(arguments_of(stream), want);
    }
    json_t *r = adapter_view(&bc_provider_gemini, 1, stream, NULL, 0);
    ck_assert_ptr_nonnull(strstr(view_string(bc_json_get_object(r, "raw"), "turn"),
                                 "\"o k\":false,\"n\":null}},\"thoughtSignature\":\"s\"}"));
    json_decref(r);
}
END_TEST

START_TEST(bad_paths_are_errors)
{
    static const char *const bad[] = {"a",       "$",      "$.",     "$a",   "$.a[", "$.a[x]",
                                      "$.a[-1]", "$.a[5]", "$[0].b", "$..a", "$['a", "$.a[0"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char stream[1024];
        snprintf(
            stream, sizeof stream,
            EVENT(BEGIN, "") "data: {\"candidates\":[{\"content\":{\"parts\":[{\"functionCall\":"
                             "{\"partialArgs\":[{\"jsonPath\":\"%s\",\"numberValue\":1}]}}]}" STOP
                             "}]}\n\n",
            bad[i]);
        adapter_result r = adapter_read(&bc_provider_gemini, 200, 1, stream, strlen(stream), 0);
        ck_assert_msg(r.failed && r.err.code == BARCHAN_EPROTOCOL, "%s", bad[i]);
        adapter_result_clear(&r);
    }
}
END_TEST

START_TEST(ends)
{
    static const struct {
        const char *label, *stop;
        int runnable;
    } cases[] = {
        {"STOP", "tool_use", 1},
        {"FUNCTION_CALL", "tool_use", 1},
        {"MAX_TOKENS", "max_tokens", 0},
        {"MALFORMED_FUNCTION_CALL", "error", 0},
        {"UNEXPECTED_TOOL_CALL", "error", 0},
        {"SAFETY", "content_filter", 0},
        {"MODEL_ARMOR", "content_filter", 0},
        {"SOMETHING_NEW", "error", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[512];
        snprintf(text, sizeof text,
                 "{\"candidates\":[{\"content\":{\"parts\":[{\"functionCall\":{\"name\":\"f\"}}]},"
                 "\"finishReason\":\"%s\"}]}",
                 cases[i].label);
        json_t *r = adapter_view(&bc_provider_gemini, 0, text, NULL, 0);
        ck_assert_str_eq(view_string(r, "stop_reason"), cases[i].stop);
        ck_assert_str_eq(view_string(r, "raw_stop_reason"), cases[i].label);
        ck_assert_int_eq((int)json_array_size(json_object_get(r, "tool_calls")), cases[i].runnable);
        json_decref(r);
    }
    json_t *r = adapter_view(&bc_provider_gemini, 0,
                             "{\"promptFeedback\":{\"blockReason\":\"SAFETY\"}}", NULL, 0);
    ck_assert_str_eq(view_string(r, "stop_reason"), "content_filter");
    json_decref(r);
}
END_TEST

START_TEST(a_list_is_a_stream_in_one_body)
{
    json_t *r = adapter_view(&bc_provider_gemini, 0,
                             "[{\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"a\"}]}}]},"
                             "{\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"b\"}]},"
                             "\"finishReason\":\"STOP\"}]}]",
                             NULL, 0);
    ck_assert_str_eq(view_string(r, "text"), "ab");
    json_decref(r);
}
END_TEST

#define ERROR(code, status, more) \
    "{\"error\":{\"code\":" #code ",\"message\":\"m\",\"status\":\"" status "\"" more "}}"

START_TEST(failures)
{
    static const struct {
        int http, stream, code, retryable;
        long after_ms;
        const char *text;
    } cases[] = {
        {200, 1, BARCHAN_ENETWORK, 1, -1, ""},
        {200, 1, BARCHAN_ENETWORK, 1, -1, EVENT("{\"text\":\"x\"}", "")},
        {200, 1, BARCHAN_EOVERLOADED, 1, -1, "data: " ERROR(503, "UNAVAILABLE", "") "\n\n"},
        {200, 1, BARCHAN_EOVERLOADED, 1, -1, "data: [" ERROR(503, "UNAVAILABLE", "") "]\n\n"},
        {429, 0, BARCHAN_ERATE, 1, 34400,
         ERROR(429, "RESOURCE_EXHAUSTED", ",\"details\":[{\"retryDelay\":\"34.4s\"}]")},
        {429, 0, BARCHAN_EQUOTA, 0, -1,
         ERROR(429, "RESOURCE_EXHAUSTED",
               ",\"details\":[{\"violations\":[{\"quotaId\":\"RequestsPerDay\"}]},"
               "{\"retryDelay\":\"34s\"}]")},
        {429, 0, BARCHAN_ERATE, 1, -1,
         ERROR(429, "RESOURCE_EXHAUSTED", ",\"details\":[{\"retryDelay\":\"-1s\"}]")},
        {400, 0, BARCHAN_EAUTH, 0, -1,
         ERROR(400, "INVALID_ARGUMENT", ",\"details\":[{\"reason\":\"API_KEY_INVALID\"}]")},
        {400, 0, BARCHAN_EREQUEST, 0, -1, ERROR(400, "INVALID_ARGUMENT", "")},
        {403, 0, BARCHAN_EPERMISSION, 0, -1, ERROR(403, "PERMISSION_DENIED", "")},
        {500, 0, BARCHAN_ESERVER, 1, -1, ERROR(500, "INTERNAL", "")},
        {504, 0, BARCHAN_ETIMEDOUT, 1, -1, "[" ERROR(504, "DEADLINE_EXCEEDED", "") "]"},
        {200, 0, BARCHAN_EPROTOCOL, 0, -1, "{\"hello\":1}"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        adapter_result r = adapter_read(&bc_provider_gemini, cases[i].http, cases[i].stream,
                                        cases[i].text, strlen(cases[i].text), 0);
        ck_assert_msg(r.failed, "%s", cases[i].text);
        ck_assert_msg(r.err.code == cases[i].code && r.err.retryable == cases[i].retryable &&
                          r.err.retry_after_ms == cases[i].after_ms,
                      "%s: %d %d %ld %s", cases[i].text, r.err.code, r.err.retryable,
                      (long)r.err.retry_after_ms, r.err.message);
        adapter_result_clear(&r);
    }
}
END_TEST

START_TEST(usage_adds_up)
{
    json_t *r = adapter_view(&bc_provider_gemini, 0,
                             "{\"candidates\":[{\"finishReason\":\"STOP\"}],\"usageMetadata\":{"
                             "\"promptTokenCount\":100,\"cachedContentTokenCount\":30,"
                             "\"toolUsePromptTokenCount\":7,\"candidatesTokenCount\":20,"
                             "\"thoughtsTokenCount\":8}}",
                             NULL, 0);
    const json_t *usage = bc_json_get_object(r, "usage");
    ck_assert_int_eq(bc_json_get_integer(usage, "input_tokens", -1), 77);
    ck_assert_int_eq(bc_json_get_integer(usage, "cache_read_tokens", -1), 30);
    ck_assert_int_eq(bc_json_get_integer(usage, "output_tokens", -1), 28);
    ck_assert_int_eq(bc_json_get_integer(usage, "reasoning_tokens", -1), 8);
    json_decref(r);
}
END_TEST

START_TEST(too_much_is_refused)
{
    static const char *const parts[] = {"{\"functionCall\":{\"name\":\"f\"}}",
                                        "{\"executableCode\":{}}"};
    static const char *const words[] = {"256 tool calls", "4096 parts"};
    for (int kind = 0; kind < 2; kind++) {
        bc_buf text;
        bc_buf_init(&text, 1 << 20);
        bc_buf_append_string(&text, "{\"candidates\":[{\"content\":{\"parts\":[");
        for (int i = 0; i < 5000; i++)
            bc_buf_appendf(&text, "%s%s", i > 0 ? "," : "", parts[kind]);
        bc_buf_append_string(&text, "]},\"finishReason\":\"STOP\"}]}");
        adapter_result r =
            adapter_read(&bc_provider_gemini, 200, 0, bc_buf_data(&text), text.len, 0);
        ck_assert(r.failed);
        ck_assert_int_eq(r.err.code, BARCHAN_ELIMIT);
        ck_assert_msg(strstr(r.err.message, words[kind]) != NULL, "%s", r.err.message);
        adapter_result_clear(&r);
        bc_buf_clear(&text);
    }
}
END_TEST

UNIT_MAIN("gemini", requests, turns_of_other_models, what_the_wire_lacks_is_refused,
          addresses_and_keys, signed_parts_go_back_as_they_came,
          results_answer_calls_with_and_without_ids, arguments_by_their_paths, bad_paths_are_errors,
          ends, a_list_is_a_stream_in_one_body, failures, usage_adds_up, too_much_is_refused)
