#include "fixture_check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "provider/message.h"

/* ---- comparing ---- */

static int check_error(fixture *f, const adapter_result *got)
{
    const json_t *want = json_object_get(f->expect, "error");
    const char *message = bc_json_get_string(want, "message", NULL);
    char a[BC_JSON_LABEL_BYTES], b[BC_JSON_LABEL_BYTES];
    const char *code = bc_json_get_label(want, "code", a);
    if (code[strspn(code, "0123456789")] == '\0') {
        code = bc_json_get_label(want, f->provider == &bc_provider_gemini ? "status" : "type", b);
    }
    if (!got->failed) return MISMATCH(f, "an error was expected, a reply came");
    if (want == NULL || json_is_null(want)) return 1; /* no answer at all: any error will do */
    char start[61];                                   /* ours is cut to a line */
    snprintf(start, sizeof start, "%s", message);
    if (strstr(got->err.message, start) == NULL) {
        return MISMATCH(f, "error message: %.150s", got->err.message);
    }
    if (strcmp(got->err.provider_code, code) != 0) {
        return MISMATCH(f, "error code: %s", got->err.provider_code);
    }
    return 1;
}

static int check_count(fixture *f, const json_t *usage, const char *key, int64_t want)
{
    int64_t got = bc_json_get_integer(usage, key, -1);
    if (got == want) return 1;
    return MISMATCH(f, "usage.%s is %lld, not %lld", key, (long long)got, (long long)want);
}

static int64_t count(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    return json_is_number(value) ? (int64_t)json_number_value(value) : -1;
}

static int check_responses_usage(fixture *f, const json_t *want, const json_t *got)
{
    const json_t *in = json_object_get(want, "input_tokens_details");
    int64_t cached = count(in, "cached_tokens"), written = count(in, "cache_write_tokens");
    int64_t input =
        count(want, "input_tokens") - (cached > 0 ? cached : 0) - (written > 0 ? written : 0);
    return check_count(f, got, "input_tokens", input) &&
           check_count(f, got, "output_tokens", count(want, "output_tokens")) &&
           check_count(f, got, "cache_read_tokens", cached) &&
           check_count(f, got, "cache_write_tokens", written) &&
           check_count(f, got, "reasoning_tokens",
                       count(json_object_get(want, "output_tokens_details"), "reasoning_tokens"));
}

static int check_gemini_usage(fixture *f, const json_t *want, const json_t *got)
{
    int64_t cached = count(want, "cachedContentTokenCount"),
            input = count(want, "promptTokenCount");
    int64_t tools = count(want, "toolUsePromptTokenCount");
    int64_t thoughts = count(want, "thoughtsTokenCount");
    int64_t output = count(want, "candidatesTokenCount");
    if (input >= 0 && cached > 0) input -= cached;
    if (input >= 0 && tools > 0) input += tools;
    if (thoughts >= 0) output = (output > 0 ? output : 0) + thoughts;
    return check_count(f, got, "input_tokens", input) &&
           check_count(f, got, "output_tokens", output) &&
           check_count(f, got, "cache_read_tokens", cached) &&
           check_count(f, got, "reasoning_tokens", thoughts);
}

static int check_usage(fixture *f, const json_t *got)
{
    const json_t *want = json_object_get(f->expect, "usage");
    if (!json_is_object(want)) return 1;
    if (f->provider == &bc_provider_anthropic) {
        return check_count(f, got, "input_tokens", count(want, "input_tokens")) &&
               check_count(f, got, "output_tokens", count(want, "output_tokens")) &&
               check_count(f, got, "cache_read_tokens", count(want, "cache_read_input_tokens")) &&
               check_count(f, got, "cache_write_tokens",
                           count(want, "cache_creation_input_tokens")) &&
               check_count(
                   f, got, "reasoning_tokens",
                   count(json_object_get(want, "output_tokens_details"), "thinking_tokens"));
    }
    if (f->provider == &bc_provider_gemini) return check_gemini_usage(f, want, got);
    if (f->provider == &bc_provider_openai_responses) return check_responses_usage(f, want, got);
    const json_t *details = json_object_get(want, "prompt_tokens_details");
    int64_t cached = count(details, "cached_tokens");
    if (cached < 0) cached = count(want, "prompt_cache_hit_tokens");
    if (cached < 0) cached = count(want, "cached_tokens");
    int64_t written = count(details, "cache_write_tokens");
    int64_t input =
        count(want, "prompt_tokens") - (cached > 0 ? cached : 0) - (written > 0 ? written : 0);
    int64_t output = count(want, "completion_tokens");
    int64_t reasoning =
        count(json_object_get(want, "completion_tokens_details"), "reasoning_tokens");
    /* xAI counts them beside the completion. */
    if (reasoning > 0 &&
        count(want, "total_tokens") == count(want, "prompt_tokens") + output + reasoning) {
        output += reasoning;
    }
    return check_count(f, got, "input_tokens", input) &&
           check_count(f, got, "output_tokens", output) &&
           check_count(f, got, "cache_read_tokens", cached) &&
           check_count(f, got, "cache_write_tokens", written) &&
           check_count(f, got, "reasoning_tokens", reasoning);
}

static int was_cut(const char *stop)
{
    static const char *const cut[] = {"max_tokens",
                                      "length",
                                      "refusal",
                                      "content_filter",
                                      "MAX_TOKENS",
                                      "UNEXPECTED_TOOL_CALL",
                                      "MALFORMED_FUNCTION_CALL"};
    for (size_t i = 0; i < sizeof cut / sizeof *cut; i++) {
        if (stop != NULL && strcmp(stop, cut[i]) == 0) return 1;
    }
    return 0;
}

static int check_calls(fixture *f, const json_t *reply)
{
    const json_t *want = json_object_get(f->expect, "tool_calls"), *call;
    const char *stop = bc_json_get_string(f->expect, "stop", NULL);
    const json_t *got = json_object_get(reply, was_cut(stop) ? "invalid_tool_calls" : "tool_calls");
    size_t i;
    if (json_array_size(got) != json_array_size(want)) {
        return MISMATCH(f, "%zu tool calls, not %zu", json_array_size(got), json_array_size(want));
    }
    if (was_cut(stop) && json_array_size(json_object_get(reply, "tool_calls")) > 0) {
        return MISMATCH(f, "a cut turn has runnable calls");
    }
    json_array_foreach(want, i, call)
    {
        const json_t *mine = json_array_get(got, i);
        size_t want_len, got_len;
        const char *want_id = bc_json_get_string(call, "id", &want_len);
        const char *got_id = bc_json_get_string(mine, "id", &got_len);
        if (want_len == 0 ? got_len == 0 : strcmp(want_id, got_id) != 0) {
            return MISMATCH(f, "call %zu has the id '%s'", i, got_id);
        }
        if (!json_equal(json_object_get(call, "name"), json_object_get(mine, "name"))) {
            return MISMATCH(f, "call %zu has another name", i);
        }
        if (was_cut(stop)) continue;
        if (!json_equal(json_object_get(call, "parsed"), json_object_get(mine, "arguments"))) {
            return MISMATCH(f, "call %zu has other arguments", i);
        }
    }
    return 1;
}

/* The neutral reason that the provider's label and the calls must give. */
static const char *neutral_stop(const fixture *f, const char *label, size_t calls)
{
    /* Chat has no label for it: the message does. */
    const char *at = bc_buf_data(&f->bytes);
    while ((at = strstr(at, "\"refusal\":\"")) != NULL) {
        at += 11;
        if (*at != '"') return "refusal";
    }
    if (strcmp(label, "max_tokens") == 0 || strcmp(label, "length") == 0 ||
        strcmp(label, "MAX_TOKENS") == 0)
        return "max_tokens";
    if (strcmp(label, "UNEXPECTED_TOOL_CALL") == 0 || strcmp(label, "MALFORMED_FUNCTION_CALL") == 0)
        return "error";
    if (strcmp(label, "refusal") == 0) return "refusal";
    return calls > 0 ? "tool_use" : "end_turn";
}

static int check_reply(fixture *f, const adapter_result *got)
{
    cleanup_json json_t *reply = NULL;
    if (got->failed) return MISMATCH(f, "failed: %.300s", got->err.message);
    if (bc_json_view(&reply, got->reply, strlen(got->reply), 0, NULL) < 0) {
        return MISMATCH(f, "the reply is no JSON");
    }
    const char *want_stop = bc_json_get_string(f->expect, "stop", NULL);
    const char *raw = bc_json_get_string(reply, "raw_stop_reason", NULL);
    const char *stop = bc_json_get_string(reply, "stop_reason", NULL);
    const char *neutral =
        neutral_stop(f, want_stop, json_array_size(json_object_get(f->expect, "tool_calls")));
    size_t len;
    const char *text = bc_json_get_string(reply, "text", &len);
    if (!json_equal(json_object_get(f->expect, "text"), json_object_get(reply, "text"))) {
        return MISMATCH(f, "text: '%.60s'", text);
    }
    if (raw == NULL || strcmp(raw, want_stop) != 0) return MISMATCH(f, "raw stop '%s'", raw);
    if (strcmp(stop, neutral) != 0) return MISMATCH(f, "stop '%s', not '%s'", stop, neutral);
    if (len != got->shown_len || memcmp(text, got->shown, len) != 0) {
        return MISMATCH(f, "the deltas do not make up the text");
    }
    return check_calls(f, reply) && check_usage(f, json_object_get(reply, "usage"));
}

int fixture_check(fixture *f, const adapter_result *got)
{
    const json_t *stop = json_object_get(f->expect, "stop");
    int wants_error = !json_is_string(stop);
    return wants_error ? check_error(f, got) : check_reply(f, got);
}

/* ---- the turn goes back as it came ---- */

/* A conversation with the reply as a script would send it back: through another JSON library. */
static char *conversation(const char *reply_text)
{
    json_t *reply = NULL;
    if (bc_json_view(&reply, reply_text, strlen(reply_text), 0, NULL) < 0) return NULL;
    json_t *messages = json_pack("[{s:s,s:s}]", "role", "user", "content", "hello");
    json_array_append_new(messages, reply);
    static const char *const lists[] = {"tool_calls", "invalid_tool_calls"};
    for (int list = 0; list < 2; list++) {
        size_t i;
        json_t *call;
        json_array_foreach(json_object_get(reply, lists[list]), i, call)
        {
            json_array_append_new(messages,
                                  json_pack("{s:s,s:O,s:s}", "role", "tool", "tool_call_id",
                                            json_object_get(call, "id"), "content", "done"));
        }
    }
    json_array_append_new(messages, json_pack("{s:s,s:s}", "role", "user", "content", "go on"));
    json_t *request = json_pack("{s:o}", "messages", messages);
    char *text = json_dumps(request, JSON_SORT_KEYS | JSON_ENSURE_ASCII);
    json_decref(request);
    return text;
}

/* Whether the turn stands in the body: all of it, or the items of its output. */
static int is_spliced(const fixture *f, const bc_buf *turn, const bc_buf *body)
{
    const char *text = bc_buf_data(turn);
    size_t len = turn->len;
    if (f->provider == &bc_provider_openai_responses) {
        text += strlen("{\"output\":[");
        len -= strlen("{\"output\":[]}");
    }
    if (f->provider == &bc_provider_gemini) {
        /* Of {"content":…,"calls":…} the content, unless it has no parts. */
        text += strlen("{\"content\":");
        len = (size_t)(strstr(text, ",\"calls\":[") - text);
        if (strstr(text, "\"parts\":[]}") != NULL) return 1;
    }
    return memmem(bc_buf_data(body), body->len, text, len) != NULL;
}

int fixture_check_echo(fixture *f, const adapter_result *got)
{
    if (got->failed) return 1;
    char *text = conversation(got->reply);
    bc_request request;
    bc_buf body, turn;
    barchan_error err;
    bc_buf_init(&body, BC_JSON_MAX_BYTES);
    bc_buf_init(&turn, BC_JSON_MAX_BYTES);
    bc_model_info model = {.name = "m", .base_url = "https://example.test"};
    bc_origin origin = {f->provider->name, model.name, model.base_url};
    int good = text != NULL && bc_request_parse(&request, text, strlen(text), &err) == 0;
    if (!good) {
        free(text);
        return MISMATCH(f, "echo: %.300s", text == NULL ? "no conversation" : err.message);
    }
    int has_raw = json_object_get(request.messages[1].view, "raw") != NULL;
    if (f->provider->render(&model, &request, &body, &err) < 0) {
        good = MISMATCH(f, "echo: %.300s", err.message);
    } else if (bc_json_validate(bc_buf_data(&body), body.len, &err) < 0) {
        good = MISMATCH(f, "echo: the request is no JSON: %.200s", err.message);
    } else if (has_raw && bc_message_raw(&request.messages[1], &origin, &turn, &err) != 1) {
        good = MISMATCH(f, "echo: the unedited turn is not recognised");
    } else if (has_raw && !is_spliced(f, &turn, &body)) {
        good = MISMATCH(f, "echo: the turn is not sent verbatim");
    }
    bc_request_clear(&request);
    bc_buf_clear(&body);
    bc_buf_clear(&turn);
    free(text);
    return good;
}

/* ---- the stream is cut ---- */

/* Whether the events say by themselves that the turn has ended. */
static int is_terminal(const fixture *f, const char *data, size_t len)
{
    json_t *event = json_loadb(data, len, JSON_DECODE_ANY, NULL);
    int found = len >= 6 && memcmp(data, "[DONE]", 6) == 0;
    const char *type = json_string_value(json_object_get(event, "type"));
    if (f->provider == &bc_provider_anthropic) {
        found = type != NULL && strcmp(type, "message_stop") == 0;
    } else if (f->provider == &bc_provider_openai_responses) {
        found = type != NULL && strcmp(type, "response.completed") == 0;
    } else if (f->provider == &bc_provider_gemini) {
        const json_t *candidate = json_array_get(json_object_get(event, "candidates"), 0);
        found = json_string_length(json_object_get(candidate, "finishReason")) > 0;
    } else {
        const json_t *choice = json_array_get(json_object_get(event, "choices"), 0);
        found |= json_string_length(json_object_get(choice, "finish_reason")) > 0;
    }
    json_decref(event);
    return found;
}

static int begins_again(const char *data, size_t len)
{
    return len > 23 && memmem(data, len, "\"message_start\"", 15) != NULL;
}

/* A prefix without the terminal event must be an error, whatever else it holds. */
int fixture_check_cuts(fixture *f)
{
    const char *all = bc_buf_data(&f->bytes), *end = all + f->bytes.len, *at = all;
    int ended = 0;
    while (at < end) {
        const char *lf = memchr(at, '\n', (size_t)(end - at));
        const char *next = lf != NULL ? lf + 1 : end;
        if (strncmp(at, "data:", 5) == 0) {
            const char *data = at + 5 + (at[5] == ' ');
            size_t len = (size_t)(next - data);
            ended |= is_terminal(f, data, len);
            if (begins_again(data, len)) ended = 0;
        }
        at = next;
        if (ended) continue;
        adapter_result got = adapter_read(f->provider, f->status, 1, all, (size_t)(at - all), 0);
        int bad = !got.failed;
        adapter_result_clear(&got);
        if (bad)
            return MISMATCH(f, "cut at byte %zu, it is taken for a finished turn",
                            (size_t)(at - all));
    }
    return 1;
}
