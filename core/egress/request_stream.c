#include "request_stream.h"

#include <string.h>

enum { HEAD, BODY, CHUNK_LINE, CHUNK, CHUNK_END, LAST_END };

static bc_sniff step_head(bc_request_stream *stream, const char *data, size_t len, size_t *used)
{
    bc_sniff sniff = bc_request_head_read(data, len, &stream->head);
    if (sniff != BC_SNIFF_DONE) return sniff;
    const bc_request_head *head = &stream->head;
    *used = head->http2_preface ? sizeof "PRI * HTTP/2.0\r\n\r\n" - 1 : head->head_len;
    stream->left = head->body_len;
    stream->opaque = head->http2_preface || head->connect;
    stream->waits = head->websocket && !stream->begun;
    stream->begun = true;
    if (head->chunked) {
        stream->state = CHUNK_LINE;
    } else if (head->body_len > 0) {
        stream->state = BODY;
    }
    return BC_SNIFF_DONE;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

/* 1*HEX CRLF, no white space around the number. */
static bc_sniff step_chunk_line(bc_request_stream *stream, const char *data, size_t len,
                                size_t *used)
{
    int64_t size = 0;
    size_t at = 0;
    /* 15 digits fit 63 bits. */
    while (at < len && at < 15 && hex_digit(data[at]) >= 0)
        size = size << 4 | hex_digit(data[at++]);
    if (at == len) return BC_SNIFF_MORE;
    if (at == 0 || data[at] != '\r') return BC_SNIFF_BAD;
    if (at + 1 >= len) return BC_SNIFF_MORE;
    if (data[at + 1] != '\n') return BC_SNIFF_BAD;
    *used = at + 2;
    stream->left = size;
    stream->state = size > 0 ? CHUNK : LAST_END;
    return BC_SNIFF_MORE;
}

/* The CRLF behind a chunk, or the one that ends the body. */
static bc_sniff step_end(bc_request_stream *stream, const char *data, size_t len, size_t *used)
{
    if (data[0] != '\r' || (len > 1 && data[1] != '\n')) return BC_SNIFF_BAD;
    if (len < 2) return BC_SNIFF_MORE;
    *used = 2;
    stream->state = stream->state == CHUNK_END ? CHUNK_LINE : HEAD;
    return BC_SNIFF_MORE;
}

bc_sniff bc_request_stream_step(bc_request_stream *stream, const char *data, size_t len,
                                size_t *used)
{
    *used = 0;
    if (len == 0) return BC_SNIFF_MORE;
    if (stream->opaque) {
        *used = len;
        return BC_SNIFF_MORE;
    }
    if (stream->state == HEAD && stream->waits) {
        /* No client says so much before it has an answer. */
        return len < BC_REQUEST_HEAD_MAX ? BC_SNIFF_MORE : BC_SNIFF_BAD;
    }
    if (stream->state == HEAD) return step_head(stream, data, len, used);
    if (stream->state == CHUNK_LINE) return step_chunk_line(stream, data, len, used);
    if (stream->state == CHUNK_END || stream->state == LAST_END) {
        return step_end(stream, data, len, used);
    }
    *used = (uint64_t)stream->left < len ? (size_t)stream->left : len;
    stream->left -= (int64_t)*used;
    if (stream->left == 0) stream->state = stream->state == CHUNK ? CHUNK_END : HEAD;
    return BC_SNIFF_MORE;
}

bool bc_request_stream_in_data(const bc_request_stream *stream)
{
    return stream->state == BODY || stream->state == CHUNK;
}

bool bc_request_stream_answer(bc_request_stream *stream, const char *data, size_t len)
{
    static const char agreed[] = "HTTP/1.1 101";
    enum { AGREED = sizeof agreed - 1 };
    size_t at = 0;
    if (!stream->waits) return false;
    while (at < len && stream->answered < AGREED && data[at] == agreed[stream->answered]) {
        stream->answered++;
        at++;
    }
    if (stream->answered < AGREED && at == len) return false;
    stream->waits = false;
    stream->opaque = stream->answered == AGREED;
    return true;
}
