/* Tool declarations in the forms of the providers, for those who talk to one by themselves. */
#include "provider.h"

#include <string.h>
#include "base/cleanup.h"

static void put_common(bc_out *out, const bc_tool *tool, const char *schema_key)
{
    bc_out_member(out, "name", tool->name);
    if (tool->description != NULL) {
        bc_out_key(out, "description");
        bc_out_string(out, tool->description, tool->description_len);
    }
    bc_out_key(out, schema_key);
    bc_out_raw(out, tool->parameters.data, tool->parameters.len);
}

/* {"name", "description", KEY: schema}: neutral, anthropic, mcp, and inside gemini's. */
static void put_flat(bc_out *out, const bc_tool *tool, const char *schema_key)
{
    bc_out_open(out, '{');
    put_common(out, tool, schema_key);
    bc_out_close(out, '}');
}

static void put_openai(bc_out *out, const bc_tool *tool, const char *schema_key)
{
    bc_out_open(out, '{');
    bc_out_member(out, "type", "function");
    bc_out_key(out, "function");
    put_flat(out, tool, schema_key);
    bc_out_close(out, '}');
}

/* Strict mode is asked off: when it is left out, this API tries it on schemas not made for it. */
static void put_responses(bc_out *out, const bc_tool *tool, const char *schema_key)
{
    bc_out_open(out, '{');
    bc_out_member(out, "type", "function");
    put_common(out, tool, schema_key);
    bc_out_key(out, "strict");
    bc_out_word(out, "false");
    bc_out_close(out, '}');
}

typedef struct form {
    const char *name, *schema_key;
    void (*put)(bc_out *out, const bc_tool *tool, const char *schema_key);
    const char *before, *after; /* around the list */
} form;

static const form forms[] = {
    {"neutral", "parameters", put_flat, "[", "]"},
    {"anthropic", "input_schema", put_flat, "[", "]"},
    {"openai", "parameters", put_openai, "[", "]"},
    {"responses", "parameters", put_responses, "[", "]"},
    {"gemini", "parametersJsonSchema", put_flat, "[{\"functionDeclarations\":[", "]}]"},
    {"mcp", "inputSchema", put_flat, "[", "]"},
};

static const form *find_form(const char *name)
{
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        if (strcmp(forms[i].name, name) == 0) return &forms[i];
    }
    return NULL;
}

static void put_list(bc_out *out, const form *wanted, const bc_tool *tools, size_t count)
{
    /* Around no tools there is nothing to put. */
    bc_out_word(out, count > 0 ? wanted->before : "[");
    for (size_t i = 0; i < count; i++)
        wanted->put(out, &tools[i], wanted->schema_key);
    if (out->rc == 0) out->rc = bc_buf_append_string(out->buf, count > 0 ? wanted->after : "]");
}

void bc_tools_put(bc_out *out, const char *format, const bc_tool *tools, size_t count)
{
    put_list(out, find_form(format), tools, count);
}

static int render(const char *format, const char *tools, size_t len, char **json,
                  barchan_error *err)
{
    if (format == NULL || tools == NULL || json == NULL) {
        return bc_error_set(err, BARCHAN_EINVAL, "tools_render needs a format, tools and a result");
    }
    const form *wanted = find_form(format);
    if (wanted == NULL) {
        return bc_error_set(err, BARCHAN_EINVAL,
                            "unknown format '%.40s'; known are neutral, "
                            "anthropic, openai, responses, gemini and mcp",
                            format);
    }
    cleanup_json json_t *view = NULL;
    cleanup_free bc_tool *list = NULL;
    size_t count = 0;
    int rc = bc_json_view(&view, tools, len, 0, err);
    if (rc == BARCHAN_EPROTOCOL) rc = bc_error_recode(err, BARCHAN_EINVAL);
    if (rc == 0) rc = bc_tools_parse((bc_json_span){tools, len}, view, &list, &count, err);
    if (rc < 0) return rc;
    cleanup_buf bc_buf buf;
    bc_buf_init(&buf, 2 * (size_t)BC_JSON_MAX_BYTES);
    bc_out out = {.buf = &buf};
    put_list(&out, wanted, list, count);
    if (out.rc < 0) return bc_error_set(err, out.rc, "the declarations are too large");
    *json = bc_buf_take(&buf, NULL);
    return *json != NULL ? 0 : bc_error_nomem(err);
}

int barchan_tools_render(const char *format, const char *tools, size_t len, char **json,
                         barchan_error *err)
{
    BC_OPERATION("tools.render");
    int rc = render(format, tools, len, json, err);
    if (rc < 0) {
        bc_error_context(err, "render tools");
    }
    return rc;
}
