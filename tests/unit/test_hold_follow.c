/* Who follows what a detached sandbox prints: answers that wait, and all of it before the end. */
#include "fake_client.h"

#include "base/clock.h"
#include "channel/held.h"
#include "suite.h"

static uint64_t next;

/* How many bytes an answer to a question for the log has. */
static size_t bytes_of_answer(const bc_frame *frame)
{
    size_t bytes = 0;
    bc_wire_reader in = bc_wire_read(frame);
    barchan_error status;
    ck_assert_int_eq(bc_read_status(&in, &status), 0);
    ck_assert_uint_eq(bc_wire_u64(&in), 0); /* dropped */
    next = bc_wire_u64(&in);
    for (uint32_t count = bc_wire_u32(&in); count > 0; count--) {
        ck_assert_uint_eq(bc_wire_u32(&in), 1);
        ck_assert_uint_eq(bc_wire_u32(&in), BC_FRAME_OUT);
        uint32_t len = bc_wire_u32(&in);
        ck_assert_ptr_nonnull(bc_wire_take(&in, len));
        bytes += len;
    }
    ck_assert(bc_wire_done(&in));
    return bytes;
}

static void end_it(void)
{
    barchan_sandbox_terminate(sbx);
    bury();
    sbx = NULL;
}

START_TEST(an_answer_waits)
{
    bc_frame frame;
    start_command(BC_EXEC_STREAMING);
    say_ask(6, BC_HELD_ASK_FOLLOW, 0);
    pump();
    ck_assert_int_eq(next_frame(client, &frame), 0);
    say(BC_FRAME_OUT, 2, "text", 4);
    client_hears(BC_FRAME_ANSWER, 6, &frame);
    ck_assert_uint_eq(bytes_of_answer(&frame), 4);
    ck_assert_uint_eq(next, 4);
    client_hears(BC_FRAME_OUT, 5, &frame);
    say_ask(7, BC_HELD_ASK_FOLLOW, 2); /* there is something already */
    client_hears(BC_FRAME_ANSWER, 7, &frame);
    ck_assert_uint_eq(bytes_of_answer(&frame), 2);
}
END_TEST

START_TEST(one_question_waits)
{
    bc_frame frame;
    start_command(BC_EXEC_STREAMING);
    for (uint32_t i = 6; i < 1000; i++) {
        say_ask(i, BC_HELD_ASK_FOLLOW, UINT64_MAX); /* as from where it ends now */
        if (i == 6) continue;
        client_hears(BC_FRAME_ANSWER, i - 1, &frame);
        ck_assert_uint_eq(bytes_of_answer(&frame), 0);
    }
    client_says(BC_FRAME_CANCEL, 999, NULL, 0); /* it may, and is heard of all the same */
    say(BC_FRAME_OUT, 2, "text", 4);
    client_hears(BC_FRAME_ANSWER, 999, &frame);
    ck_assert_uint_eq(bytes_of_answer(&frame), 4);
}
END_TEST

START_TEST(the_end_is_told_after_all_else)
{
    static unsigned char bytes[60000];
    static const unsigned char credit[5] = {BC_FRAME_OUT, 4};
    bc_frame frame;
    size_t told = 0;
    start_command(BC_EXEC_STREAMING);
    say_ask(6, BC_HELD_ASK_FOLLOW, 0);
    for (int i = 0; i < 4; i++) {
        say(BC_FRAME_OUT, 2, bytes, sizeof bytes);
        pump();
    }
    end_it();
    for (uint32_t asked = 6;;) {
        int rc;
        while ((rc = next_frame(client, &frame)) == 0) {
            pump();
        }
        ck_assert_int_eq(rc, 1);
        if (frame.type == BC_HELD_ENDED) break;
        if (frame.type != BC_FRAME_ANSWER) continue;
        ck_assert_uint_eq(frame.stream, asked);
        told += bytes_of_answer(&frame);
        client_says(BC_FRAME_CREDIT, 5, credit,
                    sizeof credit);        /* of its command, which has ended */
        say_ask(++asked, BC_ASK_USAGE, 0); /* too late, and no breach */
        say_ask(++asked, BC_HELD_ASK_FOLLOW, next);
    }
    ck_assert_uint_eq(told, 4 * sizeof bytes);
    ck_assert_int_eq(next_frame(client, &frame), -1);
    pump();
    ck_assert_int_eq(over, 1);
}
END_TEST

/* One that follows and does not ask for the rest has its time. */
START_TEST(the_end_waits_for_nobody_for_long)
{
    bc_frame frame;
    int rc;
    start_command(BC_EXEC_STREAMING);
    say_ask(6, BC_HELD_ASK_FOLLOW, 0);
    say(BC_FRAME_OUT, 2, "text", 4);
    client_hears(BC_FRAME_ANSWER, 6, &frame);
    end_it();
    for (int64_t until = bc_clock_ms() + 500; bc_clock_ms() < until;) {
        barchan_runtime_pump(rt, 50, NULL);
        rc = next_frame(client, &frame); /* it has its time */
        ck_assert(rc == 0 || (rc == 1 && frame.type != BC_HELD_ENDED));
    }
    ck_assert_int_eq(over, 0);
    while ((rc = next_frame(client, &frame)) == 0 || (rc == 1 && frame.type != BC_HELD_ENDED)) {
        barchan_runtime_pump(rt, 50, NULL);
    }
    ck_assert_int_eq(rc, 1); /* then it is told, too */
    ck_assert_uint_eq(bc_get_u32(frame.payload), BARCHAN_END_TERMINATED);
    pump();
    ck_assert_int_eq(next_frame(client, &frame), -1);
    ck_assert_int_eq(over, 1);
}
END_TEST

SUITE_MAIN("hold_follow", set_up_held, tear_down_held, an_answer_waits, one_question_waits,
           the_end_is_told_after_all_else, the_end_waits_for_nobody_for_long)
