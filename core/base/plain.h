/* How much of a text needs no look at each byte: most of every JSON string and of every prompt. */
#ifndef BC_BASE_PLAIN_H
#define BC_BASE_PLAIN_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define BC_EACH_BYTE(c) (UINT64_C(0x0101010101010101) * (c))

/* The high bit of each byte that is zero; of others only behind one that is. */
static inline uint64_t bc_zero_bytes(uint64_t x)
{
    return (x - BC_EACH_BYTE(1)) & ~x & BC_EACH_BYTE(0x80);
}

/* Nonzero if one of the eight bytes is a control character, '"', '\\', DEL or not ASCII. */
static inline uint64_t bc_special_bytes(uint64_t x)
{
    return (x & BC_EACH_BYTE(0x80)) | ((x - BC_EACH_BYTE(0x20)) & ~x & BC_EACH_BYTE(0x80)) |
           bc_zero_bytes(x ^ BC_EACH_BYTE('"')) | bc_zero_bytes(x ^ BC_EACH_BYTE('\\')) |
           bc_zero_bytes(x ^ BC_EACH_BYTE(0x7F));
}

/* How many bytes of a word stand before the first that is marked by its high bit. */
static inline size_t bc_bytes_before(uint64_t marks)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    return (size_t)__builtin_ctzll(marks) / 8;
#else
    (void)marks; /* the marks behind the first may be wrong, and here they are seen first */
    return 0;
#endif
}

static inline int bc_is_plain_byte(unsigned char c)
{
    return c >= 0x20 && c < 0x7F && c != '"' && c != '\\';
}

#ifdef __SSE2__
/* The same for sixteen bytes, a bit for each. As signed numbers those that are not ASCII are below
 * the control characters. */
static inline unsigned bc_special_bits(const char *text)
{
    __m128i x = _mm_loadu_si128((const __m128i *)(const void *)text);
    __m128i low = _mm_cmplt_epi8(x, _mm_set1_epi8(0x20));
    __m128i quote = _mm_cmpeq_epi8(x, _mm_set1_epi8('"'));
    __m128i escape = _mm_cmpeq_epi8(x, _mm_set1_epi8('\\'));
    __m128i delete = _mm_cmpeq_epi8(x, _mm_set1_epi8(0x7F));
    return (unsigned)_mm_movemask_epi8(
        _mm_or_si128(_mm_or_si128(low, quote), _mm_or_si128(escape, delete)));
}
#endif

/* Whether all of a few bytes, 4 to 15, stand for themselves: the first and the last of them may be
 * the same. */
static inline int bc_few_are_plain(const char *text, size_t len)
{
    uint64_t first, last;
    uint32_t half[2];
    if (len >= sizeof first) {
        memcpy(&first, text, sizeof first);
        memcpy(&last, text + len - sizeof last, sizeof last);
        return (bc_special_bytes(first) | bc_special_bytes(last)) == 0;
    }
    memcpy(&half[0], text, sizeof half[0]);
    memcpy(&half[1], text + len - sizeof half[1], sizeof half[1]);
    memcpy(&first, half, sizeof first);
    return bc_special_bytes(first) == 0;
}

/* The bytes at the start that stand for themselves in a JSON string. */
static inline size_t bc_plain_bytes(const char *text, size_t len)
{
    size_t at = 0;
    if (len >= 4 && len < 16 && bc_few_are_plain(text, len)) return len;
#ifdef __SSE2__
    for (; at + 16 <= len; at += 16) {
        unsigned special = bc_special_bits(text + at);
        if (special != 0) return at + (size_t)__builtin_ctz(special);
    }
    if (at != 0 && at < len) { /* the rest, with some of what was looked at */
        at = len - 16;
        unsigned special = bc_special_bits(text + at);
        return special != 0 ? at + (size_t)__builtin_ctz(special) : len;
    }
#endif
    uint64_t word;
    for (; at + sizeof word <= len; at += sizeof word) {
        memcpy(&word, text + at, sizeof word);
        if (bc_special_bytes(word) != 0) break;
    }
    while (at < len && bc_is_plain_byte((unsigned char)text[at]))
        at++;
    return at;
}

/* The same for ASCII. */
static inline size_t bc_ascii_bytes(const char *text, size_t len)
{
    size_t at = 0;
    uint64_t word;
    for (; at + sizeof word <= len; at += sizeof word) {
        memcpy(&word, text + at, sizeof word);
        if ((word & BC_EACH_BYTE(0x80)) != 0) break;
    }
    return at;
}

/* The same for what is neither of two bytes. */
static inline size_t bc_bytes_without(const char *text, size_t len, char a, char b)
{
    size_t at = 0;
    uint64_t word;
    for (; at + sizeof word <= len; at += sizeof word) {
        memcpy(&word, text + at, sizeof word);
        uint64_t found = bc_zero_bytes(word ^ BC_EACH_BYTE((unsigned char)a)) |
                         bc_zero_bytes(word ^ BC_EACH_BYTE((unsigned char)b));
        if (found != 0) return at + bc_bytes_before(found);
    }
    return at;
}

#endif
