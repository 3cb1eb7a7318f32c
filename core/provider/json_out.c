#include "json_out.h"

#include <string.h>

static void put(bc_out *out, const char *text, size_t len)
{
    if (out->rc == 0) out->rc = bc_buf_append(out->buf, text, len);
}

/* A comma is due unless a bracket or a colon was just written. No value ends with one of those. */
static void separate(bc_out *out)
{
    size_t len = out->buf->len;
    if (len == 0) return;
    char last = bc_buf_data(out->buf)[len - 1];
    if (last != '{' && last != '[' && last != ':') put(out, ",", 1);
}

void bc_out_open(bc_out *out, char bracket)
{
    separate(out);
    put(out, &bracket, 1);
}

void bc_out_close(bc_out *out, char bracket)
{
    put(out, &bracket, 1);
}

void bc_out_string(bc_out *out, const char *text, size_t len)
{
    separate(out);
    if (out->rc == 0) out->rc = bc_json_write_string(out->buf, text, len);
}

void bc_out_key(bc_out *out, const char *key)
{
    bc_out_string(out, key, strlen(key));
    put(out, ":", 1);
}

void bc_out_integer(bc_out *out, int64_t value)
{
    separate(out);
    if (out->rc == 0) out->rc = bc_json_write_integer(out->buf, value);
}

void bc_out_raw(bc_out *out, const char *text, size_t len)
{
    separate(out);
    put(out, text, len);
}

void bc_out_raw_key(bc_out *out, bc_json_span key)
{
    bc_out_raw(out, key.data, key.len);
    put(out, ":", 1);
}

void bc_out_escaped(bc_out *out, bc_json_span contents)
{
    bc_out_raw(out, "\"", 1);
    put(out, contents.data, contents.len);
    put(out, "\"", 1);
}

void bc_out_member(bc_out *out, const char *key, const char *text)
{
    bc_out_key(out, key);
    bc_out_string(out, text, strlen(text));
}

static int is_plain(char c)
{
    return c == '_' || c == '-' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
           (c >= 'A' && c <= 'Z');
}

int bc_tool_name_is_plain(const char *name, size_t len, size_t max)
{
    size_t at = 0;
    while (at < len && is_plain(name[at]))
        at++;
    return len > 0 && at == len && len <= max;
}

void bc_out_tool_name(bc_out *out, const char *name, size_t len, size_t max)
{
    char good[BC_MODEL_MAX_NAME_BYTES];
    if (max > sizeof good) max = sizeof good;
    if (len > max) len = max;
    for (size_t i = 0; i < len; i++)
        good[i] = is_plain(name[i]) ? name[i] : '_';
    bc_out_string(out, len > 0 ? good : "unknown", len > 0 ? len : 7);
}
