/* The reply as JSON text, and the digest that tells an edited one. */
#include "reply.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/utf8.h"
#include "json_out.h"

/* FNV-1a. It guards against mistakes, not against attackers: who can edit the view can as well
 * edit the digest. */
static uint64_t fnv(uint64_t hash, const void *data, size_t len)
{
    const unsigned char *s = data;
    for (size_t i = 0; i < len; i++)
        hash = (hash ^ s[i]) * UINT64_C(1099511628211);
    return hash;
}

static const uint64_t fnv_start = UINT64_C(14695981039346656037);

void bc_make_id(const char *text, size_t len, uint64_t salt, char id[BC_MADE_ID_BYTES])
{
    static const char digits[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    uint64_t hash = fnv(fnv(fnv_start, text, len), &salt, sizeof salt);
    for (int i = 0; i < BC_MADE_ID_BYTES - 1; i++) {
        id[i] = digits[hash % 62];
        hash /= 62;
    }
    id[BC_MADE_ID_BYTES - 1] = '\0';
}

static uint64_t hash_string(uint64_t hash, const json_t *value)
{
    uint64_t len = json_string_length(value);
    hash = fnv(hash, &len, sizeof len);
    return fnv(hash, json_string_value(value) == NULL ? "" : json_string_value(value), len);
}

int bc_view_digest(const json_t *message, char digest[BC_DIGEST_BYTES])
{
    uint64_t hash = hash_string(fnv_start, json_object_get(message, "text"));
    size_t i;
    json_t *call;
    json_array_foreach(json_object_get(message, "tool_calls"), i, call)
    {
        hash = hash_string(hash, json_object_get(call, "id"));
        hash = hash_string(hash, json_object_get(call, "name"));
        /* Sorted keys and one way to write each number: a script's copy looks the same. */
        char *arguments = json_dumps(json_object_get(call, "arguments"),
                                     JSON_SORT_KEYS | JSON_COMPACT | JSON_ENCODE_ANY);
        if (arguments == NULL && json_object_get(call, "arguments") != NULL) return BARCHAN_ENOMEM;
        if (arguments != NULL) hash = fnv(hash, arguments, strlen(arguments));
        free(arguments);
    }
    json_array_foreach(json_object_get(message, "invalid_tool_calls"), i, call)
    {
        hash = hash_string(hash, json_object_get(call, "id"));
    }
    snprintf(digest, BC_DIGEST_BYTES, "%016" PRIx64, hash);
    return 0;
}

static void put_buf(bc_out *out, const char *key, const bc_buf *text)
{
    bc_out_key(out, key);
    bc_out_string(out, bc_buf_data(text), text->len);
}

/* The arguments are JSON text already; only bytes that are not UTF-8 are repaired. */
static void put_arguments(bc_out *out, const bc_buf *arguments)
{
    bc_out_key(out, "arguments");
    if (out->rc == 0) {
        out->rc = bc_utf8_append_repaired(out->buf, bc_buf_data(arguments), arguments->len);
    }
}

static void put_calls(bc_out *out, const bc_reply *reply)
{
    size_t invalid = 0;
    bc_out_key(out, "tool_calls");
    bc_out_open(out, '[');
    for (size_t i = 0; i < reply->call_count; i++) {
        const bc_call *call = &reply->calls[i];
        invalid += call->error[0] != '\0';
        if (call->error[0] != '\0') continue;
        bc_out_open(out, '{');
        put_buf(out, "id", &call->id);
        put_buf(out, "name", &call->name);
        put_arguments(out, &call->arguments);
        bc_out_close(out, '}');
    }
    bc_out_close(out, ']');
    if (invalid == 0) return;
    bc_out_key(out, "invalid_tool_calls");
    bc_out_open(out, '[');
    for (size_t i = 0; i < reply->call_count; i++) {
        const bc_call *call = &reply->calls[i];
        if (call->error[0] == '\0') continue;
        bc_out_open(out, '{');
        put_buf(out, "id", &call->id);
        put_buf(out, "name", &call->name);
        put_buf(out, "arguments_text", &call->arguments);
        bc_out_key(out, "position");
        bc_out_integer(out, (int64_t)i);
        bc_out_member(out, "error", call->error);
        bc_out_close(out, '}');
    }
    bc_out_close(out, ']');
}

static void put_count(bc_out *out, const char *key, int64_t count)
{
    if (count < 0) return;
    bc_out_key(out, key);
    bc_out_integer(out, count);
}

static void put_usage(bc_out *out, const bc_usage *usage)
{
    bc_out_key(out, "usage");
    bc_out_open(out, '{');
    put_count(out, "input_tokens", usage->input);
    put_count(out, "cache_read_tokens", usage->cache_read);
    put_count(out, "cache_write_tokens", usage->cache_write);
    put_count(out, "output_tokens", usage->output);
    put_count(out, "reasoning_tokens", usage->reasoning);
    bc_out_close(out, '}');
}

static void put_view(bc_out *out, const bc_reply *reply)
{
    bc_out_open(out, '{');
    bc_out_member(out, "role", "assistant");
    put_buf(out, "text", &reply->text);
    if (reply->reasoning.len > 0) put_buf(out, "reasoning", &reply->reasoning);
    if (reply->refusal.len > 0) put_buf(out, "refusal", &reply->refusal);
    put_calls(out, reply);
    bc_out_member(out, "stop_reason", bc_stop_name(reply->stop));
    bc_out_key(out, "raw_stop_reason");
    if (reply->has_raw_stop) {
        bc_out_string(out, reply->raw_stop, strlen(reply->raw_stop));
    } else {
        bc_out_word(out, "null");
    }
    put_usage(out, &reply->usage);
    if (reply->model[0] != '\0') bc_out_member(out, "model", reply->model);
    if (reply->id[0] != '\0') bc_out_member(out, "id", reply->id);
    if (reply->request_id[0] != '\0') bc_out_member(out, "request_id", reply->request_id);
    bc_out_close(out, '}');
}

static void put_raw(bc_out *out, const bc_reply *reply, const bc_origin *origin, const char *digest)
{
    bc_out_key(out, "raw");
    bc_out_open(out, '{');
    bc_out_member(out, "provider", origin->provider);
    bc_out_member(out, "model", origin->model);
    bc_out_member(out, "base_url", origin->base_url);
    bc_out_member(out, "view", digest);
    put_buf(out, "turn", &reply->turn);
    bc_out_close(out, '}');
}

int bc_reply_render(const bc_reply *reply, const bc_origin *origin, bc_buf *buf, barchan_error *err)
{
    bc_out out = {.buf = buf};
    put_view(&out, reply);
    if (out.rc < 0) return bc_error_set(err, out.rc, "the reply is too large");
    if (reply->turn.len == 0 || origin == NULL) return 0;
    /* The digest is made of the text that leaves, so it is what will come back. */
    cleanup_json json_t *view = NULL;
    char digest[BC_DIGEST_BYTES];
    int rc = bc_json_view(&view, bc_buf_data(buf), buf->len, 0, err);
    if (rc < 0) return rc;
    if (bc_view_digest(view, digest) < 0) return bc_error_nomem(err);
    buf->len--; /* open the object again */
    put_raw(&out, reply, origin, digest);
    bc_out_close(&out, '}');
    return out.rc < 0 ? bc_error_set(err, out.rc, "the reply is too large") : 0;
}
