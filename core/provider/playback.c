#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/cleanup.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "lines.h"
#include "recorded.h"

struct bc_playback {
    char *path;
    const char *provider; /* while it is read */
    int begun;            /* the first line was one */
    bc_recorded *exchanges;
    size_t count, capacity;
};

static int wrong(barchan_error *err, const char *what)
{
    return bc_error_set(err, BARCHAN_EPROTOCOL, "%s", what);
}

static int copy_text(bc_buf *to, const json_t *view, const char *key, barchan_error *err)
{
    size_t len;
    const char *text = bc_json_get_string(view, key, &len);
    if (text == NULL) {
        return bc_error_set(err, BARCHAN_EPROTOCOL, "'%s' must be a string", key);
    }
    int rc = bc_buf_append(to, text, len);
    return rc < 0 ? bc_error_set(err, rc, "'%s' is too large", key) : 0;
}

/* One byte for each character. */
static int narrow(bc_buf *body, barchan_error *err)
{
    char *text = bc_buf_data(body);
    size_t len = 0;
    for (size_t at = 0; at < body->len;) {
        unsigned char first = (unsigned char)text[at];
        if (first >= 0xC4) return wrong(err, "'body' has a character that is no byte");
        text[len++] = first < 0x80 ? text[at] : (char)((first << 6) | (text[at + 1] & 0x3F));
        at += first < 0x80 ? 1 : 2;
    }
    body->len = len;
    return 0;
}

static int read_pieces(bc_recorded *to, const json_t *view, barchan_error *err)
{
    size_t i, left = to->body.len;
    json_t *piece;
    const json_t *pieces = bc_json_get_array(view, "pieces");
    json_array_foreach(pieces, i, piece)
    {
        json_int_t bytes = json_is_integer(piece) ? json_integer_value(piece) : -1;
        if (bytes <= 0 || (uint64_t)bytes > left) {
            return wrong(err, "'pieces' must be the sizes of the parts of 'body'");
        }
        uint32_t size = (uint32_t)bytes;
        left -= size;
        if (bc_buf_append(&to->pieces, &size, sizeof size) < 0) return bc_error_nomem(err);
    }
    uint32_t rest = (uint32_t)left;
    if (left == 0) return 0;
    if (bc_buf_append(&to->pieces, &rest, sizeof rest) < 0) return bc_error_nomem(err);
    return 0;
}

static int read_answer(bc_recorded *to, const json_t *view, barchan_error *err)
{
    const char *name, *encoding = bc_json_get_string(view, "encoding", NULL);
    json_t *value;
    int64_t status = bc_json_get_integer(view, "status", 0);
    if (status < 100 || status > 599) return wrong(err, "'status' must be one of HTTP, 100 to 599");
    to->status = (int)status;
    to->headers = json_incref(bc_json_get_object(view, "headers"));
    json_object_foreach(to->headers, name, value)
    {
        if (!json_is_string(value)) return wrong(err, "'headers' must be strings");
    }
    int64_t after = bc_json_get_integer(view, "retry_after_ms", -1);
    to->retry_after_ms = after < 0 || after > BC_HTTP_MAX_RETRY_AFTER_S * 1000ll ? -1 : (long)after;
    int rc = copy_text(&to->body, view, "body", err);
    if (rc == 0 && encoding != NULL && strcmp(encoding, "latin1") != 0) {
        rc = wrong(err, "'encoding' must be \"latin1\" where it is given");
    }
    if (rc == 0 && encoding != NULL) rc = narrow(&to->body, err);
    return rc < 0 ? rc : read_pieces(to, view, err);
}

static int read_error(bc_recorded *to, const json_t *view, barchan_error *err)
{
    const json_t *error = bc_json_get_object(view, "error");
    const char *code = bc_json_get_string(error, "code", NULL);
    const char *message = bc_json_get_string(error, "message", NULL);
    int status = code != NULL ? bc_status_of_name(code) : 0;
    if (status == 0 || message == NULL) {
        return wrong(err, "'error' must have the 'code' of an error and a 'message'");
    }
    bc_error_set(&to->error, status, "%s", message);
    to->error.retryable = bc_json_get_boolean(error, "retryable", 0);
    return 0;
}

static int read_exchange(bc_recorded *to, const json_t *view, barchan_error *err)
{
    int end = bc_recorded_end_of(bc_json_get_string(view, "end", NULL));
    const char *ids = bc_json_get_string(view, "ids", NULL);
    int rc = copy_text(&to->url, view, "url", err);
    if (rc == 0) rc = copy_text(&to->request, view, "request", err);
    if (rc == 0 && json_object_get(view, "status") != NULL) rc = read_answer(to, view, err);
    if (rc < 0) return rc;
    snprintf(to->id_seed, sizeof to->id_seed, "%s", ids != NULL ? ids : "");
    if (end < 0) return wrong(err, "'end' must be \"complete\", \"failed\" or \"closed\"");
    to->end = (bc_recorded_end)end;
    if (to->end == BC_RECORDED_COMPLETE && to->status == 0) {
        return wrong(err, "a complete answer has a 'status'");
    }
    return to->end == BC_RECORDED_FAILED ? read_error(to, view, err) : 0;
}

static int read_header(bc_playback *playback, const json_t *view, barchan_error *err)
{
    const char *provider = bc_json_get_string(view, "provider", NULL);
    int64_t version = bc_json_get_integer(view, "version", 0);
    if (version != 1) {
        return bc_error_set(err, BARCHAN_EUNSUPPORTED, "recording version %lld; version 1 is known",
                            (long long)version);
    }
    if (provider == NULL || strcmp(provider, playback->provider) != 0) {
        return bc_error_set(err, BARCHAN_EINVAL,
                            "it was recorded with provider '%.60s', and is played with '%s'",
                            provider != NULL ? provider : "", playback->provider);
    }
    playback->begun = 1;
    return 0;
}

static int take_line(const json_t *view, bc_json_span line, void *ud, barchan_error *err)
{
    bc_playback *playback = ud;
    const char *type = bc_json_get_string(view, "type", NULL);
    (void)line;
    if (!playback->begun) {
        if (type != NULL && strcmp(type, "recording") == 0) return read_header(playback, view, err);
        return bc_error_set(err, BARCHAN_EINVAL,
                            "it is no recording of a wire; a transcript is played by provider "
                            "'replay'");
    }
    if (type == NULL || strcmp(type, "exchange") != 0) return 0;
    if (playback->count == BC_MODEL_MAX_EXCHANGES) {
        return bc_error_set(err, BARCHAN_ELIMIT, "a recording has at most %d requests",
                            BC_MODEL_MAX_EXCHANGES);
    }
    if (playback->count == playback->capacity) {
        size_t capacity = playback->capacity * 2 + 16;
        bc_recorded *more = realloc(playback->exchanges, capacity * sizeof *more);
        if (more == NULL) return bc_error_nomem(err);
        playback->exchanges = more;
        playback->capacity = capacity;
    }
    bc_recorded *to = &playback->exchanges[playback->count++];
    bc_recorded_init(to);
    return read_exchange(to, view, err);
}

int bc_playback_open(bc_playback **out, const char *path, const char *provider, barchan_error *err)
{
    cleanup_buf bc_buf file;
    bc_buf_init(&file, BC_JSON_MAX_BYTES);
    bc_playback *playback = calloc(1, sizeof *playback);
    if (playback == NULL) return bc_error_nomem(err);
    playback->provider = provider;
    playback->path = strdup(path);
    int rc = playback->path == NULL
                 ? bc_error_nomem(err)
                 : bc_lines_read(path, "recording", &file, take_line, playback, err);
    if (rc == 0 && !playback->begun) {
        rc = bc_error_set(err, BARCHAN_EPROTOCOL, "the recording %.200s is empty", path);
    }
    if (rc < 0) {
        bc_playback_close(playback);
        return rc;
    }
    *out = playback;
    return 0;
}

void bc_playback_close(bc_playback *playback)
{
    if (playback == NULL) return;
    for (size_t i = 0; i < playback->count; i++)
        bc_recorded_clear(&playback->exchanges[i]);
    free(playback->exchanges);
    free(playback->path);
    free(playback);
}

static int same_text(const bc_buf *a, bc_json_span b)
{
    return a->len == b.len && memcmp(bc_buf_data(a), b.data, b.len) == 0;
}

/* How it differs from this one; 0 when it does not. */
static int differs(const bc_recorded *from, bc_json_span url, bc_json_span request, char *words,
                   size_t size)
{
    if (!same_text(&from->url, url)) {
        snprintf(words, size, "the address is %.*s, recorded was %s",
                 (int)(url.len < 200 ? url.len : 200), url.data, bc_buf_data(&from->url));
        return 1;
    }
    bc_json_span recorded = {bc_buf_data(&from->request), from->request.len};
    return bc_request_differs(recorded, request, words, size);
}

/* The first that was not played yet and is the same to the byte, which is found quickly; or else
 * one that says the same. NULL, and how the next one differs. */
static bc_recorded *find(bc_playback *playback, bc_json_span url, bc_json_span request,
                         size_t *next, char *words, size_t size)
{
    char other[8];
    *next = playback->count;
    for (size_t i = 0; i < playback->count; i++) {
        bc_recorded *from = &playback->exchanges[i];
        if (from->played) continue;
        if (*next == playback->count) *next = i;
        if (same_text(&from->url, url) && same_text(&from->request, request)) return from;
    }
    for (size_t i = *next; i < playback->count; i++) {
        bc_recorded *from = &playback->exchanges[i];
        if (from->played) continue;
        int is_next = i == *next;
        if (!differs(from, url, request, is_next ? words : other, is_next ? size : sizeof other)) {
            return from;
        }
    }
    return NULL;
}

static int hide(const bc_secrets *secrets, bc_buf *hidden, bc_json_span *text)
{
    bc_buf_init(hidden, 2 * (size_t)BC_JSON_MAX_BYTES);
    int rc = bc_secret_hide(secrets, hidden, text->data, text->len);
    if (rc > 0) *text = (bc_json_span){bc_buf_data(hidden), hidden->len};
    return rc;
}

int bc_playback_take(bc_playback *playback, bc_json_span url, bc_json_span request,
                     const bc_secrets *secrets, const bc_recorded **out, barchan_error *err)
{
    cleanup_buf bc_buf hidden_url = {0};
    cleanup_buf bc_buf hidden_request = {0};
    char words[400] = "";
    size_t next;
    int rc = hide(secrets, &hidden_url, &url);
    if (rc >= 0) rc = hide(secrets, &hidden_request, &request);
    if (rc < 0) return bc_error_set(err, rc, "look for secrets in the request");
    bc_recorded *found = find(playback, url, request, &next, words, sizeof words);
    if (found != NULL) {
        found->played = 1;
        *out = found;
        return 0;
    }
    if (next == playback->count) {
        return bc_error_set(err, BARCHAN_ENOTFOUND,
                            "the recording %.200s has %zu requests, and all were played",
                            playback->path, playback->count);
    }
    return bc_error_set(err, BARCHAN_ENOTFOUND,
                        "the request is not what was recorded (request %zu of %.100s): %s",
                        next + 1, playback->path, words);
}
