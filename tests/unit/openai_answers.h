/* Answers of the Chat Completions adapter, read whole and bytewise, and the pieces they are made
 * of. */
#ifndef TESTS_OPENAI_ANSWERS_H
#define TESTS_OPENAI_ANSWERS_H

#include "adapter_run.h"
#include "suite.h"

static inline json_t *reply_of(int stream, const char *text)
{
    json_t *view = NULL;
    barchan_error err;
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

static inline barchan_error fails(int status, int stream, const char *text)
{
    adapter_result r = adapter_read(&bc_provider_openai, status, stream, text, strlen(text), 0);
    ck_assert_msg(r.failed, "%s", text);
    barchan_error e = r.err;
    adapter_result_clear(&r);
    return e;
}

static inline const char *get(const json_t *view, const char *key)
{
    return bc_json_get_string(view, key, NULL);
}

#define CHUNK(delta) \
    "data: {\"id\":\"c1\",\"model\":\"m1\",\"choices\":[{\"index\":0,\"delta\":" delta "}]}\n\n"
#define CALLS(list) CHUNK("{\"tool_calls\":[" list "]}")
#define END(reason)                                                           \
    "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":" reason \
    "}]}\n\ndata: [DONE]\n\n"

#endif
