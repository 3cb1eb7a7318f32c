/* The decision about a connection. */
#include "egress/policy.h"
#include "egress/address_table.h"
#include "suite.h"
#include <stdio.h>
#include <stdlib.h>

#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})

static bc_policy *policy;
static bc_verdict verdict;

static void forget(void)
{
    bc_policy_destroy(policy);
    policy = NULL;
}

static void make(bc_policy_mode mode, const char *const *allow, const char *const *deny)
{
    barchan_error err = {.message = ""};
    forget();
    int rc = bc_policy_create(&policy, mode, allow, deny, &err);
    ck_assert_msg(rc == 0, "%s", err.message);
}

static bool name(const char *host, unsigned port)
{
    bc_policy_decide_name(policy, host, port, &verdict);
    ck_assert_uint_gt(strlen(verdict.rule), 0);
    return verdict.allowed;
}

static bool dial(const char *host, unsigned port, const char *literal)
{
    bc_address address;
    ck_assert_int_eq(bc_address_parse(literal, &address), 0);
    bc_policy_decide_address(policy, host, port, &address, &verdict);
    ck_assert_uint_gt(strlen(verdict.rule), 0);
    return verdict.allowed;
}

START_TEST(an_empty_list_denies_everything)
{
    const char *const none[] = {NULL};
    for (int i = 0; i < 2; i++) {
        make(BC_POLICY_LIST, i == 0 ? NULL : none, NULL);
        ck_assert(!name("example.com", 443));
        ck_assert_str_eq(verdict.rule, "not in the allow-list");
        ck_assert(!name("8.8.8.8", 443));
        ck_assert(!dial("example.com", 443, "8.8.8.8"));
        ck_assert_uint_eq(bc_policy_ports(policy, NULL, 0), 0);
    }
}
END_TEST

START_TEST(a_name_is_that_name_only)
{
    make(BC_POLICY_LIST, LIST("EXAMPLE.com."), NULL);
    ck_assert(name("example.com", 443));
    ck_assert_str_eq(verdict.rule, "allow: example.com");
    ck_assert(name("example.com", 80));
    static const char *const others[] = {"evil-example.com",
                                         "example.com.evil",
                                         "xexample.com",
                                         "sub.example.com",
                                         "com",
                                         "example.co",
                                         "example.com.example.com",
                                         "xn--exmple-cua.com"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        ck_assert_msg(!name(others[i], 443), "%s", others[i]);
}
END_TEST

/* The caller canonicalises; one that forgot is told, not served. */
START_TEST(what_is_not_canonical_is_refused)
{
    static const char *const cases[] = {"EXAMPLE.com",     "example.com.",  "",
                                        "example.com:443", "[::1]",         "::0001",
                                        "127.1",           "*.example.com", "exa mple"};
    make(BC_POLICY_OPEN, LIST("example.com"), NULL);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ck_assert_msg(!name(cases[i], 443), "%s", cases[i]);
        ck_assert(!dial(cases[i], 443, "8.8.8.8"));
    }
    ck_assert(!name("example.com", 0));
    ck_assert(!name("example.com", 65536 + 443));
    ck_assert_str_eq(verdict.rule, "not a port");
    ck_assert(name("example.com", 443));
}
END_TEST

START_TEST(a_wildcard_is_what_lies_below)
{
    make(BC_POLICY_LIST, LIST("*.example.org:8443"), NULL);
    ck_assert(name("a.example.org", 8443));
    ck_assert_str_eq(verdict.rule, "allow: *.example.org:8443");
    ck_assert(name("a.b.example.org", 8443));
    ck_assert(!name("example.org", 8443));
    ck_assert(!name("xexample.org", 8443));
    ck_assert(!name("a.example.org.evil.example", 8443));
    ck_assert(!name("a.example.org", 443));
    ck_assert_str_eq(verdict.rule, "port 443 is not in the allow-list for this host");
}
END_TEST

START_TEST(no_port_means_the_web_in_allow_and_all_in_deny)
{
    make(BC_POLICY_LIST, LIST("example.com", "example.com:22"), LIST("a.example", "b.example:80"));
    ck_assert(name("example.com", 80) && name("example.com", 443) && name("example.com", 22));
    ck_assert(!name("example.com", 8080));
    make(BC_POLICY_OPEN, NULL, LIST("a.example", "b.example:80", "c.example:*"));
    ck_assert(!name("a.example", 80) && !name("a.example", 22) && !name("c.example", 8080));
    ck_assert_str_eq(verdict.rule, "deny: c.example");
    ck_assert(!name("b.example", 80) && name("b.example", 443));
}
END_TEST

START_TEST(deny_wins)
{
    make(BC_POLICY_LIST, LIST("*.example.com", "a.example.com", "10.1.2.0/24:5432"),
         LIST("a.example.com", "*.b.example.com", "10.1.2.7", "203.0.114.0/24"));
    ck_assert(!name("a.example.com", 443));
    ck_assert_str_eq(verdict.rule, "deny: a.example.com");
    ck_assert(!name("x.b.example.com", 443));
    ck_assert(name("b.example.com", 443));
    ck_assert(name("10.1.2.8", 5432) && !name("10.1.2.7", 5432));
    ck_assert_str_eq(verdict.rule, "deny: 10.1.2.7");
    ck_assert(!dial("b.example.com", 443, "203.0.114.9"));
    ck_assert_str_eq(verdict.rule, "deny: 203.0.114.0/24");
    ck_assert(dial("b.example.com", 443, "203.0.115.9"));
    ck_assert_str_eq(verdict.rule, "allow: *.example.com");
}
END_TEST

START_TEST(a_deny_range_holds_in_every_spelling_of_ipv6)
{
    static const char *const forms[] = {"198.18.0.1",
                                        "::ffff:198.18.0.1",
                                        "64:ff9b::198.18.0.1",
                                        "64:ff9b:1::198.18.0.1",
                                        "2002:c612:1::1",
                                        "2001:0:c612:1::f7f7:f7f7",
                                        "2001:0:808:808::39ed:fffe",
                                        "2606:4700::5efe:198.18.0.1"};
    for (int denied = 0; denied < 2; denied++) {
        /* Allowed by name and, as they are not public, each by address. */
        make(BC_POLICY_LIST,
             LIST("example.com", "198.18.0.1", "64:ff9b::198.18.0.1", "64:ff9b:1::198.18.0.1",
                  "2002:c612:1::1", "2001:0:c612:1::f7f7:f7f7", "2001:0:808:808::39ed:fffe",
                  "2606:4700::5efe:198.18.0.1"),
             denied ? LIST("198.18.0.0/16") : NULL);
        for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
            ck_assert_msg(dial("example.com", 443, forms[i]) == !denied, "%s: %s", forms[i],
                          verdict.rule);
    }
}
END_TEST

START_TEST(every_address_that_is_not_public_is_refused_in_both_modes)
{
#define ROW(text, canonical, kind) {text, canonical, BC_ADDRESS_##kind},
    static const struct {
        const char *text, *canonical;
        bc_address_kind kind;
    } rows[] = {BC_ADDRESS_LITERALS(ROW)};
    for (int open = 0; open < 2; open++) {
        make(open ? BC_POLICY_OPEN : BC_POLICY_LIST,
             LIST("example.com", "0.0.0.0/1", "128.0.0.0/1", "::/1", "8000::/1", "2000::/3"), NULL);
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            bool public = rows[i].kind == BC_ADDRESS_PUBLIC;
            ck_assert_msg(dial("example.com", 443, rows[i].text) == public, "%s: %s", rows[i].text,
                          verdict.rule);
            ck_assert_msg(name(rows[i].canonical, 443) == public, "%s", rows[i].text);
            if (!public) {
                const char *kind = bc_address_kind_name(rows[i].kind);
                ck_assert_int_eq(strncmp(verdict.rule, kind, strlen(kind)), 0);
            }
        }
    }
}
END_TEST

START_TEST(an_entry_that_names_the_address_allows_it)
{
    make(BC_POLICY_LIST,
         LIST("db.example.com:5432", "10.1.2.0/24:5432", "127.0.0.1:8080", "[fd00:1::/32]:443",
              "10.0.0.0/8:22"),
         NULL);
    ck_assert(name("10.1.2.3", 5432));
    ck_assert_str_eq(verdict.rule, "allow: 10.1.2.0/24:5432");
    ck_assert(dial("10.1.2.3", 5432, "10.1.2.3"));
    ck_assert(dial("10.1.2.3", 5432, "::ffff:10.1.2.3"));
    ck_assert(dial("::ffff:10.1.2.3", 5432, "10.1.2.3"));
    ck_assert(!name("10.1.2.3", 443) && !name("10.1.3.3", 5432) && name("10.9.9.9", 22));
    ck_assert(name("127.0.0.1", 8080) && !name("127.0.0.2", 8080) && !name("127.0.0.1", 80));
    ck_assert(name("fd00:1::5", 443) && !name("fd00:2::5", 443));
    /* A name needs both: itself on the list, and its address. */
    ck_assert(dial("db.example.com", 5432, "10.1.2.3"));
    ck_assert(!dial("db.example.com", 5432, "10.1.3.3"));
    ck_assert_str_eq(
        verdict.rule,
        "private address 10.1.3.3 of db.example.com; an entry for the address would allow it");
    ck_assert(!dial("other.example.com", 5432, "10.1.2.3"));
    ck_assert_str_eq(verdict.rule, "not in the allow-list");
    /* Not through a translator that the entry does not name. */
    ck_assert(!dial("db.example.com", 5432, "64:ff9b::10.1.2.3"));
    make(BC_POLICY_OPEN, LIST("127.0.0.1:9000"), NULL);
    ck_assert(name("127.0.0.1", 9000) && !name("127.0.0.1", 443));
    ck_assert_str_eq(verdict.rule,
                     "loopback address 127.0.0.1; an entry for the address would allow it");
}
END_TEST

START_TEST(a_range_names_only_its_own_kind_of_network)
{
    make(BC_POLICY_LIST,
         LIST("8.0.0.0/5", "168.0.0.0/7", "fd00::/8", "169.254.0.0/16", "100.64.0.0/10"), NULL);
    ck_assert(name("8.8.8.8", 443) && name("11.0.0.1", 443));
    ck_assert(!name("10.0.0.1", 443));
    ck_assert(name("fd00:1::1", 443) && name("169.254.1.1", 443) && name("100.64.1.1", 443));
    /* Who opens a private network has not thereby handed out the machine's credentials. */
    ck_assert(!name("fd00:ec2::254", 443) && !name("169.254.169.254", 80));
    ck_assert(!name("100.100.100.200", 80) && !name("168.63.129.16", 80));
    ck_assert_str_eq(verdict.rule,
                     "metadata address 168.63.129.16; an entry for the address would allow it");
    make(BC_POLICY_LIST, LIST("169.254.169.254:80", "fd00:ec2::254"), NULL);
    ck_assert(name("169.254.169.254", 80) && name("fd00:ec2::254", 80));
    ck_assert(!name("169.254.169.254", 443));
}
END_TEST

START_TEST(what_is_dialled_is_what_was_asked_for)
{
    make(BC_POLICY_LIST, LIST("8.8.8.8", "8.8.4.4", "example.com"), NULL);
    ck_assert(dial("8.8.8.8", 443, "8.8.8.8"));
    ck_assert(!dial("8.8.8.8", 443, "8.8.4.4"));
    ck_assert_str_eq(verdict.rule, "not the address that was asked for");
    /* Without the decision by name, the one by address is the same. */
    ck_assert(!dial("evil.example", 443, "8.8.8.8"));
    ck_assert(!dial("example.com", 22, "8.8.8.8"));
    ck_assert(dial("example.com", 443, "1.1.1.1"));
    bc_address none = {.family = 0};
    bc_policy_decide_address(policy, "example.com", 443, &none, &verdict);
    ck_assert(!verdict.allowed);
}
END_TEST

START_TEST(open_is_every_public_host_on_the_usual_ports)
{
    static const unsigned ports[] = {22, 80, 443, 8080, 8443, 9418};
    make(BC_POLICY_OPEN, LIST("a.example:5432"), LIST("evil.example", "8.8.4.0/24"));
    for (size_t i = 0; i < sizeof ports / sizeof *ports; i++)
        ck_assert(name("anything.example", ports[i]) && dial("x.example", ports[i], "8.8.8.8"));
    ck_assert_str_eq(verdict.rule, "open");
    ck_assert(!name("anything.example", 25));
    ck_assert_str_eq(verdict.rule, "port 25 is not one of an open network's ports");
    ck_assert(name("8.8.8.8", 443) && !name("8.8.4.4", 443) && !name("evil.example", 443));
    ck_assert(!dial("x.example", 443, "10.0.0.1"));
    ck_assert(name("a.example", 5432));
}
END_TEST

static bool dial_asked(const char *host, unsigned port, const char *literal)
{
    bc_address address;
    ck_assert_int_eq(bc_address_parse(literal, &address), 0);
    bc_policy_decide_asked(policy, host, port, &address, &verdict);
    return verdict.allowed;
}

START_TEST(only_what_no_entry_speaks_of_may_be_asked)
{
    make(BC_POLICY_LIST, LIST("a.example", "10.1.0.0/16"),
         LIST("b.example", "9.9.9.0/24", "8.8.8.8"));
    ck_assert(!name("c.example", 443) && verdict.unlisted);
    ck_assert(!name("a.example", 22) && verdict.unlisted);
    ck_assert(!name("9.8.7.6", 443) && verdict.unlisted);
    ck_assert(!name("b.example", 443) && !verdict.unlisted);
    ck_assert(!name("8.8.8.8", 443) && !verdict.unlisted);
    ck_assert(!name("127.0.0.1", 443) && !verdict.unlisted);
    ck_assert(!name("C.example", 443) && !verdict.unlisted);
    ck_assert(!dial("a.example", 443, "127.0.0.1") && !verdict.unlisted);
    ck_assert(name("a.example", 443) && !verdict.unlisted);
}
END_TEST

START_TEST(what_a_person_allows_is_public_and_not_denied)
{
    make(BC_POLICY_LIST, LIST("a.example", "10.1.0.0/16"), LIST("b.example", "9.9.9.0/24"));
    ck_assert(dial_asked("c.example", 443, "1.1.1.1"));
    ck_assert_str_eq(verdict.rule, "allowed when asked");
    ck_assert(dial_asked("c.example", 22, "1.1.1.1"));
    ck_assert(!dial_asked("c.example", 443, "9.9.9.9"));
    ck_assert_str_eq(verdict.rule, "deny: 9.9.9.0/24");
    ck_assert(!dial_asked("c.example", 443, "64:ff9b::9.9.9.9"));
    ck_assert(!dial_asked("b.example", 443, "1.1.1.1"));
    ck_assert_str_eq(verdict.rule, "deny: b.example");
    static const char *const refused[] = {"127.0.0.1", "::ffff:127.0.0.1", "169.254.169.254", "::1",
                                          "10.2.0.1",  "fd00::1",          "100.64.0.1"};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        ck_assert_msg(!dial_asked("c.example", 443, refused[i]), "%s", refused[i]);
    ck_assert(!dial_asked("C.example", 443, "1.1.1.1"));
    ck_assert(!dial_asked("c.example", 0, "1.1.1.1"));
}
END_TEST

START_TEST(a_verdict_tells_whether_the_address_was_named)
{
    make(BC_POLICY_LIST, LIST("a.example", "10.1.0.0/16", "1.1.1.1", "2.0.0.0/8:22"), NULL);
    ck_assert(dial("a.example", 443, "1.1.1.1") && verdict.named);
    ck_assert(dial("a.example", 443, "10.1.0.1") && verdict.named);
    ck_assert(dial("a.example", 443, "8.8.8.8") && !verdict.named);
    ck_assert(dial("a.example", 443, "2.0.0.1") && !verdict.named); /* for another port */
    ck_assert(dial("1.1.1.1", 443, "1.1.1.1") && verdict.named);
    ck_assert(!dial("a.example", 443, "10.2.0.1") && !verdict.named);
}
END_TEST

START_TEST(the_ranges_are_those_that_programs_reach_by_number)
{
    bc_policy_range ranges[4] = {{.prefix = 0}};
    make(BC_POLICY_LIST, LIST("a.example", "10.1.0.0/16:22", "fd00::/8", "::ffff:1.1.1.1"),
         LIST("9.0.0.0/8"));
    ck_assert_uint_eq(bc_policy_ranges(policy, ranges, 4), 2);
    ck_assert(ranges[0].prefix == 16 && ranges[0].net.bytes[0] == 10);
    ck_assert(ranges[1].prefix == 32 && ranges[1].net.bytes[0] == 1);
    memset(ranges, 0, sizeof ranges);
    ck_assert_uint_eq(bc_policy_ranges(policy, ranges, 1), 2);
    ck_assert(ranges[0].prefix == 16 && ranges[1].prefix == 0);
    ck_assert_uint_eq(bc_policy_ranges(policy, NULL, 0), 2);
}
END_TEST

START_TEST(the_ports_are_sorted_and_distinct)
{
    unsigned short ports[BC_POLICY_MAX_PORTS];
    make(BC_POLICY_LIST, LIST("a.example", "b.example:22", "*.c.example:8443", "d.example:443"),
         NULL);
    ck_assert_uint_eq(bc_policy_ports(policy, ports, BC_POLICY_MAX_PORTS), 4);
    ck_assert(ports[0] == 22 && ports[1] == 80 && ports[2] == 443 && ports[3] == 8443);
    memset(ports, 0, sizeof ports);
    ck_assert_uint_eq(bc_policy_ports(policy, ports, 1), 4);
    ck_assert(ports[0] == 22 && ports[1] == 0);
    make(BC_POLICY_OPEN, LIST("a.example:1"), LIST("b.example:7"));
    ck_assert_uint_eq(bc_policy_ports(policy, ports, BC_POLICY_MAX_PORTS), 7);
    ck_assert(ports[0] == 1 && ports[1] == 22 && ports[6] == 9418);
}
END_TEST

START_TEST(it_says_what_it_is)
{
    bc_buf out;
    bc_buf_init(&out, 4096);
    make(BC_POLICY_LIST,
         LIST("Example.com.", "*.EXAMPLE.org:8443", "::ffff:10.0.0.0/104", "[FD00:0::1]:443",
              "[fd00::2]"),
         LIST("[fd00::/8]:22", "x.example:*"));
    ck_assert_int_eq(bc_policy_list(policy, &out), 0);
    ck_assert_str_eq(bc_buf_data(&out),
                     "{\"mode\":\"list\",\"allow\":[\"example.com\",\"*.example.org:8443\","
                     "\"10.0.0.0/8\",\"[fd00::1]:443\",\"fd00::2\"],"
                     "\"deny\":[\"[fd00::/8]:22\",\"x.example\"]}");
    bc_buf_reset(&out);
    make(BC_POLICY_OPEN, NULL, NULL);
    ck_assert_int_eq(bc_policy_list(policy, &out), 0);
    ck_assert_str_eq(bc_buf_data(&out), "{\"mode\":\"open\",\"allow\":[],\"deny\":[]}");
    bc_buf_clear(&out);
    bc_buf_init(&out, 10);
    ck_assert_int_eq(bc_policy_list(policy, &out), BARCHAN_ELIMIT);
    bc_buf_clear(&out);
}
END_TEST

UNIT_MAIN("egress_policy", an_empty_list_denies_everything, a_name_is_that_name_only,
          what_is_not_canonical_is_refused, a_wildcard_is_what_lies_below,
          no_port_means_the_web_in_allow_and_all_in_deny, deny_wins,
          a_deny_range_holds_in_every_spelling_of_ipv6,
          every_address_that_is_not_public_is_refused_in_both_modes,
          an_entry_that_names_the_address_allows_it, a_range_names_only_its_own_kind_of_network,
          what_is_dialled_is_what_was_asked_for, open_is_every_public_host_on_the_usual_ports,
          only_what_no_entry_speaks_of_may_be_asked, what_a_person_allows_is_public_and_not_denied,
          a_verdict_tells_whether_the_address_was_named,
          the_ranges_are_those_that_programs_reach_by_number, the_ports_are_sorted_and_distinct,
          it_says_what_it_is)
