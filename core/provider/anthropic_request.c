/* Anthropic Messages: the request body. */
#include "anthropic.h"

#include <string.h>

/* Used when neither the request nor the model says: enough for an answer with a program in it, and
 * below what makes a server insist on streaming (about 21,000). */
enum { DEFAULT_MAX_TOKENS = 16000 };

typedef struct writer {
    bc_out out;
    bc_request *request;
    bc_origin origin;
    size_t last_turn;  /* index of the last assistant message, or past the end */
    int has_marks;     /* what is cached is marked in the body, not only at its top */
    int is_after_user; /* what was written last is a user message */
    int is_own_turn;   /* the last turn went back as it came */
    int is_mixed;      /* and waits for a tool that the server runs */
} writer;

static void put_cache_mark(bc_out *out)
{
    bc_out_key(out, "cache_control");
    bc_out_word(out, "{\"type\":\"ephemeral\"}");
}

/* On the block that was just written. */
static void mark_last_block(bc_out *out)
{
    if (out->rc < 0 || bc_buf_data(out->buf)[out->buf->len - 1] != '}') return;
    out->buf->len--;
    put_cache_mark(out);
    bc_out_close(out, '}');
}

static void put_id(bc_out *out, const char *key, const char *id)
{
    /* Ids of other providers may have characters that this one refuses; both sides of a pair are
     * mapped alike. Results of a turn that went back as it came keep its ids. */
    size_t len = strlen(id);
    char made[BC_MADE_ID_BYTES];
    size_t good = strspn(id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-");
    if (good != len) {
        bc_make_id(id, len, 0, made);
        id = made;
    }
    bc_out_member(out, key, id);
}

static int is_blank_text(const char *text, size_t len)
{
    return strspn(text != NULL ? text : "", " \t\r\n") >= len;
}

static void put_text_block(bc_out *out, const char *text, size_t len)
{
    if (is_blank_text(text, len)) return; /* blank blocks are refused */
    bc_out_open(out, '{');
    bc_out_member(out, "type", "text");
    bc_out_key(out, "text");
    bc_out_string(out, text, len);
    bc_out_close(out, '}');
}

static void put_image_block(bc_out *out, const bc_part *part)
{
    bc_out_open(out, '{');
    bc_out_member(out, "type", "image");
    bc_out_key(out, "source");
    bc_out_open(out, '{');
    bc_out_member(out, "type", "base64");
    bc_out_member(out, "media_type", part->media_type);
    bc_out_member(out, "data", part->data);
    bc_out_close(out, '}');
    bc_out_close(out, '}');
}

static void put_parts(bc_out *out, const bc_message *message)
{
    size_t count = bc_message_part_count(message);
    for (size_t i = 0; i < count; i++) {
        bc_part part = bc_message_part(message, i);
        if (part.text != NULL) put_text_block(out, part.text, part.text_len);
        if (part.text == NULL) put_image_block(out, &part);
    }
}

static int is_blank(const bc_message *message)
{
    size_t count = bc_message_part_count(message);
    for (size_t i = 0; i < count; i++) {
        bc_part part = bc_message_part(message, i);
        if (part.text == NULL || !is_blank_text(part.text, part.text_len)) return 0;
    }
    return 1;
}

static void put_result(bc_out *out, const bc_message *message, int is_own_turn)
{
    const char *id = bc_json_get_string(message->view, "tool_call_id", NULL);
    bc_out_open(out, '{');
    bc_out_member(out, "type", "tool_result");
    if (is_own_turn) {
        bc_out_member(out, "tool_use_id", id);
    } else {
        put_id(out, "tool_use_id", id);
    }
    if (!is_blank(message)) {
        bc_out_key(out, "content");
        bc_out_open(out, '[');
        put_parts(out, message);
        bc_out_close(out, ']');
    }
    if (bc_message_is_error(message)) {
        bc_out_key(out, "is_error");
        bc_out_word(out, "true");
    }
    bc_out_close(out, '}');
}

static int put_call(const bc_past_call *call, void *ud, barchan_error *err)
{
    bc_out *out = ud;
    bc_out_open(out, '{');
    bc_out_member(out, "type", "tool_use");
    put_id(out, "id", call->id);
    bc_out_key(out, "name");
    bc_out_tool_name(out, call->name, strlen(call->name), BC_MODEL_MAX_NAME_BYTES);
    bc_out_key(out, "input");
    bc_out_raw(out, call->arguments.data, call->arguments.len);
    bc_out_close(out, '}');
    return 0;
}

static int put_assistant(writer *w, const bc_message *message, barchan_error *err)
{
    int rc = bc_message_splice(message, &w->origin, &w->out, err);
    w->is_own_turn = rc == 1;
    w->is_mixed = 0;
    if (rc == 1) {
        rc = bc_anthropic_is_mixed(message, err);
        w->is_mixed = rc == 1;
        return rc < 0 ? rc : 0;
    }
    if (rc < 0) return rc;
    size_t len;
    const char *text = bc_json_get_string(message->view, "text", &len);
    size_t calls = bc_message_call_count(message);
    /* A message without content is refused. */
    if (calls == 0 && is_blank_text(text, len)) return 0;
    bc_out_open(&w->out, '{');
    bc_out_member(&w->out, "role", "assistant");
    bc_out_key(&w->out, "content");
    bc_out_open(&w->out, '[');
    put_text_block(&w->out, text, len);
    rc = bc_message_each_call(message, put_call, &w->out, err);
    bc_out_close(&w->out, ']');
    bc_out_close(&w->out, '}');
    return rc;
}

/* The results of a turn go into one user message, before what the user says. */
static int put_user(writer *w, size_t *index, barchan_error *err)
{
    const bc_request *request = w->request;
    size_t at = *index;
    bc_out_open(&w->out, '{');
    bc_out_member(&w->out, "role", "user");
    bc_out_key(&w->out, "content");
    bc_out_open(&w->out, '[');
    while (at < request->message_count && request->messages[at].role == BC_ROLE_TOOL) {
        put_result(&w->out, &request->messages[at++], w->is_own_turn);
    }
    if (w->is_mixed && at < request->message_count && request->messages[at].role == BC_ROLE_USER) {
        return bc_error_set(err, BARCHAN_EINVAL,
                            "messages[%zu]: the turn before waits for a tool of the provider's "
                            "own; only its tool messages may follow it",
                            at);
    }
    while (at < request->message_count && request->messages[at].role == BC_ROLE_USER) {
        put_parts(&w->out, &request->messages[at++]);
    }
    /* Neither an empty list nor a block of blanks is taken, and nobody's turn can be left out. */
    size_t len = w->out.buf->len;
    if (w->out.rc == 0 && bc_buf_data(w->out.buf)[len - 1] == '[') {
        return bc_error_set(err, BARCHAN_EINVAL,
                            "messages[%zu]: the content is blank, which Anthropic refuses", *index);
    }
    bc_out_close(&w->out, ']');
    bc_out_close(&w->out, '}');
    *index = at;
    return 0;
}

static void put_system(writer *w)
{
    const bc_request *request = w->request;
    if (request->system == NULL || !bc_body_key(&w->out, request, "system")) return;
    if (!w->has_marks || is_blank_text(request->system, request->system_len)) {
        bc_out_string(&w->out, request->system, request->system_len);
        return;
    }
    bc_out_open(&w->out, '[');
    put_text_block(&w->out, request->system, request->system_len);
    mark_last_block(&w->out);
    bc_out_close(&w->out, ']');
}

/* Marks of the script's own count, too, and must be of one kind with ours: then there are none. */
static int wants_marks(const bc_request *request)
{
    bc_json_wanted own[] = {
        {.key = "cache_control"}, {.key = "tools"}, {.key = "system"}, {.key = "messages"}};
    const size_t count = sizeof own / sizeof *own;
    if (!request->cache || bc_json_members(request->extra, own, count, NULL) < 0) {
        return request->cache && request->extra.len == 0;
    }
    for (size_t i = 0; i < count; i++) {
        if (own[i].value.len > 0) return 0;
    }
    return 1;
}

static size_t last_turn(const bc_request *request)
{
    size_t at = request->message_count;
    while (at > 0 && request->messages[at - 1].role != BC_ROLE_ASSISTANT)
        at--;
    return at > 0 ? at - 1 : request->message_count;
}

/* On the last block of the user message that was just written. */
static void mark_user(writer *w)
{
    bc_out *out = &w->out;
    if (out->rc < 0) return;
    out->buf->len -= 2;
    size_t at = out->buf->len - 1, before = out->buf->len;
    mark_last_block(out);
    bc_body_mark(w->request, at, out->buf->len - before);
    bc_out_close(out, ']');
    bc_out_close(out, '}');
}

static int put_messages(writer *w, barchan_error *err)
{
    bc_request *request = w->request;
    bc_out_open(&w->out, '[');
    bc_body_settled(&w->out, request);
    w->is_after_user = request->settled_count > 0 && !request->settled_is_turn;
    for (size_t at = 0; at < request->message_count;) {
        const bc_message *message = &request->messages[at];
        int is_turn = message->role == BC_ROLE_ASSISTANT;
        if (w->has_marks && w->is_after_user && at == w->last_turn) mark_user(w);
        bc_body_message(&w->out, request, at);
        int rc = is_turn ? put_assistant(w, message, err) : put_user(w, &at, err);
        if (rc < 0) return rc;
        w->is_after_user = !is_turn;
        at += (size_t)is_turn;
    }
    bc_body_messages_end(&w->out, request);
    bc_out_close(&w->out, ']');
    return 0;
}

static void put_tools(writer *w)
{
    const bc_request *request = w->request;
    if (request->tool_count == 0 || !bc_body_key(&w->out, request, "tools")) return;
    bc_tools_put(&w->out, "anthropic", request->tools, request->tool_count);
}

static void put_choice(writer *w)
{
    static const char *const types[] = {"auto", "auto", "any", "none", "tool"};
    const bc_request *request = w->request;
    int one_call = request->parallel == 0 && request->choice != BC_CHOICE_NONE;
    if (!bc_body_has_tools(request) || (request->choice == BC_CHOICE_UNSET && !one_call)) return;
    if (!bc_body_key(&w->out, request, "tool_choice")) return;
    bc_out_open(&w->out, '{');
    bc_out_member(&w->out, "type", types[request->choice]);
    if (request->choice == BC_CHOICE_NAMED) bc_out_member(&w->out, "name", request->choice_name);
    if (one_call) {
        bc_out_key(&w->out, "disable_parallel_tool_use");
        bc_out_word(&w->out, "true");
    }
    bc_out_close(&w->out, '}');
}

static void put_output_config(writer *w)
{
    const bc_request *request = w->request;
    bc_out *out = &w->out;
    if (request->effort == NULL && request->schema.len == 0) return;
    if (!bc_body_key(out, request, "output_config")) return;
    bc_out_open(out, '{');
    /* It has no word below "low". */
    int is_least = request->effort != NULL && strcmp(request->effort, "minimal") == 0;
    if (request->effort != NULL) bc_out_member(out, "effort", is_least ? "low" : request->effort);
    if (request->schema.len > 0) {
        bc_out_key(out, "format");
        bc_out_open(out, '{');
        bc_out_member(out, "type", "json_schema");
        bc_out_key(out, "schema");
        bc_out_raw(out, request->schema.data, request->schema.len);
        bc_out_close(out, '}');
    }
    bc_out_close(out, '}');
}

static void put_settings(writer *w, const bc_model_info *model)
{
    const bc_request *request = w->request;
    int64_t max_tokens = request->max_tokens > 0 ? request->max_tokens : model->max_tokens;
    if (bc_body_key(&w->out, request, "max_tokens")) {
        bc_out_integer(&w->out, max_tokens > 0 ? max_tokens : DEFAULT_MAX_TOKENS);
    }
    if (request->temperature.len > 0 && bc_body_key(&w->out, request, "temperature")) {
        bc_out_raw(&w->out, request->temperature.data, request->temperature.len);
    }
    if (request->stop != NULL && bc_body_key(&w->out, request, "stop_sequences")) {
        size_t i;
        json_t *item;
        bc_out_open(&w->out, '[');
        json_array_foreach(request->stop, i, item)
        {
            bc_out_string(&w->out, json_string_value(item), json_string_length(item));
        }
        bc_out_close(&w->out, ']');
    }
    if (request->stream && bc_body_key(&w->out, request, "stream")) bc_out_word(&w->out, "true");
    put_output_config(w);
    /* At the top: up to the last block that can be, which moves on with a growing conversation. The
     * provider looks for what it has up to twenty blocks before a mark; a turn may have more. So
     * the block that was the last one of the request before is marked as well, and the system
     * prompt, which other conversations begin with, too. */
    if (request->cache && bc_body_key(&w->out, request, "cache_control")) {
        bc_out_word(&w->out, "{\"type\":\"ephemeral\"}");
    }
}

int bc_anthropic_render(const bc_model_info *model, bc_request *request, bc_buf *body,
                        barchan_error *err)
{
    writer w = {.out = {.buf = body},
                .request = request,
                .origin = {"anthropic", model->name, model->base_url},
                .last_turn = last_turn(request),
                .has_marks = wants_marks(request)};
    bc_out_open(&w.out, '{');
    if (bc_body_key(&w.out, request, "model")) {
        bc_out_string(&w.out, model->name, strlen(model->name));
    }
    put_settings(&w, model);
    /* In the order of the provider's cache: tools, system, messages. */
    put_tools(&w);
    put_choice(&w);
    put_system(&w);
    if (bc_body_key(&w.out, request, "messages")) {
        int rc = put_messages(&w, err);
        if (rc < 0) return rc;
    }
    bc_body_extra(&w.out, request);
    bc_out_close(&w.out, '}');
    return w.out.rc < 0 ? bc_error_set(err, w.out.rc, "the request is too large") : 0;
}
