/* The name in a ClientHello: found in every cut of it, or refused. */
#include "egress/client_hello.h"
#include "suite.h"
#include <stdio.h>
#include <stdlib.h>

typedef struct bytes {
    unsigned char data[40000];
    size_t len;
} bytes;

static void put(bytes *b, const void *data, size_t len)
{
    ck_assert_uint_le(b->len + len, sizeof b->data);
    memcpy(b->data + b->len, data, len);
    b->len += len;
}

static void put_number(bytes *b, size_t value, unsigned width)
{
    for (unsigned i = width; i-- > 0;) {
        unsigned char byte = (unsigned char)(value >> 8 * i);
        put(b, &byte, 1);
    }
}

static void put_extension(bytes *b, unsigned type, const void *data, size_t len)
{
    put_number(b, type, 2);
    put_number(b, len, 2);
    put(b, data, len);
}

static void put_server_name(bytes *b, const char *name, size_t len)
{
    static bytes body;
    body.len = 0;
    put_number(&body, len + 3, 2);
    put_number(&body, 0, 1);
    put_number(&body, len, 2);
    put(&body, name, len);
    put_extension(b, 0, body.data, body.len);
}

/* A ClientHello with these extensions; NULL: without any. */
static bytes message_of(const bytes *extensions)
{
    static bytes body, message;
    body.len = message.len = 0;
    put_number(&body, 0x0303, 2);
    for (int i = 0; i < 32; i++)
        put_number(&body, (size_t)i, 1);
    put_number(&body, 32, 1);
    for (int i = 0; i < 32; i++)
        put_number(&body, (size_t)i, 1);
    put_number(&body, 4, 2);
    put_number(&body, 0x13011302, 4);
    put_number(&body, 0x0100, 2);
    if (extensions != NULL) {
        put_number(&body, extensions->len, 2);
        put(&body, extensions->data, extensions->len);
    }
    put_number(&message, 1, 1);
    put_number(&message, body.len, 3);
    put(&message, body.data, body.len);
    return message;
}

/* In records of at most this many bytes. */
static bytes records_of(const bytes *message, size_t most)
{
    static bytes out;
    out.len = 0;
    for (size_t at = 0; at < message->len; at += most) {
        size_t n = message->len - at < most ? message->len - at : most;
        put_number(&out, 22, 1);
        put_number(&out, 0x0301, 2);
        put_number(&out, n, 2);
        put(&out, message->data + at, n);
    }
    return out;
}

/* All cuts of it, each in memory of exactly its size: what is bad or done stays so, and what is
 * done says the same. Gives the verdict about the whole. */
static bc_sniff read_growing(const bytes *b, bc_client_hello *out)
{
    bc_client_hello last = {.alpn = false};
    bc_sniff sniff = BC_SNIFF_MORE;
    for (size_t len = 0; len <= b->len; len++) {
        unsigned char *copy = malloc(len > 0 ? len : 1);
        memcpy(copy, b->data, len);
        bc_sniff now = bc_client_hello_read(copy, len, out);
        bc_sniff looks = bc_looks_like_client_hello(copy, len);
        free(copy);
        if (now == BC_SNIFF_DONE) REQUIRE(looks == BC_SNIFF_DONE);
        if (looks == BC_SNIFF_BAD) REQUIRE(now == BC_SNIFF_BAD);
        if (sniff != BC_SNIFF_MORE) REQUIRE(now == sniff);
        if (sniff == BC_SNIFF_DONE) REQUIRE(memcmp(out, &last, sizeof last) == 0);
        if (now != BC_SNIFF_DONE) REQUIRE(out->server_name[0] == '\0' && !out->encrypted);
        sniff = now;
        last = *out;
    }
    return sniff;
}

static bc_sniff read_extensions(const bytes *extensions, bc_client_hello *out)
{
    bytes message = message_of(extensions);
    bytes whole = records_of(&message, 16384);
    return read_growing(&whole, out);
}

static bc_sniff read_name(const char *name, size_t len, bc_client_hello *out)
{
    bytes extensions = {.len = 0};
    put_server_name(&extensions, name, len);
    return read_extensions(&extensions, out);
}

START_TEST(the_name_is_found_in_records_of_any_size)
{
    static const size_t sizes[] = {1, 2, 3, 4, 5, 7, 50, 100, 16384};
    bytes extensions = {.len = 0};
    bc_client_hello hello;
    put_extension(&extensions, 43, "\2\3\4", 3);
    put_server_name(&extensions, "Api.Example.COM", 15);
    put_extension(&extensions, 16, "\0\14\2h2\10http/1.1", 14);
    bytes message = message_of(&extensions);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        bytes whole = records_of(&message, sizes[i]);
        ck_assert_int_eq(read_growing(&whole, &hello), BC_SNIFF_DONE);
        ck_assert_str_eq(hello.server_name, "api.example.com");
        ck_assert(hello.alpn && hello.alpn_h2 && hello.alpn_http1);
        ck_assert(!hello.encrypted && !hello.early_data);
        /* What follows in records of its own is not read. */
        put(&whole, "anything", 8);
        ck_assert_int_eq(read_growing(&whole, &hello), BC_SNIFF_DONE);
    }
}
END_TEST

START_TEST(none_is_an_empty_name)
{
    bytes none = {.len = 0};
    bc_client_hello hello;
    ck_assert_int_eq(read_extensions(&none, &hello), BC_SNIFF_DONE);
    ck_assert_str_eq(hello.server_name, "");
    ck_assert(!hello.alpn && !hello.encrypted);
    ck_assert_int_eq(read_extensions(NULL, &hello), BC_SNIFF_DONE);
    ck_assert_str_eq(hello.server_name, "");
}
END_TEST

START_TEST(names_that_may_mean_another_are_bad)
{
    static const struct {
        const char *name;
        size_t len;
    } cases[] = {
        {"", 0},
        {"example.com.", 12},
        {"example.com\0", 12},
        {"example.com\0.example.org", 24},
        {"exa mple.com", 12},
        {"*.example.com", 13},
        {"127.0.0.1", 9},
        {"127.1", 5},
        {"::1", 3},
        {"[::1]", 5},
        {"2130706433", 10},
        {"ex\xc3\xa4mple.com", 12},
        {"example..com", 12},
        {"example.com:443", 15},
        {"user@example.com", 16},
        {".", 1},
    };
    bc_client_hello hello;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ck_assert_msg(read_name(cases[i].name, cases[i].len, &hello) == BC_SNIFF_BAD, "case %zu",
                      i);
    char longest[300];
    memset(longest, 'a', sizeof longest);
    for (size_t i = 60; i < sizeof longest; i += 60)
        longest[i] = '.';
    ck_assert_int_eq(read_name(longest, 253, &hello), BC_SNIFF_DONE);
    ck_assert_uint_eq(strlen(hello.server_name), 253);
    ck_assert_int_eq(read_name(longest, 254, &hello), BC_SNIFF_BAD);
}
END_TEST

START_TEST(a_list_has_one_name)
{
    static const struct {
        const char *data;
        size_t len;
    } cases[] = {
        {"", 0},
        {"\0\0", 2},
        {"\0\4\0\0\1", 5},           /* cut */
        {"\0\4\0\0\1ab", 7},         /* a byte behind the list */
        {"\0\5\0\0\1ab", 7},         /* a byte behind the name */
        {"\0\10\0\0\1a\0\0\1b", 10}, /* two names */
        {"\0\10\0\0\1a\0\0\1a", 10}, /* twice the same */
        {"\0\10\0\0\1a\1\0\1b", 10}, /* and one of another type */
        {"\0\4\1\0\1a", 6},          /* another type only */
        {"\0\4\0\0\2a", 6},          /* a name longer than its list */
        {"\0\4\0\xff\xff"
         "a",
         6},
        {"\xff\xff\0\0\1a", 6},
    };
    bc_client_hello hello;
    bytes good = {.len = 0};
    put_extension(&good, 0, "\0\4\0\0\1a", 6);
    ck_assert_int_eq(read_extensions(&good, &hello), BC_SNIFF_DONE);
    ck_assert_str_eq(hello.server_name, "a");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bytes extensions = {.len = 0};
        put_extension(&extensions, 0, cases[i].data, cases[i].len);
        ck_assert_msg(read_extensions(&extensions, &hello) == BC_SNIFF_BAD, "case %zu", i);
    }
}
END_TEST

START_TEST(an_extension_comes_once)
{
    static const unsigned types[] = {0, 16, 43, 0xfe0d, 0x1234, 0xffff};
    bc_client_hello hello;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        for (int twice = 0; twice < 2; twice++) {
            bytes extensions = {.len = 0};
            for (int k = 0; k <= twice; k++) {
                if (types[i] == 0) put_server_name(&extensions, "example.com", 11);
                if (types[i] == 16) put_extension(&extensions, 16, "\0\3\2h2", 5);
                if (types[i] != 0 && types[i] != 16) put_extension(&extensions, types[i], "x", 1);
                put_extension(&extensions, 100 + (unsigned)k, "", 0);
            }
            ck_assert_int_eq(read_extensions(&extensions, &hello),
                             twice ? BC_SNIFF_BAD : BC_SNIFF_DONE);
        }
    }
}
END_TEST

START_TEST(hidden_names_are_seen)
{
    static const struct {
        unsigned type;
        bool hidden;
    } cases[] = {{0xfe0d, true},  {0xfe0a, true},  {0xfe08, true},  {0xffce, true}, {0xfd00, true},
                 {0x0a0a, false}, {0xff01, false}, {0xfe0e, false}, {51, false}};
    bc_client_hello hello;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bytes extensions = {.len = 0};
        put_extension(&extensions, cases[i].type, "abc", 3);
        put_server_name(&extensions, "example.com", 11);
        ck_assert_int_eq(read_extensions(&extensions, &hello), BC_SNIFF_DONE);
        ck_assert_str_eq(hello.server_name, "example.com");
        ck_assert_msg(hello.encrypted == cases[i].hidden, "%x", cases[i].type);
    }
    bytes early = {.len = 0};
    put_extension(&early, 42, "", 0);
    ck_assert_int_eq(read_extensions(&early, &hello), BC_SNIFF_DONE);
    ck_assert(hello.early_data);
}
END_TEST

START_TEST(protocol_lists_are_checked)
{
    static const struct {
        const char *data;
        size_t len;
        bc_sniff sniff;
        bool h2, http1;
    } cases[] = {
        {"\0\3\2h2", 5, BC_SNIFF_DONE, true, false},
        {"\0\11\10http/1.1", 11, BC_SNIFF_DONE, false, true},
        {"\0\11\10http/1.0", 11, BC_SNIFF_DONE, false, true},
        {"\0\11\10http/1.2", 11, BC_SNIFF_DONE, false, false},
        {"\0\4\3h2c", 6, BC_SNIFF_DONE, false, false},
        {"\0\0", 2, BC_SNIFF_BAD, false, false},
        {"", 0, BC_SNIFF_BAD, false, false},
        {"\0\1\0", 3, BC_SNIFF_BAD, false, false},
        {"\0\3\3h2", 5, BC_SNIFF_BAD, false, false},
        {"\0\2\2h2", 5, BC_SNIFF_BAD, false, false},
        {"\0\3\2h2x", 6, BC_SNIFF_BAD, false, false},
    };
    bc_client_hello hello;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bytes extensions = {.len = 0};
        put_extension(&extensions, 16, cases[i].data, cases[i].len);
        ck_assert_msg(read_extensions(&extensions, &hello) == cases[i].sniff, "case %zu", i);
        ck_assert(hello.alpn_h2 == cases[i].h2 && hello.alpn_http1 == cases[i].http1);
    }
}
END_TEST

/* The lengths before the extensions, and what stands behind them. */
START_TEST(the_parts_must_fit)
{
    static const struct {
        size_t session, ciphers;
        const char *compressions;
        size_t compressions_len, behind;
        bc_sniff sniff;
    } cases[] = {
        {0, 2, "\0", 1, 0, BC_SNIFF_DONE}, {32, 4, "\1\0", 2, 0, BC_SNIFF_DONE},
        {33, 2, "\0", 1, 0, BC_SNIFF_BAD}, {0, 0, "\0", 1, 0, BC_SNIFF_BAD},
        {0, 3, "\0", 1, 0, BC_SNIFF_BAD},  {0, 2, "\0", 0, 0, BC_SNIFF_BAD},
        {0, 2, "\1", 1, 0, BC_SNIFF_BAD},  {0, 2, "\0", 1, 1, BC_SNIFF_BAD},
    };
    static const unsigned char zeros[64];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bytes body = {.len = 0}, message = {.len = 0};
        bc_client_hello hello;
        put_number(&body, 0x0303, 2);
        put(&body, zeros, 32);
        put_number(&body, cases[i].session, 1);
        put(&body, zeros, cases[i].session);
        put_number(&body, cases[i].ciphers, 2);
        put(&body, zeros, cases[i].ciphers);
        put_number(&body, cases[i].compressions_len, 1);
        put(&body, cases[i].compressions, cases[i].compressions_len);
        put_number(&body, 0, 2); /* no extensions */
        put(&body, zeros, cases[i].behind);
        put_number(&message, 1, 1);
        put_number(&message, body.len, 3);
        put(&message, body.data, body.len);
        bytes whole = records_of(&message, 16384);
        ck_assert_msg(read_growing(&whole, &hello) == cases[i].sniff, "case %zu", i);
    }
}
END_TEST

/* Each byte of a good one in turn set to each value: never a crash, never another name. */
START_TEST(a_changed_byte_gives_no_other_verdict_than_these)
{
    bytes extensions = {.len = 0};
    bc_client_hello hello;
    put_server_name(&extensions, "example.com", 11);
    bytes message = message_of(&extensions);
    bytes whole = records_of(&message, 47);
    const char *name = memmem(whole.data, whole.len, "example.com", 11);
    ck_assert_ptr_null(name); /* it is cut by a record */
    for (size_t at = 0; at < whole.len; at++) {
        unsigned char before = whole.data[at];
        for (int value = 0; value < 256; value++) {
            whole.data[at] = (unsigned char)value;
            bc_sniff sniff = bc_client_hello_read(whole.data, whole.len, &hello);
            REQUIRE(sniff == BC_SNIFF_DONE || hello.server_name[0] == '\0');
            REQUIRE(strlen(hello.server_name) <= 11);
        }
        whole.data[at] = before;
    }
    ck_assert_int_eq(bc_client_hello_read(whole.data, whole.len, &hello), BC_SNIFF_DONE);
}
END_TEST

START_TEST(what_is_no_hello_is_bad_at_once)
{
    static const struct {
        const char *data;
        size_t len;
    } cases[] = {
        {"G", 1},
        {"GET / HTTP/1.1\r\n", 16},
        {"\x15\3\1\0\2\1\0", 7},
        {"\x17\3\3", 3},
        {"\x16\2", 2},
        {"\x16\3\0", 3},
        {"\x16\3\4", 3},
        {"\x16\xfe\xff", 3},
        {"\x16\3\1\0\0", 5},
        {"\x16\3\1\x40\1", 5},
        {"\x16\3\1\xff\xff", 5},
        {"\x16\3\1\1\0\2", 6},
        {"\x16\3\1\1\0\0", 6},
        {"\x80\x2e\1\3\1", 5},
        {"\x16\3\1\1\0\1\1\0\0", 9},
        {"\x16\3\1\1\0\1\0\x40\0", 9},
        {"\x16\3\1\0\6\1\0\0\1", 9},
        {"\0\0\0\0", 4},
    };
    bc_client_hello hello;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const unsigned char *data = (const unsigned char *)cases[i].data;
        ck_assert_msg(bc_client_hello_read(data, cases[i].len, &hello) == BC_SNIFF_BAD, "case %zu",
                      i);
        if (cases[i].len > 1) {
            bc_sniff before = bc_client_hello_read(data, 0, &hello);
            ck_assert_int_eq(before, BC_SNIFF_MORE);
        }
    }
}
END_TEST

/* Small records cost their headers: a flood of them ends. */
START_TEST(its_size_has_an_end)
{
    bytes extensions = {.len = 0};
    bc_client_hello hello;
    static unsigned char filling[BC_CLIENT_HELLO_MAX];
    put_server_name(&extensions, "example.com", 11);
    put_extension(&extensions, 21, filling, 15000);
    bytes message = message_of(&extensions);
    bytes whole = records_of(&message, 16384);
    ck_assert_int_eq(bc_client_hello_read(whole.data, whole.len, &hello), BC_SNIFF_DONE);
    whole = records_of(&message, 8);
    ck_assert_int_eq(bc_client_hello_read(whole.data, whole.len, &hello), BC_SNIFF_DONE);
    put_extension(&extensions, 22, filling, 2000);
    message = message_of(&extensions);
    whole = records_of(&message, 16384);
    ck_assert_int_eq(bc_client_hello_read(whole.data, whole.len, &hello), BC_SNIFF_BAD);
    /* The length alone says so. */
    ck_assert_int_eq(bc_client_hello_read(whole.data, 9, &hello), BC_SNIFF_BAD);
    extensions.len = 0;
    put_extension(&extensions, 21, filling, 6000);
    message = message_of(&extensions);
    whole = records_of(&message, 1);
    ck_assert_int_eq(bc_client_hello_read(whole.data, BC_CLIENT_HELLO_MAX_BYTES - 1, &hello),
                     BC_SNIFF_MORE);
    ck_assert_int_eq(bc_client_hello_read(whole.data, BC_CLIENT_HELLO_MAX_BYTES, &hello),
                     BC_SNIFF_BAD);
}
END_TEST

UNIT_MAIN("egress_client_hello", the_name_is_found_in_records_of_any_size, none_is_an_empty_name,
          names_that_may_mean_another_are_bad, a_list_has_one_name, an_extension_comes_once,
          hidden_names_are_seen, protocol_lists_are_checked, the_parts_must_fit,
          a_changed_byte_gives_no_other_verdict_than_these, what_is_no_hello_is_bad_at_once,
          its_size_has_an_end)
