/*
 * The holder of a detached sandbox between a hostile guest and hostile clients: the test is both. A
 * client that breaks the rules is cut off and nothing of what it said reaches the guest; a guest
 * that does ends its sandbox, and the clients are told.
 */
#include "fake_guest.h"

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

static int client = -1; /* a connection that the test speaks by itself */
static int over;
static char scratch[64];

static void on_over(const barchan_error *err, void *ud)
{
    (void)err, (void)ud;
    over++;
}

static void set_up_held(void)
{
    snprintf(scratch, sizeof scratch, "/tmp/barchan-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(scratch));
    setenv("XDG_RUNTIME_DIR", scratch, 1); /* not as root, whose place is fixed */
    over = 0;
    set_up_ready();
    barchan_error err = {0};
    ck_assert_msg(barchan_sandbox_hold(sbx, on_over, NULL, &err) == 0, "%s", err.message);
    ck_assert_int_eq(bc_held_connect(status().id, &client, &err), 0);
}

static void tear_down_held(void)
{
    char command[100];
    tear_down();
    ck_assert_int_eq(over, 1);
    if (client >= 0) close(client);
    client = -1;
    snprintf(command, sizeof command, "rm -r %s", scratch);
    ck_assert_int_eq(system(command), 0);
}

/* ---- what the client says and hears ---- */

static void client_says(uint32_t type, uint32_t stream, const void *data, size_t len)
{
    unsigned char header[BC_FRAME_HEADER];
    bc_frame_put_header(header, type, stream, (uint32_t)len);
    ck_assert_int_eq(send(client, header, sizeof header, MSG_NOSIGNAL), (int)sizeof header);
    for (size_t at = 0; at < len;) {
        ssize_t n = send(client, (const char *)data + at, len - at, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n > 0) at += (size_t)n;
        ck_assert(n > 0 || errno == EAGAIN);
        pump();
    }
    pump();
}

/* The next frame that a socket has; 0: none, -1: it is closed. */
static int next_frame(int fd, bc_frame *frame)
{
    static unsigned char bytes[BC_FRAME_MAX_TO_GUEST];
    ssize_t n = recv(fd, bytes, BC_FRAME_HEADER, MSG_DONTWAIT);
    if (n < 0 && errno == EAGAIN) return 0;
    if (n <= 0) return -1;
    ck_assert_int_eq(n, BC_FRAME_HEADER);
    *frame = (bc_frame){.length = bc_get_u32(bytes),
                        .type = bc_get_u32(bytes + 4),
                        .stream = bc_get_u32(bytes + 8),
                        .payload = bytes};
    for (size_t at = 0; at < frame->length;) {
        n = recv(fd, bytes + at, frame->length - at, MSG_DONTWAIT);
        if (n == 0 || (n < 0 && errno != EAGAIN)) return -1; /* cut off in its midst */
        if (n > 0) at += (size_t)n;
        pump();
    }
    return 1;
}

static void client_hears(uint32_t type, uint32_t stream, bc_frame *frame)
{
    pump();
    ck_assert_int_eq(next_frame(client, frame), 1);
    ck_assert_uint_eq(frame->type, type);
    ck_assert_uint_eq(frame->stream, stream);
}

static void guest_hears(uint32_t type, uint32_t stream, bc_frame *frame)
{
    pump();
    ck_assert_int_eq(next_frame(guest, frame), 1);
    ck_assert_uint_eq(frame->type, type);
    ck_assert_uint_eq(frame->stream, stream);
}

static void is_cut_off(void)
{
    bc_frame frame;
    int rc;
    pump();
    while ((rc = next_frame(client, &frame)) > 0) {}
    ck_assert_int_eq(rc, -1);
    ck_assert_int_eq(status().state, BARCHAN_SANDBOX_READY);
}

static void greet(void)
{
    unsigned char hello[8] = {BC_HELD_VERSION};
    bc_frame frame;
    client_says(BC_FRAME_HELLO, 0, hello, sizeof hello);
    client_hears(BC_HELD_NEWS, 0, &frame);
    ck_assert_uint_eq(frame.length, BC_HELD_NEWS_BYTES);
    client_hears(BC_HELD_READY, 0, &frame);
    ck_assert_int_eq(next_frame(guest, &frame), 1); /* the library's own greeting */
    ck_assert_uint_eq(frame.type, BC_FRAME_HELLO);
}

struct exec {
    uint32_t flags, columns, rows, argc;
    int64_t timeout_ms;
    uint64_t limit;
};

static bc_wire_writer exec_payload(struct exec e)
{
    bc_wire_writer out = payload();
    bc_wire_put_u32(&out, e.flags);
    bc_wire_put_u64(&out, (uint64_t)e.timeout_ms);
    bc_wire_put_u64(&out, 0);
    bc_wire_put_u64(&out, e.limit);
    bc_wire_put_u64(&out, 0);
    bc_wire_put_u32(&out, e.columns);
    bc_wire_put_u32(&out, e.rows);
    bc_wire_put_string(&out, "/", 1);
    bc_wire_put_u32(&out, e.argc);
    for (uint32_t i = 0; i < e.argc; i++) {
        bc_wire_put_string(&out, "x", 1);
    }
    bc_wire_put_u32(&out, 0);
    return out;
}

static void say_exec(uint32_t stream, struct exec e)
{
    bc_wire_writer out = exec_payload(e);
    client_says(BC_FRAME_EXEC, stream, out.data, out.len);
}

static void say_file(uint32_t stream, uint32_t op, uint32_t flags)
{
    bc_wire_writer out = payload();
    const uint32_t small[] = {op, flags, 0, 0};
    for (int i = 0; i < 4; i++) {
        bc_wire_put_u32(&out, small[i]);
    }
    bc_wire_put_u64(&out, 0);
    bc_wire_put_u64(&out, 0);
    bc_wire_put_string(&out, "p", 1);
    bc_wire_put_string(&out, "", 0);
    client_says(BC_FRAME_FILE, stream, out.data, out.len);
}

static void say_ask(uint32_t stream, uint32_t what, uint64_t argument)
{
    unsigned char bytes[12];
    bc_put_u32(bytes, what);
    bc_put_u64(bytes + 4, argument);
    client_says(BC_FRAME_ASK, stream, bytes, sizeof bytes);
}

/* Client stream 5 is the guest's 2: the holder itself has 1, of which the guest never hears. */
static void start_command(uint32_t flags)
{
    bc_frame frame;
    greet();
    say_exec(5, (struct exec){.flags = flags, .argc = 1});
    guest_hears(BC_FRAME_EXEC, 2, &frame);
}

/* ---- clients ---- */

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
    ck_assert_int_gt(asked, BC_CHANNEL_MAX_QUEUE / BC_FRAME_MAX_DATA / 2);
    ck_assert_int_lt(asked, 3000);
    is_cut_off();
    guest_hears(BC_FRAME_CANCEL, 2, &frame);
}
END_TEST

START_TEST(many_clients)
{
    int all[BC_HOLD_MAX_CLIENTS];
    bc_frame frame;
    greet();
    for (int i = 0; i < BC_HOLD_MAX_CLIENTS; i++) {
        ck_assert_int_eq(bc_held_connect(status().id, &all[i], NULL), 0);
        pump();
    }
    int last = all[BC_HOLD_MAX_CLIENTS - 1];
    ck_assert_int_eq(next_frame(last, &frame), 1);
    ck_assert_uint_eq(frame.type, BC_FRAME_FAILED);
    ck_assert_int_eq(next_frame(last, &frame), -1);
    ck_assert_int_eq(next_frame(all[0], &frame), 0);
    for (int i = 0; i < BC_HOLD_MAX_CLIENTS; i++) {
        close(all[i]);
    }
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

/* ---- guests ---- */

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
    tcase_add_loop_test(held, hostile_guests, 0, 10);
    tcase_add_loop_test(held, hostile_answers, 0, 4);
    suite_add_tcase(suite, held);
    return suite_end(suite);
}
