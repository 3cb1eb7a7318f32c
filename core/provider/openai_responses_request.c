/* Responses: the request body. Nothing is kept on the server: the whole conversation goes each
 * time. */
#include "openai_responses.h"

#include <string.h>
#include <strings.h>
#include "base/cleanup.h"
#include "openai_tools.h"

typedef struct writer {
    bc_out out;
    bc_request *request;
    bc_origin origin;
    bc_buf turn; /* the last turn that went back as it came */
} writer;

static void put_text(bc_out *out, const char *type, const char *text, size_t len)
{
    bc_out_open(out, '{');
    bc_out_member(out, "type", type);
    bc_out_key(out, "text");
    bc_out_string(out, text, len);
    bc_out_close(out, '}');
}

static void put_image(bc_out *out, const bc_part *part)
{
    cleanup_buf bc_buf url;
    bc_buf_init(&url, BC_JSON_MAX_BYTES);
    bc_out_open(out, '{');
    bc_out_member(out, "type", "input_image");
    bc_out_key(out, "image_url");
    if (out->rc == 0) out->rc = bc_buf_appendf(&url, "data:%s;base64,", part->media_type);
    if (out->rc == 0) out->rc = bc_buf_append_string(&url, part->data);
    bc_out_string(out, bc_buf_data(&url), url.len);
    bc_out_close(out, '}');
}

static void put_parts(bc_out *out, const bc_message *message)
{
    size_t count = bc_message_part_count(message);
    for (size_t i = 0; i < count; i++) {
        bc_part part = bc_message_part(message, i);
        if (part.text == NULL) put_image(out, &part);
        if (part.text != NULL && part.text_len > 0) {
            put_text(out, "input_text", part.text, part.text_len);
        }
    }
}

static void put_user(bc_out *out, const bc_message *message)
{
    bc_out_open(out, '{');
    bc_out_member(out, "role", "user");
    bc_out_key(out, "content");
    bc_out_open(out, '[');
    put_parts(out, message);
    bc_out_close(out, ']');
    bc_out_close(out, '}');
}

/* Whether the turn that went back called a custom tool by this id: its answer has another type. */
static int is_custom(const bc_buf *turn, const char *id)
{
    cleanup_json json_t *view = NULL;
    size_t i;
    const json_t *item;
    if (turn->len == 0 || bc_json_view(&view, bc_buf_data(turn), turn->len, 0, NULL) < 0) return 0;
    json_array_foreach(bc_json_get_array(view, "output"), i, item)
    {
        const char *type = bc_json_get_string(item, "type", NULL);
        const char *call = bc_json_get_string(item, "call_id", NULL);
        if (type == NULL || call == NULL || strcmp(type, "custom_tool_call") != 0) continue;
        if (strcmp(call, id) == 0) return 1;
    }
    return 0;
}

/* There is no is_error on this wire: the error goes into the text. */
static void put_result(writer *w, const bc_message *message)
{
    bc_out *out = &w->out;
    const char *id = bc_json_get_string(message->view, "tool_call_id", NULL);
    const char *error = bc_message_is_error(message) ? "Error: " : "";
    size_t count = bc_message_part_count(message), images = 0;
    for (size_t i = 0; i < count; i++)
        images += bc_message_part(message, i).text == NULL;
    bc_out_open(out, '{');
    bc_out_member(out, "type",
                  is_custom(&w->turn, id) ? "custom_tool_call_output" : "function_call_output");
    bc_out_member(out, "call_id", id);
    bc_out_key(out, "output");
    if (images > 0) {
        bc_out_open(out, '[');
        if (*error != '\0') put_text(out, "input_text", error, strlen(error));
        put_parts(out, message);
        bc_out_close(out, ']');
    } else {
        cleanup_buf bc_buf text;
        bc_buf_init(&text, BC_JSON_MAX_BYTES);
        int rc = bc_buf_append_string(&text, error);
        if (rc == 0) rc = bc_message_text(message, &text);
        if (out->rc == 0) out->rc = rc;
        bc_out_string(out, bc_buf_data(&text), text.len);
    }
    bc_out_close(out, '}');
}

static int put_call(const bc_past_call *call, void *ud, barchan_error *err)
{
    bc_out *out = ud;
    bc_out_open(out, '{');
    bc_out_member(out, "type", "function_call");
    bc_out_member(out, "call_id", call->id);
    bc_out_key(out, "name");
    bc_out_tool_name(out, call->name, strlen(call->name), BC_MODEL_MAX_ECHO_NAME_BYTES);
    bc_out_key(out, "arguments");
    bc_out_string(out, call->arguments.data, call->arguments.len);
    bc_out_close(out, '}');
    return 0;
}

/* The items of a turn that came from here, as they came. */
static int splice(writer *w)
{
    bc_json_span list;
    bc_json_iter iter;
    bc_json_span turn = {bc_buf_data(&w->turn), w->turn.len};
    if (bc_json_member(turn, "output", &list, NULL) != 1 || list.data[0] != '[') return 0;
    bc_json_iter_init(&iter, list, NULL);
    while (bc_json_iter_next(&iter, NULL) == 1)
        bc_out_raw(&w->out, iter.value.data, iter.value.len);
    return 1;
}

static int put_assistant(writer *w, const bc_message *message, barchan_error *err)
{
    bc_out *out = &w->out;
    bc_buf_reset(&w->turn);
    int rc = bc_message_raw(message, &w->origin, &w->turn, err);
    if (rc < 0) return rc;
    if (rc == 1 && splice(w)) return 0;
    bc_buf_reset(&w->turn);
    size_t len = 0;
    const char *text = bc_json_get_string(message->view, "text", &len);
    if (len > 0) {
        bc_out_open(out, '{');
        bc_out_member(out, "type", "message");
        bc_out_member(out, "role", "assistant");
        bc_out_key(out, "content");
        bc_out_open(out, '[');
        put_text(out, "output_text", text, len);
        bc_out_close(out, ']');
        bc_out_close(out, '}');
    }
    return bc_message_each_call(message, put_call, out, err);
}

static int put_input(writer *w, barchan_error *err)
{
    bc_request *request = w->request;
    int rc = 0;
    bc_out_open(&w->out, '[');
    bc_body_settled(&w->out, request);
    for (size_t i = 0; i < request->message_count && rc == 0; i++) {
        const bc_message *message = &request->messages[i];
        bc_body_message(&w->out, request, i);
        if (message->role == BC_ROLE_USER) put_user(&w->out, message);
        if (message->role == BC_ROLE_TOOL) put_result(w, message);
        if (message->role == BC_ROLE_ASSISTANT) rc = put_assistant(w, message, err);
    }
    bc_body_messages_end(&w->out, request);
    bc_out_close(&w->out, ']');
    return rc;
}

/* Thoughts come back encrypted only when asked for, and models that do not think refuse the
 * question. Of OpenAI's those are an old and closed set; other servers are not asked. */
static int gives_encrypted_thoughts(const bc_model_info *model)
{
    static const char *const unthinking[] = {"gpt-3", "gpt-4", "chatgpt-"};
    if (!bc_provider_host_is(model, "api.openai.com")) return 0;
    for (size_t i = 0; i < sizeof unthinking / sizeof *unthinking; i++) {
        if (strncasecmp(model->name, unthinking[i], strlen(unthinking[i])) == 0) return 0;
    }
    return 1;
}

static void put_settings(writer *w, const bc_model_info *model)
{
    const bc_request *request = w->request;
    bc_out *out = &w->out;
    int64_t max_tokens = request->max_tokens > 0 ? request->max_tokens : model->max_tokens;
    if (max_tokens > 0 && bc_body_key(out, request, "max_output_tokens")) {
        bc_out_integer(out, max_tokens);
    }
    if (request->temperature.len > 0 && bc_body_key(out, request, "temperature")) {
        bc_out_raw(out, request->temperature.data, request->temperature.len);
    }
    if (request->effort != NULL && bc_body_key(out, request, "reasoning")) {
        bc_out_open(out, '{');
        bc_out_member(out, "effort", request->effort);
        bc_out_close(out, '}');
    }
    if (request->schema.len > 0 && bc_body_key(out, request, "text")) {
        bc_out_open(out, '{');
        bc_out_key(out, "format");
        bc_out_open(out, '{');
        bc_out_member(out, "type", "json_schema");
        bc_out_member(out, "name", "answer");
        bc_out_key(out, "schema");
        bc_out_raw(out, request->schema.data, request->schema.len);
        bc_out_close(out, '}');
        bc_out_close(out, '}');
    }
    if (bc_body_key(out, request, "store")) bc_out_word(out, "false");
    if (gives_encrypted_thoughts(model) && bc_body_key(out, request, "include")) {
        bc_out_word(out, "[\"reasoning.encrypted_content\"]");
    }
    if (request->stream && bc_body_key(out, request, "stream")) bc_out_word(out, "true");
}

int bc_responses_render(const bc_model_info *model, bc_request *request, bc_buf *body,
                        barchan_error *err)
{
    writer w = {.out = {.buf = body},
                .request = request,
                .origin = {"openai-responses", model->name, model->base_url}};
    if (request->stop != NULL) {
        return bc_error_set(err, BARCHAN_EINVAL,
                            "'stop' has no counterpart in the Responses API; leave it out, or use "
                            "the provider 'openai'");
    }
    bc_buf_init(&w.turn, 2 * (size_t)BC_MODEL_MAX_TURN_BYTES);
    bc_out_open(&w.out, '{');
    if (bc_body_key(&w.out, request, "model")) {
        bc_out_string(&w.out, model->name, strlen(model->name));
    }
    if (request->system != NULL && bc_body_key(&w.out, request, "instructions")) {
        bc_out_string(&w.out, request->system, request->system_len);
    }
    put_settings(&w, model);
    bc_openai_put_tools(&w.out, request, 0);
    int rc = bc_body_key(&w.out, request, "input") ? put_input(&w, err) : 0;
    bc_buf_clear(&w.turn);
    if (rc < 0 && w.out.rc == 0) return rc;
    bc_body_extra(&w.out, request);
    bc_out_close(&w.out, '}');
    return w.out.rc < 0 ? bc_error_set(err, w.out.rc, "the request is too large") : 0;
}
