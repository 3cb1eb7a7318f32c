/* Everything in the address table, by every way in which an address comes. */
#include "egress/address.h"
#include "egress/address_table.h"
#include "egress/host_name.h"
#include "suite.h"
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

typedef struct row {
    const char *text, *second;
    bc_address_kind kind;
} row;

#define LITERAL(text, canonical, kind) {text, canonical, BC_ADDRESS_##kind},
#define SPELLING(text, meant) {text, meant, BC_ADDRESS_PUBLIC},
static const row literals[] = {BC_ADDRESS_LITERALS(LITERAL)};
static const row spellings[] = {BC_ADDRESS_SPELLINGS(SPELLING)};

typedef struct range {
    bc_address net;
    unsigned prefix;
    bc_address_kind kind;
    const char *source;
} range;

#define RANGE_V4(a, b, c, d, prefix, kind, source) \
    {{AF_INET, {a, b, c, d}}, prefix, BC_ADDRESS_##kind, source},
#define HI(x) (unsigned char)((x) >> 8)
#define LO(x) (unsigned char)((x)&0xff)
#define RANGE_V6(a, b, c, d, e, f, g, h, prefix, kind, source)                                    \
    {{AF_INET6,                                                                                   \
      {HI(a), LO(a), HI(b), LO(b), HI(c), LO(c), HI(d), LO(d), HI(e), LO(e), HI(f), LO(f), HI(g), \
       LO(g), HI(h), LO(h)}},                                                                     \
     prefix,                                                                                      \
     BC_ADDRESS_##kind,                                                                           \
     source},
static const range ranges[] = {BC_ADDRESS_TABLE_V4(RANGE_V4) BC_ADDRESS_TABLE_V6(RANGE_V6)};

enum {
    LITERALS = sizeof literals / sizeof *literals,
    SPELLINGS = sizeof spellings / sizeof *spellings,
    RANGES = sizeof ranges / sizeof *ranges
};

START_TEST(every_literal_has_its_canonical_form_and_its_kind)
{
    for (size_t i = 0; i < LITERALS; i++) {
        bc_address address, again;
        char text[BC_ADDRESS_TEXT], host[BC_HOST_NAME_MAX + 1];
        ck_assert_msg(bc_address_parse(literals[i].text, &address) == 0, "%s", literals[i].text);
        bc_address_print(&address, text);
        ck_assert_str_eq(text, literals[i].second);
        ck_assert_int_eq(bc_address_parse(text, &again), 0);
        ck_assert(bc_address_equal(&address, &again));
        ck_assert_int_eq(bc_host_name_canonical(literals[i].text, strlen(literals[i].text), host),
                         0);
        ck_assert_str_eq(host, literals[i].second);
        ck_assert_msg(bc_address_kind_of(&address) == literals[i].kind, "%s is %s", text,
                      bc_address_kind_name(bc_address_kind_of(&address)));
    }
}
END_TEST

START_TEST(no_other_spelling_of_an_address_is_one_or_a_name)
{
    for (size_t i = 0; i < SPELLINGS; i++) {
        const char *text = spellings[i].text;
        bc_address address;
        char host[BC_HOST_NAME_MAX + 1];
        ck_assert_msg(bc_address_parse(text, &address) == -1, "%s", text);
        ck_assert_int_eq(address.family, AF_UNSPEC);
        ck_assert_msg(bc_host_name_canonical(text, strlen(text), host) == -1, "%s", text);
        ck_assert_str_eq(host, "");
        /* What it would be is a literal that we do read. */
        ck_assert_msg(bc_address_parse(spellings[i].second, &address) == 0, "%s", text);
    }
}
END_TEST

/* Whatever inet_aton takes, in all of its forms, is an address in its one form or nothing. */
START_TEST(what_the_c_library_takes_for_an_address_is_no_name)
{
    static const char *const parts[] = {"0", "1", "127", "0x7f", "0177", "0x", "256", "08"};
    enum { PARTS = sizeof parts / sizeof *parts };
    for (unsigned i = 0; i < PARTS * PARTS * PARTS * PARTS * 4; i++) {
        char text[64], host[BC_HOST_NAME_MAX + 1];
        struct in_addr any;
        unsigned n = i / 4, count = i % 4 + 1;
        text[0] = '\0';
        for (unsigned k = 0; k < count; k++, n /= PARTS) {
            size_t at = strlen(text);
            snprintf(text + at, sizeof text - at, "%s%s", k > 0 ? "." : "", parts[n % PARTS]);
        }
        int rc = bc_host_name_canonical(text, strlen(text), host);
        unsigned char strict[4];
        int literal = inet_pton(AF_INET, text, strict) == 1;
        REQUIRE((rc == 0) == literal);
        if (inet_aton(text, &any) != 0 && !literal) REQUIRE(rc == -1);
    }
}
END_TEST

static void set_host_bits(bc_address *address, unsigned prefix)
{
    for (unsigned bit = prefix; bit < bc_address_bits(address); bit++)
        address->bytes[bit / 8] |= (unsigned char)(0x80u >> bit % 8);
}

/* Whether a longer row holds the address, or it stands for another one. */
static bool is_decided_elsewhere(const bc_address *address, unsigned prefix)
{
    bc_address embedded[BC_ADDRESS_EMBEDDED_MAX];
    if (bc_address_embedded(address, embedded) > 0) return true;
    for (size_t i = 0; i < RANGES; i++) {
        if (ranges[i].prefix > prefix &&
            bc_address_in_range(address, &ranges[i].net, ranges[i].prefix)) {
            return true;
        }
    }
    return false;
}

START_TEST(every_range_is_of_its_kind_from_its_first_to_its_last_address)
{
    for (size_t i = 0; i < RANGES; i++) {
        bc_address first = ranges[i].net, last = ranges[i].net;
        set_host_bits(&last, ranges[i].prefix);
        ck_assert_uint_gt(strlen(ranges[i].source), 3);
        ck_assert(bc_address_in_range(&first, &ranges[i].net, ranges[i].prefix));
        ck_assert(bc_address_in_range(&last, &ranges[i].net, ranges[i].prefix));
        if (!is_decided_elsewhere(&first, ranges[i].prefix)) {
            ck_assert_msg(bc_address_kind_of(&first) == ranges[i].kind, "row %zu", i);
        }
        if (!is_decided_elsewhere(&last, ranges[i].prefix)) {
            ck_assert_msg(bc_address_kind_of(&last) == ranges[i].kind, "row %zu", i);
        }
    }
}
END_TEST

static bc_address embed(const unsigned char *prefix, size_t len, const bc_address *v4, size_t at)
{
    bc_address out = {.family = AF_INET6};
    memcpy(out.bytes, prefix, len);
    memcpy(out.bytes + at, v4->bytes, 4);
    return out;
}

/* Each way of writing an IPv4 address into an IPv6 one, for each row of the IPv4 table. */
START_TEST(no_ipv6_address_is_better_than_the_ipv4_address_it_stands_for)
{
    static const struct {
        unsigned char prefix[12];
        size_t at;
    } forms[] = {
        {{0}, 12},
        {{[10] = 0xff, 0xff}, 12},
        {{[8] = 0xff, 0xff}, 12},
        {{0, 0x64, 0xff, 0x9b}, 12},
        {{0, 0x64, 0xff, 0x9b, 0, 1}, 12},
        {{0, 0x64, 0xff, 0x9b, 0, 1, 7, 7, 7, 7, 7, 7}, 12},
        {{0x20, 0x02}, 2},
        {{0x20, 0x01, 0, 0, 8, 8, 8, 8}, 4},
        {{0x26, 0x06, 0, 0, 0, 0, 0, 0, 0, 0, 0x5e, 0xfe}, 12},
        {{0x26, 0x06, 0, 0, 0, 0, 0, 0, 2, 0, 0x5e, 0xfe}, 12},
    };
    for (size_t i = 0; i < RANGES; i++) {
        bc_address v4 = ranges[i].net;
        if (v4.family != AF_INET) continue;
        set_host_bits(&v4, ranges[i].prefix);
        bc_address_kind kind = bc_address_kind_of(&v4);
        ck_assert_int_ne(kind, BC_ADDRESS_PUBLIC);
        for (size_t k = 0; k < sizeof forms / sizeof *forms; k++) {
            bc_address v6 = embed(forms[k].prefix, 12, &v4, forms[k].at);
            ck_assert_msg(bc_address_kind_of(&v6) == kind, "form %zu of row %zu is %s", k, i,
                          bc_address_kind_name(bc_address_kind_of(&v6)));
        }
        /* Teredo hides the client's address behind a flip of its bits. */
        bc_address teredo = {AF_INET6, {0x20, 0x01, 0, 0, 8, 8, 8, 8}};
        for (int k = 0; k < 4; k++)
            teredo.bytes[12 + k] = v4.bytes[k] ^ 0xff;
        ck_assert_int_eq(bc_address_kind_of(&teredo), kind);
    }
}
END_TEST

START_TEST(only_a_mapped_address_is_unmapped)
{
    for (size_t i = 0; i < LITERALS; i++) {
        bc_address address, before;
        ck_assert_int_eq(bc_address_parse(literals[i].text, &address), 0);
        before = address;
        bc_address_unmap(&address);
        bool mapped = strncmp(literals[i].second, "::ffff:", 7) == 0 &&
                      strchr(literals[i].second, '.') != NULL;
        ck_assert_msg(mapped == (address.family != before.family), "%s", literals[i].text);
        if (!mapped) ck_assert(bc_address_equal(&address, &before));
        ck_assert_int_eq(bc_address_kind_of(&address), literals[i].kind);
    }
}
END_TEST

START_TEST(ranges_hold_what_begins_with_their_bits)
{
    static const struct {
        const char *address, *net;
        unsigned prefix;
        bool inside;
    } cases[] = {
        {"10.1.2.3", "10.1.2.0", 24, true},
        {"10.1.3.0", "10.1.2.0", 24, false},
        {"10.1.2.3", "10.1.2.3", 32, true},
        {"10.1.2.2", "10.1.2.3", 32, false},
        {"10.1.2.127", "10.1.2.0", 25, true},
        {"10.1.2.128", "10.1.2.0", 25, false},
        {"255.1.2.3", "0.0.0.0", 0, true},
        {"10.1.2.3", "10.1.2.3", 33, false},
        {"fd00::1", "fd00::", 8, true},
        {"fe00::1", "fd00::", 8, false},
        {"fd00::1", "fd00::1", 128, true},
        {"fd00::2", "fd00::1", 128, false},
        {"fd00::1", "fd00::1", 129, false},
        {"::ffff:10.0.0.1", "10.0.0.0", 8, false},
        {"10.0.0.1", "::ffff:0.0.0.0", 96, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bc_address address, net;
        ck_assert_int_eq(bc_address_parse(cases[i].address, &address), 0);
        ck_assert_int_eq(bc_address_parse(cases[i].net, &net), 0);
        ck_assert_msg(bc_address_in_range(&address, &net, cases[i].prefix) == cases[i].inside,
                      "%s in %s/%u", cases[i].address, cases[i].net, cases[i].prefix);
    }
}
END_TEST

START_TEST(an_address_of_no_family_is_reserved_and_prints_nothing)
{
    bc_address none = {.family = AF_UNSPEC}, unix_socket = {.family = AF_UNIX};
    char text[BC_ADDRESS_TEXT] = "x";
    ck_assert_int_eq(bc_address_kind_of(&none), BC_ADDRESS_RESERVED);
    ck_assert_int_eq(bc_address_kind_of(&unix_socket), BC_ADDRESS_RESERVED);
    bc_address_print(&none, text);
    ck_assert_str_eq(text, "");
}
END_TEST

START_TEST(every_kind_has_a_name_of_its_own)
{
    for (int a = BC_ADDRESS_PUBLIC; a <= BC_ADDRESS_RESERVED; a++) {
        const char *name = bc_address_kind_name((bc_address_kind)a);
        ck_assert_str_ne(name, "unknown");
        for (int b = BC_ADDRESS_PUBLIC; b < a; b++)
            ck_assert_str_ne(name, bc_address_kind_name((bc_address_kind)b));
    }
}
END_TEST

/* The documentation's table is this table. */
START_TEST(the_readme_lists_every_range_and_no_other)
{
    FILE *file = fopen(EGRESS_README, "re");
    ck_assert_ptr_nonnull(file);
    static char readme[64 << 10];
    readme[fread(readme, 1, sizeof readme - 1, file)] = '\0';
    fclose(file);
    for (size_t i = 0; i < RANGES; i++) {
        char net[BC_ADDRESS_TEXT], line[256];
        bc_address_print(&ranges[i].net, net);
        snprintf(line, sizeof line, "| %s/%u | %s | %s |\n", net, ranges[i].prefix,
                 bc_address_kind_name(ranges[i].kind), ranges[i].source);
        ck_assert_msg(strstr(readme, line) != NULL, "not in the README: %s", line);
    }
    size_t lines = 0;
    for (const char *at = strstr(readme, "| range |"); at != NULL; at = strchr(at + 1, '\n'))
        lines += strncmp(at, "\n| ", 3) == 0;
    ck_assert_uint_eq(lines, RANGES);
}
END_TEST

UNIT_MAIN("egress_address", every_literal_has_its_canonical_form_and_its_kind,
          no_other_spelling_of_an_address_is_one_or_a_name,
          what_the_c_library_takes_for_an_address_is_no_name,
          every_range_is_of_its_kind_from_its_first_to_its_last_address,
          no_ipv6_address_is_better_than_the_ipv4_address_it_stands_for,
          only_a_mapped_address_is_unmapped, ranges_hold_what_begins_with_their_bits,
          an_address_of_no_family_is_reserved_and_prints_nothing, every_kind_has_a_name_of_its_own,
          the_readme_lists_every_range_and_no_other)
