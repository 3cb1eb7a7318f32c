/* Instead of the system's randomness: one input read twice must give one reply. */
#include "base/random.h"

#include <string.h>

int bc_random_hex(char *out, size_t digits)
{
    memset(out, '7', digits);
    out[digits] = '\0';
    return 0;
}
