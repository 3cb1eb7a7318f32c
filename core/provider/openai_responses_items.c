/* Responses: the items of an output, what they say, and what goes back of them. */
#include "openai_responses.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/cleanup.h"

/* ---- the list ---- */

static void init_item(bc_response_item *item, int64_t index)
{
    *item = (bc_response_item){.index = index};
    bc_buf_init(&item->raw, BC_MODEL_MAX_TURN_BYTES);
    bc_text_init(&item->text);
    bc_text_init(&item->thought);
}

static void clear_item(bc_response_item *item)
{
    bc_buf_clear(&item->raw);
    bc_text_clear(&item->text);
    bc_text_clear(&item->thought);
}

int bc_response_item_at(bc_responses_reader *reader, int64_t index, bc_response_item **out,
                        barchan_error *err)
{
    size_t at = reader->item_count;
    while (at > 0 && reader->items[at - 1].index > index)
        at--;
    if (at > 0 && reader->items[at - 1].index == index) {
        *out = &reader->items[at - 1];
        return 0;
    }
    if (reader->item_count >= BC_MODEL_MAX_BLOCKS) {
        return bc_error_set(err, BARCHAN_ELIMIT, "the turn has more than %d items",
                            BC_MODEL_MAX_BLOCKS);
    }
    bc_response_item *items = realloc(reader->items, (reader->item_count + 1) * sizeof *items);
    if (items == NULL) return bc_error_nomem(err);
    reader->items = items;
    memmove(&items[at + 1], &items[at], (reader->item_count - at) * sizeof *items);
    reader->item_count++;
    init_item(&items[at], index);
    *out = &items[at];
    return 0;
}

void bc_response_clear_items(bc_responses_reader *reader)
{
    for (size_t i = 0; i < reader->item_count; i++)
        clear_item(&reader->items[i]);
    free(reader->items);
    reader->items = NULL;
    reader->item_count = 0;
}

int bc_response_item_done(bc_responses_reader *reader, int64_t index, bc_json_span span,
                          barchan_error *err)
{
    bc_response_item *item = NULL;
    int rc = bc_response_item_at(reader, index, &item, err);
    if (rc < 0 || span.len == 0 || span.data[0] != '{') return rc;
    rc = bc_turn_charge(&reader->total_bytes, span.len);
    bc_buf_reset(&item->raw);
    if (rc == 0) rc = bc_buf_append(&item->raw, span.data, span.len);
    return bc_turn_failed(rc, err);
}

int bc_response_take_output(bc_responses_reader *reader, bc_json_span list, barchan_error *err)
{
    bc_json_iter iter;
    size_t done = 0, count = 0;
    for (size_t i = 0; i < reader->item_count; i++)
        done += reader->items[i].raw.len > 0;
    int rc = bc_json_iter_init(&iter, list, err);
    while (rc == 1 && bc_json_iter_next(&iter, NULL) == 1)
        count += iter.type == BC_JSON_OBJECT_BEGIN;
    if (count <= done) return rc < 0 ? rc : 0;
    bc_json_iter_init(&iter, list, NULL);
    for (int64_t index = 0; (rc = bc_json_iter_next(&iter, err)) == 1; index++) {
        rc = bc_response_item_done(reader, index, iter.value, err);
        if (rc < 0) return rc;
    }
    return rc;
}

/* ---- what an item says ---- */

int bc_response_announce(bc_responses_reader *reader, bc_response_item *item, const char *name)
{
    if (item->announced || *name == '\0') return 0;
    item->announced = 1;
    return bc_reply_announce(reader->reply, (bc_json_span){name, strlen(name)});
}

/* Appends the strings at `key` of a list's elements that have one of these types. */
static int add_texts(const json_t *item, const char *list, const char *type, const char *key,
                     const char *between, bc_buf *out)
{
    size_t i, len;
    const json_t *part;
    json_array_foreach(json_object_get(item, list), i, part)
    {
        const char *is = bc_json_get_string(part, "type", NULL);
        const char *text = bc_json_get_string(part, key, &len);
        if (is == NULL || strcmp(is, type) != 0 || text == NULL) continue;
        int rc = out->len > 0 ? bc_buf_append_string(out, between) : 0;
        if (rc == 0) rc = bc_buf_append(out, text, len);
        if (rc < 0) return rc;
    }
    return 0;
}

static int begins_with(const bc_buf *whole, const char *start, size_t len)
{
    return whole->len >= len && (len == 0 || memcmp(bc_buf_data(whole), start, len) == 0);
}

/* The texts of all messages. What was shown by deltas is its beginning, unless the server's deltas
 * and its items disagree: then the reply begins again. */
static int settle_text(bc_responses_reader *reader, const bc_buf *text, const bc_buf *thought)
{
    bc_reply *reply = reader->reply;
    int rc = 0;
    if (!begins_with(text, bc_buf_data(&reply->text), reply->text.len)) {
        bc_stop stop = reply->stop;
        bc_usage usage = reply->usage;
        char label[sizeof reply->raw_stop];
        memcpy(label, reply->raw_stop, sizeof label);
        rc = bc_reply_restart(reply);
        bc_reply_take_stop(reply, stop, label);
        reply->usage = usage;
    }
    if (rc == 0 && reply->reasoning.len == 0) {
        rc = bc_reply_reasoning(reply, (bc_json_span){bc_buf_data(thought), thought->len});
    }
    if (rc < 0) return rc;
    size_t shown = reply->text.len;
    return bc_reply_text(reply, (bc_json_span){bc_buf_data(text) + shown, text->len - shown});
}

static int add_string(bc_buf *to, const json_t *view, const char *key)
{
    size_t len = 0;
    const char *text = bc_json_get_string(view, key, &len);
    return text != NULL ? bc_buf_append(to, text, len) : 0;
}

static int add_call(bc_responses_reader *reader, bc_response_item *item, const json_t *view,
                    const char *arguments, barchan_error *err)
{
    bc_call *call = NULL;
    int rc = bc_reply_add_call(reader->reply, &call, err);
    if (rc < 0) return rc;
    item->has_call = 1;
    item->call = reader->reply->call_count - 1;
    rc = add_string(&call->id, view, "call_id");
    if (rc == 0 && call->id.len == 0) rc = add_string(&call->id, view, "id");
    if (rc == 0) rc = add_string(&call->name, view, "name");
    if (rc == 0) rc = add_string(&call->arguments, view, arguments);
    if (rc == 0) rc = bc_response_announce(reader, item, bc_buf_data(&call->name));
    const char *status = bc_json_get_string(view, "status", NULL);
    if (status != NULL && strcmp(status, "incomplete") == 0) {
        snprintf(call->error, sizeof call->error, "not run: the call was cut off");
    }
    return rc;
}

/* The view of an item that is done, and its type; "" for any other. */
static int look_at(const bc_response_item *item, json_t **view, const char **type,
                   barchan_error *err)
{
    *type = "";
    if (item->raw.len == 0) return 0;
    int rc = bc_json_view(view, bc_buf_data(&item->raw), item->raw.len, 0, err);
    const char *is = rc == 0 ? bc_json_get_string(*view, "type", NULL) : NULL;
    if (is != NULL) *type = is;
    return rc;
}

static int take_words(bc_response_item *item, bc_buf *text, bc_buf *thought, barchan_error *err)
{
    cleanup_json json_t *view = NULL;
    const char *type;
    int rc = look_at(item, &view, &type, err);
    if (rc == 0 && item->raw.len == 0) { /* never done: what was shown is all there is */
        rc = bc_text_settle(&item->text, 1, NULL);
        if (rc < 0) return rc;
        return bc_buf_append(text, bc_buf_data(&item->text.plain), item->text.plain.len);
    }
    if (rc == 0 && strcmp(type, "message") == 0) {
        rc = add_texts(view, "content", "output_text", "text", "", text);
    } else if (rc == 0 && strcmp(type, "reasoning") == 0) {
        rc = add_texts(view, "summary", "summary_text", "text", "\n\n", thought);
        if (rc == 0) rc = add_texts(view, "content", "reasoning_text", "text", "\n\n", thought);
    }
    return rc;
}

/* A custom tool's free text is no object of arguments: bc_reply_finish refuses to run it. */
static int take_acts(bc_responses_reader *reader, bc_response_item *item, barchan_error *err)
{
    cleanup_json json_t *view = NULL;
    const char *type;
    int rc = look_at(item, &view, &type, err);
    if (rc < 0) return rc;
    if (strcmp(type, "function_call") == 0) return add_call(reader, item, view, "arguments", err);
    if (strcmp(type, "custom_tool_call") == 0) return add_call(reader, item, view, "input", err);
    if (strcmp(type, "message") != 0) return 0;
    return add_texts(view, "content", "refusal", "refusal", "", &reader->reply->refusal);
}

int bc_response_finish_items(bc_responses_reader *reader, barchan_error *err)
{
    cleanup_buf bc_buf text, thought;
    bc_buf_init(&text, 3 * (size_t)BC_MODEL_MAX_TURN_BYTES);
    bc_buf_init(&thought, 3 * (size_t)BC_MODEL_MAX_TURN_BYTES);
    int rc = 0;
    for (size_t i = 0; i < reader->item_count && rc == 0; i++)
        rc = take_words(&reader->items[i], &text, &thought, err);
    /* This may begin the reply again, so it comes before the calls. */
    if (rc == 0) rc = settle_text(reader, &text, &thought);
    for (size_t i = 0; i < reader->item_count && rc == 0; i++)
        rc = take_acts(reader, &reader->items[i], err);
    if (rc == 0 && reader->reply->refusal.len > 0) reader->reply->stop = BC_STOP_REFUSAL;
    return bc_turn_failed(rc, err);
}
