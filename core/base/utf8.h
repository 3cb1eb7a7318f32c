/* UTF-8 by RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF. */
#ifndef BC_BASE_UTF8_H
#define BC_BASE_UTF8_H

#include <stddef.h>
#include "buf.h"

/* Length 1..4 of the character at `text`; 0 when the bytes there are invalid; -1 when they are
 * the beginning of a valid one that the text cuts off. */
int bc_utf8_next(const char *text, size_t len);
/* The longest prefix that does not end within a character. */
size_t bc_utf8_whole(const char *text, size_t len);
/* Appends `text` with every invalid byte replaced by U+FFFD. */
int bc_utf8_append_repaired(bc_buf *buf, const char *text, size_t len);
/* The character with this code point, U+FFFD for what is none: its 1 to 4 bytes, or appended. */
size_t bc_utf8_encode(unsigned long code, char out[4]);
int bc_utf8_append_code(bc_buf *buf, unsigned long code);

#endif
