/* What a person may write into a list, and what they are told when it is something else. */
#include "egress/policy.h"
#include "egress/address_table.h"
#include "egress/policy_entry.h"
#include "suite.h"
#include <stdio.h>
#include <stdlib.h>

static int create_one(const char *entry, bool allow, barchan_error *err)
{
    const char *const list[] = {entry, NULL};
    bc_policy *policy = NULL;
    int rc =
        bc_policy_create(&policy, BC_POLICY_LIST, allow ? list : NULL, allow ? NULL : list, err);
    ck_assert((rc == 0) == (policy != NULL));
    bc_policy_destroy(policy);
    return rc;
}

START_TEST(entries_have_a_canonical_form)
{
    static const struct {
        const char *in, *out;
    } cases[] = {
        {"example.com", "example.com"},
        {"EXAMPLE.com.:443", "example.com:443"},
        {"*.example.org", "*.example.org"},
        {"*.a.example.org:65535", "*.a.example.org:65535"},
        {"com", "com"},
        {"localhost:8080", "localhost:8080"},
        {"x:443", "x:443"},
        {"1.2.3.4", "1.2.3.4"},
        {"1.2.3.4/32", "1.2.3.4"},
        {"1.2.3.4/32:80", "1.2.3.4:80"},
        {"10.1.2.0/24:5432", "10.1.2.0/24:5432"},
        {"::1", "::1"},
        {"[::1]", "::1"},
        {"[::1]:80", "[::1]:80"},
        {"[::1/128]:80", "[::1]:80"},
        {"FD00::/8", "fd00::/8"},
        {"[fd00::/8]", "fd00::/8"},
        {"[fd00::/8]:5432", "[fd00::/8]:5432"},
        {"::ffff:10.0.0.1", "10.0.0.1"},
        {"[::ffff:10.0.0.0/104]:22", "10.0.0.0/8:22"},
        {"2000::/3", "2000::/3"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bc_policy_entry entry, again;
        char why[BC_POLICY_ENTRY_WHY], text[BC_POLICY_ENTRY_TEXT], twice[BC_POLICY_ENTRY_TEXT];
        int rc = bc_policy_entry_read(cases[i].in, true, &entry, why);
        ck_assert_msg(rc == 0, "%s: %s", cases[i].in, why);
        bc_policy_entry_print(&entry, text);
        ck_assert_str_eq(text, cases[i].out);
        ck_assert_int_eq(bc_policy_entry_read(text, true, &again, why), 0);
        bc_policy_entry_print(&again, twice);
        ck_assert_str_eq(twice, text);
        ck_assert_int_eq(create_one(cases[i].in, false, NULL), 0);
    }
}
END_TEST

START_TEST(a_malformed_entry_is_named_and_corrected)
{
    static const struct {
        const char *entry, *why;
    } cases[] = {
        {"", "an entry is a host name or an address"},
        {"*", "network = \"open\" allows every public host"},
        {"0.0.0.0/0", "it is every address; network = \"open\" allows every public host"},
        {"::/0:443", "the length of a range is a number"},
        {"[::/0]:443", "it is every address"},
        {"::ffff:0:0/96", "it is every address"},
        {"https://x.example/", "not a URL; write 'x.example'"},
        {"http://user:key@x.example:8080/a?b", "not a URL; write 'x.example:8080'"},
        {"x.example/path", "not a path; write 'x.example'"},
        {"x.example:443/path", "not a path; write 'x.example:443'"},
        {"x.example?a", "not a path; write 'x.example'"},
        {"user@x.example", "no user name"},
        {"x.example:", "a port is a number from 1 to 65535"},
        {"x.example:0", "a port is a number"},
        {"x.example:65536", "a port is a number"},
        {"x.example:080", "a port is a number"},
        {"x.example:+80", "a port is a number"},
        {"x.example:http", "a port is a number"},
        {"x.example:80,443", "one port; write one entry for each"},
        {"x.example:80-90", "one port; write one entry for each"},
        {"x.example:*", "an allow entry names its port"},
        {"x.example:80:90", "it is no IPv6 address"},
        {"*.", "it is no host name"},
        {".", "it is no host name"},
        {"*.com", "'*.' needs a host of two labels or more; nobody owns all of 'com'"},
        {"a.*.b", "'*' stands only for the names below a host"},
        {"**", "'*' stands only"},
        {"*.*.example.com", "'*' stands only"},
        {"*example.com", "'*' stands only"},
        {"*.10.0.0.1", "an address has no names below it"},
        {"*.10.0.0.0/8", "not a path"},
        {"exa mple.com", "a space or control character"},
        {"example.com\n", "a space or control character"},
        {"\x1b[31mexample.com", "a space or control character"},
        {"ex\xc3\xa4mple.com", "xn--"},
        {"-x.example", "it is no host name"},
        {"x..example", "it is no host name"},
        {"0x7f.1", "it is no host name, and no address in its usual spelling"},
        {"2130706433", "it is no IPv4 address of four decimal numbers"},
        {"127.1", "it is no IPv4 address of four decimal numbers"},
        {"010.0.0.1", "it is no IPv4 address of four decimal numbers"},
        {"10.0.0.256", "it is no IPv4 address"},
        {"10.0.0.0/", "the length of a range is a number from 0 to 32"},
        {"10.0.0.0/33", "the length of a range is a number from 0 to 32"},
        {"10.0.0.0/08", "the length of a range is a number"},
        {"10.0.0.0/255.0.0.0", "the length of a range is a number"},
        {"10.0.0.0/8/8", "the length of a range is a number"},
        {"fd00::/129", "the length of a range is a number from 0 to 128"},
        {"10.1.2.3/24", "bits behind its length; write '10.1.2.0/24'"},
        {"fd00::1/8", "bits behind its length; write 'fd00::/8'"},
        {"[::1", "brackets hold an IPv6 address"},
        {"[::1]x", "brackets hold an IPv6 address"},
        {"[::1]443", "brackets hold an IPv6 address"},
        {"[127.0.0.1]:80", "brackets hold an IPv6 address"},
        {"[x.example]:80", "brackets hold an IPv6 address"},
        {"[]", "brackets hold an IPv6 address"},
        {"::1%lo", "it is no IPv6 address"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        barchan_error err = {.message = ""};
        ck_assert_msg(create_one(cases[i].entry, true, &err) == BARCHAN_EINVAL, "'%s'",
                      cases[i].entry);
        ck_assert_msg(strstr(err.message, cases[i].why) != NULL, "'%s': %s", cases[i].entry,
                      err.message);
        ck_assert_int_eq(strncmp(err.message, "allow entry 1, '", 16), 0);
        for (const char *c = err.message; *c != '\0'; c++)
            ck_assert(*c >= ' ' && *c <= '~');
    }
}
END_TEST

START_TEST(no_other_spelling_of_an_address_is_an_entry)
{
#define TEXT(text, meant) text,
    static const char *const spellings[] = {BC_ADDRESS_SPELLINGS(TEXT)};
    for (size_t i = 0; i < sizeof spellings / sizeof *spellings; i++) {
        /* These two are an entry's own way of writing an address and a port. */
        if (strcmp(spellings[i], "127.0.0.1:80") == 0 || strcmp(spellings[i], "[::1]") == 0 ||
            strcmp(spellings[i], "::1/128") == 0) {
            continue;
        }
        ck_assert_msg(create_one(spellings[i], true, NULL) == BARCHAN_EINVAL, "%s", spellings[i]);
        ck_assert_msg(create_one(spellings[i], false, NULL) == BARCHAN_EINVAL, "%s", spellings[i]);
    }
}
END_TEST

START_TEST(deny_entries_may_be_wider)
{
    static const char *const cases[] = {"0.0.0.0/0",   "::/0",         "*.com",
                                        "x.example:*", "10.0.0.0/8:*", "[fd00::/8]:*"};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ck_assert_int_eq(create_one(cases[i], false, NULL), 0);
        ck_assert_int_eq(create_one(cases[i], true, NULL), BARCHAN_EINVAL);
    }
}
END_TEST

START_TEST(the_message_counts_and_quotes)
{
    char longest[2000];
    memset(longest, 'a', sizeof longest);
    longest[sizeof longest - 1] = '\0';
    const char *const list[] = {"a.example", "b.example", "https://x/", NULL};
    const char *const bad[] = {longest, NULL};
    bc_policy *policy = NULL;
    barchan_error err;
    ck_assert_int_eq(bc_policy_create(&policy, BC_POLICY_LIST, list, NULL, &err), BARCHAN_EINVAL);
    ck_assert_str_eq(err.message,
                     "allow entry 3, 'https://x/': an entry is a host name, not a URL; write 'x'");
    ck_assert_int_eq(bc_policy_create(&policy, BC_POLICY_LIST, NULL, list, &err), BARCHAN_EINVAL);
    ck_assert_int_eq(strncmp(err.message, "deny entry 3, 'https://x/'", 26), 0);
    ck_assert_int_eq(bc_policy_create(&policy, BC_POLICY_LIST, bad, NULL, &err), BARCHAN_EINVAL);
    ck_assert_ptr_nonnull(strstr(err.message, "aaa...': it is longer than"));
    ck_assert_int_eq(bc_policy_create(&policy, (bc_policy_mode)7, NULL, NULL, &err),
                     BARCHAN_EINVAL);
    ck_assert_ptr_null(policy);
}
END_TEST

START_TEST(lists_have_a_most)
{
    static const char *list[BC_POLICY_MAX_ENTRIES + 2];
    static char text[BC_POLICY_MAX_ENTRIES + 1][32];
    bc_policy *policy = NULL;
    barchan_error err;
    for (int i = 0; i <= BC_POLICY_MAX_ENTRIES; i++) {
        snprintf(text[i], sizeof text[i], "h%d.example:%d", i, i % BC_POLICY_MAX_PORTS + 1);
        list[i] = text[i];
    }
    ck_assert_int_eq(bc_policy_create(&policy, BC_POLICY_LIST, list, NULL, &err), BARCHAN_ELIMIT);
    ck_assert_int_eq(bc_policy_create(&policy, BC_POLICY_LIST, NULL, list, &err), BARCHAN_ELIMIT);
    list[BC_POLICY_MAX_ENTRIES] = NULL;
    ck_assert_int_eq(bc_policy_create(&policy, BC_POLICY_LIST, list, list, &err), 0);
    bc_policy_destroy(policy);
    policy = NULL;
    /* The ports of one list are those of a sandbox's listeners; deny entries have none. */
    static const char *ports[BC_POLICY_MAX_PORTS + 2];
    for (int i = 0; i <= BC_POLICY_MAX_PORTS; i++) {
        snprintf(text[i], sizeof text[i], "h.example:%d", i + 1);
        ports[i] = text[i];
    }
    ck_assert_int_eq(bc_policy_create(&policy, BC_POLICY_LIST, ports, NULL, &err), BARCHAN_ELIMIT);
    ck_assert_int_eq(bc_policy_create(&policy, BC_POLICY_LIST, NULL, ports, &err), 0);
    bc_policy_destroy(policy);
}
END_TEST

UNIT_MAIN("egress_entries", entries_have_a_canonical_form, a_malformed_entry_is_named_and_corrected,
          no_other_spelling_of_an_address_is_an_entry, deny_entries_may_be_wider,
          the_message_counts_and_quotes, lists_have_a_most)
