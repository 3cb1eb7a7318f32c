#include "openai_tools.h"

#include <string.h>

static void put_choice(bc_out *out, const bc_request *request, int nested)
{
    static const char *const words[] = {"auto", "auto", "required", "none"};
    if (request->choice != BC_CHOICE_NAMED) {
        bc_out_string(out, words[request->choice], strlen(words[request->choice]));
        return;
    }
    bc_out_open(out, '{');
    bc_out_member(out, "type", "function");
    if (nested) {
        bc_out_key(out, "function");
        bc_out_open(out, '{');
    }
    bc_out_member(out, "name", request->choice_name);
    if (nested) bc_out_close(out, '}');
    bc_out_close(out, '}');
}

void bc_openai_put_tools(bc_out *out, const bc_request *request, int nested)
{
    /* An empty list is refused, and so is all about tools without them. */
    if (!bc_body_has_tools(request)) return;
    if (request->tool_count > 0 && bc_body_key(out, request, "tools")) {
        bc_tools_put(out, nested ? "openai" : "responses", request->tools, request->tool_count);
    }
    if (request->choice != BC_CHOICE_UNSET && bc_body_key(out, request, "tool_choice")) {
        put_choice(out, request, nested);
    }
    if (request->parallel >= 0 && bc_body_key(out, request, "parallel_tool_calls")) {
        bc_out_word(out, request->parallel ? "true" : "false");
    }
}
