/* The Chat Completions adapter: request bodies, and what its many servers send. The numbers are
 * those of the quirks in core/provider/README.md. */
#include <stdio.h>
#include <stdlib.h>
#include "adapter_run.h"
#include "provider/message.h"
#include "unit.h"

static barchan_error err;

/* ---- requests ---- */

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

/* ---- answers ---- */

static json_t *reply_of(int stream, const char *text)
{
    json_t *view = NULL;
    for (size_t step = 0; step < 2; step++) {
        adapter_result r = adapter_read(&bc_provider_openai, 200, stream, text, strlen(text), step);
        ck_assert_msg(!r.failed, "%s\n%s", r.err.message, text);
        json_decref(view);
        ck_assert_int_eq(bc_json_view(&view, r.reply, strlen(r.reply), BC_JSON_UNIQUE_KEYS, &err),
                         0);
        adapter_result_clear(&r);
    }
    return view;
}

static barchan_error fails(int status, int stream, const char *text)
{
    adapter_result r = adapter_read(&bc_provider_openai, status, stream, text, strlen(text), 0);
    ck_assert_msg(r.failed, "%s", text);
    barchan_error e = r.err;
    adapter_result_clear(&r);
    return e;
}

static const char *get(const json_t *view, const char *key)
{
    return bc_json_get_string(view, key, NULL);
}

#define CHUNK(delta) \
    "data: {\"id\":\"c1\",\"model\":\"m1\",\"choices\":[{\"index\":0,\"delta\":" delta "}]}\n\n"
#define CALLS(list) CHUNK("{\"tool_calls\":[" list "]}")
#define END(reason)                                                           \
    "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":" reason \
    "}]}\n\ndata: [DONE]\n\n"

/* The calls as "id:name:arguments" joined by spaces; "!" before those that may not be run. */
static const char *calls_of(const char *text)
{
    static char out[2048];
    json_t *r = reply_of(1, text);
    out[0] = '\0';
    static const char *const lists[] = {"tool_calls", "invalid_tool_calls"};
    for (int list = 0; list < 2; list++) {
        size_t i;
        json_t *call;
        json_array_foreach(json_object_get(r, lists[list]), i, call)
        {
            char *arguments = json_dumps(json_object_get(call, "arguments"), JSON_COMPACT);
            const char *shown = list == 0 ? arguments : get(call, "arguments_text");
            size_t at = strlen(out);
            snprintf(out + at, sizeof out - at, "%s%s%s:%s:%s", at > 0 ? " " : "",
                     list == 0 ? "" : "!", get(call, "id"), get(call, "name"), shown);
            free(arguments);
        }
    }
    json_decref(r);
    return out;
}

START_TEST(calls_in_pieces)
{
    /* As it should be. */
    ck_assert_str_eq(
        calls_of(
            CALLS("{\"index\":0,\"id\":\"a\",\"type\":\"function\",\"function\":{\"name\":"
                  "\"f\",\"arguments\":\"\"}}")
                CALLS(
                    "{\"index\":1,\"id\":\"b\",\"function\":{\"name\":\"g\",\"arguments\":\"{}\"}}")
                    CALLS("{\"index\":0,\"function\":{\"arguments\":\"{\\\"x\\\":\"}}") CALLS(
                        "{\"index\":0,\"function\":{\"arguments\":\"1}\"}}") END("\"tool_calls\"")),
        "a:f:{\"x\":1} b:g:{}");
    /* Q1: arguments as an object. Q2: blank or null. Q7: no type. Q23: several at once. */
    ck_assert_str_eq(
        calls_of(CALLS(
            "{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":{\"x\":[1]}}},"
            "{\"index\":1,\"id\":\"b\",\"function\":{\"name\":\"f\",\"arguments\":\"\"}},"
            "{\"index\":2,\"id\":\"c\",\"function\":{\"name\":\"f\",\"arguments\":null}},"
            "{\"index\":3,\"id\":\"d\",\"function\":{\"name\":\"f\"}},"
            "{\"index\":4,\"id\":\"e\",\"function\":{\"name\":\"f\",\"arguments\":\"null\"}}")
                     END("\"tool_calls\"")),
        "a:f:{\"x\":[1]} b:f:{} c:f:{} d:f:{} e:f:{}");
    /* Q3: no index. By id; then the last one; by position when several come together. */
    ck_assert_str_eq(
        calls_of(CALLS("{\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":\"{\\\"x\\\"\"}}")
                     CALLS("{\"function\":{\"arguments\":\":1}\"}}")
                         CALLS("{\"id\":\"b\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}")
                             END("\"tool_calls\"")),
        "a:f:{\"x\":1} b:f:{}");
    ck_assert_str_eq(
        calls_of(CALLS("{\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":\"{\"}},"
                       "{\"id\":\"b\",\"function\":{\"name\":\"g\",\"arguments\":\"{\"}}")
                     CALLS("{\"function\":{\"arguments\":\"}\"}},{\"function\":{\"arguments\":"
                           "\"\\\"y\\\":2}\"}}") END("null")),
        "a:f:{} b:g:{\"y\":2}");
    /* Q4: every call has index 0. */
    ck_assert_str_eq(
        calls_of(
            CALLS("{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}")
                CALLS("{\"index\":0,\"id\":\"b\",\"function\":{\"name\":\"f\",\"arguments\":\"{"
                      "\\\"x\\\":\"}}") CALLS("{\"index\":0,\"function\":{\"arguments\":\"2}\"}}")
                    END("\"tool_calls\"")),
        "a:f:{} b:f:{\"x\":2}");
    /* Q5: indexes with gaps. Q24: the name late, again, and growing. */
    ck_assert_str_eq(
        calls_of(CALLS("{\"index\":7,\"id\":\"a\",\"function\":{\"arguments\":\"{}\"}}")
                     CALLS("{\"index\":7,\"function\":{\"name\":\"f\"}}") CALLS(
                         "{\"index\":3,\"id\":\"b\",\"function\":{\"name\":\"ge\"}}")
                         CALLS("{\"index\":3,\"function\":{\"name\":\"get\"}}") CALLS(
                             "{\"index\":3,\"function\":{\"name\":\"get\",\"arguments\":\"{}\"}}")
                             END("\"stop\"")),
        "a:f:{} b:get:{}");
    ck_assert_str_eq(calls_of(CALLS("{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"get_\"}}")
                                  CALLS("{\"index\":0,\"function\":{\"name\":\"time\"}}")
                                      CALLS("{\"index\":0,\"function\":{\"arguments\":\"{}\"}}")
                                          END("\"stop\"")),
                     "a:get_time:{}");
    /* A name repeated to the end makes no call of its own; with other arguments it does. */
    ck_assert_str_eq(
        calls_of(
            CALLS("{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}")
                CALLS("{\"index\":0,\"function\":{\"name\":\"f\",\"arguments\":\"\"}}")
                    END("\"stop\"")),
        "a:f:{}");
    const char *two = calls_of(
        CALLS("{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}")
            CALLS("{\"index\":0,\"function\":{\"name\":\"f\",\"arguments\":\"{\\\"y\\\":1}\"}}")
                END("\"stop\""));
    ck_assert_ptr_nonnull(strstr(two, "a:f:{} "));
    ck_assert_ptr_nonnull(strstr(two, ":f:{\"y\":1}"));
    /* Q6: empty ids and names overwrite nothing; the id may come late. */
    ck_assert_str_eq(
        calls_of(
            CALLS("{\"index\":0,\"id\":\"\",\"function\":{\"name\":\"f\",\"arguments\":\"{\"}}")
                CALLS("{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"\",\"arguments\":\"\"}}")
                    CALLS("{\"index\":0,\"id\":null,\"function\":{\"name\":null,\"arguments\":\"}"
                          "\"}}") END("\"stop\"")),
        "a:f:{}");
    /* Q22: what does not parse is not run, and neither is a call without a name. */
    ck_assert_str_eq(
        calls_of(
            CALLS("{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":\"{}{}\"}},"
                  "{\"index\":1,\"id\":\"b\",\"function\":{\"arguments\":\"{}\"}}")
                END("\"tool_calls\"")),
        "!a:f:{}{} !b::{}");
    /* length wins over the calls. */
    ck_assert_str_eq(
        calls_of(
            CALLS("{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}")
                END("\"length\"")),
        "!a:f:{}");
    /* The old form, which has no id. */
    const char *old =
        calls_of(CHUNK("{\"function_call\":{\"name\":\"f\",\"arguments\":\"{\\\"x\\\"\"}}")
                     CHUNK("{\"function_call\":{\"arguments\":\":1}\"}}") END("\"function_call\""));
    ck_assert_uint_eq(strcspn(old, ":"), 9);
    ck_assert_str_eq(old + 9, ":f:{\"x\":1}");
}
END_TEST

static const char *turn_of(int stream, const char *text)
{
    static char out[2048];
    json_t *r = reply_of(stream, text);
    snprintf(out, sizeof out, "%s", get(bc_json_get_object(r, "raw"), "turn"));
    json_decref(r);
    return out;
}

START_TEST(turns_go_back)
{
    ck_assert_str_eq(turn_of(0, "{\"choices\":[{\"message\":{\"role\":\"assistant\",\"content\":"
                                "\"a\\u00e9\\/\",\"annotations\":[],"
                                "\"refusal\":null},\"finish_reason\":\"stop\"}]}"),
                     "{\"role\":\"assistant\",\"content\":\"a\\u00e9\\/\"}");
    /* Arguments as they came; an object as a string (Q1); junk as {} (Q22); signatures stay;
     * reasoning goes back with calls, under its own name (Q20). */
    ck_assert_str_eq(
        turn_of(0, "{\"choices\":[{\"message\":{\"content\":\"\",\"reasoning_content\":\"hm\","
                   "\"tool_calls\":["
                   "{\"id\":\"a\",\"index\":0,\"type\":\"function\",\"function\":{\"name\":\"f\","
                   "\"arguments\":\"{\\\"x\\\": 1.0}\"},"
                   "\"extra_content\":{\"google\":{\"thought_signature\":\"s\"}}},"
                   "{\"id\":\"b\",\"function\":{\"name\":\"f\",\"arguments\":{\"x\":0.10}}},"
                   "{\"id\":\"c\",\"function\":{\"name\":\"f "
                   "g\",\"arguments\":\"{\"}}]},\"finish_reason\":\"tool_calls\"}]}"),
        "{\"role\":\"assistant\",\"content\":null,\"reasoning_content\":\"hm\",\"tool_calls\":["
        "{\"id\":\"a\",\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"{"
        "\\\"x\\\": 1.0}\"},"
        "\"extra_content\":{\"google\":{\"thought_signature\":\"s\"}}},"
        "{\"id\":\"b\",\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"{"
        "\\\"x\\\":0.10}\"}},"
        "{\"id\":\"c\",\"type\":\"function\",\"function\":{\"name\":\"f_g\",\"arguments\":\"{}\"}}]"
        "}");
    ck_assert_str_eq(turn_of(0, "{\"choices\":[{\"message\":{\"content\":\"x\",\"reasoning_"
                                "content\":\"hm\"},\"finish_reason\":\"stop\"}]}"),
                     "{\"role\":\"assistant\",\"content\":\"x\"}");
    ck_assert_str_eq(
        turn_of(1,
                CALLS("{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":\"\"}}")
                    END("\"stop\"")),
        "{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":\"a\",\"type\":"
        "\"function\","
        "\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}]}");
}
END_TEST

START_TEST(reasoning_details_are_joined)
{
    static const char stream[] = CHUNK("{\"reasoning_details\":[{\"type\":\"reasoning.text\","
                                       "\"text\":\"a\\u00e9\",\"index\":0,\"format\":\"f\"}]}")
        CHUNK("{\"reasoning_details\":[{\"type\":\"reasoning.text\",\"text\":\"b\",\"index\":0}]}")
            CHUNK("{\"reasoning_details\":[{\"type\":\"reasoning.text\",\"signature\":\"s\","
                  "\"index\":0}]}") CHUNK("{\"reasoning_details\":[{\"type\":\"reasoning.text\","
                                          "\"text\":\"c\",\"index\":1,\"signature\":null},"
                                          "{\"type\":\"reasoning.encrypted\",\"data\":\"d\"},{"
                                          "\"type\":\"reasoning.encrypted\",\"data\":\"e\"}]}")
                CALLS(
                    "{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}")
                    END("\"tool_calls\"");
    ck_assert_ptr_nonnull(
        strstr(turn_of(1, stream),
               "\"reasoning_details\":[{\"type\":\"reasoning.text\",\"text\":\"a\\u00e9b\","
               "\"index\":0,\"format\":\"f\",\"signature\":\"s\"},"
               "{\"type\":\"reasoning.text\",\"text\":\"c\",\"index\":1,\"signature\":null},"
               "{\"type\":\"reasoning.encrypted\",\"data\":\"d\"},{\"type\":\"reasoning."
               "encrypted\",\"data\":\"e\"}]"));
    /* A whole answer's elements stay apart. */
    ck_assert_ptr_nonnull(
        strstr(turn_of(0, "{\"choices\":[{\"message\":{\"reasoning_details\":[{\"type\":"
                          "\"reasoning.text\",\"text\":\"a\"},"
                          "{\"type\":\"reasoning.text\",\"text\":\"b\"}],\"tool_calls\":[{\"id\":"
                          "\"a\",\"function\":{\"name\":\"f\"}}]},"
                          "\"finish_reason\":\"tool_calls\"}]}"),
               "[{\"type\":\"reasoning.text\",\"text\":\"a\"},{\"type\":\"reasoning.text\","
               "\"text\":\"b\"}]"));
}
END_TEST

START_TEST(text_and_reasoning)
{
    /* Q19: by every name, never in the answer. */
    static const char *const fields[] = {"{\"reasoning\":\"hm\"}", "{\"reasoning_content\":\"hm\"}",
                                         "{\"reasoning\":\"hm\",\"reasoning_content\":\"hm\"}",
                                         ("{\"content\":[{\"type\":\"thinking\",\"thinking\":[{"
                                          "\"type\":\"text\",\"text\":\"hm\"}]}]}")};
    for (int i = 0; i < 4; i++) {
        char text[1024];
        snprintf(text, sizeof text, "data: {\"choices\":[{\"delta\":%s}]}\n\n%s", fields[i],
                 CHUNK("{\"content\":\"yes\"}") END("\"stop\""));
        json_t *r = reply_of(1, text);
        ck_assert_str_eq(get(r, "reasoning"), "hm");
        ck_assert_str_eq(get(r, "text"), "yes");
        json_decref(r);
    }
    json_t *r = reply_of(1, CHUNK("{\"content\":\"\",\"refusal\":\"I can\"}")
                                CHUNK("{\"refusal\":\"not\"}") END("\"stop\""));
    ck_assert_str_eq(get(r, "refusal"), "I cannot");
    ck_assert_str_eq(get(r, "stop_reason"), "refusal");
    json_decref(r);
}
END_TEST

START_TEST(stop_reasons)
{
    static const char *const labels[][2] = {
        {"\"stop\"", "end_turn"},
        {"\"length\"", "max_tokens"},
        {"\"content_filter\"", "content_filter"},
        {"\"tool_calls\"", "end_turn"},
        {"\"model_length\"", "context_window"},
        {"\"\"", "end_turn"},
        {"null", "end_turn"},
        {"\"eos\"", "end_turn"},
        {"\"never heard of\"", "end_turn"},
        {"\"insufficient_system_resource\"", "error"},
        {"\"MAX_TOKENS\"", "max_tokens"},
        {"\"function_call_filter: MALFORMED_FUNCTION_CALL\"", "error"},
        {"\"error\"", "error"},
    };
    for (size_t i = 0; i < sizeof labels / sizeof *labels; i++) {
        char text[512];
        snprintf(text, sizeof text,
                 "{\"choices\":[{\"message\":{\"content\":\"x\"},\"finish_reason\":%s}]}",
                 labels[i][0]);
        json_t *r = reply_of(0, text);
        ck_assert_str_eq(get(r, "stop_reason"), labels[i][1]);
        json_decref(r);
    }
    /* Nothing at all, and no reason. */
    static const char *const nothing[] = {"null", "\"\"", "\"never heard of\""};
    for (int i = 0; i < 3; i++) {
        char text[512];
        snprintf(text, sizeof text,
                 "{\"choices\":[{\"message\":{\"content\":null},\"finish_reason\":%s}]}",
                 nothing[i]);
        ck_assert_int_eq(fails(200, 0, text).code, BARCHAN_EPROTOCOL);
    }
    json_t *r =
        reply_of(0, "{\"choices\":[{\"message\":{\"content\":null},\"finish_reason\":\"stop\"}]}");
    ck_assert_str_eq(get(r, "stop_reason"), "end_turn"); /* an empty completion is final */
    json_decref(r);
}
END_TEST

START_TEST(ends_of_streams)
{
#define TEXT CHUNK("{\"content\":\"x\"}")
    static const char *const good[] = {
        TEXT END("\"stop\""),
        TEXT "data: [DONE]\n\n",
        TEXT "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n", /* Q17 */
        TEXT "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}",
        /* Q11, Q25: more after the end. Q13: keep-alives. Q14: no blank line between events. */
        TEXT "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: "
             "{\"choices\":[],\"usage\":null}\n\n"
             "data: {\"choices\":null,\"cost\":\"0\",\"id\":\"\"}\n\ndata: "
             "{\"usage\":{\"prompt_tokens\":1}}\n\ndata: [DONE]\n\n",
        ": OPENROUTER PROCESSING\n\ndata: : keepalive\n\ndata: \"\"\n\ndata:\n\nevent: "
        "keepalive\ndata: \n\n" TEXT END("\"stop\""),
        "data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\ndata: "
        "{\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\ndata: [DONE]",
        "data: {\"choices\":[{\"index\":1,\"delta\":{\"content\":\"other\"}}]}\n\n" TEXT END(
            "\"stop\""),
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        json_t *r = reply_of(1, good[i]);
        ck_assert_str_eq(get(r, "text"), "x");
        json_decref(r);
    }
    static const char *const cut[] = {
        "", TEXT, "data: [DONE]\n\n",
        TEXT "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"\"}]}\n\n"};
    for (size_t i = 0; i < sizeof cut / sizeof *cut; i++) {
        barchan_error e = fails(200, 1, cut[i]);
        ck_assert_int_eq(e.code, BARCHAN_ENETWORK);
        ck_assert_int_eq(e.retryable, 1);
    }
    ck_assert_int_eq(fails(200, 1, TEXT "data: not json\n\n").code, BARCHAN_EPROTOCOL);
}
END_TEST

START_TEST(usage)
{
    static const struct {
        const char *usage;
        int input, cached, output, reasoning;
    } cases[] = {
        {"{\"prompt_tokens\":10,\"completion_tokens\":5}", 10, -1, 5, -1},
        {"{\"prompt_tokens\":10,\"completion_tokens\":5,\"prompt_tokens_details\":{\"cached_"
         "tokens\":4},"
         "\"completion_tokens_details\":{\"reasoning_tokens\":2}}",
         6, 4, 5, 2},
        {"{\"prompt_tokens\":10,\"completion_tokens\":5,\"prompt_cache_hit_tokens\":3}", 7, 3, 5,
         -1},
        {"{\"prompt_tokens\":10.0,\"completion_tokens\":\"x\",\"prompt_tokens_details\":null}", 10,
         -1, -1, -1},
        {"{\"prompt_tokens\":-5,\"completion_tokens\":1e30}", 0, -1, -2, -1},
        {"{\"prompt_tokens\":3,\"completion_tokens\":1,\"total_tokens\":11,\"completion_tokens_"
         "details\":{\"reasoning_tokens\":7}}",
         3, -1, 8, 7},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[1024];
        snprintf(text, sizeof text,
                 "{\"choices\":[{\"message\":{\"content\":\"x\"},\"finish_reason\":\"stop\"}],"
                 "\"usage\":%s}",
                 cases[i].usage);
        json_t *r = reply_of(0, text);
        const json_t *u = bc_json_get_object(r, "usage");
        ck_assert_int_eq(bc_json_get_integer(u, "input_tokens", -1), cases[i].input);
        ck_assert_int_eq(bc_json_get_integer(u, "cache_read_tokens", -1), cases[i].cached);
        if (cases[i].output != -2)
            ck_assert_int_eq(bc_json_get_integer(u, "output_tokens", -1), cases[i].output);
        ck_assert_int_eq(bc_json_get_integer(u, "reasoning_tokens", -1), cases[i].reasoning);
        json_decref(r);
    }
}
END_TEST

START_TEST(failures)
{
    static const struct {
        int status, stream, code, retryable;
        const char *text;
    } cases[] = {
        /* Q18: errors with HTTP 200, in every shape. */
        {200, 0, BARCHAN_ERATE, 1, "{\"error\":{\"code\":429,\"message\":\"slow\"}}"},
        {200, 0, BARCHAN_ESERVER, 1, "{\"object\":\"error\",\"message\":\"m\",\"code\":500}"},
        {200, 0, BARCHAN_ESERVER, 0,
         "{\"choices\":null,\"error_type\":\"odd\",\"error_message\":\"m\"}"},
        {200, 0, BARCHAN_ESERVER, 1,
         "{\"choices\":[{\"error\":{\"code\":502,\"message\":\"m\"},\"finish_reason\":\"error\"}]"
         "}"},
        {200, 1, BARCHAN_EREQUEST, 1,
         "data: {\"error\":{\"code\":\"tool_use_failed\",\"message\":\"m\"}}\n\n"},
        {200, 1, BARCHAN_EOVERLOADED, 1,
         "event: error\ndata: {\"message\":\"m\",\"code\":\"slow_down\"}\n\n"},
        {200, 1, BARCHAN_ESERVER, 0, "data: {\"error\":\"plain words\"}\n\n"},
        {200, 0, BARCHAN_EPROTOCOL, 0, "{\"choices\":[]}"},
        {200, 0, BARCHAN_EPROTOCOL, 0, "{}"},
        {429, 0, BARCHAN_EQUOTA, 0,
         "{\"error\":{\"code\":\"insufficient_quota\",\"type\":\"insufficient_quota\",\"message\":"
         "\"m\"}}"},
        {429, 0, BARCHAN_ERATE, 1,
         "{\"error\":{\"code\":\"rate_limit_exceeded\",\"type\":\"tokens\",\"message\":\"m\"}}"},
        {429, 0, BARCHAN_EQUOTA, 0,
         "{\"error\":{\"code\":\"project_spend_limit_exceeded\",\"type\":\"insufficient_quota\","
         "\"message\":\"m\"}}"},
        {400, 0, BARCHAN_ECONTEXT, 0,
         "{\"error\":{\"code\":\"context_length_exceeded\",\"type\":\"invalid_request_error\","
         "\"message\":\"m\"}}"},
        {400, 0, BARCHAN_EREQUEST, 0,
         "{\"error\":{\"code\":null,\"type\":\"invalid_request_error\",\"message\":\"m\"}}"},
        {401, 0, BARCHAN_EAUTH, 0,
         "{\"error\":{\"code\":\"invalid_api_key\",\"type\":\"invalid_request_error\",\"message\":"
         "\"m\"}}"},
        {404, 0, BARCHAN_ENOTFOUND, 0,
         "{\"error\":{\"code\":\"model_not_found\",\"type\":\"invalid_request_error\",\"message\":"
         "\"m\"}}"},
        {422, 0, BARCHAN_EREQUEST, 0, "{\"detail\":[{\"msg\":\"extra_forbidden\"}]}"},
        {500, 0, BARCHAN_ESERVER, 1, "[{\"error\":{\"message\":\"m\"}}]"},
        {418, 0, BARCHAN_EREQUEST, 0, "not json"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        barchan_error e = fails(cases[i].status, cases[i].stream, cases[i].text);
        ck_assert_msg(e.code == cases[i].code && e.retryable == cases[i].retryable, "%s: %d %d %s",
                      cases[i].text, e.code, e.retryable, e.message);
        ck_assert_int_ge((int)strlen(e.message), 1);
    }
}
END_TEST

START_TEST(too_much_is_refused)
{
    bc_buf text;
    bc_buf_init(&text, 1 << 20);
    bc_buf_append_string(&text, "data: {\"choices\":[{\"delta\":{\"tool_calls\":[");
    for (int i = 0; i < 10000; i++) {
        bc_buf_appendf(&text, "%s{\"index\":%d,\"id\":\"i%d\",\"function\":{\"name\":\"f\"}}",
                       i ? "," : "", i, i);
    }
    bc_buf_append_string(&text, "]}}]}\n\n");
    ck_assert_int_eq(fails(200, 1, bc_buf_data(&text)).code, BARCHAN_ELIMIT);
    bc_buf_clear(&text);
}
END_TEST

UNIT_MAIN("openai_chat", requests, conversations, addresses, calls_in_pieces, turns_go_back,
          reasoning_details_are_joined, text_and_reasoning, stop_reasons, ends_of_streams, usage,
          failures, too_much_is_refused)
