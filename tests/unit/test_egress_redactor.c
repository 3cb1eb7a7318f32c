/* Values in streams, cut at every place. */
#include <stdlib.h>
#include <string.h>
#include "egress/base64.h"
#include "egress/redactor.h"
#include "suite.h"

#define VALUE "s3cr3t/Value+with?odd~bytes"

static bc_patterns *patterns_of(const char *value, int base64)
{
    const bc_pattern_source source = {value, strlen(value), 3, base64};
    bc_patterns *patterns = bc_patterns_create(&source, 1, true);
    ck_assert_ptr_nonnull(patterns);
    return patterns;
}

/* Feeds `text` in pieces that end at `a` and `b`; the result is borrowed until the next call. */
static const char *redact_cut(bc_patterns *patterns, const char *text, size_t len, size_t a,
                              size_t b)
{
    static bc_buf out;
    bc_redactor redactor;
    bc_buf_clear(&out);
    bc_buf_init(&out, 1u << 20);
    ck_assert_int_eq(bc_redactor_init(&redactor, patterns), 0);
    ck_assert_int_eq(bc_redactor_feed(&redactor, text, a, &out), 0);
    ck_assert_int_eq(bc_redactor_feed(&redactor, text + a, b - a, &out), 0);
    ck_assert_int_eq(bc_redactor_feed(&redactor, text + b, len - b, &out), 0);
    ck_assert_int_eq(bc_redactor_end(&redactor, &out), 0);
    bc_redactor_clear(&redactor);
    ck_assert_uint_eq(out.len, len);
    return bc_buf_data(&out);
}

static void becomes(bc_patterns *patterns, const char *text, const char *expected)
{
    size_t len = strlen(text);
    for (size_t a = 0; a <= len; a++) {
        for (size_t b = a; b <= len; b++)
            ck_assert_str_eq(redact_cut(patterns, text, len, a, b), expected);
    }
}

START_TEST(a_value_is_masked_however_it_is_cut)
{
    bc_patterns *patterns = patterns_of("0123456789abcdef", 0);
    becomes(patterns, "<0123456789abcdef>", "<****************>");
    becomes(patterns, "0123456789abcdef0123456789abcdef", "********************************");
    becomes(patterns, "0123456789abcde0123456789abcdef", "0123456789abcde****************");
    becomes(patterns, "0123456789abcdeF0123456789abcde", "0123456789abcdeF0123456789abcde");
    becomes(patterns, "", "");
    bc_patterns_unref(patterns);
}
END_TEST

START_TEST(values_that_overlap_themselves_and_each_other)
{
    bc_patterns *patterns = patterns_of("aabaabaabaabaabaa", 0);
    becomes(patterns, "xaabaabaabaabaabaabaax", "x********************x");
    becomes(patterns, "aaabaabaabaabaabaa", "a*****************");
    bc_patterns_unref(patterns);
    const bc_pattern_source two[] = {{"abcdefghijklmnopqrst", 20, 0, 0},
                                     {"mnopqrstuvwxyz0123", 18, 1, 0},
                                     {"ghijklmn", 8, 2, 0}};
    patterns = bc_patterns_create(two, 3, true);
    becomes(patterns, "-abcdefghijklmnopqrstuvwxyz0123-", "-******************************-");
    becomes(patterns, "-abcdefghijklmnop-", "-abcdef********op-");
    bc_patterns_unref(patterns);
}
END_TEST

START_TEST(its_base64_is_masked_at_each_alignment)
{
    bc_patterns *patterns = patterns_of(VALUE, 1);
    for (size_t before = 0; before < 7; before++) {
        for (size_t behind = 0; behind < 4; behind++) {
            char plain[64], text[128];
            size_t len = before + strlen(VALUE) + behind;
            memset(plain, 'x', sizeof plain);
            memcpy(plain + before, VALUE, strlen(VALUE));
            size_t text_len = bc_base64_encode(plain, len, text);
            for (int url = 0; url < 2; url++) {
                for (size_t i = 0; url && i < text_len; i++) {
                    if (text[i] == '+') text[i] = '-';
                    if (text[i] == '/') text[i] = '_';
                }
                for (size_t cut = 0; cut <= text_len; cut++) {
                    const char *masked = redact_cut(patterns, text, text_len, cut, cut);
                    const char *first = strchr(masked, '*'), *last = strrchr(masked, '*');
                    ck_assert_ptr_nonnull(first);
                    /* All characters that hold nothing but bits of the value. */
                    ck_assert_uint_le((size_t)(first - masked) * 6, before * 8 + 5);
                    ck_assert_uint_ge((size_t)(last - masked + 1) * 6 + 5,
                                      (before + strlen(VALUE)) * 8);
                }
            }
        }
    }
    bc_patterns_unref(patterns);
}
END_TEST

/* After each byte of `text`, as much has passed for one value as for the other. */
static void passes_alike(const char *value, const char *other, const char *text)
{
    bc_patterns *patterns[] = {patterns_of(value, 1), patterns_of(other, 1)};
    bc_redactor redactor[2];
    bc_buf out[2];
    for (size_t k = 0; k < 2; k++) {
        bc_buf_init(&out[k], 1u << 16);
        ck_assert_int_eq(bc_redactor_init(&redactor[k], patterns[k]), 0);
    }
    for (size_t i = 0; text[i] != '\0'; i++) {
        for (size_t k = 0; k < 2; k++)
            ck_assert_int_eq(bc_redactor_feed(&redactor[k], text + i, 1, &out[k]), 0);
        ck_assert_uint_eq(out[0].len, out[1].len);
    }
    for (size_t k = 0; k < 2; k++) {
        bc_redactor_clear(&redactor[k]);
        bc_buf_clear(&out[k]);
        bc_patterns_unref(patterns[k]);
    }
}

START_TEST(what_is_held_back_tells_nothing_of_a_value)
{
    static const char *const text[] = {"g",
                                       "ghp_",
                                       "say ghp_q7ZtR2xV9mK4sLw",
                                       "Z2hwX3E3WnRSMnhW",
                                       "\nghp_q7ZtR2xV9mK4sLw\n",
                                       "ghp_q7ZtR2xV9mK4sLw8 and more",
                                       "\tghp_ghp_ghp_q7Zt\x80q7Zt"};
    for (size_t i = 0; i < sizeof text / sizeof *text; i++)
        passes_alike("ghp_q7ZtR2xV9mK4sLw8", "AAAAAAAAAAAAAAAAAAAA", text[i]);
}
END_TEST

START_TEST(a_line_that_ended_is_not_held_back)
{
    bc_patterns *patterns = patterns_of("0123456789abcdef", 0);
    bc_redactor redactor;
    bc_buf out;
    bc_buf_init(&out, 4096);
    ck_assert_int_eq(bc_redactor_init(&redactor, patterns), 0);
    bc_redactor_feed(&redactor, "data: one\n\n", 11, &out);
    ck_assert_uint_eq(out.len, 11);
    bc_redactor_feed(&redactor, "data: one and another", 21, &out);
    ck_assert_uint_eq(out.len, 11 + 21 - 15);
    bc_redactor_feed(&redactor, "\n", 1, &out);
    ck_assert_uint_eq(out.len, 33);
    ck_assert_uint_eq(redactor.hits, 0);
    bc_redactor_look(&redactor, "0123456789abc", 13);
    bc_redactor_look(&redactor, "def", 3);
    ck_assert_uint_eq(redactor.hits, 1u << 3);
    bc_redactor_clear(&redactor);
    bc_buf_clear(&out);
    bc_patterns_unref(patterns);
}
END_TEST

/* Longer than what is searched at once. */
START_TEST(long_values_and_long_streams)
{
    char value[BC_REDACTOR_MAX_VALUE + 1], text[3 * sizeof value];
    for (size_t i = 0; i < sizeof value; i++)
        value[i] = (char)('!' + i * i % 90);
    value[sizeof value - 1] = '\0';
    bc_patterns *patterns = patterns_of(value, 1);
    for (size_t before = 0; before < sizeof value; before += 511) {
        memset(text, 'x', sizeof text);
        memcpy(text + before, value, sizeof value - 1);
        const char *masked = redact_cut(patterns, text, sizeof text, before + 700, before + 701);
        for (size_t i = 0; i < sizeof text; i++) {
            int inside = i >= before && i < before + sizeof value - 1;
            ck_assert_int_eq(masked[i], inside ? '*' : 'x');
        }
    }
    bc_patterns_unref(patterns);
}
END_TEST

START_TEST(base64_there_and_back)
{
    char text[16], back[16];
    static const char *const good[][2] = {
        {"", ""}, {"f", "Zg=="}, {"fo", "Zm8="}, {"foo", "Zm9v"}, {"foob", "Zm9vYg=="}};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        size_t len = bc_base64_encode(good[i][0], strlen(good[i][0]), text);
        ck_assert_uint_eq(len, strlen(good[i][1]));
        ck_assert_int_eq(memcmp(text, good[i][1], len), 0);
        ck_assert_int_eq(bc_base64_decode(text, len, back), (long)strlen(good[i][0]));
    }
    static const char *const bad[] = {
        "Z", "Zg=", "Zh==", "Zm9=", "Z===", "====", "Zm9v\n", "Zg==Zg==", "Zm9-"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        ck_assert_int_eq(bc_base64_decode(bad[i], strlen(bad[i]), back), -1);
}
END_TEST

/* The set changes between two pieces, wherever they are cut: what the old one had marked stays
 * marked, what began before is found by the new one. */
START_TEST(the_set_changes_in_the_midst_of_a_stream)
{
    static const char text[] = "x0123456789abcdef, fedcba9876543210fedcba9876543210!";
    static const char *const long_value = "fedcba9876543210fedcba9876543210";
    const size_t len = sizeof text - 1;
    for (int grows = 0; grows < 2; grows++) {
        bc_patterns *first = patterns_of(grows ? "0123456789abcdef" : long_value, 0);
        bc_patterns *second = patterns_of(grows ? long_value : "0123456789abcdef", 0);
        for (size_t at = 0; at <= len; at++) {
            bc_redactor redactor;
            bc_buf out;
            bc_buf_init(&out, 1u << 20);
            ck_assert_int_eq(bc_redactor_init(&redactor, first), 0);
            ck_assert_int_eq(bc_redactor_feed(&redactor, text, at, &out), 0);
            ck_assert_int_eq(bc_redactor_change(&redactor, second, &out), 0);
            ck_assert_int_eq(bc_redactor_feed(&redactor, text + at, len - at, &out), 0);
            ck_assert_int_eq(bc_redactor_end(&redactor, &out), 0);
            bc_redactor_clear(&redactor);
            ck_assert_uint_eq(out.len, len);
            /* The first value is from 1 to 17, the second from 19 to 51; what is held back at the
             * change is a byte less than the shorter one has. */
            int has_first = strstr(bc_buf_data(&out), "0123456789abcdef") == NULL;
            int has_second = strstr(bc_buf_data(&out), long_value) == NULL;
            if (grows) {
                ck_assert_int_eq(has_first, at >= 17);
                ck_assert_int_eq(has_second, at < 19 + 16);
            } else {
                ck_assert_int_eq(has_first, at < 17);
                ck_assert_int_eq(has_second, at >= len - 1);
            }
            bc_buf_clear(&out);
        }
        bc_patterns_unref(first);
        bc_patterns_unref(second);
    }
}
END_TEST

UNIT_MAIN("egress redactor", the_set_changes_in_the_midst_of_a_stream,
          a_value_is_masked_however_it_is_cut, values_that_overlap_themselves_and_each_other,
          its_base64_is_masked_at_each_alignment, what_is_held_back_tells_nothing_of_a_value,
          a_line_that_ended_is_not_held_back, long_values_and_long_streams, base64_there_and_back)
