#include "provider/sse.h"
#include "provider/text.h"
#include "suite.h"
#include <stdio.h>
#include <stdlib.h>

/* Events as text: "name|data" one a line, LF in data shown as "^". */
static char seen[4096];

static int on_event(const char *event, bc_json_span data, void *ud, barchan_error *err)
{
    size_t at = strlen(seen);
    at += (size_t)snprintf(seen + at, sizeof seen - at, "%s|", event);
    for (size_t i = 0; i < data.len && at < sizeof seen - 2; i++) {
        seen[at++] = data.data[i] == '\n' ? '^' : data.data[i];
    }
    seen[at++] = '\n';
    seen[at] = '\0';
    return strcmp(event, "stop") == 0 ? BARCHAN_ECANCELLED : 0;
}

static const char *read_in_steps(const char *text, size_t len, size_t step)
{
    bc_sse sse;
    barchan_error err;
    seen[0] = '\0';
    bc_sse_init(&sse, on_event, NULL);
    for (size_t at = 0; at < len; at += step) {
        size_t n = len - at < step ? len - at : step;
        char *copy = malloc(n); /* exact, so that reading past it is seen */
        memcpy(copy, text + at, n);
        int rc = bc_sse_feed(&sse, copy, n, &err);
        free(copy);
        ck_assert_int_eq(rc, 0);
    }
    ck_assert_int_eq(bc_sse_end(&sse, &err), 0);
    bc_sse_clear(&sse);
    return seen;
}

START_TEST(the_rules)
{
    static const struct {
        const char *in, *out;
    } cases[] = {
        {"data: a\n\n", "|a\n"},
        {"data: a\r\n\r\ndata: b\r\rdata: c\n\n", "|a\n|b\n|c\n"},
        {"data:a\n\n", "|a\n"},
        {"data:  a\n\n", "| a\n"},
        {"data: a\ndata: b\ndata\ndata:\n\n", "|a^b^^\n"},
        {"event: x\ndata: a\n\ndata: b\n\n", "x|a\n|b\n"},
        {"event: x\n\ndata: b\n\n", "|b\n"},
        {": comment\n\n: more\ndata: a\n\n", "|a\n"},
        {"id: 1\nretry: 99999999999\nid: a\tb\nunknown: y\nbare\ndata: a\n\n", "|a\n"},
        {"data: a", "|a\n"},
        {"data: a\n", "|a\n"},
        {"data: a\r", "|a\n"},
        {"data: a\n\ndata: b", "|a\n|b\n"},
        {"\n\n\n", ""},
        {"", ""},
        {"\xEF\xBB\xBF"
         "data: a\n\n",
         "|a\n"},
        {"\xEF\xBB\xBFx: y\n\xEF\xBB\xBF"
         "data: a\n\n",
         ""},
        /* Line ends of other kinds stand inside JSON strings. */
        {"data: a\xE2\x80\xA8"
         "b\xC2\x85"
         "c\vd\fe\n\n",
         "|a\xE2\x80\xA8"
         "b\xC2\x85"
         "c\vd\fe\n"},
        {"data: \xE2\x82\xAC\n\n", "|\xE2\x82\xAC\n"},
        {"data: a: b\n\n", "|a: b\n"},
        {"data : a\n\n", ""},
        {"event: a\nevent: b\ndata: c\n\n", "b|c\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t len = strlen(cases[i].in);
        for (size_t step = 1; step <= len + 1; step++) {
            ck_assert_msg(strcmp(read_in_steps(cases[i].in, len, step), cases[i].out) == 0,
                          "case %zu in steps of %zu: %s", i, step, seen);
        }
    }
}
END_TEST

START_TEST(nul_bytes_are_bytes)
{
    ck_assert_str_eq(read_in_steps("id: a\0b\ndata: c\n\n", 17, 1), "|c\n");
}
END_TEST

START_TEST(a_refusing_reader_ends_it)
{
    bc_sse sse;
    barchan_error err;
    seen[0] = '\0';
    bc_sse_init(&sse, on_event, NULL);
    static const char text[] = "event: stop\ndata: a\n\ndata: b\n\n";
    ck_assert_int_eq(bc_sse_feed(&sse, text, sizeof text - 1, &err), BARCHAN_ECANCELLED);
    ck_assert_str_eq(seen, "stop|a\n");
    bc_sse_clear(&sse);
}
END_TEST

START_TEST(events_are_bounded)
{
    bc_sse sse;
    barchan_error err;
    size_t len = 1 << 20;
    char *block = malloc(len);
    memset(block, 'a', len);
    for (int how = 0; how < 2; how++) {
        int rc = 0, blocks = 0;
        bc_sse_init(&sse, on_event, NULL);
        for (; rc == 0 && blocks < 64; blocks++) {
            /* One line without end; then many lines of one event. */
            if (how == 1) rc = bc_sse_feed(&sse, "\ndata:", 6, &err);
            if (rc == 0) rc = bc_sse_feed(&sse, block, len, &err);
        }
        ck_assert_int_eq(rc, BARCHAN_ELIMIT);
        ck_assert_int_le(blocks, 18);
        bc_sse_clear(&sse);
    }
    free(block);
}
END_TEST

/* ---- text in pieces ---- */

static void append(bc_text *text, const char *string)
{
    ck_assert_int_eq(bc_text_append(text, (bc_json_span){string, strlen(string)}), 0);
}

START_TEST(pieces_settle_when_they_are_whole)
{
    static const struct {
        const char *pieces[4];
        const char *after_first, *all;
    } cases[] = {
        {{"\"ab\"", "\"c\""}, "ab", "abc"},
        {{"\"a\\ud83d\"", "\"\\ude00b\""},
         "a",
         "a\xF0\x9F\x98\x80"
         "b"},
        {{"\"a\\ud83d\"", "\"x\""}, "a", "a\xEF\xBF\xBDx"},
        {{"\"a\\\\ud83d\"", "\"x\""}, "a\\ud83d", "a\\ud83dx"},
        {{"\"\xF0\x9F\"", "\"\x98\x80\""}, "", "\xF0\x9F\x98\x80"},
        {{"\"\xE2\"", "\"\x82\"", "\"\xAC\""}, "", "\xE2\x82\xAC"},
        {{"\"a\xE2\x82\""}, "a", "a\xEF\xBF\xBD\xEF\xBF\xBD"},
        {{"\"\\n\"", "\"\\u0041\""}, "\n", "\nA"},
        {{"null", "\"a\"", "17", "\"\""}, "", "a"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bc_text text;
        bc_json_span fresh;
        char shown[100] = "";
        bc_text_init(&text);
        for (int p = 0; p < 4 && cases[i].pieces[p] != NULL; p++) {
            append(&text, cases[i].pieces[p]);
            ck_assert_int_eq(bc_text_settle(&text, 0, &fresh), 0);
            strncat(shown, fresh.data, fresh.len);
            if (p == 0) ck_assert_str_eq(bc_buf_data(&text.plain), cases[i].after_first);
        }
        ck_assert_int_eq(bc_text_settle(&text, 1, &fresh), 0);
        strncat(shown, fresh.data, fresh.len);
        ck_assert_str_eq(bc_buf_data(&text.plain), cases[i].all);
        ck_assert_str_eq(shown, cases[i].all);
        bc_text_clear(&text);
    }
}
END_TEST

START_TEST(the_escaped_form_is_kept)
{
    bc_text text;
    bc_text_init(&text);
    ck_assert(bc_text_is_empty(&text));
    append(&text, "\"a\\u00e9\\/\"");
    append(&text, "\"\\ud83d\"");
    bc_json_span escaped = bc_text_escaped(&text);
    ck_assert_uint_eq(escaped.len, 15);
    ck_assert_mem_eq(escaped.data, "a\\u00e9\\/\\ud83d", 15);
    bc_text_reset(&text);
    ck_assert(bc_text_is_empty(&text));
    append(&text, "\"b\"");
    ck_assert_mem_eq(bc_text_escaped(&text).data, "b", 1);
    bc_text_clear(&text);
}
END_TEST

UNIT_MAIN("sse", the_rules, nul_bytes_are_bytes, a_refusing_reader_ends_it, events_are_bounded,
          pieces_settle_when_they_are_whole, the_escaped_form_is_kept)
