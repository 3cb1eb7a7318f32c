#include "utf8.h"
#include "plain.h"

static const char replacement[] = "\xEF\xBF\xBD";

int bc_utf8_next(const char *text, size_t len)
{
    const unsigned char *s = (const unsigned char *)text;
    if (len == 0) return -1;
    if (s[0] < 0x80) return 1;
    int need = s[0] >= 0xF0 ? 4 : s[0] >= 0xE0 ? 3 : 2;
    if (s[0] < 0xC2 || s[0] > 0xF4) return 0;
    for (int i = 1; i < need; i++) {
        if ((size_t)i >= len) return -1;
        if ((s[i] & 0xC0) != 0x80) return 0;
        if (i > 1) continue;
        if ((s[0] == 0xE0 && s[1] < 0xA0) || (s[0] == 0xED && s[1] > 0x9F)) return 0;
        if ((s[0] == 0xF0 && s[1] < 0x90) || (s[0] == 0xF4 && s[1] > 0x8F)) return 0;
    }
    return need;
}

size_t bc_utf8_whole(const char *text, size_t len)
{
    /* Only the last three bytes can begin a character that is cut off. */
    for (size_t back = 1; back <= 3 && back <= len; back++) {
        const char *at = text + len - back;
        if (((unsigned char)*at & 0xC0) == 0x80) continue;
        return bc_utf8_next(at, back) == -1 ? len - back : len;
    }
    return len;
}

int bc_utf8_append_repaired(bc_buf *buf, const char *text, size_t len)
{
    size_t at = 0, good = 0;
    while (at < len) {
        at += bc_ascii_bytes(text + at, len - at);
        if (at == len) break;
        int n = bc_utf8_next(text + at, len - at);
        if (n > 0) {
            at += (size_t)n;
            continue;
        }
        int rc = bc_buf_append(buf, text + good, at - good);
        if (rc == 0) rc = bc_buf_append(buf, replacement, 3);
        if (rc < 0) return rc;
        good = ++at;
    }
    return bc_buf_append(buf, text + good, at - good);
}

int bc_utf8_append_code(bc_buf *buf, unsigned long code)
{
    char out[4];
    return bc_buf_append(buf, out, bc_utf8_encode(code, out));
}

size_t bc_utf8_encode(unsigned long code, char out[4])
{
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    if (code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) code = 0xFFFD;
    int n = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const unsigned char lead[] = {0, 0, 0xC0, 0xE0, 0xF0};
    for (int i = n - 1; i > 0; i--) {
        out[i] = (char)(0x80 | (code & 0x3F));
        code >>= 6;
    }
    out[0] = (char)(lead[n] | code);
    return (size_t)n;
}
