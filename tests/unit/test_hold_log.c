/* What a holder keeps of the output of commands, and which names a detached sandbox may have. */
#include <check.h>
#include "base/limits.h"
#include "sandbox/held_dir.h"
#include "sandbox/hold_log.h"
#include "suite.h"

static uint64_t answer(const bc_hold_log *log, uint64_t cursor, uint64_t *dropped, uint32_t *count)
{
    static unsigned char bytes[BC_FRAME_MAX_DATA];
    bc_wire_writer out = {.data = bytes, .cap = sizeof bytes};
    bc_hold_log_answer(log, cursor, &out);
    ck_assert(!out.full);
    *dropped = bc_get_u64(bytes);
    *count = bc_get_u32(bytes + 16);
    uint64_t total = 0;
    const unsigned char *at = bytes + 20;
    for (uint32_t i = 0; i < *count; i++) {
        total += bc_get_u32(at + 8);
        at += 12 + bc_get_u32(at + 8);
    }
    ck_assert_ptr_eq(at, bytes + out.len);
    uint64_t next = bc_get_u64(bytes + 8);
    if (*count > 0) ck_assert_uint_eq(next, (cursor > log->start ? cursor : log->start) + total);
    return next;
}

START_TEST(the_log)
{
    static char data[100000];
    bc_hold_log log;
    uint64_t dropped, total = 0, cursor = 0;
    uint32_t count;
    bc_hold_log_init(&log);
    ck_assert_uint_eq(answer(&log, 0, &dropped, &count), 0);
    ck_assert_uint_eq(answer(&log, 12345, &dropped, &count), 0);
    for (uint32_t i = 0; i < 100; i++) {
        size_t len = (i * 7919) % sizeof data;
        bc_hold_log_add(&log, i, BC_FRAME_OUT + i % 2, data, len);
        bc_hold_log_add(&log, i, BC_FRAME_OUT, data, 1);
        total += len + 1;
        ck_assert_uint_le(log.records.len, BC_HOLD_LOG_BYTES);
        ck_assert_uint_eq(log.end, total);
    }
    ck_assert_uint_gt(log.end - log.start, BC_HOLD_LOG_BYTES - sizeof data - 5000);
    uint64_t seen_bytes = 0;
    do {
        uint64_t next = answer(&log, cursor, &dropped, &count);
        seen_bytes += next - cursor - dropped;
        if (cursor == 0) ck_assert_uint_eq(dropped, log.start);
        cursor = next;
    } while (count > 0);
    ck_assert_uint_eq(seen_bytes, log.end - log.start);
    ck_assert_uint_eq(cursor, total);
    ck_assert_uint_eq(answer(&log, total - 1, &dropped, &count), total);
    ck_assert_uint_eq(count, 1);
    bc_hold_log_clear(&log);
}
END_TEST

START_TEST(ids)
{
    static const char *const wrong[] = {"",
                                        "sbx-",
                                        "sbx-0123456789abcde",
                                        "sbx-0123456789abcdef0",
                                        "sbx-0123456789abcdeg",
                                        "sbx-0123456789ABCDEF",
                                        "sbx-../../../../etc/",
                                        "SBX-0123456789abcdef"};
    ck_assert(bc_held_id_is_valid("sbx-0123456789abcdef"));
    ck_assert(!bc_held_id_is_valid(NULL));
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        ck_assert_msg(!bc_held_id_is_valid(wrong[i]), "%s", wrong[i]);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("hold_log");
    TCase *tc = tcase_create("hold_log");
    tcase_add_test(tc, the_log);
    tcase_add_test(tc, ids);
    suite_add_tcase(suite, tc);
    return suite_end(suite);
}
