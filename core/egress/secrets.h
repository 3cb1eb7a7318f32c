/*
 * The secrets of one sandbox: which connections they are for, what is put in, what is taken out.
 */
#ifndef BC_EGRESS_SECRETS_H
#define BC_EGRESS_SECRETS_H

#include <openssl/types.h>
#include "egress/ca.h"
#include "egress/policy.h"
#include "egress/redactor.h"
#include "egress/secret.h"

/* A host and port that secrets are bound to. Lives as long as the secrets do. */
typedef struct bc_bound_host {
    char name[BC_HOST_NAME_MAX + 1];
    unsigned port;
    const char *ca_file; /* NULL: this machine's */
    const bc_secret *secrets[BC_SECRET_MAX];
    size_t count;
    SSL_CTX *serves, *verifies; /* NULL until they are needed */
    int64_t served_ms;          /* when `serves` was made */
} bc_bound_host;

typedef struct bc_secrets {
    bc_secret list[BC_SECRET_MAX];
    size_t count;
    bc_bound_host *hosts;
    size_t host_count;
    bc_ca *ca;
    bc_patterns *values;       /* of all of them, and their last ones: tag is the secret's place */
    bc_patterns *placeholders; /* likewise */
} bc_secrets;

/* The policy must allow each host, or have a person asked about it (`may_ask`). */
int bc_secrets_create(bc_secrets **out, const barchan_secret *given, size_t count,
                      const bc_policy *policy, bool may_ask, barchan_error *err);
void bc_secrets_destroy(bc_secrets *secrets); /* NULL is ignored */

/* NULL: none is bound to it. `secrets` may be NULL. */
bc_bound_host *bc_secrets_bound(bc_secrets *secrets, const char *host, unsigned port);
/* Makes both contexts ready for a connection. */
int bc_secrets_prepare(bc_secrets *secrets, bc_bound_host *host, barchan_error *err);
int bc_secrets_set(bc_secrets *secrets, const char *name, const char *value, size_t len,
                   barchan_error *err);
/* What programs in the sandbox are to trust: this machine's certificates and the authority's. The
 * caller frees it. */
int bc_secrets_bundle(const bc_secrets *secrets, char **pem, size_t *len, barchan_error *err);

#endif
