#include "text.h"

#include <string.h>
#include "base/utf8.h"

void bc_text_init(bc_text *text)
{
    bc_buf_init(&text->raw, BC_MODEL_MAX_TURN_BYTES);
    /* A byte that is not UTF-8 becomes three. */
    bc_buf_init(&text->plain, 3 * (size_t)BC_MODEL_MAX_TURN_BYTES);
    text->settled = 1;
}

void bc_text_clear(bc_text *text)
{
    bc_buf_clear(&text->raw);
    bc_buf_clear(&text->plain);
    text->settled = 1;
}

void bc_text_reset(bc_text *text)
{
    bc_buf_reset(&text->raw);
    bc_buf_reset(&text->plain);
    text->settled = 1;
}

int bc_text_is_empty(const bc_text *text)
{
    return text->raw.len <= 1;
}

int bc_text_append(bc_text *text, bc_json_span string)
{
    if (string.len < 2 || string.data[0] != '"') return 0;
    int rc = text->raw.len == 0 ? bc_buf_append_char(&text->raw, '"') : 0;
    return rc < 0 ? rc : bc_buf_append(&text->raw, string.data + 1, string.len - 2);
}

/* Whether the text ends with an escaped high surrogate, whose other half may still come. */
static int ends_with_half(const char *s, size_t len)
{
    if (len < 6 || s[len - 6] != '\\' || s[len - 5] != 'u') return 0;
    if (s[len - 4] != 'd' && s[len - 4] != 'D') return 0;
    if (strchr("89abAB", s[len - 3]) == NULL) return 0;
    size_t backslashes = 0;
    while (backslashes < len - 5 && s[len - 6 - backslashes] == '\\')
        backslashes++;
    return backslashes % 2 == 1;
}

int bc_text_settle(bc_text *text, int final, bc_json_span *fresh)
{
    size_t before = text->plain.len, end = text->raw.len;
    const char *raw = bc_buf_data(&text->raw);
    int rc = 0;
    if (end > text->settled) {
        size_t len = end - text->settled;
        if (!final) len = bc_utf8_whole(raw + text->settled, len);
        if (!final && ends_with_half(raw + text->settled, len)) len -= 6;
        /* The scanner's decoder takes a token with its quotes; the byte before a piece and the
         * one after it stand for them and are not looked at. */
        bc_json_scan scan = {.text = raw, .start = text->settled - 1, .escaped = 1};
        scan.end = text->settled + len + 1;
        rc = bc_json_scan_text(&scan, &text->plain);
        text->settled += len;
    }
    if (fresh != NULL) {
        *fresh = (bc_json_span){bc_buf_data(&text->plain) + before, text->plain.len - before};
    }
    return rc;
}

bc_json_span bc_text_escaped(const bc_text *text)
{
    if (bc_text_is_empty(text)) return (bc_json_span){"", 0};
    return (bc_json_span){bc_buf_data(&text->raw) + 1, text->raw.len - 1};
}
