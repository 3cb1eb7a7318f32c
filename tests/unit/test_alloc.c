/*
 * Out of memory at every allocation: each reading and rendering fails cleanly, or succeeds where
 * the memory was not needed, and nothing leaks (run under AddressSanitizer to see that).
 */
#include <stdio.h>
#include <stdlib.h>
#include "adapter_run.h"
#include "provider/history.h"
#include "failing_alloc.h"
#include "suite.h"

static void *json_malloc(size_t size)
{
    return __wrap_malloc(size);
}

typedef int (*work_fn)(barchan_error *err);

/* Runs the work with its first, second, … allocation failing until it needs no more of them. */
static void torture(work_fn work)
{
    barchan_error err;
    long at = 0;
    json_set_alloc_funcs(json_malloc, free);
    for (;; at++) {
        memset(&err, 0, sizeof err);
        failures = 0;
        countdown = at;
        int rc = work(&err);
        countdown = -1;
        if (failures == 0) {
            ck_assert_int_eq(rc, 0);
            break;
        }
        if (rc < 0) {
            ck_assert_msg(rc == BARCHAN_ENOMEM, "allocation %ld: %d %s", at, rc, err.message);
            ck_assert_int_eq(err.code, BARCHAN_ENOMEM);
        }
    }
    ck_assert_int_gt(at, 5);
}

#define ANTHROPIC_STREAM                                                                           \
    "data: "                                                                                       \
    "{\"type\":\"message_start\",\"message\":{\"id\":\"i\",\"content\":[],\"usage\":{}}}\n\n"      \
    "data: "                                                                                       \
    "{\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":" \
    "\"\"}}\n\n"                                                                                   \
    "data: "                                                                                       \
    "{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":"   \
    "\"hello\"}}\n\n"                                                                              \
    "data: "                                                                                       \
    "{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"citations_delta\","       \
    "\"citation\":{}}}\n\n"                                                                        \
    "data: "                                                                                       \
    "{\"type\":\"content_block_start\",\"index\":1,\"content_block\":{\"type\":\"tool_use\","      \
    "\"id\":\"\",\"name\":\"f\",\"input\":{}}}\n\n"                                                \
    "data: "                                                                                       \
    "{\"type\":\"content_block_delta\",\"index\":1,\"delta\":{\"type\":\"input_json_delta\","      \
    "\"partial_json\":\"{\\\"x\\\":1}\"}}\n\n"                                                     \
    "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"tool_use\"}}\n\n"              \
    "data: {\"type\":\"message_stop\"}\n\n"

#define CHAT_STREAM                                                                                \
    "data: {\"id\":\"c\",\"choices\":[{\"delta\":{\"content\":\"he\",\"reasoning\":\"r\"}}]}\n\n"  \
    "data: "                                                                                       \
    "{\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"extra_content\":{},"    \
    "\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}},"                                         \
    "{\"id\":\"b\",\"function\":{\"name\":\"g\",\"arguments\":{\"x\":1}}}]}}]}\n\n"                \
    "data: "                                                                                       \
    "{\"choices\":[{\"delta\":{},\"finish_reason\":\"tool_calls\"}],\"usage\":{\"prompt_tokens\":" \
    "1}}\n\n"                                                                                      \
    "data: [DONE]\n\n"

#define RESPONSES_STREAM                                                                         \
    "data: {\"type\":\"response.output_item.added\",\"output_index\":1,\"item\":{\"type\":"      \
    "\"function_call\",\"name\":\"f\"}}\n\n"                                                     \
    "data: {\"type\":\"response.output_text.delta\",\"delta\":\"he\"}\n\n"                       \
    "data: {\"type\":\"response.reasoning_text.delta\",\"output_index\":2,\"delta\":\"r\"}\n\n"  \
    "data: {\"type\":\"response.completed\",\"response\":{\"status\":\"completed\",\"output\":[" \
    "{\"type\":\"message\",\"content\":[{\"type\":\"output_text\",\"text\":\"hex\"}]},"          \
    "{\"type\":\"function_call\",\"call_id\":\"\",\"name\":\"f g\",\"arguments\":\"{\"},"        \
    "{\"type\":\"reasoning\",\"content\":[{\"type\":\"reasoning_text\",\"text\":\"r\"}]}]}}\n\n"

#define GEMINI_STREAM                                                                          \
    "data: "                                                                                   \
    "{\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"he\"},{\"text\":\"r\",\"thought\":" \
    "true},{\"text\":\"y\",\"thoughtSignature\":\"s\"},{\"functionCall\":{\"name\":\"f\","     \
    "\"args\":{}}},"                                                                           \
    "{\"functionCall\":{\"name\":\"g\",\"willContinue\":true}}]}}]}\n\n"                       \
    "data: {\"candidates\":[{\"content\":{\"parts\":[{\"functionCall\":{\"partialArgs\":[{"    \
    "\"jsonPath\":\"$.a[0].b\",\"stringValue\":\"x\"}]}}]},\"finishReason\":\"STOP\"}]}\n\n"

static int read_with(const bc_provider *provider, int stream, const char *text, barchan_error *err)
{
    adapter_result r = adapter_read(provider, 200, stream, text, strlen(text), 5);
    int rc = r.failed ? r.err.code : 0;
    *err = r.err;
    adapter_result_clear(&r);
    return rc;
}

static int anthropic_stream(barchan_error *err)
{
    return read_with(&bc_provider_anthropic, 1, ANTHROPIC_STREAM, err);
}

static int chat_stream(barchan_error *err)
{
    return read_with(&bc_provider_openai, 1, CHAT_STREAM, err);
}

static int responses_stream(barchan_error *err)
{
    return read_with(&bc_provider_openai_responses, 1, RESPONSES_STREAM, err);
}

static int gemini_stream(barchan_error *err)
{
    return read_with(&bc_provider_gemini, 1, GEMINI_STREAM, err);
}

static int anthropic_body(barchan_error *err)
{
    return read_with(
        &bc_provider_anthropic, 0,
        "{\"id\":\"m\",\"content\":[{\"type\":\"text\",\"text\":\"x\"},{\"type\":\"tool_use\","
        "\"id\":\"a\",\"name\":\"f\",\"input\":{\"y\":[1]}}],\"stop_reason\":\"tool_use\"}",
        err);
}

static int anthropic_refusal(barchan_error *err)
{
    return read_with(
        &bc_provider_anthropic, 0,
        "{\"content\":[{\"type\":\"text\",\"text\":\"x\"}],\"stop_reason\":\"refusal\","
        "\"stop_details\":{\"explanation\":\"no\"}}",
        err);
}

static int chat_body(barchan_error *err)
{
    return read_with(
        &bc_provider_openai, 0,
        "{\"choices\":[{\"message\":{\"content\":\"x\",\"refusal\":\"no\",\"tool_calls\":[{\"id\":"
        "\"a\","
        "\"function\":{\"name\":\"f\",\"arguments\":\"{\"}}]},\"finish_reason\":\"stop\"}]}",
        err);
}

static const char request_text[] = "{\"system\":\"s\",\"messages\":[{\"role\":\"user\",\"content\":"
                                   "[{\"type\":\"text\",\"text\":\"x\"},{\"type\":\"image\","
                                   "\"media_type\":\"image/"
                                   "png\",\"data\":\"AA==\"}]},{\"role\":\"assistant\",\"text\":"
                                   "\"t\",\"tool_calls\":[{\"id\":\"a\","
                                   "\"name\":\"f\",\"arguments\":{\"x\":1}}],\"raw\":{\"provider\":"
                                   "\"anthropic\",\"model\":\"m\",\"base_url\":\"https://h\","
                                   "\"view\":\"0\",\"turn\":\"{}\"}},{\"role\":\"tool\",\"tool_"
                                   "call_id\":\"a\",\"content\":[{\"type\":\"image\","
                                   "\"media_type\":\"image/"
                                   "png\",\"data\":\"AA==\"}],\"is_error\":true}],\"tools\":[{"
                                   "\"name\":\"f\"}],\"extra\":{\"a\":1}}";

static int render_with(const bc_provider *provider, barchan_error *err)
{
    bc_request request;
    bc_model_info model = {.name = "m", .base_url = "https://h"};
    bc_buf body;
    bc_buf_init(&body, 1 << 20);
    int rc = bc_request_parse(&request, request_text, sizeof request_text - 1, err);
    if (rc < 0) return rc;
    rc = provider->render(&model, &request, &body, err);
    bc_request_clear(&request);
    bc_buf_clear(&body);
    return rc;
}

static int anthropic_request(barchan_error *err)
{
    return render_with(&bc_provider_anthropic, err);
}

static int chat_request(barchan_error *err)
{
    return render_with(&bc_provider_openai, err);
}

static int responses_request(barchan_error *err)
{
    return render_with(&bc_provider_openai_responses, err);
}

static int gemini_request(barchan_error *err)
{
    return render_with(&bc_provider_gemini, err);
}

/* A conversation that goes on: what is remembered of it needs memory, and nothing depends on it. */
static int turn(bc_history *history, const char *end, bc_buf *body, barchan_error *err)
{
    bc_request request;
    bc_model_info model = {.name = "m", .base_url = "https://h"};
    cleanup_buf bc_buf text;
    bc_buf_init(&text, 1 << 20);
    bc_buf_init(body, 1 << 20);
    int rc = bc_buf_appendf(
        &text, "{\"cache\":true,\"messages\":[{\"role\":\"user\",\"content\":\"%*d\"}%s]}",
        BC_MODEL_MIN_KEPT_BYTES, 1, end);
    if (rc < 0) return bc_error_nomem(err);
    rc = bc_history_read(history, &request, bc_buf_data(&text), text.len, err);
    if (rc < 0) return rc;
    rc = bc_history_render(history, &bc_provider_anthropic, &model, &request, body, err);
    bc_request_clear(&request);
    return rc;
}

static int remembered_request(barchan_error *err)
{
    static const char more[] = ",{\"role\":\"assistant\",\"text\":\"t\"},{\"role\":\"user\","
                               "\"content\":\"u\"}";
    bc_history history, none;
    cleanup_buf bc_buf first, second, anew;
    bc_history_init(&history);
    bc_history_init(&none);
    bc_buf_init(&second, 0);
    bc_buf_init(&anew, 0);
    int rc = turn(&history, "", &first, err);
    if (rc == 0) rc = turn(&history, more, &second, err);
    if (rc == 0) rc = turn(&none, more, &anew, err);
    if (rc == 0) REQUIRE(strcmp(bc_buf_data(&second), bc_buf_data(&anew)) == 0);
    bc_history_clear(&history);
    bc_history_clear(&none);
    return rc;
}

static int tools(barchan_error *err)
{
    static const char list[] =
        "[{\"name\":\"f\",\"description\":\"d\",\"parameters\":{\"type\":\"object\"}}]";
    char *json = NULL;
    int rc = barchan_tools_render("openai", list, sizeof list - 1, &json, err);
    free(json);
    return rc;
}

START_TEST(reading)
{
    torture(anthropic_stream);
    torture(chat_stream);
    torture(responses_stream);
    torture(gemini_stream);
    torture(anthropic_body);
    torture(anthropic_refusal);
    torture(chat_body);
}
END_TEST

START_TEST(rendering)
{
    torture(anthropic_request);
    torture(chat_request);
    torture(responses_request);
    torture(gemini_request);
    torture(remembered_request);
    torture(tools);
}
END_TEST

UNIT_MAIN("alloc", reading, rendering)
