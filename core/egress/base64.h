/* Base64 (RFC 4648) as HTTP's Basic uses it, and as a server may show bytes in the midst of others.
 */
#ifndef BC_EGRESS_BASE64_H
#define BC_EGRESS_BASE64_H

#include <stdbool.h>
#include <stddef.h>

#define BC_BASE64_LENGTH(len) (((len) + 2) / 3 * 4)

/* Writes BC_BASE64_LENGTH(len) characters, padded, and no NUL. */
size_t bc_base64_encode(const void *data, size_t len, char *out);
/* Strict: no other characters, whole groups, padding as it must be. At most len / 4 * 3 bytes; -1:
 * it is none. */
long bc_base64_decode(const char *text, size_t len, void *out);
/* The characters that stand for these bytes alone wherever `skew` bytes (0 to 2), or three more,
 * and so on, stand before them and any behind: fewer than BC_BASE64_LENGTH(len) + 4. `url`: with
 * "-_". */
size_t bc_base64_inside(const void *data, size_t len, unsigned skew, bool url, char *out);

#endif
