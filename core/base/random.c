#include "random.h"

#include <stdint.h>
#include <sys/random.h>
#include <barchan/error.h>

int bc_random_hex(char *out, size_t digits)
{
    static const char hex[] = "0123456789abcdef";
    unsigned char bytes[64];
    if (digits > sizeof bytes) return BARCHAN_EINVAL;
    if (getrandom(bytes, digits, 0) != (ssize_t)digits) return BARCHAN_EIO;
    for (size_t i = 0; i < digits; i++) {
        out[i] = hex[bytes[i] & 15];
    }
    out[digits] = '\0';
    return 0;
}

long bc_random_below(long bound)
{
    uint32_t value = 0;
    if (bound <= 0 || getrandom(&value, sizeof value, 0) != (ssize_t)sizeof value) return 0;
    return (long)((uint64_t)value * (uint64_t)bound >> 32);
}
