#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/cleanup.h"
#include "base/utf8.h"
#include "json_out.h"
#include "recorded.h"
#include "runtime/host_file.h"

struct bc_recording {
    int fd;
    char *path;
    const bc_secrets *secrets;
    size_t size;           /* of the file */
    barchan_error failure; /* code 0: none */
};

static int write_all(int fd, const char *data, size_t len)
{
    while (len > 0) {
        ssize_t n = write(fd, data, len);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return -1;
        data += n;
        len -= (size_t)n;
    }
    return 0;
}

static void put_hidden(bc_out *out, const bc_secrets *secrets, const char *key, bc_json_span text)
{
    cleanup_buf bc_buf hidden;
    bc_buf_init(&hidden, 2 * (size_t)BC_JSON_MAX_BYTES);
    int rc = bc_secret_hide(secrets, &hidden, text.data, text.len);
    if (rc < 0 && out->rc == 0) out->rc = rc;
    bc_out_key(out, key);
    if (rc > 0) text = (bc_json_span){bc_buf_data(&hidden), hidden.len};
    bc_out_string(out, text.data, text.len);
}

/* Either all of a line is in the file, or nothing. */
static int put_line(bc_recording *recording, bc_buf *line, int rc, barchan_error *err)
{
    if (rc == 0) rc = bc_buf_append_char(line, '\n');
    if (rc == 0 && recording->size + line->len > BC_JSON_MAX_BYTES) rc = BARCHAN_ELIMIT;
    if (rc == BARCHAN_ELIMIT) {
        return bc_error_set(err, rc, "record to %.200s: more than %u bytes could not be played",
                            recording->path, BC_JSON_MAX_BYTES);
    }
    if (rc < 0) return bc_error_set(err, rc, "record to %.200s", recording->path);
    if (write_all(recording->fd, bc_buf_data(line), line->len) == 0) {
        recording->size += line->len;
        return 0;
    }
    bc_error_set_os(err, errno, "record to %.200s", recording->path);
    if (ftruncate(recording->fd, (off_t)recording->size) < 0) recording->size = BC_JSON_MAX_BYTES;
    return err->code;
}

static bc_json_span text_of(const char *text)
{
    return (bc_json_span){text, strlen(text)};
}

static void put_extra(bc_out *out, const bc_secrets *secrets, bc_json_span extra)
{
    cleanup_buf bc_buf hidden;
    bc_buf_init(&hidden, BC_JSON_MAX_BYTES);
    int rc = bc_json_validate(extra.data, extra.len, NULL);
    if (rc == 0) rc = bc_secret_hide(secrets, &hidden, extra.data, extra.len);
    if (rc > 0) extra = (bc_json_span){bc_buf_data(&hidden), hidden.len};
    if (rc < 0 && out->rc == 0) out->rc = rc;
    bc_out_key(out, "extra");
    bc_out_raw(out, extra.data, extra.len);
}

static int put_first_line(bc_recording *recording, const bc_recording_origin *origin,
                          barchan_error *err)
{
    cleanup_buf bc_buf line;
    bc_buf_init(&line, BC_JSON_MAX_BYTES);
    bc_out out = {.buf = &line};
    bc_out_word(&out, "{\"type\":\"recording\",\"version\":1");
    bc_out_member(&out, "barchan", barchan_version());
    bc_out_member(&out, "provider", origin->provider);
    put_hidden(&out, recording->secrets, "model", text_of(origin->model));
    put_hidden(&out, recording->secrets, "base_url", text_of(origin->base_url));
    if (origin->max_tokens > 0) {
        bc_out_key(&out, "max_tokens");
        bc_out_integer(&out, origin->max_tokens);
    }
    bc_out_key(&out, "max_retries");
    bc_out_integer(&out, origin->max_retries);
    if (origin->extra != NULL) put_extra(&out, recording->secrets, text_of(origin->extra));
    bc_out_close(&out, '}');
    return put_line(recording, &line, out.rc, err);
}

int bc_recording_open(bc_recording **out, const char *path, const bc_recording_origin *origin,
                      const bc_secrets *secrets, barchan_error *err)
{
    barchan_error why = {0};
    bc_recording *recording = calloc(1, sizeof *recording);
    if (recording == NULL) return bc_error_nomem(err);
    recording->fd = -1;
    recording->secrets = secrets;
    recording->path = strdup(path);
    int rc = recording->path == NULL ? bc_error_nomem(&why) : 0;
    if (rc == 0) rc = recording->fd = bc_host_file_create_open(path, &why);
    if (rc >= 0) rc = put_first_line(recording, origin, &why);
    if (rc < 0) {
        if (recording->fd >= 0) unlink(path); /* it would stand in the way of the next try */
        bc_recording_close(recording);
        if (err != NULL) *err = why;
        return rc;
    }
    *out = recording;
    return 0;
}

int bc_recording_check(const bc_recording *recording, barchan_error *err)
{
    if (recording->failure.code == 0) return 0;
    if (err != NULL) *err = recording->failure;
    bc_error_context(err, "an answer could not be recorded, and the recording is not whole");
    return recording->failure.code;
}

void bc_recording_close(bc_recording *recording)
{
    if (recording == NULL) return;
    if (recording->fd >= 0) close(recording->fd);
    free(recording->path);
    free(recording);
}

/* Text that is not UTF-8, or holds NUL, is written with one character for each byte. */
static int is_text(const char *data, size_t len)
{
    size_t at = 0;
    if (memchr(data, 0, len) != NULL) return 0;
    while (at < len) {
        int n = bc_utf8_next(data + at, len - at);
        if (n <= 0) return 0;
        at += (size_t)n;
    }
    return 1;
}

static void put_bytes(bc_out *out, const char *data, size_t len)
{
    cleanup_buf bc_buf wide;
    bc_buf_init(&wide, 2 * (size_t)BC_JSON_MAX_BYTES);
    int rc = 0;
    for (size_t i = 0; i < len && rc == 0; i++)
        rc = bc_utf8_append_code(&wide, (unsigned char)data[i]);
    if (rc < 0 && out->rc == 0) out->rc = rc;
    bc_out_string(out, bc_buf_data(&wide), wide.len);
}

static void put_pieces(bc_out *out, const bc_recorded *recorded, int whole)
{
    bc_out_key(out, "pieces");
    bc_out_open(out, '[');
    if (whole) bc_out_integer(out, (int64_t)recorded->body.len);
    for (size_t at = 0; !whole && at < recorded->pieces.len; at += sizeof(uint32_t)) {
        uint32_t bytes;
        memcpy(&bytes, bc_buf_data(&recorded->pieces) + at, sizeof bytes);
        bc_out_integer(out, bytes);
    }
    bc_out_close(out, ']');
}

static void put_body(bc_out *out, const bc_secrets *secrets, const bc_recorded *recorded)
{
    cleanup_buf bc_buf hidden;
    bc_buf_init(&hidden, 2 * (size_t)BC_JSON_MAX_BYTES);
    const char *body = bc_buf_data(&recorded->body);
    size_t len = recorded->body.len;
    int rc = bc_secret_hide(secrets, &hidden, body, len);
    if (rc < 0 && out->rc == 0) out->rc = rc;
    if (rc > 0) { /* the pieces are not those of this text */
        body = bc_buf_data(&hidden);
        len = hidden.len;
    }
    bc_out_key(out, "body");
    if (is_text(body, len)) {
        bc_out_string(out, body, len);
    } else {
        put_bytes(out, body, len);
        bc_out_member(out, "encoding", "latin1");
    }
    if (rc <= 0) put_pieces(out, recorded, 0);
}

static void put_headers(bc_out *out, const bc_secrets *secrets, json_t *headers)
{
    const char *name;
    json_t *value;
    bc_out_key(out, "headers");
    bc_out_open(out, '{');
    json_object_foreach(headers, name, value)
    {
        put_hidden(out, secrets, name,
                   (bc_json_span){json_string_value(value), json_string_length(value)});
    }
    bc_out_close(out, '}');
}

static void put_answer(bc_out *out, const bc_secrets *secrets, const bc_recorded *recorded)
{
    bc_out_key(out, "status");
    bc_out_integer(out, recorded->status);
    put_headers(out, secrets, recorded->headers);
    if (recorded->retry_after_ms >= 0) {
        bc_out_key(out, "retry_after_ms");
        bc_out_integer(out, recorded->retry_after_ms);
    }
    put_body(out, secrets, recorded);
}

static void put_error(bc_out *out, const bc_secrets *secrets, const barchan_error *given)
{
    barchan_error error = *given;
    bc_secret_error(secrets, &error);
    bc_out_key(out, "error");
    bc_out_open(out, '{');
    bc_out_member(out, "code", barchan_status_name(error.code));
    bc_out_member(out, "message", error.message);
    bc_out_key(out, "retryable");
    bc_out_word(out, error.retryable ? "true" : "false");
    bc_out_close(out, '}');
}

void bc_recording_write(bc_recording *recording, bc_json_span url, bc_json_span request,
                        const bc_recorded *recorded)
{
    cleanup_buf bc_buf line;
    bc_buf_init(&line, 4 * (size_t)BC_JSON_MAX_BYTES);
    bc_out out = {.buf = &line};
    if (recording->failure.code != 0) return;
    bc_out_word(&out, "{\"type\":\"exchange\"");
    put_hidden(&out, recording->secrets, "url", url);
    put_hidden(&out, recording->secrets, "request", request);
    bc_out_member(&out, "ids", recorded->id_seed);
    if (recorded->status != 0) put_answer(&out, recording->secrets, recorded);
    bc_out_member(&out, "end", bc_recorded_end_name(recorded->end));
    if (recorded->end == BC_RECORDED_FAILED) {
        put_error(&out, recording->secrets, &recorded->error);
    }
    bc_out_close(&out, '}');
    put_line(recording, &line, out.rc, &recording->failure);
}
