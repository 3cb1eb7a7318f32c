/* Options structs of the public API: they begin with struct_size and grow only at their ends, and
 * never have padding there, whose bytes a host's compiler need not set. */
#ifndef BC_BASE_OPTIONS_H
#define BC_BASE_OPTIONS_H

#include <stddef.h>
#include "error.h"

/* Copies a caller's options struct of any age: what it lacks is zero; options that are newer than
 * this library must be zero (EUNSUPPORTED). NULL is all zero. A struct_size of 0 is refused: it
 * would drop every option. */
int bc_options_copy(void *to, size_t size, const void *from, barchan_error *err);

#endif
