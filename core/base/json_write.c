#include "json_write.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "utf8.h"
#include "plain.h"

/* The text to write instead of the n bytes at s, or NULL when they stand for themselves. */
static const char *escape_of(const char *s, int n, char scratch[8])
{
    unsigned char c = (unsigned char)*s;
    if (n == 0) return "\xEF\xBF\xBD";
    if (n == 3 && c == 0xE2 && (unsigned char)s[1] == 0x80 && ((unsigned char)s[2] | 1) == 0xA9) {
        return (unsigned char)s[2] == 0xA8 ? "\\u2028" : "\\u2029";
    }
    switch (c) {
    case '"': return "\\\"";
    case '\\': return "\\\\";
    case '\n': return "\\n";
    case '\r': return "\\r";
    case '\t': return "\\t";
    default: break;
    }
    if (c >= 0x20 && c != 0x7F) return NULL;
    snprintf(scratch, 8, "\\u%04x", c);
    return scratch;
}

static int write_plain(bc_buf *out, const char *text, size_t len)
{
    char *to = bc_buf_reserve(out, len + 2);
    if (to == NULL) return len + 2 > out->max - out->len ? BARCHAN_ELIMIT : BARCHAN_ENOMEM;
    *to = '"';
    memcpy(to + 1, text, len);
    to[len + 1] = '"';
    bc_buf_commit(out, len + 2);
    return 0;
}

int bc_json_write_string(bc_buf *out, const char *text, size_t len)
{
    char scratch[8];
    size_t at = bc_plain_bytes(text, len), plain = 0;
    if (at == len) return write_plain(out, text, len);
    int rc = bc_buf_append_char(out, '"');
    while (rc == 0 && at < len) {
        at += bc_plain_bytes(text + at, len - at);
        if (at == len) break;
        int n = bc_utf8_next(text + at, len - at);
        if (n < 0) n = 0; /* cut off: as invalid as the rest */
        const char *escape = escape_of(text + at, n, scratch);
        size_t took = n == 0 ? 1 : (size_t)n;
        if (escape != NULL) {
            rc = bc_buf_append(out, text + plain, at - plain);
            if (rc == 0) rc = bc_buf_append_string(out, escape);
            plain = at + took;
        }
        at += took;
    }
    if (rc == 0) rc = bc_buf_append(out, text + plain, at - plain);
    return rc < 0 ? rc : bc_buf_append_char(out, '"');
}

int bc_json_write_integer(bc_buf *out, int64_t value)
{
    return bc_buf_appendf(out, "%" PRId64, value);
}

/* Copies a number as the C library wrote it, with a point for the locale's decimal sign, which may
 * be of several bytes. */
static void neutral_number(const char *text, char *to)
{
    int in_sign = 0;
    for (; *text != '\0'; text++) {
        int plain = strchr("0123456789+-eE", *text) != NULL;
        if (plain) {
            *to++ = *text;
        } else if (!in_sign) {
            *to++ = '.';
        }
        in_sign = !plain;
    }
    *to = '\0';
}

int bc_json_write_real(bc_buf *out, double value)
{
    if (isnan(value) || isinf(value)) return BARCHAN_EINVAL;
    char text[48], number[48];
    /* Fifteen digits are exact for all decimals that have no more; numbers near zero have fewer. */
    for (int precision = fabs(value) < DBL_MIN ? 1 : 15; precision <= 17; precision++) {
        snprintf(text, sizeof text, "%.*g", precision, value);
        if (strtod(text, NULL) == value) break;
    }
    neutral_number(text, number);
    int rc = bc_buf_append_string(out, number);
    /* Keep it a real: 2 would read back as an integer. */
    if (rc == 0 && strpbrk(number, ".eE") == NULL) rc = bc_buf_append_string(out, ".0");
    return rc;
}
