/* How much of a text needs no look at each byte: most of every JSON string and of every prompt. */
#ifndef BC_BASE_PLAIN_H
#define BC_BASE_PLAIN_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

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

/* The bytes at the start, eight at a time, that stand for themselves in a JSON string. */
static inline size_t bc_plain_bytes(const char *text, size_t len)
{
    size_t at = 0;
    uint64_t word;
    for (; at + sizeof word <= len; at += sizeof word) {
        memcpy(&word, text + at, sizeof word);
        if (bc_special_bytes(word) != 0) break;
    }
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
        if ((bc_zero_bytes(word ^ BC_EACH_BYTE((unsigned char)a)) |
             bc_zero_bytes(word ^ BC_EACH_BYTE((unsigned char)b))) != 0)
            break;
    }
    return at;
}

#endif
