/*
 * Views of JSON text: a jansson tree made by our own scanner, and walks over the spans of a text.
 *
 * A view is for looking; what must be echoed is taken from the text's spans instead, because a
 * tree loses how numbers and strings were written. Making a view is tolerant in the scanner's way
 * (lone surrogates and invalid UTF-8 become U+FFFD, integers beyond 64 bits become reals) and
 * bounded in bytes, depth and nodes before anything is allocated for them.
 */
#ifndef BC_BASE_JSON_VIEW_H
#define BC_BASE_JSON_VIEW_H

#include <jansson.h>
#include <stdint.h>
#include "json_scan.h"

enum {
    /* Fail on a repeated key: for what will be acted upon, where two readers of one text must not
     * see two meanings. Without it the last one wins, as in bc_json_member. */
    BC_JSON_UNIQUE_KEYS = 1
};

/* Makes the tree of one JSON value. BARCHAN_EPROTOCOL when the text is not JSON, BARCHAN_ELIMIT
 * when it is too large, deep or numerous. Release with json_decref. */
int bc_json_view(json_t **out, const char *text, size_t len, unsigned flags, barchan_error *err);

static inline void bc_json_view_release(json_t **view)
{
    json_decref(*view);
}
#define cleanup_json __attribute__((cleanup(bc_json_view_release)))

/* ---- tolerant getters: a missing object, key or type is never an error ---- */

/* The member when it has this type, otherwise NULL. Borrowed. */
json_t *bc_json_get_object(const json_t *object, const char *key);
json_t *bc_json_get_array(const json_t *object, const char *key);
/* A string's text, NULL when it is none; `len` may be NULL. May hold NUL bytes. Borrowed. */
const char *bc_json_get_string(const json_t *object, const char *key, size_t *len);
/* A string or a number as text ("" when neither): ids and codes come as both. */
enum { BC_JSON_LABEL_BYTES = 64 };
const char *bc_json_get_label(const json_t *object, const char *key,
                              char scratch[BC_JSON_LABEL_BYTES]);
/* An integer; also a real or a string that stands for one, held to the range of int64_t. */
int64_t bc_json_get_integer(const json_t *object, const char *key, int64_t fallback);
/* true and false; also 1, 0, "true" and "false". */
int bc_json_get_boolean(const json_t *object, const char *key, int fallback);

/* ---- walks over spans ---- */

typedef struct bc_json_iter {
    bc_json_span key;   /* objects: with its quotes */
    bc_json_span value; /* its own bytes */
    bc_json_token type; /* the first token of the value */
    /* Private. */
    bc_json_scan scan;
} bc_json_iter;

/* Begins a walk over an array's or object's members. 1, 0 when the text is neither. */
int bc_json_iter_init(bc_json_iter *iter, bc_json_span text, barchan_error *err);
/* 1 and the next member, or 0 at the end. */
int bc_json_iter_next(bc_json_iter *iter, barchan_error *err);
/* Whether the current key, decoded, is this one. */
int bc_json_iter_is(const bc_json_iter *iter, const char *key);
/* Appends the decoded text of a string's span; a span that is no string appends nothing. */
int bc_json_span_text(bc_json_span text, bc_buf *out, barchan_error *err);
/* The same for a short word, cut to its room. 1, 0 when the span is no string. */
int bc_json_span_label(bc_json_span text, char *to, size_t size);
/* As bc_json_get_integer, of a value's span; an empty span is none. */
int64_t bc_json_span_integer(bc_json_span text, int64_t fallback);

#endif
