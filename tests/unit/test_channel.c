/*
 * The library's end against a hostile guest: a sandbox whose backend is this test, which writes
 * whatever it likes into the channel. Every breach ends that sandbox with protocol_error and
 * leaves the runtime working.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/limits.h"
#include "sandbox/internal.h"

static barchan_runtime *rt;
static barchan_sandbox *sbx;
static int guest; /* the test's end of the channel */
static int killed;

static void kill_fake(barchan_sandbox *sandbox)
{
    (void)sandbox;
    killed++;
}

static int start_fake(barchan_sandbox *sandbox, int *channel_fd, barchan_error *err)
{
    int pair[2];
    (void)sandbox, (void)err;
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    *channel_fd = pair[0];
    guest = pair[1];
    return 0;
}

static void extend_fake(barchan_sandbox *sandbox)
{
    (void)sandbox;
}

static const bc_backend fake = {"fake", start_fake, kill_fake, extend_fake};

static struct {
    int created, created_code;
    int exec_done, file_done, file_code, usage_done, usage_code;
    char message[600];
    uint64_t peak;
    barchan_exec_reason reason;
    size_t out_len;
    uint64_t dropped;
} seen;

static void on_created(barchan_sandbox *sandbox, const barchan_error *err, void *ud)
{
    (void)sandbox, (void)ud;
    seen.created++;
    seen.created_code = err == NULL ? 0 : err->code;
}

static void on_exec(barchan_exec *exec, barchan_exec_result *result, void *ud)
{
    (void)exec, (void)ud;
    seen.exec_done++;
    seen.reason = result->reason;
    seen.out_len = result->out.len;
    seen.dropped = result->out.dropped;
    ck_assert_ptr_nonnull(result->out.data);
    ck_assert_ptr_nonnull(result->err_out.data);
}

static void on_file(barchan_file_result *result, const barchan_error *err, void *ud)
{
    (void)result, (void)ud;
    seen.file_done++;
    seen.file_code = err == NULL ? 0 : err->code;
    if (err != NULL) memcpy(seen.message, err->message, sizeof err->message);
}

static void pump(void)
{
    for (int i = 0; i < 10; i++) {
        barchan_runtime_pump(rt, 0, NULL);
    }
}

/* ---- what the fake guest says ---- */

static void say_raw(const void *data, size_t len)
{
    ck_assert_int_eq(send(guest, data, len, MSG_NOSIGNAL), (int)len);
    pump();
}

static void say(uint32_t type, uint32_t stream, const void *payload, size_t len)
{
    unsigned char *frame = malloc(BC_FRAME_HEADER + len);
    bc_frame_put_header(frame, type, stream, (uint32_t)len);
    if (len > 0) memcpy(frame + BC_FRAME_HEADER, payload, len);
    say_raw(frame, BC_FRAME_HEADER + len);
    free(frame);
}

static bc_wire_writer payload(void)
{
    static unsigned char bytes[70000];
    return (bc_wire_writer){.data = bytes, .cap = sizeof bytes};
}

static void say_ready(void)
{
    bc_wire_writer out = payload();
    bc_wire_put_u32(&out, BC_FRAME_VERSION);
    bc_wire_put_u32(&out, 0);
    bc_wire_put_u32(&out, 1);
    bc_wire_put_string(&out, "lay\"er", 6);
    bc_wire_put_string(&out, "ho\nw", 4);
    say(BC_FRAME_READY, 0, out.data, out.len);
}

static void say_exit(bc_exit e)
{
    bc_wire_writer out = payload();
    bc_wire_put_exit(&out, &e);
    say(BC_FRAME_EXIT, 1, out.data, out.len);
}

/* ---- fixtures ---- */

static void setup(void)
{
    memset(&seen, 0, sizeof seen);
    killed = 0;
    ck_assert_int_eq(barchan_runtime_create(&rt, NULL, NULL), 0);
    ck_assert_int_eq(bc_sandbox_create_with(&sbx, rt, NULL, &fake, on_created, NULL, NULL), 0);
}

static void setup_ready(void)
{
    setup();
    say_ready();
    ck_assert_int_eq(seen.created, 1);
    ck_assert_int_eq(seen.created_code, 0);
}

static void start_exec(int64_t limit)
{
    const barchan_exec_options options = {
        .struct_size = sizeof options, .command = "x", .out_limit_bytes = limit};
    ck_assert_int_eq(barchan_sandbox_exec_start(NULL, sbx, &options, on_exec, NULL, NULL), 0);
}

static void start_file(barchan_file_op op)
{
    const barchan_file_request request = {
        .struct_size = sizeof request, .op = op, .path = "p", .data = "d", .data_len = 1};
    ck_assert_int_eq(barchan_sandbox_file_start(NULL, sbx, &request, on_file, NULL, NULL), 0);
}

static void teardown(void)
{
    if (sbx != NULL) bc_sandbox_gone(sbx, BC_ENDING_UNKNOWN, NULL);
    close(guest);
    barchan_runtime_destroy(rt);
}

static barchan_sandbox_info status(void)
{
    barchan_sandbox_info info = {.struct_size = sizeof info};
    barchan_sandbox_status(sbx, &info, NULL);
    return info;
}

static void broke_the_protocol(void)
{
    pump();
    ck_assert_int_eq(status().state, BARCHAN_SANDBOX_ENDED);
    ck_assert_int_eq(status().end_reason, BARCHAN_END_PROTOCOL_ERROR);
    ck_assert_int_ge(killed, 1);
}

/* ---- tests ---- */

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
    bc_sandbox_gone(sbx, BC_ENDING_UNKNOWN, NULL);
    pump();
    ck_assert_int_eq(status().end_reason, BARCHAN_END_CRASHED);
    ck_assert_int_eq(seen.exec_done, 1);
    ck_assert_int_eq(seen.reason, BARCHAN_EXEC_LOST);
    ck_assert_uint_eq(seen.out_len, 3);
    barchan_sandbox_destroy(sbx);
    sbx = NULL;
}
END_TEST

START_TEST(hostile_exits)
{
    bc_exit e = {0};
    unsigned char small[3] = {0};
    start_exec(10);
    switch (_i) {
    case 0: e.reason = 5; break; /* lost is not the guest's to say */
    case 1: e.reason = BC_EXIT_OUTPUT + 1; break;
    case 2: e.exit_code = 256; break;
    case 3: e.term_signal = 65; break;
    case 4: e.out_dropped = 1; break; /* nothing is dropped below the limit */
    case 5: e.spawn_errno = UINT32_MAX; break;
    case 6: say(BC_FRAME_EXIT, 1, small, sizeof small); break;
    default: ck_abort();
    }
    if (_i < 6) say_exit(e);
    broke_the_protocol();
    ck_assert_int_eq(seen.exec_done, 1);
    ck_assert_int_eq(seen.reason, BARCHAN_EXEC_LOST);
}
END_TEST

static void on_usage(const barchan_usage *usage, const barchan_error *err, void *ud)
{
    (void)ud;
    seen.usage_done++;
    seen.usage_code = usage == NULL ? err->code : 0;
    if (err != NULL) memcpy(seen.message, err->message, sizeof err->message);
    if (usage != NULL) seen.peak = usage->memory_peak_bytes;
}

static void say_answer_with(const char *words, uint32_t status, uint32_t os_error,
                            const bc_usage *usage)
{
    bc_wire_writer out = payload();
    bc_wire_put_u32(&out, status);
    bc_wire_put_u32(&out, os_error);
    bc_wire_put_string(&out, words, strlen(words));
    if (usage != NULL) bc_wire_put_usage(&out, usage);
    say(BC_FRAME_ANSWER, 1, out.data, out.len);
}

static void say_answer(uint32_t status, uint32_t os_error, const bc_usage *usage)
{
    say_answer_with("why", status, os_error, usage);
}

START_TEST(answers)
{
    const bc_usage huge = {.memory_peak_bytes = UINT64_MAX};
    ck_assert_int_eq(barchan_sandbox_usage_start(sbx, on_usage, NULL, NULL), 0);
    say_answer(0, 0, &huge);
    ck_assert_int_eq(seen.usage_done, 1);
    ck_assert_int_eq(seen.usage_code, 0);
    ck_assert_uint_eq(seen.peak, BC_USAGE_MAX);
    ck_assert_int_eq(status().state, BARCHAN_SANDBOX_READY);
}
END_TEST

START_TEST(a_refusing_answer)
{
    ck_assert_int_eq(barchan_sandbox_usage_start(sbx, on_usage, NULL, NULL), 0);
    say_answer(BC_WIRE_EUNSUPPORTED, 0, NULL);
    ck_assert_int_eq(seen.usage_code, BARCHAN_EUNSUPPORTED);
    ck_assert_int_eq(status().state, BARCHAN_SANDBOX_READY);
}
END_TEST

/* A reason is always given, and none of the guest's steers a terminal. */
START_TEST(hostile_words)
{
    static const char *const words[] = {"", "\x1b]0;x\x07\x7f"};
    static const char *const shown[] = {"unsupported", "?]0;x??"};
    ck_assert_int_eq(barchan_sandbox_usage_start(sbx, on_usage, NULL, NULL), 0);
    say_answer_with(words[_i], BC_WIRE_EUNSUPPORTED, 0, NULL);
    ck_assert_str_eq(seen.message, shown[_i]);
    start_file(BARCHAN_FILE_STAT);
    bc_wire_writer out = payload();
    bc_wire_put_u32(&out, BC_WIRE_EUNSUPPORTED);
    bc_wire_put_u32(&out, 0);
    bc_wire_put_u64(&out, 0);
    bc_wire_put_u64(&out, 0);
    bc_wire_put_u32(&out, 0);
    bc_wire_put_string(&out, words[_i], strlen(words[_i]));
    say(BC_FRAME_FILE_DONE, 2, out.data, out.len);
    ck_assert_int_eq(seen.file_done, 1);
    ck_assert_ptr_nonnull(strstr(seen.message, shown[_i]));
    ck_assert_int_eq(status().state, BARCHAN_SANDBOX_READY);
}
END_TEST

START_TEST(hostile_answers)
{
    const bc_usage usage = {0};
    ck_assert_int_eq(barchan_sandbox_usage_start(sbx, on_usage, NULL, NULL), 0);
    switch (_i) {
    case 0: say_answer(0, 0, NULL); break; /* too short */
    case 1: say_answer(999, 0, &usage); break;
    case 2: say_answer(0, 0, &usage), say_answer(0, 0, &usage); break; /* twice */
    case 3: say(BC_FRAME_OUT, 1, "x", 1); break;
    case 4: say(BC_FRAME_ANSWER, 0, "", 0); break;
    case 5: say(BC_FRAME_STATE, 0, "\1\0\0\0", 4); break;  /* nobody asked for a pause */
    case 6: say(BC_FRAME_ENDING, 0, "\4\0\0\0", 4); break; /* that is the launcher's to say */
    default: ck_abort();
    }
    broke_the_protocol();
    bc_sandbox_gone(sbx, BC_ENDING_UNKNOWN, NULL);
    pump();
    ck_assert_int_eq(seen.usage_done, 1); /* told what was known */
    ck_assert_int_eq(seen.usage_code, 0);
    barchan_sandbox_destroy(sbx);
    sbx = NULL;
}
END_TEST

START_TEST(output_above_the_cap)
{
    start_exec(10);
    say(BC_FRAME_OUT, 1, "0123456789", 10);
    ck_assert_int_eq(status().state, BARCHAN_SANDBOX_READY);
    say(BC_FRAME_OUT, 1, "x", 1);
    broke_the_protocol();
}
END_TEST

START_TEST(a_dropped_count)
{
    start_exec(10);
    say(BC_FRAME_OUT, 1, "0123456789", 10);
    say_exit((bc_exit){.out_dropped = 1ull << 50});
    ck_assert_int_eq(seen.exec_done, 1);
    ck_assert_uint_eq(seen.dropped, 1ull << 50);
    ck_assert_int_eq(status().state, BARCHAN_SANDBOX_READY);
}
END_TEST

static void pause_it(barchan_exec *exec, barchan_stream stream, const char *data, size_t len,
                     void *ud)
{
    (void)stream, (void)data, (void)len, (void)ud;
    barchan_exec_pause(exec);
}

START_TEST(output_above_the_credit)
{
    static char chunk[BC_FRAME_MAX_DATA];
    const barchan_exec_options options = {
        .struct_size = sizeof options, .command = "x", .streaming = 1, .on_output = pause_it};
    ck_assert_int_eq(barchan_sandbox_exec_start(NULL, sbx, &options, on_exec, NULL, NULL), 0);
    say(BC_FRAME_OUT, 1, chunk, sizeof chunk); /* this one is given out, and credited */
    for (int i = 0; i < 4; i++) {
        say(BC_FRAME_OUT, 1, chunk, sizeof chunk);
    }
    ck_assert_int_eq(status().state, BARCHAN_SANDBOX_READY);
    say(BC_FRAME_OUT, 1, chunk, 1);
    broke_the_protocol();
}
END_TEST

START_TEST(credit_above_the_window)
{
    start_exec(0);
    say(BC_FRAME_GRANT, 1, "\x01\0\0\0", 4);
    broke_the_protocol();
}
END_TEST

START_TEST(hostile_entries)
{
    bc_wire_writer out = payload();
    start_file(_i < 2 ? BARCHAN_FILE_STAT : BARCHAN_FILE_LIST);
    for (int k = 0; k < (_i == 0 ? 2 : 1); k++) { /* 0: two answers to one stat */
        bc_wire_put_u32(&out, _i == 2 ? 99 : 1);  /* 2: no such type */
        bc_wire_put_u32(&out, 0);
        bc_wire_put_u64(&out, 0);
        bc_wire_put_u64(&out, 0);
        bc_wire_put_string(&out, "a", 1);
        bc_wire_put_string(&out, "", 0);
    }
    if (_i == 1) out.len = 0;  /* 1: none */
    if (_i == 3) out.len -= 1; /* 3: cut off */
    say(BC_FRAME_OUT, 1, out.data, out.len);
    out = payload();
    bc_wire_put_u32(&out, 0);
    bc_wire_put_u32(&out, 0);
    bc_wire_put_u64(&out, 0);
    bc_wire_put_u64(&out, 0);
    bc_wire_put_u32(&out, 0);
    bc_wire_put_string(&out, "", 0);
    say(BC_FRAME_FILE_DONE, 1, out.data, out.len);
    broke_the_protocol();
    ck_assert_int_eq(seen.file_done, 1);
    ck_assert_int_eq(seen.file_code, BARCHAN_ELOST);
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
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, the_handshake);
    tcase_add_test(tc, another_version);
    tcase_add_test(tc, a_reported_failure);
    tcase_add_test(tc, frames_before_the_handshake);
    suite_add_tcase(suite, tc);
    tc = tcase_create("hostile");
    tcase_set_timeout(tc, 30);
    tcase_add_checked_fixture(tc, setup_ready, teardown);
    tcase_add_loop_test(tc, unknown_streams_and_types, 0, 10);
    tcase_add_test(tc, a_truncated_frame_waits);
    tcase_add_test(tc, a_death_in_the_middle);
    tcase_add_loop_test(tc, hostile_exits, 0, 7);
    tcase_add_test(tc, answers);
    tcase_add_test(tc, a_refusing_answer);
    tcase_add_loop_test(tc, hostile_answers, 0, 7);
    tcase_add_loop_test(tc, hostile_words, 0, 2);
    tcase_add_test(tc, output_above_the_cap);
    tcase_add_test(tc, a_dropped_count);
    tcase_add_test(tc, output_above_the_credit);
    tcase_add_test(tc, credit_above_the_window);
    tcase_add_loop_test(tc, hostile_entries, 0, 4);
    tcase_add_test(tc, a_guest_that_does_not_answer);
    tcase_add_loop_test(tc, noise, 0, 200);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
