#include "json_scan.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "utf8.h"
#include "plain.h"

enum { VALUE, VALUE_OR_END, KEY, KEY_OR_END, COMMA_OR_END, END };

void bc_json_scan_init(bc_json_scan *scan, const char *text, size_t len)
{
    scan->text = text;
    scan->len = len;
    scan->pos = scan->start = scan->end = 0;
    scan->token = BC_JSON_DONE;
    scan->escaped = 0;
    scan->integer = 0;
    scan->real = 0;
    scan->expect = VALUE;
    scan->depth = 0;
}

static int wrong(const bc_json_scan *scan, barchan_error *err, const char *what)
{
    return bc_error_set(err, BARCHAN_EPROTOCOL, "invalid JSON at byte %zu: %s", scan->pos, what);
}

static int peek(bc_json_scan *scan)
{
    while (scan->pos < scan->len) {
        char c = scan->text[scan->pos];
        if (c != ' ' && c != '\t' && c != '\n' && c != '\r') return (unsigned char)c;
        scan->pos++;
    }
    return -1;
}

static int is_hex(const bc_json_scan *scan, size_t at)
{
    for (size_t i = at; i < at + 4; i++) {
        if (i >= scan->len) return 0;
        char c = scan->text[i];
        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'))) return 0;
    }
    return 1;
}

static int scan_string(bc_json_scan *scan, barchan_error *err)
{
    scan->start = scan->pos++;
    scan->escaped = 0;
    for (; scan->pos < scan->len; scan->pos++) {
        scan->pos += bc_plain_bytes(scan->text + scan->pos, scan->len - scan->pos);
        if (scan->pos >= scan->len) break;
        unsigned char c = (unsigned char)scan->text[scan->pos];
        if (c == '"') {
            scan->end = ++scan->pos;
            return 0;
        }
        if (c < 0x20) return wrong(scan, err, "control character in a string");
        if (c >= 0x80) scan->escaped = 1; /* may need repair */
        if (c != '\\') continue;
        scan->escaped = 1;
        char e = ++scan->pos < scan->len ? scan->text[scan->pos] : '\0';
        if (e == 'u') {
            if (!is_hex(scan, scan->pos + 1)) return wrong(scan, err, "bad \\u escape");
            scan->pos += 4;
        } else if (e == '\0' || strchr("\"\\/bfnrt", e) == NULL) {
            return wrong(scan, err, "bad escape");
        }
    }
    return wrong(scan, err, "unterminated string");
}

static size_t digits(bc_json_scan *scan)
{
    size_t from = scan->pos;
    while (scan->pos < scan->len && scan->text[scan->pos] >= '0' && scan->text[scan->pos] <= '9')
        scan->pos++;
    return scan->pos - from;
}

/* strtod follows the locale, whose decimal sign may be another, of several bytes. `number` has
 * room for it. */
static double real_value(char *number)
{
    char half[16], *dot = strchr(number, '.');
    snprintf(half, sizeof half, "%.1f", 0.5);
    size_t len = strlen(half);
    if (dot != NULL && len > 2 && strcmp(half, "0.5") != 0) {
        memmove(dot + len - 2, dot + 1, strlen(dot));
        memcpy(dot, half + 1, len - 2);
    }
    return strtod(number, NULL);
}

static int number_value(bc_json_scan *scan, int is_integer, barchan_error *err)
{
    enum { POINT_BYTES = 16 };
    char local[80];
    size_t len = scan->end - scan->start, need = len + POINT_BYTES;
    char *copy = need <= sizeof local ? local : malloc(need);
    if (copy == NULL) return bc_error_nomem(err);
    memcpy(copy, scan->text + scan->start, len);
    copy[len] = '\0';
    errno = 0;
    if (is_integer) scan->integer = strtoll(copy, NULL, 10);
    if (is_integer && errno == 0) {
        scan->token = BC_JSON_INTEGER;
    } else {
        scan->token = BC_JSON_REAL;
        scan->real = real_value(copy);
    }
    if (copy != local) free(copy);
    /* Infinity would be a number that nobody wrote. */
    if (scan->token == BC_JSON_REAL && isinf(scan->real)) {
        return wrong(scan, err, "number out of range");
    }
    return 0;
}

static int scan_number(bc_json_scan *scan, barchan_error *err)
{
    int is_integer = 1;
    scan->start = scan->pos;
    if (scan->text[scan->pos] == '-') scan->pos++;
    size_t first = scan->pos, n = digits(scan);
    if (n == 0 || (n > 1 && scan->text[first] == '0')) return wrong(scan, err, "bad number");
    if (scan->pos < scan->len && scan->text[scan->pos] == '.') {
        is_integer = 0;
        scan->pos++;
        if (digits(scan) == 0) return wrong(scan, err, "bad number");
    }
    if (scan->pos < scan->len && (scan->text[scan->pos] == 'e' || scan->text[scan->pos] == 'E')) {
        is_integer = 0;
        scan->pos++;
        char sign = scan->pos < scan->len ? scan->text[scan->pos] : '\0';
        if (sign == '+' || sign == '-') scan->pos++;
        if (digits(scan) == 0) return wrong(scan, err, "bad number");
    }
    scan->end = scan->pos;
    return number_value(scan, is_integer, err);
}

static int scan_word(bc_json_scan *scan, const char *word, bc_json_token token, barchan_error *err)
{
    size_t len = strlen(word);
    if (scan->len - scan->pos < len || memcmp(scan->text + scan->pos, word, len) != 0) {
        return wrong(scan, err, "unexpected character");
    }
    scan->start = scan->pos;
    scan->end = scan->pos += len;
    scan->token = token;
    return 0;
}

static int open_level(bc_json_scan *scan, int is_object, barchan_error *err)
{
    if (scan->depth >= BC_JSON_MAX_DEPTH) {
        return bc_error_set(err, BARCHAN_ELIMIT, "JSON nests deeper than %d levels at byte %zu",
                            BC_JSON_MAX_DEPTH, scan->pos);
    }
    scan->in_object[scan->depth++] = (unsigned char)is_object;
    scan->start = scan->pos;
    scan->end = ++scan->pos;
    scan->token = is_object ? BC_JSON_OBJECT_BEGIN : BC_JSON_ARRAY_BEGIN;
    scan->expect = is_object ? KEY_OR_END : VALUE_OR_END;
    return scan->token;
}

static int close_level(bc_json_scan *scan)
{
    scan->depth--;
    scan->start = scan->pos;
    scan->end = ++scan->pos;
    scan->token = scan->in_object[scan->depth] ? BC_JSON_OBJECT_END : BC_JSON_ARRAY_END;
    scan->expect = scan->depth == 0 ? END : COMMA_OR_END;
    return scan->token;
}

static int scan_key(bc_json_scan *scan, barchan_error *err)
{
    int rc = scan_string(scan, err);
    if (rc < 0) return rc;
    size_t end = scan->end;
    if (peek(scan) != ':') return wrong(scan, err, "expected ':' after a key");
    scan->pos++;
    scan->end = end;
    scan->token = BC_JSON_KEY;
    scan->expect = VALUE;
    return scan->token;
}

static int scan_value(bc_json_scan *scan, int c, barchan_error *err)
{
    int rc;
    if (c == '{' || c == '[') return open_level(scan, c == '{', err);
    if (c == '"') {
        rc = scan_string(scan, err);
        scan->token = BC_JSON_STRING;
    } else if (c == '-' || (c >= '0' && c <= '9')) {
        rc = scan_number(scan, err);
    } else if (c == 't') {
        rc = scan_word(scan, "true", BC_JSON_TRUE, err);
    } else if (c == 'f') {
        rc = scan_word(scan, "false", BC_JSON_FALSE, err);
    } else if (c == 'n') {
        rc = scan_word(scan, "null", BC_JSON_NULL, err);
    } else {
        return wrong(scan, err, c < 0 ? "unexpected end" : "unexpected character");
    }
    if (rc < 0) return rc;
    scan->expect = scan->depth == 0 ? END : COMMA_OR_END;
    return scan->token;
}

int bc_json_scan_next(bc_json_scan *scan, barchan_error *err)
{
    int c = peek(scan);
    int in_object = scan->depth > 0 && scan->in_object[scan->depth - 1];
    int closer = in_object ? '}' : ']';
    if (scan->expect == END) {
        if (c >= 0) return wrong(scan, err, "text after the value");
        scan->token = BC_JSON_DONE;
        return BC_JSON_DONE;
    }
    if (scan->expect == COMMA_OR_END) {
        if (c == closer) return close_level(scan);
        if (c != ',') return wrong(scan, err, c < 0 ? "unexpected end" : "expected ',' or a close");
        scan->pos++;
        c = peek(scan);
        scan->expect = in_object ? KEY : VALUE;
    } else if ((scan->expect == KEY_OR_END || scan->expect == VALUE_OR_END) && c == closer) {
        return close_level(scan);
    }
    if (scan->expect == KEY || scan->expect == KEY_OR_END) {
        if (c != '"') return wrong(scan, err, c < 0 ? "unexpected end" : "expected a key");
        return scan_key(scan, err);
    }
    return scan_value(scan, c, err);
}

int bc_json_scan_skip(bc_json_scan *scan, barchan_error *err)
{
    if (scan->token != BC_JSON_OBJECT_BEGIN && scan->token != BC_JSON_ARRAY_BEGIN) return 0;
    int outside = scan->depth - 1;
    while (scan->depth > outside) {
        int rc = bc_json_scan_next(scan, err);
        if (rc < 0) return rc;
    }
    return 0;
}

static unsigned long hex4(const char *s)
{
    char text[5] = {s[0], s[1], s[2], s[3], 0};
    return strtoul(text, NULL, 16);
}

/* The code point of the escape at s[0] == '\\'; returns how many bytes it took. */
static size_t decode_escape(const char *s, size_t left, unsigned long *code)
{
    static const char from[] = "bfnrt", to[] = "\b\f\n\r\t";
    if (s[1] != 'u') {
        const char *known = strchr(from, s[1]);
        *code = (unsigned char)(known != NULL ? to[known - from] : s[1]);
        return 2;
    }
    *code = hex4(s + 2);
    if (*code >= 0xD800 && *code <= 0xDBFF && left >= 12 && s[6] == '\\' && s[7] == 'u') {
        unsigned long low = hex4(s + 8);
        if (low >= 0xDC00 && low <= 0xDFFF) {
            *code = 0x10000 + ((*code - 0xD800) << 10) + (low - 0xDC00);
            return 12;
        }
    }
    return 6;
}

int bc_json_scan_text(const bc_json_scan *scan, bc_buf *out)
{
    const char *s = scan->text + scan->start + 1;
    size_t len = scan->end - scan->start - 2, at = 0;
    if (!scan->escaped) return bc_buf_append(out, s, len);
    while (at < len) {
        const char *escape = memchr(s + at, '\\', len - at);
        size_t plain = escape != NULL ? (size_t)(escape - s) - at : len - at;
        int rc = bc_utf8_append_repaired(out, s + at, plain);
        at += plain;
        if (rc == 0 && at < len) {
            unsigned long code;
            at += decode_escape(s + at, len - at, &code);
            rc = bc_utf8_append_code(out, code);
        }
        if (rc < 0) return rc;
    }
    return 0;
}

int bc_json_scan_is(const bc_json_scan *scan, const char *text)
{
    const char *s = scan->text + scan->start + 1;
    size_t len = scan->end - scan->start - 2, left = strlen(text), at = 0;
    if (!scan->escaped) return len == left && memcmp(s, text, len) == 0;
    while (at < len) {
        char piece[4];
        unsigned long code = 0xFFFD; /* for a byte that is not UTF-8 */
        int whole = bc_utf8_next(s + at, len - at);
        size_t size = whole > 0 ? (size_t)whole : 0;
        if (size > 0) memcpy(piece, s + at, size);
        if (s[at] == '\\') {
            at += decode_escape(s + at, len - at, &code);
            size = bc_utf8_encode(code, piece);
        } else if (size == 0) {
            at++;
            size = bc_utf8_encode(code, piece);
        } else {
            at += size;
        }
        if (size > left || memcmp(piece, text, size) != 0) return 0;
        text += size;
        left -= size;
    }
    return left == 0;
}

int bc_json_validate(const char *text, size_t len, barchan_error *err)
{
    bc_json_scan scan;
    bc_json_scan_init(&scan, text, len);
    int rc;
    do {
        rc = bc_json_scan_next(&scan, err);
    } while (rc > 0);
    return rc;
}

static bc_json_wanted *find_wanted(const bc_json_scan *key, bc_json_wanted *wanted, size_t count)
{
    /* Most keys are none of those wanted, and their first byte tells. */
    char first = key->escaped ? '\0' : key->text[key->start + 1];
    for (size_t i = 0; i < count; i++) {
        if (first != '\0' && first != wanted[i].key[0]) continue;
        if (bc_json_scan_is(key, wanted[i].key)) return &wanted[i];
    }
    return NULL;
}

int bc_json_members(bc_json_span object, bc_json_wanted *wanted, size_t count, barchan_error *err)
{
    bc_json_scan scan;
    bc_json_scan_init(&scan, object.data, object.len);
    for (size_t i = 0; i < count; i++)
        wanted[i].value = (bc_json_span){"", 0};
    int rc = bc_json_scan_next(&scan, err);
    if (rc < 0) return rc;
    if (rc != BC_JSON_OBJECT_BEGIN) return bc_json_validate(object.data, object.len, err);
    while ((rc = bc_json_scan_next(&scan, err)) == BC_JSON_KEY) {
        bc_json_wanted *found = find_wanted(&scan, wanted, count);
        if ((rc = bc_json_scan_next(&scan, err)) < 0) return rc;
        size_t start = scan.start;
        if ((rc = bc_json_scan_skip(&scan, err)) < 0) return rc;
        if (found != NULL) found->value = (bc_json_span){object.data + start, scan.end - start};
    }
    return rc < 0 ? rc : bc_json_scan_next(&scan, err); /* nothing may follow */
}

int bc_json_member(bc_json_span object, const char *key, bc_json_span *value, barchan_error *err)
{
    bc_json_wanted wanted = {.key = key};
    int rc = bc_json_members(object, &wanted, 1, err);
    if (rc < 0 || wanted.value.len == 0) return rc;
    *value = wanted.value;
    return 1;
}
