#include "secret_head.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

typedef struct span {
    const char *data;
    size_t len;
} span;

typedef struct rewrite {
    const bc_secret *const *secrets;
    size_t count;
    const bc_secret *all;
    size_t all_count;
    unsigned port;
    const bc_request_head *head;
    span target;
    bc_secret_report *report;
    uint32_t written;     /* a bit for each secret whose value has been */
    bool closes, expects; /* the program's wish for what comes after, and before the body */
} rewrite;

void bc_secret_note_text(const bc_secret *secret, bc_secret_note note, char *text, size_t cap)
{
    static const char *const words[BC_SECRET_NOTE_COUNT] = {
        "put into ",
        "not used: its placeholder stands outside of ",
        "not used: it is not for this method",
        "not used: it is not for this path",
        "not used: its placeholder stands in another form in ",
        "not used: a value stands already in ",
        "not used: its placeholder is sent without TLS, or to another host",
        ""};
    if (secret == NULL || note == BC_SECRET_OWN) {
        snprintf(text, cap, "authorization of the program's own, on a host with secrets");
        return;
    }
    bool named =
        note != BC_SECRET_NO_METHOD && note != BC_SECRET_NO_PATH && note != BC_SECRET_UNSAFE;
    snprintf(text, cap, "secret %s: %s%s", secret->name, words[note], named ? secret->header : "");
}

static void note(bc_secret_report *report, const bc_secret *secret, bc_secret_note what)
{
    for (size_t i = 0; i < report->count; i++) {
        if (report->notes[i].secret == secret && report->notes[i].note == what) return;
    }
    if (report->count == BC_SECRET_MAX_NOTES) return;
    report->notes[report->count].secret = secret;
    report->notes[report->count++].note = what;
}

/* ---- lines ---- */

/* The line at *at, without its CRLF; steps behind it. */
static span next_line(const char *data, size_t len, size_t *at)
{
    const char *end = memchr(data + *at, '\r', len - *at);
    span line = {data + *at, end == NULL ? len - *at : (size_t)(end - data) - *at};
    *at += line.len + 2 < len - *at ? line.len + 2 : len - *at;
    return line;
}

static span trim(span s)
{
    while (s.len > 0 && (s.data[0] == ' ' || s.data[0] == '\t')) {
        s.data++;
        s.len--;
    }
    while (s.len > 0 && (s.data[s.len - 1] == ' ' || s.data[s.len - 1] == '\t'))
        s.len--;
    return s;
}

static void split(span line, span *name, span *value)
{
    const char *colon = memchr(line.data, ':', line.len);
    size_t len = colon == NULL ? line.len : (size_t)(colon - line.data);
    *name = (span){line.data, len};
    *value = colon == NULL ? (span){line.data, 0} : trim((span){colon + 1, line.len - len - 1});
}

/* `word` is the name, or with '*' at its beginning or end the other end of it. */
static bool fits_name(span name, const char *word)
{
    size_t len = strlen(word);
    bool ending = word[0] == '*', beginning = word[len - 1] == '*';
    if (!ending && !beginning) return bc_same_field(name.data, name.len, word);
    if (name.len < len - 1) return false;
    char part[32];
    snprintf(part, sizeof part, "%.*s", (int)len - 1, word + (ending ? 1 : 0));
    return bc_same_field(name.data + (ending ? name.len - (len - 1) : 0), len - 1, part);
}

static bool is_one_of(span name, const char *const *words)
{
    while (*words != NULL && !fits_name(name, *words))
        words++;
    return *words != NULL;
}

bool bc_secret_is_never_sent(const char *field, size_t len)
{
    static const char *const unsearchable[] = {
        "accept-encoding", "accept-charset", "a-im", "range", "*-range", "te", NULL};
    static const char *const of_one_hop[] = {
        "connection",     "keep-alive", "proxy-authorization", "proxy-connection", "max-forwards",
        "http2-settings", NULL};
    span name = {field, len};
    /* Of a part that is sent: it asks for nothing, and without it the part would be the whole. */
    if (bc_same_word(field, len, "content-range")) return false;
    return is_one_of(name, unsearchable) || is_one_of(name, of_one_hop);
}

/* By which servers and what stands before them take another method, host or path. */
static bool makes_another_request(span name)
{
    static const char *const words[] = {"x-http-method*",
                                        "*-override",
                                        "x-override-url",
                                        "x-original-*",
                                        "x-rewrite-*",
                                        "x-forwarded*",
                                        "forwarded",
                                        "x-host",
                                        "x-proxy-url",
                                        "x-replaced-path",
                                        "base-url",
                                        "request-uri",
                                        "x-envoy-original-*",
                                        "http-url",
                                        "script-name",
                                        "path-info",
                                        "x-script-name",
                                        "x-matched-path",
                                        "x-invoke-path",
                                        "x-middleware-*",
                                        "x-http-destinationurl",
                                        NULL};
    return is_one_of(name, words);
}

/* So that every server reads there what was read here. */
static bool is_written_anew(span name)
{
    static const char *const words[] = {"host", "content-length", "transfer-encoding", "expect",
                                        NULL};
    return is_one_of(name, words);
}

static bool is_guarded(const rewrite *r, span name)
{
    if (bc_same_field(name.data, name.len, "authorization")) return true;
    for (size_t i = 0; i < r->count; i++) {
        if (bc_same_field(name.data, name.len, r->secrets[i]->header)) return true;
    }
    return false;
}

static bool is_bound(const rewrite *r, const bc_secret *secret)
{
    size_t i = 0;
    while (i < r->count && r->secrets[i] != secret)
        i++;
    return i < r->count;
}

/* Of other hosts. */
static void look_for_others(const rewrite *r, span text)
{
    for (size_t i = 0; i < r->all_count; i++) {
        const bc_secret *secret = &r->all[i];
        if (!is_bound(r, secret) && bc_secret_is_in(secret, text.data, text.len))
            note(r->report, secret, BC_SECRET_UNSAFE);
    }
}

static void look_for_strays(const rewrite *r, span text)
{
    for (size_t i = 0; i < r->count; i++) {
        if (bc_secret_is_in(r->secrets[i], text.data, text.len))
            note(r->report, r->secrets[i], BC_SECRET_OUTSIDE);
    }
    look_for_others(r, text);
}

/* ---- authorization ---- */

static bool fits(const rewrite *r, const bc_secret *secret)
{
    if (!bc_secret_has_method(secret, r->head->method)) {
        note(r->report, secret, BC_SECRET_NO_METHOD);
    } else if (!bc_secret_has_path(secret, r->target.data, r->target.len)) {
        note(r->report, secret, BC_SECRET_NO_PATH);
    } else {
        return true;
    }
    return false;
}

/* The secret whose value is to stand in this field; -1: the field is taken out, and noted. */
static int choose(const rewrite *r, span name, span value)
{
    bool known = false;
    for (size_t i = 0; i < r->count; i++) {
        const bc_secret *secret = r->secrets[i];
        bool its_own = bc_same_word(name.data, name.len, secret->header);
        if (its_own && bc_secret_is_asked_for(secret, value.data, value.len)) {
            return fits(r, secret) ? (int)i : -1;
        }
        if (!bc_secret_is_in(secret, value.data, value.len)) continue;
        note(r->report, secret, its_own ? BC_SECRET_MALFORMED : BC_SECRET_OUTSIDE);
        known = true;
    }
    look_for_others(r, value);
    if (!known) note(r->report, NULL, BC_SECRET_OWN);
    return -1;
}

static bool is_strict(const rewrite *r)
{
    for (size_t i = 0; i < r->count; i++) {
        if (r->secrets[i]->refuse) return true;
    }
    return false;
}

/* Of two values in one field a server takes either. */
static bool is_written(const rewrite *r, const char *header)
{
    for (size_t i = 0; i < r->count; i++) {
        const char *other = r->secrets[i]->header;
        if ((r->written & 1u << i) != 0 && bc_same_field(header, strlen(header), other))
            return true;
    }
    return false;
}

static int write_secret(rewrite *r, size_t index, bc_buf *out)
{
    const bc_secret *secret = r->secrets[index];
    if (is_written(r, secret->header)) {
        note(r->report, secret, BC_SECRET_TWICE);
        return 0;
    }
    r->written |= 1u << index;
    note(r->report, secret, BC_SECRET_USED);
    int rc = bc_buf_append_string(out, secret->header);
    if (rc == 0) rc = bc_buf_append_string(out, ": ");
    if (rc == 0) rc = bc_secret_write(secret, out);
    return rc == 0 ? bc_buf_append_string(out, "\r\n") : rc;
}

static void note_wishes(rewrite *r, span name, span value)
{
    if (bc_same_word(name.data, name.len, "connection"))
        r->closes |= bc_same_word(value.data, value.len, "close");
    if (bc_same_word(name.data, name.len, "expect"))
        r->expects |= bc_same_word(value.data, value.len, "100-continue");
}

/* Servers may write in the charset that a type asks for, as in "text/plain;charset=IBM500". */
static bool asks_for_charset(span name, span value)
{
    static const char word[] = "charset";
    if (!bc_same_field(name.data, name.len, "accept")) return false;
    for (size_t i = 0; i + sizeof word - 1 <= value.len; i++) {
        if (bc_same_word(value.data + i, sizeof word - 1, word)) return true;
    }
    return false;
}

static int write_field(rewrite *r, span line, bc_buf *out)
{
    span name, value;
    split(line, &name, &value);
    if (is_guarded(r, name)) {
        int index = choose(r, name, value);
        return index < 0 ? 0 : write_secret(r, (size_t)index, out);
    }
    look_for_strays(r, line);
    note_wishes(r, name, value);
    if (is_written_anew(name) || bc_secret_is_never_sent(name.data, name.len) ||
        makes_another_request(name) || asks_for_charset(name, value))
        return 0;
    int rc = bc_buf_append(out, line.data, line.len);
    return rc == 0 ? bc_buf_append_string(out, "\r\n") : rc;
}

/* ---- the head ---- */

static int write_request_line(rewrite *r, span line, bc_buf *out)
{
    const char *first = memchr(line.data, ' ', line.len);
    size_t at = first == NULL ? line.len : (size_t)(first + 1 - line.data);
    const char *second = memchr(line.data + at, ' ', line.len - at);
    r->target =
        (span){line.data + at, second == NULL ? line.len - at : (size_t)(second - line.data) - at};
    look_for_strays(r, line);
    int rc = bc_buf_append(out, line.data, line.len);
    if (rc == 0) rc = bc_buf_appendf(out, "\r\nHost: %s", r->head->host);
    if (rc == 0 && r->port != 443) rc = bc_buf_appendf(out, ":%u", r->port);
    return rc == 0 ? bc_buf_append_string(out, "\r\n") : rc;
}

/* Where its body ends, and that nothing follows one that has a body: see intercept.h. */
static int write_frame(const rewrite *r, bc_buf *out)
{
    const bc_request_head *head = r->head;
    bool body = head->chunked || head->body_len > 0;
    int rc = 0;
    if (head->chunked) rc = bc_buf_append_string(out, "Transfer-Encoding: chunked\r\n");
    if (rc == 0 && head->has_length)
        rc = bc_buf_appendf(out, "Content-Length: %" PRId64 "\r\n", head->body_len);
    if (rc == 0 && r->expects && body) rc = bc_buf_append_string(out, "Expect: 100-continue\r\n");
    if (rc == 0 && (r->closes || body)) rc = bc_buf_append_string(out, "Connection: close\r\n");
    return rc;
}

/* What refuses always goes before what only the strict refuse. */
static void decide(const rewrite *r)
{
    bc_secret_report *report = r->report;
    bool strict = is_strict(r);
    for (size_t i = 0; i < report->count; i++) {
        bc_secret_note what = report->notes[i].note;
        bool always = what == BC_SECRET_TWICE;
        if (what == BC_SECRET_USED || bc_secret_is_stray(what) || !(always || strict)) continue;
        if (!report->refused || always) report->cause = i;
        report->refused = true;
        if (always) return;
    }
}

int bc_secret_head_rewrite(const bc_secret_choice *choice, const bc_request_head *head,
                           const char *data, bc_buf *out, bc_secret_report *report)
{
    rewrite r = {.secrets = choice->bound,
                 .count = choice->bound_count,
                 .all = choice->all,
                 .all_count = choice->all_count,
                 .port = choice->port,
                 .head = head,
                 .report = report};
    size_t at = 0;
    int rc = 0;
    *report = (bc_secret_report){.count = 0};
    while (data[at] == '\r')
        at += 2; /* the empty lines before it */
    rc = write_request_line(&r, next_line(data, head->head_len, &at), out);
    while (rc == 0) {
        span line = next_line(data, head->head_len, &at);
        if (line.len == 0) break;
        rc = write_field(&r, line, out);
    }
    if (rc == 0) rc = write_frame(&r, out);
    if (rc == 0) rc = bc_buf_append_string(out, "Accept-Encoding: identity\r\n\r\n");
    decide(&r);
    return rc;
}
