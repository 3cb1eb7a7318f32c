/*
 * An adapter reads any bytes, as a stream and as one body. Whatever comes out is a sound reply:
 * valid JSON, the same in pieces, its runnable calls with objects for arguments, and a turn that
 * can be sent back in a request that is valid JSON. ADAPTER names the table.
 */
#include "fuzz.h"

#include <string.h>
#include "adapter_run.h"
#include "provider/message.h"

/* The conversation goes on with every call answered. */
static char *next_request(const json_t *reply)
{
    static const char *const lists[] = {"tool_calls", "invalid_tool_calls"};
    json_t *messages = json_pack("[{s:s,s:s},O]", "role", "user", "content", "x", reply);
    for (int list = 0; list < 2; list++) {
        size_t i;
        json_t *call;
        json_array_foreach(json_object_get(reply, lists[list]), i, call)
        {
            json_t *id = json_object_get(call, "id");
            json_array_append_new(messages,
                                  json_pack("{s:s,s:O}", "role", "tool", "tool_call_id", id));
        }
    }
    json_t *request = json_pack("{s:o}", "messages", messages);
    char *text = json_dumps(request, 0);
    json_decref(request);
    return text;
}

static void check_reply(const adapter_result *result)
{
    json_t *reply = NULL, *call;
    size_t i;
    bc_request request;
    bc_buf body;
    barchan_error err;
    CLAIM(bc_json_view(&reply, result->reply, strlen(result->reply), BC_JSON_UNIQUE_KEYS, &err) ==
          0);
    json_array_foreach(json_object_get(reply, "tool_calls"), i, call)
    {
        CLAIM(json_is_object(json_object_get(call, "arguments")));
        CLAIM(json_string_length(json_object_get(call, "id")) > 0);
        CLAIM(json_string_length(json_object_get(call, "name")) > 0);
    }
    char *text = next_request(reply);
    CLAIM(text != NULL);
    bc_model_info model = {.name = "m", .base_url = "https://example.test"};
    CLAIM(bc_request_parse(&request, text, strlen(text), &err) == 0);
    bc_buf_init(&body, BC_JSON_MAX_BYTES);
    CLAIM(ADAPTER.render(&model, &request, &body, &err) == 0);
    CLAIM(bc_json_validate(bc_buf_data(&body), body.len, &err) == 0);
    bc_request_clear(&request);
    bc_buf_clear(&body);
    free(text);
    json_decref(reply);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *bytes = (const char *)data;
    adapter_result whole = adapter_read(&ADAPTER, 200, 1, bytes, size, 0);
    adapter_result pieces = adapter_read(&ADAPTER, 200, 1, bytes, size, 3);
    adapter_result body = adapter_read(&ADAPTER, 200, 0, bytes, size, 0);
    adapter_result failure = adapter_read(&ADAPTER, 500, 0, bytes, size, 0);
    CLAIM(failure.failed && failure.err.code < 0);
    CLAIM(whole.failed == pieces.failed);
    if (!whole.failed) CLAIM(strcmp(whole.reply, pieces.reply) == 0);
    if (!whole.failed) check_reply(&whole);
    if (!body.failed) check_reply(&body);
    adapter_result_clear(&whole);
    adapter_result_clear(&pieces);
    adapter_result_clear(&body);
    adapter_result_clear(&failure);
    return 0;
}
