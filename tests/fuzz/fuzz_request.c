/* A request that is accepted becomes valid JSON for every provider; any other is refused. */
#include <string.h>
#include "fuzz.h"

#include "provider/provider.h"

/* Responses has no stop sequences, Gemini calls in parallel as it likes. */
static int lacks(const bc_provider *table, const bc_request *request)
{
    return (table == &bc_provider_openai_responses && request->stop != NULL) ||
           (table == &bc_provider_gemini && request->parallel == 0);
}

/* Anthropic takes no blank turn, and nothing between a call of its own and the answer. */
static int refuses_a_message(const bc_provider *table, int rc, const barchan_error *err)
{
    return table == &bc_provider_anthropic && rc == BARCHAN_EINVAL &&
           strncmp(err->message, "messages[", 9) == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const bc_provider *const tables[] = {&bc_provider_anthropic, &bc_provider_openai,
                                                &bc_provider_openai_responses, &bc_provider_gemini};
    static const char *const bases[] = {"https://api.openai.com/v1", "https://api.mistral.ai"};
    bc_request request;
    barchan_error err = {0};
    if (bc_request_parse(&request, (const char *)data, size, &err) < 0) {
        CLAIM(err.code < 0 && err.message[0] != '\0');
        return 0;
    }
    for (int i = 0; i < 8; i++) {
        const bc_provider *table = tables[i % 4];
        bc_model_info model = {.name = "m", .base_url = bases[i / 4]};
        bc_buf body;
        bc_buf_init(&body, BC_JSON_MAX_BYTES);
        int rc = table->render(&model, &request, &body, &err);
        if (lacks(table, &request)) CLAIM(rc == BARCHAN_EINVAL);
        if (rc < 0) CLAIM(lacks(table, &request) || refuses_a_message(table, rc, &err));
        if (rc == 0) CLAIM(bc_json_validate(bc_buf_data(&body), body.len, &err) == 0);
        bc_buf_clear(&body);
    }
    bc_request_clear(&request);
    return 0;
}
