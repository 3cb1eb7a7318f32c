/* Chat Completions: the request body. */
#include "openai_chat.h"

#include <string.h>
#include "openai_tools.h"

typedef struct writer {
    bc_out out;
    bc_request *request;
    bc_origin origin;
    int mistral; /* refuses members it does not know, and ids that are not its own kind */
} writer;

static int may_have_id(const writer *w, const char *id)
{
    size_t len = strlen(id);
    size_t good = strspn(id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789");
    return !w->mistral || (good == len && len == BC_MADE_ID_BYTES - 1);
}

static void put_id(writer *w, const char *key, const char *id)
{
    char made[BC_MADE_ID_BYTES];
    if (!may_have_id(w, id)) {
        bc_make_id(id, strlen(id), 0, made);
        id = made;
    }
    bc_out_member(&w->out, key, id);
}

static void put_text_part(bc_out *out, const char *text, size_t len)
{
    bc_out_open(out, '{');
    bc_out_member(out, "type", "text");
    bc_out_key(out, "text");
    bc_out_string(out, text, len);
    bc_out_close(out, '}');
}

static void put_image_part(bc_out *out, const bc_part *part)
{
    bc_out_open(out, '{');
    bc_out_member(out, "type", "image_url");
    bc_out_key(out, "image_url");
    bc_out_open(out, '{');
    bc_out_key(out, "url");
    bc_buf url;
    bc_buf_init(&url, BC_JSON_MAX_BYTES);
    if (out->rc == 0) out->rc = bc_buf_appendf(&url, "data:%s;base64,", part->media_type);
    if (out->rc == 0) out->rc = bc_buf_append_string(&url, part->data);
    bc_out_string(out, bc_buf_data(&url), url.len);
    bc_buf_clear(&url);
    bc_out_close(out, '}');
    bc_out_close(out, '}');
}

static size_t image_count(const bc_message *message)
{
    size_t images = 0, count = bc_message_part_count(message);
    for (size_t i = 0; i < count; i++)
        images += bc_message_part(message, i).text == NULL;
    return images;
}

/* A string where there is only text: some servers read nothing else. */
static int put_user(writer *w, const bc_message *message)
{
    bc_out_open(&w->out, '{');
    bc_out_member(&w->out, "role", "user");
    bc_out_key(&w->out, "content");
    size_t count = bc_message_part_count(message);
    if (image_count(message) == 0) {
        bc_buf text;
        bc_buf_init(&text, BC_JSON_MAX_BYTES);
        if (w->out.rc == 0) w->out.rc = bc_message_text(message, &text);
        bc_out_string(&w->out, bc_buf_data(&text), text.len);
        bc_buf_clear(&text);
    } else {
        bc_out_open(&w->out, '[');
        for (size_t i = 0; i < count; i++) {
            bc_part part = bc_message_part(message, i);
            if (part.text != NULL && part.text_len > 0) {
                put_text_part(&w->out, part.text, part.text_len);
            } else if (part.text == NULL) {
                put_image_part(&w->out, &part);
            }
        }
        bc_out_close(&w->out, ']');
    }
    bc_out_close(&w->out, '}');
    return w->out.rc;
}

/* There is no is_error on this wire, and no image: the error goes into the text, the image into a
 * user message after all results of the turn. */
static void put_result(writer *w, const bc_message *message)
{
    bc_buf text;
    bc_buf_init(&text, BC_JSON_MAX_BYTES);
    bc_out_open(&w->out, '{');
    bc_out_member(&w->out, "role", "tool");
    put_id(w, "tool_call_id", bc_json_get_string(message->view, "tool_call_id", NULL));
    int rc = bc_message_is_error(message) ? bc_buf_append_string(&text, "Error: ") : 0;
    if (rc == 0) rc = bc_message_text(message, &text);
    if (rc == 0 && text.len == 0 && image_count(message) > 0) {
        rc = bc_buf_append_string(&text, "The image follows in the next user message.");
    }
    if (w->out.rc == 0) w->out.rc = rc;
    bc_out_key(&w->out, "content");
    bc_out_string(&w->out, bc_buf_data(&text), text.len);
    bc_out_close(&w->out, '}');
    bc_buf_clear(&text);
}

static size_t put_results(writer *w, size_t at)
{
    const bc_request *request = w->request;
    size_t first = at, images = 0;
    while (at < request->message_count && request->messages[at].role == BC_ROLE_TOOL) {
        images += image_count(&request->messages[at]);
        put_result(w, &request->messages[at++]);
    }
    if (images == 0) return at;
    bc_out_open(&w->out, '{');
    bc_out_member(&w->out, "role", "user");
    bc_out_key(&w->out, "content");
    bc_out_open(&w->out, '[');
    for (size_t i = first; i < at; i++) {
        const bc_message *message = &request->messages[i];
        size_t count = bc_message_part_count(message);
        if (image_count(message) == 0) continue;
        const char *id = bc_json_get_string(message->view, "tool_call_id", NULL);
        bc_buf label;
        bc_buf_init(&label, BC_MODEL_MAX_ID_BYTES + 64);
        bc_buf_appendf(&label, "Images of the result of tool call %s:", id);
        put_text_part(&w->out, bc_buf_data(&label), label.len);
        bc_buf_clear(&label);
        for (size_t j = 0; j < count; j++) {
            bc_part part = bc_message_part(message, j);
            if (part.text == NULL) put_image_part(&w->out, &part);
        }
    }
    bc_out_close(&w->out, ']');
    bc_out_close(&w->out, '}');
    return at;
}

static int put_call(const bc_past_call *call, void *ud, barchan_error *err)
{
    writer *w = ud;
    bc_out *out = &w->out;
    bc_out_open(out, '{');
    put_id(w, "id", call->id);
    bc_out_member(out, "type", "function");
    bc_out_key(out, "function");
    bc_out_open(out, '{');
    bc_out_key(out, "name");
    bc_out_tool_name(out, call->name, strlen(call->name), BC_MODEL_MAX_ECHO_NAME_BYTES);
    bc_out_key(out, "arguments");
    bc_out_string(out, call->arguments.data, call->arguments.len);
    bc_out_close(out, '}');
    bc_out_close(out, '}');
    return 0;
}

static int check_id(const bc_past_call *call, void *ud, barchan_error *err)
{
    (void)err;
    return may_have_id(ud, call->id) ? 0 : BARCHAN_EINVAL;
}

static int put_assistant(writer *w, const bc_message *message, barchan_error *err)
{
    /* In a turn of the server's own bytes an id cannot be mapped, as its result's is. */
    int rc = bc_message_each_call(message, check_id, w, NULL);
    if (rc == 0) rc = bc_message_splice(message, &w->origin, &w->out, err);
    if (rc == 1) return 0;
    if (rc == BARCHAN_ENOMEM) return bc_error_nomem(err);
    if (rc < 0 && rc != BARCHAN_EINVAL) return rc;
    size_t len;
    const char *text = bc_json_get_string(message->view, "text", &len);
    size_t calls = bc_message_call_count(message);
    bc_out_open(&w->out, '{');
    bc_out_member(&w->out, "role", "assistant");
    bc_out_key(&w->out, "content");
    if (len == 0 && calls > 0) {
        bc_out_word(&w->out, "null");
    } else {
        bc_out_string(&w->out, text != NULL ? text : "", len);
    }
    if (calls > 0) {
        bc_out_key(&w->out, "tool_calls");
        bc_out_open(&w->out, '[');
        rc = bc_message_each_call(message, put_call, w, err);
        bc_out_close(&w->out, ']');
    }
    bc_out_close(&w->out, '}');
    return rc;
}

static int put_messages(writer *w, barchan_error *err)
{
    bc_request *request = w->request;
    int rc = 0;
    bc_out_open(&w->out, '[');
    if (request->system != NULL) {
        bc_out_open(&w->out, '{');
        bc_out_member(&w->out, "role", "system");
        bc_out_key(&w->out, "content");
        bc_out_string(&w->out, request->system, request->system_len);
        bc_out_close(&w->out, '}');
    }
    bc_body_settled(&w->out, request);
    for (size_t at = 0; at < request->message_count && rc == 0;) {
        const bc_message *message = &request->messages[at];
        bc_body_message(&w->out, request, at);
        if (message->role == BC_ROLE_TOOL) {
            at = put_results(w, at);
            continue;
        }
        rc = message->role == BC_ROLE_USER ? put_user(w, message) : put_assistant(w, message, err);
        at++;
    }
    bc_body_messages_end(&w->out, request);
    bc_out_close(&w->out, ']');
    return rc;
}

static void put_settings(writer *w, const bc_model_info *model)
{
    const bc_request *request = w->request;
    bc_out *out = &w->out;
    int64_t max_tokens = request->max_tokens > 0 ? request->max_tokens : model->max_tokens;
    /* OpenAI's own models refuse the old name; compatible servers know no other, or ignore the new
     * one, which would leave the answer without a limit. */
    const char *name =
        bc_provider_host_is(model, "api.openai.com") ? "max_completion_tokens" : "max_tokens";
    if (max_tokens > 0 && bc_body_key(out, request, name)) bc_out_integer(out, max_tokens);
    if (request->temperature.len > 0 && bc_body_key(out, request, "temperature")) {
        bc_out_raw(out, request->temperature.data, request->temperature.len);
    }
    if (request->stop != NULL && bc_body_key(out, request, "stop")) {
        size_t i;
        json_t *item;
        bc_out_open(out, '[');
        json_array_foreach(request->stop, i, item)
        {
            bc_out_string(out, json_string_value(item), json_string_length(item));
        }
        bc_out_close(out, ']');
    }
    if (request->effort != NULL && bc_body_key(out, request, "reasoning_effort")) {
        bc_out_string(out, request->effort, strlen(request->effort));
    }
    if (request->schema.len > 0 && bc_body_key(out, request, "response_format")) {
        bc_out_open(out, '{');
        bc_out_member(out, "type", "json_schema");
        bc_out_key(out, "json_schema");
        bc_out_open(out, '{');
        bc_out_member(out, "name", "answer");
        bc_out_key(out, "schema");
        bc_out_raw(out, request->schema.data, request->schema.len);
        bc_out_close(out, '}');
        bc_out_close(out, '}');
    }
    if (!request->stream) return;
    if (bc_body_key(out, request, "stream")) bc_out_word(out, "true");
    /* Mistral counts without being asked, and refuses the question. */
    if (!w->mistral && bc_body_key(out, request, "stream_options")) {
        bc_out_word(out, "{\"include_usage\":true}");
    }
}

int bc_openai_render(const bc_model_info *model, bc_request *request, bc_buf *body,
                     barchan_error *err)
{
    writer w = {.out = {.buf = body},
                .request = request,
                .origin = {"openai", model->name, model->base_url},
                .mistral = bc_provider_host_is(model, "mistral.ai")};
    bc_out_open(&w.out, '{');
    if (bc_body_key(&w.out, request, "model")) {
        bc_out_string(&w.out, model->name, strlen(model->name));
    }
    put_settings(&w, model);
    bc_openai_put_tools(&w.out, request, 1);
    if (bc_body_key(&w.out, request, "messages")) {
        int rc = put_messages(&w, err);
        if (rc < 0 && w.out.rc == 0) return rc;
    }
    bc_body_extra(&w.out, request);
    bc_out_close(&w.out, '}');
    return w.out.rc < 0 ? bc_error_set(err, w.out.rc, "the request is too large") : 0;
}
