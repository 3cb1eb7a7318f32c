/* What both OpenAI protocols say of tools. */
#ifndef BC_PROVIDER_OPENAI_TOOLS_H
#define BC_PROVIDER_OPENAI_TOOLS_H

#include "json_out.h"
#include "provider.h"

/* The members tools, tool_choice and parallel_tool_calls. `nested`: as Chat Completions has them,
 * with the function in an object of its own; otherwise as Responses has them. */
void bc_openai_put_tools(bc_out *out, const bc_request *request, int nested);

#endif
