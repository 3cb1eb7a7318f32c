/* The host in the head of a request: found in every cut of it, or refused. */
#include "egress/request_head.h"
#include "suite.h"
#include <stdio.h>
#include <stdlib.h>

/* All cuts of it, each in memory of exactly its size: what is bad or done stays so, and what is
 * done says the same. Gives the verdict about the whole. */
static bc_sniff read_growing(const char *text, size_t size, bc_request_head *out)
{
    bc_request_head last = {.minor = 0};
    bc_sniff sniff = BC_SNIFF_MORE;
    for (size_t len = 0; len <= size; len++) {
        char *copy = malloc(len > 0 ? len : 1);
        memcpy(copy, text, len);
        bc_sniff now = bc_request_head_read(copy, len, out);
        bc_sniff looks = bc_looks_like_request(copy, len);
        free(copy);
        if (now == BC_SNIFF_DONE) REQUIRE(looks == BC_SNIFF_DONE);
        if (looks == BC_SNIFF_BAD) REQUIRE(now == BC_SNIFF_BAD);
        if (sniff != BC_SNIFF_MORE) REQUIRE(now == sniff);
        if (sniff == BC_SNIFF_DONE) REQUIRE(memcmp(out, &last, sizeof last) == 0);
        if (now != BC_SNIFF_DONE) REQUIRE(out->host[0] == '\0' && out->head_len == 0);
        sniff = now;
        last = *out;
    }
    return sniff;
}

static bc_sniff read_text(const char *text, bc_request_head *out)
{
    return read_growing(text, strlen(text), out);
}

START_TEST(the_host_is_found)
{
    static const struct {
        const char *text, *method, *host;
        unsigned port;
        int minor;
        bool connect, absolute;
    } cases[] = {
        {"GET / HTTP/1.1\r\nHost: example.com\r\n\r\n", "GET", "example.com", 0, 1, 0, 0},
        {"GET / HTTP/1.1\r\nhost:Example.COM.:8080\r\n\r\n", "GET", "example.com", 8080, 1, 0, 0},
        {"POST /a?b HTTP/1.1\r\nA: b\r\nHOST: \t example.com \t\r\n\r\n", "POST", "example.com", 0,
         1, 0, 0},
        {"\r\n\r\nGET / HTTP/1.1\r\nHost: example.com\r\n\r\n", "GET", "example.com", 0, 1, 0, 0},
        {"GET / HTTP/1.0\r\n\r\n", "GET", "", 0, 0, 0, 0},
        {"GET / HTTP/1.0\r\nHost: example.com\r\n\r\n", "GET", "example.com", 0, 0, 0, 0},
        {"GET http://example.com/a HTTP/1.0\r\n\r\n", "GET", "example.com", 0, 0, 0, 1},
        {"GET http://example.com HTTP/1.1\r\nHost: EXAMPLE.com:80\r\n\r\n", "GET", "example.com", 0,
         1, 0, 1},
        {"GET HTTP://example.com:80?a HTTP/1.1\r\nHost: example.com\r\n\r\n", "GET", "example.com",
         80, 1, 0, 1},
        {"GET https://example.com:8443/ HTTP/1.1\r\nHost: example.com:8443\r\n\r\n", "GET",
         "example.com", 8443, 1, 0, 1},
        {"CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n", "CONNECT",
         "example.com", 443, 1, 1, 0},
        {"CONNECT example.com:443 HTTP/1.1\r\nHost: example.com\r\n\r\n", "CONNECT", "example.com",
         443, 1, 1, 0},
        {"CONNECT [2606:4700::1]:443 HTTP/1.0\r\n\r\n", "CONNECT", "2606:4700::1", 443, 0, 1, 0},
        {"GET / HTTP/1.1\r\nHost: [::1]\r\n\r\n", "GET", "::1", 0, 1, 0, 0},
        {"GET / HTTP/1.1\r\nHost: [::0001]:81\r\n\r\n", "GET", "::1", 81, 1, 0, 0},
        {"GET / HTTP/1.1\r\nHost: 10.0.0.1:81\r\n\r\n", "GET", "10.0.0.1", 81, 1, 0, 0},
        {"OPTIONS * HTTP/1.1\r\nHost: example.com\r\n\r\n", "OPTIONS", "example.com", 0, 1, 0, 0},
        {"VERSION-CONTROL / HTTP/1.1\r\nHost: a\r\n\r\n", "VERSION-CONTROL", "a", 0, 1, 0, 0},
        {"GET / HTTP/1.1\r\nHost: a\r\nX: \xc3\xa4 \xff\r\nEmpty:\r\n\r\n", "GET", "a", 0, 1, 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bc_request_head head;
        ck_assert_msg(read_text(cases[i].text, &head) == BC_SNIFF_DONE, "case %zu", i);
        ck_assert_str_eq(head.method, cases[i].method);
        ck_assert_str_eq(head.host, cases[i].host);
        ck_assert_uint_eq(head.port, cases[i].port);
        ck_assert_int_eq(head.minor, cases[i].minor);
        ck_assert(head.connect == cases[i].connect && head.absolute == cases[i].absolute);
        ck_assert(!head.http2_preface && !head.upgrade);
        ck_assert_uint_eq(head.head_len, strlen(cases[i].text));
    }
}
END_TEST

START_TEST(what_two_readers_read_in_two_ways_is_bad)
{
    static const char *const cases[] = {
        /* Host */
        "GET / HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\nHost:\r\n\r\n",
        "GET / HTTP/1.0\r\nHost:\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nhOST: a\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a, b\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a b\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: u@a\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: u:p@a:80\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: http://a\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a:\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a:0\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a:080\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a:65536\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a:80:80\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a..\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: 127.1\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: 0x7f000001\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: ::1\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: [::1\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: [::1]x\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: [::1%25lo]\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: [127.0.0.1]\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: [a]\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a%2eb\r\n\r\n",
        /* the target */
        "GET http://a/ HTTP/1.1\r\nHost: b\r\n\r\n",
        "GET http://a/ HTTP/1.1\r\nHost: a:81\r\n\r\n",
        "GET http://a:81/ HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET http://a/ HTTP/1.1\r\n\r\n",
        "GET http://u@a/ HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET http://a\\@b/ HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET http:/// HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET ftp://a/ HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET a HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET * HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET a:80 HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /a#/../b HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /a?b#c HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET http://a#/b HTTP/1.1\r\nHost: a\r\n\r\n",
        "CONNECT a HTTP/1.1\r\nHost: a\r\n\r\n",
        "CONNECT /a HTTP/1.1\r\nHost: a\r\n\r\n",
        "CONNECT a:443 HTTP/1.1\r\nHost: b:443\r\n\r\n",
        "CONNECT a:443 HTTP/1.1\r\nHost: a:80\r\n\r\n",
        "CONNECT a:443 HTTP/1.1\r\n\r\n",
        "CONNECT u@a:443 HTTP/1.1\r\nHost: a\r\n\r\n",
        "CONNECT http://a:443/ HTTP/1.1\r\nHost: a\r\n\r\n",
        /* the request line */
        "GET  / HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /  HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET\t/ HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /\tHTTP/1.1\r\nHost: a\r\n\r\n",
        " GET / HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET / HTTP/1.1 \r\nHost: a\r\n\r\n",
        "GET /\r\nHost: a\r\n\r\n",
        "GET\r\n\r\n",
        "GET / HTTP/1.2\r\nHost: a\r\n\r\n",
        "GET / HTTP/2.0\r\nHost: a\r\n\r\n",
        "GET / http/1.1\r\nHost: a\r\n\r\n",
        "GET / HTTP/1.10\r\nHost: a\r\n\r\n",
        "GET / HTTP/01.1\r\nHost: a\r\n\r\n",
        "GET /\xc3\xa4 HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /\x0b HTTP/1.1\r\nHost: a\r\n\r\n",
        "G@T / HTTP/1.1\r\nHost: a\r\n\r\n",
        "SIXTEENLETTERSIS / HTTP/1.1\r\nHost: a\r\n\r\n",
        "\r\n\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
        "\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
        "\r\n\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
        "PRI * HTTP/2.0\r\n\nSM\r\n\r\n",
        "PRI * HTTP/1.1\r\nHost: a\r\n\r\n",
        "\r\nPRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        /* fields */
        "GET / HTTP/1.1\r\nHost : a\r\n\r\n",
        "GET / HTTP/1.1\r\n Host: a\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nX: b\r\n c\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\n\tX: b\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nX\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\n: x\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nX(y): b\r\n\r\n",
        "GET / HTTP/1.1\r\nHost\x0b: a\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\rX: b\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\nX: b\r\n\r\n",
        "GET / HTTP/1.1\nHost: a\n\n",
        "GET / HTTP/1.1\r\nHost: a\r\n\n",
        "GET / HTTP/1.1\r\nHost: a\r\n\r\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nX: \x7f\r\n\r\n",
        /* the body's length */
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1, 1\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +1\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0x1\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length:\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9999999999999999999\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
        ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: "
         "chunked\r\n\r\n"),
        "POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
        /* what becomes the same variable in a server's program */
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer_Encoding: chunked\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nTRANSFER.ENCODING: chunked\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nContent_Length: 1\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nContent~length: 1\r\nContent-Length: 1\r\n\r\n",
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bc_request_head head;
        ck_assert_msg(read_text(cases[i], &head) == BC_SNIFF_BAD, "%s", cases[i]);
    }
}
END_TEST

/* Each good byte of a head in turn replaced by NUL. */
START_TEST(a_nul_is_bad_everywhere)
{
    static const char good[] = "GET /a HTTP/1.1\r\nHost: example.com\r\nX: y\r\n\r\n";
    bc_request_head head;
    for (size_t i = 0; i < sizeof good - 1; i++) {
        char text[sizeof good];
        memcpy(text, good, sizeof good);
        text[i] = '\0';
        ck_assert_int_eq(read_growing(text, sizeof good - 1, &head), BC_SNIFF_BAD);
    }
}
END_TEST

START_TEST(the_framing_of_the_body_is_told)
{
    static const struct {
        const char *fields;
        int64_t len;
        bool chunked, upgrade, websocket;
    } cases[] = {
        {"", 0, false, false, false},
        {"Content-Length: 0\r\n", 0, false, false, false},
        {"CONTENT-LENGTH: 007\r\n", 7, false, false, false},
        {"Content-Length: 999999999999999999\r\n", 999999999999999999, false, false, false},
        {"TRANSFER-ENCODING: Chunked\r\n", 0, true, false, false},
        {"Upgrade: WebSocket\r\nConnection: Upgrade\r\n", 0, false, true, true},
        {"Upgrade: websocket, h2c\r\n", 0, false, true, false},
        {"Upgrade: h2c\r\nUpgrade: websocket\r\n", 0, false, true, false},
        {"Upgrade: websocket\r\nUpgrade: h2c\r\n", 0, false, true, false},
        {"UPGRADE: h2c\r\n", 0, false, true, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[300];
        bc_request_head head;
        snprintf(text, sizeof text, "POST / HTTP/1.1\r\nHost: a\r\n%s\r\nbody", cases[i].fields);
        ck_assert_int_eq(read_text(text, &head), BC_SNIFF_DONE);
        ck_assert_int_eq(head.body_len, cases[i].len);
        ck_assert(head.chunked == cases[i].chunked && head.upgrade == cases[i].upgrade);
        ck_assert(head.websocket == cases[i].websocket);
        ck_assert_uint_eq(head.head_len, strlen(text) - 4);
    }
}
END_TEST

START_TEST(the_preface_of_http2_is_known)
{
    bc_request_head head;
    ck_assert_int_eq(read_text("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", &head), BC_SNIFF_DONE);
    ck_assert(head.http2_preface);
    ck_assert_str_eq(head.host, "");
    ck_assert_int_eq(read_text("PRI * HTTP/2.0\r\n\r", &head), BC_SNIFF_MORE);
    ck_assert_int_eq(read_text("PRI / HTTP/1.1\r\nHost: a\r\n\r\n", &head), BC_SNIFF_DONE);
    ck_assert(!head.http2_preface);
}
END_TEST

START_TEST(a_request_is_told_from_other_protocols)
{
    static const struct {
        const char *text;
        size_t len;
        bc_sniff sniff;
    } cases[] = {
        {"", 0, BC_SNIFF_MORE},
        {"G", 1, BC_SNIFF_MORE},
        {"GET", 3, BC_SNIFF_MORE},
        {"GET ", 4, BC_SNIFF_DONE},
        {"\r\nGET ", 6, BC_SNIFF_DONE},
        {"\r", 1, BC_SNIFF_MORE},
        {"patch /", 7, BC_SNIFF_DONE},
        {"M-SEARCH ", 9, BC_SNIFF_DONE},
        {"PRI * HTTP/2.0", 14, BC_SNIFF_DONE},
        {"SSH-2.0-OpenSSH_9.2 x", 21, BC_SNIFF_BAD},
        {"SSH-2", 5, BC_SNIFF_BAD},
        {"\x16\3\1", 3, BC_SNIFF_BAD},
        {"\0\0\0\x08", 4, BC_SNIFF_BAD},
        {"*1\r\n", 4, BC_SNIFF_BAD},
        {"0032git-upload-pack /", 21, BC_SNIFF_BAD},
        {"PING\r\n", 6, BC_SNIFF_BAD},
        {"\x05\1", 2, BC_SNIFF_BAD},
        {" GET /", 6, BC_SNIFF_BAD},
        {"-GET /", 6, BC_SNIFF_BAD},
        {"FIFTEENLETTERSA", 15, BC_SNIFF_MORE},
        {"SIXTEENLETTERSAB", 16, BC_SNIFF_BAD},
        {"FIFTEENLETTERSA ", 16, BC_SNIFF_DONE},
        {"\r\n\r\n\r\n", 6, BC_SNIFF_BAD},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ck_assert_msg(bc_looks_like_request(cases[i].text, cases[i].len) == cases[i].sniff,
                      "case %zu", i);
}
END_TEST

START_TEST(names_are_compared_as_servers_do)
{
    static const char *const same[] = {"X-Key", "x-kEY", "X_Key", "X.Key", "x~key", "X'KEY"};
    static const char *const other[] = {"", "X-Ke", "X-Keys", "XKey", "X-K-y", "X--Key", "X1Key"};
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        ck_assert_msg(bc_same_field(same[i], strlen(same[i]), "X-Key"), "%s", same[i]);
        ck_assert_msg(bc_same_field("x-key", 5, same[i]), "%s", same[i]);
    }
    for (size_t i = 0; i < sizeof other / sizeof *other; i++)
        ck_assert_msg(!bc_same_field(other[i], strlen(other[i]), "X-Key"), "%s", other[i]);
}
END_TEST

static size_t padded(char *text, size_t size, size_t field, const char *end)
{
    size_t at = (size_t)snprintf(text, size, "GET / HTTP/1.1\r\nHost: a\r\nX: ");
    memset(text + at, 'x', field);
    return at + field + (size_t)snprintf(text + at + field, size - at - field, "%s", end);
}

START_TEST(its_size_has_an_end)
{
    static char text[2 * BC_REQUEST_HEAD_MAX];
    bc_request_head head;
    size_t rest = padded(text, sizeof text, 0, "\r\n\r\n");
    size_t most = BC_REQUEST_HEAD_MAX - rest;
    size_t len = padded(text, sizeof text, most, "\r\n\r\n");
    ck_assert_uint_eq(len, BC_REQUEST_HEAD_MAX);
    ck_assert_int_eq(bc_request_head_read(text, len - 1, &head), BC_SNIFF_MORE);
    ck_assert_int_eq(bc_request_head_read(text, len, &head), BC_SNIFF_DONE);
    ck_assert_int_eq(bc_request_head_read(text, len + 100, &head), BC_SNIFF_DONE);
    len = padded(text, sizeof text, most + 1, "\r\n\r\n");
    ck_assert_int_eq(bc_request_head_read(text, len, &head), BC_SNIFF_BAD);
    ck_assert_int_eq(bc_request_head_read(text, len - 1, &head), BC_SNIFF_BAD);
    for (int fields = BC_REQUEST_MAX_FIELDS; fields <= BC_REQUEST_MAX_FIELDS + 1; fields++) {
        size_t at = (size_t)snprintf(text, sizeof text, "GET / HTTP/1.1\r\nHost: a\r\n");
        for (int i = 1; i < fields; i++)
            at += (size_t)snprintf(text + at, sizeof text - at, "x:\r\n");
        at += (size_t)snprintf(text + at, sizeof text - at, "\r\n");
        ck_assert_int_eq(bc_request_head_read(text, at, &head),
                         fields == BC_REQUEST_MAX_FIELDS ? BC_SNIFF_DONE : BC_SNIFF_BAD);
    }
}
END_TEST

UNIT_MAIN("egress_request_head", the_host_is_found, what_two_readers_read_in_two_ways_is_bad,
          a_nul_is_bad_everywhere, the_framing_of_the_body_is_told, the_preface_of_http2_is_known,
          a_request_is_told_from_other_protocols, names_are_compared_as_servers_do,
          its_size_has_an_end)
