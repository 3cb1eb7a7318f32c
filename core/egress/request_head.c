#include "request_head.h"

#include <string.h>
#include "host_name.h"

static const char preface[] = "PRI * HTTP/2.0\r\n\r\n";
enum { PREFACE = sizeof preface - 1, METHOD_MAX = 15 };

typedef struct text {
    const char *data;
    size_t len;
} text;

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* RFC 9110, 5.6.2 */
static bool is_token(text t)
{
    for (size_t i = 0; i < t.len; i++) {
        char c = t.data[i];
        if (is_letter(c) || (c >= '0' && c <= '9')) continue;
        if (c == '\0' || strchr("!#$%&'*+-.^_`|~", c) == NULL) return false;
    }
    return t.len > 0;
}

/* In ASCII, whatever the host's locale: in Turkish 'I' is no capital of 'i'. `word` is lower-case.
 */
static bool begins(text t, const char *word)
{
    size_t len = strlen(word);
    if (t.len < len) return false;
    for (size_t i = 0; i < len; i++) {
        char c = t.data[i];
        if ((c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c) != word[i]) return false;
    }
    return true;
}

static bool equals(text t, const char *word)
{
    return t.len == strlen(word) && begins(t, word);
}

static char folded(char c)
{
    if (c >= 'A' && c <= 'Z') return (char)(c - 'A' + 'a');
    return is_letter(c) || (c >= '0' && c <= '9') ? c : '-';
}

bool bc_same_field(const char *name, size_t len, const char *word)
{
    if (strlen(word) != len) return false;
    for (size_t i = 0; i < len; i++)
        if (folded(name[i]) != folded(word[i])) return false;
    return true;
}

/* Another spelling of a name that says where a request ends. */
static bool is_misspelt(text name)
{
    static const char *const names[] = {"content-length", "transfer-encoding"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (bc_same_field(name.data, name.len, names[i]) && !equals(name, names[i])) return true;
    }
    return false;
}

/* ---- lines ---- */

/* The line at `data` without its CRLF. MORE when its end has not come, BAD when it has a byte that
 * no line may have: NUL and other controls, a CR or LF alone. */
static bc_sniff read_line(const char *data, size_t len, text *line)
{
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)data[i];
        if (c == '\r') {
            if (i + 1 == len) return BC_SNIFF_MORE;
            *line = (text){data, i};
            return data[i + 1] == '\n' ? BC_SNIFF_DONE : BC_SNIFF_BAD;
        }
        if ((c < ' ' && c != '\t') || c == 0x7f) return BC_SNIFF_BAD;
    }
    return BC_SNIFF_MORE;
}

/* Steps over the empty lines before a request. */
static bc_sniff skip_empty_lines(const char *data, size_t len, size_t *at)
{
    for (int lines = 0;; lines++) {
        if (*at == len) return BC_SNIFF_MORE;
        if (data[*at] != '\r') return BC_SNIFF_DONE;
        if (lines == BC_REQUEST_MAX_EMPTY_LINES) return BC_SNIFF_BAD;
        if (*at + 1 == len) return BC_SNIFF_MORE;
        if (data[*at + 1] != '\n') return BC_SNIFF_BAD;
        *at += 2;
    }
}

static bc_sniff read_preface(const char *data, size_t len)
{
    size_t have = len < PREFACE ? len : PREFACE;
    if (memcmp(data, preface, have) != 0) return BC_SNIFF_BAD;
    return have == PREFACE ? BC_SNIFF_DONE : BC_SNIFF_MORE;
}

/* ---- hosts ---- */

/* 1 to 65535, 0 when it is none. */
static unsigned read_port(text t)
{
    unsigned port = 0;
    if (t.len == 0 || t.len > 5 || t.data[0] == '0') return 0;
    for (size_t i = 0; i < t.len; i++) {
        if (t.data[i] < '0' || t.data[i] > '9') return 0;
        port = port * 10 + (unsigned)(t.data[i] - '0');
    }
    return port <= 65535 ? port : 0;
}

/* "host", "host:port", "[v6]", "[v6]:port". Without user information: '@' is in no host. */
static bool read_authority(text t, char host[254], unsigned *port)
{
    bool brackets = t.len > 0 && t.data[0] == '[';
    const char *end = memchr(t.data, brackets ? ']' : ':', t.len);
    if (brackets && end == NULL) return false;
    size_t skip = brackets ? 1 : 0;
    size_t host_len = (end == NULL ? t.len : (size_t)(end - t.data)) - skip;
    size_t used = host_len + 2 * skip;
    *port = 0;
    if (bc_host_name_canonical(t.data + skip, host_len, host) != 0) return false;
    if ((strchr(host, ':') != NULL) != brackets) return false;
    if (used == t.len) return true;
    if (t.data[used] != ':') return false;
    *port = read_port((text){t.data + used + 1, t.len - used - 1});
    return *port != 0;
}

/* ---- the request line ---- */

/* What the target says of the host; "" when it says nothing. */
typedef struct target {
    char host[254];
    unsigned port;
    unsigned usual_port; /* of its scheme; 0: none */
} target;

static bool read_url(text url, target *out)
{
    bool secure = begins(url, "https://");
    if (!secure && !begins(url, "http://")) return false;
    size_t at = secure ? 8 : 7, end = at;
    while (end < url.len && strchr("/?", url.data[end]) == NULL)
        end++;
    out->usual_port = secure ? 443 : 80;
    return read_authority((text){url.data + at, end - at}, out->host, &out->port);
}

static bool read_target(text t, bc_request_head *out, target *to)
{
    for (size_t i = 0; i < t.len; i++) /* a target has no fragment: RFC 9112, 3.2 */
        if (t.data[i] <= ' ' || t.data[i] > '~' || t.data[i] == '#') return false;
    out->connect = strcmp(out->method, "CONNECT") == 0;
    if (t.len == 0) return false;
    if (out->connect) return read_authority(t, to->host, &to->port) && to->port != 0;
    if (t.data[0] == '/') return true;
    if (t.len == 1 && t.data[0] == '*') return strcmp(out->method, "OPTIONS") == 0;
    out->absolute = true;
    return read_url(t, to);
}

/* The method's length; 0 when these bytes are none. */
static size_t method_length(const char *data, size_t len, bool *cut)
{
    size_t at = 0;
    while (at < len && at <= METHOD_MAX && (is_letter(data[at]) || data[at] == '-'))
        at++;
    *cut = at == len && at <= METHOD_MAX;
    if (at == 0 || at > METHOD_MAX || !is_letter(data[0])) return 0;
    return *cut || data[at] == ' ' ? at : 0;
}

/* method SP target SP HTTP/1.x, each space exactly one */
static bool read_request_line(text line, bc_request_head *out, target *to)
{
    bool cut;
    size_t method = method_length(line.data, line.len, &cut);
    if (method == 0 || cut) return false;
    memcpy(out->method, line.data, method);
    text rest = {line.data + method + 1, line.len - method - 1};
    const char *space = memchr(rest.data, ' ', rest.len);
    if (space == NULL) return false;
    text first = {rest.data, (size_t)(space - rest.data)};
    text version = {space + 1, rest.len - first.len - 1};
    if (version.len != 8 || memcmp(version.data, "HTTP/1.", 7) != 0) return false;
    if (version.data[7] != '0' && version.data[7] != '1') return false;
    out->minor = version.data[7] - '0';
    return read_target(first, out, to);
}

/* ---- fields ---- */

typedef struct fields {
    int count;
    bool has_host, has_length, has_coding;
} fields;

static text trim(text t)
{
    while (t.len > 0 && (t.data[0] == ' ' || t.data[0] == '\t')) {
        t.data++;
        t.len--;
    }
    while (t.len > 0 && (t.data[t.len - 1] == ' ' || t.data[t.len - 1] == '\t'))
        t.len--;
    return t;
}

static bool read_length(text value, bc_request_head *out)
{
    /* 18 digits fit 63 bits. */
    if (value.len == 0 || value.len > 18) return false;
    out->body_len = 0;
    for (size_t i = 0; i < value.len; i++) {
        if (value.data[i] < '0' || value.data[i] > '9') return false;
        out->body_len = out->body_len * 10 + (value.data[i] - '0');
    }
    return true;
}

/* A name in front of a colon without a space, which also refuses folded lines. */
static bool read_field(text line, fields *seen, bc_request_head *out)
{
    const char *colon = memchr(line.data, ':', line.len);
    if (colon == NULL || seen->count++ == BC_REQUEST_MAX_FIELDS) return false;
    text name = {line.data, (size_t)(colon - line.data)};
    text value = trim((text){colon + 1, line.len - name.len - 1});
    if (!is_token(name) || is_misspelt(name)) return false;
    if (equals(name, "host")) {
        if (seen->has_host) return false;
        seen->has_host = true;
        return read_authority(value, out->host, &out->port);
    }
    if (equals(name, "content-length")) {
        if (seen->has_length) return false;
        seen->has_length = out->has_length = true;
        return read_length(value, out);
    }
    if (equals(name, "transfer-encoding")) {
        if (seen->has_coding || !equals(value, "chunked")) return false;
        seen->has_coding = true;
        out->chunked = true;
    }
    if (equals(name, "upgrade")) {
        out->websocket = !out->upgrade && equals(value, "websocket");
        out->upgrade = true;
    }
    return true;
}

/* What the parts say must fit together. */
static bool finish(const fields *seen, const target *to, bc_request_head *out)
{
    if (seen->has_length && seen->has_coding) return false;
    if (out->minor == 0 && seen->has_coding) return false;
    if (out->minor == 1 && !seen->has_host) return false;
    if (to->host[0] == '\0') return true;
    if (seen->has_host && strcmp(out->host, to->host) != 0) return false;
    unsigned port = to->port != 0 ? to->port : to->usual_port;
    unsigned said = out->port != 0 ? out->port : to->usual_port;
    /* Host of a CONNECT may leave out the port. */
    if (seen->has_host && said != 0 && said != port) return false;
    memcpy(out->host, to->host, sizeof out->host);
    out->port = to->port;
    return true;
}

/* `at`: behind the empty lines. */
static bc_sniff read_head(const char *data, size_t len, size_t at, bc_request_head *out)
{
    fields seen = {0};
    target to = {.port = 0};
    text line;
    for (bool first = true;; first = false) {
        bc_sniff sniff = read_line(data + at, len - at, &line);
        if (sniff != BC_SNIFF_DONE) return sniff;
        at += line.len + 2;
        if (line.len == 0) break;
        bool good = first ? read_request_line(line, out, &to) : read_field(line, &seen, out);
        if (!good) return BC_SNIFF_BAD;
    }
    out->head_len = at;
    return finish(&seen, &to, out) ? BC_SNIFF_DONE : BC_SNIFF_BAD;
}

bc_sniff bc_request_head_read(const char *data, size_t len, bc_request_head *out)
{
    *out = (bc_request_head){.minor = 0};
    size_t at = 0;
    bool all = len < BC_REQUEST_HEAD_MAX;
    if (!all) len = BC_REQUEST_HEAD_MAX;
    bc_sniff sniff = bc_looks_like_request(data, len);
    if (sniff != BC_SNIFF_DONE) return sniff;
    sniff = read_preface(data, len);
    if (sniff == BC_SNIFF_DONE) {
        out->http2_preface = true;
        return BC_SNIFF_DONE;
    }
    if (sniff == BC_SNIFF_BAD) {
        skip_empty_lines(data, len, &at);
        sniff = read_head(data, len, at, out);
        if (sniff == BC_SNIFF_MORE && !all) sniff = BC_SNIFF_BAD;
    }
    if (sniff != BC_SNIFF_DONE) *out = (bc_request_head){.minor = 0};
    return sniff;
}

bc_sniff bc_looks_like_request(const char *data, size_t len)
{
    size_t at = 0;
    bool cut;
    bc_sniff sniff = skip_empty_lines(data, len, &at);
    if (sniff != BC_SNIFF_DONE) return sniff;
    if (method_length(data + at, len - at, &cut) == 0) return BC_SNIFF_BAD;
    return cut ? BC_SNIFF_MORE : BC_SNIFF_DONE;
}
