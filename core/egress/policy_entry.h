/* One entry of a policy's lists: reading it from a person's text, printing and matching it. */
#ifndef BC_EGRESS_POLICY_ENTRY_H
#define BC_EGRESS_POLICY_ENTRY_H

#include "egress/address.h"
#include "egress/host_name.h"

typedef enum bc_policy_entry_kind {
    BC_POLICY_NAME,  /* this host */
    BC_POLICY_BELOW, /* every name below it */
    BC_POLICY_RANGE  /* addresses */
} bc_policy_entry_kind;

typedef struct bc_policy_entry {
    bc_policy_entry_kind kind;
    char host[BC_HOST_NAME_MAX + 1]; /* names: without "*." */
    bc_address net;                  /* ranges; never IPv4-mapped */
    unsigned prefix;
    unsigned port;   /* 0: none said */
    bool every_port; /* what "none said" means: every port, or 80 and 443 */
} bc_policy_entry;

/* "*." + name + ":65535", or a range in brackets with a port. */
#define BC_POLICY_ENTRY_TEXT (BC_HOST_NAME_MAX + 10)
/* Why an entry is malformed, and what to write. */
#define BC_POLICY_ENTRY_WHY 384

/* 0, or -1 with the reason. */
int bc_policy_entry_read(const char *text, bool allow, bc_policy_entry *out,
                         char why[BC_POLICY_ENTRY_WHY]);
/* In canonical form, which reads back as the same entry. */
void bc_policy_entry_print(const bc_policy_entry *entry, char out[BC_POLICY_ENTRY_TEXT]);

bool bc_policy_entry_has_port(const bc_policy_entry *entry, unsigned port);
/* Whether a name (not an address) is meant, whatever the port. */
bool bc_policy_entry_has_name(const bc_policy_entry *entry, const char *canonical_host);
/* Whether an address, which is not IPv4-mapped, lies in the entry's range, whatever the port. */
bool bc_policy_entry_has_address(const bc_policy_entry *entry, const bc_address *address);
/* Whether the entry, which has the address, is meant for its kind of network: see policy.h. */
bool bc_policy_entry_names(const bc_policy_entry *entry, const bc_address *address);

#endif
