/*
 * Models: an LLM provider, a model name and options, ready to complete conversations.
 *
 * Conversations cross this border as JSON text in one neutral form, whatever the provider.
 *
 * Request object:
 *   {"system": "…",
 *    "messages": [
 *      {"role": "user", "content": "…" | [{"type":"text","text":"…"},
 *                                          {"type":"image","media_type":"image/png","data":"BASE64"}]},
 *      {"role": "assistant", … a reply, as it came …},
 *      {"role": "tool", "tool_call_id": "…", "name": "…", "content": "…" | [parts],
 *       "is_error": false}],
 *    "tools": [{"name": "…", "description": "…", "parameters": {JSON Schema}}],
 *    "tool_choice": "auto" | "any" | "none" | {"name": "…"},
 *    "parallel_tool_calls": true, "max_tokens": 16000, "temperature": 0.5, "stop": ["…"],
 *    "effort": "minimal" | "low" | "medium" | "high" | "xhigh" | "max",   how hard it thinks
 *    "schema": {JSON Schema},         the answer's text is JSON that fits it
 *    "cache": true,                   what stays the same of the conversation is cached, where that
 *                                     must be asked for
 *    "stream": true, "extra": {… merged into the provider's request body …}}
 * Only "messages" is required; members that are not listed here are refused. A member of "extra"
 * replaces the body's own of that name, null removes it. Exactly one tool message answers each call
 * of the assistant turn right before it, those of invalid_tool_calls included; a request that
 * breaks this is refused (BARCHAN_EINVAL) and never sent. Tools have names of their own, made of
 * letters, digits and _-.: (at most 128).
 *
 * Reply object, which is also the assistant message to append:
 *   {"role": "assistant",
 *    "text": "…",                     all text of the turn, joined; "" when there is none
 *    "reasoning": "…",                readable thinking, absent when there is none
 *    "refusal": "…",                  absent when there is none
 *    "tool_calls": [{"id": "…", "name": "…", "arguments": {…}}],    only calls that may be run;
 *                                     arguments nest at most 64 deep
 *    "invalid_tool_calls": [{"id", "name", "arguments_text", "error", "position"}],
 *                                     answer them as errors; position: the place among all calls
 *                                     of the turn, from 0; absent when there are none
 *    "stop_reason": "end_turn" | "tool_use" | "max_tokens" | "stop_sequence" | "refusal" |
 *                   "content_filter" | "pause_turn" | "context_window" | "error",
 *    "raw_stop_reason": "…",          the provider's own label, null when it gave none
 *    "usage": {"input_tokens", "cache_read_tokens", "cache_write_tokens", "output_tokens",
 *              "reasoning_tokens"},   input_tokens excludes the cached ones; absent: not told
 *    "model": "…", "id": "…", "request_id": "…",
 *    "raw": {"provider": "…", "model": "…", "base_url": "…", "view": "…", "turn": "…"}}
 * `raw.turn` is JSON text of the provider's own bytes. It goes back verbatim to the same provider
 * as long as the reply's view (text, tool_calls) is unedited, and is dropped otherwise.
 *
 * Replay transcript (provider "replay"): JSON Lines, UTF-8, at most 64 MiB, blank lines ignored.
 *   {"type": "transcript", "version": 1}                    first line, or missing; another
 *                                                           version is refused
 *   {"type": "model_reply", "reply": {… a reply object …}}  one per completion, played in order
 * Lines of other types, and other members, are ignored, so a log of a whole run can be played. Any
 * member of a reply may be missing: "role" is then "assistant", "text" "", "tool_calls" [],
 * "stop_reason" "tool_use" with calls and "end_turn" without, "raw_stop_reason" null, "usage" {};
 * "reasoning", "refusal", "invalid_tool_calls", "model", "id", "request_id" and "raw" stay absent.
 * Calls are complete: "id" (not empty, once per reply), "name", and "arguments" of runnable ones.
 * The whole file is checked when the model is created, each error naming its line. One completion
 * more than there are replies fails with BARCHAN_ENOTFOUND.
 *
 * Recording (record_path, and replay_path with another provider than "replay"): JSON Lines, UTF-8,
 * at most 64 MiB when played, readable by its owner only. It has the prompts and the answers.
 *   {"type": "recording", "version": 1, "barchan": "…", "provider": "…", "model": "…",
 *    "base_url": "…", "max_tokens": 99, "max_retries": 2, "extra": {…}}          first line
 *   {"type": "exchange", "url": "…", "request": "… the body …", "ids": "…",
 *    "status": 200, "headers": {"content-type": "…", …}, "retry_after_ms": 1000,
 *    "body": "…", "encoding": "latin1", "pieces": [512, …],
 *    "end": "complete" | "closed" | "failed", "error": {"code", "message", "retryable"}}
 * one per request, retries too, when it has ended. No header of a request is recorded, so no key
 * is, and a key that stands elsewhere becomes "***", also as JSON and addresses
 * escape it; one that a server spells otherwise, or gives in parts, is not known as such.
 * "encoding": each character is a byte, where the body is no text; "ids": of what missing ids of
 * calls are made. Played, each request must be one that was recorded and not played yet, in any
 * order: the same address, the same body (as JSON); the error (BARCHAN_ENOTFOUND) names the first
 * place that differs. The answer comes in the same pieces and goes through the same reader, without
 * the waits between them and between retries. Played twice, a recording gives the same twice.
 *
 * Retries: what failed in passing (no connection, 408, 409, 429, 5xx, an answer that broke off, an
 * overload told in the stream) is sent again, at most max_retries times, after the wait that the
 * server names or one of 0.5, 1, 2, … 8 s less up to a quarter by chance. What was shown is void
 * then (BARCHAN_DELTA_RESTART). Limits that do not pass, such as a quota, are never tried again.
 * Nothing of a turn is acted upon before the turn is whole, so sending again is safe.
 *
 * Threads: everything here belongs to the runtime's thread. Keys go into headers only; they are
 * never logged and never part of an error.
 */
#ifndef BARCHAN_MODEL_H
#define BARCHAN_MODEL_H

#include <stddef.h>
#include <stdint.h>
#include <barchan/runtime.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct barchan_model barchan_model;
typedef struct barchan_completion barchan_completion;

typedef struct barchan_model_options {
    size_t struct_size;
    /* "anthropic" (Messages), "openai" (Chat Completions and compatible servers),
     * "openai-responses", "gemini" or "replay" */
    const char *provider;
    const char *name;     /* the provider's model name; replay: may be NULL */
    const char *api_key;  /* NULL: none is sent. The library reads no environment variable. */
    const char *base_url; /* NULL: the provider's own. https, or http to loopback only ... */
    int allow_plain_http; /* ... unless this is 1 */
    /* "Name: value" added to each request, NULL-terminated. One that carries a key of its own
     * (authorization, x-api-key) replaces api_key; what frames the request (host, content-type,
     * content-length, …) is refused. */
    const char *const *headers;
    int64_t max_tokens;      /* default of a request's max_tokens; 0: the provider's rule */
    const char *replay_path; /* replay: the JSONL transcript to play; of other providers the
                                recording (see above) that is played instead of asking */
    int connect_timeout_ms;  /* 0: 15 s */
    int idle_timeout_ms;     /* longest silence of the server; 0: 120 s */
    int64_t timeout_ms;      /* of a whole completion, retries and their waits included; 0: 600 s */
    int max_retries;         /* of a completion that failed in passing; 0: the default, 2; -1: none
                                (in Lua 0 is none) */
    int max_retry_wait_ms;   /* longest wait that a server may ask for; 0: 60 s. A server that asks
                                for more is not asked again: the error says so and how long. */
    const char *record_path; /* a new file that every exchange is recorded to; NULL: none */
    /* JSON object: what its caller adds to the `extra` of each request. It stands in the recording
     * for whoever plays it and must add the same; nothing else is done with it. NULL: none. */
    const char *recorded_extra;
} barchan_model_options;

/* `*out` belongs to the caller. Options are copied. A model keeps the text of the last
 * conversations that went through it, at most 16 MiB, so as not to read again what they begin with.
 */
BARCHAN_API int barchan_model_create(barchan_model **out, barchan_runtime *rt,
                                     const barchan_model_options *options, barchan_error *err);
/* Ends its completions (BARCHAN_ECANCELLED) and frees it. NULL is ignored. In a `done` that this
 * calls, destroying it again does nothing and a new completion is refused (BARCHAN_ECLOSED). */
BARCHAN_API void barchan_model_destroy(barchan_model *model);

typedef enum barchan_delta_kind {
    BARCHAN_DELTA_TEXT = 1,      /* text of the answer */
    BARCHAN_DELTA_REASONING = 2, /* readable thinking */
    BARCHAN_DELTA_TOOL_CALL = 3, /* a call has begun: data is its name; arguments come whole */
    BARCHAN_DELTA_RESTART = 4,   /* what was shown of this turn is void: it begins again */
    BARCHAN_DELTA_RETRY = 5      /* the request failed in passing and is sent again: data is
                                    {"attempt": the coming one, from 2, "wait_ms", "error", "code"} */
} barchan_delta_kind;

/* Whole UTF-8 characters, as they arrive; borrowed for the call. */
typedef void (*barchan_delta_fn)(barchan_delta_kind kind, const char *data, size_t len, void *ud);
/* Called once. `reply` is JSON text, borrowed for the call; NULL with `err` set on failure. The
 * completion's handle is invalid when it returns. */
typedef void (*barchan_complete_fn)(const char *reply, size_t len, const barchan_error *err,
                                    void *ud);

typedef struct barchan_complete_options {
    size_t struct_size;
    barchan_delta_fn on_delta; /* NULL: no deltas; whether the wire streams is "stream"'s matter */
    void *ud;                  /* of on_delta */
    barchan_cancel *cancel;
} barchan_complete_options;

/* Completes and waits. `*reply` is NUL-terminated JSON text, freed with barchan_free. */
BARCHAN_API int barchan_model_complete(barchan_model *model, const char *request, size_t len,
                                       const barchan_complete_options *options, char **reply,
                                       barchan_error *err);
/* `done` is called exactly once when this returned 0, later, never inside this call. */
BARCHAN_API int barchan_model_complete_start(barchan_completion **out, barchan_model *model,
                                             const char *request, size_t len,
                                             const barchan_complete_options *options,
                                             barchan_complete_fn done, void *done_ud,
                                             barchan_error *err);
/* Ends it: `done` comes once, later, with BARCHAN_ECANCELLED. The handle is valid until `done`
 * returns; after that, calling this is an error that cannot be seen. NULL is ignored. */
BARCHAN_API void barchan_completion_cancel(barchan_completion *completion);

/* Tool declarations in a provider's own form: `format` is "neutral", "anthropic", "openai",
 * "responses", "gemini" or "mcp"; `tools` a JSON array of neutral ones. `*json` is freed with
 * barchan_free, and untouched on failure: BARCHAN_EINVAL for a format or a tool that is none,
 * BARCHAN_ELIMIT when they are too many. */
BARCHAN_API int barchan_tools_render(const char *format, const char *tools, size_t len, char **json,
                                     barchan_error *err);

#ifdef __cplusplus
}
#endif
#endif
