/*
 * THE address table: which networks are not the public internet, and how their addresses can be
 * spelled. The classifier, the unit test, the seeds of the fuzz targets and the table of the
 * documentation are all made from this file; nothing else lists addresses.
 *
 * Sources: the IANA IPv4 and IPv6 Special-Purpose Address Registries (RFC 6890, RFC 8190), IANA's
 * IPv6 address space (only 2000::/3 is assigned as global unicast), and the clouds' own pages.
 *
 * The longest prefix that holds an address decides. The registries call a few small ranges inside
 * reserved ones reachable (192.0.0.9, 192.0.0.10, 2001:1::1, 2001:20::/28 …); these are anycast
 * services of the own network or identifiers that are not routed, so they stay reserved here.
 */
#ifndef BC_EGRESS_ADDRESS_TABLE_H
#define BC_EGRESS_ADDRESS_TABLE_H

/* V4(a, b, c, d, prefix, kind, "source") */
#define BC_ADDRESS_TABLE_V4(V4)                                                              \
    V4(0, 0, 0, 0, 32, UNSPECIFIED, "RFC 1122: this host; connect takes it for loopback")    \
    V4(0, 0, 0, 0, 8, UNSPECIFIED, "RFC 791: this network")                                  \
    V4(10, 0, 0, 0, 8, PRIVATE, "RFC 1918")                                                  \
    V4(100, 64, 0, 0, 10, SHARED, "RFC 6598: carrier-grade NAT")                             \
    V4(100, 100, 100, 200, 32, METADATA, "Alibaba Cloud instance metadata")                  \
    V4(127, 0, 0, 0, 8, LOOPBACK, "RFC 1122")                                                \
    V4(168, 63, 129, 16, 32, METADATA, "Azure host agent (WireServer), a public address")    \
    V4(169, 254, 0, 0, 16, LINK_LOCAL, "RFC 3927")                                           \
    V4(169, 254, 0, 23, 32, METADATA, "Tencent Cloud instance metadata")                     \
    V4(169, 254, 10, 10, 32, METADATA, "Tencent Cloud instance metadata, second address")    \
    V4(169, 254, 42, 42, 32, METADATA, "Scaleway instance metadata")                         \
    V4(169, 254, 169, 254, 32, METADATA, "AWS, Google, Azure, Oracle, OpenStack and others") \
    V4(169, 254, 170, 2, 32, METADATA, "AWS ECS task metadata and credentials")              \
    V4(169, 254, 170, 23, 32, METADATA, "AWS EKS pod identity agent")                        \
    V4(172, 16, 0, 0, 12, PRIVATE, "RFC 1918")                                               \
    V4(192, 0, 0, 0, 24, RESERVED, "RFC 6890: IETF protocol assignments")                    \
    V4(192, 0, 0, 192, 32, METADATA, "Oracle Cloud Classic instance metadata")               \
    V4(192, 0, 2, 0, 24, RESERVED, "RFC 5737: documentation")                                \
    V4(192, 88, 99, 0, 24, RESERVED, "RFC 7526: 6to4 relay anycast, withdrawn")              \
    V4(192, 168, 0, 0, 16, PRIVATE, "RFC 1918")                                              \
    V4(198, 18, 0, 0, 15, RESERVED, "RFC 2544: benchmarks")                                  \
    V4(198, 51, 100, 0, 24, RESERVED, "RFC 5737: documentation")                             \
    V4(203, 0, 113, 0, 24, RESERVED, "RFC 5737: documentation")                              \
    V4(224, 0, 0, 0, 4, MULTICAST, "RFC 1112")                                               \
    V4(240, 0, 0, 0, 4, RESERVED, "RFC 1112: class E")                                       \
    V4(255, 255, 255, 255, 32, RESERVED, "RFC 919: broadcast")

/* V6(eight groups, prefix, kind, "source"). Ranges that embed an IPv4 address carry the kind that
 * they have at best; the embedded address may make it worse. */
#define BC_ADDRESS_TABLE_V6(V6)                                                                   \
    V6(0, 0, 0, 0, 0, 0, 0, 0, 0, RESERVED, "IANA: not assigned outside 2000::/3")                \
    V6(0, 0, 0, 0, 0, 0, 0, 0, 96, RESERVED, "RFC 4291: IPv4-compatible, deprecated")             \
    V6(0, 0, 0, 0, 0, 0, 0, 0, 128, UNSPECIFIED, "RFC 4291")                                      \
    V6(0, 0, 0, 0, 0, 0, 0, 1, 128, LOOPBACK, "RFC 4291")                                         \
    V6(0, 0, 0, 0, 0, 0xffff, 0, 0, 96, PUBLIC, "RFC 4291: IPv4-mapped")                          \
    V6(0, 0, 0, 0, 0xffff, 0, 0, 0, 96, RESERVED, "RFC 2765: IPv4-translated")                    \
    V6(0x64, 0xff9b, 0, 0, 0, 0, 0, 0, 96, PUBLIC, "RFC 6052: NAT64")                             \
    V6(0x64, 0xff9b, 1, 0, 0, 0, 0, 0, 48, PRIVATE, "RFC 8215: NAT64 of the own network")         \
    V6(0x100, 0, 0, 0, 0, 0, 0, 0, 64, RESERVED, "RFC 6666: discard only")                        \
    V6(0x100, 0, 0, 1, 0, 0, 0, 0, 64, RESERVED, "RFC 9780: dummy prefix")                        \
    V6(0x2000, 0, 0, 0, 0, 0, 0, 0, 3, PUBLIC, "RFC 4291: global unicast")                        \
    V6(0x2001, 0, 0, 0, 0, 0, 0, 0, 23, RESERVED, "RFC 2928: IETF protocol assignments")          \
    V6(0x2001, 0, 0, 0, 0, 0, 0, 0, 32, PUBLIC, "RFC 4380: Teredo")                               \
    V6(0x2001, 2, 0, 0, 0, 0, 0, 0, 48, RESERVED, "RFC 5180: benchmarks")                         \
    V6(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0, 32, RESERVED, "RFC 3849: documentation")                  \
    V6(0x2002, 0, 0, 0, 0, 0, 0, 0, 16, PUBLIC, "RFC 3056: 6to4")                                 \
    V6(0x3fff, 0, 0, 0, 0, 0, 0, 0, 20, RESERVED, "RFC 9637: documentation")                      \
    V6(0x5f00, 0, 0, 0, 0, 0, 0, 0, 16, RESERVED, "RFC 9602: segment routing")                    \
    V6(0xfc00, 0, 0, 0, 0, 0, 0, 0, 7, PRIVATE, "RFC 4193: unique local")                         \
    V6(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x23, 128, METADATA, "AWS EKS pod identity agent")           \
    V6(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254, 128, METADATA, "AWS instance metadata")               \
    V6(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254, 128, METADATA, "Google Cloud metadata, IPv6 only VMs") \
    V6(0xfd00, 0xc1, 0, 0, 0, 0, 0xa9fe, 0xa9fe, 128, METADATA, "Oracle Cloud instance metadata") \
    V6(0xfd00, 0x42, 0, 0, 0, 0, 0, 0x42, 128, METADATA, "Scaleway instance metadata")            \
    V6(0xfe80, 0, 0, 0, 0, 0, 0, 0, 10, LINK_LOCAL, "RFC 4291")                                   \
    V6(0xfe80, 0, 0, 0, 0, 0, 0xa9fe, 0xa9fe, 128, METADATA, "OpenStack instance metadata")       \
    V6(0xfec0, 0, 0, 0, 0, 0, 0, 0, 10, PRIVATE, "RFC 3879: site-local, deprecated")              \
    V6(0xff00, 0, 0, 0, 0, 0, 0, 0, 8, MULTICAST, "RFC 4291")

#endif
