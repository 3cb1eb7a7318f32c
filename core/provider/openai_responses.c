/*
 * The OpenAI Responses adapter: its table and its reader.
 *
 * Deltas are for showing; the truth is in the items as they are when they are done, and in the last
 * word (response.completed, .incomplete, .failed). Items are told apart by their place in the
 * output: some servers give one item another id in each event.
 */
#include "openai_responses.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int endpoint(const bc_model_info *model, const bc_request *request, bc_buf *url,
                    barchan_error *err)
{
    return bc_provider_url(model->base_url, "/v1", 1, "/responses", url, err);
}

static void *reader_create(bc_reply *reply)
{
    bc_responses_reader *reader = calloc(1, sizeof *reader);
    if (reader != NULL) reader->reply = reply;
    return reader;
}

static void reader_destroy(void *self)
{
    if (self == NULL) return;
    bc_response_clear_items(self);
    free(self);
}

/* ---- the response object ---- */

static void take_head(bc_responses_reader *reader, const json_t *response)
{
    reader->begun = 1;
    bc_reply_label(reader->reply->id, sizeof reader->reply->id, response, "id");
    bc_reply_label(reader->reply->model, sizeof reader->reply->model, response, "model");
}

/* `input_tokens` includes the cached ones. */
static void take_usage(bc_reply *reply, const json_t *usage)
{
    const json_t *in = bc_json_get_object(usage, "input_tokens_details");
    bc_usage *to = &reply->usage;
    int64_t input = bc_reply_count(usage, "input_tokens");
    if (!json_is_object(usage)) return;
    to->cache_read = bc_reply_count(in, "cached_tokens");
    to->cache_write = bc_reply_count(in, "cache_write_tokens");
    to->output = bc_reply_count(usage, "output_tokens");
    to->reasoning =
        bc_reply_count(bc_json_get_object(usage, "output_tokens_details"), "reasoning_tokens");
    if (to->cache_read > 0) input -= to->cache_read;
    if (to->cache_write > 0) input -= to->cache_write;
    to->input = bc_reply_count(usage, "input_tokens") < 0 ? -1 : input < 0 ? 0 : input;
}

static bc_stop why_incomplete(const char *reason)
{
    if (reason == NULL) return BC_STOP_ERROR;
    if (strcmp(reason, "max_output_tokens") == 0) return BC_STOP_MAX_TOKENS;
    if (strcmp(reason, "content_filter") == 0) return BC_STOP_CONTENT_FILTER;
    return BC_STOP_ERROR;
}

/* The label of a turn that was not completed is the reason, which says more than the status. */
static int take_status(bc_responses_reader *reader, const json_t *response, barchan_error *err)
{
    const char *status = bc_json_get_string(response, "status", NULL);
    const json_t *error = json_object_get(response, "error");
    if (json_is_object(error)) {
        return bc_provider_error(err, 200, error, reader->reply->secrets);
    }
    if (status == NULL || strcmp(status, "completed") == 0) {
        bc_reply_take_stop(reader->reply, BC_STOP_END_TURN, "completed");
        return 0;
    }
    if (strcmp(status, "incomplete") == 0) {
        const char *reason =
            bc_json_get_string(bc_json_get_object(response, "incomplete_details"), "reason", NULL);
        bc_reply_take_stop(reader->reply, why_incomplete(reason),
                           reason != NULL ? reason : "incomplete");
        return 0;
    }
    return bc_error_set(err, BARCHAN_EPROTOCOL, "the response ended as '%.40s'", status);
}

/* The last word, or a whole body. */
static int take_response(bc_responses_reader *reader, const json_t *response, bc_json_span text,
                         barchan_error *err)
{
    bc_json_span output;
    take_head(reader, response);
    take_usage(reader->reply, bc_json_get_object(response, "usage"));
    int rc = take_status(reader, response, err);
    if (rc < 0) return rc;
    reader->terminal = 1;
    rc = bc_json_member(text, "output", &output, err);
    return rc == 1 ? bc_response_take_output(reader, output, err) : rc;
}

/* ---- events ---- */

static int show_text(bc_responses_reader *reader, bc_response_item *item, bc_json_span delta)
{
    bc_json_span fresh;
    int rc = bc_text_append(&item->text, delta);
    if (rc == 0) rc = bc_text_settle(&item->text, 0, &fresh);
    return rc < 0 ? rc : bc_reply_text(reader->reply, fresh);
}

static int show_thought(bc_responses_reader *reader, bc_response_item *item, bc_json_span delta)
{
    bc_json_span fresh;
    int rc = bc_text_append(&item->thought, delta);
    if (rc == 0) rc = bc_text_settle(&item->thought, 0, &fresh);
    return rc < 0 ? rc : bc_reply_reasoning(reader->reply, fresh);
}

static int begin_item(bc_responses_reader *reader, bc_response_item *item, const json_t *view)
{
    const json_t *added = bc_json_get_object(view, "item");
    const char *type = bc_json_get_string(added, "type", NULL);
    const char *name = bc_json_get_string(added, "name", NULL);
    int is_call = type != NULL &&
                  (strcmp(type, "function_call") == 0 || strcmp(type, "custom_tool_call") == 0);
    return is_call && name != NULL ? bc_response_announce(reader, item, name) : 0;
}

/* A summary has parts, which are paragraphs. */
static int begin_part(bc_responses_reader *reader, bc_response_item *item)
{
    static const char blank_line[] = "\"\\n\\n\"";
    if (bc_text_is_empty(&item->thought)) return 0;
    return show_thought(reader, item, (bc_json_span){blank_line, sizeof blank_line - 1});
}

static int take_item_event(bc_responses_reader *reader, const char *type, const json_t *view,
                           bc_json_span data, barchan_error *err)
{
    bc_json_span value;
    int64_t index = bc_json_get_integer(view, "output_index", 0);
    bc_response_item *item = NULL;
    int rc = bc_response_item_at(reader, index, &item, err);
    if (rc < 0) return rc;
    reader->begun = 1;
    if (strcmp(type, "output_item.added") == 0) return begin_item(reader, item, view);
    if (strcmp(type, "reasoning_summary_part.added") == 0) return begin_part(reader, item);
    if (strcmp(type, "output_item.done") == 0) {
        rc = bc_json_member(data, "item", &value, err);
        return rc == 1 ? bc_response_item_done(reader, index, value, err) : rc;
    }
    return 0;
}

/* A piece of a text. Most events are; no tree is made for them. */
static int take_delta(bc_responses_reader *reader, const char *type, int64_t index,
                      bc_json_span delta, barchan_error *err)
{
    bc_response_item *item = NULL;
    int rc = bc_response_item_at(reader, index, &item, err);
    if (rc < 0) return rc;
    reader->begun = 1;
    if (delta.len == 0) return 0;
    int is_text = strcmp(type, "response.output_text.delta") == 0;
    rc = bc_turn_charge(&reader->total_bytes, delta.len);
    if (rc == 0) {
        rc = is_text ? show_text(reader, item, delta) : show_thought(reader, item, delta);
    }
    return bc_turn_failed(rc, err);
}

static int is_delta(const char *type)
{
    return strcmp(type, "response.output_text.delta") == 0 ||
           strcmp(type, "response.reasoning_text.delta") == 0 ||
           strcmp(type, "response.reasoning_summary_text.delta") == 0;
}

static int is_item_event(const char *type)
{
    static const char *const known[] = {
        "output_item.added",
        "output_item.done",
        "reasoning_summary_part.added",
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcmp(type, known[i]) == 0) return 1;
    }
    return 0;
}

/* The specification's form is flat; real servers nest it. */
static int take_error(bc_responses_reader *reader, const json_t *view, barchan_error *err)
{
    const json_t *nested = json_object_get(view, "error");
    return bc_provider_error(err, 200,
                             json_is_object(nested) || json_is_string(nested) ? nested : view,
                             reader->reply->secrets);
}

static int take_event(bc_responses_reader *reader, const json_t *view, bc_json_span data,
                      barchan_error *err)
{
    bc_json_span response;
    const char *type = bc_json_get_string(view, "type", NULL);
    if (type == NULL || strcmp(type, "error") == 0) {
        int is_error = type != NULL || json_object_get(view, "error") != NULL;
        return is_error ? take_error(reader, view, err) : 0;
    }
    if (strncmp(type, "response.", 9) != 0) return 0;
    type += 9;
    if (is_item_event(type)) return take_item_event(reader, type, view, data, err);
    const json_t *object = bc_json_get_object(view, "response");
    if (object == NULL) return 0;
    if (strcmp(type, "completed") != 0 && strcmp(type, "incomplete") != 0 &&
        strcmp(type, "failed") != 0 && strcmp(type, "cancelled") != 0) {
        take_head(reader, object);
        return 0;
    }
    int rc = bc_json_member(data, "response", &response, err);
    return rc == 1 ? take_response(reader, object, response, err) : rc;
}

static int event(void *self, const char *name, bc_json_span data, barchan_error *err)
{
    enum { TYPE, INDEX, DELTA, MEMBERS };
    bc_json_wanted members[MEMBERS] = {{.key = "type"}, {.key = "output_index"}, {.key = "delta"}};
    char type[64]; /* no delta's is as long */
    bc_responses_reader *reader = self;
    cleanup_json json_t *view = NULL;
    /* Nothing counts after the last word; some servers add an end marker, which is none here. */
    if (reader->terminal || (data.len == 6 && memcmp(data.data, "[DONE]", 6) == 0)) return 0;
    int rc = bc_json_members(data, members, MEMBERS, err);
    if (rc == 0 && bc_json_span_label(members[TYPE].value, type, sizeof type) && is_delta(type)) {
        int64_t index = bc_json_span_integer(members[INDEX].value, 0);
        return take_delta(reader, type, index, members[DELTA].value, err);
    }
    if (rc == 0) rc = bc_json_view(&view, data.data, data.len, 0, err);
    if (rc < 0) bc_error_context(err, "an event of the stream");
    return rc < 0 ? rc : take_event(reader, view, data, err);
}

static bc_progress progress(const void *self)
{
    const bc_responses_reader *reader = self;
    return reader->terminal ? BC_PROGRESS_ENDED : BC_PROGRESS_OPEN;
}

static int end(void *self, barchan_error *err)
{
    bc_responses_reader *reader = self;
    if (!reader->terminal) return bc_provider_incomplete(reader->begun, err);
    int rc = bc_response_finish_items(reader, err);
    if (rc == 0) rc = bc_reply_finish(reader->reply, err);
    return rc < 0 ? rc : bc_responses_turn(reader, err);
}

static int body(void *self, bc_json_span text, barchan_error *err)
{
    bc_responses_reader *reader = self;
    cleanup_json json_t *view = NULL;
    int rc = bc_json_view(&view, text.data, text.len, 0, err);
    if (rc < 0) return rc;
    const json_t *error = json_object_get(view, "error");
    if (json_is_object(error) || json_is_string(error)) return take_error(reader, view, err);
    if (bc_json_get_array(view, "output") == NULL) {
        return bc_error_set(err, BARCHAN_EPROTOCOL, "the answer is no response: it has no output");
    }
    rc = take_response(reader, view, text, err);
    return rc < 0 ? rc : end(self, err);
}

const bc_provider bc_provider_openai_responses = {
    .name = "openai-responses",
    .default_base_url = "https://api.openai.com/v1",
    .endpoint = endpoint,
    .headers = bc_provider_bearer,
    .render = bc_responses_render,
    .reader_create = reader_create,
    .reader_destroy = reader_destroy,
    .event = event,
    .progress = progress,
    .end = end,
    .body = body,
    .request_id_header = "x-request-id",
};
