/* Gemini: the request body. */
#include "gemini.h"

#include <string.h>
#include "base/cleanup.h"

/* Stands for the signature of a call that another model made; the third generation refuses a step
 * whose first call has none. */
static const char no_signature[] = "skip_thought_signature_validator";

typedef struct writer {
    bc_out out;
    bc_request *request;
    bc_origin origin;
    int is_old;
    json_t *calls; /* of the last assistant turn: [{"id","name","given"}], in its order */
    int is_first;  /* the next call is the first of its turn */
} writer;

static void put_text(bc_out *out, const char *text, size_t len)
{
    bc_out_open(out, '{');
    bc_out_key(out, "text");
    bc_out_string(out, text, len);
    bc_out_close(out, '}');
}

static void put_image(bc_out *out, const bc_part *part)
{
    bc_out_open(out, '{');
    bc_out_key(out, "inlineData");
    bc_out_open(out, '{');
    bc_out_member(out, "mimeType", part->media_type);
    bc_out_member(out, "data", part->data);
    bc_out_close(out, '}');
    bc_out_close(out, '}');
}

static void open_content(bc_out *out, const char *role)
{
    bc_out_open(out, '{');
    bc_out_member(out, "role", role);
    bc_out_key(out, "parts");
    bc_out_open(out, '[');
}

static void close_content(bc_out *out)
{
    bc_out_close(out, ']');
    bc_out_close(out, '}');
}

static void put_images(bc_out *out, const bc_message *message)
{
    size_t count = bc_message_part_count(message);
    for (size_t i = 0; i < count; i++) {
        bc_part part = bc_message_part(message, i);
        if (part.text == NULL) put_image(out, &part);
    }
}

static int has_images(const bc_message *message)
{
    size_t count = bc_message_part_count(message);
    for (size_t i = 0; i < count; i++) {
        if (bc_message_part(message, i).text == NULL) return 1;
    }
    return 0;
}

static void put_user(bc_out *out, const bc_message *message)
{
    size_t count = bc_message_part_count(message);
    open_content(out, "user");
    for (size_t i = 0; i < count; i++) {
        bc_part part = bc_message_part(message, i);
        if (part.text == NULL) put_image(out, &part);
        if (part.text != NULL && part.text_len > 0) put_text(out, part.text, part.text_len);
    }
    close_content(out);
}

/* ---- results: all of a turn in one content, as many as calls and in their order ---- */

static const bc_message *result_of(const writer *w, size_t first, size_t end, const char *id)
{
    for (size_t i = first; i < end; i++) {
        const bc_message *message = &w->request->messages[i];
        if (strcmp(bc_json_get_string(message->view, "tool_call_id", NULL), id) == 0) {
            return message;
        }
    }
    return NULL;
}

static void put_result(writer *w, const json_t *call, const bc_message *message)
{
    bc_out *out = &w->out;
    size_t name_len;
    const char *name = bc_json_get_string(call, "name", &name_len);
    cleanup_buf bc_buf text;
    bc_buf_init(&text, BC_JSON_MAX_BYTES);
    int rc = bc_message_text(message, &text);
    if (out->rc == 0) out->rc = rc;
    bc_out_open(out, '{');
    bc_out_key(out, "functionResponse");
    bc_out_open(out, '{');
    if (json_is_true(json_object_get(call, "given"))) {
        bc_out_member(out, "id", bc_json_get_string(call, "id", NULL));
    }
    bc_out_key(out, "name");
    bc_out_string(out, name, name_len);
    bc_out_key(out, "response");
    bc_out_open(out, '{');
    bc_out_key(out, bc_message_is_error(message) ? "error" : "output");
    bc_out_string(out, bc_buf_data(&text), text.len);
    bc_out_close(out, '}');
    if (!w->is_old && has_images(message)) {
        bc_out_key(out, "parts");
        bc_out_open(out, '[');
        put_images(out, message);
        bc_out_close(out, ']');
    }
    bc_out_close(out, '}');
    bc_out_close(out, '}');
}

static size_t put_results(writer *w, size_t first)
{
    size_t end = first, i;
    const json_t *call;
    const bc_message *message;
    while (end < w->request->message_count && w->request->messages[end].role == BC_ROLE_TOOL)
        end++;
    open_content(&w->out, "user");
    json_array_foreach(w->calls, i, call)
    {
        message = result_of(w, first, end, bc_json_get_string(call, "id", NULL));
        if (message != NULL) put_result(w, call, message);
    }
    json_array_foreach(w->calls, i, call)
    {
        message = result_of(w, first, end, bc_json_get_string(call, "id", NULL));
        if (message != NULL && w->is_old && has_images(message)) {
            static const char label[] = "Images of a result:";
            put_text(&w->out, label, sizeof label - 1);
            put_images(&w->out, message);
        }
    }
    close_content(&w->out);
    return end;
}

/* ---- turns of the model ---- */

static int put_call(const bc_past_call *past, void *ud, barchan_error *err)
{
    writer *w = ud;
    bc_out *out = &w->out;
    json_t *call = json_pack("{s:s, s:s, s:b}", "id", past->id, "name", past->name, "given", 0);
    if (call == NULL || json_array_append_new(w->calls, call) < 0) return bc_error_nomem(err);
    bc_out_open(out, '{');
    bc_out_key(out, "functionCall");
    bc_out_open(out, '{');
    bc_out_member(out, "name", past->name);
    bc_out_key(out, "args");
    bc_out_raw(out, past->arguments.data, past->arguments.len);
    bc_out_close(out, '}');
    if (w->is_first && !w->is_old) bc_out_member(out, "thoughtSignature", no_signature);
    w->is_first = 0;
    bc_out_close(out, '}');
    return 0;
}

/* The content as it came. Returns 1, or 0 when the turn is none of ours. */
static int splice(writer *w, const bc_buf *turn, barchan_error *err)
{
    cleanup_json json_t *view = NULL;
    bc_json_span content;
    int rc = bc_json_view(&view, bc_buf_data(turn), turn->len, 0, err);
    if (rc < 0) return rc;
    json_t *calls = bc_json_get_array(view, "calls"), *call;
    const json_t *parts = bc_json_get_array(bc_json_get_object(view, "content"), "parts");
    size_t i;
    if (calls == NULL || parts == NULL || json_array_size(calls) > BC_MODEL_MAX_TOOL_CALLS)
        return 0;
    json_array_foreach(calls, i, call)
    {
        if (bc_json_get_string(call, "id", NULL) == NULL ||
            bc_json_get_string(call, "name", NULL) == NULL)
            return 0;
    }
    json_decref(w->calls);
    w->calls = json_incref(calls);
    if (json_array_size(parts) == 0) return 1; /* a content without parts is refused */
    bc_json_span all = {bc_buf_data(turn), turn->len};
    rc = bc_json_member(all, "content", &content, err);
    if (rc == 1) bc_out_raw(&w->out, content.data, content.len);
    return rc;
}

static int put_assistant(writer *w, const bc_message *message, barchan_error *err)
{
    cleanup_buf bc_buf turn;
    bc_buf_init(&turn, 2 * (size_t)BC_MODEL_MAX_TURN_BYTES);
    int rc = bc_message_raw(message, &w->origin, &turn, err);
    if (rc == 1) rc = splice(w, &turn, err);
    if (rc != 0) return rc < 0 ? rc : 0;
    json_decref(w->calls);
    w->calls = json_array();
    if (w->calls == NULL) return bc_error_nomem(err);
    size_t len = 0;
    const char *text = bc_json_get_string(message->view, "text", &len);
    if (len == 0 && bc_message_call_count(message) == 0) return 0;
    open_content(&w->out, "model");
    if (len > 0) put_text(&w->out, text, len);
    w->is_first = 1;
    rc = bc_message_each_call(message, put_call, w, err);
    close_content(&w->out);
    return rc;
}

static int put_contents(writer *w, barchan_error *err)
{
    bc_request *request = w->request;
    int rc = 0;
    bc_out_open(&w->out, '[');
    bc_body_settled(&w->out, request);
    for (size_t at = 0; at < request->message_count && rc == 0;) {
        const bc_message *message = &request->messages[at];
        bc_body_message(&w->out, request, at);
        if (message->role == BC_ROLE_TOOL) {
            at = put_results(w, at);
            continue;
        }
        if (message->role == BC_ROLE_USER) put_user(&w->out, message);
        if (message->role == BC_ROLE_ASSISTANT) rc = put_assistant(w, message, err);
        at++;
    }
    bc_body_messages_end(&w->out, request);
    bc_out_close(&w->out, ']');
    return rc;
}

/* ---- the rest ---- */

static void put_tools(writer *w)
{
    static const char *const modes[] = {"AUTO", "AUTO", "ANY", "NONE", "ANY"};
    const bc_request *request = w->request;
    bc_out *out = &w->out;
    if (!bc_body_has_tools(request)) return;
    if (request->tool_count > 0 && bc_body_key(out, request, "tools")) {
        bc_tools_put(out, "gemini", request->tools, request->tool_count);
    }
    if (request->choice == BC_CHOICE_UNSET || !bc_body_key(out, request, "toolConfig")) return;
    bc_out_open(out, '{');
    bc_out_key(out, "functionCallingConfig");
    bc_out_open(out, '{');
    bc_out_member(out, "mode", modes[request->choice]);
    if (request->choice == BC_CHOICE_NAMED) {
        bc_out_key(out, "allowedFunctionNames");
        bc_out_open(out, '[');
        bc_out_string(out, request->choice_name, strlen(request->choice_name));
        bc_out_close(out, ']');
    }
    bc_out_close(out, '}');
    bc_out_close(out, '}');
}

/* Models before the third generation count thinking in tokens; the numbers are those that Google's
 * own OpenAI-compatible server uses for these words. */
static void put_thinking(writer *w)
{
    static const struct {
        const char *effort, *level;
        int budget;
    } known[] = {{"minimal", "MINIMAL", 1024}, {"low", "LOW", 1024},
                 {"medium", "MEDIUM", 8192},   {"high", "HIGH", 24576},
                 {"xhigh", "XHIGH", 24576},    {"max", "XHIGH", 24576}};
    size_t i = 0;
    while (strcmp(known[i].effort, w->request->effort) != 0)
        i++;
    bc_out_key(&w->out, "thinkingConfig");
    bc_out_open(&w->out, '{');
    if (w->is_old) {
        bc_out_key(&w->out, "thinkingBudget");
        bc_out_integer(&w->out, known[i].budget);
    } else {
        bc_out_member(&w->out, "thinkingLevel", known[i].level);
    }
    bc_out_close(&w->out, '}');
}

static void put_settings(writer *w, const bc_model_info *model)
{
    const bc_request *request = w->request;
    bc_out *out = &w->out;
    int64_t max_tokens = request->max_tokens > 0 ? request->max_tokens : model->max_tokens;
    if (max_tokens == 0 && request->temperature.len == 0 && request->stop == NULL &&
        request->effort == NULL && request->schema.len == 0)
        return;
    if (!bc_body_key(out, request, "generationConfig")) return;
    bc_out_open(out, '{');
    if (max_tokens > 0) bc_out_key(out, "maxOutputTokens");
    if (max_tokens > 0) bc_out_integer(out, max_tokens);
    if (request->temperature.len > 0) {
        bc_out_key(out, "temperature");
        bc_out_raw(out, request->temperature.data, request->temperature.len);
    }
    if (request->stop != NULL) {
        size_t i;
        json_t *item;
        bc_out_key(out, "stopSequences");
        bc_out_open(out, '[');
        json_array_foreach(request->stop, i, item)
        {
            bc_out_string(out, json_string_value(item), json_string_length(item));
        }
        bc_out_close(out, ']');
    }
    if (request->schema.len > 0) {
        bc_out_member(out, "responseMimeType", "application/json");
        bc_out_key(out, "responseJsonSchema");
        bc_out_raw(out, request->schema.data, request->schema.len);
    }
    if (request->effort != NULL) put_thinking(w);
    bc_out_close(out, '}');
}

int bc_gemini_render(const bc_model_info *model, bc_request *request, bc_buf *body,
                     barchan_error *err)
{
    writer w = {.out = {.buf = body},
                .request = request,
                .origin = {"gemini", model->name, model->base_url},
                .is_old = bc_gemini_is_old(model->name)};
    if (request->parallel == 0) {
        return bc_error_set(err, BARCHAN_EINVAL,
                            "'parallel_tool_calls' cannot be turned off with Gemini; leave it out");
    }
    bc_out_open(&w.out, '{');
    if (request->system != NULL && bc_body_key(&w.out, request, "systemInstruction")) {
        bc_out_open(&w.out, '{');
        bc_out_key(&w.out, "parts");
        bc_out_open(&w.out, '[');
        put_text(&w.out, request->system, request->system_len);
        bc_out_close(&w.out, ']');
        bc_out_close(&w.out, '}');
    }
    put_settings(&w, model);
    put_tools(&w);
    int rc = bc_body_key(&w.out, request, "contents") ? put_contents(&w, err) : 0;
    json_decref(w.calls);
    if (rc < 0 && w.out.rc == 0) return rc;
    bc_body_extra(&w.out, request);
    bc_out_close(&w.out, '}');
    return w.out.rc < 0 ? bc_error_set(err, w.out.rc, "the request is too large") : 0;
}
