/* What a hostile guest answers: ends of commands, output, entries of folders, usage, words. */
#include "fake_guest.h"

#include "base/limits.h"
#include "suite.h"

/* ---- commands ---- */

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

/* ---- files ---- */

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
    say_file_done(1, 0, "");
    broke_the_protocol();
    ck_assert_int_eq(seen.file_done, 1);
    ck_assert_int_eq(seen.file_code, BARCHAN_ELOST);
}
END_TEST

static void put_change(bc_wire_writer *out, uint32_t change, const char *path)
{
    bc_wire_put_u32(out, change);
    bc_wire_put_u32(out, 1);
    bc_wire_put_u32(out, 0644);
    bc_wire_put_u64(out, 1);
    bc_wire_put_u64(out, 1);
    bc_wire_put_string(out, path, strlen(path));
    bc_wire_put_string(out, "", 0);
}

/* What could lead out of a folder that changes are applied to is no change. */
static const char *const hostile_paths[] = {
    "",    "/",   "/etc/passwd", "..", "../x", "a/..",  "a/../b",       ".",
    "./a", "a/.", "a//b",        "a/", "/..",  "a/./b", "a/../../etc/x"};

START_TEST(hostile_changes)
{
    bc_wire_writer out = payload();
    start_file(BARCHAN_FILE_CHANGES);
    put_change(&out, BC_FILE_ADDED, hostile_paths[_i]);
    say(BC_FRAME_OUT, 1, out.data, out.len);
    say_file_done(1, 0, "");
    broke_the_protocol();
    ck_assert_int_eq(seen.file_code, BARCHAN_ELOST);
}
END_TEST

START_TEST(odd_changes)
{
    bc_wire_writer out = payload();
    start_file(BARCHAN_FILE_CHANGES);
    switch (_i) {
    case 0: put_change(&out, 0, "a"); break;
    case 1: put_change(&out, 4, "a"); break;
    case 2: put_change(&out, BC_FILE_ADDED, "a"), put_change(&out, BC_FILE_DELETED, "a"); break;
    case 3: put_change(&out, BC_FILE_ADDED, "a"), out.len -= 1; break;
    default: ck_abort();
    }
    say(BC_FRAME_OUT, 1, out.data, out.len);
    say_file_done(1, 0, "");
    broke_the_protocol();
}
END_TEST

/* Any other name is one. */
START_TEST(right_changes)
{
    bc_wire_writer out = payload();
    start_file(BARCHAN_FILE_CHANGES);
    put_change(&out, BC_FILE_MODIFIED, "...");
    put_change(&out, BC_FILE_ADDED, "a/..b/.c");
    put_change(&out, BC_FILE_DELETED, "\x1b\xff");
    say(BC_FRAME_OUT, 1, out.data, out.len);
    say_file_done(1, 0, "");
    ck_assert_int_eq(seen.file_done, 1);
    ck_assert_int_eq(seen.file_code, 0);
    ck_assert_int_eq(status().state, BARCHAN_SANDBOX_READY);
}
END_TEST

/* ---- questions ---- */

static int usage_done, usage_code;
static uint64_t usage_peak;

static void on_usage(const barchan_usage *usage, const barchan_error *err, void *ud)
{
    (void)ud;
    usage_done++;
    usage_code = usage == NULL ? err->code : 0;
    if (err != NULL) memcpy(seen.message, err->message, sizeof err->message);
    if (usage != NULL) usage_peak = usage->memory_peak_bytes;
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
    ck_assert_int_eq(usage_done, 1);
    ck_assert_int_eq(usage_code, 0);
    ck_assert_uint_eq(usage_peak, BC_USAGE_MAX);
    ck_assert_int_eq(status().state, BARCHAN_SANDBOX_READY);
}
END_TEST

START_TEST(a_refusing_answer)
{
    ck_assert_int_eq(barchan_sandbox_usage_start(sbx, on_usage, NULL, NULL), 0);
    say_answer(BC_WIRE_EUNSUPPORTED, 0, NULL);
    ck_assert_int_eq(usage_code, BARCHAN_EUNSUPPORTED);
    ck_assert_int_eq(status().state, BARCHAN_SANDBOX_READY);
}
END_TEST

START_TEST(hostile_words)
{
    static const char *const words[] = {"", "\x1b]0;x\x07\x7f"};
    static const char *const shown[] = {"unsupported", "?]0;x??"};
    ck_assert_int_eq(barchan_sandbox_usage_start(sbx, on_usage, NULL, NULL), 0);
    say_answer_with(words[_i], BC_WIRE_EUNSUPPORTED, 0, NULL);
    ck_assert_str_eq(seen.message, shown[_i]);
    start_file(BARCHAN_FILE_STAT);
    say_file_done(2, BC_WIRE_EUNSUPPORTED, words[_i]);
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
    bury();
    ck_assert_int_eq(usage_done, 1); /* told what was known */
    ck_assert_int_eq(usage_code, 0);
    barchan_sandbox_destroy(sbx);
    sbx = NULL;
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("channel_answers");
    TCase *tc = tcase_create("hostile");
    tcase_set_timeout(tc, SUITE_TIMEOUT_SECONDS);
    tcase_add_checked_fixture(tc, set_up_ready, tear_down);
    tcase_add_loop_test(tc, hostile_exits, 0, 7);
    tcase_add_test(tc, output_above_the_cap);
    tcase_add_test(tc, a_dropped_count);
    tcase_add_test(tc, output_above_the_credit);
    tcase_add_test(tc, credit_above_the_window);
    tcase_add_loop_test(tc, hostile_entries, 0, 4);
    tcase_add_loop_test(tc, hostile_changes, 0, sizeof hostile_paths / sizeof *hostile_paths);
    tcase_add_loop_test(tc, odd_changes, 0, 4);
    tcase_add_test(tc, right_changes);
    tcase_add_test(tc, answers);
    tcase_add_test(tc, a_refusing_answer);
    tcase_add_loop_test(tc, hostile_words, 0, 2);
    tcase_add_loop_test(tc, hostile_answers, 0, 7);
    suite_add_tcase(suite, tc);
    return suite_end(suite);
}
