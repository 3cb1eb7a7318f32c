/* Turns of servers that repeat, cut, mirror and mislabel: what may be run, and what is lost. */
#include <stdio.h>
#include <stdlib.h>
#include "adapter_view.h"
#include "base/clock.h"
#include "suite.h"

/* "name:arguments" of each call, "!" before those that may not be run, then "= stop". */
static const char *summary(const bc_provider *provider, int stream, const char *text)
{
    static char out[2048];
    static const char *const lists[] = {"tool_calls", "invalid_tool_calls"};
    json_t *r = adapter_view(provider, stream, text, NULL, 0), *ids = json_object();
    size_t total = 0;
    out[0] = '\0';
    for (int list = 0; list < 2; list++) {
        size_t i;
        json_t *call;
        json_array_foreach(json_object_get(r, lists[list]), i, call)
        {
            char *arguments = json_dumps(json_object_get(call, "arguments"), JSON_COMPACT);
            size_t at = strlen(out);
            snprintf(out + at, sizeof out - at, "%s%s:%s ", list == 0 ? "" : "!",
                     view_string(call, "name"),
                     list == 0 ? arguments : view_string(call, "arguments_text"));
            json_object_set_new(ids, view_string(call, "id"), json_true());
            total++;
            free(arguments);
        }
    }
    ck_assert_uint_eq(json_object_size(ids), total); /* each has an id of its own */
    snprintf(out + strlen(out), sizeof out - strlen(out), "= %s", view_string(r, "stop_reason"));
    json_decref(ids);
    json_decref(r);
    return out;
}

#define OPENAI(text) summary(&bc_provider_openai, 1, text)
#define CHUNK(delta) "data: {\"id\":\"c1\",\"choices\":[{\"index\":0,\"delta\":" delta "}]}\n\n"
#define CALLS(list) CHUNK("{\"tool_calls\":[" list "]}")
#define FINISH(reason) \
    "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":" reason "}]}\n\n"
#define DONE "data: [DONE]\n\n"
#define END(reason) FINISH(reason) DONE
#define ONE CALLS("{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}")

START_TEST(one_id_does_not_make_one_call)
{
    ck_assert_str_eq(
        OPENAI(
            CALLS("{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}},"
                  "{\"index\":1,\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}},"
                  "{\"index\":2,\"id\":\"a\",\"function\":{\"name\":\"g\"}}") END("\"stop\"")),
        "f:{} f:{} g:{} = tool_use");
    ck_assert_str_eq(OPENAI(CALLS("{\"id\":\"y\",\"function\":{\"name\":\"f\"}}")
                                CALLS("{\"id\":\"x\",\"function\":{\"name\":\"f\",\"arguments\":\"{"
                                      "\\\"n\\\":\"}},{\"id\":\"x\",\"function\":{\"name\":\"g\","
                                      "\"arguments\":\"{}\"}}") END("\"stop\"")),
                     "f:{} g:{} !f:{\"n\": = tool_use");
    ck_assert_str_eq(
        OPENAI(ONE CALLS("{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":\"{"
                         "\\\"x\\\":1}\"}}") END("\"stop\"")),
        "f:{} f:{\"x\":1} = tool_use");
    /* Pieces that repeat id and name go on; so does a name repeated without arguments. */
    ck_assert_str_eq(
        OPENAI(CALLS("{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":\"{\"}}")
                   CALLS("{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":\"}"
                         "\"}}") CALLS("{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\","
                                       "\"arguments\":\"\"}}") END("\"stop\"")),
        "f:{} = tool_use");
    /* A whole answer: entries are calls, whatever their ids and indexes. */
    ck_assert_str_eq(summary(&bc_provider_openai, 0,
                             "{\"choices\":[{\"message\":{\"tool_calls\":["
                             "{\"id\":\"a\",\"index\":0,\"function\":{\"name\":\"f\"}},"
                             "{\"id\":\"a\",\"index\":0,\"function\":{\"name\":\"f\"}}]},"
                             "\"finish_reason\":\"tool_calls\"}]}"),
                     "f:{} f:{} = tool_use");
}
END_TEST

START_TEST(a_mirrored_call_runs_once)
{
    ck_assert_str_eq(OPENAI(ONE CHUNK("{\"function_call\":{\"name\":\"f\",\"arguments\":\"{}\"}}")
                                END("\"stop\"")),
                     "f:{} = tool_use");
    ck_assert_str_eq(OPENAI(CHUNK("{\"function_call\":{\"name\":\"f\",\"arguments\":\"{}\"},"
                                  "\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{"
                                  "\"name\":\"f\",\"arguments\":\"{}\"}}]}") END("\"stop\"")),
                     "f:{} = tool_use");
    /* An empty list beside it mirrors nothing. */
    ck_assert_str_eq(OPENAI(CHUNK("{\"tool_calls\":[],\"function_call\":{\"name\":\"f\","
                                  "\"arguments\":\"{}\"}}") END("\"stop\"")),
                     "f:{} = tool_use");
}
END_TEST

START_TEST(calls_without_arguments_and_ids_are_told_by_name)
{
    ck_assert_str_eq(OPENAI(CALLS("{\"function\":{\"name\":\"now\"}}")
                                CALLS("{\"function\":{\"name\":\"who\"}}") END("\"stop\"")),
                     "now:{} who:{} = tool_use");
    ck_assert_str_eq(
        OPENAI(CALLS("{\"index\":0,\"function\":{\"name\":\"now\",\"arguments\":\"\"}}") CALLS(
            "{\"index\":0,\"function\":{\"name\":\"who\",\"arguments\":\"\"}}") END("\"stop\"")),
        "now:{} who:{} = tool_use");
    /* A name in pieces, or growing, is one. */
    ck_assert_str_eq(OPENAI(CALLS("{\"index\":0,\"function\":{\"name\":\"get_\"}}") CALLS(
                         "{\"index\":0,\"function\":{\"name\":\"time\"}}") END("\"stop\"")),
                     "get_time:{} = tool_use");
    ck_assert_str_eq(OPENAI(CALLS("{\"function\":{\"name\":\"ge\"}}")
                                CALLS("{\"function\":{\"name\":\"get\"}}") END("\"stop\"")),
                     "get:{} = tool_use");
}
END_TEST

START_TEST(a_label_of_a_cut_turn_runs_nothing)
{
    static const char *const labels[][2] = {
        {"MALFORMED_FUNCTION_CALL", "error"},
        {"UNEXPECTED_TOOL_CALL", "error"},
        {"TOO_MANY_TOOL_CALLS", "error"},
        {"function_call_filter: X", "error"},
        {"abort", "error"},
        {"aborted", "error"},
        {"cancelled", "error"},
        {"canceled", "error"},
        {"timeout", "error"},
        {"network_error", "error"},
        {"ERROR", "error"},
        {"PROHIBITED_CONTENT", "content_filter"},
        {"recitation", "content_filter"},
        {"sensitive", "content_filter"},
        {"SAFETY", "content_filter"},
        {"BLOCKLIST", "content_filter"},
        {"max_output_tokens", "max_tokens"},
        {"max_completion_tokens", "max_tokens"},
        {"LENGTH", "max_tokens"},
        {"model_context_window_exceeded", "context_window"},
        {"context_length_exceeded", "context_window"},
    };
    for (size_t i = 0; i < sizeof labels / sizeof *labels; i++) {
        char text[1024], want[64];
        /* Alone, and with a harmless one after it. */
        static const char *const after[] = {"", FINISH("\"stop\""), FINISH("\"tool_calls\""),
                                            FINISH("\"null\""), FINISH("\"whatever\"")};
        snprintf(want, sizeof want, "!f:{} = %s", labels[i][1]);
        for (int j = 0; j < 5; j++) {
            snprintf(text, sizeof text,
                     ONE "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"%s\"}]}"
                         "\n\n%s" DONE,
                     labels[i][0], after[j]);
            ck_assert_str_eq(OPENAI(text), want);
        }
    }
    ck_assert_str_eq(OPENAI(ONE FINISH("\"stop\"") END("\"length\"")), "!f:{} = max_tokens");
    /* "null" as text is no reason: the turn is not over. */
    const char *open = ONE FINISH("\"null\"");
    adapter_result r = adapter_read(&bc_provider_openai, 200, 1, open, strlen(open), 0);
    ck_assert(r.failed && r.err.retryable);
    adapter_result_clear(&r);
}
END_TEST

#define EVENT(type, rest) "event: " type "\ndata: {\"type\":\"" type "\"" rest "}\n\n"
#define START EVENT("message_start", ",\"message\":{\"id\":\"m\",\"content\":[],\"usage\":{}}")
#define TEXT_BLOCK                                                              \
    EVENT("content_block_start",                                                \
          ",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"hi\"}") \
    EVENT("content_block_stop", ",\"index\":0")
#define STOP(reason) \
    EVENT("message_delta", ",\"delta\":{\"stop_reason\":\"" reason "\"}") EVENT("message_stop", "")

#define ITEM_DELTA "data: {\"type\":\"response.output_text.delta\",\"delta\":\"hi\"}\n\n"
#define PARTS(more) \
    "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"hi\"}]}" more "}]}\n\n"
#define COMPLETED \
    "{\"type\":\"response.completed\",\"response\":{\"status\":\"completed\",\"output\":[]}}"

static const struct {
    const bc_provider *provider;
    const char *whole; /* with its last word */
    const char *open;  /* without its end */
} turns[] = {
    {&bc_provider_anthropic, START TEXT_BLOCK STOP("end_turn"), START TEXT_BLOCK},
    {&bc_provider_openai, CHUNK("{\"content\":\"hi\"}") END("\"stop\""),
     CHUNK("{\"content\":\"hi\"}")},
    {&bc_provider_openai_responses, ITEM_DELTA "data: " COMPLETED "\n\n", ITEM_DELTA},
    {&bc_provider_gemini, PARTS(",\"finishReason\":\"STOP\""), PARTS("")},
};

/* The last event was cut where the connection ended: dropped, and the rest decides. */
START_TEST(a_cut_last_event_is_no_event)
{
    static const char *const cuts[] = {
        "data: {\"type\":\"ping\"", "data: {",   "data: {\"choices\":[{\"del\n", "dat",
        "event: x\ndata: \"",       "data: [DO", "data: {}\ndata: {\"a\":"};
    for (size_t i = 0; i < sizeof turns / sizeof *turns; i++) {
        for (size_t j = 0; j < sizeof cuts / sizeof *cuts; j++) {
            char text[2048];
            snprintf(text, sizeof text, "%s%s", turns[i].whole, cuts[j]);
            json_t *r = adapter_view(turns[i].provider, 1, text, NULL, 0);
            ck_assert_str_eq(view_string(r, "text"), "hi");
            json_decref(r);
            snprintf(text, sizeof text, "%s%s", turns[i].open, cuts[j]);
            adapter_result a = adapter_read(turns[i].provider, 200, 1, text, strlen(text), 0);
            ck_assert(a.failed);
            ck_assert_msg(a.err.retryable && a.err.code == BARCHAN_ENETWORK, "%s", a.err.message);
            adapter_result_clear(&a);
        }
    }
    /* An end marker needs no end of its line. */
    json_t *r =
        adapter_view(&bc_provider_openai, 1, CHUNK("{\"content\":\"hi\"}") "data: [DONE]", NULL, 0);
    ck_assert_str_eq(view_string(r, "text"), "hi");
    json_decref(r);
}
END_TEST

START_TEST(nothing_counts_after_the_last_word)
{
    static const char *const later[] = {
        "data: junk\n\n",
        "data: {\"a\":\n\n",
        "data: {\"error\":{\"message\":\"late\"}}\n\n",
        "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"api_error\"}}\n\n",
        "data: {\"choices\":[{\"delta\":{\"content\":\" again\"}}]}\n\n",
        EVENT("content_block_delta",
              ",\"index\":7,\"delta\":{\"type\":\"text_delta\",\"text\":\"x\"}"),
    };
    for (size_t i = 0; i < sizeof turns / sizeof *turns; i++) {
        if (turns[i].provider == &bc_provider_gemini) continue; /* it has no last word */
        for (size_t j = 0; j < sizeof later / sizeof *later; j++) {
            char text[2048];
            snprintf(text, sizeof text, "%s%s", turns[i].whole, later[j]);
            json_t *r = adapter_view(turns[i].provider, 1, text, NULL, 0);
            ck_assert_str_eq(view_string(r, "text"), "hi");
            json_decref(r);
        }
    }
    /* Only a message begun again does, and it must come to its own end. */
    json_t *r = adapter_view(&bc_provider_anthropic, 1,
                             START TEXT_BLOCK STOP("end_turn") START STOP("end_turn"), NULL, 0);
    ck_assert_str_eq(view_string(r, "text"), "");
    json_decref(r);
}
END_TEST

START_TEST(deep_arguments_are_not_run)
{
    static const int depths[] = {BC_MODEL_MAX_ARGUMENT_DEPTH, BC_MODEL_MAX_ARGUMENT_DEPTH + 1, 120};
    for (int i = 0; i < 3; i++) {
        char deep[512] = "{\\\"a\\\":", text[2048];
        for (int j = 1; j < depths[i]; j++)
            strcat(deep, "[");
        for (int j = 1; j < depths[i]; j++)
            strcat(deep, "]");
        snprintf(text, sizeof text,
                 CALLS("{\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":\"%s}\"}}")
                     END("\"stop\""),
                 deep);
        ck_assert_int_eq(OPENAI(text)[0] == '!', i > 0);
    }
}
END_TEST

START_TEST(hostile_counts_do_not_overflow)
{
    static const char usage[] =
        "{\"prompt_tokens\":9223372036854775807,\"completion_tokens\":1e300,\"total_tokens\":"
        "-9223372036854775808,\"prompt_tokens_details\":{\"cached_tokens\":9223372036854775807,"
        "\"cache_write_tokens\":9223372036854775807},\"completion_tokens_details\":{"
        "\"reasoning_tokens\":9223372036854775807},\"input_tokens\":9223372036854775807,"
        "\"output_tokens\":18446744073709551615}";
    char text[2048];
    snprintf(text, sizeof text,
             "{\"choices\":[{\"message\":{\"content\":\"x\"},\"finish_reason\":\"stop\"}],"
             "\"content\":[],\"stop_reason\":\"end_turn\",\"usage\":%s}",
             usage);
    for (int i = 0; i < 2; i++) {
        json_t *r = adapter_view(turns[i].provider, 0, text, NULL, 0);
        const char *key;
        json_t *count;
        ck_assert_uint_gt(json_object_size(json_object_get(r, "usage")), 1);
        json_object_foreach(json_object_get(r, "usage"), key, count)
        {
            ck_assert(json_integer_value(count) >= 0);
            ck_assert(json_integer_value(count) <= 2 * BC_MODEL_MAX_COUNT);
        }
        json_decref(r);
    }
}
END_TEST

/* Two turns of a server that gives no ids at all. */
START_TEST(made_ids_differ_between_turns)
{
    static const char body[] = "{\"choices\":[{\"message\":{\"tool_calls\":[{\"function\":"
                               "{\"name\":\"f\"}}]},\"finish_reason\":\"stop\"}]}";
    json_t *a = adapter_view(&bc_provider_openai, 0, body, NULL, 0),
           *b = adapter_view(&bc_provider_openai, 0, body, NULL, 0);
    const char *id_a = view_string(json_array_get(json_object_get(a, "tool_calls"), 0), "id");
    const char *id_b = view_string(json_array_get(json_object_get(b, "tool_calls"), 0), "id");
    ck_assert_uint_eq(strlen(id_a), 9);
    ck_assert_str_ne(id_a, id_b);
    json_decref(a);
    json_decref(b);
}
END_TEST

/* Names that a server would refuse for ever, and members that it repeats. */
START_TEST(turns_go_back_acceptable)
{
    static const char chat[] =
        "{\"choices\":[{\"message\":{\"tool_calls\":[{\"id\":\"a\",\"function\":{\"name\":"
        "\"a.b:c\",\"arguments\":\"{}\"}}]},\"finish_reason\":\"stop\"}]}";
    json_t *r = adapter_view(&bc_provider_openai, 0, chat, NULL, 0);
    ck_assert_ptr_nonnull(strstr(view_string(json_object_get(r, "raw"), "turn"), "\"a_b_c\""));
    json_decref(r);
    static const char *const names[] = {"\"name\":\"a.b:c\",", ""};
    static const char *const want[] = {"\"name\":\"a_b_c\"", "\"name\":\"unknown\""};
    for (int i = 0; i < 2; i++) {
        char text[512];
        snprintf(text, sizeof text,
                 "{\"content\":[{\"type\":\"tool_use\",\"id\":\"a\",%s\"input\":{}}],"
                 "\"stop_reason\":\"tool_use\"}",
                 names[i]);
        r = adapter_view(&bc_provider_anthropic, 0, text, NULL, 0);
        ck_assert_ptr_nonnull(strstr(view_string(json_object_get(r, "raw"), "turn"), want[i]));
        json_decref(r);
    }
#define PIECE(arguments)                                                                        \
    CALLS("{\"index\":0,\"id\":\"a\",\"extra_content\":{\"s\":1},\"function\":{\"name\":\"f\"," \
          "\"arguments\":\"" arguments "\"}}")
    r = adapter_view(&bc_provider_openai, 1, PIECE("{") PIECE("}") END("\"stop\""), NULL, 0);
    const char *turn = view_string(json_object_get(r, "raw"), "turn");
    ck_assert_ptr_nonnull(strstr(turn, "\"extra_content\":{\"s\":1}"));
    ck_assert_ptr_null(strstr(strstr(turn, "extra_content") + 1, "extra_content"));
    json_decref(r);
}
END_TEST

START_TEST(blocks_out_of_order)
{
#define DELTA(index, rest) EVENT("content_block_delta", ",\"index\":" index ",\"delta\":{" rest "}")
    json_t *r = adapter_view(
        &bc_provider_anthropic, 1,
        START EVENT("content_block_start", ",\"index\":0,\"content_block\":{\"type\":\"thinking\"}")
            DELTA("0", "\"type\":\"signature_delta\",\"signature\":\"SIG\"")
                DELTA("0", "\"type\":\"thinking_delta\",\"thinking\":\"hm\"") STOP("end_turn"),
        NULL, 0);
    ck_assert_str_eq(view_string(r, "reasoning"), "hm");
    json_decref(r);
    static const char lost[] =
        START DELTA("3", "\"type\":\"text_delta\",\"text\":\"x\"") STOP("end_turn");
    adapter_result a = adapter_read(&bc_provider_anthropic, 200, 1, lost, sizeof lost - 1, 0);
    ck_assert(a.failed);
    ck_assert_int_eq(a.err.code, BARCHAN_EPROTOCOL);
    adapter_result_clear(&a);
}
END_TEST

/* Lines that end in CR alone, all in one piece: a scan per line for the LF that never comes took
 * minutes. */
START_TEST(many_short_lines_take_no_time)
{
    size_t len = 8 << 20;
    char *text = malloc(len);
    for (size_t i = 0; i < len; i += 2)
        memcpy(text + i, ":\r", 2);
    int64_t start = bc_clock_ms();
    adapter_result a = adapter_read(&bc_provider_openai, 200, 1, text, len, 0);
    ck_assert(a.failed);
    ck_assert_int_lt(bc_clock_ms() - start, 5000);
    adapter_result_clear(&a);
    free(text);
}
END_TEST

UNIT_MAIN("provider_turns", one_id_does_not_make_one_call, a_mirrored_call_runs_once,
          calls_without_arguments_and_ids_are_told_by_name, a_label_of_a_cut_turn_runs_nothing,
          a_cut_last_event_is_no_event, nothing_counts_after_the_last_word,
          deep_arguments_are_not_run, hostile_counts_do_not_overflow, made_ids_differ_between_turns,
          turns_go_back_acceptable, blocks_out_of_order, many_short_lines_take_no_time)
