/*
 * A sandbox's certificate authority. Its key is made with it and never leaves this process's
 * memory; what it signs is trusted by the programs of that one sandbox. It may name the hosts of
 * its secrets and no others (RFC 5280, 4.2.1.10).
 */
#ifndef BC_EGRESS_CA_H
#define BC_EGRESS_CA_H

#include <openssl/types.h>
#include <stddef.h>
#include "base/error.h"

typedef struct bc_ca bc_ca;

int bc_ca_create(bc_ca **out, const char *const *names, size_t count, barchan_error *err);
void bc_ca_destroy(bc_ca *ca); /* NULL is ignored */
/* Its certificate; borrowed, NUL-terminated. */
const char *bc_ca_pem(const bc_ca *ca);

/* A server's context with a certificate for this name, made now. The caller frees it. */
int bc_ca_serve(SSL_CTX **out, const bc_ca *ca, const char *name, barchan_error *err);
/* When such a certificate should be made anew: milliseconds. */
#define BC_CA_LEAF_MS (12ll * 3600 * 1000)

/* A client's context that verifies what it meets, with the certificates of a file or, with NULL,
 * those that this machine trusts. */
int bc_ca_verify(SSL_CTX **out, const char *file, barchan_error *err);
/* The file of certificates that programs on this machine trust; NULL: none was found. Static or of
 * the environment. */
const char *bc_ca_host_bundle(void);

#endif
