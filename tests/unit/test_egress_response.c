/* Answers, cut at every place: what a program gets, and what is refused. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include "egress/response_stream.h"
#include "suite.h"

#define VALUE "0123456789abcdef"
#define STARS "****************"
#define OK "HTTP/1.1 200 OK\r\n"

static bc_patterns *patterns;

static void setup(void)
{
    const bc_pattern_source source = {VALUE, strlen(VALUE), 0, 1};
    patterns = bc_patterns_create(&source, 1, true);
}

static void teardown(void)
{
    bc_patterns_unref(patterns);
}

typedef struct outcome {
    int rc;
    bool waiting, begun, last;
    const char *why;
    char text[4096];
} outcome;

static bool cut_off;                   /* the end is one without a goodbye */
static size_t hurried_from = SIZE_MAX; /* the byte before which, or which's piece, it is */

/* In pieces of `piece` bytes, then the end. */
static outcome receive(const char *answer, bool head_only, size_t piece, bool end)
{
    bc_response_stream stream;
    outcome o = {0};
    bc_buf out;
    size_t len = strlen(answer);
    bc_buf_init(&out, sizeof o.text - 1);
    ck_assert_int_eq(bc_response_init(&stream, patterns), 0);
    bc_response_expect(&stream, head_only, false);
    for (size_t at = 0, told = 0; o.rc == 0 && at < len; at += piece) {
        if (at + piece > hurried_from && !told++) bc_response_hurry(&stream);
        o.rc = bc_response_feed(&stream, answer + at, len - at < piece ? len - at : piece, &out);
    }
    if (o.rc == 0 && end) o.rc = bc_response_end(&stream, cut_off, &out);
    o.waiting = stream.waiting;
    o.begun = stream.begun;
    o.last = stream.last;
    o.why = stream.why;
    memcpy(o.text, bc_buf_data(&out), out.len);
    bc_response_clear(&stream);
    bc_buf_clear(&out);
    return o;
}

static void gives(const char *answer, bool head_only, bool end, const char *expected)
{
    for (size_t piece = 1; piece <= strlen(answer); piece++) {
        outcome o = receive(answer, head_only, piece, end);
        ck_assert_msg(o.rc == 0, "%s: %s", answer, o.why);
        ck_assert(!o.waiting);
        if (expected != NULL) ck_assert_str_eq(o.text, expected);
        ck_assert_ptr_null(strstr(o.text, VALUE));
    }
}

static void is_refused(const char *answer, const char *words)
{
    for (size_t piece = 1; piece <= strlen(answer); piece++) {
        outcome o = receive(answer, false, piece, true);
        ck_assert_msg(o.rc < 0, "%s", answer);
        ck_assert_msg(strstr(o.why, words) != NULL, "%s: %s", answer, o.why);
    }
}

START_TEST(answers_with_a_length)
{
    gives(OK "Content-Length: 18\r\n\r\n<" VALUE ">", false, false,
          OK "Content-Length: 18\r\n\r\n<" STARS ">");
    gives(OK "Content-Length: 0\r\nX: " VALUE "\r\n\r\n", false, false,
          OK "Content-Length: 0\r\nX: " STARS "\r\n\r\n");
    gives("HTTP/1.1 404 " VALUE "\r\nContent-Length: 0\r\n\r\n", false, false, NULL);
    /* The beginning of one is given out at the end. */
    gives(OK "Content-Length: 4\r\n\r\n0123", false, false, OK "Content-Length: 4\r\n\r\n0123");
}
END_TEST

START_TEST(answers_in_chunks)
{
    static const char *const answers[] = {
        OK "Transfer-Encoding: chunked\r\n\r\n8\r\n01234567\r\n8\r\n89abcdef\r\n0\r\n\r\n",
        OK "Transfer-Encoding: chunked\r\n\r\n1;x=" VALUE "\r\n0\r\nF  \r\n123456789abcdef\r\n"
           "0\r\nX-Trailer: " VALUE "\r\n\r\n",
    };
    for (size_t i = 0; i < 2; i++) {
        gives(answers[i], false, false, NULL);
        outcome o = receive(answers[i], false, 4096, false);
        ck_assert_str_eq(o.text,
                         OK "Transfer-Encoding: chunked\r\n\r\n10\r\n" STARS "\r\n0\r\n\r\n");
    }
}
END_TEST

#define IN_CHUNKS "Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n"

/* They are given in chunks, so that their end can be told from where they were cut off. */
START_TEST(answers_without_a_length)
{
    static const char *const heads[] = {"HTTP/1.0 200 OK\r\nX: y\r\n", OK "X: y\r\n"};
    char answer[256];
    for (int i = 0; i < 2; i++) {
        snprintf(answer, sizeof answer, "%s\r\na" VALUE "b", heads[i]);
        gives(answer, false, true, NULL);
        outcome o = receive(answer, false, 4096, true);
        ck_assert_str_eq(o.text, OK "X: y\r\n" IN_CHUNKS "12\r\na" STARS "b\r\n0\r\n\r\n");
        ck_assert(receive(heads[i], false, 4096, false).waiting);
    }
    ck_assert(receive("HTTP/1.0 200 OK\r\n\r\na", false, 99, false).last);
    /* Not those that have none: */
    gives("HTTP/1.0 304 No\r\n\r\n", false, false, "HTTP/1.0 304 No\r\n\r\n");
    gives(OK "\r\n", true, false, OK "\r\n");
}
END_TEST

/* Nobody knows what would have followed: what is held back for that does not pass, and it looks
 * like what it is. */
START_TEST(answers_without_a_length_that_break_off)
{
    static const char cut[] = OK "\r\na\nb0123", whole[] = OK "\r\na\nb\n";
    cut_off = true;
    is_refused(cut, "close_notify");
    ck_assert_str_eq(receive(cut, false, 4096, true).text, OK IN_CHUNKS "2\r\na\n\r\n");
    is_refused(whole, "close_notify");
    ck_assert_str_eq(receive(whole, false, 4096, true).text, OK IN_CHUNKS "4\r\na\nb\n\r\n");
    cut_off = false;
    gives(cut, false, true, NULL);
}
END_TEST

START_TEST(answers_without_a_body)
{
    gives(OK "Content-Length: 99\r\n\r\n", true, false, NULL);
    gives("HTTP/1.1 304 Not Modified\r\nContent-Length: 99\r\n\r\n", false, false, NULL);
    gives("HTTP/1.1 204 No Content\r\n\r\n", false, false, NULL);
    gives("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nX: y\r\n\r\n" OK
          "Content-Length: 1\r\n\r\nx",
          false, false, NULL);
}
END_TEST

START_TEST(answers_that_are_refused)
{
    is_refused("SSH-2.0\r\n\r\n", "malformed");
    is_refused(OK "Content-Length: 1\r\nContent-Length: 1\r\n\r\nx", "malformed");
    is_refused(OK "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", "malformed");
    is_refused(OK "Content-Length: +1\r\n\r\nx", "malformed");
    is_refused(OK "Transfer-Encoding: gzip, chunked\r\n\r\n", "malformed");
    is_refused("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "malformed");
    is_refused(OK "X: a\r\n folded\r\n\r\n", "malformed");
    is_refused(OK "Content-Length : 1\r\n\r\nx", "malformed");
    is_refused(OK "X: a\nContent-Length: 1\r\n\r\nx", "malformed");
    is_refused(OK "X: a\rb\r\n\r\nx", "malformed");
    is_refused(OK "Content-Encoding: br\r\nContent-Length: 1\r\n\r\nx", "content coding");
    is_refused("HTTP/1.1 101 Switching Protocols\r\n\r\n", "another protocol");
    is_refused(OK "Transfer-Encoding: chunked\r\n\r\n1\r\nxx\r\n", "malformed");
    is_refused(OK "Transfer-Encoding: chunked\r\n\r\n1\nx\r\n", "malformed");
    is_refused(OK "Transfer-Encoding: chunked\r\n\r\n-1\r\n", "malformed");
    is_refused(OK "Transfer-Encoding: chunked\r\n\r\n8000000000000000\r\n", "malformed");
    is_refused(OK "Transfer-Encoding: chunked\r\n\r\nbc23456789abcdef\r\n", "malformed");
    is_refused(OK "Content-Length: 9\r\n\r\nx", "ended within");
    is_refused(OK "Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n", "ended within");
    is_refused(OK "Content-Length: 1\r\n\r\nxy", "unasked");
    is_refused(OK "Content-Le", "ended within");
}
END_TEST

/* Each between two bars. */
static const char bad_charsets[] =
    "utf-16|UTF-16LE|\"utf-16be\"|utf-32|UTF32|ucs-2|UCS-4| = \"utf-7|utf_16|unicode-1-1|"
    "csUTF16LE|x-utf-16le|'utf-16'|IBM500|IBM1140|x-IBM875|cp037|IBM1047|ebcdic-us|x|"
    "Cp930|cp937|x-cp939|windows-1200|shift_jis_2004|sjisx0213|cp864|csIBM864|,utf-16|"
    "utf8-ebcdic|iso8859-1_ebcdic|mac-utf16|IBM8540|latin-greek-1|\xc3\xa9|'";
static const char good_charsets[] =
    "utf-8|UTF8|\"utf-8\"|iso-8859-1|us-ascii|windows-1252|csUTF8|gb18030||koi8-r|EUC-KR|"
    "x-sjis|IBM850|cp1251|csISOLatin1|ISO_8859-1:1987|ANSI_X3.4-1968";

static void each(const char *list, void (*check)(const char *word))
{
    char word[64];
    for (;; list++) {
        size_t len = strcspn(list, "|");
        snprintf(word, sizeof word, "%.*s", (int)len, list);
        check(word);
        list += len;
        if (*list == '\0') return;
    }
}

static void is_refused_as_charset(const char *word)
{
    char answer[256];
    snprintf(answer, sizeof answer,
             OK "Content-Type: text/html; Charset=%s; x=y\r\nContent-Length: 1\r\n\r\nx", word);
    is_refused(answer, "charset");
}

static void passes_as_charset(const char *word)
{
    char answer[256];
    snprintf(answer, sizeof answer,
             OK "Content-Type: text/html; charset=%s\r\nContent-Length: 1\r\n\r\nx", word);
    gives(answer, false, false, answer);
}

/* Of each kind, one that is refused with these words, and its twin. */
START_TEST(answers_that_cannot_be_searched)
{
    static const char *const parts[] = {"HTTP/1.1 206 Partial Content\r\n",
                                        "HTTP/1.1 226 IM Used\r\n",
                                        OK "Content-Range: bytes 0-1/9\r\n",
                                        OK "content-range: x\r\n",
                                        OK "IM: gzip\r\n",
                                        "HTTP/1.1 416 No\r\nContent-Range: bytes */9\r\n"};
    char answer[256];
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        snprintf(answer, sizeof answer, "%sContent-Length: 1\r\n\r\nx", parts[i]);
        is_refused(answer, "part of");
    }
    each(bad_charsets, is_refused_as_charset);
    each(good_charsets, passes_as_charset);
    gives(OK
          "Content-Type: application/utf-16\r\nX-Content-Range: IM\r\nContent-Length: 1\r\n\r\nx",
          false, false, NULL);
    is_refused(OK "Content-Type: charset=utf-8; charset=utf-16\r\nContent-Length: 1\r\n\r\nx",
               "charset");
    gives(OK "Content-Type: text/html; charset=utf-16\r\nContent-Length: 9\r\n\r\n", true, false,
          NULL);
}
END_TEST

/* From where the server knows that the program says no more: only a length that it has given before
 * counts, or the end of a line. */
START_TEST(answers_in_a_hurry)
{
    static const char *const whole[] = {
        OK "Content-Length: 4\r\n\r\n012\n", OK "\r\n0123\n", OK "Content-Length: 0\r\n\r\n",
        OK "Transfer-Encoding: chunked\r\n\r\n4\r\n012\n\r\n0\r\n\r\n"};
    static const char *const cut[] = {
        OK "Content-Length: 4\r\n\r\n\nxyz", OK "\r\n0123", OK "\r\n\nxyz",
        OK "Transfer-Encoding: chunked\r\n\r\n4\r\n\nxyz\r\n0\r\n\r\n"};
    hurried_from = 0;
    for (size_t i = 0; i < 4; i++) {
        if (strstr(whole[i], "Length") != NULL) gives(whole[i], false, true, whole[i]);
        gives(whole[i], false, true, NULL);
        is_refused(cut[i], "may have chosen");
        ck_assert_ptr_null(strstr(receive(cut[i], false, 1, true).text, "xyz"));
        ck_assert_ptr_null(strstr(receive(cut[i], false, 1, true).text, "0123"));
    }
    hurried_from = strlen(cut[0]) - 1;
    outcome o = receive(cut[0], false, 1, true);
    ck_assert_int_eq(o.rc, 0);
    ck_assert_str_eq(o.text, cut[0]);
    hurried_from = strlen(cut[3]) - 9;
    ck_assert_int_lt(receive(cut[3], false, 1, true).rc, 0);
    hurried_from = SIZE_MAX;
}
END_TEST

/* Masked, its head would be another one, or none; the rest of a line may be masked. */
START_TEST(a_value_in_the_framing)
{
    static const struct {
        const char *value, *answer, *masked;
    } cases[] = {
        {"HTTP/1.1 200 CTP", "HTTP/1.1 200 CTP/1.1 No\r\n\r\n", NULL},
        {"content-length: 12", OK "content-length: 12\r\n\r\nHello, world", NULL},
        {"content-length: 12", OK "content-length: 128\r\n\r\n", NULL},
        {"ransfer-encoding: chunk", OK "transfer-encoding: chunked\r\n\r\n0\r\n\r\n", NULL},
        {"123456789012345678", OK "Content-Length: 123456789012345678\r\n\r\n", NULL},
        {"Connection: close", OK "Connection: close\r\n\r\n", NULL},
        {"OK, all went well", "HTTP/1.1 204 OK, all went well\r\n\r\n",
         "HTTP/1.1 204 *****************\r\n\r\n"},
        {"a-header-of-a-name", OK "a-header-of-a-name: x\r\nContent-Length: 0\r\n\r\n",
         OK "******************: x\r\nContent-Length: 0\r\n\r\n"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const bc_pattern_source source = {cases[i].value, strlen(cases[i].value), 0, 1};
        bc_patterns_unref(patterns);
        patterns = bc_patterns_create(&source, 1, true);
        if (cases[i].masked == NULL) {
            is_refused(cases[i].answer, "in the framing");
            ck_assert_str_eq(receive(cases[i].answer, false, 4096, true).text, "");
        } else {
            gives(cases[i].answer, false, false, cases[i].masked);
        }
    }
}
END_TEST

START_TEST(an_answer_begins_and_ends)
{
    /* Answered in its stead can be what has not begun, or has ended. */
    static const struct {
        const char *answer;
        bool begun, end;
    } cases[] = {{OK, false, false},
                 {"HTTP/1.1 100 Continue\r\n\r\n", false, false},
                 {OK "Content-Length: 2\r\n\r\n", true, false},
                 {OK "Content-Length: 2\r\n\r\nx", true, false},
                 {OK "Content-Length: 2\r\n\r\nxy", false, false},
                 {OK "Content-Length: 0\r\n\r\n", false, false},
                 {"HTTP/1.1 204 No Content\r\n\r\n", false, false},
                 {OK "Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n", true, false},
                 {OK "Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n", false, false},
                 {OK "\r\nx", true, false},
                 {OK "\r\nx", false, true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        outcome o = receive(cases[i].answer, false, 4096, cases[i].end);
        ck_assert_msg(o.begun == cases[i].begun, "%s", cases[i].answer);
    }
}
END_TEST

/* Memory that grows leaves copies of what a server shows in memory that was freed. */
START_TEST(a_head_stays_in_its_place)
{
    bc_response_stream stream;
    bc_buf out;
    bc_buf_init(&out, 1u << 20);
    ck_assert_int_eq(bc_response_init(&stream, patterns), 0);
    bc_response_expect(&stream, false, false);
    ck_assert_int_eq(bc_response_feed(&stream, OK, strlen(OK), &out), 0);
    const char *place = stream.line.mem;
    ck_assert_ptr_nonnull(place);
    for (int i = 0; i < 2000; i++)
        ck_assert_int_eq(bc_response_feed(&stream, "X: " VALUE "\r\n", 21, &out), 0);
    ck_assert_ptr_eq(stream.line.mem, place);
    bc_response_clear(&stream);
    ck_assert_int_eq(bc_response_init(&stream, patterns), 0);
    bc_response_expect(&stream, false, false);
    const char *chunked = OK "Transfer-Encoding: chunked\r\n\r\n";
    ck_assert_int_eq(bc_response_feed(&stream, chunked, strlen(chunked), &out), 0);
    ck_assert_int_eq(bc_response_feed(&stream, "1", 1, &out), 0);
    place = stream.line.mem;
    ck_assert_int_eq(bc_response_feed(&stream, ";", 1, &out), 0);
    for (int i = 0; i < 200; i++)
        ck_assert_int_eq(bc_response_feed(&stream, VALUE, strlen(VALUE), &out), 0);
    ck_assert_ptr_eq(stream.line.mem, place);
    bc_response_clear(&stream);
    bc_buf_clear(&out);
}
END_TEST

START_TEST(heads_have_a_maximum)
{
    bc_response_stream stream;
    char line[1024];
    bc_buf out;
    bc_buf_init(&out, 1u << 20);
    memset(line, 'x', sizeof line);
    memcpy(line, "X: ", 3);
    memcpy(line + sizeof line - 2, "\r\n", 2);
    ck_assert_int_eq(bc_response_init(&stream, patterns), 0);
    bc_response_expect(&stream, false, false);
    ck_assert_int_eq(bc_response_feed(&stream, OK, strlen(OK), &out), 0);
    int rc = 0, lines = 0;
    while (rc == 0 && lines++ < 100)
        rc = bc_response_feed(&stream, line, sizeof line, &out);
    ck_assert_int_lt(rc, 0);
    ck_assert_int_le(lines, 64);
    ck_assert_uint_eq(out.len, 0);
    bc_response_clear(&stream);
    bc_buf_clear(&out);
}
END_TEST

SUITE_MAIN("egress response", setup, teardown, answers_with_a_length, answers_in_chunks,
           answers_without_a_length, answers_without_a_length_that_break_off,
           answers_without_a_body, answers_that_are_refused, answers_that_cannot_be_searched,
           answers_in_a_hurry, a_value_in_the_framing, an_answer_begins_and_ends,
           a_head_stays_in_its_place, heads_have_a_maximum)
