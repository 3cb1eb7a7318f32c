/* Each request of a connection is seen, wherever the bytes were cut. */
#include "egress/request_stream.h"
#include "suite.h"
#include <stdio.h>
#include <stdlib.h>

/* The hosts of the requests, "a b c", then "!" when it is bad; all that was passed in `passed`. The
 * bytes come `piece` at a time. */
static const char *hosts(const char *text, size_t piece, size_t *passed)
{
    static char seen[1024];
    bc_request_stream stream = {.state = 0};
    size_t have = 0, size = strlen(text), at = 0, out = 0;
    seen[0] = '\0';
    while (at < size) {
        size_t used, held = have - at;
        char *copy = malloc(held > 0 ? held : 1);
        memcpy(copy, text + at, held);
        bc_sniff sniff = bc_request_stream_step(&stream, copy, held, &used);
        free(copy);
        ck_assert_uint_le(used, held);
        if (sniff == BC_SNIFF_DONE) {
            out += (size_t)snprintf(seen + out, sizeof seen - out, "%s%s ", stream.head.host,
                                    stream.opaque ? "*" : "");
        }
        if (sniff == BC_SNIFF_BAD) {
            ck_assert_uint_eq(used, 0);
            snprintf(seen + out, sizeof seen - out, "!");
            break;
        }
        at += used;
        if (used > 0) continue;
        if (have == size) break;
        have = have + piece < size ? have + piece : size;
    }
    *passed = at;
    return seen;
}

START_TEST(each_request_is_seen)
{
#define A "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
#define B "GET / HTTP/1.1\r\nHost: b\r\n\r\n"
#define CHUNKED "POST / HTTP/1.1\r\nHost: c\r\nTransfer-Encoding: chunked\r\n\r\n"
#define WEBSOCKET "GET / HTTP/1.1\r\nHost: w\r\nUpgrade: websocket\r\n\r\n"
#define LENGTH "POST / HTTP/1.1\r\nHost: l\r\nContent-Length: 30\r\n\r\n"
    static const struct {
        const char *text, *hosts;
        size_t unpassed; /* bytes at the end that are held back */
    } cases[] = {
        {A, "a ", 0},
        {A B A, "a b a ", 0},
        {A "\r\n" B, "a b ", 0},
        /* A body that looks like a request is none, and what follows it is one. */
        {LENGTH "GET / HTTP/1.1\r\nHost: x\r\n\r\n+++" B, "l b ", 0},
        {CHUNKED "1b\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n\r\n0\r\n\r\n" B, "c b ", 0},
        {CHUNKED "1\r\nx\r\n0A\r\n0123456789\r\n000\r\n\r\n" A, "c a ", 0},
        {CHUNKED "0\r\n\r\n" A, "c a ", 0},
        {"POST / HTTP/1.1\r\nHost: z\r\nContent-Length: 0\r\n\r\n" A, "z a ", 0},
        /* Whoever asks for another protocol and goes on with a request is seen to. */
        {"GET / HTTP/1.1\r\nHost: u\r\nUpgrade: h2c\r\n\r\n" B, "u b ", 0},
        {A "GET / HTTP/1.1\r\nHost: u\r\nUpgrade: websocket\r\n\r\n" B, "a u b ", 0},
        {WEBSOCKET B, "w ", sizeof B - 1},
        {"CONNECT u:1 HTTP/1.1\r\nHost: u\r\n\r\n\x16\3\1", "u* ", 0},
        {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "* ", 0},
        {A "PRI * HTTP/2.0\r\n\r\n", "a * ", 0},
        {A "GET / HT", "a ", 8},
        {LENGTH "abc", "l ", 0},
        {CHUNKED "5", "c ", 1},
        {CHUNKED "5\r\nab", "c ", 0},
        {CHUNKED "2\r\nab\r", "c ", 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (size_t piece = 1; piece < 70; piece += piece < 5 ? 1 : 9) {
            size_t passed;
            ck_assert_str_eq(hosts(cases[i].text, piece, &passed), cases[i].hosts);
            ck_assert_uint_eq(passed, strlen(cases[i].text) - cases[i].unpassed);
        }
    }
}
END_TEST

START_TEST(what_could_hide_a_request_is_bad)
{
    static const struct {
        const char *text, *hosts;
    } cases[] = {
        {A "\nGET / HTTP/1.1\r\nHost: b\r\n\r\n", "a !"},
        {A "GET / HTTP/1.1\r\nHost: b\r\nHost: a\r\n\r\n", "a !"},
        {A "\r\n\r\n\r\n", "a !"},
        {CHUNKED "\r\n", "c !"},
        {CHUNKED " 5\r\n", "c !"},
        {CHUNKED "5 \r\n", "c !"},
        {CHUNKED "+5\r\n", "c !"},
        {CHUNKED "0x5\r\n", "c !"},
        {CHUNKED "-1\r\n", "c !"},
        {CHUNKED "5\n", "c !"},
        {CHUNKED "5;a=b\r\n", "c !"},
        {CHUNKED "5\rb\n", "c !"},
        {CHUNKED "1000000000000000\r\n", "c !"},
        {CHUNKED "ffffffffffffffff\r\n", "c !"},
        {CHUNKED "1\r\nab", "c !"},
        {CHUNKED "1\r\na\nb", "c !"},
        {CHUNKED "1\r\na\r0", "c !"},
        {CHUNKED "0\r\nHost: b\r\n\r\n", "c !"},
        {CHUNKED "0\r\n\n", "c !"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (size_t piece = 1; piece < 70; piece += piece < 5 ? 1 : 9) {
            size_t passed;
            ck_assert_msg(strcmp(hosts(cases[i].text, piece, &passed), cases[i].hosts) == 0,
                          "%s in %zu", cases[i].text, piece);
        }
    }
}
END_TEST

/* After a first request for a WebSocket: whether what follows is passed unseen, and the host of the
 * request that it is otherwise. The answer comes `piece` bytes at a time. */
static bool is_opaque_after(const char *answer, size_t piece, const char *follows)
{
    bc_request_stream stream = {.state = 0};
    size_t used, size = strlen(answer);
    bool again = false;
    ck_assert(!bc_request_stream_answer(&stream, "HTTP/1.1 101", 12)); /* to nothing */
    ck_assert_int_eq(bc_request_stream_step(&stream, WEBSOCKET, sizeof WEBSOCKET - 1, &used),
                     BC_SNIFF_DONE);
    ck_assert_int_eq(bc_request_stream_step(&stream, follows, strlen(follows), &used),
                     BC_SNIFF_MORE);
    ck_assert_uint_eq(used, 0);
    for (size_t at = 0; at < size; at += piece) {
        ck_assert(!stream.opaque || again);
        if (bc_request_stream_answer(&stream, answer + at, size - at < piece ? size - at : piece)) {
            ck_assert(!again);
            again = true;
        }
    }
    ck_assert(again);
    bc_sniff sniff = bc_request_stream_step(&stream, follows, strlen(follows), &used);
    if (stream.opaque) {
        ck_assert_uint_eq(used, strlen(follows));
    } else {
        ck_assert_int_eq(sniff, BC_SNIFF_DONE);
        ck_assert_str_eq(stream.head.host, "b");
    }
    return stream.opaque;
}

START_TEST(the_server_decides_about_a_websocket)
{
    for (size_t piece = 1; piece < 14; piece++) {
        ck_assert(is_opaque_after("HTTP/1.1 101 Switching Protocols\r\n", piece, B));
        ck_assert(!is_opaque_after("HTTP/1.1 200 OK\r\n", piece, B));
        ck_assert(!is_opaque_after("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 101 x", piece, B));
        ck_assert(!is_opaque_after("HTTP/1.0 101 x", piece, B));
        ck_assert(!is_opaque_after(" HTTP/1.1 101 x", piece, B));
    }
    static char flood[BC_REQUEST_HEAD_MAX];
    bc_request_stream stream = {.state = 0};
    size_t used;
    ck_assert_int_eq(bc_request_stream_step(&stream, WEBSOCKET, sizeof WEBSOCKET - 1, &used),
                     BC_SNIFF_DONE);
    ck_assert_int_eq(bc_request_stream_step(&stream, flood, sizeof flood - 1, &used),
                     BC_SNIFF_MORE);
    ck_assert_int_eq(bc_request_stream_step(&stream, flood, sizeof flood, &used), BC_SNIFF_BAD);
}
END_TEST

UNIT_MAIN("egress_request_stream", the_server_decides_about_a_websocket, each_request_is_seen,
          what_could_hide_a_request_is_bad)
