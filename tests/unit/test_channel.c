/* The library's end of the channel against a hostile guest: the handshake, frames and streams. */
#include "fake_guest.h"

#include <unistd.h>
#include "base/clock.h"
#include "suite.h"

START_TEST(the_handshake)
{
    say_ready();
    ck_assert_int_eq(status().state, BARCHAN_SANDBOX_READY);
    ck_assert_str_eq(status().layers, "{\"lay\\\"er\":\"ho\\nw\"}");
    ck_assert_int_eq(seen.created, 1);
    say_ready(); /* twice is one too many */
    broke_the_protocol();
    ck_assert_int_eq(seen.created, 1);
}
END_TEST

static int created_by_then;

static void note_order(barchan_exec *exec, barchan_exec_result *result, void *ud)
{
    on_exec(exec, result, ud);
    created_by_then = seen.created;
}

/* A host that was busy finds both in one read. */
START_TEST(the_creation_is_told_before_the_first_command_ends)
{
    const barchan_exec_options options = {.struct_size = sizeof options, .command = "x"};
    unsigned char bytes[2 * BC_FRAME_HEADER + 12 + BC_EXIT_BYTES];
    bc_wire_writer out = {.data = bytes, .len = BC_FRAME_HEADER, .cap = sizeof bytes};
    const bc_exit e = {0};
    ck_assert_int_eq(barchan_sandbox_exec_start(NULL, sbx, &options, note_order, NULL, NULL), 0);
    bc_wire_put_u32(&out, BC_FRAME_VERSION);
    bc_wire_put_u32(&out, 0);
    bc_wire_put_u32(&out, 0);
    bc_frame_put_header(bytes, BC_FRAME_READY, 0, 12);
    bc_frame_put_header(bytes + out.len, BC_FRAME_EXIT, 1, BC_EXIT_BYTES);
    out.len += BC_FRAME_HEADER;
    bc_wire_put_exit(&out, &e);
    say_raw(bytes, out.len);
    ck_assert_int_eq(seen.exec_done, 1);
    ck_assert_int_eq(created_by_then, 1);
}
END_TEST

START_TEST(another_version)
{
    bc_wire_writer out = payload();
    bc_wire_put_u32(&out, BC_FRAME_VERSION + 1);
    bc_wire_put_u32(&out, 0);
    bc_wire_put_u32(&out, 0);
    say(BC_FRAME_READY, 0, out.data, out.len);
    broke_the_protocol();
    ck_assert_int_eq(seen.created_code, BARCHAN_EPROTOCOL);
}
END_TEST

START_TEST(a_reported_failure)
{
    bc_wire_writer out = payload();
    bc_wire_put_u32(&out, 0);
    bc_wire_put_u32(&out, 13);
    bc_wire_put_string(&out, "mount \x1b[31mproc: denied", 23);
    say(BC_FRAME_FAILED, 0, out.data, out.len);
    ck_assert_int_eq(seen.created_code, BARCHAN_EPERMISSION);
    ck_assert_int_eq(status().end_reason, BARCHAN_END_CREATE_FAILED);
}
END_TEST

START_TEST(frames_before_the_handshake)
{
    start_exec(0);
    say(BC_FRAME_OUT, 1, "x", 1);
    broke_the_protocol();
    ck_assert_int_eq(seen.exec_done, 1);
    ck_assert_int_eq(seen.reason, BARCHAN_EXEC_LOST);
}
END_TEST

START_TEST(unknown_streams_and_types)
{
    unsigned char header[BC_FRAME_HEADER];
    switch (_i) {
    case 0: say(BC_FRAME_OUT, 1, "x", 1); break; /* no such stream */
    case 1: say(BC_FRAME_OUT, 0, "x", 1); break;
    case 2: say(BC_FRAME_EXEC, 1, "", 0); break; /* the other direction */
    case 3: say(200, 1, "", 0); break;
    case 4: /* longer than allowed, told by the header alone */
        bc_frame_put_header(header, BC_FRAME_OUT, 1, BC_FRAME_MAX_DATA + 1);
        say_raw(header, sizeof header);
        break;
    case 5: say_raw("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 12); break;
    case 6: say(BC_FRAME_ENDING, 0, "\x09\0\0\0", 4); break;
    case 7: say(BC_FRAME_FAILED, 0, "", 0); break;
    case 8:
        start_exec(0);
        say(BC_FRAME_FILE_DONE, 1, "", 0);
        break;
    case 9:
        start_file(BARCHAN_FILE_STAT);
        say(BC_FRAME_EXIT, 1, "", 0);
        break;
    default: ck_abort();
    }
    broke_the_protocol();
}
END_TEST

START_TEST(a_truncated_frame_waits)
{
    start_exec(0);
    bc_exit e = {.exit_code = 3};
    unsigned char bytes[BC_FRAME_HEADER + BC_EXIT_BYTES];
    bc_wire_writer out = {.data = bytes, .len = BC_FRAME_HEADER, .cap = sizeof bytes};
    bc_wire_put_exit(&out, &e);
    bc_frame_put_header(bytes, BC_FRAME_EXIT, 1, BC_EXIT_BYTES);
    for (size_t i = 0; i < sizeof bytes; i++) {
        ck_assert_int_eq(seen.exec_done, 0);
        say_raw(bytes + i, 1);
    }
    ck_assert_int_eq(seen.exec_done, 1);
    ck_assert_int_eq(seen.reason, BARCHAN_EXEC_EXITED);
    say_raw(bytes, sizeof bytes); /* its stream is closed */
    broke_the_protocol();
}
END_TEST

START_TEST(a_death_in_the_middle)
{
    start_exec(0);
    say(BC_FRAME_OUT, 1, "abc", 3);
    say_raw("\x05\0\0\0", 4);
    close(guest);
    pump();
    ck_assert_int_eq(seen.exec_done, 0); /* the backend knows why */
    bury();
    ck_assert_int_eq(status().end_reason, BARCHAN_END_CRASHED);
    ck_assert_int_eq(seen.exec_done, 1);
    ck_assert_int_eq(seen.reason, BARCHAN_EXEC_LOST);
    ck_assert_uint_eq(seen.out_len, 3);
    barchan_sandbox_destroy(sbx);
    sbx = NULL;
}
END_TEST

START_TEST(a_guest_that_does_not_answer)
{
    const barchan_file_request request = {
        .struct_size = sizeof request, .op = BARCHAN_FILE_STAT, .path = "p", .timeout_ms = 50};
    const barchan_exec_options options = {
        .struct_size = sizeof options, .command = "x", .timeout_ms = 50, .grace_ms = -1};
    ck_assert_int_eq(barchan_sandbox_file_start(NULL, sbx, &request, on_file, NULL, NULL), 0);
    ck_assert_int_eq(barchan_sandbox_exec_start(NULL, sbx, &options, on_exec, NULL, NULL), 0);
    int64_t deadline = bc_clock_ms() + 40000;
    while ((seen.file_done == 0 || seen.exec_done == 0) && bc_clock_ms() < deadline) {
        barchan_runtime_pump(rt, 100, NULL);
    }
    ck_assert_int_eq(seen.file_code, BARCHAN_ETIMEDOUT);
    ck_assert_int_eq(seen.exec_done, 1);
    ck_assert_int_eq(seen.reason, BARCHAN_EXEC_TIMEOUT);
    say(BC_FRAME_OUT, 1, "late", 4); /* of streams that were given up: dropped */
    say(BC_FRAME_OUT, 2, "late", 4);
    ck_assert_int_eq(status().state, BARCHAN_SANDBOX_READY);
}
END_TEST

START_TEST(noise)
{
    static unsigned char bytes[4096];
    uint64_t state = 0x9E3779B97F4A7C15ull + (uint64_t)_i;
    start_exec(0);
    start_file(BARCHAN_FILE_LIST);
    for (size_t i = 0; i < sizeof bytes; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes[i] = (unsigned char)(state >> 32);
    }
    if (_i % 2 == 0) bc_frame_put_header(bytes, BC_FRAME_READY + (uint32_t)_i % 8, 1, 100);
    say_raw(bytes, sizeof bytes);
    broke_the_protocol();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("channel");
    TCase *tc = tcase_create("handshake");
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, the_handshake);
    tcase_add_test(tc, the_creation_is_told_before_the_first_command_ends);
    tcase_add_test(tc, another_version);
    tcase_add_test(tc, a_reported_failure);
    tcase_add_test(tc, frames_before_the_handshake);
    suite_add_tcase(suite, tc);
    tc = tcase_create("hostile");
    tcase_set_timeout(tc, SUITE_TIMEOUT_SECONDS);
    tcase_add_checked_fixture(tc, set_up_ready, tear_down);
    tcase_add_loop_test(tc, unknown_streams_and_types, 0, 10);
    tcase_add_test(tc, a_truncated_frame_waits);
    tcase_add_test(tc, a_death_in_the_middle);
    tcase_add_test(tc, a_guest_that_does_not_answer);
    tcase_add_loop_test(tc, noise, 0, 200);
    suite_add_tcase(suite, tc);
    return suite_end(suite);
}
