/*
 * The network of one sandbox: its name service, and its connections from listener to the world.
 * What is decided is decided by the policy; this is who asks it, and acts.
 */
#ifndef BC_EGRESS_EGRESS_H
#define BC_EGRESS_EGRESS_H

#include <barchan/exec.h>
#include <barchan/network.h>
#include "channel/frame.h"
#include "egress/ledger.h"
#include "egress/secrets.h"
#include "runtime/loop.h"

typedef struct bc_egress bc_egress;

typedef struct bc_egress_options {
    barchan_runtime *rt;
    barchan_network mode;               /* not off */
    const barchan_network_rules *rules; /* copied; may be NULL */
    barchan_sandbox *sbx;               /* for the callbacks */
    const barchan_secret *secrets;      /* copied */
    size_t secret_count;
} bc_egress_options;

int bc_egress_create(bc_egress **out, const bc_egress_options *options, barchan_error *err);
/* Callbacks do not run afterwards. NULL is ignored, as by _stop and _mute. */
void bc_egress_destroy(bc_egress *egress);
/* Closes every connection and socket at once; what is known stays. */
void bc_egress_stop(bc_egress *egress);
/* Nobody listens to events any more. */
void bc_egress_mute(bc_egress *egress);
/* Its mode and rules, for another like it; NULL: off. The rules are borrowed. */
barchan_network bc_egress_rules(const bc_egress *egress, const barchan_network_rules **rules);
/* Other rules for connections from now on; see barchan_sandbox_set_network. */
int bc_egress_set_rules(bc_egress *egress, barchan_network mode, const barchan_network_rules *given,
                        barchan_error *err);
/* Of the callbacks. */
void bc_egress_set_ud(bc_egress *egress, void *ud);
/* What the launcher has to open. */
const bc_network_plan *bc_egress_plan(const bc_egress *egress);
/* Takes the sockets that it opened, in the order of BC_CONTROL_LISTENERS; always closes those that
 * it does not keep. */
int bc_egress_listen(bc_egress *egress, int *fds, size_t count, barchan_error *err);
/* Instead: the guest has the sockets, and connections come as frames. What is sent to it: 0, or
 * negative when that is not possible. */
typedef int bc_carry_send_fn(void *ud, uint32_t type, uint32_t stream, const void *payload,
                             size_t len);
void bc_egress_carry(bc_egress *egress, bc_carry_send_fn *send, void *ud);
/* A frame of a carried connection; negative: it breaks the protocol. */
int bc_egress_take_frame(bc_egress *egress, const bc_frame *frame);
/* NULL: there are none. */
bc_secrets *bc_egress_secrets(bc_egress *egress);
/* How many refusals and failures there have been; 0 for NULL. */
bc_ledger_mark bc_egress_mark(const bc_egress *egress);
/* Fills a command's result with those since then; quietly fewer when out of memory. NULL: none. */
void bc_egress_told_since(const bc_egress *egress, bc_ledger_mark mark,
                          barchan_exec_result *result);
int bc_egress_usage(const bc_egress *egress, barchan_network_usage *usage, barchan_error *err);
#endif
