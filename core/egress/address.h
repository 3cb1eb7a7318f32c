/*
 * Addresses as bytes, and what kind of network each belongs to. The kinds come from one table,
 * address_table.h.
 */
#ifndef BC_EGRESS_ADDRESS_H
#define BC_EGRESS_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>

/* The longest IPv6 literal with its NUL. */
#define BC_ADDRESS_TEXT 46

typedef struct bc_address {
    int family;              /* AF_INET or AF_INET6 */
    unsigned char bytes[16]; /* network order; of AF_INET the first four, the rest is zero */
} bc_address;

/* What may stand behind an address. Only BC_ADDRESS_PUBLIC may be dialled without being named. */
typedef enum bc_address_kind {
    BC_ADDRESS_PUBLIC,
    BC_ADDRESS_LOOPBACK,
    BC_ADDRESS_PRIVATE,
    BC_ADDRESS_LINK_LOCAL,
    BC_ADDRESS_METADATA, /* a cloud's service that hands out credentials */
    BC_ADDRESS_SHARED,   /* 100.64.0.0/10, RFC 6598 */
    BC_ADDRESS_MULTICAST,
    BC_ADDRESS_UNSPECIFIED,
    BC_ADDRESS_RESERVED /* documentation, benchmarks, class E, broadcast, not assigned */
} bc_address_kind;

/* Strict literals only: four decimal numbers without leading zeros, or IPv6 without brackets and
 * zone. 0 or -1. */
int bc_address_parse(const char *text, bc_address *out);
/* The canonical literal; "" when the family is neither. */
void bc_address_print(const bc_address *address, char out[BC_ADDRESS_TEXT]);

/*
 * The kind of an address, BC_ADDRESS_RESERVED when the family is neither. Addresses that stand for
 * an IPv4 address (mapped, NAT64, 6to4, Teredo, ISATAP, compatible, translated) are never of a
 * better kind than that one.
 */
bc_address_kind bc_address_kind_of(const bc_address *address);
/* "public", "loopback", "private", "link-local", "metadata", "shared", … Static. */
const char *bc_address_kind_name(bc_address_kind kind);

/* The IPv4 addresses that an IPv6 address stands for, at most two (Teredo: server and client). */
#define BC_ADDRESS_EMBEDDED_MAX 2
size_t bc_address_embedded(const bc_address *address, bc_address out[BC_ADDRESS_EMBEDDED_MAX]);
/* ::ffff:a.b.c.d is dialled as a.b.c.d, and becomes that; every other address stays. */
void bc_address_unmap(bc_address *address);

bool bc_address_equal(const bc_address *a, const bc_address *b);
/* Whether the first `prefix` bits are those of `net`. False for another family or a prefix that
 * is longer than the address. */
bool bc_address_in_range(const bc_address *address, const bc_address *net, unsigned prefix);
/* Whether the whole range lies in one network of the table that is of this kind. */
bool bc_address_range_within(const bc_address *net, unsigned prefix, bc_address_kind kind);
/* The number of bits: 32, 128. */
unsigned bc_address_bits(const bc_address *address);

#endif
