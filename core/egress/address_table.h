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

/* Literals that are read, in their canonical form, with their kind: L("as written", "canonical",
 * kind). */
#define BC_ADDRESS_LITERALS(L)                                              \
    L("8.8.8.8", "8.8.8.8", PUBLIC)                                         \
    L("9.255.255.255", "9.255.255.255", PUBLIC)                             \
    L("11.0.0.0", "11.0.0.0", PUBLIC)                                       \
    L("100.63.255.255", "100.63.255.255", PUBLIC)                           \
    L("100.128.0.0", "100.128.0.0", PUBLIC)                                 \
    L("172.15.255.255", "172.15.255.255", PUBLIC)                           \
    L("172.32.0.0", "172.32.0.0", PUBLIC)                                   \
    L("192.0.1.0", "192.0.1.0", PUBLIC)                                     \
    L("198.20.0.0", "198.20.0.0", PUBLIC)                                   \
    L("223.255.255.255", "223.255.255.255", PUBLIC)                         \
    L("168.63.129.15", "168.63.129.15", PUBLIC)                             \
    L("0.0.0.0", "0.0.0.0", UNSPECIFIED)                                    \
    L("0.1.2.3", "0.1.2.3", UNSPECIFIED)                                    \
    L("10.255.255.255", "10.255.255.255", PRIVATE)                          \
    L("100.64.0.1", "100.64.0.1", SHARED)                                   \
    L("100.100.100.200", "100.100.100.200", METADATA)                       \
    L("127.0.0.1", "127.0.0.1", LOOPBACK)                                   \
    L("127.255.255.254", "127.255.255.254", LOOPBACK)                       \
    L("169.254.1.1", "169.254.1.1", LINK_LOCAL)                             \
    L("169.254.169.254", "169.254.169.254", METADATA)                       \
    L("192.0.0.8", "192.0.0.8", RESERVED)                                   \
    L("255.255.255.255", "255.255.255.255", RESERVED)                       \
    L("239.255.255.250", "239.255.255.250", MULTICAST)                      \
    L("2606:4700::1111", "2606:4700::1111", PUBLIC)                         \
    L("2606:4700:0:0:0:0:0:1111", "2606:4700::1111", PUBLIC)                \
    L("2606:4700:0000::AbCd", "2606:4700::abcd", PUBLIC)                    \
    L("::", "::", UNSPECIFIED)                                              \
    L("0:0:0:0:0:0:0:0", "::", UNSPECIFIED)                                 \
    L("::1", "::1", LOOPBACK)                                               \
    L("0:0:0:0:0:0:0:1", "::1", LOOPBACK)                                   \
    L("::0001", "::1", LOOPBACK)                                            \
    L("::0.0.0.1", "::1", LOOPBACK)                                         \
    L("::127.0.0.1", "::127.0.0.1", LOOPBACK)                               \
    L("::7f00:1", "::127.0.0.1", LOOPBACK)                                  \
    L("::8.8.8.8", "::8.8.8.8", RESERVED)                                   \
    L("::ffff:127.0.0.1", "::ffff:127.0.0.1", LOOPBACK)                     \
    L("::ffff:7f00:1", "::ffff:127.0.0.1", LOOPBACK)                        \
    L("::FFFF:7F00:0001", "::ffff:127.0.0.1", LOOPBACK)                     \
    L("0:0:0:0:0:ffff:7f00:1", "::ffff:127.0.0.1", LOOPBACK)                \
    L("::ffff:10.0.0.1", "::ffff:10.0.0.1", PRIVATE)                        \
    L("::ffff:a9fe:a9fe", "::ffff:169.254.169.254", METADATA)               \
    L("::ffff:0.0.0.0", "::ffff:0.0.0.0", UNSPECIFIED)                      \
    L("::ffff:8.8.8.8", "::ffff:8.8.8.8", PUBLIC)                           \
    L("::ffff:0:127.0.0.1", "::ffff:0:7f00:1", LOOPBACK)                    \
    L("::ffff:0:8.8.8.8", "::ffff:0:808:808", RESERVED)                     \
    L("64:ff9b::127.0.0.1", "64:ff9b::7f00:1", LOOPBACK)                    \
    L("64:ff9b::a9fe:a9fe", "64:ff9b::a9fe:a9fe", METADATA)                 \
    L("64:ff9b::10.1.2.3", "64:ff9b::a01:203", PRIVATE)                     \
    L("64:ff9b::8.8.8.8", "64:ff9b::808:808", PUBLIC)                       \
    L("64:ff9b:1::127.0.0.1", "64:ff9b:1::7f00:1", LOOPBACK)                \
    L("64:ff9b:1:a9fe:a9:fe00::", "64:ff9b:1:a9fe:a9:fe00::", UNSPECIFIED)  \
    L("64:ff9b:1:1:2:3:808:808", "64:ff9b:1:1:2:3:808:808", PRIVATE)        \
    L("64:ff9b:2::1", "64:ff9b:2::1", RESERVED)                             \
    L("2002:7f00:1::", "2002:7f00:1::", LOOPBACK)                           \
    L("2002:a9fe:a9fe::1", "2002:a9fe:a9fe::1", METADATA)                   \
    L("2002:c0a8:101::1", "2002:c0a8:101::1", PRIVATE)                      \
    L("2002:808:808::1", "2002:808:808::1", PUBLIC)                         \
    L("2001:0:7f00:1::f7f7:f7f7", "2001:0:7f00:1::f7f7:f7f7", LOOPBACK)     \
    L("2001:0:808:808::80ff:fffe", "2001:0:808:808::80ff:fffe", LOOPBACK)   \
    L("2001:0:808:808::5601:5601", "2001:0:808:808::5601:5601", METADATA)   \
    L("2001:0:808:808::f7f7:f7f7", "2001:0:808:808::f7f7:f7f7", PUBLIC)     \
    L("2606:4700::5efe:127.0.0.1", "2606:4700::5efe:7f00:1", LOOPBACK)      \
    L("2606:4700::200:5efe:10.0.0.1", "2606:4700::200:5efe:a00:1", PRIVATE) \
    L("fe80::5efe:10.0.0.1", "fe80::5efe:a00:1", PRIVATE)                   \
    L("fc00::1", "fc00::1", PRIVATE)                                        \
    L("fdff:ffff::1", "fdff:ffff::1", PRIVATE)                              \
    L("fd00:ec2::254", "fd00:ec2::254", METADATA)                           \
    L("fd00:0ec2:0:0::0254", "fd00:ec2::254", METADATA)                     \
    L("fd00:ec2::253", "fd00:ec2::253", PRIVATE)                            \
    L("fe80::1", "fe80::1", LINK_LOCAL)                                     \
    L("febf::1", "febf::1", LINK_LOCAL)                                     \
    L("fec0::1", "fec0::1", PRIVATE)                                        \
    L("ff02::1", "ff02::1", MULTICAST)                                      \
    L("100::1", "100::1", RESERVED)                                         \
    L("2001:db8::1", "2001:db8::1", RESERVED)                               \
    L("2001:20::1", "2001:20::1", RESERVED)                                 \
    L("3fff:fff::1", "3fff:fff::1", RESERVED)                               \
    L("3fff:1000::1", "3fff:1000::1", PUBLIC)                               \
    L("1fff:ffff::1", "1fff:ffff::1", RESERVED)                             \
    L("4000::1", "4000::1", RESERVED)                                       \
    L("5f00::1", "5f00::1", RESERVED)

/* What some resolver, library or browser takes for an address, and we for neither an address nor
 * a name: S("as written", "what it would be"). */
#define BC_ADDRESS_SPELLINGS(S)                                  \
    S("127.1", "127.0.0.1")                                      \
    S("127.0.1", "127.0.0.1")                                    \
    S("2130706433", "127.0.0.1")                                 \
    S("0x7f000001", "127.0.0.1")                                 \
    S("0X7F000001", "127.0.0.1")                                 \
    S("0x7f.1", "127.0.0.1")                                     \
    S("0x7f.0.0.0x1", "127.0.0.1")                               \
    S("0177.0.0.1", "127.0.0.1")                                 \
    S("017700000001", "127.0.0.1")                               \
    S("127.0.0.01", "127.0.0.1")                                 \
    S("127.00.0.1", "127.0.0.1")                                 \
    S("127.0.0.1.", "127.0.0.1")                                 \
    S("127.0.0.1 ", "127.0.0.1")                                 \
    S("127.0.0.1%00", "127.0.0.1")                               \
    S("[127.0.0.1]", "127.0.0.1")                                \
    S("127.0.0.1:80", "127.0.0.1")                               \
    S("012.0.0.1", "10.0.0.1")                                   \
    S("0", "0.0.0.0")                                            \
    S("00", "0.0.0.0")                                           \
    S("0x", "0.0.0.0")                                           \
    S("0x0", "0.0.0.0")                                          \
    S("0.", "0.0.0.0")                                           \
    S("2852039166", "169.254.169.254")                           \
    S("0xa9fea9fe", "169.254.169.254")                           \
    S("169.254.43518", "169.254.169.254")                        \
    S("0251.0376.0251.0376", "169.254.169.254")                  \
    S("4294967296", "0.0.0.0")                                   \
    S("256.256.256.256", "0.0.0.0")                              \
    S("127.0.0.257", "127.0.0.1")                                \
    S("1.2.3.4.5", "1.2.3.4")                                    \
    S("foo.1", "0.0.0.1")                                        \
    S("foo.0x1", "0.0.0.1")                                      \
    S("\xef\xbc\x91\xef\xbc\x92\xef\xbc\x97.0.0.1", "127.0.0.1") \
    S("127\xe3\x80\x82"                                          \
      "0\xe3\x80\x82"                                            \
      "0\xe3\x80\x82"                                            \
      "1",                                                       \
      "127.0.0.1")                                               \
    S("\xe2\x91\xa0\xe2\x91\xa1\xe2\x91\xa6.0.0.1", "127.0.0.1") \
    S("[::1]", "::1")                                            \
    S("::1%lo", "::1")                                           \
    S("fe80::1%eth0", "fe80::1")                                 \
    S("fe80::1%25eth0", "fe80::1")                               \
    S("::1.", "::1")                                             \
    S(":::1", "::1")                                             \
    S("::00001", "::1")                                          \
    S("0::0::1", "::1")                                          \
    S("::ffff:127.1", "127.0.0.1")                               \
    S("::ffff:0177.0.0.1", "127.0.0.1")                          \
    S("::ffff:127.0.0.01", "127.0.0.1")                          \
    S("::ffff:2130706433", "127.0.0.1")                          \
    S("::ffff:0x7f.0.0.1", "127.0.0.1")                          \
    S("::1/128", "::1")

#endif
