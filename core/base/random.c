#include "random.h"

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
