/* Events that differ in one string: read by their pattern or taken apart, the turn is the same. */
#include <stdio.h>
#include <stdlib.h>
#include "adapter_run.h"
#include "provider/piece.h"
#include "suite.h"

static bc_json_span span(const char *text)
{
    return (bc_json_span){text, strlen(text)};
}

START_TEST(only_the_string_may_differ)
{
    static const char first[] = "{\"i\":1,\"t\":\"abc\",\"n\":[]}";
    static const struct {
        const char *event, *string; /* NULL: not of the pattern */
    } cases[] = {
        {"{\"i\":1,\"t\":\"\",\"n\":[]}", "\"\""},
        {"{\"i\":1,\"t\":\"a\\\"b\",\"n\":[]}", "\"a\\\"b\""},
        {"{\"i\":1,\"t\":\"\\u00e9\\\\\",\"n\":[]}", "\"\\u00e9\\\\\""},
        {"{\"i\":2,\"t\":\"abc\",\"n\":[]}", NULL},
        {"{\"i\":1,\"t\":\"abc\",\"n\":{}}", NULL},
        {"{\"i\":1,\"t\":null,\"n\":[]}", NULL},
        {"{\"i\":1,\"t\":\"a\",\"t\":\"b\",\"n\":[]}", NULL}, /* two strings */
        {"{\"i\":1,\"t\":\"a\" ,\"n\":[]}", NULL},
        {"{\"i\":1,\"t\":\"a\\\",\"n\":[]}", NULL}, /* the quote is escaped */
        {"{\"i\":1,\"t\":\"a\nb\",\"n\":[]}", NULL},
        {"{\"i\":1,\"t\":\",\"n\":[]}", NULL}, /* begin and end overlap */
        {"{\"i\":1,\"t\":", NULL},
        {"", NULL},
    };
    bc_piece piece;
    bc_json_span got, event = span(first);
    bc_piece_init(&piece);
    ck_assert_int_eq(bc_piece_match(&piece, event, &got), 0); /* none is known */
    bc_piece_learn(&piece, event, (bc_json_span){strstr(first, "\"abc\""), 5});
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int matches = bc_piece_match(&piece, span(cases[i].event), &got);
        ck_assert_msg(matches == (cases[i].string != NULL), "%s", cases[i].event);
        if (!matches) continue;
        ck_assert_uint_eq(got.len, strlen(cases[i].string));
        ck_assert_int_eq(memcmp(got.data, cases[i].string, got.len), 0);
    }
    bc_piece_clear(&piece);
}
END_TEST

START_TEST(a_long_pattern_is_none)
{
    char event[2 * BC_MODEL_MAX_PATTERN_BYTES];
    int len = snprintf(event, sizeof event, "{\"%*d\":\"x\"}", BC_MODEL_MAX_PATTERN_BYTES, 1);
    bc_json_span got, whole = {event, (size_t)len};
    bc_piece piece;
    bc_piece_init(&piece);
    bc_piece_learn(&piece, whole, (bc_json_span){strstr(event, "\"x\""), 3});
    ck_assert_int_eq(bc_piece_match(&piece, whole, &got), 0);
    bc_piece_clear(&piece);
}
END_TEST

#define START "data: {\"type\":\"message_start\",\"message\":{\"id\":\"i\",\"content\":[]}}\n\n"
#define STOP                                                                          \
    "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"tool_use\"}}\n\n" \
    "data: {\"type\":\"message_stop\"}\n\n"

/* Pieces of three blocks in turns. `blank` breaks the pattern of every second one. */
static void write_stream(bc_buf *out, const char *blank, int typed)
{
    static const char *const starts[] = {"{\"type\":\"text\",\"text\":\"\"}",
                                         "{\"type\":\"thinking\",\"thinking\":\"\"}",
                                         ("{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"f\","
                                          "\"input\":{}}")};
    static const char *const members[] = {"text", "thinking", "partial_json"};
    static const char *const texts[][8] = {
        {"a", "\\ud83d", "\\ude00", "\\\"text\\\":\\\"", "", "\xC3", "\xA9", "end"},
        {"a", "\\n", "", "b\\\\", "c", "d", "e", "f"},
        {"{", "\\\"x\\\"", ":", "[1,", "2", "]", "", "}"}};
    static const char *const type[] = {"", "\"type\":\"content_block_delta\","};
    bc_buf_append_string(out, START);
    for (int block = 0; block < 3; block++) {
        bc_buf_appendf(out,
                       "data: {\"type\":\"content_block_start\",\"index\":%d,\"content_block\":%s}"
                       "\n\n",
                       block, starts[block]);
    }
    for (int i = 0; i < 24; i++) {
        int block = i / 3 % 2 == 0 ? i % 3 : i / 8; /* now in turns, now not */
        static int next[3];
        if (i == 0) memset(next, 0, sizeof next);
        if (next[block] == 8) continue;
        bc_buf_appendf(
            out,
            "event: content_block_delta\ndata: {%s\"index\":%d,%s\"delta\":{\"%s\":\"%s\"}}\n\n",
            type[typed], block, i % 2 == 1 ? blank : "", members[block],
            texts[block][next[block]++]);
    }
    /* Without a type of its own it is what its name says: here nothing. */
    bc_buf_appendf(out, "event: ping\ndata: {%s\"index\":0,\"delta\":{\"text\":\"!\"}}\n\n",
                   type[typed]);
    bc_buf_append_string(out, STOP);
}

START_TEST(the_turn_is_the_same)
{
    for (int typed = 0; typed < 2; typed++) {
        bc_buf streams[2];
        adapter_result results[2];
        for (int i = 0; i < 2; i++) {
            bc_buf_init(&streams[i], 1 << 20);
            write_stream(&streams[i], i == 0 ? "" : " ", typed);
            results[i] = adapter_read(&bc_provider_anthropic, 200, 1, bc_buf_data(&streams[i]),
                                      streams[i].len, 0);
            ck_assert_msg(!results[i].failed, "%s", results[i].err.message);
        }
        ck_assert_str_eq(results[0].reply, results[1].reply);
        ck_assert_str_eq(results[0].shown, results[1].shown);
        ck_assert_int_eq(strchr(results[0].shown, '!') != NULL, typed);
        for (int i = 0; i < 2; i++) {
            adapter_result_clear(&results[i]);
            bc_buf_clear(&streams[i]);
        }
    }
}
END_TEST

/* What stands in between, and members that are no text, are seen as ever. */
START_TEST(chat_completions_too)
{
#define CHUNK(delta) "data: {\"id\":\"1\",\"choices\":[{\"index\":0,%s\"delta\":" delta "}]}\n\n"
#define OTHER "data: {\"id\":\"2\",\"choices\":[],\"usage\":{\"completion_tokens\":7}}\n\n"
    static const char *const chunks[] = {
        CHUNK("{\"role\":\"assistant\",\"content\":\"\"}"),
        CHUNK("{\"content\":\"a\"}"),
        CHUNK("{\"content\":\"b\\\"\\ud83d\"}"),
        CHUNK("{\"content\":\"\\ude00\"}"),
        OTHER,
        CHUNK("{\"content\":\"c\"}"),
        CHUNK("{\"reasoning_content\":\"r\"}"),
        CHUNK("{\"reasoning_content\":\"s\"}"),
        CHUNK("{\"reasoning\":\"t\",\"reasoning_content\":\"t\"}"),
        CHUNK("{\"reasoning\":\"u\",\"reasoning_content\":\"u\"}"),
        CHUNK("{\"content\":\"d\",\"tool_calls\":[{\"id\":\"x\",\"function\":{\"name\":\"f\","
              "\"arguments\":\"{\"}}]}"),
        CHUNK("{\"content\":\"e\",\"tool_calls\":[{\"function\":{\"arguments\":\"}\"}}]}"),
        CHUNK("{\"content\":\"f\",\"tool_calls\":null}"),
        CHUNK("{\"content\":\"g\",\"tool_calls\":null}"),
        CHUNK("{\"content\":[{\"type\":\"text\",\"text\":\"h\"}]}"),
        CHUNK("{\"content\":[{\"type\":\"text\",\"text\":\"i\"}]}"),
        CHUNK("{},\"finish_reason\":\"tool_calls\""),
        CHUNK("{\"content\":\"j\"}"),
        CHUNK("{\"content\":\"k\"}"),
        "data: [DONE]\n\n",
    };
    adapter_result results[2];
    for (int way = 0; way < 2; way++) {
        cleanup_buf bc_buf stream;
        bc_buf_init(&stream, 1 << 20);
        for (size_t i = 0; i < sizeof chunks / sizeof *chunks; i++) {
            const char *blank = way == 1 && i % 2 == 1 ? " " : "";
            const char *gap = strstr(chunks[i], "%s");
            size_t before = gap != NULL ? (size_t)(gap - chunks[i]) : strlen(chunks[i]);
            bc_buf_append(&stream, chunks[i], before);
            if (gap != NULL) bc_buf_appendf(&stream, "%s%s", blank, gap + 2);
        }
        results[way] =
            adapter_read(&bc_provider_openai, 200, 1, bc_buf_data(&stream), stream.len, 0);
        ck_assert_msg(!results[way].failed, "%s", results[way].err.message);
    }
    ck_assert_str_eq(results[0].reply, results[1].reply);
    ck_assert_str_eq(results[0].shown, results[1].shown);
    ck_assert_ptr_nonnull(strstr(results[0].shown, "cdefghijk"));
    ck_assert_ptr_nonnull(strstr(results[0].reply, "\"id\":\"1\""));
    adapter_result_clear(&results[0]);
    adapter_result_clear(&results[1]);
}
END_TEST

UNIT_MAIN("piece", only_the_string_may_differ, a_long_pattern_is_none, the_turn_is_the_same,
          chat_completions_too)
