/* The channel's format: whatever bytes come, readers stay within them. */
#include <stdlib.h>
#include <string.h>
#include "channel/frame.h"
#include "suite.h"

START_TEST(numbers_are_little_endian)
{
    unsigned char bytes[8];
    bc_put_u32(bytes, 0x01020304);
    ck_assert(memcmp(bytes, "\x04\x03\x02\x01", 4) == 0);
    bc_put_u64(bytes, 0x0102030405060708);
    ck_assert(memcmp(bytes, "\x08\x07\x06\x05\x04\x03\x02\x01", 8) == 0);
    ck_assert_uint_eq(bc_get_u32(bytes), 0x05060708);
    ck_assert_uint_eq(bc_get_u64(bytes), 0x0102030405060708);
}
END_TEST

static size_t make_frame(unsigned char *at, uint32_t type, uint32_t stream, uint32_t length)
{
    bc_frame_put_header(at, type, stream, length);
    memset(at + BC_FRAME_HEADER, 'x', length);
    return BC_FRAME_HEADER + length;
}

START_TEST(a_frame_is_parsed_when_it_is_whole)
{
    unsigned char bytes[64];
    size_t size = make_frame(bytes, BC_FRAME_OUT, 7, 20);
    bc_frame frame;
    for (size_t len = 0; len < size; len++) {
        ck_assert_int_eq(bc_frame_parse(&frame, bytes, len, bc_frame_max_from_guest), 0);
    }
    ck_assert_int_eq(bc_frame_parse(&frame, bytes, size, bc_frame_max_from_guest), (int)size);
    ck_assert_uint_eq(frame.type, BC_FRAME_OUT);
    ck_assert_uint_eq(frame.stream, 7);
    ck_assert_uint_eq(frame.length, 20);
    ck_assert_ptr_eq(frame.payload, bytes + BC_FRAME_HEADER);
}
END_TEST

START_TEST(lengths_are_bounded)
{
    unsigned char bytes[BC_FRAME_HEADER];
    bc_frame frame;
    bc_frame_put_header(bytes, BC_FRAME_OUT, 1, BC_FRAME_MAX_DATA);
    ck_assert_int_eq(bc_frame_parse(&frame, bytes, sizeof bytes, bc_frame_max_from_guest), 0);
    bc_frame_put_header(bytes, BC_FRAME_OUT, 1, BC_FRAME_MAX_DATA + 1);
    ck_assert_int_eq(bc_frame_parse(&frame, bytes, sizeof bytes, bc_frame_max_from_guest), -1);
    bc_frame_put_header(bytes, BC_FRAME_OUT, 1, UINT32_MAX);
    ck_assert_int_eq(bc_frame_parse(&frame, bytes, sizeof bytes, bc_frame_max_from_guest), -1);
    bc_frame_put_header(bytes, BC_FRAME_EXEC, 1, BC_FRAME_MAX_TO_GUEST);
    ck_assert_int_eq(bc_frame_parse(&frame, bytes, sizeof bytes, bc_frame_max_to_guest), 0);
    bc_frame_put_header(bytes, BC_FRAME_INPUT, 1, BC_FRAME_MAX_DATA + 1);
    ck_assert_int_eq(bc_frame_parse(&frame, bytes, sizeof bytes, bc_frame_max_to_guest), -1);
}
END_TEST

START_TEST(carried_frames_have_maxima_of_their_own)
{
    ck_assert_int_eq(bc_frame_max_from_guest(BC_FRAME_NET_QUERY), BC_FRAME_MAX_QUERY);
    ck_assert_int_eq(bc_frame_max_from_guest(BC_FRAME_NET_OUT), BC_FRAME_NET_WINDOW);
    ck_assert_int_eq(bc_frame_max_to_guest(BC_FRAME_NET_IN), BC_FRAME_NET_WINDOW);
    ck_assert_int_eq(bc_frame_max_to_guest(BC_FRAME_NET_ANSWER), BC_FRAME_MAX_NAME_ANSWER);
    ck_assert_int_eq(bc_frame_max_to_guest(BC_FRAME_BEGIN), BC_CONTROL_MAX_START);
}
END_TEST

START_TEST(a_plan_says_what_leads_out)
{
    const bc_network_plan none = {0};
    const bc_network_plan plan = {
        .port_count = 2,
        .ports = {80, 443},
        .range_count = 3,
        .ranges = {{0x0A010203, 32}, {0x0A020000, 16}, {0x7F000000, 8}},
    };
    const bc_network_plan all = {.port_count = 1, .ports = {80}, .range_count = 1};
    ck_assert(bc_network_leads(&plan, BC_NETWORK_NAMES, 80));
    ck_assert(bc_network_leads(&plan, 0xC613FFFF, 443));
    ck_assert(!bc_network_leads(&plan, 0xC6140000, 443)); /* one further */
    ck_assert(!bc_network_leads(&plan, 0xC611FFFF, 443));
    ck_assert(!bc_network_leads(&plan, BC_NETWORK_NAMES, 81));
    ck_assert(!bc_network_leads(&plan, BC_NETWORK_NAMES, 65616)); /* 80, cut to 16 bits */
    ck_assert(!bc_network_leads(&none, BC_NETWORK_NAMES, 80));
    ck_assert(bc_network_leads(&plan, 0x0A010203, 80));
    ck_assert(!bc_network_leads(&plan, 0x0A010204, 80));
    ck_assert(bc_network_leads(&plan, 0x0A02FFFF, 80));
    ck_assert(!bc_network_leads(&plan, 0x0A030000, 80));
    ck_assert(!bc_network_leads(&plan, 0x7F000001, 80)); /* whatever the plan says */
    ck_assert(bc_network_leads(&all, 0x01020304, 80));   /* a prefix of no bits */
    ck_assert(!bc_network_leads(&all, 0x7F000001, 80));
}
END_TEST

START_TEST(types_belong_to_a_direction)
{
    unsigned char bytes[BC_FRAME_HEADER];
    bc_frame frame;
    for (uint32_t type = 0; type < 256; type++) {
        bc_frame_put_header(bytes, type, 1, 0);
        int to = type >= BC_FRAME_HELLO && type <= BC_FRAME_NET_ANSWER;
        int from = type >= BC_FRAME_READY && type <= BC_FRAME_NET_QUERY;
        ck_assert_int_eq(bc_frame_parse(&frame, bytes, sizeof bytes, bc_frame_max_to_guest),
                         to ? 12 : -1);
        ck_assert_int_eq(bc_frame_parse(&frame, bytes, sizeof bytes, bc_frame_max_from_guest),
                         from ? 12 : -1);
    }
    bc_frame_put_header(bytes, BC_FRAME_OUT, 1, 0);
    for (int i = 5; i < 8; i++) { /* the three zero bytes must be zero */
        bytes[i] = 1;
        ck_assert_int_eq(bc_frame_parse(&frame, bytes, sizeof bytes, bc_frame_max_from_guest), -1);
        bytes[i] = 0;
    }
}
END_TEST

/* A payload with every kind of field. */
static size_t make_payload(unsigned char *bytes, size_t cap)
{
    bc_wire_writer out = {.data = bytes, .cap = cap};
    bc_wire_put_u32(&out, 42);
    bc_wire_put_u64(&out, UINT64_MAX);
    bc_wire_put_string(&out, "text", 4);
    bc_wire_put_string(&out, "", 0);
    ck_assert(!out.full);
    return out.len;
}

static int read_payload(const unsigned char *bytes, size_t len)
{
    bc_wire_reader in = {.at = bytes, .end = bytes + len};
    uint32_t number = bc_wire_u32(&in);
    uint64_t large = bc_wire_u64(&in);
    const char *text = bc_wire_string(&in, 4), *empty = bc_wire_string(&in, 4);
    return bc_wire_done(&in) && number == 42 && large == UINT64_MAX && strcmp(text, "text") == 0 &&
           empty[0] == '\0';
}

START_TEST(truncation_at_every_byte)
{
    unsigned char bytes[64];
    size_t len = make_payload(bytes, sizeof bytes);
    ck_assert(read_payload(bytes, len));
    for (size_t cut = 0; cut < len; cut++) {
        unsigned char *exact = malloc(cut + 1); /* a reader past the end is found by ASan */
        memcpy(exact, bytes, cut);
        ck_assert(!read_payload(exact, cut));
        free(exact);
    }
    bytes[len] = 0;
    ck_assert(!read_payload(bytes, len + 1)); /* and nothing may follow */
}
END_TEST

START_TEST(strings_are_checked)
{
    unsigned char bytes[64];
    bc_wire_writer out = {.data = bytes, .cap = sizeof bytes};
    bc_wire_put_string(&out, "a\0b", 3);
    bc_wire_reader in = {.at = bytes, .end = bytes + out.len};
    ck_assert_str_eq(bc_wire_string(&in, 10), "");
    ck_assert(in.bad); /* an inner NUL */
    out = (bc_wire_writer){.data = bytes, .cap = sizeof bytes};
    bc_wire_put_string(&out, "long", 4);
    in = (bc_wire_reader){.at = bytes, .end = bytes + out.len};
    bc_wire_string(&in, 3);
    ck_assert(in.bad); /* above the caller's maximum */
    bytes[out.len - 1] = 'x';
    in = (bc_wire_reader){.at = bytes, .end = bytes + out.len};
    bc_wire_string(&in, 4);
    ck_assert(in.bad); /* no NUL behind it */
    bc_put_u32(bytes, UINT32_MAX);
    in = (bc_wire_reader){.at = bytes, .end = bytes + out.len};
    bc_wire_string(&in, SIZE_MAX);
    ck_assert(in.bad); /* a length that overflows */
}
END_TEST

START_TEST(writers_stop_at_the_capacity)
{
    unsigned char bytes[64];
    size_t len = make_payload(bytes, sizeof bytes);
    for (size_t cap = 0; cap < len; cap++) {
        unsigned char *exact = malloc(cap + 1);
        bc_wire_writer out = {.data = exact, .cap = cap};
        bc_wire_put_u32(&out, 42);
        bc_wire_put_u64(&out, UINT64_MAX);
        bc_wire_put_string(&out, "text", 4);
        bc_wire_put_string(&out, "", 0);
        ck_assert(out.full);
        ck_assert_uint_le(out.len, cap);
        free(exact);
    }
}
END_TEST

START_TEST(exits_come_back_as_they_went)
{
    const bc_exit sent = {BC_EXIT_TIMEOUT, 1, 9, 2, 1, 77, 1ull << 40, 3, 4, 5, 6, 7};
    unsigned char bytes[BC_EXIT_BYTES];
    bc_wire_writer out = {.data = bytes, .cap = sizeof bytes};
    bc_wire_put_exit(&out, &sent);
    ck_assert_uint_eq(out.len, BC_EXIT_BYTES);
    bc_exit got;
    bc_wire_reader in = {.at = bytes, .end = bytes + out.len};
    bc_wire_get_exit(&in, &got);
    ck_assert(bc_wire_done(&in));
    ck_assert(memcmp(&sent, &got, sizeof got) == 0);
}
END_TEST

START_TEST(noise)
{
    uint64_t state = 88172645463325252ull;
    unsigned char bytes[256];
    for (int round = 0; round < 200000; round++) {
        for (size_t i = 0; i < sizeof bytes; i++) {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            bytes[i] = (unsigned char)state;
        }
        bytes[1] = bytes[2] = bytes[3] = bytes[5] = bytes[6] = bytes[7] =
            0; /* mostly well-formed */
        bc_frame frame;
        int64_t size = bc_frame_parse(&frame, bytes, sizeof bytes, bc_frame_max_from_guest);
        ck_assert_int_le(size, (int64_t)sizeof bytes);
        if (size <= 0) continue;
        bc_wire_reader in = bc_wire_read(&frame);
        while (!in.bad && in.at < in.end) {
            const char *text = bc_wire_string(&in, 100);
            ck_assert_uint_le(strlen(text), 100);
            ck_assert(in.at <= in.end);
        }
    }
}
END_TEST

SUITE_MAIN("frame", NULL, NULL, numbers_are_little_endian, a_frame_is_parsed_when_it_is_whole,
           lengths_are_bounded, carried_frames_have_maxima_of_their_own, a_plan_says_what_leads_out,
           types_belong_to_a_direction, truncation_at_every_byte, strings_are_checked,
           writers_stop_at_the_capacity, exits_come_back_as_they_went, noise)
