/* The lists of a mode: those of the rules, and for `restricted` this machine's registries. */
#ifndef BC_EGRESS_RESTRICTED_H
#define BC_EGRESS_RESTRICTED_H

#include <barchan/network.h>
#include "egress/policy.h"

int bc_network_policy(bc_policy **out, barchan_network mode, const barchan_network_rules *rules,
                      barchan_error *err);

#endif
