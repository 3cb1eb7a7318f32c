/* A turn that goes back and waits for a tool of the server's own. */
#include "anthropic.h"

#include <string.h>

static int is_server_call(const json_t *block)
{
    const char *type = bc_json_get_string(block, "type", NULL);
    return type != NULL &&
           (strcmp(type, "server_tool_use") == 0 || strcmp(type, "mcp_tool_use") == 0);
}

/* A turn that calls tools of ours and of the server's, and holds no result of one of those. Its
 * results go back alone: the server then runs its tool and goes on. */
static int is_answered(const json_t *content, const char *id)
{
    size_t i;
    const json_t *block;
    json_array_foreach(content, i, block)
    {
        const char *of = bc_json_get_string(block, "tool_use_id", NULL);
        if (of != NULL && strcmp(of, id) == 0) return 1;
    }
    return 0;
}

int bc_anthropic_is_mixed(const bc_message *message, barchan_error *err)
{
    const json_t *raw = bc_json_get_object(message->view, "raw"), *block;
    size_t len, i;
    const char *turn = bc_json_get_string(raw, "turn", &len);
    cleanup_json json_t *view = NULL;
    int is_mixed = 0;
    if (strstr(turn, "_tool_use") == NULL || bc_message_call_count(message) == 0) return 0;
    int rc = bc_json_view(&view, turn, len, 0, err);
    const json_t *content = bc_json_get_array(view, "content");
    /* The turn comes from the caller: no reply of ours has more blocks. */
    if (json_array_size(content) > BC_MODEL_MAX_BLOCKS) {
        return bc_error_set(err, BARCHAN_ELIMIT, "a turn that goes back has more than %d blocks",
                            BC_MODEL_MAX_BLOCKS);
    }
    json_array_foreach(content, i, block)
    {
        const char *id = bc_json_get_string(block, "id", NULL);
        if (is_server_call(block) && id != NULL && !is_answered(content, id)) is_mixed = 1;
        if (is_mixed) break;
    }
    return rc < 0 ? rc : is_mixed;
}
