/*
 * Tool calls in pieces. Servers disagree on how the pieces name their call, so:
 *  - in a whole answer each entry is a call of its own;
 *  - an id that is known decides, unless a name with arguments comes after complete ones, or the
 *    same list has it twice; an empty id or name is as good as none and overwrites nothing;
 *  - an index names its call, unless another id, or a new name after complete arguments, shows
 *    that the server gives every call the same index;
 *  - without both, several entries of one delta are told by position, a single one continues the
 *    last call, unless it begins a new one by name after complete arguments, or by another name
 *    before any.
 */
#include "openai_chat.h"

#include <stdlib.h>
#include <string.h>

typedef struct entry {
    int64_t index; /* -1: none */
    bc_json_span id, name, arguments, function, whole;
} entry;

static int is_text(bc_json_span span)
{
    return span.len > 2 && span.data[0] == '"';
}

static void read_entry(bc_json_span whole, entry *e)
{
    *e = (entry){.index = -1, .whole = whole};
    bc_json_iter iter;
    if (bc_json_iter_init(&iter, whole, NULL) != 1) return;
    while (bc_json_iter_next(&iter, NULL) == 1) {
        if (bc_json_iter_is(&iter, "id")) e->id = iter.value;
        if (bc_json_iter_is(&iter, "function")) e->function = iter.value;
        if (bc_json_iter_is(&iter, "index") && iter.type == BC_JSON_INTEGER) {
            json_t *view = NULL;
            if (bc_json_view(&view, whole.data, whole.len, 0, NULL) == 0) {
                e->index = bc_json_get_integer(view, "index", -1);
            }
            json_decref(view);
        }
    }
    if (e->function.len == 0) return;
    bc_json_member(e->function, "name", &e->name, NULL);
    bc_json_member(e->function, "arguments", &e->arguments, NULL);
}

static int same_text(const bc_text *text, bc_json_span span)
{
    bc_json_span have = bc_text_escaped(text);
    return have.len == span.len - 2 && memcmp(have.data, span.data + 1, have.len) == 0;
}

/* Complete arguments: nothing can follow but another call. The cost of asking is bounded, because a
 * server that repeats the name in every piece would have the whole looked at each time. */
static int is_whole(bc_chat_reader *reader, bc_chat_call *call)
{
    if (call->object.len > 0) return 1;
    bc_json_span escaped = bc_text_escaped(&call->arguments);
    if (escaped.len == 0 || escaped.data[escaped.len - 1] != '}') return 0;
    reader->looked_at += escaped.len;
    if (reader->looked_at > BC_MODEL_MAX_TURN_BYTES) return 0;
    if (bc_text_settle(&call->arguments, 0, NULL) < 0) return 0;
    return bc_json_validate(bc_buf_data(&call->arguments.plain), call->arguments.plain.len, NULL) ==
           0;
}

/* The last one, as below. */
static bc_chat_call *by_id(bc_chat_reader *reader, bc_json_span id)
{
    for (size_t i = reader->call_count; i-- > 0;) {
        if (same_text(&reader->calls[i].id, id)) return &reader->calls[i];
    }
    return NULL;
}

/* The last one: servers that reuse an index go on with the newest call of it. */
static bc_chat_call *by_index(bc_chat_reader *reader, int64_t index)
{
    for (size_t i = reader->call_count; i-- > 0;) {
        if (reader->calls[i].index == index) return &reader->calls[i];
    }
    return NULL;
}

static int has_arguments(const entry *e)
{
    return is_text(e->arguments) || (e->arguments.len > 0 && e->arguments.data[0] == '{');
}

static int extends(const bc_text *text, bc_json_span span)
{
    bc_json_span have = bc_text_escaped(text);
    return span.len - 2 >= have.len && memcmp(span.data + 1, have.data, have.len) == 0;
}

/* Another name while there are no arguments yet: a call without any, and the next one; or the next
 * piece of one name. A piece has an index and nothing else. */
static int is_another_name(const bc_chat_call *call, const entry *e)
{
    if (!bc_text_is_empty(&call->arguments) || extends(&call->name, e->name)) return 0;
    return e->index < 0 || (call->had_arguments && e->arguments.len > 0);
}

/* The same name without arguments only repeats what is known: taken for a new call, it would be one
 * that the model never made. */
static int begins_another(bc_chat_reader *reader, bc_chat_call *call, const entry *e)
{
    int knows_id = is_text(e->id) && !bc_text_is_empty(&call->id);
    if (knows_id && !same_text(&call->id, e->id)) return 1;
    if (!is_text(e->name) || bc_text_is_empty(&call->name)) return 0;
    if (knows_id && !has_arguments(e)) return 0;
    if (same_text(&call->name, e->name) && !has_arguments(e)) return 0;
    return is_whole(reader, call) || (!knows_id && is_another_name(call, e));
}

/* Two entries of one list with one id are two calls, unless the first shows by its index that it
 * goes on in the second. */
static int is_same_entry_twice(const bc_chat_reader *reader, const bc_chat_call *call,
                               const entry *e)
{
    return call->list == reader->lists && is_text(e->id) && !bc_text_is_empty(&call->id) &&
           is_text(e->name) && (e->index < 0 || e->index != call->index);
}

static bc_chat_call *find(bc_chat_reader *reader, const entry *e, size_t position, size_t count)
{
    bc_chat_call *call = NULL;
    if (reader->whole) return NULL;
    if (is_text(e->id) && (call = by_id(reader, e->id)) != NULL) {
        int is_new = is_same_entry_twice(reader, call, e) || begins_another(reader, call, e);
        return is_new ? NULL : call;
    }
    if (e->index >= 0) {
        call = by_index(reader, e->index);
    } else if (count > 1) {
        call = position < reader->call_count ? &reader->calls[position] : NULL;
    } else if (reader->call_count > 0) {
        call = &reader->calls[reader->call_count - 1];
    }
    return call != NULL && begins_another(reader, call, e) ? NULL : call;
}

static int add(bc_chat_reader *reader, bc_chat_call **out, barchan_error *err)
{
    if (reader->call_count >= BC_MODEL_MAX_TOOL_CALLS) {
        return bc_error_set(err, BARCHAN_ELIMIT, "the turn has more than %d tool calls",
                            BC_MODEL_MAX_TOOL_CALLS);
    }
    bc_chat_call *calls = realloc(reader->calls, (reader->call_count + 1) * sizeof *calls);
    if (calls == NULL) return bc_error_nomem(err);
    reader->calls = calls;
    bc_chat_call *call = &calls[reader->call_count++];
    memset(call, 0, sizeof *call);
    call->index = -1;
    bc_text_init(&call->id);
    bc_text_init(&call->name);
    bc_text_init(&call->arguments);
    bc_buf_init(&call->object, BC_MODEL_MAX_TURN_BYTES);
    bc_buf_init(&call->extra, BC_MODEL_MAX_TURN_BYTES);
    *out = call;
    return 0;
}

/* The name may come late, again with every piece, growing, or in pieces. */
static int take_name(bc_chat_call *call, bc_json_span name)
{
    if (!is_text(name) || same_text(&call->name, name)) return 0;
    bc_json_span have = bc_text_escaped(&call->name);
    if (have.len > 0 && !bc_text_is_empty(&call->arguments)) return 0;
    int grown =
        have.len > 0 && name.len - 2 > have.len && memcmp(name.data + 1, have.data, have.len) == 0;
    if (grown) bc_text_reset(&call->name);
    return bc_text_append(&call->name, name);
}

static int take_arguments(bc_chat_call *call, bc_json_span arguments)
{
    if (arguments.len == 0) return 0;
    if (arguments.data[0] == '"') return bc_text_append(&call->arguments, arguments);
    if (arguments.data[0] != '{') return 0; /* null: none yet */
    bc_buf_reset(&call->object);
    return bc_buf_append(&call->object, arguments.data, arguments.len);
}

/* Whether the members that were kept have this one. The cost of asking is bounded. */
static int is_kept(bc_chat_reader *reader, bc_buf *kept, const bc_json_iter *member)
{
    bc_json_iter iter;
    int found = 0;
    reader->looked_at += kept->len;
    if (reader->looked_at > BC_MODEL_MAX_TURN_BYTES) return 1;
    /* The members without their braces: a list that the walk leaves before its end. */
    if (bc_buf_append_char(kept, '}') < 0) return 1;
    int rc = bc_json_iter_init(&iter, (bc_json_span){bc_buf_data(kept), kept->len}, NULL);
    while (rc == 1 && !found && (rc = bc_json_iter_next(&iter, NULL)) == 1) {
        found = iter.key.len == member->key.len &&
                memcmp(iter.key.data, member->key.data, iter.key.len) == 0;
    }
    kept->len--;
    return found;
}

int bc_chat_keep(bc_chat_reader *reader, bc_buf *kept, const bc_json_iter *member)
{
    if (member->type == BC_JSON_NULL) return 0;
    if (kept->len > 0 && is_kept(reader, kept, member)) return 0;
    int rc = kept->len == 0 ? bc_buf_append_char(kept, '{') : 0;
    bc_out out = {.buf = kept, .rc = rc};
    bc_out_raw_key(&out, member->key);
    bc_out_raw(&out, member->value.data, member->value.len);
    return out.rc;
}

/* What we do not know of a call goes back with it: Gemini puts its signatures there. Some servers
 * repeat it with each piece. */
static int take_extra(bc_chat_reader *reader, bc_chat_call *call, bc_json_span whole)
{
    static const char *const known[] = {"id", "type", "index", "function", "custom"};
    bc_json_iter iter;
    int rc = 0;
    if (bc_json_iter_init(&iter, whole, NULL) != 1) return 0;
    while (rc == 0 && bc_json_iter_next(&iter, NULL) == 1) {
        int skip = 0;
        for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
            skip |= bc_json_iter_is(&iter, known[i]);
        }
        if (!skip) rc = bc_chat_keep(reader, &call->extra, &iter);
    }
    return rc;
}

static int announce(bc_chat_reader *reader, bc_chat_call *call)
{
    if (call->announced || bc_text_is_empty(&call->name)) return 0;
    call->announced = 1;
    int rc = bc_text_settle(&call->name, 1, NULL);
    bc_json_span name = {bc_buf_data(&call->name.plain), call->name.plain.len};
    return rc < 0 ? rc : bc_reply_announce(reader->reply, name);
}

static int take_entry(bc_chat_reader *reader, const entry *e, size_t position, size_t count,
                      barchan_error *err)
{
    bc_chat_call *call = find(reader, e, position, count);
    int rc = call == NULL ? add(reader, &call, err) : 0;
    if (rc < 0) return rc;
    if (call->index < 0) call->index = e->index;
    call->list = reader->lists;
    call->had_arguments |= e->arguments.len > 0;
    rc = bc_turn_charge(&reader->total_bytes, e->whole.len);
    if (rc == 0 && is_text(e->id) && bc_text_is_empty(&call->id)) {
        rc = bc_text_append(&call->id, e->id);
    }
    if (rc == 0) rc = take_name(call, e->name);
    if (rc == 0) rc = take_arguments(call, e->arguments);
    if (rc == 0) rc = take_extra(reader, call, e->whole);
    int begun = !bc_text_is_empty(&call->arguments) || call->object.len > 0;
    if (rc == 0 && begun) rc = announce(reader, call);
    return bc_turn_failed(rc, err);
}

int bc_chat_take_calls(bc_chat_reader *reader, bc_json_span list, barchan_error *err)
{
    bc_json_iter iter;
    size_t count = 0, position = 0;
    int rc = bc_json_iter_init(&iter, list, err);
    if (rc != 1 || list.data[0] != '[') return rc < 0 ? rc : 0;
    while (bc_json_iter_next(&iter, NULL) == 1)
        count++;
    /* The old form beside it says the same again. */
    if (count > 0 && reader->has_function) {
        bc_chat_clear_calls(reader);
        reader->has_function = 0;
    }
    reader->lists += count > 0;
    bc_json_iter_init(&iter, list, NULL);
    while ((rc = bc_json_iter_next(&iter, err)) == 1) {
        entry e;
        read_entry(iter.value, &e);
        if (iter.type == BC_JSON_OBJECT_BEGIN) rc = take_entry(reader, &e, position, count, err);
        if (rc < 0) return rc;
        position++;
    }
    return rc;
}

int bc_chat_take_function(bc_chat_reader *reader, bc_json_span function, barchan_error *err)
{
    entry e = {.index = -1, .function = function, .whole = function};
    if (function.len == 0 || function.data[0] != '{' || reader->lists > 0) return 0;
    bc_json_member(function, "name", &e.name, NULL);
    bc_json_member(function, "arguments", &e.arguments, NULL);
    /* Some servers send an empty one beside the real list. */
    if (!is_text(e.name) && !is_text(e.arguments)) return 0;
    e.whole = (bc_json_span){"{}", 2};
    reader->has_function = 1;
    return take_entry(reader, &e, 0, 1, err);
}

static int finish_call(bc_chat_reader *reader, bc_chat_call *call, barchan_error *err)
{
    bc_call *done = NULL;
    int rc = bc_reply_add_call(reader->reply, &done, err);
    if (rc < 0) return rc;
    rc = announce(reader, call);
    if (rc == 0) rc = bc_text_settle(&call->id, 1, NULL);
    if (rc == 0) rc = bc_text_settle(&call->name, 1, NULL);
    if (rc == 0) rc = bc_text_settle(&call->arguments, 1, NULL);
    const bc_buf *arguments = call->object.len > 0 ? &call->object : &call->arguments.plain;
    const bc_buf *from[] = {&call->id.plain, &call->name.plain, arguments};
    bc_buf *to[] = {&done->id, &done->name, &done->arguments};
    for (int i = 0; i < 3 && rc == 0; i++) {
        rc = bc_buf_append(to[i], bc_buf_data(from[i]), from[i]->len);
    }
    return bc_turn_failed(rc, err);
}

int bc_chat_finish_calls(bc_chat_reader *reader, barchan_error *err)
{
    for (size_t i = 0; i < reader->call_count; i++) {
        int rc = finish_call(reader, &reader->calls[i], err);
        if (rc < 0) return rc;
    }
    return 0;
}

void bc_chat_clear_calls(bc_chat_reader *reader)
{
    for (size_t i = 0; i < reader->call_count; i++) {
        bc_chat_call *call = &reader->calls[i];
        bc_text_clear(&call->id);
        bc_text_clear(&call->name);
        bc_text_clear(&call->arguments);
        bc_buf_clear(&call->object);
        bc_buf_clear(&call->extra);
    }
    free(reader->calls);
    reader->calls = NULL;
    reader->call_count = 0;
}
