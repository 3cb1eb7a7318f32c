/*
 * One spelling for a host: the only canonicaliser. Whatever names a host (a policy's entry, a DNS
 * question, a ClientHello, a request's head) goes through here before it is compared.
 *
 * Canonical are
 *  - names: lower-case ASCII, no trailing dot, labels of 1 to 63 letters, digits, '-' and '_'
 *    that neither begin nor end with '-'; international names only as xn--; the last label is not
 *    a number, because resolvers read such a name as an address;
 *  - IPv4 addresses as four decimal numbers without leading zeros;
 *  - IPv6 addresses without brackets and zone, compressed and lower-case (RFC 5952).
 *
 * Accepted besides: upper case, and one trailing dot of a name. Everything else that some
 * resolver would take for an address (decimal, octal, hex, fewer than four parts) is refused.
 */
#ifndef BC_EGRESS_HOST_NAME_H
#define BC_EGRESS_HOST_NAME_H

#include <stdbool.h>
#include <stddef.h>

/* RFC 1035, 2.3.4: 255 bytes on the wire, two of which are the root and a length. */
#define BC_HOST_NAME_MAX 253
#define BC_HOST_LABEL_MAX 63

/* 0 and the canonical form, or -1 and "". `text` need not be terminated and may hold any byte. */
int bc_host_name_canonical(const char *text, size_t len, char out[BC_HOST_NAME_MAX + 1]);

/* Both canonical: whether `host` lies below `apex`, and is not `apex` itself. */
bool bc_host_name_below(const char *host, const char *apex);

#endif
