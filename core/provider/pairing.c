/* Calls and results: what every request must pass before it is sent. */
#include "message.h"

#include <string.h>

static const json_t *find_call(const json_t *message, const char *id)
{
    static const char *const lists[] = {"tool_calls", "invalid_tool_calls"};
    for (size_t list = 0; list < 2; list++) {
        size_t i;
        json_t *call;
        json_array_foreach(json_object_get(message, lists[list]), i, call)
        {
            if (strcmp(bc_json_get_string(call, "id", NULL), id) == 0) return call;
        }
    }
    return NULL;
}

/* Each call of message `at` is answered once by the tool messages [first, last). */
static int check_answers(const bc_request *request, size_t at, size_t first, size_t last,
                         barchan_error *err)
{
    static const char *const lists[] = {"tool_calls", "invalid_tool_calls"};
    const json_t *turn = request->messages[at].view;
    for (size_t list = 0; list < 2; list++) {
        size_t i;
        json_t *call;
        json_array_foreach(json_object_get(turn, lists[list]), i, call)
        {
            const char *id = bc_json_get_string(call, "id", NULL);
            if (find_call(turn, id) != call) {
                return bc_error_set(err, BARCHAN_EINVAL,
                                    "messages[%zu]: two calls have the id "
                                    "'%.80s'",
                                    at, id);
            }
            size_t answers = 0;
            for (size_t j = first; j < last; j++) {
                answers +=
                    strcmp(bc_json_get_string(request->messages[j].view, "tool_call_id", NULL),
                           id) == 0;
            }
            if (answers == 1) continue;
            return bc_error_set(err, BARCHAN_EINVAL,
                                "messages[%zu]: the call '%.80s' has %s right "
                                "after it; append exactly one per call",
                                at, id,
                                answers == 0 ? "no tool message" : "more than one tool message");
        }
    }
    return 0;
}

int bc_request_check_pairing(const bc_request *request, barchan_error *err)
{
    size_t at = 0;
    while (at < request->message_count) {
        const bc_message *message = &request->messages[at];
        size_t first = at + 1, last = first;
        int is_turn = message->role == BC_ROLE_ASSISTANT;
        if (message->role == BC_ROLE_TOOL) last = first = at; /* stands after no turn */
        while (last < request->message_count && request->messages[last].role == BC_ROLE_TOOL) {
            const char *id = bc_json_get_string(request->messages[last].view, "tool_call_id", NULL);
            if (!is_turn || find_call(message->view, id) == NULL) {
                return bc_error_set(err, BARCHAN_EINVAL,
                                    "messages[%zu]: no call of the turn "
                                    "before it has the id '%.80s'",
                                    last, id);
            }
            last++;
        }
        int rc = is_turn ? check_answers(request, at, first, last, err) : 0;
        if (rc < 0) return rc;
        at = last;
    }
    return 0;
}
