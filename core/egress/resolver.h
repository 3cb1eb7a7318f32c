/*
 * Finds the addresses of a host, for connections that are allowed. By c-ares, because a lookup must
 * be cancelled the moment that its sandbox ends, and the C library's cannot be. It asks the name
 * servers of this machine and reads its /etc/hosts, but no other source of nsswitch.conf.
 */
#ifndef BC_EGRESS_RESOLVER_H
#define BC_EGRESS_RESOLVER_H

#include "egress/address.h"
#include "runtime/loop.h"

/* Tried one after the other; more are not worth the wait. */
#define BC_RESOLVE_MAX 16u

typedef struct bc_resolver bc_resolver;
typedef struct bc_lookup bc_lookup;
/* Once, in a dispatch. `count` 0: `why` says why. */
typedef void (*bc_lookup_fn)(void *ud, const bc_address *found, size_t count, const char *why);

int bc_resolver_create(bc_resolver **out, barchan_runtime *rt, barchan_error *err);
/* Its lookups are over, unanswered. NULL is ignored. */
void bc_resolver_destroy(bc_resolver *resolver);
/* `host` is canonical and no address. */
int bc_lookup_start(bc_lookup **out, bc_resolver *resolver, const char *host, bc_lookup_fn fn,
                    void *ud, barchan_error *err);
/* It is not called any more. NULL is ignored. Not for one that has been called: it
 * is gone. */
void bc_lookup_cancel(bc_lookup *lookup);

#endif
