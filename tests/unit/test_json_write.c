#include <float.h>
#include <math.h>
#include "base/json_scan.h"
#include "base/json_view.h"
#include "base/json_write.h"
#include "base/plain.h"
#include "scratch_locale.h"
#include "suite.h"

static bc_buf out;

static const char *string_of(const char *text, size_t len)
{
    bc_buf_clear(&out);
    bc_buf_init(&out, 1 << 20);
    REQUIRE(bc_json_write_string(&out, text, len) == 0);
    return bc_buf_data(&out);
}

static const char *real_of(double value)
{
    bc_buf_clear(&out);
    bc_buf_init(&out, 100);
    REQUIRE(bc_json_write_real(&out, value) == 0);
    return bc_buf_data(&out);
}

START_TEST(strings_are_escaped)
{
    ck_assert_str_eq(string_of("a\"b\\c/\n\r\t\b\f\x1F", 12),
                     "\"a\\\"b\\\\c/\\n\\r\\t\\u0008\\u000c\\u001f\"");
    ck_assert_str_eq(string_of("\0", 1), "\"\\u0000\"");
    ck_assert_str_eq(string_of("\x7F\xE2\x80\xA8\xE2\x80\xA9\xE2\x80\xAA", 10),
                     "\"\\u007f\\u2028\\u2029\xE2\x80\xAA\"");
    ck_assert_str_eq(string_of("\xFF\xE2\x82", 3), "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"");
    ck_assert_str_eq(string_of("", 0), "\"\"");
    bc_buf_clear(&out);
}
END_TEST

START_TEST(all_bytes_come_back)
{
    bc_buf back;
    bc_buf_init(&back, 64);
    for (int a = 0; a < 256; a++) {
        for (int b = 0; b < 256; b++) {
            char text[2] = {(char)a, (char)b};
            const char *written = string_of(text, 2);
            bc_json_scan scan;
            bc_json_scan_init(&scan, written, strlen(written));
            REQUIRE(bc_json_scan_next(&scan, NULL) == BC_JSON_STRING);
            bc_buf_reset(&back);
            REQUIRE(bc_json_scan_text(&scan, &back) == 0);
            REQUIRE(bc_json_scan_next(&scan, NULL) == BC_JSON_DONE);
            if (a < 0x80 && b < 0x80) REQUIRE(memcmp(bc_buf_data(&back), text, 2) == 0);
        }
    }
    bc_buf_clear(&back);
    bc_buf_clear(&out);
}
END_TEST

static void check_reals(void)
{
    static const struct {
        double value;
        const char *text;
    } cases[] = {
        {0.1, "0.1"},
        {1, "1.0"},
        {-0.0, "-0.0"},
        {1e21, "1e+21"},
        {5e-324, "5e-324"},
        {DBL_MAX, "1.7976931348623157e+308"},
        {1.0 / 3, "0.3333333333333333"},
        {123456789012345678.0, "1.2345678901234568e+17"},
        {0.30000000000000004, "0.30000000000000004"},
        {1.5, "1.5"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ck_assert_str_eq(real_of(cases[i].value), cases[i].text);
    }
}

START_TEST(reals_are_shortest_and_come_back)
{
    check_reals();
    uint64_t seed = 88172645463325252ULL;
    for (int i = 0; i < 50000; i++) {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        double value;
        memcpy(&value, &seed, sizeof value);
        if (isnan(value) || isinf(value)) continue;
        const char *text = real_of(value);
        bc_json_scan scan;
        bc_json_scan_init(&scan, text, strlen(text));
        REQUIRE(bc_json_scan_next(&scan, NULL) == BC_JSON_REAL);
        REQUIRE(memcmp(&scan.real, &value, sizeof value) == 0);
    }
    ck_assert_int_eq(bc_json_write_real(&out, NAN), BARCHAN_EINVAL);
    ck_assert_int_eq(bc_json_write_real(&out, INFINITY), BARCHAN_EINVAL);
    bc_buf_clear(&out);
}
END_TEST

START_TEST(integers_of_every_size)
{
    bc_buf_init(&out, 100);
    bc_json_write_integer(&out, INT64_MIN);
    bc_buf_append_char(&out, ' ');
    bc_json_write_integer(&out, INT64_MAX);
    ck_assert_str_eq(bc_buf_data(&out), "-9223372036854775808 9223372036854775807");
    bc_buf_clear(&out);
}
END_TEST

START_TEST(the_locale_does_not_show)
{
    /* Pashto's decimal sign has two bytes. */
    int made = scratch_locale("ps_AF");
    if (made) {
        char half[16];
        snprintf(half, sizeof half, "%.1f", 0.5);
        ck_assert_str_ne(half, "0.5"); /* the oracle: printf does follow it */
        check_reals();
        bc_json_scan scan;
        bc_json_scan_init(&scan, "-12.75e1", 8);
        ck_assert_int_eq(bc_json_scan_next(&scan, NULL), BC_JSON_REAL);
        ck_assert(scan.real == -127.5);
    }
    scratch_locale_drop();
    if (!made) printf("SKIP no oracle: localedef could not make a locale\n");
    bc_buf_clear(&out);
}
END_TEST

START_TEST(a_full_buffer_is_told)
{
    bc_buf small;
    for (size_t max = 0; max < 11; max++) {
        bc_buf_init(&small, max);
        ck_assert_int_eq(bc_json_write_string(&small,
                                              "a\nb\xFF"
                                              "cd",
                                              6),
                         BARCHAN_ELIMIT);
        ck_assert_int_eq(bc_json_write_string(&small, "abcdefghij", 10), BARCHAN_ELIMIT);
        bc_buf_clear(&small);
    }
    bc_buf_init(&small, 11);
    ck_assert_int_eq(bc_json_write_string(&small,
                                          "a\nb\xFF"
                                          "cd",
                                          6),
                     0);
    bc_buf_clear(&small);
}
END_TEST

/* Each byte at each place of a text of words of each size and a little, next to a walk byte by
 * byte. */
START_TEST(many_bytes_at_a_time)
{
    char text[16 + 8 + 3];
    for (int byte = 0; byte < 256; byte++) {
        for (size_t at = 0; at < sizeof text; at++) {
            memset(text, 'x', sizeof text);
            text[at] = (char)byte;
            int is_plain = byte >= 0x20 && byte < 0x7F && byte != '"' && byte != '\\';
            size_t whole_words = sizeof text / 8 * 8, word = at / 8 * 8;
            REQUIRE(bc_plain_bytes(text, sizeof text) == (is_plain ? sizeof text : at));
            if (byte != 'x') {
                size_t end = bc_bytes_without(text, sizeof text, 'y', (char)byte);
                REQUIRE(end <= at && (end == at || at - end < 8));
            }
            size_t expected = byte < 0x80 || word >= whole_words ? whole_words : word;
            REQUIRE(bc_ascii_bytes(text, sizeof text) == expected);
            bc_json_span back;
            bc_buf json, decoded;
            bc_buf_init(&json, 1000);
            bc_buf_init(&decoded, 1000);
            REQUIRE(bc_json_write_string(&json, text, sizeof text) == 0);
            back = (bc_json_span){bc_buf_data(&json), json.len};
            REQUIRE(bc_json_span_text(back, &decoded, NULL) == 0);
            size_t grown = byte >= 0x80 ? 2 : 0; /* U+FFFD */
            REQUIRE(decoded.len == sizeof text + grown);
            REQUIRE(memcmp(bc_buf_data(&decoded), text, at) == 0);
            REQUIRE(byte >= 0x80 || memcmp(bc_buf_data(&decoded), text, sizeof text) == 0);
            bc_buf_clear(&json);
            bc_buf_clear(&decoded);
        }
    }
}
END_TEST

/* Texts of each length, each in memory of just its size, with a byte to escape at each place. */
START_TEST(each_length_is_looked_at_to_its_end)
{
    for (size_t len = 1; len <= 50; len++) {
        char *text = malloc(len);
        memset(text, 'x', len);
        REQUIRE(bc_plain_bytes(text, len) == len);
        for (size_t at = 0; at < len; at++) {
            text[at] = '\n';
            REQUIRE(bc_plain_bytes(text, len) == at);
            text[at] = 'x';
        }
        free(text);
    }
}
END_TEST

UNIT_MAIN("json_write", many_bytes_at_a_time, each_length_is_looked_at_to_its_end,
          strings_are_escaped, all_bytes_come_back, reals_are_shortest_and_come_back,
          integers_of_every_size, the_locale_does_not_show, a_full_buffer_is_told)
