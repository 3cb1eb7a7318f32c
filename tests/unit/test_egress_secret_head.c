/* What becomes of the head of a request to a host with secrets. */
#include <stdio.h>
#include <string.h>
#include "egress/secret_head.h"
#include "secret_given.h"
#include "suite.h"

static bc_secret_report report;

/* The head of these lines, with "@" for the first secret's placeholder; borrowed. */
static const char *rewrite(size_t count, const char *lines)
{
    static char memory[40000];
    const bc_secret *list[] = {&secrets[0], &secrets[1]};
    char head[8192] = "";
    size_t len = 0;
    for (const char *c = lines; *c != '\0'; c++) {
        if (*c == '@') {
            memcpy(head + len, secrets[0].placeholder, BC_PLACEHOLDER_LENGTH);
            len += BC_PLACEHOLDER_LENGTH;
        } else {
            head[len++] = *c;
        }
    }
    bc_request_head read;
    ck_assert_int_eq(bc_request_head_read(head, len, &read), BC_SNIFF_DONE);
    bc_buf out = {.mem = memory, .cap = sizeof memory, .max = sizeof memory - 1};
    const bc_secret_choice choice = {list, count, secrets, 2, 443};
    ck_assert_int_eq(bc_secret_head_rewrite(&choice, &read, head, &out, &report), 0);
    ck_assert_uint_eq(strlen(memory), out.len);
    ck_assert_int_eq(bc_request_head_read(memory, out.len, &read), BC_SNIFF_DONE);
    return memory;
}

static int notes(bc_secret_note note)
{
    int count = 0;
    for (size_t i = 0; i < report.count; i++)
        count += report.notes[i].note == note;
    return count;
}

#define LINE "GET /repos HTTP/1.1\r\nHost: a.example\r\n"
#define END "Accept-Encoding: identity\r\n\r\n"
#define REAL "Authorization: Bearer " VALUE "\r\n"

START_TEST(the_value_takes_the_placeholders_place)
{
    has(0, GIVEN(.name = "A"));
    ck_assert_str_eq(rewrite(1, LINE "authorization:Bearer @\t \r\nX: y\r\n\r\n"),
                     LINE REAL "X: y\r\n" END);
    ck_assert_int_eq(notes(BC_SECRET_USED), 1);
    ck_assert_uint_eq(report.count, 1);
    ck_assert_str_eq(rewrite(1, "\r\n" LINE "X: y\r\n\r\n"), LINE "X: y\r\n" END);
    ck_assert_uint_eq(report.count, 0);
}
END_TEST

/* Whose it is and where its body ends, in the library's own words. */
START_TEST(frames_are_written_anew)
{
    static const char post[] = "POST /repos HTTP/1.1\r\nHost: a.example\r\n";
    static const char close[] = "Connection: close\r\n";
    char expected[256];
    const struct {
        const char *fields, *frame;
    } cases[] = {
        {"Content-Length:\t003 \r\n", "Content-Length: 3\r\n"},
        {"transfer-ENCODING: \tchunked\r\n", "Transfer-Encoding: chunked\r\n"},
        {"Content-Length: 3\r\nExpect:  100-Continue\r\n",
         "Content-Length: 3\r\nExpect: 100-continue\r\n"},
        {"Content-Length: 3\r\nExpect: y 100-continue\r\n", "Content-Length: 3\r\n"},
    };
    has(0, GIVEN(.name = "A"));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char lines[256];
        snprintf(lines, sizeof lines, "%s%s\r\n", post, cases[i].fields);
        snprintf(expected, sizeof expected, "%s%s%s" END, post, cases[i].frame, close);
        ck_assert_str_eq(rewrite(1, lines), expected);
    }
    ck_assert_str_eq(rewrite(1, "POST / HTTP/1.1\r\nhOST:\tA.Example.\r\nContent-Length: 0\r\n"
                                "Expect: 100-continue\r\n\r\n"),
                     "POST / HTTP/1.1\r\nHost: a.example\r\nContent-Length: 0\r\n" END);
    ck_assert_str_eq(
        rewrite(1, LINE "Connection: close\r\nScript-Name: /x\r\nPATH_INFO: /y\r\n\r\n"),
        "GET /repos HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n" END);
}
END_TEST

/* Which of two a server takes is its own choice, and the program's. */
START_TEST(a_field_has_one_value)
{
    char lines[512];
    has(0, GIVEN(.name = "A", .header = "X-Key", .format = "{}"));
    has(1, GIVEN(.name = "B", .header = "x_key", .format = "key={}"));
    rewrite(1, LINE "X-Key: @\r\nX-KEY: @\r\n\r\n");
    ck_assert(report.refused);
    ck_assert_int_eq(report.notes[report.cause].note, BC_SECRET_TWICE);
    rewrite(1, LINE "X-Key: mine\r\nX-Key: @\r\nX: y\r\nX-Key: @\r\n\r\n");
    ck_assert(report.refused);
    ck_assert_int_eq(report.notes[report.cause].note, BC_SECRET_TWICE);
    snprintf(lines, sizeof lines, LINE "X-Key: @\r\nx_key: key=%s\r\n\r\n", secrets[1].placeholder);
    rewrite(2, lines);
    ck_assert(report.refused);
    ck_assert_ptr_eq(report.notes[report.cause].secret, &secrets[1]);
    /* One beside others that are none, and two in two fields. */
    ck_assert_str_eq(rewrite(2, LINE "X-Key: mine\r\nX-Key: @\r\nX_Key: @\r\n\r\n"),
                     LINE "X-Key: " VALUE "\r\n" END);
    ck_assert(!report.refused);
    has(1, GIVEN(.name = "B"));
    snprintf(lines, sizeof lines, LINE "X-Key: @\r\nAuthorization: Bearer %s\r\n\r\n",
             secrets[1].placeholder);
    rewrite(2, lines);
    ck_assert(!report.refused);
    ck_assert_int_eq(notes(BC_SECRET_USED), 2);
}
END_TEST

START_TEST(elsewhere_it_stays_a_word)
{
    has(0, GIVEN(.name = "A"));
    const char *head = rewrite(1, "GET /@?@ HTTP/1.1\r\nHost: a.example\r\nCookie: @\r\n\r\n");
    ck_assert_ptr_null(strstr(head, VALUE));
    ck_assert_ptr_nonnull(strstr(head, "Cookie: barchan-secret-"));
    ck_assert_int_eq(notes(BC_SECRET_OUTSIDE), 1);
    ck_assert_str_eq(rewrite(1, LINE "Authorization: token @\r\n\r\n"), LINE END);
    ck_assert_int_eq(notes(BC_SECRET_MALFORMED), 1);
    ck_assert_str_eq(rewrite(1, LINE "Authorization: Bearer mine\r\n\r\n"), LINE END);
    ck_assert_int_eq(notes(BC_SECRET_OWN), 1);
}
END_TEST

/* Bound to another host, it is told all the same, and nothing comes of it. */
START_TEST(one_of_another_host)
{
    char lines[512];
    const char *other = secrets[1].placeholder;
    has(0, GIVEN(.name = "A"));
    has(1, GIVEN(.name = "B"));
    snprintf(lines, sizeof lines, "GET /%s HTTP/1.1\r\nHost: a.example\r\nX: %s\r\n\r\n", other,
             other);
    ck_assert_ptr_nonnull(strstr(rewrite(1, lines), other));
    ck_assert_uint_eq(report.count, 1);
    ck_assert_ptr_eq(report.notes[0].secret, &secrets[1]);
    ck_assert_int_eq(report.notes[0].note, BC_SECRET_UNSAFE);
    snprintf(lines, sizeof lines, LINE "Authorization: Bearer %s\r\n\r\n", other);
    ck_assert_str_eq(rewrite(1, lines), LINE END);
    ck_assert_int_eq(notes(BC_SECRET_UNSAFE), 1);
    ck_assert_int_eq(notes(BC_SECRET_OWN), 1);
    ck_assert(!report.refused);
}
END_TEST

START_TEST(what_would_hide_an_answer_is_taken_out)
{
    has(0, GIVEN(.name = "A"));
    ck_assert_str_eq(rewrite(1, LINE
                             "Accept-Encoding: gzip\r\naccept-encoding: br\r\nRange: bytes=0-1\r\n"
                             "If-Range: x\r\nTE: trailers\r\nConnection: Authorization\r\n"
                             "Proxy-Authorization: x\r\nMax-Forwards: 0\r\n\r\n"),
                     LINE END);
    ck_assert_str_eq(rewrite(1, LINE "Connection: close\r\n\r\n"),
                     LINE "Connection: close\r\n" END);
    ck_assert_str_eq(rewrite(1, LINE "Accept: text/html;q=1\r\naccept: a/b; Charset=IBM500, c/d\r\n"
                                     "\r\n"),
                     LINE "Accept: text/html;q=1\r\n" END);
}
END_TEST

/* No line of these is left, and each is one for this host without it. */
static void are_taken_out(const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char lines[256];
        snprintf(lines, sizeof lines, LINE "%s: mine\r\nX: y\r\n\r\n", names[i]);
        ck_assert_str_eq(rewrite(1, lines), LINE "X: y\r\n" END);
    }
}
#define ARE_TAKEN_OUT(...)                            \
    are_taken_out((const char *const[]){__VA_ARGS__}, \
                  sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

START_TEST(names_have_many_spellings)
{
    has(0, GIVEN(.name = "A", .header = "X-Api-Key", .format = "{}"));
    ARE_TAKEN_OUT("X-Api-Key", "X_Api_Key", "X.Api.Key", "x_api-KEY", "X~Api'Key", "AUTHORIZATION",
                  "Accept_Encoding", "Keep.Alive", "proxy_authorization", "If_Range");
    /* The placeholder is replaced under the name itself only. */
    ck_assert_str_eq(rewrite(1, LINE "X_Api_Key: @\r\n\r\n"), LINE END);
    ck_assert_int_eq(notes(BC_SECRET_OUTSIDE), 1);
    ck_assert_str_eq(rewrite(1, LINE "XApiKey: a\r\nX-Api-Key2: b\r\nx-api-key: @\r\n\r\n"),
                     LINE "XApiKey: a\r\nX-Api-Key2: b\r\nX-Api-Key: " VALUE "\r\n" END);
}
END_TEST

START_TEST(what_asks_for_a_part_or_another_form_is_taken_out)
{
    has(0, GIVEN(.name = "A"));
    ARE_TAKEN_OUT("Range", "If-Range", "Request-Range", "X-MS-Range", "x_ms_range", "A-IM", "a_im",
                  "Accept-Charset", "Accept.Encoding", "Content_Range");
    /* That of an upload asks for nothing: without it a server would write the part as a whole. */
    ck_assert_str_eq(rewrite(1, LINE "Content-Range: bytes 0-1/9\r\nOrange: x\r\n\r\n"),
                     LINE "Content-Range: bytes 0-1/9\r\nOrange: x\r\n" END);
}
END_TEST

START_TEST(what_says_that_a_request_is_another_is_taken_out)
{
    has(0, GIVEN(.name = "A"));
    ARE_TAKEN_OUT("X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override", "x_http_method",
                  "X-Original-URL", "X-Original-URI", "X-Original-Method", "X-Original-Host",
                  "X-Rewrite-URL", "X_Rewrite.Url", "X-Forwarded-Host", "X-Forwarded-Prefix",
                  "X-Forwarded-Path", "X-Forwarded-Uri", "X-Forwarded-For", "X-Forwarded-Method",
                  "X_FORWARDED_PROTO", "X-Forwarded", "Forwarded", "X-Host", "X-HTTP-Host-Override",
                  "X-HTTP-Path-Override", "X-Override-URL", "X-Proxy-URL", "X-Replaced-Path",
                  "X-Envoy-Original-Path", "Base-Url", "Http-Url", "Request-Uri");
    ck_assert_str_eq(rewrite(1, LINE "X-Hosts: x\r\nMethod: y\r\nX-Original: z\r\n\r\n"),
                     LINE "X-Hosts: x\r\nMethod: y\r\nX-Original: z\r\n" END);
    /* Also the secret's own field, but for the value. */
    has(0, GIVEN(.name = "A", .header = "X-Forwarded-Access-Token", .format = "{}"));
    ck_assert_str_eq(rewrite(1, LINE "X-Forwarded-Access-Token: @\r\n\r\n"),
                     LINE "X-Forwarded-Access-Token: " VALUE "\r\n" END);
}
END_TEST

START_TEST(several_secrets_of_a_host)
{
    has(0, GIVEN(.name = "A", .methods = LIST("POST")));
    has(1, GIVEN(.name = "B", .header = "X-Key", .format = "{}", .value = "fedcba9876543210",
                 .value_len = 16));
    char lines[512];
    snprintf(lines, sizeof lines, LINE "X-Key: %s\r\nAuthorization: Bearer @\r\n\r\n",
             secrets[1].placeholder);
    ck_assert_str_eq(rewrite(2, lines), LINE "X-Key: fedcba9876543210\r\n" END);
    ck_assert_int_eq(notes(BC_SECRET_NO_METHOD), 1);
    ck_assert_int_eq(notes(BC_SECRET_USED), 1);
    /* One in the other's place is none. */
    ck_assert_str_eq(rewrite(2, LINE "X-Key: @\r\n\r\n"), LINE END);
    ck_assert_int_eq(notes(BC_SECRET_OUTSIDE), 1);
}
END_TEST

START_TEST(the_strict_refuse)
{
    has(0, GIVEN(.name = "A", .paths = LIST("/repos"),
                 .on_guest_authorization = BARCHAN_GUEST_AUTHORIZATION_REFUSE));
    rewrite(1, LINE "Authorization: mine\r\n\r\n");
    ck_assert(report.refused);
    rewrite(1, "GET /x HTTP/1.1\r\nHost: a.example\r\nAuthorization: Bearer @\r\n\r\n");
    ck_assert(report.refused);
    rewrite(1, LINE "Authorization: Bearer @\r\nCookie: @\r\n\r\n");
    ck_assert(!report.refused);
}
END_TEST

START_TEST(notes_hold_no_value)
{
    has(0, GIVEN(.name = "A"));
    for (int note = 0; note < BC_SECRET_NOTE_COUNT; note++) {
        char text[256];
        bc_secret_note_text(&secrets[0], (bc_secret_note)note, text, sizeof text);
        ck_assert_uint_gt(strlen(text), 10);
        ck_assert_ptr_null(strstr(text, VALUE));
        bc_secret_note_text(NULL, (bc_secret_note)note, text, sizeof text);
    }
}
END_TEST

SUITE_MAIN("egress secret head", NULL, forget_secrets, the_value_takes_the_placeholders_place,
           frames_are_written_anew, a_field_has_one_value, elsewhere_it_stays_a_word,
           one_of_another_host, what_would_hide_an_answer_is_taken_out, names_have_many_spellings,
           what_asks_for_a_part_or_another_form_is_taken_out,
           what_says_that_a_request_is_another_is_taken_out, several_secrets_of_a_host,
           the_strict_refuse, notes_hold_no_value)
