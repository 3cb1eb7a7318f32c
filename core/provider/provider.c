#include "provider.h"

#include <string.h>
#include <strings.h>

const bc_provider *bc_provider_find(const char *name)
{
    static const bc_provider *const all[] = {&bc_provider_anthropic, &bc_provider_openai,
                                             &bc_provider_openai_responses, &bc_provider_gemini};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (strcmp(all[i]->name, name) == 0) return all[i];
    }
    return NULL;
}

/* ---- events ---- */

static bc_json_span trim(bc_json_span text)
{
    while (text.len > 0 && memchr(" \t\r\n", text.data[0], 4) != NULL) {
        text.data++;
        text.len--;
    }
    while (text.len > 0 && memchr(" \t\r\n", text.data[text.len - 1], 4) != NULL)
        text.len--;
    return text;
}

/* Blank, a comment sent as data, an empty string: keep-alives. */
static int is_noise(bc_json_span data)
{
    return data.len == 0 || data.data[0] == ':' || (data.len == 2 && data.data[0] == '"');
}

/* Of what a cut could leave only "[DONE]" is whole without being JSON. */
static int is_cut(bc_json_span data)
{
    if (data.len == 6 && memcmp(data.data, "[DONE]", 6) == 0) return 0;
    return bc_json_validate(data.data, data.len, NULL) < 0;
}

static int event_lines(const bc_provider *provider, void *reader, const char *name,
                       bc_json_span data, int may_be_cut, barchan_error *err)
{
    while (data.len > 0) {
        const char *lf = memchr(data.data, '\n', data.len);
        size_t len = lf != NULL ? (size_t)(lf - data.data) : data.len;
        bc_json_span line = trim((bc_json_span){data.data, len});
        int drop = is_noise(line) || (may_be_cut && lf == NULL && is_cut(line));
        int rc = drop ? 0 : provider->event(reader, name, line, err);
        if (rc < 0) return rc;
        len += lf != NULL;
        data = (bc_json_span){data.data + len, data.len - len};
    }
    return 0;
}

int bc_provider_event(const bc_provider *provider, void *reader, const char *name,
                      bc_json_span data, int may_be_cut, barchan_error *err)
{
    data = trim(data);
    if (is_noise(data)) return 0;
    if (memchr(data.data, '\n', data.len) != NULL &&
        bc_json_validate(data.data, data.len, NULL) < 0)
        return event_lines(provider, reader, name, data, may_be_cut, err);
    if (may_be_cut && is_cut(data)) return 0;
    return provider->event(reader, name, data, err);
}

/* ---- addresses and headers ---- */

static int ends_with(const char *text, size_t len, const char *tail)
{
    size_t tail_len = strlen(tail);
    return len >= tail_len && memcmp(text + len - tail_len, tail, tail_len) == 0;
}

int bc_provider_url(const char *base_url, const char *version, int bare_only, const char *tail,
                    bc_buf *url, barchan_error *err)
{
    size_t len = strcspn(base_url, "?");
    const char *query = base_url + len;
    while (len > 0 && base_url[len - 1] == '/')
        len--;
    int rc = bc_buf_append(url, base_url, len);
    if (!ends_with(base_url, len, tail)) {
        const char *scheme = strstr(base_url, "://");
        const char *host = scheme != NULL ? scheme + 3 : base_url;
        int has_path = memchr(host, '/', len - (size_t)(host - base_url)) != NULL;
        int versioned = ends_with(base_url, len, version) || (has_path && bare_only);
        if (rc == 0 && !versioned) rc = bc_buf_append_string(url, version);
        if (rc == 0) rc = bc_buf_append_string(url, tail);
    }
    if (rc == 0) rc = bc_buf_append_string(url, query);
    return rc < 0 ? bc_error_set(err, BARCHAN_EINVAL, "the base URL is too long") : 0;
}

int bc_provider_put_bearer(const char *key, bc_put_header_fn put, void *ud)
{
    static const char scheme[] = "Bearer ";
    bc_buf value;
    bc_buf_init(&value, strlen(key) + sizeof scheme);
    int has_scheme = strncasecmp(key, scheme, sizeof scheme - 1) == 0;
    int rc = bc_buf_appendf(&value, "%s%s", has_scheme ? "" : scheme, key);
    if (rc == 0) rc = put("authorization", bc_buf_data(&value), ud);
    explicit_bzero(bc_buf_data(&value), value.len);
    bc_buf_clear(&value);
    return rc;
}

int bc_provider_bearer(const bc_model_info *model, bc_put_header_fn put, void *ud)
{
    if (model->api_key == NULL || bc_provider_has_header(model, "authorization")) return 0;
    return bc_provider_put_bearer(model->api_key, put, ud);
}

int bc_provider_has_header(const bc_model_info *model, const char *name)
{
    size_t len = strlen(name);
    for (const char *const *h = model->headers; h != NULL && *h != NULL; h++) {
        if (strncasecmp(*h, name, len) == 0 && (*h)[len] == ':') return 1;
    }
    return 0;
}

int bc_provider_host_is(const bc_model_info *model, const char *host)
{
    const char *scheme = strstr(model->base_url, "://");
    const char *start = scheme != NULL ? scheme + 3 : model->base_url;
    size_t len = strcspn(start, ":/?"), want = strlen(host);
    if (len < want || strncasecmp(start + len - want, host, want) != 0) return 0;
    return len == want || start[len - want - 1] == '.';
}

/* ---- members of a body ---- */

int bc_body_key(bc_out *out, const bc_request *request, const char *key)
{
    bc_json_span value;
    if (request->extra.len > 0 && bc_json_member(request->extra, key, &value, NULL) == 1) return 0;
    bc_out_key(out, key);
    return 1;
}

void bc_body_settled(bc_out *out, bc_request *request)
{
    request->rendering = (bc_rendering){.begin = out->buf->len};
    if (request->settled.len == 0) return;
    bc_out_raw(out, request->settled.data, request->settled.len);
    request->rendering.begin = out->buf->len - request->settled.len;
}

void bc_body_message(const bc_out *out, bc_request *request, size_t index)
{
    request->messages[index].place = out->buf->len;
}

void bc_body_mark(bc_request *request, size_t at, size_t len)
{
    request->rendering.mark = at;
    request->rendering.mark_len = len;
}

void bc_body_messages_end(const bc_out *out, bc_request *request)
{
    request->rendering.end = out->buf->len;
}

int bc_body_has_tools(const bc_request *request)
{
    const json_t *extra = bc_json_get_object(request->view, "extra");
    const json_t *own = json_object_get(extra, "tools");
    return own != NULL ? json_array_size(own) > 0 : request->tool_count > 0;
}

void bc_body_extra(bc_out *out, const bc_request *request)
{
    bc_json_iter iter;
    if (request->extra.len == 0 || bc_json_iter_init(&iter, request->extra, NULL) != 1) return;
    while (bc_json_iter_next(&iter, NULL) == 1) {
        if (iter.type == BC_JSON_NULL) continue;
        bc_out_raw_key(out, iter.key);
        bc_out_raw(out, iter.value.data, iter.value.len);
    }
}
