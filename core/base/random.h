/* Randomness of the system, for identifiers. */
#ifndef BC_BASE_RANDOM_H
#define BC_BASE_RANDOM_H

#include <stddef.h>

/* Writes `digits` hexadecimal digits and a NUL; at most 64. Negative when the system has none. */
int bc_random_hex(char *out, size_t digits);

#endif
