/* Chat Completions: what the labels and counts of its many servers mean. */
#include "openai_chat.h"

#include <string.h>
#include <strings.h>

/* ---- stop reasons ---- */

/* Whole labels first, then what a label's words say: servers pass on those of the models behind,
 * with prefixes and in any case, and a call must not run when one says that the turn was cut. */
bc_stop bc_chat_stop(const char *label)
{
    typedef struct meaning {
        const char *label;
        bc_stop stop;
    } meaning;
    static const meaning whole[] = {
        {"stop", BC_STOP_END_TURN},
        {"end_turn", BC_STOP_END_TURN},
        {"eos", BC_STOP_END_TURN},
        {"complete", BC_STOP_END_TURN},
        {"tool_calls", BC_STOP_TOOL_USE},
        {"tool_call", BC_STOP_TOOL_USE},
        {"tool_use", BC_STOP_TOOL_USE},
        {"function_call", BC_STOP_TOOL_USE},
        {"stop_sequence", BC_STOP_STOP_SEQUENCE},
        {"model_length", BC_STOP_CONTEXT_WINDOW},
        {"refusal", BC_STOP_REFUSAL},
        /* DeepSeek: the answer was broken off. */
        {"insufficient_system_resource", BC_STOP_ERROR},
    };
    static const meaning words[] = {
        /* Google's endpoint: "function_call_filter: MALFORMED_FUNCTION_CALL" and its kin, which
         * come bare as well. */
        {"function_call_filter", BC_STOP_ERROR},
        {"malformed", BC_STOP_ERROR},
        {"unexpected", BC_STOP_ERROR},
        {"too_many", BC_STOP_ERROR},
        {"missing", BC_STOP_ERROR},
        {"error", BC_STOP_ERROR},
        {"fail", BC_STOP_ERROR},
        {"abort", BC_STOP_ERROR},
        {"cancel", BC_STOP_ERROR},
        {"timeout", BC_STOP_ERROR},
        {"timed_out", BC_STOP_ERROR},
        {"interrupt", BC_STOP_ERROR},
        {"disconnect", BC_STOP_ERROR},
        {"context", BC_STOP_CONTEXT_WINDOW},
        {"length", BC_STOP_MAX_TOKENS},
        {"token", BC_STOP_MAX_TOKENS},
        {"incomplete", BC_STOP_MAX_TOKENS},
        {"filter", BC_STOP_CONTENT_FILTER},
        {"safety", BC_STOP_CONTENT_FILTER},
        {"prohibited", BC_STOP_CONTENT_FILTER},
        {"recitation", BC_STOP_CONTENT_FILTER},
        {"sensitive", BC_STOP_CONTENT_FILTER},
        {"blocklist", BC_STOP_CONTENT_FILTER},
        {"spii", BC_STOP_CONTENT_FILTER},
        {"moderation", BC_STOP_CONTENT_FILTER},
    };
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++) {
        if (strcasecmp(whole[i].label, label) == 0) return whole[i].stop;
    }
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strcasestr(label, words[i].label) != NULL) return words[i].stop;
    }
    return BC_STOP_NONE;
}

/* ---- usage ---- */

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
    int64_t prompt = bc_reply_count(usage, "prompt_tokens"),
            total = bc_reply_count(usage, "total_tokens");
    int64_t output = bc_reply_count(usage, "completion_tokens");
    int64_t reasoning = bc_reply_count(out, "reasoning_tokens");
    int64_t cached = first_of(bc_reply_count(in, "cached_tokens"),
                              first_of(bc_reply_count(usage, "prompt_cache_hit_tokens"),
                                       bc_reply_count(usage, "cached_tokens")));
    int64_t written = bc_reply_count(in, "cache_write_tokens");
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
