/* What a holder says of refusals and failures: read whole, or a breach. */
#include <stdlib.h>
#include <string.h>
#include "channel/held.h"
#include "sandbox/exec.h"
#include "suite.h"

static unsigned char bytes[BC_FRAME_MAX_FROM_GUEST];
static bc_wire_writer out;
static barchan_exec_result result;

static void setup_writer(void)
{
    out = (bc_wire_writer){.data = bytes, .cap = sizeof bytes};
}

static void setup(void)
{
    setup_writer();
    result = (barchan_exec_result){0};
}

static void teardown(void)
{
    barchan_exec_result_clear(&result);
}

static void put(const char *host, size_t host_len)
{
    bc_wire_put_string(&out, host, host_len);
    bc_wire_put_string(&out, "not in the allow-list", 21);
    bc_wire_put_u64(&out, 1700000000000);
    bc_wire_put_u32(&out, 443);
    bc_wire_put_u32(&out, 3);
}

static void begin(uint64_t more, uint32_t count)
{
    bc_wire_put_u64(&out, more);
    bc_wire_put_u32(&out, count);
}

static int take_as(uint32_t type, size_t len)
{
    bc_frame frame = {.type = type, .payload = bytes, .length = (uint32_t)len};
    return bc_held_take_told(&frame, &result);
}

static int take(size_t len)
{
    return take_as(BC_HELD_DENIED, len);
}

START_TEST(refusals)
{
    begin(7, 2);
    put("a.example", 9);
    put("b.example", 9);
    ck_assert_int_eq(take(out.len), 0);
    ck_assert_uint_eq(result.denied_count, 2);
    ck_assert_uint_eq(result.denied_more, 7);
    ck_assert_str_eq(result.denied[1].host, "b.example");
    ck_assert_str_eq(result.denied[1].rule, "not in the allow-list");
    ck_assert_int_eq(result.denied[1].port, 443);
    ck_assert_uint_eq(result.denied[1].tries, 3);
    ck_assert_int_eq(result.denied[1].time_ms, 1700000000000);
    ck_assert_int_lt(take(out.len), 0); /* told once */
    ck_assert_uint_eq(result.denied_count, 2);
}
END_TEST

START_TEST(failures_are_a_list_of_their_own)
{
    begin(0, 1);
    put("a.example", 9);
    ck_assert_int_eq(take(out.len), 0);
    setup_writer();
    begin(5, 2);
    put("b.example", 9);
    put("c.example", 9);
    ck_assert_int_eq(take_as(BC_HELD_UNREACHED, out.len), 0);
    ck_assert_uint_eq(result.denied_count, 1);
    ck_assert_str_eq(result.denied[0].host, "a.example");
    ck_assert_uint_eq(result.unreached_count, 2);
    ck_assert_uint_eq(result.unreached_more, 5);
    ck_assert_str_eq(result.unreached[1].host, "c.example");
    ck_assert_int_lt(take_as(BC_HELD_UNREACHED, out.len), 0); /* told once */
}
END_TEST

START_TEST(cut_anywhere)
{
    begin(0, 1);
    put("a.example", 9);
    for (size_t len = 0; len < out.len; len++) {
        ck_assert_int_lt(take(len), 0);
        barchan_exec_result_clear(&result);
    }
    bytes[out.len] = 0;
    ck_assert_int_lt(take(out.len + 1), 0);
}
END_TEST

START_TEST(more_than_there_can_be)
{
    static const char longest[256] = {'a'};
    begin(0, 65);
    for (int i = 0; i < 65; i++)
        put("a.example", 9);
    ck_assert_int_lt(take(out.len), 0);
    ck_assert_ptr_null(result.denied);
    setup();
    begin(0, UINT32_MAX);
    ck_assert_int_lt(take(out.len), 0);
    setup();
    begin(0, 0);
    ck_assert_int_lt(take(out.len), 0);
    setup();
    begin(0, 1);
    put(longest, 256); /* with NULs in it as well */
    ck_assert_int_lt(take(out.len), 0);
    barchan_exec_result_clear(&result);
    setup();
    begin(UINT64_MAX, 1);
    put("a.example", 9);
    ck_assert_int_eq(take(out.len), 0);
    ck_assert_uint_le(result.denied_more, BC_USAGE_MAX);
}
END_TEST

SUITE_MAIN("held network", setup, teardown, refusals, failures_are_a_list_of_their_own,
           cut_anywhere, more_than_there_can_be)
