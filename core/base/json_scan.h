/*
 * A pull scanner over JSON text: it validates, and gives each token with the span of its own
 * bytes, so that what must be echoed can be echoed verbatim.
 *
 * It is tolerant where real providers and models need it: lone surrogates decode to U+FFFD,
 * integers that do not fit 64 bits are reals. Everything else is RFC 8259: no trailing commas,
 * no comments, no NaN, no number beyond a double, nothing after the value, depth at most
 * BC_JSON_MAX_DEPTH. A byte order mark is refused. Bytes that are
 * not UTF-8 are accepted inside strings and repaired when decoded. Duplicate keys are given as
 * they stand; who must refuse them does.
 */
#ifndef BC_BASE_JSON_SCAN_H
#define BC_BASE_JSON_SCAN_H

#include <stddef.h>
#include <stdint.h>
#include "buf.h"
#include "limits.h"

typedef enum bc_json_token {
    BC_JSON_DONE = 0,
    BC_JSON_OBJECT_BEGIN,
    BC_JSON_OBJECT_END,
    BC_JSON_ARRAY_BEGIN,
    BC_JSON_ARRAY_END,
    BC_JSON_KEY,
    BC_JSON_STRING,
    BC_JSON_INTEGER,
    BC_JSON_REAL,
    BC_JSON_TRUE,
    BC_JSON_FALSE,
    BC_JSON_NULL
} bc_json_token;

typedef struct bc_json_scan {
    const char *text;
    size_t len;
    size_t pos;
    /* The current token. */
    bc_json_token token;
    size_t start, end; /* its bytes; of strings and keys with the quotes */
    int escaped;       /* strings and keys: the bytes between the quotes need decoding */
    int64_t integer;
    double real; /* reals, and integers that do not fit */
    /* Private. */
    int expect;
    int depth;
    unsigned char in_object[BC_JSON_MAX_DEPTH];
} bc_json_scan;

void bc_json_scan_init(bc_json_scan *scan, const char *text, size_t len);
/* Steps to the next token and returns it (BC_JSON_DONE at the end of the text), or fails with
 * BARCHAN_EPROTOCOL and the offset in the message. */
int bc_json_scan_next(bc_json_scan *scan, barchan_error *err);
/* With the scanner on the first token of a value: steps to its last one. */
int bc_json_scan_skip(bc_json_scan *scan, barchan_error *err);
/* Appends the decoded text of the current string or key. */
int bc_json_scan_text(const bc_json_scan *scan, bc_buf *out);
/* Whether the current string or key, decoded, is this text, which is valid UTF-8. */
int bc_json_scan_is(const bc_json_scan *scan, const char *text);

/* A value's own bytes inside a text. */
typedef struct bc_json_span {
    const char *data;
    size_t len;
} bc_json_span;

/* Checks that the text is one JSON value and nothing else. */
int bc_json_validate(const char *text, size_t len, barchan_error *err);
/* Finds the value of a key in an object (the last one when it is repeated): 1 found, 0 absent,
 * negative when the text is not JSON. A text that is not an object has no keys. */
int bc_json_member(bc_json_span object, const char *key, bc_json_span *value, barchan_error *err);

typedef struct bc_json_wanted {
    const char *key;
    bc_json_span value; /* empty: absent */
} bc_json_wanted;

/* The same for several keys in one walk; 0, negative when the text is not JSON. */
int bc_json_members(bc_json_span object, bc_json_wanted *wanted, size_t count, barchan_error *err);

#endif
