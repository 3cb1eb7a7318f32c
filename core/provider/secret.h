/*
 * What an error must not carry on: servers quote what they were sent, the key included, and send
 * control characters. Everything of a server's that goes into an error passes through here.
 */
#ifndef BC_PROVIDER_SECRET_H
#define BC_PROVIDER_SECRET_H

#include <stddef.h>
#include "base/buf.h"

/* The key, with and without its scheme, and the values of headers that carry credentials. */
typedef struct bc_secrets {
    char **texts; /* owned, longest first */
    size_t count;
} bc_secrets;

/* `headers` may be NULL, as may the key. On failure nothing is kept. */
int bc_secrets_init(bc_secrets *secrets, const char *key, const char *const *headers,
                    barchan_error *err);
void bc_secrets_clear(bc_secrets *secrets);

/* Copies text as one line of whole characters that fits, secrets as "***" and control characters as
 * spaces. A secret is looked for before the text is cut, so no part of one is left at the end.
 * `secrets` may be NULL. */
void bc_secret_line(const bc_secrets *secrets, char *to, size_t size, const char *text, size_t len);
/* Appends all of the text, of any size, with "***" for secrets and nothing else changed; 1. When
 * there is none in it, appends nothing; 0. Negative: the buffer's failure. */
int bc_secret_hide(const bc_secrets *secrets, bc_buf *to, const char *text, size_t len);
/* The same as bc_secret_line for all texts of a filled error, in place. */
void bc_secret_error(const bc_secrets *secrets, barchan_error *err);

#endif
