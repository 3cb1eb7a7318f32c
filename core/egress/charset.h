/* In what charset a server says that its answer is. Pure. */
#ifndef BC_EGRESS_CHARSET_H
#define BC_EGRESS_CHARSET_H

#include <stdbool.h>
#include <stddef.h>

/* Whether each charset that the value of Content-Type names is known to write ASCII as ASCII; so,
 * too, when it names none. */
bool bc_charset_is_like_ascii(const char *type, size_t len);

#endif
