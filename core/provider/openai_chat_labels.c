/* Chat Completions: what the labels and counts of its many servers mean. */
#include "openai_chat.h"

#include <string.h>
#include <strings.h>

/* ---- stop reasons ---- */

bc_stop bc_chat_stop(const char *label)
{
    static const struct {
        const char *label;
        bc_stop stop;
    } known[] = {
        {"stop", BC_STOP_END_TURN},
        {"end_turn", BC_STOP_END_TURN},
        {"eos", BC_STOP_END_TURN},
        {"tool_calls", BC_STOP_TOOL_USE},
        {"tool_use", BC_STOP_TOOL_USE},
        {"function_call", BC_STOP_TOOL_USE},
        {"length", BC_STOP_MAX_TOKENS},
        {"max_tokens", BC_STOP_MAX_TOKENS},
        {"model_length", BC_STOP_CONTEXT_WINDOW},
        {"stop_sequence", BC_STOP_STOP_SEQUENCE},
        {"content_filter", BC_STOP_CONTENT_FILTER},
        {"safety", BC_STOP_CONTENT_FILTER},
        {"refusal", BC_STOP_REFUSAL},
        {"error", BC_STOP_ERROR},
        /* DeepSeek: the answer was broken off. */
        {"insufficient_system_resource", BC_STOP_ERROR},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcasecmp(known[i].label, label) == 0) return known[i].stop;
    }
    /* Google's endpoint: "function_call_filter: MALFORMED_FUNCTION_CALL" and its kin. */
    return strncmp(label, "function_call_filter", 20) == 0 ? BC_STOP_ERROR : BC_STOP_NONE;
}

/* ---- usage ---- */

static int64_t count_of(const json_t *object, const char *key)
{
    if (!json_is_number(json_object_get(object, key))) return -1;
    int64_t count = bc_json_get_integer(object, key, 0);
    return count < 0 ? 0 : count;
}

static int64_t first_of(int64_t a, int64_t b)
{
    return a >= 0 ? a : b;
}

/* The prompt's count includes what came from and went into the cache. */
void bc_chat_usage(bc_reply *reply, const json_t *usage)
{
    if (usage == NULL) return;
    const json_t *in = bc_json_get_object(usage, "prompt_tokens_details");
    const json_t *out = bc_json_get_object(usage, "completion_tokens_details");
    int64_t prompt = count_of(usage, "prompt_tokens"), total = count_of(usage, "total_tokens");
    int64_t output = count_of(usage, "completion_tokens");
    int64_t reasoning = count_of(out, "reasoning_tokens");
    int64_t cached =
        first_of(count_of(in, "cached_tokens"), first_of(count_of(usage, "prompt_cache_hit_tokens"),
                                                         count_of(usage, "cached_tokens")));
    int64_t written = count_of(in, "cache_write_tokens");
    if (prompt >= 0) {
        int64_t input = prompt - (cached > 0 ? cached : 0) - (written > 0 ? written : 0);
        reply->usage.input = input < 0 ? 0 : input;
    }
    /* xAI counts reasoning beside the completion; the total tells. */
    if (prompt >= 0 && output >= 0 && reasoning > 0 && total >= 0 &&
        total - prompt - output == reasoning) {
        output += reasoning;
    }
    if (output >= 0) reply->usage.output = output;
    if (reasoning >= 0) reply->usage.reasoning = reasoning;
    if (cached >= 0) reply->usage.cache_read = cached;
    if (written >= 0) reply->usage.cache_write = written;
}
