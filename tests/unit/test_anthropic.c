/* The Messages adapter: request bodies, stream and body reading, errors. */
#include <stdio.h>
#include <stdlib.h>
#include "adapter_run.h"
#include "provider/message.h"
#include "suite.h"

static barchan_error err;

/* ---- requests ---- */

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

/* ---- answers ---- */

#define START                                                                                    \
    "data: "                                                                                     \
    "{\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"model\":\"m1\",\"content\":[]," \
    "\"usage\":{\"input_tokens\":3,\"output_tokens\":1,\"cache_read_input_tokens\":2}}}\n\n"
#define BLOCK(i, b) \
    "data: {\"type\":\"content_block_start\",\"index\":" #i ",\"content_block\":" b "}\n\n"
#define DELTA(i, d) "data: {\"type\":\"content_block_delta\",\"index\":" #i ",\"delta\":" d "}\n\n"
#define STOP(i) "data: {\"type\":\"content_block_stop\",\"index\":" #i "}\n\n"
#define END(reason)                                                                           \
    "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"" reason "\"},\"usage\":" \
    "{\"output_tokens\":9,\"input_tokens\":null}}\n\ndata: {\"type\":\"message_stop\"}\n\n"

static json_t *reply_of(int stream, const char *text)
{
    json_t *view = NULL;
    for (size_t step = 0; step < 2; step++) {
        adapter_result r =
            adapter_read(&bc_provider_anthropic, 200, stream, text, strlen(text), step);
        ck_assert_msg(!r.failed, "%s", r.err.message);
        json_decref(view);
        ck_assert_int_eq(bc_json_view(&view, r.reply, strlen(r.reply), BC_JSON_UNIQUE_KEYS, &err),
                         0);
        adapter_result_clear(&r);
    }
    return view;
}

static const char *get(const json_t *view, const char *key)
{
    return bc_json_get_string(view, key, NULL);
}

static void turn_is(const json_t *reply, const char *content)
{
    char want[2048];
    snprintf(want, sizeof want, "{\"role\":\"assistant\",\"content\":%s}", content);
    ck_assert_str_eq(get(bc_json_get_object(reply, "raw"), "turn"), want);
}

START_TEST(a_stream_becomes_a_turn)
{
    json_t *r = reply_of(
        1,
        START BLOCK(0, "{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"\"}")
            DELTA(0, "{\"type\":\"thinking_delta\",\"thinking\":\"hm\\u00e9\"}") DELTA(
                0, "{\"type\":\"signature_delta\",\"signature\":\"s+/=\"}") STOP(0)
                BLOCK(1, "{\"type\":\"text\",\"text\":\"\"}") "data: {\"type\":\"ping\"}\n\n" DELTA(
                    1, "{\"type\":\"text_delta\",\"text\":\"a\\ud83d\"}")
                    DELTA(1, "{\"type\":\"text_delta\",\"text\":\"\\ude00\"}") DELTA(
                        1, "{\"type\":\"citations_delta\",\"citation\":{\"n\":1.50}}")
                        DELTA(1, "{\"type\":\"citations_delta\",\"citation\":{\"n\":2}}") STOP(
                            1) BLOCK(2, "{\"type\":\"redacted_thinking\",\"data\":\"x\" }") STOP(2)
                            BLOCK(3, "{\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"f\",\"input\":"
                                     "{},\"caller\":{\"a\":0.10}}")
                                DELTA(3, "{\"type\":\"input_json_delta\",\"partial_json\":\"{"
                                         "\\\"x\\\": 1\"}")
                                    DELTA(
                                        3,
                                        "{\"type\":\"input_json_delta\",\"partial_json\":\".0}\"}")
                                        STOP(3) "data: {\"type\":\"what_is_new\"}\n\n" END(
                                            "tool_use"));
    ck_assert_str_eq(get(r, "text"), "a\xF0\x9F\x98\x80");
    ck_assert_str_eq(get(r, "reasoning"), "hm\xC3\xA9");
    ck_assert_str_eq(get(r, "stop_reason"), "tool_use");
    ck_assert_str_eq(get(r, "id"), "msg_1");
    ck_assert_str_eq(get(r, "model"), "m1");
    const json_t *usage = bc_json_get_object(r, "usage");
    ck_assert_int_eq(bc_json_get_integer(usage, "input_tokens", -1), 3);
    ck_assert_int_eq(bc_json_get_integer(usage, "output_tokens", -1), 9);
    ck_assert_int_eq(bc_json_get_integer(usage, "cache_read_tokens", -1), 2);
    ck_assert_ptr_null(json_object_get(usage, "cache_write_tokens"));
    turn_is(
        r,
        "[{\"type\":\"thinking\",\"thinking\":\"hm\\u00e9\",\"signature\":\"s+/=\"},"
        "{\"type\":\"text\",\"text\":\"a\\ud83d\\ude00\",\"citations\":[{\"n\":1.50},{\"n\":2}]},"
        "{\"type\":\"redacted_thinking\",\"data\":\"x\" },"
        "{\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"f\",\"input\":{\"x\": "
        "1.0},\"caller\":{\"a\":0.10}}]");
    json_decref(r);
}
END_TEST

START_TEST(inputs_of_every_kind)
{
    json_t *r = reply_of(
        1,
        START BLOCK(0, "{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"f\",\"input\":{}}")
            DELTA(0, "{\"type\":\"input_json_delta\",\"partial_json\":\"\"}") STOP(0) BLOCK(
                1, "{\"type\":\"tool_use\",\"id\":\"b\",\"name\":\"f\",\"input\":{"
                   "\"whole\":1}}") STOP(1)
                BLOCK(2, "{\"type\":\"tool_use\",\"id\":\"c\",\"name\":\"f\",\"input\":{}}") DELTA(
                    2, "{\"type\":\"input_json_delta\",\"partial_json\":\"{\\\"x\\\":\"}") STOP(2)
                    BLOCK(3, "{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"f\",\"input\":{}}")
                        STOP(3) BLOCK(4, "{\"type\":\"server_tool_use\",\"id\":\"s\",\"name\":"
                                         "\"web\",\"input\":{}}")
                            DELTA(4, "{\"type\":\"input_json_delta\",\"partial_json\":\"{\\\"q\\\":"
                                     "1}\"}") STOP(4) END("tool_use"));
    const json_t *calls = bc_json_get_array(r, "tool_calls"),
                 *bad = bc_json_get_array(r, "invalid_tool_calls");
    ck_assert_uint_eq(json_array_size(calls), 3);
    ck_assert_uint_eq(json_object_size(json_object_get(json_array_get(calls, 0), "arguments")), 0);
    ck_assert_int_eq(
        bc_json_get_integer(json_object_get(json_array_get(calls, 1), "arguments"), "whole", 0), 1);
    ck_assert_uint_eq(json_array_size(bad), 1);
    ck_assert_str_eq(get(json_array_get(bad, 0), "id"), "c");
    ck_assert_str_eq(get(json_array_get(bad, 0), "arguments_text"), "{\"x\":");
    const char *made = get(json_array_get(calls, 2), "id"); /* the repeated "a" */
    ck_assert_str_ne(made, "a");
    char turn[1024];
    snprintf(turn, sizeof turn,
             "[{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"f\",\"input\":{}},"
             "{\"type\":\"tool_use\",\"id\":\"b\",\"name\":\"f\",\"input\":{\"whole\":1}},"
             "{\"type\":\"tool_use\",\"id\":\"c\",\"name\":\"f\",\"input\":{}},"
             "{\"type\":\"tool_use\",\"id\":\"%s\",\"name\":\"f\",\"input\":{}},"
             "{\"type\":\"server_tool_use\",\"id\":\"s\",\"name\":\"web\",\"input\":{\"q\":1}}]",
             made);
    turn_is(r, turn);
    json_decref(r);
}
END_TEST

START_TEST(stop_reasons)
{
    static const char *const labels[][2] = {
        {"end_turn", "end_turn"},
        {"max_tokens", "max_tokens"},
        {"stop_sequence", "stop_sequence"},
        {"pause_turn", "pause_turn"},
        {"refusal", "refusal"},
        {"tool_use", "end_turn"},
        {"model_context_window_exceeded", "context_window"},
        {"compaction", "pause_turn"},
        {"something_new", "error"},
    };
    for (size_t i = 0; i < sizeof labels / sizeof *labels; i++) {
        char body[512];
        snprintf(body, sizeof body,
                 "{\"id\":\"m\",\"content\":[{\"type\":\"text\",\"text\":\"x\"}],"
                 "\"stop_reason\":\"%s\",\"usage\":{}}",
                 labels[i][0]);
        json_t *r = reply_of(0, body);
        ck_assert_str_eq(get(r, "stop_reason"), labels[i][1]);
        ck_assert_str_eq(get(r, "raw_stop_reason"), labels[i][0]);
        json_decref(r);
        /* No call of a turn that was cut or refused may be run. */
        snprintf(body, sizeof body,
                 "{\"content\":[{\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"f\",\"input\":{}}],"
                 "\"stop_reason\":\"%s\"}",
                 labels[i][0]);
        r = reply_of(0, body);
        int runnable = i == 0 || i == 2 || i == 3 || i == 5 || i == 7;
        ck_assert_uint_eq(json_array_size(bc_json_get_array(r, "tool_calls")), runnable);
        json_decref(r);
    }
    json_t *r = reply_of(
        0,
        "{\"content\":[],\"stop_reason\":\"refusal\",\"stop_details\":{\"explanation\":\"no\"}}");
    ck_assert_str_eq(get(r, "refusal"), "no");
    ck_assert_ptr_null(json_object_get(r, "raw")); /* nothing to send back */
    json_decref(r);
}
END_TEST

START_TEST(what_cannot_go_back_is_left_out)
{
    json_t *r = reply_of(1, START BLOCK(0, "{\"type\":\"text\",\"text\":\"\\n \"}") STOP(0)
                                BLOCK(1, "{\"type\":\"text\",\"text\":\"y\"}") STOP(1)
                                    BLOCK(2, "{\"type\":\"thinking\",\"thinking\":\"cut\"}")
                                        END("max_tokens"));
    turn_is(r, "[{\"type\":\"text\",\"text\":\"y\"}]");
    json_decref(r);
    r = reply_of(1, START BLOCK(0, "{\"type\":\"thinking\",\"thinking\":\"\"}")
                        DELTA(0, "{\"type\":\"signature_delta\",\"signature\":\"z\"}") STOP(0)
                            END("end_turn"));
    turn_is(r, "[{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"z\"}]");
    json_decref(r);
}
END_TEST

START_TEST(whole_blocks_are_copied)
{
#define WHOLE                                                                   \
    "{\"type\": \"text\" , "                                                    \
    "\"text\":\"\\u00e9\"},{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"f\"," \
    "\"input\": {\"x\": 1.0},\"new\":[ ]},{\"type\":\"unknown\",\"n\":0.10}"
    json_t *r = reply_of(0, "{\"content\":[" WHOLE "],\"stop_reason\":\"tool_use\"}");
    turn_is(r, "[" WHOLE "]");
    json_decref(r);
    /* But for an input that is no object, and an id that is there twice. */
    r = reply_of(0, "{\"content\":[{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"f\",\"input\":\"{"
                    "\\\"x\\\":1}\"},"
                    "{\"type\":\"tool_use\",\"id\":\"b\",\"name\":\"f\",\"input\":null}],\"stop_"
                    "reason\":\"tool_use\"}");
    turn_is(r, "[{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"f\",\"input\":{\"x\":1}},"
               "{\"type\":\"tool_use\",\"id\":\"b\",\"name\":\"f\",\"input\":{}}]");
    json_decref(r);
}
END_TEST

START_TEST(a_second_start_voids_the_first)
{
    json_t *r = reply_of(1, START BLOCK(0, "{\"type\":\"text\",\"text\":\"void\"}")
                                DELTA(0, "{\"type\":\"text_delta\",\"text\":\" too\"}")
                                    START BLOCK(0, "{\"type\":\"text\",\"text\":\"good\"}") STOP(0)
                                        END("end_turn"));
    ck_assert_str_eq(get(r, "text"), "good");
    turn_is(r, "[{\"type\":\"text\",\"text\":\"good\"}]");
    json_decref(r);
}
END_TEST

#define TOOL_USE(id) "{\"type\":\"tool_use\",\"id\":\"" id "\",\"name\":\"f\",\"input\":{}}"
#define UNNUMBERED(key)                                                              \
    "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"delta\":" \
    "{\"type\":\"input_json_delta\",\"partial_json\":\"{\\\"" key "\\\":1}\"}}\n\n"

/* The same bytes, and yet another block's: which one follows from what came before. */
START_TEST(pieces_without_a_number_go_to_the_last_block)
{
    static const char text[] = START BLOCK(1, TOOL_USE("one")) UNNUMBERED("a")
        BLOCK(2, TOOL_USE("two")) UNNUMBERED("b") END("tool_use");
    json_t *r = reply_of(1, text);
    json_t *calls = json_object_get(r, "tool_calls");
    ck_assert_uint_eq(json_array_size(calls), 2);
    for (size_t i = 0; i < 2; i++) {
        json_t *arguments = json_object_get(json_array_get(calls, i), "arguments");
        ck_assert_ptr_nonnull(json_object_get(arguments, i == 0 ? "a" : "b"));
    }
    json_decref(r);
}
END_TEST

static barchan_error fails(int status, int stream, const char *text)
{
    adapter_result r = adapter_read(&bc_provider_anthropic, status, stream, text, strlen(text), 0);
    ck_assert_msg(r.failed, "%s", text);
    barchan_error e = r.err;
    adapter_result_clear(&r);
    return e;
}

START_TEST(failures)
{
    static const char text[] = START BLOCK(0, "{\"type\":\"text\",\"text\":\"x\"}") STOP(0);
    barchan_error e = fails(200, 1, text);
    ck_assert_int_eq(e.code, BARCHAN_ENETWORK);
    ck_assert_int_eq(e.retryable, 1);
    fails(200, 1, "");
    fails(200, 1, "data: {\"type\":\"message_stop\"}\n\n");
    e = fails(
        200, 1,
        START
        "event: error\ndata: "
        "{\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"O\"}}\n\n");
    ck_assert_int_eq(e.code, BARCHAN_EOVERLOADED);
    e = fails(200, 1, START "data: {not json}\n\n");
    ck_assert_int_eq(e.code, BARCHAN_EPROTOCOL);
    e = fails(200, 0, "{\"hello\":1}");
    ck_assert_int_eq(e.code, BARCHAN_EPROTOCOL);
    e = fails(429, 0,
              "{\"error\":{\"type\":\"rate_limit_error\",\"message\":\"m\",\"details\":{\"error_"
              "code\":\"enforced_spend_limit_reached\"}}}");
    ck_assert_int_eq(e.code, BARCHAN_EQUOTA);
    ck_assert_int_eq(e.retryable, 0);
    ck_assert_str_eq(e.provider_code, "enforced_spend_limit_reached");
    e = fails(400, 0,
              "{\"error\":{\"type\":\"invalid_request_error\",\"message\":\"You have reached your "
              "specified API usage limits.\"}}");
    ck_assert_int_eq(e.code, BARCHAN_EQUOTA);
    e = fails(400, 0,
              "{\"error\":{\"type\":\"invalid_request_error\",\"message\":\"prompt is too long: "
              "210000 tokens > 200000 maximum\"}}");
    ck_assert_int_eq(e.code, BARCHAN_ECONTEXT);
    e = fails(400, 0,
              "{\"error\":{\"type\":\"invalid_request_error\",\"message\":\"a\\u001b[31m\\nb\"}}");
    ck_assert_int_eq(e.code, BARCHAN_EREQUEST);
    ck_assert_ptr_null(strchr(e.message, '\x1b'));
    ck_assert_ptr_null(strchr(e.message, '\n'));
}
END_TEST

UNIT_MAIN("anthropic", requests, conversations, keys_and_addresses, a_stream_becomes_a_turn,
          inputs_of_every_kind, stop_reasons, what_cannot_go_back_is_left_out,
          whole_blocks_are_copied, pieces_without_a_number_go_to_the_last_block,
          a_second_start_voids_the_first, failures)
