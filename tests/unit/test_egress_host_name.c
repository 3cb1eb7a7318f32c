#include "egress/host_name.h"
#include "suite.h"
#include <stdlib.h>

/* From memory of exactly this size, so that reading past it is seen. */
static int canonical(const char *text, size_t len, char out[BC_HOST_NAME_MAX + 1])
{
    char *copy = malloc(len > 0 ? len : 1);
    memcpy(copy, text, len);
    int rc = bc_host_name_canonical(copy, len, out);
    free(copy);
    return rc;
}

START_TEST(names_have_one_form)
{
    static const struct {
        const char *in, *out;
    } cases[] = {
        {"example.com", "example.com"},
        {"EXAMPLE.com", "example.com"},
        {"example.com.", "example.com"},
        {"localhost", "localhost"},
        {"a", "a"},
        {"a.b", "a.b"},
        {"xn--exmple-cua.com", "xn--exmple-cua.com"},
        {"XN--EXMPLE-CUA.com", "xn--exmple-cua.com"},
        {"_dmarc.example.com", "_dmarc.example.com"},
        {"a_b.example.com", "a_b.example.com"},
        {"r3---sn-4g5e.example.com", "r3---sn-4g5e.example.com"},
        {"3com.example", "3com.example"},
        {"1.2.3.4.example", "1.2.3.4.example"},
        {"127.0.0.1.nip.example", "127.0.0.1.nip.example"},
        {"0x7f.1.example", "0x7f.1.example"},
        {"example.0xg", "example.0xg"},
        {"example.1a", "example.1a"},
        {"example.x0", "example.x0"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char out[BC_HOST_NAME_MAX + 1], again[BC_HOST_NAME_MAX + 1];
        ck_assert_msg(canonical(cases[i].in, strlen(cases[i].in), out) == 0, "%s", cases[i].in);
        ck_assert_str_eq(out, cases[i].out);
        ck_assert_int_eq(canonical(out, strlen(out), again), 0);
        ck_assert_str_eq(again, out);
    }
}
END_TEST

START_TEST(everything_else_is_refused)
{
    static const char *const cases[] = {
        "",
        ".",
        "..",
        "example..com",
        ".example.com",
        "example.com..",
        "-example.com",
        "example-.com",
        "example.-com",
        "example.com-",
        "exa mple.com",
        " example.com",
        "example.com ",
        "example.com\t",
        "example.com\n",
        "example.com\r\n",
        "example.com/",
        "example.com/x",
        "example.com:80",
        "user@example.com",
        "example.com%00",
        "example.com%2f",
        "example.com#",
        "example.com?",
        "example.com\\",
        "*.example.com",
        "*",
        "ex*mple.com",
        "example.com,example.org",
        "ex\xc3\xa4mple.com",
        "\xf0\x9f\x98\x80.example",
        "example\xe3\x80\x82"
        "com",
        "exampl\xc2\xad"
        "e.com",
        "example.com\x7f",
        "ex'ample.com",
        "[example.com]",
        "(example.com)",
        "example.123",
        "xn--.example",
        "xn--",
        "http://example.com",
        "\xff",
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char out[BC_HOST_NAME_MAX + 1] = "x";
        ck_assert_msg(canonical(cases[i], strlen(cases[i]), out) == -1, "'%s'", cases[i]);
        ck_assert_str_eq(out, "");
    }
}
END_TEST

START_TEST(a_nul_is_no_end)
{
    char out[BC_HOST_NAME_MAX + 1];
    ck_assert_int_eq(canonical("example.com\0.example.org", 24, out), -1);
    ck_assert_int_eq(canonical("example.com\0", 12, out), -1);
    ck_assert_int_eq(canonical("127.0.0.1\0", 10, out), -1);
    ck_assert_int_eq(canonical("::1\0", 4, out), -1);
    ck_assert_int_eq(canonical("\0", 1, out), -1);
    ck_assert_int_eq(canonical("example.com", 11, out), 0);
}
END_TEST

START_TEST(every_byte_but_those_of_names_is_refused)
{
    for (int c = 0; c < 256; c++) {
        char text[] = {'a', (char)c, 'b'}, out[BC_HOST_NAME_MAX + 1];
        int fits = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                   c == '-' || c == '_' || c == '.';
        ck_assert_int_eq(canonical(text, 3, out), fits ? 0 : -1);
    }
}
END_TEST

START_TEST(lengths_end_where_dns_ends_them)
{
    char text[300], out[BC_HOST_NAME_MAX + 1];
    memset(text, 'a', sizeof text);
    ck_assert_int_eq(canonical(text, 63, out), 0);
    ck_assert_int_eq(canonical(text, 64, out), -1);
    for (size_t i = 50; i < sizeof text; i += 50)
        text[i] = '.';
    ck_assert_int_eq(canonical(text, 253, out), 0);
    ck_assert_uint_eq(strlen(out), 253);
    ck_assert_int_eq(canonical(text, 254, out), -1);
    text[253] = '.';
    ck_assert_int_eq(canonical(text, 254, out), 0);
    ck_assert_uint_eq(strlen(out), 253);
    ck_assert_int_eq(canonical(text, 255, out), -1);
}
END_TEST

START_TEST(below_means_whole_labels)
{
    ck_assert(bc_host_name_below("a.example.org", "example.org"));
    ck_assert(bc_host_name_below("a.b.example.org", "example.org"));
    ck_assert(!bc_host_name_below("example.org", "example.org"));
    ck_assert(!bc_host_name_below("xexample.org", "example.org"));
    ck_assert(!bc_host_name_below(".example.org", "example.org"));
    ck_assert(!bc_host_name_below("example.org.evil.example", "example.org"));
    ck_assert(!bc_host_name_below("org", "example.org"));
    ck_assert(!bc_host_name_below("a.example.org", ""));
    ck_assert(!bc_host_name_below("", "example.org"));
}
END_TEST

UNIT_MAIN("egress_host_name", names_have_one_form, everything_else_is_refused, a_nul_is_no_end,
          every_byte_but_those_of_names_is_refused, lengths_end_where_dns_ends_them,
          below_means_whole_labels)
