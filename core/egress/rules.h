/*
 * What a profile says about the network, read: the policy, and what has to be opened for it.
 */
#ifndef BC_EGRESS_RULES_H
#define BC_EGRESS_RULES_H

#include <barchan/network.h>
#include "channel/frame.h"
#include "egress/policy.h"

typedef struct bc_rulebook {
    barchan_network mode;
    barchan_network_rules rules; /* with lists of its own */
    bc_policy *policy;
    bc_network_plan plan;
    struct bc_known_host {
        char name[BC_HOST_NAME_MAX + 1];
        bc_address address;
    } * known; /* of the rules' hosts */
    size_t known_count;
} bc_rulebook;

/* Nothing is left of it after a failure. */
int bc_rulebook_read(bc_rulebook *book, barchan_network mode, const barchan_network_rules *given,
                     barchan_error *err);
void bc_rulebook_clear(bc_rulebook *book); /* zeroed is fine */
/* Other lists for those of the book, which keeps its plan, caps and callbacks: what they need must
 * be open. Nothing changes after a failure. */
int bc_rulebook_replace(bc_rulebook *book, barchan_network mode, const barchan_network_rules *given,
                        barchan_error *err);
/* The address of a host that the rules know; NULL: they do not. */
const bc_address *bc_rulebook_known(const bc_rulebook *book, const char *host);

#endif
