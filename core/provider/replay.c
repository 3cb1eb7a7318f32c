#include "replay.h"

#include <stdlib.h>
#include <string.h>
#include "base/cleanup.h"
#include "json_out.h"
#include "lines.h"
#include "reply.h"

struct bc_replay {
    bc_buf file;
    char *path;
    bc_json_span *replies;
    size_t count, capacity, next;
};

/* What a script relies on in each call. */
static int wrong(barchan_error *err, const char *what)
{
    return bc_error_set(err, BARCHAN_EPROTOCOL, "%s", what);
}

/* `runnable`: the calls have arguments; otherwise they were recorded as ones that may not be run.
 */
static int check_calls(const json_t *reply, const char *key, int runnable, barchan_error *err)
{
    size_t i, j;
    json_t *call, *other;
    const json_t *calls = json_object_get(reply, key);
    if (calls == NULL) return 0;
    if (!json_is_array(calls)) {
        return bc_error_set(err, BARCHAN_EPROTOCOL, "'%s' must be a list", key);
    }
    if (json_array_size(calls) > BC_MODEL_MAX_TOOL_CALLS) {
        return bc_error_set(err, BARCHAN_ELIMIT, "'%s' has more than %d calls", key,
                            BC_MODEL_MAX_TOOL_CALLS);
    }
    json_array_foreach(calls, i, call)
    {
        size_t id_len, name_len;
        const char *id = bc_json_get_string(call, "id", &id_len);
        bc_json_get_string(call, "name", &name_len);
        int has_arguments = bc_json_get_object(call, "arguments") != NULL;
        if (id_len == 0 || name_len == 0 || (runnable && !has_arguments)) {
            return bc_error_set(err, BARCHAN_EPROTOCOL, "%s[%zu] needs 'id', 'name'%s", key, i,
                                runnable ? " and 'arguments' (an object)" : "");
        }
        json_array_foreach(calls, j, other)
        {
            if (j >= i) break;
            if (strcmp(bc_json_get_string(other, "id", NULL), id) != 0) continue;
            return bc_error_set(err, BARCHAN_EPROTOCOL, "%s[%zu] has the id of another call", key,
                                i);
        }
    }
    return 0;
}

static int check_ids_differ(const json_t *reply, barchan_error *err)
{
    size_t i, j;
    json_t *call, *other;
    json_array_foreach(json_object_get(reply, "tool_calls"), i, call)
    {
        json_array_foreach(json_object_get(reply, "invalid_tool_calls"), j, other)
        {
            if (strcmp(bc_json_get_string(call, "id", NULL),
                       bc_json_get_string(other, "id", NULL)) != 0)
                continue;
            return bc_error_set(err, BARCHAN_EPROTOCOL,
                                "invalid_tool_calls[%zu] has the id of another call", j);
        }
    }
    return 0;
}

static int is_stop_reason(const json_t *value)
{
    const char *text = json_string_value(value);
    for (int stop = BC_STOP_END_TURN; text != NULL && stop <= BC_STOP_ERROR; stop++) {
        if (strcmp(text, bc_stop_name((bc_stop)stop)) == 0) return 1;
    }
    return 0;
}

static int check_reply(const json_t *reply, barchan_error *err)
{
    if (!json_is_object(reply)) return wrong(err, "'reply' must be an object");
    int rc = check_calls(reply, "tool_calls", 1, err);
    if (rc == 0) rc = check_calls(reply, "invalid_tool_calls", 0, err);
    if (rc == 0) rc = check_ids_differ(reply, err);
    if (rc < 0) return rc;
    const json_t *text = json_object_get(reply, "text");
    if (text != NULL && !json_is_string(text)) return wrong(err, "'text' must be a string");
    const json_t *role = json_object_get(reply, "role");
    const char *role_text = json_string_value(role);
    if (role != NULL && (role_text == NULL || strcmp(role_text, "assistant") != 0)) {
        return wrong(err, "'role' must be \"assistant\"");
    }
    const json_t *usage = json_object_get(reply, "usage");
    if (usage != NULL && !json_is_object(usage)) return wrong(err, "'usage' must be an object");
    const json_t *stop = json_object_get(reply, "stop_reason");
    if (stop != NULL && !is_stop_reason(stop)) {
        return wrong(err, "'stop_reason' must be one of those that barchan/model.h lists");
    }
    return 0;
}

static int add_reply(bc_replay *replay, bc_json_span reply, barchan_error *err)
{
    if (replay->count == replay->capacity) {
        size_t capacity = replay->capacity * 2 + 16;
        bc_json_span *replies = realloc(replay->replies, capacity * sizeof *replies);
        if (replies == NULL) return bc_error_nomem(err);
        replay->replies = replies;
        replay->capacity = capacity;
    }
    replay->replies[replay->count++] = reply;
    return 0;
}

static int take_line(const json_t *view, bc_json_span line, void *ud, barchan_error *err)
{
    bc_json_span reply;
    const char *type = bc_json_get_string(view, "type", NULL);
    if (type != NULL && strcmp(type, "transcript") == 0 &&
        bc_json_get_integer(view, "version", 1) != 1) {
        return bc_error_set(err, BARCHAN_EUNSUPPORTED,
                            "transcript version %lld; version 1 is known",
                            (long long)bc_json_get_integer(view, "version", 0));
    }
    if (type != NULL && strcmp(type, "recording") == 0) {
        return bc_error_set(err, BARCHAN_EINVAL,
                            "it is a recording of a wire: play it with its own provider");
    }
    if (type == NULL || strcmp(type, "model_reply") != 0) return 0;
    int rc = check_reply(json_object_get(view, "reply"), err);
    if (rc == 0) rc = bc_json_member(line, "reply", &reply, err);
    return rc == 1 ? add_reply(ud, reply, err) : rc;
}

int bc_replay_open(bc_replay **out, const char *path, barchan_error *err)
{
    bc_replay *replay = calloc(1, sizeof *replay);
    if (replay == NULL) return bc_error_nomem(err);
    bc_buf_init(&replay->file, BC_JSON_MAX_BYTES);
    replay->path = strdup(path);
    int rc = replay->path == NULL
                 ? bc_error_nomem(err)
                 : bc_lines_read(path, "transcript", &replay->file, take_line, replay, err);
    if (rc < 0) {
        bc_replay_close(replay);
        return rc;
    }
    *out = replay;
    return 0;
}

void bc_replay_close(bc_replay *replay)
{
    if (replay == NULL) return;
    bc_buf_clear(&replay->file);
    free(replay->path);
    free(replay->replies);
    free(replay);
}

/* The recording's own members, and those that every reply has. */
static int complete(bc_json_span reply, bc_buf *buf, barchan_error *err)
{
    static const struct {
        const char *key, *value;
    } needed[] = {{"role", "\"assistant\""},   {"text", "\"\""},
                  {"tool_calls", "[]"},        {"stop_reason", NULL},
                  {"raw_stop_reason", "null"}, {"usage", "{}"}};
    bc_json_iter iter;
    bc_json_span calls;
    bc_out out = {.buf = buf};
    int rc = bc_json_iter_init(&iter, reply, err);
    bc_out_open(&out, '{');
    for (size_t i = 0; i < sizeof needed / sizeof *needed && rc == 1; i++) {
        bc_json_span value;
        if (bc_json_member(reply, needed[i].key, &value, NULL) == 1) continue;
        const char *text = needed[i].value;
        if (text == NULL) {
            int has_calls = bc_json_member(reply, "tool_calls", &calls, NULL) == 1 &&
                            memchr(calls.data, '{', calls.len) != NULL;
            text = has_calls ? "\"tool_use\"" : "\"end_turn\"";
        }
        bc_out_key(&out, needed[i].key);
        bc_out_word(&out, text);
    }
    while (rc == 1 && (rc = bc_json_iter_next(&iter, err)) == 1) {
        bc_out_raw_key(&out, iter.key);
        bc_out_raw(&out, iter.value.data, iter.value.len);
    }
    bc_out_close(&out, '}');
    if (rc < 0) return rc;
    return out.rc < 0 ? bc_error_set(err, out.rc, "the recorded reply is too large") : 0;
}

int bc_replay_next(bc_replay *replay, bc_buf *out, barchan_error *err)
{
    if (replay->next >= replay->count) {
        return bc_error_set(err, BARCHAN_ENOTFOUND,
                            "the transcript has %zu replies and this is request %zu (%.200s)",
                            replay->count, replay->next + 1, replay->path);
    }
    return complete(replay->replies[replay->next++], out, err);
}
