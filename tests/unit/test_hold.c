/* The holder of a detached sandbox and hostile clients: one that breaks the rules is cut off, and
 * nothing of what it said reaches the guest. */
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

START_TEST(a_command_from_end_to_end)
{
    bc_frame frame;
    unsigned char credit[5] = {BC_FRAME_OUT, 4};
    start_command(BC_EXEC_STREAMING | BC_EXEC_INPUT);
    ck_assert_int_eq(status().running, 1);
    client_says(BC_FRAME_INPUT, 5, "in", 2);
    guest_hears(BC_FRAME_INPUT, 2, &frame);
    client_says(BC_FRAME_INPUT_END, 5, NULL, 0);
    guest_hears(BC_FRAME_INPUT_END, 2, &frame);
    say(BC_FRAME_OUT, 2, "text", 4);
    client_hears(BC_FRAME_OUT, 5, &frame);
    ck_assert(frame.length == 4 && memcmp(frame.payload, "text", 4) == 0);
    client_says(BC_FRAME_CREDIT, 5, credit, sizeof credit);
    guest_hears(BC_FRAME_CREDIT, 2, &frame);
    client_says(BC_FRAME_CANCEL, 5, NULL, 0);
    guest_hears(BC_FRAME_CANCEL, 2, &frame);
    bc_wire_writer out = payload();
    bc_wire_put_exit(&out, &(bc_exit){.exit_code = 3});
    say(BC_FRAME_EXIT, 2, out.data, out.len);
    client_hears(BC_FRAME_EXIT, 5, &frame);
    ck_assert_int_eq(status().running, 0);
    client_says(BC_FRAME_CANCEL, 5, NULL, 0); /* too late, which is no breach */
    pump();
    ck_assert_int_eq(next_frame(guest, &frame), 0);
    ck_assert_int_eq(next_frame(client, &frame), 0);
}
END_TEST

START_TEST(before_the_greeting)
{
    unsigned char hello[8] = {BC_HELD_VERSION + 1};
    bc_frame frame;
    switch (_i) {
    case 0: say_exec(1, (struct exec){.argc = 1}); break;
    case 1: client_says(BC_HELD_TERMINATE, 0, NULL, 0); break;
    case 2: client_says(BC_FRAME_HELLO, 0, hello, 4); break;
    case 3: client_says(BC_FRAME_HELLO, 1, hello, sizeof hello); break;
    case 4:
        client_says(BC_FRAME_HELLO, 0, hello, sizeof hello);
        client_hears(BC_FRAME_FAILED, 0, &frame);
        ck_assert_ptr_nonnull(memmem(frame.payload, frame.length, "another version", 15));
        break;
    default: ck_abort();
    }
    is_cut_off();
}
END_TEST

/* Anything but a whole frame that a client may send. */
START_TEST(malformed_frames)
{
    static const unsigned char garbage[] = {0xFF, 0xFF, 0xFF, 0xFF, 2,    0,    0,    0,
                                            1,    0,    0,    0,    0xAA, 0xAA, 0xAA, 0xAA};
    greet();
    switch (_i) {
    case 0: ck_assert_int_eq(send(client, garbage, sizeof garbage, MSG_NOSIGNAL), 16); break;
    case 1: client_says(BC_FRAME_READY, 0, NULL, 0); break; /* the guest's to say */
    case 2: client_says(BC_HELD_ENDED, 0, NULL, 0); break;
    case 3: client_says(0, 0, NULL, 0); break;
    case 4: client_says(BC_CONTROL_KILL, 1, NULL, 0); break;
    case 5: client_says(BC_FRAME_INPUT, 1, garbage, 1); break; /* of no stream yet */
    case 6: client_says(BC_FRAME_EXEC, 0, garbage, sizeof garbage); break;
    case 7: client_says(BC_HELD_TERMINATE, 3, NULL, 0); break;
    case 8: client_says(BC_FRAME_HELLO, 0, garbage, 8); break; /* twice */
    default: ck_abort();
    }
    is_cut_off();
}
END_TEST

START_TEST(malformed_requests)
{
    bc_frame frame;
    bc_wire_writer out = exec_payload((struct exec){.argc = 1});
    greet();
    switch (_i) {
    case 0: say_exec(1, (struct exec){.argc = 0}); break;
    case 1: say_exec(1, (struct exec){.argc = 1, .flags = 1u << 9}); break;
    case 2: say_exec(1, (struct exec){.argc = 1, .flags = BC_EXEC_PTY}); break;
    case 3: say_exec(1, (struct exec){.argc = 1, .columns = 70000, .rows = 1}); break;
    case 4: say_exec(1, (struct exec){.argc = 1, .timeout_ms = -2}); break;
    case 5: say_exec(1, (struct exec){.argc = 1, .timeout_ms = INT64_MAX}); break;
    case 6: say_exec(1, (struct exec){.argc = 1, .limit = UINT64_MAX}); break;
    case 7: client_says(BC_FRAME_EXEC, 1, out.data, out.len - 1); break;
    case 8:
        out.data[out.len - 6] = 0; /* a NUL within a word */
        client_says(BC_FRAME_EXEC, 1, out.data, out.len);
        break;
    case 9: client_says(BC_FRAME_EXEC, 1, NULL, 0); break;
    case 10: say_file(1, 0, 0); break;
    case 11: say_file(1, 1000, 0); break;
    case 12: say_file(1, BC_FILE_OP_READ, 1u << 20); break;
    case 13: client_says(BC_FRAME_FILE, 1, out.data, 11); break;
    case 14: say_ask(1, 0, 0); break;
    case 15: say_ask(1, BC_ASK_EXTEND, 0); break;
    case 16: say_ask(1, BC_ASK_EXTEND, UINT64_MAX); break;
    case 17: client_says(BC_FRAME_ASK, 1, out.data, 4); break;
    default: ck_abort();
    }
    is_cut_off();
    ck_assert_int_eq(next_frame(guest, &frame), 0);
}
END_TEST

/* What follows a request; the guest hears no more of it than that the command is cancelled. */
START_TEST(malformed_sequels)
{
    static unsigned char bytes[BC_FRAME_MAX_DATA];
    bc_frame frame;
    start_command(_i < 3 ? BC_EXEC_INPUT : 0);
    switch (_i) {
    case 0:
        for (int i = 0; i < 4; i++) { /* a window is fine */
            client_says(BC_FRAME_INPUT, 5, bytes, sizeof bytes);
            guest_hears(BC_FRAME_INPUT, 2, &frame);
        }
        client_says(BC_FRAME_INPUT, 5, bytes, 1);
        break;
    case 1:
        client_says(BC_FRAME_INPUT_END, 5, NULL, 0);
        guest_hears(BC_FRAME_INPUT_END, 2, &frame);
        client_says(BC_FRAME_INPUT, 5, bytes, 1);
        break;
    case 2: client_says(BC_FRAME_INPUT_END, 5, bytes, 1); break;
    case 3: client_says(BC_FRAME_INPUT, 5, bytes, 1); break;
    case 4:
        bytes[0] = BC_FRAME_OUT;
        bytes[1] = 1; /* nothing has been taken yet */
        client_says(BC_FRAME_CREDIT, 5, bytes, 5);
        break;
    case 5: client_says(BC_FRAME_CREDIT, 5, "\1\0\0\0\0", 5); break;
    case 6: client_says(BC_FRAME_SIGNAL, 5, "\0\0\0\0", 4); break;
    case 7: client_says(BC_FRAME_SIGNAL, 5, "\101\0\0\0", 4); break; /* 65 */
    case 8: client_says(BC_FRAME_CANCEL, 5, bytes, 1); break;
    case 9: client_says(BC_FRAME_RESIZE, 5, "\0\0\1\0\1\0\0\0", 8); break;
    case 10: client_says(BC_FRAME_SIGNAL, 6, "\1\0\0\0", 4); break; /* no stream yet */
    case 11: say_exec(5, (struct exec){.argc = 1}); break;          /* the number again */
    case 12: say_exec(4, (struct exec){.argc = 1}); break;          /* and a lower one */
    default: ck_abort();
    }
    is_cut_off();
    guest_hears(BC_FRAME_CANCEL, 2, &frame);
}
END_TEST

/* A client is gone: its output is taken in its place, so that the end can come. */
START_TEST(orphans)
{
    static unsigned char bytes[BC_FRAME_MAX_DATA];
    bc_frame frame;
    int detached = _i == 1;
    start_command(BC_EXEC_STREAMING | (detached ? BC_EXEC_DETACH | BC_EXEC_INPUT : 0));
    say(BC_FRAME_OUT, 2, bytes, sizeof bytes); /* not taken by the client */
    close(client);
    client = -1;
    guest_hears(detached ? BC_FRAME_INPUT_END : BC_FRAME_CANCEL, 2, &frame);
    guest_hears(BC_FRAME_CREDIT, 2, &frame);
    ck_assert_uint_eq(bc_get_u32(frame.payload + 1), sizeof bytes);
    uint64_t credit = 0;
    for (int i = 0; i < 40; i++) {
        say(BC_FRAME_ERR, 2, bytes, sizeof bytes);
        while (next_frame(guest, &frame) > 0) {
            ck_assert_uint_eq(frame.type, BC_FRAME_CREDIT);
            credit += bc_get_u32(frame.payload + 1);
        }
    }
    ck_assert_uint_ge(credit, 37 * sizeof bytes);
    ck_assert_int_eq(status().state, BARCHAN_SANDBOX_READY);
    ck_assert_int_eq(status().running, 1);
    bc_wire_writer out = payload();
    bc_wire_put_exit(&out, &(bc_exit){.exit_code = 0});
    say(BC_FRAME_EXIT, 2, out.data, out.len);
    ck_assert_int_eq(status().running, 0);
}
END_TEST

START_TEST(more_streams_than_there_are)
{
    bc_frame frame;
    greet();
    for (uint32_t i = 1; i <= BC_FRAME_MAX_STREAMS + 2; i++) {
        say_ask(i, BC_ASK_USAGE, 0);
    }
    for (uint32_t i = 0; i < 3; i++) { /* the holder has one for itself */
        client_hears(BC_FRAME_ANSWER, BC_FRAME_MAX_STREAMS + i, &frame);
        ck_assert_uint_eq(bc_get_u32(frame.payload), BC_WIRE_ELIMIT);
    }
    say_exec(1000, (struct exec){.argc = 1});
    client_hears(BC_FRAME_EXIT, 1000, &frame);
    ck_assert_uint_eq(bc_get_u32(frame.payload), BC_EXIT_SPAWN_FAILED);
    say_file(1001, BC_FILE_OP_STAT, 0);
    client_hears(BC_FRAME_FILE_DONE, 1001, &frame);
}
END_TEST

START_TEST(one_that_never_reads)
{
    static unsigned char bytes[BC_FRAME_MAX_DATA];
    bc_frame frame;
    start_command(BC_EXEC_STREAMING);
    for (int i = 0; i < 4; i++) {
        say(BC_FRAME_OUT, 2, bytes, sizeof bytes);
    }
    /* Each question is answered with 64 KiB of the log. */
    int asked = 0;
    unsigned char ask[BC_FRAME_HEADER + 12];
    for (; asked < 3000; asked++) {
        bc_frame_put_header(ask, BC_FRAME_ASK, (uint32_t)(asked + 6), 12);
        bc_put_u32(ask + BC_FRAME_HEADER, BC_HELD_ASK_LOGS);
        bc_put_u64(ask + BC_FRAME_HEADER + 4, 0);
        if (send(client, ask, sizeof ask, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) break;
        barchan_runtime_pump(rt, 0, NULL);
    }
    /* It is not read from once so much waits for it; what it asks then stays in the socket. */
    ck_assert_int_gt(asked, BC_CHANNEL_MAX_UNREAD / BC_FRAME_MAX_DATA);
    ck_assert_int_lt(asked, 3000);
    close(client);
    client = -1;
    guest_hears(BC_FRAME_CANCEL, 2, &frame);
}
END_TEST

START_TEST(many_clients)
{
    enum { ALL = BC_HOLD_MAX_CLIENTS + BC_HOLD_SPARE_CLIENTS };
    int all[ALL], first = client;
    bc_frame frame;
    greet();
    for (int i = 0; i < ALL; i++) {
        ck_assert_int_eq(bc_held_connect(status().id, &all[i], NULL), 0);
        pump();
    }
    int last = all[ALL - 1];
    client = all[BC_HOLD_MAX_CLIENTS]; /* a spare one: it may ask, and starts nothing */
    client_says(BC_FRAME_HELLO, 0, (unsigned char[8]){BC_HELD_VERSION}, 8);
    client_hears(BC_HELD_NEWS, 0, &frame);
    client_hears(BC_HELD_READY, 0, &frame);
    say_exec(1, (struct exec){.argc = 1});
    client_hears(BC_FRAME_EXIT, 1, &frame);
    ck_assert_uint_eq(bc_get_u32(frame.payload), BC_EXIT_SPAWN_FAILED);
    say_file(2, BC_FILE_OP_STAT, 0);
    client_hears(BC_FRAME_FILE_DONE, 2, &frame);
    ck_assert_ptr_nonnull(memmem(frame.payload, frame.length, "this one may only ask", 21));
    say_ask(3, BC_HELD_ASK_LOGS, 0);
    client_hears(BC_FRAME_ANSWER, 3, &frame);
    int spare = client;
    client = first;
    ck_assert_int_eq(next_frame(last, &frame), 1);
    ck_assert_uint_eq(frame.type, BC_FRAME_FAILED);
    ck_assert_int_eq(next_frame(last, &frame), -1);
    ck_assert_int_eq(next_frame(all[0], &frame), 0);
    for (int i = 0; i < ALL; i++) {
        if (all[i] != spare) close(all[i]);
    }
    pump();
    client = spare; /* it is none any more */
    say_exec(4, (struct exec){.argc = 1});
    guest_hears(BC_FRAME_EXEC, 2, &frame);
    client = first;
    close(spare);
    pump();
    ck_assert_int_eq(bc_held_connect(status().id, &last, NULL), 0); /* there is room again */
    pump();
    ck_assert_int_eq(next_frame(last, &frame), 0);
    close(last);
}
END_TEST

/* No descriptor is left: the holder waits, and does not spin. */
START_TEST(no_descriptors)
{
    int waiting, taken[4096], count = 0;
    struct rlimit old, low;
    bc_frame frame;
    greet();
    ck_assert_int_eq(bc_held_connect(status().id, &waiting, NULL), 0);
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &old), 0);
    low = (struct rlimit){.rlim_cur = 200, .rlim_max = old.rlim_max};
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &low), 0);
    while (count < 4096 && (taken[count] = dup(0)) >= 0) {
        count++;
    }
    int turns = 0;
    for (int64_t until = bc_clock_ms() + 150; bc_clock_ms() < until; turns++) {
        barchan_runtime_pump(rt, 10, NULL);
    }
    ck_assert_int_lt(turns, 60);
    ck_assert_int_eq(next_frame(waiting, &frame), 0);
    while (count > 0) {
        close(taken[--count]);
    }
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &old), 0);
    unsigned char hello[BC_FRAME_HEADER + 8] = {8, 0, 0, 0, BC_FRAME_HELLO};
    hello[BC_FRAME_HEADER] = BC_HELD_VERSION;
    ck_assert_int_eq(send(waiting, hello, sizeof hello, MSG_NOSIGNAL), (int)sizeof hello);
    while (next_frame(waiting, &frame) == 0) {
        barchan_runtime_pump(rt, 50, NULL);
    }
    ck_assert_uint_eq(frame.type, BC_HELD_NEWS);
    close(waiting);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("hold");
    TCase *held = tcase_create("held");
    tcase_add_checked_fixture(held, set_up_held, tear_down_held);
    tcase_set_timeout(held, 60);
    tcase_add_test(held, a_command_from_end_to_end);
    tcase_add_loop_test(held, before_the_greeting, 0, 5);
    tcase_add_loop_test(held, malformed_frames, 0, 9);
    tcase_add_loop_test(held, malformed_requests, 0, 18);
    tcase_add_loop_test(held, malformed_sequels, 0, 13);
    tcase_add_loop_test(held, orphans, 0, 2);
    tcase_add_test(held, more_streams_than_there_are);
    tcase_add_test(held, one_that_never_reads);
    tcase_add_test(held, many_clients);
    tcase_add_test(held, no_descriptors);
    suite_add_tcase(suite, held);
    return suite_end(suite);
}
