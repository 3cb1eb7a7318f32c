#include "base/utf8.h"
#include "suite.h"

static int decode(const unsigned char *s, int n, unsigned long *code)
{
    static const unsigned char mask[] = {0, 0x7F, 0x1F, 0x0F, 0x07};
    *code = s[0] & mask[n];
    for (int i = 1; i < n; i++)
        *code = *code << 6 | (s[i] & 0x3F);
    return n;
}

/* No assertion inside: a million of them take minutes. */
static int round_trips(bc_buf *b, unsigned long code)
{
    unsigned long back, want = code;
    bc_buf_reset(b);
    if (bc_utf8_append_code(b, code) != 0) return 0;
    int n = bc_utf8_next(bc_buf_data(b), b->len);
    if (n <= 0 || (size_t)n != b->len) return 0;
    decode((const unsigned char *)bc_buf_data(b), n, &back);
    if (code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) want = 0xFFFD;
    int good = back == want && bc_utf8_whole(bc_buf_data(b), b->len) == b->len;
    /* Cut anywhere, it is the beginning of a character. */
    for (int cut = 1; cut < n; cut++) {
        good &= bc_utf8_next(bc_buf_data(b), (size_t)cut) == -1;
        good &= bc_utf8_whole(bc_buf_data(b), (size_t)cut) == 0;
    }
    return good;
}

START_TEST(every_code_point_round_trips)
{
    bc_buf b;
    bc_buf_init(&b, 16);
    unsigned long code = 0;
    while (code <= 0x110010 && round_trips(&b, code))
        code++;
    ck_assert_uint_eq(code, 0x110011);
    bc_buf_clear(&b);
}
END_TEST

START_TEST(what_is_not_utf8_is_refused)
{
    static const char *const bad[] = {
        "\x80",
        "\xBF",
        "\xC0\x80",
        "\xC1\xBF",
        "\xE0\x80\x80",
        "\xE0\x9F\xBF",
        "\xED\xA0\x80",
        "\xED\xBF\xBF",
        "\xF0\x80\x80\x80",
        "\xF0\x8F\xBF\xBF",
        "\xF4\x90\x80\x80",
        "\xF5\x80\x80\x80",
        "\xFE",
        "\xFF",
        "\xC3\x28",
        "\xE2\x28\xA1",
        "\xE2\x82\x28",
        "\xF0\x9F\x98\x28",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ck_assert_msg(bc_utf8_next(bad[i], strlen(bad[i])) == 0, "%zu", i);
    }
    ck_assert_int_eq(bc_utf8_next("", 0), -1);
    ck_assert_int_eq(bc_utf8_next("\0", 1), 1);
}
END_TEST

START_TEST(repair_replaces_each_bad_byte)
{
    static const struct {
        const char *in, *out;
    } cases[] = {
        {"plain", "plain"},
        {"a\xFFz", "a\xEF\xBF\xBDz"},
        {"\xE2\x82\xAC", "\xE2\x82\xAC"},
        {"\xE2\x82", "\xEF\xBF\xBD\xEF\xBF\xBD"},
        {"\xED\xA0\x80", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"},
        {"", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bc_buf b;
        bc_buf_init(&b, 64);
        ck_assert_int_eq(bc_utf8_append_repaired(&b, cases[i].in, strlen(cases[i].in)), 0);
        ck_assert_str_eq(bc_buf_data(&b), cases[i].out);
        bc_buf_clear(&b);
    }
}
END_TEST

START_TEST(whole_keeps_invalid_bytes_and_cuts_only_beginnings)
{
    ck_assert_uint_eq(bc_utf8_whole("ab\xE2\x82", 4), 2);
    ck_assert_uint_eq(bc_utf8_whole("ab\xE2", 3), 2);
    ck_assert_uint_eq(bc_utf8_whole("ab\xF0\x9F\x98", 5), 2);
    ck_assert_uint_eq(bc_utf8_whole("ab\xFF", 3), 3);
    ck_assert_uint_eq(bc_utf8_whole("\x80\x80\x80\x80", 4), 4);
    ck_assert_uint_eq(bc_utf8_whole("", 0), 0);
    /* It waits for nothing that cannot come: after E0 80 no byte makes a character. */
    ck_assert_uint_eq(bc_utf8_whole("a\xE0\x80", 3), 3);
}
END_TEST

UNIT_MAIN("utf8", every_code_point_round_trips, what_is_not_utf8_is_refused,
          repair_replaces_each_bad_byte, whole_keeps_invalid_bytes_and_cuts_only_beginnings)
