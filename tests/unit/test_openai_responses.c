/* The Responses adapter: request bodies, items and events, and what goes back. */
#include <stdio.h>
#include <stdlib.h>
#include "adapter_view.h"
#include "provider/message.h"
#include "suite.h"

static barchan_error err;

/* ---- requests ---- */

static char *body_at(const char *base_url, const char *name, const char *text)
{
    bc_model_info model = {.name = name, .base_url = base_url};
    bc_request request;
    bc_buf body;
    bc_buf_init(&body, 1 << 20);
    int rc = bc_request_parse(&request, text, strlen(text), &err);
    ck_assert_msg(rc == 0, "%s", err.message);
    rc = bc_provider_openai_responses.render(&model, &request, &body, &err);
    ck_assert_msg(rc == 0, "%s", err.message);
    ck_assert_int_eq(bc_json_validate(bc_buf_data(&body), body.len, NULL), 0);
    bc_request_clear(&request);
    return bc_buf_take(&body, NULL);
}

static void body_is(const char *request, const char *body)
{
    char *got = body_at("https://h/v1", "m", request);
    ck_assert_str_eq(got, body);
    free(got);
}

#define USER "{\"role\":\"user\",\"content\":\"hi\"}"
#define USER_OUT "{\"role\":\"user\",\"content\":[{\"type\":\"input_text\",\"text\":\"hi\"}]}"

START_TEST(requests)
{
    body_is("{\"messages\":[" USER "]}",
            "{\"model\":\"m\",\"store\":false,\"input\":[" USER_OUT "]}");
    body_is("{\"messages\":[" USER "],\"system\":\"s\",\"max_tokens\":5,\"temperature\":0.10,"
            "\"stream\":true,\"tools\":[]}",
            "{\"model\":\"m\",\"instructions\":\"s\",\"max_output_tokens\":5,\"temperature\":0.10,"
            "\"store\":false,\"stream\":true,\"input\":[" USER_OUT "]}");
    body_is("{\"messages\":[" USER "],\"tools\":[{\"name\":\"f\",\"description\":\"d\"}],"
            "\"tool_choice\":{\"name\":\"f\"},\"parallel_tool_calls\":false}",
            "{\"model\":\"m\",\"store\":false,\"tools\":[{\"type\":\"function\",\"name\":\"f\","
            "\"description\":\"d\",\"parameters\":{\"type\":\"object\",\"properties\":{}},"
            "\"strict\":false}],\"tool_choice\":{\"type\":\"function\",\"name\":\"f\"},"
            "\"parallel_tool_calls\":false,\"input\":[" USER_OUT "]}");
    /* What is the provider's own replaces and removes. */
    body_is("{\"messages\":[" USER
            "],\"extra\":{\"store\":null,\"reasoning\":{\"effort\":\"low\"}}}",
            "{\"model\":\"m\",\"input\":[" USER_OUT "],\"reasoning\":{\"effort\":\"low\"}}");
}
END_TEST

START_TEST(thoughts_are_asked_for_where_they_exist)
{
    static const struct {
        const char *base_url, *name;
        int asks;
    } cases[] = {{"https://api.openai.com/v1", "gpt-5", 1},
                 {"https://api.openai.com/v1", "o3", 1},
                 {"https://api.openai.com/v1", "gpt-4.1-mini", 0},
                 {"https://api.openai.com/v1", "chatgpt-4o-latest", 0},
                 {"https://llm.example/v1", "gpt-5", 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *body = body_at(cases[i].base_url, cases[i].name, "{\"messages\":[" USER "]}");
        const char *found = strstr(body, "\"include\":[\"reasoning.encrypted_content\"]");
        ck_assert_msg((found != NULL) == cases[i].asks, "%s", cases[i].name);
        free(body);
    }
}
END_TEST

START_TEST(conversations)
{
    body_is("{\"messages\":[" USER ",{\"role\":\"assistant\",\"text\":\"t\",\"tool_calls\":["
            "{\"id\":\"a\",\"name\":\"f\",\"arguments\":{\"x\":1.50}}],\"invalid_tool_calls\":["
            "{\"id\":\"b\",\"name\":\"g\",\"arguments_text\":\"{\",\"error\":\"e\"}]},"
            "{\"role\":\"tool\",\"tool_call_id\":\"a\",\"content\":\"r\"},"
            "{\"role\":\"tool\",\"tool_call_id\":\"b\",\"content\":[{\"type\":\"text\",\"text\":"
            "\"see\"},{\"type\":\"image\",\"media_type\":\"image/png\",\"data\":\"AA==\"}],"
            "\"is_error\":true}]}",
            "{\"model\":\"m\",\"store\":false,\"input\":[" USER_OUT
            ",{\"type\":\"message\",\"role\":\"assistant\",\"content\":[{\"type\":\"output_text\","
            "\"text\":\"t\"}]},{\"type\":\"function_call\",\"call_id\":\"a\",\"name\":\"f\","
            "\"arguments\":\"{\\\"x\\\":1.50}\"},{\"type\":\"function_call\",\"call_id\":\"b\","
            "\"name\":\"g\",\"arguments\":\"{}\"},{\"type\":\"function_call_output\",\"call_id\":"
            "\"a\",\"output\":\"r\"},{\"type\":\"function_call_output\",\"call_id\":\"b\","
            "\"output\":[{\"type\":\"input_text\",\"text\":\"Error: \"},{\"type\":\"input_text\","
            "\"text\":\"see\"},{\"type\":\"input_image\",\"image_url\":"
            "\"data:image/png;base64,AA==\"}]}]}");
}
END_TEST

START_TEST(stop_sequences_are_refused)
{
    static const char text[] = "{\"messages\":[" USER "],\"stop\":[\"x\"]}";
    bc_model_info model = {.name = "m", .base_url = "https://h"};
    bc_request request;
    bc_buf body;
    bc_buf_init(&body, 1 << 20);
    ck_assert_int_eq(bc_request_parse(&request, text, sizeof text - 1, &err), 0);
    ck_assert_int_eq(bc_provider_openai_responses.render(&model, &request, &body, &err),
                     BARCHAN_EINVAL);
    ck_assert_ptr_nonnull(strstr(err.message, "'stop'"));
    bc_request_clear(&request);
    bc_buf_clear(&body);
}
END_TEST

START_TEST(addresses)
{
    static const char *const pairs[][2] = {
        {"https://api.openai.com/v1", "https://api.openai.com/v1/responses"},
        {"http://127.0.0.1:1", "http://127.0.0.1:1/v1/responses"},
        {"https://h/openai/v1", "https://h/openai/v1/responses"},
        {"https://h/x/responses?api-version=1", "https://h/x/responses?api-version=1"}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        bc_model_info model = {.name = "m", .base_url = pairs[i][0]};
        bc_buf url;
        bc_buf_init(&url, 1000);
        ck_assert_int_eq(bc_provider_openai_responses.endpoint(&model, NULL, &url, &err), 0);
        ck_assert_str_eq(bc_buf_data(&url), pairs[i][1]);
        bc_buf_clear(&url);
    }
}
END_TEST

/* ---- answers ---- */

#define EVENT(type, members) "data: {\"type\":\"response." type "\"" members "}\n\n"
#define DONE(index, item) EVENT("output_item.done", ",\"output_index\":" #index ",\"item\":" item)
#define DELTA(index, text) \
    EVENT("output_text.delta", ",\"output_index\":" #index ",\"delta\":\"" text "\"")
#define COMPLETED(members) \
    EVENT("completed", ",\"response\":{\"id\":\"r1\",\"status\":\"completed\"" members "}")
#define MESSAGE(text)                                                                         \
    "{\"type\":\"message\",\"id\":\"msg_1\",\"content\":[{\"type\":\"output_text\",\"text\":" \
    "\"" text "\"}]}"
#define CALL(id, name, arguments)                                                         \
    "{\"type\":\"function_call\",\"id\":\"fc_1\",\"call_id\":\"" id "\",\"name\":\"" name \
    "\",\"arguments\":\"" arguments "\",\"status\":\"completed\"}"

START_TEST(text_is_shown_once)
{
    static const char *const streams[] = {
        DELTA(0, "He") DELTA(0, "y\\ud83d") DELTA(0, "\\ude00")
            DONE(0, MESSAGE("Hey\\ud83d\\ude00")) COMPLETED(""),
        /* No deltas; no items; deltas alone. */
        DONE(0, MESSAGE("Hey\\ud83d\\ude00")) COMPLETED(",\"output\":[]"),
        COMPLETED(",\"output\":[" MESSAGE("Hey\\ud83d\\ude00") "]"),
        DELTA(0, "Hey\\ud83d\\ude00") COMPLETED(",\"output\":[]"),
        /* The items are the truth; out of order, by their places. */
        DELTA(0, "Ho") DONE(0, MESSAGE("Hey\\ud83d\\ude00")) COMPLETED(""),
        DONE(7, MESSAGE("\\ud83d\\ude00")) DONE(2, MESSAGE("Hey")) COMPLETED("") "data: [DONE]\n\n",
        /* What comes after the last word is nothing. */
        DONE(0, MESSAGE("Hey\\ud83d\\ude00")) COMPLETED("") DELTA(0, "more") "data: junk\n\n",
    };
    char shown[64];
    for (size_t i = 0; i < sizeof streams / sizeof *streams; i++) {
        json_t *r = adapter_view(&bc_provider_openai_responses, 1, streams[i], shown, sizeof shown);
        ck_assert_msg(strcmp(view_string(r, "text"), "Hey\xF0\x9F\x98\x80") == 0, "%zu: %s", i,
                      view_string(r, "text"));
        ck_assert_str_eq(shown, view_string(r, "text"));
        ck_assert_str_eq(view_string(r, "stop_reason"), "end_turn");
        json_decref(r);
    }
}
END_TEST

/* A reply that begins again keeps its calls, its stop reason and its counts. */
START_TEST(wrong_deltas_lose_nothing)
{
    char shown[64];
    json_t *r =
        adapter_view(&bc_provider_openai_responses, 1,
                     DELTA(0, "wrong") DONE(0, MESSAGE("right")) DONE(1, CALL("c", "f", "{}"))
                         COMPLETED(",\"usage\":{\"input_tokens\":7}"),
                     shown, sizeof shown);
    ck_assert_str_eq(shown, "right");
    ck_assert_str_eq(view_string(r, "stop_reason"), "tool_use");
    ck_assert_str_eq(view_string(r, "raw_stop_reason"), "completed");
    ck_assert_uint_eq(json_array_size(json_object_get(r, "tool_calls")), 1);
    ck_assert_int_eq(bc_json_get_integer(bc_json_get_object(r, "usage"), "input_tokens", -1), 7);
    json_decref(r);
}
END_TEST

/* One item, another id in each event. */
START_TEST(items_are_told_by_their_place)
{
    json_t *r = adapter_view(
        &bc_provider_openai_responses, 1,
        EVENT("output_item.added",
              ",\"output_index\":1,\"item\":{\"type\":\"function_call\",\"id\":\"x1\",\"name\":"
              "\"f\"}") EVENT("function_call_arguments.delta",
                              ",\"item_id\":\"x2\",\"output_index\":1,\"delta\":\"{\"")
            DONE(1, CALL("c", "f", "{\\\"a\\\":1}")) COMPLETED(""),
        NULL, 0);
    const json_t *call = json_array_get(json_object_get(r, "tool_calls"), 0);
    ck_assert_uint_eq(json_array_size(json_object_get(r, "tool_calls")), 1);
    ck_assert_str_eq(view_string(call, "id"), "c");
    ck_assert_int_eq(bc_json_get_integer(bc_json_get_object(call, "arguments"), "a", 0), 1);
    ck_assert_str_eq(view_string(r, "stop_reason"), "tool_use");
    json_decref(r);
}
END_TEST

static const char *turn_of(const char *output)
{
    static char out[4096], text[4096];
    snprintf(text, sizeof text, "{\"id\":\"r1\",\"status\":\"completed\",\"output\":[%s]}", output);
    json_t *r = adapter_view(&bc_provider_openai_responses, 0, text, NULL, 0);
    snprintf(out, sizeof out, "%s", view_string(bc_json_get_object(r, "raw"), "turn"));
    json_decref(r);
    return out;
}

START_TEST(turns_go_back)
{
    /* As they came, without the ids of items. */
    ck_assert_str_eq(
        turn_of("{\"type\":\"reasoning\",\"id\":\"rs_1\",\"summary\":[],\"encrypted_content\":"
                "\"gA\\u003d\"}, {\"id\":\"msg_1\",\"type\":\"message\",\"phase\":\"commentary\","
                "\"content\":[ {\"type\":\"output_text\",\"text\":\"a\\/\"}]},"
                "{\"type\":\"web_search_call\",\"id\":\"ws_1\",\"status\":\"completed\"}"),
        "{\"output\":[{\"type\":\"reasoning\",\"summary\":[],\"encrypted_content\":\"gA\\u003d\"},"
        "{\"type\":\"message\",\"phase\":\"commentary\",\"content\":[ {\"type\":\"output_text\","
        "\"text\":\"a\\/\"}]},{\"type\":\"web_search_call\",\"id\":\"ws_1\",\"status\":"
        "\"completed\"}]}");
    /* A thought that only its id stands for is nothing to a server that keeps none. */
    ck_assert_str_eq(turn_of("{\"type\":\"reasoning\",\"id\":\"rs_1\",\"summary\":[]}"),
                     "{\"output\":[]}");
    /* Arguments and names that no server would take back. */
    ck_assert_str_eq(turn_of(CALL("c", "f g", "{bad")),
                     "{\"output\":[{\"type\":\"function_call\",\"call_id\":\"c\",\"name\":\"f_g\","
                     "\"arguments\":\"{}\",\"status\":\"completed\"}]}");
    /* A repeated id is made new, in the turn as well. */
    const char *turn = turn_of(CALL("c", "f", "{}") "," CALL("c", "f", "{}"));
    const char *second = strstr(strstr(turn, "\"call_id\":") + 1, "\"call_id\":\"");
    ck_assert_ptr_nonnull(second);
    ck_assert_int_ne(strncmp(second, "\"call_id\":\"c\"", 13), 0);
}
END_TEST

START_TEST(custom_tools_are_answered_in_kind)
{
    static const char body[] =
        "{\"id\":\"r1\",\"status\":\"completed\",\"output\":[{\"type\":\"custom_tool_call\","
        "\"id\":\"ct\",\"call_id\":\"c\",\"name\":\"patch\",\"input\":\"free text\"}]}";
    adapter_result got =
        adapter_read(&bc_provider_openai_responses, 200, 0, body, sizeof body - 1, 0);
    ck_assert(!got.failed);
    ck_assert_ptr_nonnull(strstr(got.reply, "\"tool_calls\":[]"));
    ck_assert_ptr_nonnull(strstr(got.reply, "\"invalid_tool_calls\":[{\"id\":\"c\""));
    char *request = malloc(strlen(got.reply) + 300);
    sprintf(request,
            "{\"messages\":[" USER ",%s,{\"role\":\"tool\",\"tool_call_id\":\"c\","
            "\"content\":\"no\"}]}",
            got.reply);
    char *sent = body_at("https://example.test", "m", request);
    ck_assert_ptr_nonnull(strstr(sent, "{\"type\":\"custom_tool_call\",\"call_id\":\"c\",\"name\":"
                                       "\"patch\",\"input\":\"free text\"},{\"type\":"
                                       "\"custom_tool_call_output\",\"call_id\":\"c\",\"output\":"
                                       "\"no\"}"));
    free(sent);
    free(request);
    adapter_result_clear(&got);
}
END_TEST

START_TEST(ends)
{
    static const struct {
        const char *status, *stop, *raw;
        int runnable;
    } cases[] = {
        {"\"status\":\"completed\"", "tool_use", "completed", 1},
        {"\"status\":\"incomplete\",\"incomplete_details\":{\"reason\":\"max_output_tokens\"}",
         "max_tokens", "max_output_tokens", 0},
        {"\"status\":\"incomplete\",\"incomplete_details\":{\"reason\":\"content_filter\"}",
         "content_filter", "content_filter", 0},
        {"\"status\":\"incomplete\",\"incomplete_details\":{\"reason\":\"steered\"}", "error",
         "steered", 0},
        {"\"status\":\"incomplete\"", "error", "incomplete", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[1024];
        snprintf(text, sizeof text, "{\"id\":\"r1\",%s,\"output\":[%s]}", cases[i].status,
                 CALL("c", "f", "{}"));
        json_t *r = adapter_view(&bc_provider_openai_responses, 0, text, NULL, 0);
        ck_assert_str_eq(view_string(r, "stop_reason"), cases[i].stop);
        ck_assert_str_eq(view_string(r, "raw_stop_reason"), cases[i].raw);
        ck_assert_int_eq((int)json_array_size(json_object_get(r, "tool_calls")), cases[i].runnable);
        json_decref(r);
    }
    json_t *r =
        adapter_view(&bc_provider_openai_responses, 0,
                     "{\"status\":\"completed\",\"output\":[{\"type\":\"message\",\"content\":"
                     "[{\"type\":\"refusal\",\"refusal\":\"no\"}]}]}",
                     NULL, 0);
    ck_assert_str_eq(view_string(r, "stop_reason"), "refusal");
    ck_assert_str_eq(view_string(r, "refusal"), "no");
    json_decref(r);
}
END_TEST

START_TEST(usage_excludes_the_cache)
{
    json_t *r =
        adapter_view(&bc_provider_openai_responses, 0,
                     "{\"status\":\"completed\",\"output\":[],\"usage\":{\"input_tokens\":100,"
                     "\"input_tokens_details\":{\"cached_tokens\":30,\"cache_write_tokens\":5},"
                     "\"output_tokens\":20,\"output_tokens_details\":{\"reasoning_tokens\":8}}}",
                     NULL, 0);
    const json_t *usage = bc_json_get_object(r, "usage");
    ck_assert_int_eq(bc_json_get_integer(usage, "input_tokens", -1), 65);
    ck_assert_int_eq(bc_json_get_integer(usage, "cache_read_tokens", -1), 30);
    ck_assert_int_eq(bc_json_get_integer(usage, "cache_write_tokens", -1), 5);
    ck_assert_int_eq(bc_json_get_integer(usage, "output_tokens", -1), 20);
    ck_assert_int_eq(bc_json_get_integer(usage, "reasoning_tokens", -1), 8);
    json_decref(r);
}
END_TEST

START_TEST(failures)
{
    static const struct {
        int stream, code, retryable;
        const char *text;
    } cases[] = {
        {1, BARCHAN_ENETWORK, 1, ""},
        {1, BARCHAN_ENETWORK, 1, DONE(0, MESSAGE("x"))},
        {1, BARCHAN_ENETWORK, 1, DONE(0, CALL("c", "f", "{}")) "data: [DONE]\n\n"},
        {1, BARCHAN_ERATE, 1,
         "data: {\"type\":\"error\",\"code\":\"rate_limit_exceeded\",\"message\":\"m\"}\n\n"},
        {1, BARCHAN_ERATE, 1,
         "data: {\"type\":\"error\",\"error\":{\"code\":\"rate_limit_exceeded\",\"message\":\"m\"}}"
         "\n\n"},
        {1, BARCHAN_ESERVER, 1,
         EVENT("failed", ",\"response\":{\"status\":\"failed\",\"error\":{\"code\":"
                         "\"server_error\",\"message\":\"m\"}}")},
        {1, BARCHAN_EPROTOCOL, 0,
         EVENT("cancelled", ",\"response\":{\"status\":\"cancelled\",\"output\":[]}")},
        {1, BARCHAN_EPROTOCOL, 0, "data: {not json}\n\n"},
        {0, BARCHAN_EPROTOCOL, 0, "{\"hello\":1}"},
        {0, BARCHAN_EPROTOCOL, 0, "{\"status\":\"queued\",\"output\":[]}"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        adapter_result r = adapter_read(&bc_provider_openai_responses, 200, cases[i].stream,
                                        cases[i].text, strlen(cases[i].text), 0);
        ck_assert_msg(r.failed, "%s", cases[i].text);
        ck_assert_msg(r.err.code == cases[i].code && r.err.retryable == cases[i].retryable,
                      "%s: %d %d %s", cases[i].text, r.err.code, r.err.retryable, r.err.message);
        adapter_result_clear(&r);
    }
}
END_TEST

START_TEST(too_much_is_refused)
{
    bc_buf text;
    bc_buf_init(&text, 4 << 20);
    for (int i = 0; i < 5000; i++) {
        bc_buf_appendf(&text,
                       "data: {\"type\":\"response.output_item.done\",\"output_index\":%d,"
                       "\"item\":" CALL("c", "f", "{}") "}\n\n",
                       i);
    }
    adapter_result r =
        adapter_read(&bc_provider_openai_responses, 200, 1, bc_buf_data(&text), text.len, 0);
    ck_assert(r.failed);
    ck_assert_int_eq(r.err.code, BARCHAN_ELIMIT);
    ck_assert_ptr_nonnull(strstr(r.err.message, "4096 items"));
    adapter_result_clear(&r);
    /* Fewer items, but too many calls. */
    const char *end = strstr(bc_buf_data(&text), "\"output_index\":300,");
    while (*end != '\n' || end[1] != '\n')
        end--;
    text.len = (size_t)(end + 2 - bc_buf_data(&text));
    bc_buf_append_string(&text, COMPLETED(""));
    r = adapter_read(&bc_provider_openai_responses, 200, 1, bc_buf_data(&text), text.len, 0);
    ck_assert(r.failed);
    ck_assert_ptr_nonnull(strstr(r.err.message, "256 tool calls"));
    adapter_result_clear(&r);
    bc_buf_clear(&text);
}
END_TEST

UNIT_MAIN("openai_responses", requests, thoughts_are_asked_for_where_they_exist, conversations,
          stop_sequences_are_refused, addresses, text_is_shown_once, wrong_deltas_lose_nothing,
          items_are_told_by_their_place, turns_go_back, custom_tools_are_answered_in_kind, ends,
          usage_excludes_the_cache, failures, too_much_is_refused)
