/*
 * What every request must pass, for models that are not in C.
 */
#ifndef BC_PROVIDER_CHECK_H
#define BC_PROVIDER_CHECK_H

#include <stddef.h>
#include <barchan/error.h>

/* Fails as sending it would, with the same words, before any provider's own rules. */
int bc_request_check(const char *text, size_t len, barchan_error *err);

#endif
