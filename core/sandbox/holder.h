/*
 * Making a detached sandbox, and saying that somebody has it: until then its holder ends it when
 * whoever asked is gone or has no use for it any more.
 */
#ifndef BC_SANDBOX_HOLDER_H
#define BC_SANDBOX_HOLDER_H

#include <barchan/detached.h>

/* The sandbox is ready and can be connected to. The claim, a descriptor, is the callee's, for
 * exactly one of the two below. With err: `id` is NULL, and there is no claim. */
typedef void (*bc_detached_made_fn)(const char *id, int claim_fd, const barchan_error *err,
                                    void *ud);

/* As barchan_detached_create_start. */
int bc_detached_create_start(barchan_runtime *rt, const barchan_detached_options *options,
                             bc_detached_made_fn made, void *ud, barchan_error *err);
/* The sandbox lives on by itself. BARCHAN_ELOST: it has ended. */
int bc_claim_keep(int claim_fd, barchan_error *err);
/* Its holder ends it. Does not wait. */
void bc_claim_drop(int claim_fd);

#endif
