#include "reply.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/random.h"

const char *bc_stop_name(bc_stop stop)
{
    static const char *const names[] = {
        "error",   "end_turn",       "tool_use",   "max_tokens",     "stop_sequence",
        "refusal", "content_filter", "pause_turn", "context_window", "error",
    };
    return (unsigned)stop < sizeof names / sizeof *names ? names[stop] : "error";
}

static const bc_usage no_usage = {-1, -1, -1, -1, -1};

void bc_reply_init(bc_reply *reply, bc_delta_fn on_delta, void *ud)
{
    memset(reply, 0, sizeof *reply);
    reply->on_delta = on_delta;
    reply->ud = ud;
    reply->usage = no_usage;
    /* A byte that is not UTF-8 becomes three. */
    bc_buf_init(&reply->text, 3 * (size_t)BC_MODEL_MAX_TURN_BYTES);
    bc_buf_init(&reply->reasoning, 3 * (size_t)BC_MODEL_MAX_TURN_BYTES);
    bc_buf_init(&reply->refusal, 3 * (size_t)BC_MODEL_MAX_TURN_BYTES);
    bc_buf_init(&reply->turn, 2 * (size_t)BC_MODEL_MAX_TURN_BYTES);
}

static void drop_calls(bc_reply *reply)
{
    for (size_t i = 0; i < reply->call_count; i++) {
        bc_buf_clear(&reply->calls[i].id);
        bc_buf_clear(&reply->calls[i].name);
        bc_buf_clear(&reply->calls[i].arguments);
    }
    free(reply->calls);
    reply->calls = NULL;
    reply->call_count = 0;
}

void bc_reply_clear(bc_reply *reply)
{
    drop_calls(reply);
    bc_buf_clear(&reply->text);
    bc_buf_clear(&reply->reasoning);
    bc_buf_clear(&reply->refusal);
    bc_buf_clear(&reply->turn);
}

static int show(bc_reply *reply, barchan_delta_kind kind, bc_json_span data)
{
    if (reply->on_delta == NULL) return 0;
    reply->shown = kind != BARCHAN_DELTA_RESTART;
    return reply->on_delta(kind, data, reply->ud);
}

int bc_reply_restart(bc_reply *reply)
{
    drop_calls(reply);
    bc_buf_reset(&reply->text);
    bc_buf_reset(&reply->reasoning);
    bc_buf_reset(&reply->refusal);
    bc_buf_reset(&reply->turn);
    reply->stop = BC_STOP_NONE;
    reply->has_raw_stop = 0;
    reply->usage = no_usage;
    return reply->shown ? show(reply, BARCHAN_DELTA_RESTART, (bc_json_span){"", 0}) : 0;
}

static int add_piece(bc_reply *reply, bc_buf *to, barchan_delta_kind kind, bc_json_span piece)
{
    if (piece.len == 0) return 0;
    int rc = bc_buf_append(to, piece.data, piece.len);
    return rc < 0 ? rc : show(reply, kind, piece);
}

int bc_reply_text(bc_reply *reply, bc_json_span piece)
{
    return add_piece(reply, &reply->text, BARCHAN_DELTA_TEXT, piece);
}

int bc_reply_reasoning(bc_reply *reply, bc_json_span piece)
{
    return add_piece(reply, &reply->reasoning, BARCHAN_DELTA_REASONING, piece);
}

int bc_reply_announce(bc_reply *reply, bc_json_span name)
{
    return show(reply, BARCHAN_DELTA_TOOL_CALL, name);
}

int bc_reply_add_call(bc_reply *reply, bc_call **out, barchan_error *err)
{
    if (reply->call_count >= BC_MODEL_MAX_TOOL_CALLS) {
        return bc_error_set(err, BARCHAN_ELIMIT, "the turn has more than %d tool calls",
                            BC_MODEL_MAX_TOOL_CALLS);
    }
    size_t count = reply->call_count + 1;
    bc_call *calls = realloc(reply->calls, count * sizeof *calls);
    if (calls == NULL) return bc_error_nomem(err);
    reply->calls = calls;
    bc_call *call = &calls[reply->call_count++];
    memset(call, 0, sizeof *call);
    bc_buf_init(&call->id, BC_MODEL_MAX_ID_BYTES);
    bc_buf_init(&call->name, BC_MODEL_MAX_TURN_BYTES);
    bc_buf_init(&call->arguments, 3 * (size_t)BC_MODEL_MAX_TURN_BYTES);
    *out = call;
    return 0;
}

static const char *why_cut(bc_stop stop);

static int strictness(bc_stop stop)
{
    if (stop == BC_STOP_NONE) return 0;
    return why_cut(stop) != NULL ? 2 : 1;
}

void bc_reply_take_stop(bc_reply *reply, bc_stop stop, const char *label)
{
    if (*label == '\0' && reply->has_raw_stop) return;
    if (strictness(stop) < strictness(reply->stop)) return;
    reply->stop = stop;
    reply->has_raw_stop = 1;
    snprintf(reply->raw_stop, sizeof reply->raw_stop, "%s", label);
}

void bc_reply_label(char *to, size_t size, const json_t *view, const char *key)
{
    char scratch[BC_JSON_LABEL_BYTES];
    const char *text = bc_json_get_label(view, key, scratch);
    if (*text != '\0') snprintf(to, size, "%s", text);
}

int64_t bc_reply_count(const json_t *usage, const char *key)
{
    if (!json_is_number(json_object_get(usage, key))) return -1;
    int64_t count = bc_json_get_integer(usage, key, 0);
    if (count < 0) return 0;
    return count < BC_MODEL_MAX_COUNT ? count : BC_MODEL_MAX_COUNT;
}

int bc_turn_charge(size_t *total, size_t len)
{
    *total += len;
    return *total > BC_MODEL_MAX_TURN_BYTES ? BARCHAN_ELIMIT : 0;
}

int bc_turn_failed(int rc, barchan_error *err)
{
    if (rc == BARCHAN_ENOMEM) return bc_error_nomem(err);
    if (rc != BARCHAN_ELIMIT || (err != NULL && err->code == rc)) return rc;
    return bc_error_set(err, rc, "the turn is larger than %u bytes", BC_MODEL_MAX_TURN_BYTES);
}

/* ---- the rules ---- */

static void refuse(bc_call *call, const char *why)
{
    if (call->error[0] == '\0') snprintf(call->error, sizeof call->error, "%s", why);
}

/* Letters, digits and _-.: are what all providers allow between them. */
static void check_name(bc_call *call)
{
    const char *name = bc_buf_data(&call->name);
    if (call->name.len == 0) {
        refuse(call, "the call names no tool");
        return;
    }
    size_t good =
        strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.:");
    if (good != call->name.len)
        refuse(call, "the tool's name has characters that no name may have");
    if (call->name.len > BC_MODEL_MAX_NAME_BYTES) refuse(call, "the tool's name is too long");
}

static int is_blank(const bc_buf *buf)
{
    const char *text = bc_buf_data(buf);
    return strspn(text, " \t\r\n") == buf->len;
}

static int nests_too_deep(const bc_buf *arguments)
{
    bc_json_scan scan;
    int depth = 0;
    bc_json_scan_init(&scan, bc_buf_data(arguments), arguments->len);
    while (bc_json_scan_next(&scan, NULL) > 0 && depth <= BC_MODEL_MAX_ARGUMENT_DEPTH) {
        int opens = scan.token == BC_JSON_OBJECT_BEGIN || scan.token == BC_JSON_ARRAY_BEGIN;
        int closes = scan.token == BC_JSON_OBJECT_END || scan.token == BC_JSON_ARRAY_END;
        depth += opens - closes;
    }
    return depth > BC_MODEL_MAX_ARGUMENT_DEPTH;
}

/* Blank arguments, and null, are how many servers write "none". */
static int check_arguments(bc_call *call)
{
    if (is_blank(&call->arguments) || strcmp(bc_buf_data(&call->arguments), "null") == 0) {
        bc_buf_reset(&call->arguments);
        return bc_buf_append_string(&call->arguments, "{}");
    }
    barchan_error why;
    json_t *view = NULL;
    int rc = bc_json_view(&view, bc_buf_data(&call->arguments), call->arguments.len,
                          BC_JSON_UNIQUE_KEYS, &why);
    if (rc == BARCHAN_ENOMEM) return rc;
    if (rc < 0) {
        char text[sizeof call->error];
        snprintf(text, sizeof text, "the arguments cannot be used: %.100s", why.message);
        refuse(call, text);
        return 0;
    }
    if (!json_is_object(view)) refuse(call, "the arguments are not a JSON object");
    if (nests_too_deep(&call->arguments)) refuse(call, "the arguments are nested too deep");
    json_decref(view);
    return 0;
}

static const char *why_cut(bc_stop stop)
{
    switch (stop) {
    case BC_STOP_MAX_TOKENS: return "not run: the turn was cut off at its token limit";
    case BC_STOP_CONTEXT_WINDOW:
        return "not run: the turn was cut off at the end of the context window";
    case BC_STOP_REFUSAL: return "not run: the model refused";
    case BC_STOP_CONTENT_FILTER: return "not run: a content filter ended the turn";
    case BC_STOP_ERROR: return "not run: the provider ended the turn with an error";
    default: return NULL;
    }
}

static int same_id(const bc_call *a, const bc_call *b)
{
    return a->id.len == b->id.len &&
           memcmp(bc_buf_data(&a->id), bc_buf_data(&b->id), a->id.len) == 0;
}

static int id_is_free(const bc_reply *reply, size_t index)
{
    for (size_t i = 0; i < reply->call_count; i++) {
        if (i != index && same_id(&reply->calls[i], &reply->calls[index])) return 0;
    }
    return 1;
}

static int settle_id(bc_reply *reply, size_t index)
{
    bc_call *call = &reply->calls[index];
    int repeated = 0;
    for (size_t i = 0; i < index; i++)
        repeated |= same_id(&reply->calls[i], call);
    /* With a NUL in it, it could not be told from its own beginning. */
    int usable = call->id.len > 0 && strlen(bc_buf_data(&call->id)) == call->id.len;
    if (usable && !repeated) return 0;
    call->made_id = 1;
    uint64_t salt = index;
    /* Ids of a conversation must differ: the response's own id sees to that, where it has one. */
    char random[33];
    const char *given = reply->id_seed != NULL && *reply->id_seed != '\0' ? reply->id_seed : random;
    const char *seed = reply->id[0] != '\0' ? reply->id : given;
    int rc = seed == random ? bc_random_hex(random, sizeof random - 1) : 0;
    if (rc < 0) return rc;
    do {
        char id[BC_MADE_ID_BYTES];
        bc_make_id(seed, strlen(seed), salt, id);
        salt += BC_MODEL_MAX_TOOL_CALLS;
        bc_buf_reset(&call->id);
        rc = bc_buf_append_string(&call->id, id);
    } while (rc == 0 && !id_is_free(reply, index));
    return rc;
}

int bc_reply_finish(bc_reply *reply, barchan_error *err)
{
    const char *cut = why_cut(reply->stop);
    for (size_t i = 0; i < reply->call_count; i++) {
        bc_call *call = &reply->calls[i];
        if (cut != NULL) refuse(call, cut);
        check_name(call);
        int rc = check_arguments(call);
        if (rc == 0) rc = settle_id(reply, i);
        if (rc == BARCHAN_ENOMEM) return bc_error_nomem(err);
        if (rc < 0) return bc_error_set(err, rc, "an id for a tool call could not be made");
    }
    if (cut != NULL) return 0;
    /* The calls decide, not the label: many servers say "stop" with calls, or the reverse. */
    if (reply->call_count > 0) {
        reply->stop = BC_STOP_TOOL_USE;
    } else if (reply->stop == BC_STOP_TOOL_USE) {
        reply->stop = BC_STOP_END_TURN;
    }
    return 0;
}
