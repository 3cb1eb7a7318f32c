#include "base64.h"

#include <string.h>

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static char letter(unsigned six, bool url)
{
    if (url && six == 62) return '-';
    if (url && six == 63) return '_';
    return alphabet[six];
}

size_t bc_base64_encode(const void *data, size_t len, char *out)
{
    const unsigned char *in = data;
    size_t at = 0;
    for (size_t i = 0; i < len; i += 3) {
        size_t have = len - i < 3 ? len - i : 3;
        unsigned group = (unsigned)in[i] << 16;
        if (have > 1) group |= (unsigned)in[i + 1] << 8;
        if (have > 2) group |= in[i + 2];
        for (size_t k = 0; k < 4; k++)
            out[at++] = k <= have ? alphabet[group >> (18 - 6 * k) & 63] : '=';
    }
    return at;
}

static int value_of(char c)
{
    const char *found = c == '\0' ? NULL : strchr(alphabet, c);
    return found == NULL ? -1 : (int)(found - alphabet);
}

long bc_base64_decode(const char *text, size_t len, void *out)
{
    unsigned char *to = out;
    long at = 0;
    size_t padding = 0;
    if (len % 4 != 0) return -1;
    while (padding < 2 && padding < len && text[len - 1 - padding] == '=')
        padding++;
    for (size_t i = 0; i < len; i += 4) {
        size_t have = i + 4 == len ? 4 - padding : 4;
        unsigned group = 0;
        for (size_t k = 0; k < have; k++) {
            int six = value_of(text[i + k]);
            if (six < 0) return -1;
            group |= (unsigned)six << (18 - 6 * k);
        }
        /* Bits that padding leaves over are zero, so that there is one spelling. */
        if ((have == 2 && (group & 0xffff) != 0) || (have == 3 && (group & 0xff) != 0)) return -1;
        for (size_t k = 0; k + 1 < have; k++)
            to[at++] = (unsigned char)(group >> (16 - 8 * k));
    }
    return at;
}

size_t bc_base64_inside(const void *data, size_t len, unsigned skew, bool url, char *out)
{
    const unsigned char *in = data;
    size_t first = (skew * 8 + 5) / 6, end = (skew + len) * 8 / 6, at = 0;
    for (size_t i = first; i < end; i++) {
        size_t bit = i * 6 - skew * 8, byte = bit / 8, shift = bit % 8;
        unsigned two = (unsigned)in[byte] << 8;
        if (byte + 1 < len) two |= in[byte + 1];
        out[at++] = letter(two >> (10 - shift) & 63, url);
    }
    return at;
}
