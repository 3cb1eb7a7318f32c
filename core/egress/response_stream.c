#include "response_stream.h"

#include <string.h>
#include "egress/charset.h"
#include "egress/secret.h"
#include "egress/secret_memory.h"

enum { HEAD, BODY, CHUNK_LINE, CHUNK, CHUNK_END, TRAILER, UNTIL_END };
enum { ADDED_FIELDS = 2 }; /* to a server's own */

typedef struct answer {
    int status;
    bool chunked, coded, has_length;
    bool partial, odd; /* of a body, or of a delta of it; in a charset that may not be like ASCII */
    int64_t length;
    int minor;
} answer;

static int refuse(bc_response_stream *stream, const char *why)
{
    stream->why = why;
    return -1;
}

int bc_response_init(bc_response_stream *stream, bc_patterns *patterns)
{
    *stream = (bc_response_stream){.state = HEAD};
    bc_buf_init(&stream->line, BC_RESPONSE_HEAD_MAX);
    bc_buf_init(&stream->part, 1u << 20);
    return bc_redactor_init(&stream->redactor, patterns);
}

/* A server may show a value wherever it likes. */
static void wipe(bc_buf *buf)
{
    bc_secret_wipe(bc_buf_data(buf), buf->len);
    bc_buf_reset(buf);
}

void bc_response_clear(bc_response_stream *stream)
{
    bc_redactor_clear(&stream->redactor);
    wipe(&stream->line);
    bc_buf_clear(&stream->line);
    bc_buf_clear(&stream->part);
}

void bc_response_expect(bc_response_stream *stream, bool head_only, bool closes)
{
    stream->waiting = true;
    stream->head_only = head_only;
    stream->closes = closes;
    stream->begun = false;
    stream->interim = 0;
}

/* Many servers end an answer in good order then, within a value as well. */
void bc_response_hurry(bc_response_stream *stream)
{
    stream->hurried = stream->state != BODY;
}

bool bc_response_can_be_hurried(const bc_response_stream *stream)
{
    return stream->begun && !stream->hurried && stream->state != BODY;
}

/* ---- the head ---- */

static bool is_name_char(char c)
{
    return c > ' ' && c < 0x7f && strchr("\"(),/:;<=>?@[\\]{}", c) == NULL;
}

/* HTTP/1.x SP 3DIGIT [ SP reason ] */
static bool read_status(const char *line, size_t len, answer *out)
{
    if (len < 12 || memcmp(line, "HTTP/1.", 7) != 0 || line[8] != ' ') return false;
    if (line[7] != '0' && line[7] != '1') return false;
    out->minor = line[7] - '0';
    for (size_t i = 9; i < 12; i++) {
        if (line[i] < '0' || line[i] > '9') return false;
        out->status = out->status * 10 + (line[i] - '0');
    }
    return out->status >= 100 && (len == 12 || line[12] == ' ');
}

static bool read_length(const char *value, size_t len, answer *out)
{
    if (out->has_length || len == 0 || len > 18) return false;
    out->has_length = true;
    for (size_t i = 0; i < len; i++) {
        if (value[i] < '0' || value[i] > '9') return false;
        out->length = out->length * 10 + (value[i] - '0');
    }
    return true;
}

/* What a value could be in without being found. */
static void look_for_unsearchable(const char *name, size_t name_len, const char *value, size_t len,
                                  answer *out)
{
    if (bc_same_word(name, name_len, "content-encoding") && len > 0 &&
        !bc_same_word(value, len, "identity"))
        out->coded = true;
    if (bc_same_word(name, name_len, "content-range") || bc_same_word(name, name_len, "im"))
        out->partial = true;
    if (bc_same_word(name, name_len, "content-type") && !bc_charset_is_like_ascii(value, len))
        out->odd = true;
}

static bool read_field(const char *line, size_t len, answer *out)
{
    size_t name = 0;
    while (name < len && is_name_char(line[name]))
        name++;
    if (name == 0 || name == len || line[name] != ':') return false;
    const char *value = line + name + 1;
    size_t value_len = len - name - 1;
    while (value_len > 0 && (*value == ' ' || *value == '\t')) {
        value++;
        value_len--;
    }
    while (value_len > 0 && (value[value_len - 1] == ' ' || value[value_len - 1] == '\t'))
        value_len--;
    if (bc_same_word(line, name, "content-length")) return read_length(value, value_len, out);
    if (bc_same_word(line, name, "transfer-encoding")) {
        if (out->chunked || !bc_same_word(value, value_len, "chunked")) return false;
        out->chunked = true;
    }
    look_for_unsearchable(line, name, value, value_len, out);
    return true;
}

static bool read_head(const char *data, size_t len, size_t max_fields, answer *out)
{
    size_t at = 0, fields = 0;
    for (;;) {
        size_t end = at;
        while (end < len && data[end] != '\r' && data[end] != '\n' && data[end] != '\0')
            end++;
        if (end + 1 >= len || data[end] != '\r' || data[end + 1] != '\n') return false;
        if (end == at) return at > 0 && end + 2 == len && !(out->chunked && out->has_length);
        bool good = at == 0 ? read_status(data, end, out) : read_field(data + at, end - at, out);
        if (!good || fields++ > max_fields) return false;
        at = end + 2;
    }
}

static void finish(bc_response_stream *stream)
{
    stream->waiting = stream->begun = false;
    stream->state = HEAD;
    stream->answers++;
}

static bool has_no_body(const bc_response_stream *stream, const answer *a)
{
    return stream->head_only || a->status == 204 || a->status == 304;
}

/* What follows the head. */
static int begin_body(bc_response_stream *stream, const answer *a)
{
    if (has_no_body(stream, a)) {
        finish(stream);
        return 0;
    }
    if (a->coded) return refuse(stream, "the server's answer has a content coding");
    if (a->partial || a->status == 206 || a->status == 226)
        return refuse(stream, "the server's answer is a part of one");
    if (a->odd) return refuse(stream, "the server's answer is in a charset unlike ASCII");
    stream->left = a->length;
    if (a->chunked) {
        stream->state = CHUNK_LINE;
    } else if (!a->has_length) {
        stream->state = UNTIL_END;
        stream->last = true;
    } else if (a->length > 0) {
        stream->state = BODY;
    } else {
        finish(stream);
    }
    return 0;
}

/* What the program reads must be framed as it is taken to be here: a value may look like a part of
 * that. */
static bool is_framed_as(const bc_buf *masked, const answer *a)
{
    answer m = {0};
    return read_head(bc_buf_data(masked), masked->len, BC_RESPONSE_MAX_FIELDS + ADDED_FIELDS, &m) &&
           m.status == a->status && m.minor == a->minor && m.chunked == a->chunked &&
           m.has_length == a->has_length && m.length == a->length;
}

/* Whoever reads a body that has no length takes its end for the end, also where it was cut off: it
 * is passed on in chunks, whose last one does not come then. */
static const char *put_in_chunks(bc_response_stream *stream, answer *a)
{
    bc_buf_data(&stream->line)[sizeof "HTTP/1." - 1] = '1';
    a->minor = 1;
    a->chunked = true;
    return "Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n";
}

static int mask_head(bc_response_stream *stream, const answer *a)
{
    answer framed = *a;
    const char *more = "\r\n";
    const bc_buf *line = &stream->line;
    bc_buf *masked = &stream->part;
    bc_redactor *redactor = &stream->redactor;
    bool interim = a->status < 200;
    if (stream->closes && !interim) more = "Connection: close\r\n\r\n";
    if (!interim && !has_no_body(stream, a) && !a->chunked && !a->has_length)
        more = put_in_chunks(stream, &framed);
    int rc = bc_redactor_feed(redactor, bc_buf_data(line), line->len - 2, masked);
    if (rc == 0) rc = bc_redactor_feed(redactor, more, strlen(more), masked);
    if (rc == 0) rc = bc_redactor_end(redactor, masked);
    if (rc < 0) return refuse(stream, "out of memory");
    if (is_framed_as(masked, &framed)) return 0;
    return refuse(stream, "the value of a secret is in the framing of the server's answer");
}

static int use_head(bc_response_stream *stream, bc_buf *out)
{
    answer a = {0};
    bc_buf *line = &stream->line;
    if (!read_head(bc_buf_data(line), line->len, BC_RESPONSE_MAX_FIELDS, &a) ||
        (a.chunked && a.minor == 0)) {
        return refuse(stream, "the server's answer is malformed");
    }
    if (a.status == 101) return refuse(stream, "the server speaks another protocol");
    bool interim = a.status < 200;
    if (interim && ++stream->interim > BC_RESPONSE_MAX_INTERIM) {
        return refuse(stream, "the server gives no answer");
    }
    if (mask_head(stream, &a) < 0) return -1;
    if (!interim && begin_body(stream, &a) < 0) return -1;
    if (bc_buf_append(out, bc_buf_data(&stream->part), stream->part.len) < 0) {
        return refuse(stream, "out of memory");
    }
    bc_buf_reset(&stream->part);
    stream->begun = !interim && stream->waiting;
    wipe(line);
    bc_buf_clear(line);
    return 0;
}

/* All the memory that it may need at once, for it to be wiped whole: growing frees what it was. */
static int add_to_line(bc_response_stream *stream, const char *data, size_t len)
{
    bc_buf *line = &stream->line;
    if (line->mem == NULL && bc_buf_reserve(line, line->max) == NULL) return BARCHAN_ENOMEM;
    return bc_buf_append(line, data, len);
}

/* Gathers a head: how many bytes of `data` it took. */
static long step_head(bc_response_stream *stream, const char *data, size_t len, bc_buf *out)
{
    bc_buf *line = &stream->line;
    size_t at = 0;
    while (at < len) {
        const char *end = memchr(data + at, '\n', len - at);
        size_t n = end == NULL ? len - at : (size_t)(end - data) + 1 - at;
        int rc = add_to_line(stream, data + at, n);
        if (rc < 0) {
            return refuse(stream,
                          rc == BARCHAN_ENOMEM ? "out of memory" : "the server's head is too long");
        }
        at += n;
        const char *all = bc_buf_data(line);
        if (end != NULL && line->len >= 4 && memcmp(all + line->len - 4, "\r\n\r\n", 4) == 0) {
            return use_head(stream, out) < 0 ? -1 : (long)at;
        }
    }
    return (long)at;
}

/* ---- the body ---- */

static int write_chunk(bc_response_stream *stream, bc_buf *out)
{
    bc_buf *part = &stream->part;
    if (part->len == 0) return 0;
    int rc = bc_buf_appendf(out, "%zx\r\n", part->len);
    if (rc == 0) rc = bc_buf_append(out, bc_buf_data(part), part->len);
    if (rc == 0) rc = bc_buf_append_string(out, "\r\n");
    bc_buf_reset(part);
    return rc;
}

/* Not as the server sent it: as the program gets it. */
static bool is_in_chunks(const bc_response_stream *stream)
{
    return stream->state != HEAD && stream->state != BODY;
}

static int pass(bc_response_stream *stream, const char *data, size_t len, bc_buf *out)
{
    bool chunk = is_in_chunks(stream);
    int rc = bc_redactor_feed(&stream->redactor, data, len, chunk ? &stream->part : out);
    if (rc == 0 && chunk) rc = write_chunk(stream, out);
    return rc < 0 ? refuse(stream, "out of memory") : 0;
}

/* Chunks are written anew, so one more can stand anywhere in such a body. */
int bc_response_mask(bc_response_stream *stream, bc_patterns *patterns, bc_buf *out)
{
    bool chunked = is_in_chunks(stream);
    if (stream->redactor.patterns == patterns) return 0;
    int rc = bc_redactor_change(&stream->redactor, patterns, chunked ? &stream->part : out);
    return rc == 0 && chunked ? write_chunk(stream, out) : rc;
}

/* Without what is held back, whatever it is, lest its absence answers guesses. */
static int break_off(bc_response_stream *stream, const char *why)
{
    bc_redactor_forget(&stream->redactor);
    stream->broken = true;
    return refuse(stream, why);
}

static int end_body(bc_response_stream *stream, bc_buf *out)
{
    bool chunked = is_in_chunks(stream);
    if (stream->hurried && stream->redactor.held_len > 0)
        return break_off(stream, "the program may have chosen where the answer ends");
    int rc = bc_redactor_end(&stream->redactor, chunked ? &stream->part : out);
    if (rc == 0 && chunked) rc = write_chunk(stream, out);
    if (rc == 0 && chunked) rc = bc_buf_append_string(out, "0\r\n\r\n");
    if (rc < 0) return refuse(stream, "out of memory"); /* and the answer stays cut off */
    finish(stream);
    return 0;
}

static long step_body(bc_response_stream *stream, const char *data, size_t len, bc_buf *out)
{
    size_t n =
        stream->state == UNTIL_END || (uint64_t)stream->left > len ? len : (size_t)stream->left;
    if (pass(stream, data, n, out) < 0) return -1;
    if (stream->state == UNTIL_END) return (long)n;
    stream->left -= (int64_t)n;
    if (stream->left > 0) return (long)n;
    if (stream->state == CHUNK) {
        stream->state = CHUNK_END;
    } else if (end_body(stream, out) < 0) {
        return -1;
    }
    return (long)n;
}

/* 1*HEX [ ";" … ] */
static int use_size(bc_response_stream *stream, const char *line, size_t len)
{
    size_t at = 0;
    stream->left = 0;
    for (; at < len && at < 15; at++) { /* 15 digits fit 63 bits */
        char c = line[at];
        int digit = c >= '0' && c <= '9'   ? c - '0'
                    : c >= 'a' && c <= 'f' ? c - 'a' + 10
                    : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                           : -1;
        if (digit < 0) break;
        stream->left = stream->left << 4 | digit;
    }
    if (at == 0) return -1;
    while (at < len && line[at] == ' ')
        at++; /* some servers pad it */
    if (at < len && line[at] != ';') return -1;
    stream->state = stream->left > 0 ? CHUNK : TRAILER;
    return 0;
}

static int use_line(bc_response_stream *stream, const char *line, size_t len, bc_buf *out)
{
    if (memchr(line, '\r', len) != NULL || memchr(line, '\0', len) != NULL) return -1;
    if (stream->state == CHUNK_LINE) return use_size(stream, line, len);
    if (stream->state == TRAILER) {
        /* Trailers are left out: nobody here needs one. */
        if (len > 0) return ++stream->interim > BC_RESPONSE_MAX_FIELDS ? -1 : 0;
        return end_body(stream, out);
    }
    stream->state = CHUNK_LINE;
    return len == 0 ? 0 : -1;
}

static long step_line(bc_response_stream *stream, const char *data, size_t len, bc_buf *out)
{
    bc_buf *line = &stream->line;
    const char *end = memchr(data, '\n', len);
    size_t n = end == NULL ? len : (size_t)(end - data) + 1;
    if (line->len + n > BC_RESPONSE_LINE_MAX || add_to_line(stream, data, n) < 0) {
        return refuse(stream, "the server's answer is malformed");
    }
    if (end == NULL) return (long)n;
    const char *text = bc_buf_data(line);
    bool good = line->len >= 2 && text[line->len - 2] == '\r' &&
                use_line(stream, text, line->len - 2, out) == 0;
    wipe(line);
    if (stream->broken) return -1;
    return good ? (long)n : refuse(stream, "the server's answer is malformed");
}

int bc_response_feed(bc_response_stream *stream, const char *data, size_t len, bc_buf *out)
{
    while (len > 0) {
        long n;
        if (!stream->waiting) return refuse(stream, "the server speaks unasked");
        switch (stream->state) {
        case HEAD: n = step_head(stream, data, len, out); break;
        case BODY:
        case CHUNK:
        case UNTIL_END: n = step_body(stream, data, len, out); break;
        default: n = step_line(stream, data, len, out); break;
        }
        if (n < 0) return -1;
        data += n;
        len -= (size_t)n;
    }
    return 0;
}

bool bc_response_is_silent(const bc_response_stream *stream)
{
    return stream->waiting && stream->state == HEAD && stream->line.len == 0 &&
           stream->interim == 0;
}

int bc_response_end(bc_response_stream *stream, bool cut_off, bc_buf *out)
{
    if (!stream->waiting) return 0;
    if (stream->state != UNTIL_END) return refuse(stream, "the server ended within its answer");
    if (!cut_off) return end_body(stream, out);
    return break_off(stream, "the server's answer has no length and ended without TLS's goodbye "
                             "(close_notify): it may have been cut off");
}
