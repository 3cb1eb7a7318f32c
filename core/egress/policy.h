/*
 * Which connections a sandbox may open. One decision per attempt, in two steps: by name before
 * anything is resolved, then by the address that would be dialled. Both must allow.
 *
 * Entries of both lists: host[:port], *.host[:port] (names below host, not host itself), an
 * address or a range in CIDR form [:port]; IPv6 with a port stands in brackets ("[fd00::/8]:5432").
 * An allow entry without a port means 80 and 443, a deny entry without one every port (also
 * written ":*").
 *
 * Deny wins. An empty allow-list denies everything. A name that only resolves to an allowed address
 * is not thereby allowed: names are named. An address that is not public is refused in both modes
 * unless an allow entry with that port names it, or names a range within its own network that holds
 * it (8.0.0.0/5 and 0.0.0.0/1 name no private network, although they hold one); a metadata address
 * only by an entry that is this very address.
 *
 * An IPv6 address that stands for an IPv4 address is held against the deny ranges as both.
 *
 * A policy never changes after its creation, so threads may share it.
 */
#ifndef BC_EGRESS_POLICY_H
#define BC_EGRESS_POLICY_H

#include "base/buf.h"
#include "base/limits.h"
#include "egress/address.h"
#include "egress/host_name.h"

typedef struct bc_policy bc_policy;

typedef enum bc_policy_mode {
    BC_POLICY_LIST, /* what is not allowed is denied */
    BC_POLICY_OPEN  /* any public host on the ports of bc_policy_ports; allow entries add to that */
} bc_policy_mode;

/* The lists end with NULL, and may be NULL. A malformed entry is BARCHAN_EINVAL with a message that
 * names it and says what to write; too many entries or ports are BARCHAN_ELIMIT. */
int bc_policy_create(bc_policy **out, bc_policy_mode mode, const char *const *allow,
                     const char *const *deny, barchan_error *err);
void bc_policy_destroy(bc_policy *policy);

typedef struct bc_verdict {
    bool allowed;
    bool named;    /* allowed, and an allow entry names the very address, or a range with it */
    bool unlisted; /* refused because no entry speaks of it: a person may be asked */
    /* Why, for people: "allow: *.example.org:8443", "deny: x.example", "not in the allow-list",
     * "private address 10.0.0.1 of api.example.com". One line of printable ASCII. */
    char rule[384];
} bc_verdict;

/* Before resolution. The host is canonical, and may be an address. What is not canonical is
 * refused. */
void bc_policy_decide_name(const bc_policy *policy, const char *canonical_host, unsigned port,
                           bc_verdict *verdict);
/* The address that is about to be dialled for this host. Includes the decision by name, so that
 * a caller who skipped it is none the wiser. */
void bc_policy_decide_address(const bc_policy *policy, const char *canonical_host, unsigned port,
                              const bc_address *address, bc_verdict *verdict);

/* The address of a host that no entry speaks of and that a person has allowed: what is not denied,
 * and public. */
void bc_policy_decide_asked(const bc_policy *policy, const char *canonical_host, unsigned port,
                            const bc_address *address, bc_verdict *verdict);

/* The IPv4 ranges of the allow entries, which programs reach by number: fills at most `cap`,
 * returns how many there are. */
typedef struct bc_policy_range {
    bc_address net;
    unsigned prefix;
} bc_policy_range;
size_t bc_policy_ranges(const bc_policy *policy, bc_policy_range *ranges, size_t cap);

/* The ports on which anything can be allowed, sorted: those of the allow entries, with
 * BC_POLICY_OPEN also 22, 80, 443, 8080, 8443, 9418. Fills at most `cap`, returns how many there
 * are (at most BC_POLICY_MAX_PORTS). */
size_t bc_policy_ports(const bc_policy *policy, unsigned short *ports, size_t cap);

/* Appends { "mode": "list" | "open", "allow": [...], "deny": [...] }, the entries in canonical
 * form. 0 or the buffer's failure. */
int bc_policy_list(const bc_policy *policy, bc_buf *out);

#endif
