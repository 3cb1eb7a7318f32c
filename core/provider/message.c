#include "message.h"

#include <stdlib.h>
#include <string.h>
#include "base/cleanup.h"
#include "check.h"

/* ---- one message ---- */

static int check_part(const json_t *part, size_t at, size_t index, barchan_error *err)
{
    const char *type = bc_json_get_string(part, "type", NULL);
    if (type != NULL && strcmp(type, "text") == 0) {
        if (bc_json_get_string(part, "text", NULL) != NULL) return 0;
        return bc_error_set(err, BARCHAN_EINVAL,
                            "messages[%zu].content[%zu]: a text part needs "
                            "'text'",
                            at, index);
    }
    if (type != NULL && strcmp(type, "image") == 0) {
        if (bc_json_get_string(part, "media_type", NULL) != NULL &&
            bc_json_get_string(part, "data", NULL) != NULL)
            return 0;
        return bc_error_set(err, BARCHAN_EINVAL,
                            "messages[%zu].content[%zu]: an image part needs "
                            "'media_type' and 'data' (base64)",
                            at, index);
    }
    return bc_error_set(err, BARCHAN_EINVAL,
                        "messages[%zu].content[%zu]: 'type' must be \"text\" "
                        "or \"image\"",
                        at, index);
}

static int check_content(const json_t *message, size_t at, int may_be_empty, barchan_error *err)
{
    const json_t *content = json_object_get(message, "content");
    size_t count = json_is_string(content) ? json_string_length(content) : json_array_size(content);
    if ((content == NULL || json_is_null(content)) && may_be_empty) return 0;
    if (!json_is_string(content) && !json_is_array(content)) {
        return bc_error_set(err, BARCHAN_EINVAL,
                            "messages[%zu]: 'content' must be a string or a list of parts", at);
    }
    if (count == 0 && !may_be_empty) {
        return bc_error_set(err, BARCHAN_EINVAL, "messages[%zu]: 'content' is empty", at);
    }
    if (json_is_string(content)) return 0;
    if (count > BC_MODEL_MAX_PARTS) {
        return bc_error_set(err, BARCHAN_ELIMIT, "messages[%zu]: more than %d parts", at,
                            BC_MODEL_MAX_PARTS);
    }
    size_t i;
    json_t *part;
    json_array_foreach(content, i, part)
    {
        int rc = check_part(part, at, i, err);
        if (rc < 0) return rc;
    }
    return 0;
}

static int check_calls(const json_t *message, const char *key, size_t at, barchan_error *err)
{
    const json_t *calls = json_object_get(message, key), *call;
    if (calls == NULL || json_is_null(calls)) return 0;
    size_t i;
    int runnable = strcmp(key, "tool_calls") == 0;
    if (!json_is_array(calls)) {
        return bc_error_set(err, BARCHAN_EINVAL, "messages[%zu]: '%s' must be a list", at, key);
    }
    json_array_foreach(calls, i, call)
    {
        size_t len;
        const char *id = bc_json_get_string(call, "id", &len);
        if (id == NULL || len == 0 || bc_json_get_string(call, "name", NULL) == NULL) {
            return bc_error_set(err, BARCHAN_EINVAL, "messages[%zu].%s[%zu]: needs 'id' and 'name'",
                                at, key, i);
        }
        if (len > BC_MODEL_MAX_ID_BYTES) {
            return bc_error_set(err, BARCHAN_ELIMIT,
                                "messages[%zu].%s[%zu]: 'id' is longer than %d bytes", at, key, i,
                                BC_MODEL_MAX_ID_BYTES);
        }
        if (runnable && bc_json_get_object(call, "arguments") == NULL) {
            return bc_error_set(err, BARCHAN_EINVAL,
                                "messages[%zu].%s[%zu]: 'arguments' must be an object", at, key, i);
        }
    }
    return 0;
}

static int check_assistant(const json_t *message, size_t at, barchan_error *err)
{
    const json_t *text = json_object_get(message, "text");
    if (text != NULL && !json_is_null(text) && !json_is_string(text)) {
        return bc_error_set(err, BARCHAN_EINVAL, "messages[%zu]: 'text' must be a string", at);
    }
    int rc = check_calls(message, "tool_calls", at, err);
    if (rc == 0) rc = check_calls(message, "invalid_tool_calls", at, err);
    if (rc < 0) return rc;
    /* No reply has more, and each is looked for among the others. */
    size_t count = json_array_size(json_object_get(message, "tool_calls")) +
                   json_array_size(json_object_get(message, "invalid_tool_calls"));
    if (count <= BC_MODEL_MAX_TOOL_CALLS) return 0;
    return bc_error_set(err, BARCHAN_ELIMIT, "messages[%zu]: more than %d tool calls", at,
                        BC_MODEL_MAX_TOOL_CALLS);
}

static int parse_message(bc_message *message, const json_t *view, bc_json_span text, size_t at,
                         barchan_error *err)
{
    const char *role = bc_json_get_string(view, "role", NULL);
    *message = (bc_message){.view = view, .text = text};
    if (role != NULL && strcmp(role, "user") == 0) {
        message->role = BC_ROLE_USER;
        return check_content(view, at, 0, err);
    }
    if (role != NULL && strcmp(role, "assistant") == 0) {
        message->role = BC_ROLE_ASSISTANT;
        return check_assistant(view, at, err);
    }
    if (role != NULL && strcmp(role, "tool") == 0) {
        message->role = BC_ROLE_TOOL;
        size_t len;
        if (bc_json_get_string(view, "tool_call_id", &len) == NULL || len == 0) {
            return bc_error_set(err, BARCHAN_EINVAL,
                                "messages[%zu]: a tool message needs "
                                "'tool_call_id'",
                                at);
        }
        return check_content(view, at, 1, err);
    }
    return bc_error_set(err, BARCHAN_EINVAL,
                        "messages[%zu]: 'role' must be \"user\", "
                        "\"assistant\" or \"tool\"",
                        at);
}

/* ---- lists of the request ---- */

static int not_a_list(const char *key, size_t max, barchan_error *err)
{
    return bc_error_set(err, BARCHAN_EINVAL, "'%s' must be a list of at most %zu objects", key,
                        max);
}

static int parse_messages(bc_request *request, bc_json_span text, barchan_error *err)
{
    const json_t *list = bc_json_get_array(request->view, "messages");
    size_t count = json_array_size(list);
    if (list == NULL || count > BC_MODEL_MAX_MESSAGES) {
        return not_a_list("messages", BC_MODEL_MAX_MESSAGES, err);
    }
    if (count == 0) return bc_error_set(err, BARCHAN_EINVAL, "'messages' is empty");
    bc_json_iter iter;
    int rc = bc_json_iter_init(&iter, text, err);
    if (rc < 0) return rc;
    request->messages = calloc(count, sizeof *request->messages);
    if (request->messages == NULL) return bc_error_nomem(err);
    while ((rc = bc_json_iter_next(&iter, err)) == 1) {
        size_t at = request->message_count;
        rc = parse_message(&request->messages[at], json_array_get(list, at), iter.value, at, err);
        if (rc < 0) return rc;
        request->message_count++;
    }
    return rc;
}

static int parse_tool(bc_tool *tool, const json_t *view, bc_json_span text, size_t at,
                      barchan_error *err)
{
    size_t len;
    tool->name = bc_json_get_string(view, "name", &len);
    tool->description = bc_json_get_string(view, "description", &tool->description_len);
    if (tool->name == NULL || len == 0 || len > BC_MODEL_MAX_NAME_BYTES) {
        return bc_error_set(err, BARCHAN_EINVAL,
                            "tools[%zu]: 'name' must be a string of 1 to %d "
                            "bytes",
                            at, BC_MODEL_MAX_NAME_BYTES);
    }
    /* What all providers take between them. A NUL ends the span as well. */
    if (strspn(tool->name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.:") !=
        len) {
        return bc_error_set(err, BARCHAN_EINVAL,
                            "tools[%zu]: 'name' must be made of letters, digits and _-.:", at);
    }
    int rc = bc_json_member(text, "parameters", &tool->parameters, err);
    if (rc < 0) return rc;
    if (rc == 0) {
        static const char none[] = "{\"type\":\"object\",\"properties\":{}}";
        tool->parameters = (bc_json_span){none, sizeof none - 1};
    } else if (bc_json_get_object(view, "parameters") == NULL) {
        return bc_error_set(err, BARCHAN_EINVAL,
                            "tools[%zu] ('%s'): 'parameters' must be a JSON "
                            "Schema object",
                            at, tool->name);
    }
    return 0;
}

/* Every provider refuses two tools of one name. */
static int check_is_new(const bc_tool *tools, size_t at, barchan_error *err)
{
    for (size_t i = 0; i < at; i++) {
        if (strcmp(tools[i].name, tools[at].name) != 0) continue;
        return bc_error_set(err, BARCHAN_EINVAL, "tools[%zu]: the name '%s' is taken by tools[%zu]",
                            at, tools[at].name, i);
    }
    return 0;
}

int bc_tools_parse(bc_json_span text, const json_t *view, bc_tool **tools, size_t *count,
                   barchan_error *err)
{
    size_t want = json_array_size(view);
    *count = 0;
    if (!json_is_array(view) || want > BC_MODEL_MAX_TOOLS) {
        return not_a_list("tools", BC_MODEL_MAX_TOOLS, err);
    }
    bc_json_iter iter;
    int rc = bc_json_iter_init(&iter, text, err);
    if (rc < 0 || want == 0) return rc < 0 ? rc : 0;
    cleanup_free bc_tool *list = calloc(want, sizeof *list);
    if (list == NULL) return bc_error_nomem(err);
    while ((rc = bc_json_iter_next(&iter, err)) == 1) {
        rc = parse_tool(&list[*count], json_array_get(view, *count), iter.value, *count, err);
        if (rc == 0) rc = check_is_new(list, *count, err);
        if (rc < 0) return rc;
        ++*count;
    }
    if (rc == 0) *tools = steal_pointer(&list);
    return rc;
}

/* ---- the request ---- */

static int parse_choice(bc_request *request, barchan_error *err)
{
    static const char *const words[] = {"", "auto", "any", "none"};
    const json_t *value = json_object_get(request->view, "tool_choice");
    if (value == NULL || json_is_null(value)) return 0;
    const char *word = json_string_value(value);
    for (size_t i = BC_CHOICE_AUTO; word != NULL && i <= BC_CHOICE_NONE; i++) {
        if (strcmp(word, words[i]) != 0) continue;
        request->choice = (bc_choice)i;
        return 0;
    }
    request->choice_name = bc_json_get_string(value, "name", NULL);
    request->choice = BC_CHOICE_NAMED;
    if (request->choice_name != NULL) return 0;
    return bc_error_set(err, BARCHAN_EINVAL,
                        "'tool_choice' must be \"auto\", \"any\", \"none\" or {\"name\": …}");
}

static int parse_stop(bc_request *request, barchan_error *err)
{
    const json_t *stop = json_object_get(request->view, "stop"), *item;
    size_t i;
    if (stop == NULL || json_is_null(stop)) return 0;
    int good = json_is_array(stop);
    json_array_foreach(stop, i, item) good = good && json_is_string(item);
    if (!good) return bc_error_set(err, BARCHAN_EINVAL, "'stop' must be a list of strings");
    request->stop = i > 0 ? stop : NULL;
    return 0;
}

/* Members of one plain type; null is as good as absent. */
static int check_types(const json_t *view, barchan_error *err)
{
    static const struct {
        const char *key;
        json_type type;
        const char *what;
    } known[] = {{"system", JSON_STRING, "a string"},
                 {"extra", JSON_OBJECT, "an object"},
                 {"max_tokens", JSON_INTEGER, "an integer"},
                 {"temperature", JSON_REAL, "a number"},
                 {"stream", JSON_TRUE, "true or false"},
                 {"cache", JSON_TRUE, "true or false"},
                 {"effort", JSON_STRING, "a string"},
                 {"schema", JSON_OBJECT, "a JSON Schema object"},
                 {"parallel_tool_calls", JSON_TRUE, "true or false"}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const json_t *value = json_object_get(view, known[i].key);
        if (value == NULL || json_is_null(value)) continue;
        json_type type = json_typeof(value);
        if (type == known[i].type || (known[i].type == JSON_TRUE && type == JSON_FALSE)) continue;
        /* Lua has 16000.0 for 16000 after a division. */
        int number = known[i].type == JSON_INTEGER || known[i].type == JSON_REAL;
        if (number && json_is_number(value)) continue;
        return bc_error_set(err, BARCHAN_EINVAL, "'%s' must be %s", known[i].key, known[i].what);
    }
    return 0;
}

static int parse_effort(bc_request *request, barchan_error *err)
{
    static const char *const known[] = {"minimal", "low", "medium", "high", "xhigh", "max"};
    const char *word = bc_json_get_string(request->view, "effort", NULL);
    for (size_t i = 0; word != NULL && i < sizeof known / sizeof *known; i++) {
        if (strcmp(word, known[i]) == 0) request->effort = known[i];
    }
    if (word == NULL || request->effort != NULL) return 0;
    return bc_error_set(err, BARCHAN_EINVAL,
                        "'effort' must be minimal, low, medium, high, xhigh or max, not '%.40s'",
                        word);
}

/* What goes out as it was written. */
enum { MESSAGES, TOOLS, TEMPERATURE, SCHEMA, EXTRA, MEMBERS };

static int parse_settings(bc_request *request, const bc_json_wanted members[MEMBERS],
                          barchan_error *err)
{
    const json_t *view = request->view, *system = json_object_get(view, "system");
    int rc = check_types(view, err);
    if (rc < 0) return rc;
    request->system_len = json_string_length(system);
    if (request->system_len > 0) request->system = json_string_value(system);
    request->parallel = bc_json_get_boolean(view, "parallel_tool_calls", -1);
    request->max_tokens = bc_json_get_integer(view, "max_tokens", 0);
    if (request->max_tokens < 0) {
        return bc_error_set(err, BARCHAN_EINVAL, "'max_tokens' must be positive");
    }
    request->stream = bc_json_get_boolean(view, "stream", 0);
    request->cache = bc_json_get_boolean(view, "cache", 0);
    if (json_is_number(json_object_get(view, "temperature"))) {
        request->temperature = members[TEMPERATURE].value;
    }
    if (bc_json_get_object(view, "schema") != NULL) request->schema = members[SCHEMA].value;
    if (bc_json_get_object(view, "extra") != NULL) request->extra = members[EXTRA].value;
    rc = parse_effort(request, err);
    if (rc >= 0) rc = parse_choice(request, err);
    return rc < 0 ? rc : parse_stop(request, err);
}

static int check_keys(const json_t *view, barchan_error *err)
{
    static const char *const known[] = {
        "system",     "messages", "tools",  "tool_choice", "parallel_tool_calls",
        "max_tokens", "stop",     "stream", "temperature", "effort",
        "schema",     "cache",    "extra",
    };
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)view, key, value)
    {
        size_t i = 0;
        while (i < sizeof known / sizeof *known && strcmp(key, known[i]) != 0)
            i++;
        if (i < sizeof known / sizeof *known) continue;
        return bc_error_set(err, BARCHAN_EINVAL,
                            "unknown member '%.60s'; what a provider alone "
                            "knows goes into 'extra'",
                            key);
    }
    return 0;
}

static int parse(bc_request *request, barchan_error *err)
{
    bc_json_wanted members[MEMBERS] = {{.key = "messages"},
                                       {.key = "tools"},
                                       {.key = "temperature"},
                                       {.key = "schema"},
                                       {.key = "extra"}};
    int rc = bc_json_view(&request->view, request->text.data, request->text.len, 0, err);
    if (rc == BARCHAN_EPROTOCOL) rc = bc_error_recode(err, BARCHAN_EINVAL);
    if (rc == 0 && !json_is_object(request->view)) {
        rc = bc_error_set(err, BARCHAN_EINVAL, "it must be a JSON object");
    }
    if (rc == 0) rc = check_keys(request->view, err);
    if (rc == 0) rc = bc_json_members(request->text, members, MEMBERS, err);
    if (rc == 0) rc = parse_messages(request, members[MESSAGES].value, err);
    if (rc == 0) rc = parse_settings(request, members, err);
    const json_t *list = json_object_get(request->view, "tools");
    if (rc == 0 && list != NULL && !json_is_null(list)) {
        rc = bc_tools_parse(members[TOOLS].value, list, &request->tools, &request->tool_count, err);
    }
    return rc < 0 ? rc : bc_request_check_pairing(request, err);
}

int bc_request_parse(bc_request *request, const char *text, size_t len, barchan_error *err)
{
    *request = (bc_request){.text = {text, len}};
    int rc = parse(request, err);
    if (rc < 0) bc_request_clear(request);
    return rc < 0 ? rc : 0;
}

void bc_request_clear(bc_request *request)
{
    json_decref(request->view);
    free(request->messages);
    free(request->tools);
    free(request->own_text);
    *request = (bc_request){.text = {"", 0}};
}

int bc_request_check(const char *text, size_t len, barchan_error *err)
{
    bc_request request;
    int rc = bc_request_parse(&request, text, len, err);
    if (rc == 0) bc_request_clear(&request);
    if (rc >= 0) return 0;
    bc_error_context(err, "complete");
    bc_error_where(err, "model.complete");
    return rc;
}
