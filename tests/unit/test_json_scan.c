#include "base/json_scan.h"
#include "suite.h"
#include <stdio.h>
#include <stdlib.h>

static int valid(const char *text, size_t len)
{
    barchan_error err = {0};
    /* An exact copy on the heap, so that a read past the end is seen. */
    char *copy = malloc(len > 0 ? len : 1);
    memcpy(copy, text, len);
    int rc = bc_json_validate(copy, len, &err);
    free(copy);
    ck_assert((rc < 0) == (err.code != 0));
    if (rc < 0) ck_assert_int_eq(rc, err.code);
    return rc == 0;
}

#define VALID(text) ck_assert_msg(valid(text, sizeof(text) - 1), "%s", text)
#define INVALID(text) ck_assert_msg(!valid(text, sizeof(text) - 1), "%s", text)

START_TEST(the_grammar)
{
    VALID("null");
    VALID(" true ");
    VALID("\t\r\n false");
    VALID("[]");
    VALID("{}");
    VALID("[1,[2,{\"a\":[]}],\"\"]");
    VALID("{\"a\":1,\"a\":2}");
    VALID("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\"");
    VALID("\"\x7F\"");
    VALID("[-0,0,10,-1.5,1e5,1E+5,1e-5,0.0e0]");
    INVALID("");
    INVALID(" ");
    INVALID("[1,]");
    INVALID("[,1]");
    INVALID("[1 2]");
    INVALID("{\"a\":1,}");
    INVALID("{\"a\"}");
    INVALID("{\"a\" 1}");
    INVALID("{a:1}");
    INVALID("{1:1}");
    INVALID("{,}");
    INVALID("[1}");
    INVALID("{\"a\":1]");
    INVALID("]");
    INVALID("nul");
    INVALID("nulll");
    INVALID("True");
    INVALID("null null");
    INVALID("{}{}");
    INVALID("[] x");
    INVALID("\"a\nb\"");
    INVALID("\"a\tb\"");
    INVALID("\"\\x41\"");
    INVALID("\"\\u12\"");
    INVALID("\"\\u12g4\"");
    INVALID("\"\\");
    INVALID("'a'");
    INVALID("// x\n1");
    INVALID("\0null");
    INVALID("null\0");
    INVALID("\xEF\xBB\xBFnull");
    INVALID("[NaN]");
    INVALID("Infinity");
}
END_TEST

START_TEST(numbers)
{
    static const char *const bad[] = {"01",     "-",           "-01",   "+1",   ".5",  "5.",
                                      "1e",     "1e+",         "0x1",   "1.e5", "--1", "1e400",
                                      "-1e400", "1E999999999", "1.2.3", "1_0"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ck_assert_msg(!valid(bad[i], strlen(bad[i])), "%s", bad[i]);
    }
    static const struct {
        const char *text;
        int64_t integer;
    } integers[] = {{"0", 0},
                    {"-0", 0},
                    {"9223372036854775807", INT64_MAX},
                    {"-9223372036854775808", INT64_MIN},
                    {"9007199254740993", 9007199254740993}};
    bc_json_scan scan;
    for (size_t i = 0; i < sizeof integers / sizeof *integers; i++) {
        bc_json_scan_init(&scan, integers[i].text, strlen(integers[i].text));
        ck_assert_int_eq(bc_json_scan_next(&scan, NULL), BC_JSON_INTEGER);
        ck_assert(scan.integer == integers[i].integer);
    }
    static const struct {
        const char *text;
        double real;
    } reals[] = {{"9223372036854775808", 9223372036854775808.0},
                 {"1e-400", 0},
                 {"-9223372036854775809", -9223372036854775808.0},
                 {"18446744073709551616", 0x1p64},
                 {"1.0", 1},
                 {"1e2", 100},
                 {"-0.0", 0}};
    for (size_t i = 0; i < sizeof reals / sizeof *reals; i++) {
        bc_json_scan_init(&scan, reals[i].text, strlen(reals[i].text));
        ck_assert_int_eq(bc_json_scan_next(&scan, NULL), BC_JSON_REAL);
        ck_assert(scan.real == reals[i].real);
    }
    /* Digits beyond the local copy. */
    char text[400];
    memset(text, '1', sizeof text);
    text[1] = '.';
    bc_json_scan_init(&scan, text, sizeof text);
    ck_assert_int_eq(bc_json_scan_next(&scan, NULL), BC_JSON_REAL);
    ck_assert(scan.real > 1.111 && scan.real < 1.112);
    memset(text, '9', sizeof text);
    ck_assert(!valid(text, sizeof text)); /* beyond a double */
    ck_assert(valid(text, 300));
}
END_TEST

static const char *text_of(const char *json)
{
    static bc_buf out;
    bc_json_scan scan;
    bc_buf_clear(&out);
    bc_buf_init(&out, 1000);
    bc_json_scan_init(&scan, json, strlen(json));
    ck_assert_int_eq(bc_json_scan_next(&scan, NULL), BC_JSON_STRING);
    ck_assert_int_eq(bc_json_scan_text(&scan, &out), 0);
    ck_assert_int_eq(bc_json_scan_is(&scan, bc_buf_data(&out)),
                     strlen(bc_buf_data(&out)) == out.len);
    return bc_buf_data(&out);
}

START_TEST(strings_decode)
{
    ck_assert_str_eq(text_of("\"\\u0041\\u00e9\\u20AC\\ud83d\\ude00\""),
                     "A\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80");
    /* Lone, reversed and unfinished pairs. */
    ck_assert_str_eq(text_of("\"\\ud83d\""), "\xEF\xBF\xBD");
    ck_assert_str_eq(text_of("\"\\ude00\\ud83d\""), "\xEF\xBF\xBD\xEF\xBF\xBD");
    ck_assert_str_eq(text_of("\"\\ud83dx\""), "\xEF\xBF\xBDx");
    ck_assert_str_eq(text_of("\"\\ud83d\\u0041\""), "\xEF\xBF\xBD"
                                                    "A");
    ck_assert_str_eq(text_of("\"\\ud83d\\n\""), "\xEF\xBF\xBD\n");
    ck_assert_str_eq(text_of("\"\\ud83d\\ud83d\\ude00\""), "\xEF\xBF\xBD\xF0\x9F\x98\x80");
    ck_assert_str_eq(text_of("\"a\xFF\xE2\x82z\""), "a\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBDz");
    ck_assert_str_eq(text_of("\"\\/\\b\\f\\\\\\\"\""), "/\b\f\\\"");
}
END_TEST

START_TEST(nul_in_strings)
{
    bc_json_scan scan;
    bc_buf out;
    bc_buf_init(&out, 10);
    bc_json_scan_init(&scan, "\"a\\u0000b\"", 10);
    ck_assert_int_eq(bc_json_scan_next(&scan, NULL), BC_JSON_STRING);
    ck_assert_int_eq(bc_json_scan_text(&scan, &out), 0);
    ck_assert_uint_eq(out.len, 3);
    ck_assert_mem_eq(bc_buf_data(&out), "a\0b", 3);
    ck_assert_int_eq(bc_json_scan_is(&scan, "a"), 0);
    bc_buf_clear(&out);
}
END_TEST

START_TEST(depth_is_bounded)
{
    static char text[2 * BC_JSON_MAX_DEPTH + 2];
    for (int extra = 0; extra < 2; extra++) {
        size_t depth = BC_JSON_MAX_DEPTH + (size_t)extra;
        memset(text, '[', depth);
        memset(text + depth, ']', depth);
        ck_assert_int_eq(valid(text, 2 * depth), !extra);
    }
    /* Far deeper, and never closed. */
    char *deep = malloc(1000000);
    memset(deep, '[', 1000000);
    barchan_error err;
    ck_assert_int_eq(bc_json_validate(deep, 1000000, &err), BARCHAN_ELIMIT);
    for (int i = 0; i + 5 <= 1000000; i += 5)
        memcpy(deep + i, "{\"a\":", 5);
    ck_assert_int_eq(bc_json_validate(deep, 1000000, &err), BARCHAN_ELIMIT);
    free(deep);
}
END_TEST

/* Every prefix of a text with one of everything is refused, and none is read past its end. */
START_TEST(cut_anywhere_it_is_refused)
{
    static const char text[] = "{\"a\":[1,-2.5e3,true,false,null,\"x\\u00e9\\ud83d\\ude00\\n\"],"
                               "\"b\":{\"c\":{}},\"d\":\"\xE2\x82\xAC\"}";
    ck_assert(valid(text, sizeof text - 1));
    for (size_t len = 0; len < sizeof text - 1; len++) {
        ck_assert_msg(!valid(text, len), "%zu", len);
    }
    /* One byte changed to any other: an answer, whichever, and no harm. */
    char copy[sizeof text];
    for (size_t at = 0; at < sizeof text - 1; at++) {
        for (int byte = 0; byte < 256; byte++) {
            memcpy(copy, text, sizeof text);
            copy[at] = (char)byte;
            valid(copy, sizeof text - 1);
        }
    }
}
END_TEST

START_TEST(spans_are_the_own_bytes)
{
    static const char text[] = " { \"a\" : [ 1 , 0.10 ] , \"b\":\"\\u0041\", \"b\" : 2e0 } ";
    bc_json_span all = {text, sizeof text - 1}, value;
    ck_assert_int_eq(bc_json_member(all, "a", &value, NULL), 1);
    ck_assert_uint_eq(value.len, 12);
    ck_assert_mem_eq(value.data, "[ 1 , 0.10 ]", 12);
    ck_assert_int_eq(bc_json_member(all, "b", &value, NULL), 1);
    ck_assert_mem_eq(value.data, "2e0", 3);
    ck_assert_int_eq(bc_json_member(all, "c", &value, NULL), 0);
    ck_assert_int_eq(bc_json_member((bc_json_span){"[1]", 3}, "c", &value, NULL), 0);
    ck_assert_int_eq(bc_json_member((bc_json_span){"{\"\\u0061\":1}", 12}, "a", &value, NULL), 1);
    barchan_error err;
    ck_assert_int_eq(bc_json_member((bc_json_span){"{\"a\":1", 6}, "a", &value, &err),
                     BARCHAN_EPROTOCOL);
    ck_assert_ptr_nonnull(strstr(err.message, "byte 6"));
}
END_TEST

UNIT_MAIN("json_scan", the_grammar, numbers, strings_decode, nul_in_strings, depth_is_bounded,
          cut_anywhere_it_is_refused, spans_are_the_own_bytes)
