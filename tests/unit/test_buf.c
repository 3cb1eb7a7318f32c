#include "base/buf.h"
#include "suite.h"
#include <stdlib.h>

START_TEST(grows_and_stays_terminated)
{
    bc_buf b;
    bc_buf_init(&b, 1 << 20);
    ck_assert_str_eq(bc_buf_data(&b), "");
    for (int i = 0; i < 1000; i++) {
        ck_assert_int_eq(bc_buf_append(&b, "0123456789", 10), 0);
        ck_assert_int_eq(bc_buf_data(&b)[b.len], '\0');
    }
    ck_assert_uint_eq(b.len, 10000);
    bc_buf_clear(&b);
    ck_assert_uint_eq(b.len, 0);
    ck_assert_int_eq(bc_buf_append_string(&b, "again"), 0);
    ck_assert_str_eq(bc_buf_data(&b), "again");
    bc_buf_clear(&b);
}
END_TEST

START_TEST(the_maximum_holds_and_a_failure_adds_nothing)
{
    bc_buf b;
    bc_buf_init(&b, 10);
    ck_assert_int_eq(bc_buf_append(&b, "12345", 5), 0);
    ck_assert_int_eq(bc_buf_append(&b, "123456", 6), BARCHAN_ELIMIT);
    ck_assert_int_eq(bc_buf_appendf(&b, "%06d", 7), BARCHAN_ELIMIT);
    ck_assert_ptr_null(bc_buf_reserve(&b, 6));
    ck_assert_int_eq(bc_buf_append(&b, "x", (size_t)-1), BARCHAN_ELIMIT);
    ck_assert_str_eq(bc_buf_data(&b), "12345");
    ck_assert_int_eq(bc_buf_append(&b, "67890", 5), 0);
    ck_assert_int_eq(bc_buf_append_char(&b, 'x'), BARCHAN_ELIMIT);
    bc_buf_consume(&b, 3);
    ck_assert_int_eq(bc_buf_append(&b, "abc", 3), 0);
    ck_assert_str_eq(bc_buf_data(&b), "4567890abc");
    bc_buf_clear(&b);
    bc_buf_init(&b, 0);
    ck_assert_int_eq(bc_buf_append(&b, "", 0), 0);
    ck_assert_int_eq(bc_buf_append_char(&b, 'x'), BARCHAN_ELIMIT);
    bc_buf_clear(&b);
}
END_TEST

/* Against a plain copy, with every mix of appending and consuming. */
START_TEST(consuming_matches_a_model)
{
    static char model[1 << 16];
    size_t from = 0, to = 0;
    unsigned seed = 1;
    bc_buf b;
    bc_buf_init(&b, 5000);
    while (to < sizeof model - 100) {
        seed = seed * 1103515245 + 12345;
        size_t n = seed >> 16 & 63;
        if ((seed & 0x40000000) == 0 && to - from + n <= 5000) {
            for (size_t i = 0; i < n; i++)
                model[to + i] = (char)(seed >> (i % 24));
            ck_assert_int_eq(bc_buf_append(&b, model + to, n), 0);
            to += n;
        } else {
            bc_buf_consume(&b, n);
            from = from + n > to ? to : from + n;
        }
        ck_assert_uint_eq(b.len, to - from);
        ck_assert_mem_eq(bc_buf_data(&b), model + from, b.len);
    }
    bc_buf_clear(&b);
}
END_TEST

/* A full buffer from whose front a little is taken each time must not be copied each time. */
START_TEST(a_nearly_full_queue_moves_rarely)
{
    bc_buf b;
    bc_buf_init(&b, 1 << 22);
    size_t moves = 0;
    while (b.len < (1 << 20) - 64)
        bc_buf_append(&b, "0123456789abcdef", 16);
    const char *mem = b.mem;
    size_t start = b.start;
    for (int i = 0; i < 100000; i++) {
        bc_buf_consume(&b, 16);
        bc_buf_append(&b, "0123456789abcdef", 16);
        moves += b.mem != mem || b.start < start;
        mem = b.mem;
        start = b.start;
    }
    ck_assert_uint_le(moves, 8);
    bc_buf_clear(&b);
}
END_TEST

START_TEST(taking_hands_over)
{
    bc_buf b;
    size_t len = 7;
    bc_buf_init(&b, 100);
    char *text = bc_buf_take(&b, &len);
    ck_assert_str_eq(text, "");
    ck_assert_uint_eq(len, 0);
    free(text);
    bc_buf_append_string(&b, "hello world");
    bc_buf_consume(&b, 6);
    text = bc_buf_take(&b, &len);
    ck_assert_str_eq(text, "world");
    ck_assert_uint_eq(len, 5);
    ck_assert_uint_eq(b.len, 0);
    ck_assert_uint_eq(b.max, 100);
    free(text);
    char *room = bc_buf_reserve(&b, 3);
    memcpy(room, "abc", 3);
    bc_buf_commit(&b, 2);
    ck_assert_str_eq(bc_buf_data(&b), "ab");
    bc_buf_clear(&b);
}
END_TEST

UNIT_MAIN("buf", grows_and_stays_terminated, the_maximum_holds_and_a_failure_adds_nothing,
          consuming_matches_a_model, a_nearly_full_queue_moves_rarely, taking_hands_over)
