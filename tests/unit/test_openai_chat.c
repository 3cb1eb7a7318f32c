/* The Chat Completions adapter: text, ends, usage and failures of its many servers. The numbers
 * are those of the quirks in core/provider/README.md. */
#include <stdio.h>
#include <stdlib.h>
#include "openai_answers.h"

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
    barchan_error e = fails(200, 1, bc_buf_data(&text));
    ck_assert_int_eq(e.code, BARCHAN_ELIMIT);
    ck_assert_ptr_nonnull(strstr(e.message, "256 tool calls"));
    bc_buf_clear(&text);
}
END_TEST

UNIT_MAIN("openai_chat", text_and_reasoning, stop_reasons, ends_of_streams, usage, failures,
          too_much_is_refused)
