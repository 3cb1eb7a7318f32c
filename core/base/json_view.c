#include "json_view.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cleanup.h"

typedef struct builder {
    bc_json_scan scan;
    unsigned flags;
    size_t nodes;
    bc_buf scratch; /* the decoded text of the current string */
    bc_buf key;     /* the decoded key that waits for its value */
    json_t *open[BC_JSON_MAX_DEPTH];
    int depth;
} builder;

static json_t *scalar(builder *b)
{
    switch (b->scan.token) {
    case BC_JSON_INTEGER: return json_integer(b->scan.integer);
    case BC_JSON_REAL: return json_real(b->scan.real);
    case BC_JSON_TRUE: return json_true();
    case BC_JSON_FALSE: return json_false();
    default: return json_null();
    }
}

/* The decoded text of the current token in `out`; repaired even when it has no escape. */
static int decode(builder *b, bc_buf *out)
{
    bc_buf_reset(out);
    return bc_json_scan_text(&b->scan, out);
}

static int make(builder *b, json_t **value, barchan_error *err)
{
    if (++b->nodes > BC_JSON_MAX_NODES) {
        return bc_error_set(err, BARCHAN_ELIMIT, "JSON has more than %d values", BC_JSON_MAX_NODES);
    }
    if (b->scan.token == BC_JSON_OBJECT_BEGIN) {
        *value = json_object();
    } else if (b->scan.token == BC_JSON_ARRAY_BEGIN) {
        *value = json_array();
    } else if (b->scan.token == BC_JSON_STRING) {
        if (decode(b, &b->scratch) < 0) return bc_error_nomem(err);
        *value = json_stringn_nocheck(bc_buf_data(&b->scratch), b->scratch.len);
    } else {
        *value = scalar(b);
    }
    return *value == NULL ? bc_error_nomem(err) : 0;
}

/* Puts the value into the open container, which takes the reference. */
static int attach(builder *b, json_t *value, json_t **root, barchan_error *err)
{
    if (b->depth == 0) {
        *root = value;
        return 0;
    }
    json_t *into = b->open[b->depth - 1];
    int rc = json_is_array(into)
                 ? json_array_append_new(into, value)
                 : json_object_setn_new_nocheck(into, bc_buf_data(&b->key), b->key.len, value);
    return rc < 0 ? bc_error_nomem(err) : 0;
}

static int take_key(builder *b, barchan_error *err)
{
    if (decode(b, &b->key) < 0) return bc_error_nomem(err);
    const json_t *into = b->open[b->depth - 1];
    if ((b->flags & BC_JSON_UNIQUE_KEYS) != 0 &&
        json_object_getn(into, bc_buf_data(&b->key), b->key.len) != NULL) {
        return bc_error_set(err, BARCHAN_EPROTOCOL,
                            "invalid JSON at byte %zu: key '%.40s' repeated", b->scan.start,
                            bc_buf_data(&b->key));
    }
    return 0;
}

static int step(builder *b, int token, json_t **root, barchan_error *err)
{
    if (token == BC_JSON_OBJECT_END || token == BC_JSON_ARRAY_END) {
        b->depth--;
        return 0;
    }
    if (token == BC_JSON_KEY) return take_key(b, err);
    json_t *value = NULL;
    int rc = make(b, &value, err);
    if (rc == 0) rc = attach(b, value, root, err);
    if (rc < 0) return rc;
    /* The scanner refuses deeper nesting before this is reached. */
    if (token == BC_JSON_OBJECT_BEGIN || token == BC_JSON_ARRAY_BEGIN) b->open[b->depth++] = value;
    return 0;
}

int bc_json_view(json_t **out, const char *text, size_t len, unsigned flags, barchan_error *err)
{
    if (len > BC_JSON_MAX_BYTES) {
        return bc_error_set(err, BARCHAN_ELIMIT, "JSON is larger than %u bytes", BC_JSON_MAX_BYTES);
    }
    builder b;
    memset(&b, 0, offsetof(builder, open));
    b.depth = 0;
    b.flags = flags;
    bc_json_scan_init(&b.scan, text, len);
    /* One invalid byte becomes three. */
    bc_buf_init(&b.scratch, 3 * len);
    bc_buf_init(&b.key, 3 * len);
    json_t *root = NULL;
    int rc;
    while ((rc = bc_json_scan_next(&b.scan, err)) > 0) {
        rc = step(&b, rc, &root, err);
        if (rc < 0) break;
    }
    bc_buf_clear(&b.scratch);
    bc_buf_clear(&b.key);
    if (rc < 0) {
        json_decref(root);
        return rc;
    }
    *out = root;
    return 0;
}

/* ---- getters ---- */

json_t *bc_json_get_object(const json_t *object, const char *key)
{
    json_t *value = json_object_get(object, key);
    return json_is_object(value) ? value : NULL;
}

json_t *bc_json_get_array(const json_t *object, const char *key)
{
    json_t *value = json_object_get(object, key);
    return json_is_array(value) ? value : NULL;
}

const char *bc_json_get_string(const json_t *object, const char *key, size_t *len)
{
    const json_t *value = json_object_get(object, key);
    if (len != NULL) *len = json_string_length(value);
    return json_string_value(value);
}

const char *bc_json_get_label(const json_t *object, const char *key,
                              char scratch[BC_JSON_LABEL_BYTES])
{
    const json_t *value = json_object_get(object, key);
    if (json_is_string(value)) return json_string_value(value);
    scratch[0] = '\0';
    if (json_is_integer(value)) {
        snprintf(scratch, BC_JSON_LABEL_BYTES, "%" PRId64, (int64_t)json_integer_value(value));
    } else if (json_is_real(value)) {
        snprintf(scratch, BC_JSON_LABEL_BYTES, "%.0f", json_real_value(value));
        if (fabs(json_real_value(value)) > 1e18) scratch[0] = '\0';
    }
    return scratch;
}

static int64_t integer_of_real(double value)
{
    if (isnan(value)) return 0;
    /* 2^63 is the first double that does not fit. */
    if (value >= 9223372036854775808.0) return INT64_MAX;
    if (value < -9223372036854775808.0) return INT64_MIN;
    return (int64_t)value;
}

static int64_t integer_of(const json_t *value, int64_t fallback)
{
    if (json_is_integer(value)) return json_integer_value(value);
    if (json_is_real(value)) return integer_of_real(json_real_value(value));
    const char *text = json_string_value(value);
    if (text == NULL || *text == '\0') return fallback;
    char *end = NULL;
    errno = 0;
    long long number = strtoll(text, &end, 10);
    return errno == 0 && *end == '\0' ? number : fallback;
}

int64_t bc_json_get_integer(const json_t *object, const char *key, int64_t fallback)
{
    return integer_of(json_object_get(object, key), fallback);
}

int bc_json_get_boolean(const json_t *object, const char *key, int fallback)
{
    const json_t *value = json_object_get(object, key);
    if (json_is_boolean(value)) return json_is_true(value);
    if (json_is_integer(value)) {
        json_int_t number = json_integer_value(value);
        return number == 0 || number == 1 ? (int)number : fallback;
    }
    const char *text = json_string_value(value);
    if (text != NULL && strcmp(text, "true") == 0) return 1;
    if (text != NULL && strcmp(text, "false") == 0) return 0;
    return fallback;
}

/* ---- spans ---- */

int bc_json_iter_init(bc_json_iter *iter, bc_json_span text, barchan_error *err)
{
    bc_json_scan_init(&iter->scan, text.data, text.len);
    iter->key = iter->value = (bc_json_span){NULL, 0};
    iter->type = BC_JSON_DONE;
    int rc = bc_json_scan_next(&iter->scan, err);
    if (rc < 0) return rc;
    return rc == BC_JSON_OBJECT_BEGIN || rc == BC_JSON_ARRAY_BEGIN;
}

int bc_json_iter_next(bc_json_iter *iter, barchan_error *err)
{
    bc_json_scan *scan = &iter->scan;
    int rc = bc_json_scan_next(scan, err);
    if (rc == BC_JSON_KEY) {
        iter->key = (bc_json_span){scan->text + scan->start, scan->end - scan->start};
        rc = bc_json_scan_next(scan, err);
    } else if (rc == BC_JSON_OBJECT_END || rc == BC_JSON_ARRAY_END) {
        /* Nothing may follow the value. */
        return bc_json_scan_next(scan, err);
    }
    if (rc < 0) return rc;
    iter->type = (bc_json_token)rc;
    size_t start = scan->start;
    if ((rc = bc_json_scan_skip(scan, err)) < 0) return rc;
    iter->value = (bc_json_span){scan->text + start, scan->end - start};
    return 1;
}

/* A scanner that stands on a string's span. */
static int on_string(bc_json_scan *scan, bc_json_span text, barchan_error *err)
{
    bc_json_scan_init(scan, text.data, text.len);
    int rc = bc_json_scan_next(scan, err);
    return rc < 0 ? rc : rc == BC_JSON_STRING;
}

int bc_json_iter_is(const bc_json_iter *iter, const char *key)
{
    bc_json_scan scan;
    return on_string(&scan, iter->key, NULL) == 1 && bc_json_scan_is(&scan, key);
}

int bc_json_span_text(bc_json_span text, bc_buf *out, barchan_error *err)
{
    bc_json_scan scan;
    int rc = on_string(&scan, text, err);
    if (rc <= 0) return rc;
    rc = bc_json_scan_text(&scan, out);
    return rc == 0 ? 0 : bc_error_set(err, rc, "a string is too long");
}

int bc_json_span_label(bc_json_span text, char *to, size_t size)
{
    bc_json_scan scan;
    if (text.len == 0 || on_string(&scan, text, NULL) != 1) return 0;
    cleanup_buf bc_buf decoded;
    bc_buf_init(&decoded, 3 * text.len);
    const char *from = scan.text + scan.start + 1;
    size_t len = scan.end - scan.start - 2;
    if (scan.escaped) {
        if (bc_json_scan_text(&scan, &decoded) < 0) return 0;
        from = bc_buf_data(&decoded);
        len = decoded.len;
    }
    if (len > size - 1) len = size - 1;
    memcpy(to, from, len);
    to[len] = '\0';
    return 1;
}

int64_t bc_json_span_integer(bc_json_span text, int64_t fallback)
{
    enum { SAFE_DIGITS = 18 };
    cleanup_json json_t *view = NULL;
    int64_t number = 0;
    size_t at = 0;
    while (at < text.len && at <= SAFE_DIGITS && text.data[at] >= '0' && text.data[at] <= '9')
        number = number * 10 + (text.data[at++] - '0');
    if (at > 0 && at == text.len && at <= SAFE_DIGITS) return number;
    if (text.len == 0 || bc_json_view(&view, text.data, text.len, 0, NULL) < 0) return fallback;
    return integer_of(view, fallback);
}
