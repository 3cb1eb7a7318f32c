/* The holder of a detached sandbox and hostile guests: one that breaks the rules ends its sandbox,
 * and the clients are told. */
#include "fake_client.h"

#include <barchan/detached.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/limits.h"
#include "channel/held.h"
#include "sandbox/held_dir.h"
#include "suite.h"

static void told_of_a_breach(void)
{
    bc_frame frame;
    broke_the_protocol();
    bury();
    sbx = NULL;
    for (;;) {
        pump();
        ck_assert_int_eq(next_frame(client, &frame), 1);
        if (frame.type == BC_HELD_ENDED) break;
    }
    ck_assert_uint_eq(bc_get_u32(frame.payload), BARCHAN_END_PROTOCOL_ERROR);
    pump();
    ck_assert_int_eq(next_frame(client, &frame), -1);
    ck_assert_int_eq(over, 1);
}

START_TEST(hostile_guests)
{
    static unsigned char bytes[BC_FRAME_MAX_DATA];
    start_command(BC_EXEC_STREAMING | BC_EXEC_INPUT);
    switch (_i) {
    case 0: say(BC_FRAME_OUT, 1, "x", 1); break; /* of a stream that was never told */
    case 1:
        for (int i = 0; i < 4; i++) { /* a window is fine */
            say(BC_FRAME_OUT, 2, bytes, sizeof bytes);
        }
        ck_assert_int_eq(status().state, BARCHAN_SANDBOX_READY);
        say(BC_FRAME_OUT, 2, "x", 1);
        break;
    case 2: say(BC_FRAME_GRANT, 2, "\1\0\0\0", 4); break; /* for nothing that was sent */
    case 3: say(BC_FRAME_GRANT, 2, "\1", 1); break;
    case 4: say(BC_FRAME_EXIT, 2, "\1", 1); break;
    case 5: say(BC_FRAME_FILE_DONE, 2, "\1", 1); break; /* the end of something else */
    case 6: say(BC_FRAME_ANSWER, 2, bytes, 20); break;
    case 7: say(BC_FRAME_OUT, 3, "x", 1); break;
    case 8: say(BC_HELD_NEWS, 0, bytes, BC_HELD_NEWS_BYTES); break; /* the holder's to say */
    case 9: say(BC_HELD_ENDED, 0, bytes, 4 + BC_USAGE_BYTES); break;
    default: ck_abort();
    }
    told_of_a_breach();
}
END_TEST

START_TEST(hostile_answers)
{
    bc_frame frame;
    bc_wire_writer out;
    greet();
    say_ask(1, BC_ASK_PROCESSES, 0);
    guest_hears(BC_FRAME_ASK, 2, &frame);
    switch (_i) {
    case 0: say(BC_FRAME_ANSWER, 2, "x", 1); break;
    case 1: say(BC_FRAME_OUT, 2, "x", 1); break;
    case 2:
    case 3: /* lists that lie about their lengths are the client's to judge; here they are safe */
        out = payload();
        bc_wire_put_u32(&out, 0);
        bc_wire_put_u32(&out, 0);
        bc_wire_put_string(&out, "", 0);
        bc_wire_put_u32(&out, 1);
        bc_wire_put_u32(&out, UINT32_MAX);
        if (_i == 3) bc_wire_put_process(&out, &(bc_process){.pid = 7, .exec = 1});
        if (_i == 3) bc_wire_put_u32(&out, UINT32_MAX);
        say(BC_FRAME_ANSWER, 2, out.data, out.len);
        client_hears(BC_HELD_NEWS, 0, &frame);
        client_hears(BC_FRAME_ANSWER, 1, &frame);
        return;
    default: ck_abort();
    }
    told_of_a_breach();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("hold_guests");
    TCase *held = tcase_create("held");
    tcase_add_checked_fixture(held, set_up_held, tear_down_held);
    tcase_set_timeout(held, 60);
    tcase_add_loop_test(held, hostile_guests, 0, 10);
    tcase_add_loop_test(held, hostile_answers, 0, 4);
    suite_add_tcase(suite, held);
    return suite_end(suite);
}
