/*
 * Gemini on Vertex: the arguments of a call that arrive by their paths. Each piece gives values for
 * paths ("$.recipe.steps[2]"); a string that goes on is continued by the next piece of its path.
 * The call ends with a piece that does not go on, with the next part that is none, or with the
 * stream.
 */
#include "gemini.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/cleanup.h"

void bc_gemini_partial_init(bc_gemini_partial *partial)
{
    *partial = (bc_gemini_partial){.args = NULL};
    bc_buf_init(&partial->before, BC_MODEL_MAX_TURN_BYTES);
    bc_buf_init(&partial->name, BC_MODEL_MAX_TURN_BYTES);
    bc_buf_init(&partial->id, BC_MODEL_MAX_ID_BYTES);
    bc_buf_init(&partial->string, 3 * (size_t)BC_MODEL_MAX_TURN_BYTES);
}

void bc_gemini_partial_clear(bc_gemini_partial *partial)
{
    json_decref(partial->args);
    partial->args = NULL;
    bc_buf_clear(&partial->before);
    bc_buf_clear(&partial->name);
    bc_buf_clear(&partial->id);
    bc_buf_clear(&partial->string);
    partial->path[0] = '\0';
}

/* ---- paths ---- */

static int bad_path(const char *path, barchan_error *err)
{
    return bc_error_set(err, BARCHAN_EPROTOCOL, "the path '%.80s' of a call's arguments is none",
                        path);
}

/* The next step of a path: a member's name (ended with NUL in place) or an index. 1, 0 at the end,
 * -1 when it is none. */
static int next_step(char **at, char **name, long *index)
{
    char *s = *at;
    *name = NULL;
    if (*s == '\0') return 0;
    if (s[0] == '[' && (s[1] == '\'' || s[1] == '"')) {
        char *end = strchr(s + 2, s[1]);
        if (end == NULL || end[1] != ']') return -1;
        *name = s + 2;
        *end = '\0';
        *at = end + 2;
        return 1;
    }
    if (s[0] == '[') {
        char *end;
        *index = strtol(s + 1, &end, 10);
        if (end == s + 1 || *end != ']' || *index < 0) return -1;
        *at = end + 1;
        return 1;
    }
    if (s[0] != '.') return -1;
    s++;
    size_t len = strcspn(s, ".[");
    if (len == 0) return -1;
    /* The character that ends the name is the next step's first: move the name left over the dot.
     */
    memmove(s - 1, s, len);
    s[len - 1] = '\0';
    *name = s - 1;
    *at = s + len;
    return 1;
}

static json_t *child_of(json_t *node, const char *name, long index)
{
    if (name != NULL) return json_object_get(node, name);
    return json_array_get(node, (size_t)index);
}

/* Takes the new value over, also when it fails. An index may at most follow the last one. */
static int put_child(json_t *node, const char *name, long index, json_t *value)
{
    int rc;
    size_t size = json_array_size(node);
    if (name != NULL ? !json_is_object(node) : !json_is_array(node) || (size_t)index > size) {
        json_decref(value);
        return BARCHAN_EPROTOCOL;
    }
    if (name != NULL) {
        rc = json_object_set_new(node, name, value);
    } else if ((size_t)index < size) {
        rc = json_array_set_new(node, (size_t)index, value);
    } else {
        rc = json_array_append_new(node, value);
    }
    return rc < 0 ? BARCHAN_ENOMEM : 0;
}

/* The node that holds the next step, made when it is not there. */
static int descend(json_t **node, const char *name, long index, int to_object)
{
    json_t *child = child_of(*node, name, index);
    if (child == NULL || (to_object ? !json_is_object(child) : !json_is_array(child))) {
        child = to_object ? json_object() : json_array();
        if (child == NULL) return BARCHAN_ENOMEM;
        int rc = put_child(*node, name, index, child);
        if (rc < 0) return rc;
    }
    *node = child;
    return 0;
}

/* Sets the value at a path, making what stands on the way. Takes the value over. */
static int set_at(json_t *node, const char *path, json_t *value, barchan_error *err)
{
    char copy[sizeof((bc_gemini_partial *)0)->path], *at = copy + 1, *name, *next_name;
    long index = 0, next_index = 0;
    snprintf(copy, sizeof copy, "%s", path);
    int steps = copy[0] == '$' ? next_step(&at, &name, &index) : -1, depth = 0;
    int rc =
        steps == 1 ? 0 : BARCHAN_EPROTOCOL; /* "$" alone is none: the arguments are an object */
    while (rc == 0 && (steps = next_step(&at, &next_name, &next_index)) == 1) {
        rc = ++depth < BC_MODEL_MAX_ARGUMENT_DEPTH ? descend(&node, name, index, next_name != NULL)
                                                   : BARCHAN_EPROTOCOL;
        name = next_name;
        index = next_index;
    }
    if (rc == 0 && steps == 0) rc = put_child(node, name, index, json_incref(value));
    if (steps < 0) rc = BARCHAN_EPROTOCOL;
    json_decref(value);
    if (rc == BARCHAN_ENOMEM) return bc_error_nomem(err);
    return rc < 0 ? bad_path(path, err) : 0;
}

/* ---- values ---- */

static int end_string(bc_gemini_partial *partial, barchan_error *err)
{
    if (partial->path[0] == '\0') return 0;
    json_t *value = json_stringn(bc_buf_data(&partial->string), partial->string.len);
    int rc = value != NULL ? set_at(partial->args, partial->path, value, err) : bc_error_nomem(err);
    partial->path[0] = '\0';
    bc_buf_reset(&partial->string);
    return rc;
}

static int take_string(bc_gemini_partial *partial, const char *path, const json_t *arg,
                       bc_json_span text, barchan_error *err)
{
    int rc = strcmp(path, partial->path) != 0 ? end_string(partial, err) : 0;
    if (rc < 0) return rc;
    snprintf(partial->path, sizeof partial->path, "%s", path);
    rc = bc_json_span_text(text, &partial->string, NULL);
    if (rc < 0) return bc_turn_failed(rc, err);
    return bc_json_get_boolean(arg, "willContinue", 0) ? 0 : end_string(partial, err);
}

static int take_arg(bc_gemini_partial *partial, const json_t *arg, bc_json_span text,
                    barchan_error *err)
{
    bc_json_span string;
    const char *path = bc_json_get_string(arg, "jsonPath", NULL);
    if (path == NULL) return 0;
    if (strlen(path) >= sizeof partial->path) return bad_path(path, err);
    if (bc_json_member(text, "stringValue", &string, NULL) == 1 && string.data[0] == '"') {
        return take_string(partial, path, arg, string, err);
    }
    json_t *value = json_object_get(arg, "numberValue");
    if (!json_is_number(value)) value = json_object_get(arg, "boolValue");
    if (value == NULL && json_object_get(arg, "nullValue") != NULL) value = json_null();
    if (value == NULL) return 0;
    int rc = end_string(partial, err);
    return rc < 0 ? rc : set_at(partial->args, path, json_incref(value), err);
}

/* ---- the call ---- */

static int open_call(bc_gemini_reader *reader, bc_json_span part, bc_json_span call,
                     barchan_error *err)
{
    bc_gemini_partial *partial = &reader->partial;
    bc_json_iter iter;
    bc_json_span value;
    partial->args = json_object();
    if (partial->args == NULL) return bc_error_nomem(err);
    int rc = bc_json_member(call, "name", &value, err);
    if (rc == 1) rc = bc_json_span_text(value, &partial->name, NULL);
    if (rc == 0 && bc_json_member(call, "id", &value, NULL) == 1) {
        rc = bc_json_span_text(value, &partial->id, NULL);
    }
    if (rc == 0) rc = bc_json_iter_init(&iter, part, err);
    bc_out out = {.buf = &partial->before, .rc = rc < 0 ? rc : 0};
    while (out.rc == 0 && bc_json_iter_next(&iter, NULL) == 1) {
        if (bc_json_iter_is(&iter, "functionCall")) continue;
        bc_out_raw_key(&out, iter.key);
        bc_out_raw(&out, iter.value.data, iter.value.len);
    }
    if (out.rc < 0) return bc_turn_failed(out.rc, err);
    return bc_reply_announce(reader->reply,
                             (bc_json_span){bc_buf_data(&partial->name), partial->name.len});
}

int bc_gemini_take_piece(bc_gemini_reader *reader, bc_json_span part, bc_json_span call,
                         barchan_error *err)
{
    cleanup_json json_t *view = NULL;
    bc_json_span list;
    bc_json_iter iter;
    int rc = reader->partial.args == NULL ? open_call(reader, part, call, err) : 0;
    if (rc == 0) rc = bc_json_view(&view, call.data, call.len, 0, err);
    if (rc < 0) return rc;
    const json_t *args = bc_json_get_array(view, "partialArgs");
    if (args != NULL && bc_json_member(call, "partialArgs", &list, NULL) == 1) {
        rc = bc_json_iter_init(&iter, list, err);
        for (size_t i = 0; rc == 1 && (rc = bc_json_iter_next(&iter, err)) == 1; i++) {
            rc = take_arg(&reader->partial, json_array_get(args, i), iter.value, err);
            rc = rc < 0 ? rc : 1;
        }
    }
    if (rc < 0 || bc_json_get_boolean(view, "willContinue", 0)) return rc;
    return bc_gemini_end_partial(reader, err);
}

static int put_part(bc_gemini_reader *reader, const char *args, barchan_error *err)
{
    const bc_gemini_partial *partial = &reader->partial;
    cleanup_buf bc_buf part;
    bc_buf_init(&part, 4 * (size_t)BC_MODEL_MAX_TURN_BYTES);
    bc_out out = {.buf = &part};
    bc_out_open(&out, '{');
    bc_out_key(&out, "functionCall");
    bc_out_open(&out, '{');
    if (partial->id.len > 0) bc_out_key(&out, "id");
    if (partial->id.len > 0) {
        bc_out_string(&out, bc_buf_data(&partial->id), partial->id.len);
    }
    bc_out_key(&out, "name");
    bc_out_string(&out, bc_buf_data(&partial->name), partial->name.len);
    bc_out_key(&out, "args");
    bc_out_raw(&out, args, strlen(args));
    bc_out_close(&out, '}');
    if (partial->before.len > 0) {
        bc_out_raw(&out, bc_buf_data(&partial->before), partial->before.len);
    }
    bc_out_close(&out, '}');
    return out.rc < 0 ? out.rc : bc_gemini_add_part(reader, bc_buf_data(&part), part.len, err);
}

int bc_gemini_end_partial(bc_gemini_reader *reader, barchan_error *err)
{
    bc_gemini_partial *partial = &reader->partial;
    bc_call *call = NULL;
    if (partial->args == NULL) return 0;
    int rc = end_string(partial, err);
    if (rc == 0) rc = bc_reply_add_call(reader->reply, &call, err);
    if (rc < 0) return rc;
    cleanup_free char *args = json_dumps(partial->args, JSON_COMPACT);
    if (args == NULL) return bc_error_nomem(err);
    rc = bc_buf_append_string(&call->arguments, args);
    if (rc == 0) rc = bc_buf_append(&call->name, bc_buf_data(&partial->name), partial->name.len);
    if (rc == 0) rc = bc_buf_append(&call->id, bc_buf_data(&partial->id), partial->id.len);
    if (rc == 0) rc = put_part(reader, args, err);
    bc_gemini_partial_clear(partial);
    return bc_turn_failed(rc, err);
}
