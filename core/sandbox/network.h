/* For the bindings: whom the callbacks of a sandbox's network are for. */
#ifndef BC_SANDBOX_NETWORK_H
#define BC_SANDBOX_NETWORK_H

#include <barchan/sandbox.h>

/* Instead of the `ud` of its rules, as of a fork, which has those of another sandbox. */
void bc_sandbox_set_network_ud(barchan_sandbox *sbx, void *ud);

#endif
