/* Writing JSON text into a buffer. Each call returns 0 or the buffer's failure. */
#ifndef BC_BASE_JSON_WRITE_H
#define BC_BASE_JSON_WRITE_H

#include <stdint.h>
#include "buf.h"

/* A quoted string. Bytes that are not UTF-8 become U+FFFD; U+007F, U+2028 and U+2029 are escaped,
 * so that the text survives line readers of every kind. */
int bc_json_write_string(bc_buf *out, const char *text, size_t len);
int bc_json_write_integer(bc_buf *out, int64_t value);
/* The shortest decimal that reads back as the same number; infinities and NaN are refused
 * (BARCHAN_EINVAL) because JSON has none. Independent of the locale. */
int bc_json_write_real(bc_buf *out, double value);

#endif
