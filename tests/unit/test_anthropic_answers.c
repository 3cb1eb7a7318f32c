/* Anthropic's protocol: what its answers become. */
#include <stdio.h>
#include <stdlib.h>
#include "adapter_view.h"
#include "provider/message.h"
#include "suite.h"

#define READ(stream, text) adapter_view(&bc_provider_anthropic, stream, text, NULL, 0)

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

static void turn_is(const json_t *reply, const char *content)
{
    char want[2048];
    snprintf(want, sizeof want, "{\"role\":\"assistant\",\"content\":%s}", content);
    ck_assert_str_eq(view_string(bc_json_get_object(reply, "raw"), "turn"), want);
}

START_TEST(a_stream_becomes_a_turn)
{
    json_t *r = READ(
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
    ck_assert_str_eq(view_string(r, "text"), "a\xF0\x9F\x98\x80");
    ck_assert_str_eq(view_string(r, "reasoning"), "hm\xC3\xA9");
    ck_assert_str_eq(view_string(r, "stop_reason"), "tool_use");
    ck_assert_str_eq(view_string(r, "id"), "msg_1");
    ck_assert_str_eq(view_string(r, "model"), "m1");
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
    json_t *r = READ(
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
    ck_assert_str_eq(view_string(json_array_get(bad, 0), "id"), "c");
    ck_assert_str_eq(view_string(json_array_get(bad, 0), "arguments_text"), "{\"x\":");
    const char *made = view_string(json_array_get(calls, 2), "id"); /* the repeated "a" */
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
        json_t *r = READ(0, body);
        ck_assert_str_eq(view_string(r, "stop_reason"), labels[i][1]);
        ck_assert_str_eq(view_string(r, "raw_stop_reason"), labels[i][0]);
        json_decref(r);
        /* No call of a turn that was cut or refused may be run. */
        snprintf(body, sizeof body,
                 "{\"content\":[{\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"f\",\"input\":{}}],"
                 "\"stop_reason\":\"%s\"}",
                 labels[i][0]);
        r = READ(0, body);
        int runnable = i == 0 || i == 2 || i == 3 || i == 5 || i == 7;
        ck_assert_uint_eq(json_array_size(bc_json_get_array(r, "tool_calls")), runnable);
        json_decref(r);
    }
    json_t *r = READ(
        0,
        "{\"content\":[],\"stop_reason\":\"refusal\",\"stop_details\":{\"explanation\":\"no\"}}");
    ck_assert_str_eq(view_string(r, "refusal"), "no");
    ck_assert_ptr_null(json_object_get(r, "raw")); /* nothing to send back */
    json_decref(r);
}
END_TEST

START_TEST(what_cannot_go_back_is_left_out)
{
    json_t *r =
        READ(1, START BLOCK(0, "{\"type\":\"text\",\"text\":\"\\n \"}") STOP(0)
                    BLOCK(1, "{\"type\":\"text\",\"text\":\"y\"}") STOP(1)
                        BLOCK(2, "{\"type\":\"thinking\",\"thinking\":\"cut\"}") END("max_tokens"));
    turn_is(r, "[{\"type\":\"text\",\"text\":\"y\"}]");
    json_decref(r);
    r = READ(1, START BLOCK(0, "{\"type\":\"thinking\",\"thinking\":\"\"}")
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
    json_t *r = READ(0, "{\"content\":[" WHOLE "],\"stop_reason\":\"tool_use\"}");
    turn_is(r, "[" WHOLE "]");
    json_decref(r);
    /* But for an input that is no object, and an id that is there twice. */
    r = READ(0, "{\"content\":[{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"f\",\"input\":\"{"
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
    json_t *r = READ(1, START BLOCK(0, "{\"type\":\"text\",\"text\":\"void\"}")
                            DELTA(0, "{\"type\":\"text_delta\",\"text\":\" too\"}")
                                START BLOCK(0, "{\"type\":\"text\",\"text\":\"good\"}") STOP(0)
                                    END("end_turn"));
    ck_assert_str_eq(view_string(r, "text"), "good");
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
    json_t *r = READ(1, text);
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

UNIT_MAIN("anthropic answers", a_stream_becomes_a_turn, inputs_of_every_kind, stop_reasons,
          what_cannot_go_back_is_left_out, whole_blocks_are_copied,
          pieces_without_a_number_go_to_the_last_block, a_second_start_voids_the_first, failures)
