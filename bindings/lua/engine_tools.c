/* Tools that the host application offers to its scripts. */
#include "engine_internal.h"

#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/json_scan.h"
#include "base/options.h"
#include "bounds.h"

static void free_tool(bl_host_tool *tool)
{
    free(tool->name);
    free(tool->description);
    free(tool->parameters);
    free(tool);
}

void bl_host_clear(bl_host *host)
{
    while (host->tools != NULL) {
        bl_host_tool *next = host->tools->next;
        free_tool(host->tools);
        host->tools = next;
    }
}

static int check_name(const char *name, barchan_error *err)
{
    static const char legal[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    size_t len = name != NULL ? strlen(name) : 0;
    if (len == 0 || len > BL_TOOL_MAX_NAME || strspn(name, legal) != len) {
        return bc_error_set(err, BARCHAN_EINVAL,
                            "a tool's name has 1 to %d letters, digits, '_' and '-'; got '%.80s'",
                            BL_TOOL_MAX_NAME, name != NULL ? name : "");
    }
    return 0;
}

static int check_parameters(const char *json, barchan_error *err)
{
    bc_json_span type, text = {json, strlen(json)};
    int rc = bc_json_validate(json, text.len, err);
    if (rc < 0) bc_error_context(err, "the tool's parameters");
    if (rc < 0) return rc;
    rc = bc_json_member(text, "type", &type, err);
    if (rc < 0) return rc;
    if (rc == 0 || type.len != 8 || memcmp(type.data, "\"object\"", 8) != 0) {
        return bc_error_set(err, BARCHAN_EINVAL,
                            "a tool's parameters are a JSON Schema whose type is \"object\"");
    }
    return 0;
}

static void add_or_replace(bl_host *host, bl_host_tool *tool)
{
    bl_host_tool **at = &host->tools;
    while (*at != NULL && strcmp((*at)->name, tool->name) != 0)
        at = &(*at)->next;
    if (*at != NULL) {
        tool->next = (*at)->next;
        free_tool(*at);
    }
    *at = tool;
}

int barchan_engine_add_tool(barchan_engine *engine, const barchan_tool *tool, barchan_error *err)
{
    BC_OPERATION("engine.add_tool");
    static const char no_parameters[] = "{\"type\":\"object\",\"properties\":{}}";
    barchan_tool full = {0};
    int rc = bl_engine_check(engine, err);
    if (rc < 0) return rc;
    if (tool == NULL) return bc_error_set(err, BARCHAN_EINVAL, "the tool is NULL");
    rc = bc_options_copy(&full, sizeof full, tool, err);
    if (full.parameters_json == NULL) full.parameters_json = no_parameters;
    if (rc == 0) rc = check_name(full.name, err);
    if (rc == 0) rc = check_parameters(full.parameters_json, err);
    if (rc == 0 && full.call == NULL) rc = bc_error_set(err, BARCHAN_EINVAL, "call is NULL");
    if (rc < 0) {
        bc_error_context(err, "add a tool");
        return rc;
    }
    bl_host_tool *copy = calloc(1, sizeof *copy);
    if (copy == NULL) return bc_error_nomem(err);
    copy->name = strdup(full.name);
    copy->description = strdup(full.description != NULL ? full.description : "");
    copy->parameters = strdup(full.parameters_json);
    if (copy->name == NULL || copy->description == NULL || copy->parameters == NULL) {
        free_tool(copy);
        return bc_error_nomem(err);
    }
    copy->call = full.call;
    copy->ud = full.ud;
    add_or_replace(&engine->host, copy);
    return 0;
}

int barchan_engine_answer(barchan_engine *engine, uint64_t call_id, const char *text, size_t len,
                          int is_error, barchan_error *err)
{
    BC_OPERATION("engine.answer");
    int rc = bl_engine_check(engine, err);
    if (rc < 0) return rc;
    if (text == NULL && len > 0) return bc_error_set(err, BARCHAN_EINVAL, "the answer is NULL");
    if (len > BL_TOOL_MAX_ANSWER_BYTES) {
        return bc_error_set(err, BARCHAN_ELIMIT, "a tool's answer is longer than %zu MiB",
                            BL_TOOL_MAX_ANSWER_BYTES >> 20);
    }
    bl_host_call *call = engine->host.calls;
    while (call != NULL && call->id != call_id)
        call = call->next;
    if (call == NULL || call_id == 0) {
        return bc_error_set(err, BARCHAN_ENOTFOUND,
                            "no tool call waits under this id: it was answered or cancelled");
    }
    char *copy = malloc(len + 1);
    if (copy == NULL) return bc_error_nomem(err);
    if (len > 0) memcpy(copy, text, len);
    copy[len] = '\0';
    bl_host_call_unlink(&engine->host, call);
    call->text = copy;
    call->len = len;
    call->is_error = is_error;
    bl_op_ready(&call->op);
    return 0;
}
