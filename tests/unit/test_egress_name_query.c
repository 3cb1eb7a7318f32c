/* DNS: what is asked, and the bytes of what we answer. */
#include "egress/name_query.h"
#include "suite.h"
#include <stdlib.h>
#include <sys/socket.h>

typedef struct message {
    unsigned char data[5000];
    size_t len;
} message;

static void put(message *m, const void *data, size_t len)
{
    memcpy(m->data + m->len, data, len);
    m->len += len;
}

static void put16(message *m, unsigned value)
{
    unsigned char two[] = {(unsigned char)(value >> 8), (unsigned char)value};
    put(m, two, 2);
}

/* id 0x1234, then flags and counts. */
static message header(unsigned flags, unsigned questions, unsigned answers, unsigned authorities,
                      unsigned additional)
{
    message m = {.len = 0};
    put16(&m, 0x1234);
    put16(&m, flags);
    put16(&m, questions);
    put16(&m, answers);
    put16(&m, authorities);
    put16(&m, additional);
    return m;
}

/* Labels as they stand: every byte but the dots. */
static void put_name(message *m, const char *name)
{
    while (*name != '\0') {
        size_t len = strcspn(name, ".");
        unsigned char length = (unsigned char)len;
        put(m, &length, 1);
        put(m, name, len);
        name += len + (name[len] == '.');
    }
    put(m, "", 1);
}

static void put_question(message *m, const char *name, unsigned type, unsigned cls)
{
    put_name(m, name);
    put16(m, type);
    put16(m, cls);
}

static void put_edns(message *m, unsigned version, unsigned data_len)
{
    put(m, "", 1);
    put16(m, BC_NAME_TYPE_OPT);
    put16(m, 1232);
    put16(m, version);
    put16(m, 0x8000);
    put16(m, data_len);
    for (unsigned i = 0; i < data_len; i++)
        put(m, "x", 1);
}

static message query(const char *name, unsigned type)
{
    message m = header(0x0100, 1, 0, 0, 0);
    put_question(&m, name, type, BC_NAME_CLASS_IN);
    return m;
}

/* From memory of exactly this size. */
static int read_message(const message *m, bc_name_query *q)
{
    unsigned char *copy = malloc(m->len > 0 ? m->len : 1);
    memcpy(copy, m->data, m->len);
    int rc = bc_name_query_read(copy, m->len, q);
    free(copy);
    return rc;
}

static unsigned rcode_of(const message *m)
{
    bc_name_query q;
    ck_assert_int_eq(read_message(m, &q), 0);
    ck_assert(q.rcode == BC_NAME_NOERROR || q.name[0] == '\0');
    return q.rcode;
}

START_TEST(a_question_is_read_in_its_canonical_form)
{
    bc_name_query q;
    message m = query("aPi.Example.COM", BC_NAME_TYPE_A);
    ck_assert_int_eq(read_message(&m, &q), 0);
    ck_assert_uint_eq(q.rcode, BC_NAME_NOERROR);
    ck_assert_str_eq(q.name, "api.example.com");
    ck_assert_uint_eq(q.id, 0x1234);
    ck_assert(q.type == BC_NAME_TYPE_A && q.cls == BC_NAME_CLASS_IN && !q.edns);
    ck_assert_uint_eq(q.question_len, m.len - 12);
    ck_assert(bc_name_query_wants_address(&q));
    m = header(0x0120, 1, 0, 0, 1);
    put_question(&m, "_service.example.com", BC_NAME_TYPE_HTTPS, BC_NAME_CLASS_IN);
    put_edns(&m, 0, 12);
    ck_assert_int_eq(read_message(&m, &q), 0);
    ck_assert_uint_eq(q.rcode, BC_NAME_NOERROR);
    ck_assert_str_eq(q.name, "_service.example.com");
    ck_assert(q.edns && !bc_name_query_wants_address(&q));
}
END_TEST

START_TEST(what_is_no_query_is_dropped)
{
    bc_name_query q;
    message m = query("example.com", BC_NAME_TYPE_A);
    for (size_t len = 0; len < 12; len++) {
        message cut = m;
        cut.len = len;
        ck_assert_int_eq(read_message(&cut, &q), -1);
    }
    /* An answer to an answer would go on for ever. */
    m = header(0x8180, 1, 0, 0, 0);
    put_question(&m, "example.com", BC_NAME_TYPE_A, BC_NAME_CLASS_IN);
    ck_assert_int_eq(read_message(&m, &q), -1);
}
END_TEST

START_TEST(every_cut_of_a_query_is_an_error)
{
    message m = header(0x0100, 1, 0, 0, 1);
    put_question(&m, "api.example.com", BC_NAME_TYPE_A, BC_NAME_CLASS_IN);
    put_edns(&m, 0, 4);
    ck_assert_uint_eq(rcode_of(&m), BC_NAME_NOERROR);
    for (size_t len = 12; len < m.len; len++) {
        message cut = m;
        cut.len = len;
        ck_assert_uint_eq(rcode_of(&cut), BC_NAME_FORMERR);
    }
    put(&m, "x", 1);
    ck_assert_uint_eq(rcode_of(&m), BC_NAME_FORMERR);
    m = query("api.example.com", BC_NAME_TYPE_A);
    put(&m, "x", 1);
    ck_assert_uint_eq(rcode_of(&m), BC_NAME_FORMERR);
}
END_TEST

START_TEST(the_counts_are_those_of_a_stub_resolver)
{
    static const struct {
        unsigned flags, counts[4], rcode;
    } cases[] = {
        {0x0100, {1, 0, 0, 0}, BC_NAME_NOERROR}, {0x0100, {0, 0, 0, 0}, BC_NAME_FORMERR},
        {0x0100, {2, 0, 0, 0}, BC_NAME_FORMERR}, {0x0100, {65535, 0, 0, 0}, BC_NAME_FORMERR},
        {0x0100, {1, 1, 0, 0}, BC_NAME_FORMERR}, {0x0100, {1, 0, 1, 0}, BC_NAME_FORMERR},
        {0x0100, {1, 0, 0, 1}, BC_NAME_FORMERR}, {0x0100, {1, 0, 0, 2}, BC_NAME_FORMERR},
        {0x0800, {1, 0, 0, 0}, BC_NAME_NOTIMP},  {0x2000, {1, 0, 0, 0}, BC_NAME_NOTIMP},
        {0x2800, {1, 0, 0, 0}, BC_NAME_NOTIMP},  {0x7800, {1, 0, 0, 0}, BC_NAME_NOTIMP},
        {0x0130, {1, 0, 0, 0}, BC_NAME_NOERROR}, {0x0000, {1, 0, 0, 0}, BC_NAME_NOERROR},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const unsigned *n = cases[i].counts;
        message m = header(cases[i].flags, n[0], n[1], n[2], n[3]);
        put_question(&m, "example.com", BC_NAME_TYPE_A, BC_NAME_CLASS_IN);
        ck_assert_msg(rcode_of(&m) == cases[i].rcode, "case %zu", i);
    }
}
END_TEST

START_TEST(pointers_and_other_labels_are_refused)
{
    static const unsigned char kinds[] = {0x40, 0x41, 0x80, 0xc0, 0xff};
    for (size_t i = 0; i < sizeof kinds; i++) {
        message m = header(0x0100, 1, 0, 0, 0);
        put(&m, "\1a", 2);
        put(&m, &kinds[i], 1);
        put(&m, "\x0c", 1);
        put(&m, "\0\0\1\0\1", 5);
        ck_assert_uint_eq(rcode_of(&m), BC_NAME_FORMERR);
    }
}
END_TEST

START_TEST(a_label_has_63_bytes_at_most)
{
    for (unsigned char len = 63; len <= 64; len++) {
        char label[64];
        message m = header(0x0100, 1, 0, 0, 0);
        memset(label, 'a', sizeof label);
        put(&m, &len, 1);
        put(&m, label, len);
        put(&m, "\0\0\1\0\1", 5);
        ck_assert_uint_eq(rcode_of(&m), len == 63 ? BC_NAME_NOERROR : BC_NAME_FORMERR);
    }
}
END_TEST

START_TEST(a_name_that_no_host_has_does_not_exist)
{
    static const struct {
        const char *wire;
        size_t len;
    } cases[] = {
        {"\13example.com\0", 13}, /* a dot within a label */
        {"\7exa\0ple\3com\0", 13},
        {"\7exa ple\3com\0", 13},
        {"\7exa*ple\3com\0", 13},
        {"\1*\7example\3com\0", 15},
        {"\7-xample\3com\0", 13},
        {"\10ex\xc3\xa4mple\3com\0", 14},
        {"\3"
         "127\1"
         "0\1"
         "0\1"
         "1\0",
         11},
        {"\3::1\0", 5},
        {"\x09"
         "127.0.0.1\0",
         11},
        {"\1"
         "1\1"
         "1\0",
         5},
        {"\3"
         "0x7\0",
         5},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        message m = header(0x0100, 1, 0, 0, 0);
        put(&m, cases[i].wire, cases[i].len);
        put(&m, "\0\1\0\1", 4);
        ck_assert_msg(rcode_of(&m) == BC_NAME_NXDOMAIN, "case %zu is %u", i, rcode_of(&m));
    }
}
END_TEST

START_TEST(names_end_where_dns_ends_them)
{
    char name[300];
    bc_name_query q;
    memset(name, 'a', sizeof name);
    for (size_t i = 63; i < sizeof name; i += 64)
        name[i] = '.';
    name[253] = '\0';
    message m = query(name, BC_NAME_TYPE_A);
    ck_assert_uint_eq(m.len, 12 + 255 + 4);
    ck_assert_int_eq(read_message(&m, &q), 0);
    ck_assert_uint_eq(q.rcode, BC_NAME_NOERROR);
    ck_assert_str_eq(q.name, name);
    name[253] = 'a';
    name[254] = '\0';
    m = query(name, BC_NAME_TYPE_A);
    ck_assert_uint_eq(rcode_of(&m), BC_NAME_FORMERR);
    /* The shortest labels: the most of them. */
    for (size_t i = 0; i < 253; i++)
        name[i] = i % 2 == 0 ? 'b' : '.';
    name[253] = '\0';
    m = query(name, BC_NAME_TYPE_A);
    ck_assert_uint_eq(rcode_of(&m), BC_NAME_NOERROR);
    m = header(0x0100, 1, 0, 0, 1);
    put_question(&m, "example.com", BC_NAME_TYPE_A, BC_NAME_CLASS_IN);
    put_edns(&m, 0, 4500);
    ck_assert_uint_eq(rcode_of(&m), BC_NAME_FORMERR);
}
END_TEST

/* The bytes by RFC 1035, spelled out. */
START_TEST(an_answer_has_the_question_and_the_address)
{
    static const unsigned char expected[] = {
        0x12, 0x34, 0x81, 0x80, 0,    1, 0, 1, 0, 0, 0, 0, 2,  'A', 'b', 2,  'c', 'd', 0, 0,
        1,    0,    1,    0xc0, 0x0c, 0, 1, 0, 1, 0, 0, 0, 60, 0,   4,   10, 0,   0,   7,
    };
    static const unsigned char ipv4[4] = {10, 0, 0, 7};
    unsigned char out[BC_NAME_ANSWER_MAX];
    bc_name_query q;
    message m = query("Ab.cd", BC_NAME_TYPE_A);
    ck_assert_int_eq(read_message(&m, &q), 0);
    size_t len = bc_name_answer_write(out, sizeof out, m.data, m.len, &q, 0, ipv4, 60);
    ck_assert_uint_eq(len, sizeof expected);
    ck_assert_mem_eq(out, expected, sizeof expected);
    /* Too little room is nothing written. */
    for (size_t cap = 0; cap < sizeof expected; cap++)
        ck_assert_uint_eq(bc_name_answer_write(out, cap, m.data, m.len, &q, 0, ipv4, 60), 0);
    /* The query is not the one that was read. */
    ck_assert_uint_eq(bc_name_answer_write(out, sizeof out, m.data, m.len - 1, &q, 0, ipv4, 60), 0);
}
END_TEST

START_TEST(an_answer_with_edns_says_so)
{
    static const unsigned char expected[] = {
        0x12, 0x34, 0x81, 0x80, 0, 1, 0,  0,    0,    0, 0, 1, 1, 'a', 0,
        0,    28,   0,    1,    0, 0, 41, 0x04, 0xd0, 0, 0, 0, 0, 0,   0,
    };
    static const unsigned char ipv4[4] = {10, 0, 0, 7};
    unsigned char out[BC_NAME_ANSWER_MAX];
    bc_name_query q;
    message m = header(0x0120, 1, 0, 0, 1); /* authentic data: not ours to say */
    put_question(&m, "a", BC_NAME_TYPE_AAAA, BC_NAME_CLASS_IN);
    put_edns(&m, 0, 0);
    ck_assert_int_eq(read_message(&m, &q), 0);
    /* An address is no answer to this question. */
    size_t len = bc_name_answer_write(out, sizeof out, m.data, m.len, &q, 0, ipv4, 60);
    ck_assert_uint_eq(len, sizeof expected);
    ck_assert_mem_eq(out, expected, sizeof expected);
    /* A version that we do not know: RFC 6891, 6.1.3. */
    m = header(0x0100, 1, 0, 0, 1);
    put_question(&m, "a", BC_NAME_TYPE_A, BC_NAME_CLASS_IN);
    put_edns(&m, 1, 0);
    ck_assert_int_eq(read_message(&m, &q), 0);
    ck_assert_uint_eq(q.rcode, BC_NAME_BADVERS);
    len = bc_name_answer_write(out, sizeof out, m.data, m.len, &q, q.rcode, NULL, 0);
    ck_assert_uint_eq(len, sizeof expected);
    ck_assert_uint_eq(out[3] & 15, 0);
    ck_assert_uint_eq(out[24], 1);
}
END_TEST

START_TEST(errors_have_their_code_and_no_address)
{
    static const unsigned rcodes[] = {BC_NAME_FORMERR, BC_NAME_SERVFAIL, BC_NAME_NXDOMAIN,
                                      BC_NAME_NOTIMP, BC_NAME_REFUSED};
    static const unsigned char ipv4[4] = {10, 0, 0, 7};
    unsigned char out[BC_NAME_ANSWER_MAX];
    bc_name_query q;
    message m = query("example.com", BC_NAME_TYPE_A);
    ck_assert_int_eq(read_message(&m, &q), 0);
    for (size_t i = 0; i < sizeof rcodes / sizeof *rcodes; i++) {
        size_t len = bc_name_answer_write(out, sizeof out, m.data, m.len, &q, rcodes[i], ipv4, 60);
        ck_assert_uint_eq(len, m.len);
        ck_assert_uint_eq(out[3] & 15, rcodes[i]);
        ck_assert(out[6] == 0 && out[7] == 0);
    }
    ck_assert_uint_eq(
        bc_name_answer_write(out, sizeof out, m.data, m.len, &q, BC_NAME_BADVERS, NULL, 0), 0);
    /* A question that could not be read is not echoed. */
    m = header(0x7900, 3, 0, 0, 0);
    ck_assert_int_eq(read_message(&m, &q), 0);
    ck_assert_uint_eq(bc_name_answer_write(out, sizeof out, m.data, m.len, &q, q.rcode, NULL, 0),
                      12);
    ck_assert_mem_eq(out, "\x12\x34\xf9\x84\0\0\0\0\0\0\0\0", 12);
}
END_TEST

START_TEST(other_questions_have_no_records_or_are_refused)
{
    static const struct {
        unsigned type, cls, rcode;
    } cases[] = {
        {BC_NAME_TYPE_AAAA, 1, BC_NAME_NOERROR},
        {BC_NAME_TYPE_HTTPS, 1, BC_NAME_NOERROR},
        {BC_NAME_TYPE_SVCB, 1, BC_NAME_NOERROR},
        {15, 1, BC_NAME_NOERROR},
        {16, 1, BC_NAME_NOERROR},
        {33, 1, BC_NAME_NOERROR},
        {BC_NAME_TYPE_ANY, 1, BC_NAME_REFUSED},
        {252, 1, BC_NAME_REFUSED},
        {251, 1, BC_NAME_REFUSED},
        {250, 1, BC_NAME_REFUSED},
        {249, 1, BC_NAME_REFUSED},
        {0, 1, BC_NAME_REFUSED},
        {BC_NAME_TYPE_OPT, 1, BC_NAME_REFUSED},
        {BC_NAME_TYPE_AAAA, 3, BC_NAME_REFUSED},
        {BC_NAME_TYPE_A, 255, BC_NAME_REFUSED},
        {16, 3, BC_NAME_REFUSED},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bc_name_query q;
        message m = header(0x0100, 1, 0, 0, 0);
        put_question(&m, "example.com", cases[i].type, cases[i].cls);
        ck_assert_int_eq(read_message(&m, &q), 0);
        ck_assert(!bc_name_query_wants_address(&q));
        ck_assert_msg(bc_name_query_other_rcode(&q) == cases[i].rcode, "case %zu", i);
    }
    bc_name_query q;
    message root = query("", BC_NAME_TYPE_A);
    ck_assert_int_eq(read_message(&root, &q), 0);
    ck_assert(q.rcode == BC_NAME_NOERROR && !bc_name_query_wants_address(&q));
}
END_TEST

START_TEST(reverse_lookups_are_known)
{
    static const struct {
        const char *name;
        unsigned type;
        bool reverse;
        const char *address;
    } cases[] = {
        {"4.3.2.1.in-addr.arpa", BC_NAME_TYPE_PTR, true, "1.2.3.4"},
        {"1.0.0.127.IN-ADDR.ARPA", BC_NAME_TYPE_PTR, true, "127.0.0.1"},
        {"3.2.1.in-addr.arpa", BC_NAME_TYPE_PTR, true, ""},
        {"5.4.3.2.1.in-addr.arpa", BC_NAME_TYPE_PTR, true, ""},
        {"04.3.2.1.in-addr.arpa", BC_NAME_TYPE_PTR, true, ""},
        {"x.in-addr.arpa", BC_NAME_TYPE_PTR, true, ""},
        {"1.0.ip6.arpa", BC_NAME_TYPE_PTR, true, ""},
        {"in-addr.arpa", BC_NAME_TYPE_PTR, false, ""},
        {"4.3.2.1.in-addr.arpa", BC_NAME_TYPE_A, false, ""},
        {"4.3.2.1.in-addr.arpa.example", BC_NAME_TYPE_PTR, false, ""},
        {"4.3.2.1.xin-addr.arpa", BC_NAME_TYPE_PTR, false, ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bc_name_query q;
        bc_address address;
        char text[BC_ADDRESS_TEXT];
        message m = query(cases[i].name, cases[i].type);
        ck_assert_int_eq(read_message(&m, &q), 0);
        ck_assert_uint_eq(q.rcode, BC_NAME_NOERROR);
        ck_assert_msg(bc_name_query_is_reverse(&q, &address) == cases[i].reverse, "case %zu", i);
        bc_address_print(&address, text);
        ck_assert_str_eq(text, cases[i].address);
    }
}
END_TEST

UNIT_MAIN("egress_name_query", a_question_is_read_in_its_canonical_form,
          what_is_no_query_is_dropped, every_cut_of_a_query_is_an_error,
          the_counts_are_those_of_a_stub_resolver, pointers_and_other_labels_are_refused,
          a_label_has_63_bytes_at_most, a_name_that_no_host_has_does_not_exist,
          names_end_where_dns_ends_them, an_answer_has_the_question_and_the_address,
          an_answer_with_edns_says_so, errors_have_their_code_and_no_address,
          other_questions_have_no_records_or_are_refused, reverse_lookups_are_known)
