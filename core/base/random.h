/* Randomness of the system, for identifiers and jitter. */
#ifndef BC_BASE_RANDOM_H
#define BC_BASE_RANDOM_H

#include <stddef.h>

/* Writes `digits` hexadecimal digits and a NUL; at most 64. Negative when the system has none. */
int bc_random_hex(char *out, size_t digits);
/* From 0 to below `bound` (at most 2^31), near enough to even; 0 when the system has none. */
long bc_random_below(long bound);

#endif
