/* Output and input as streams: order, back-pressure, cancel, and calls made inside callbacks. */
#include "sandbox_support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct stream {
    char out[1 << 16];
    size_t out_len, err_len, calls;
    uint64_t bytes;
    int done;
    barchan_exec_result result;
    int pause_at_once, cancel_at_once, destroy_at_once, close_at_drain;
    size_t to_write;
    barchan_exec *exec;
};

static void on_output(barchan_exec *exec, barchan_stream which, const char *data, size_t len,
                      void *ud)
{
    struct stream *s = ud;
    s->calls++;
    s->bytes += len;
    if (which == BARCHAN_STREAM_ERR) s->err_len += len;
    if (which == BARCHAN_STREAM_OUT && s->out_len + len < sizeof s->out) {
        memcpy(s->out + s->out_len, data, len);
        s->out_len += len;
    }
    if (s->pause_at_once) barchan_exec_pause(exec);
    if (s->cancel_at_once) barchan_exec_cancel(exec);
    if (s->destroy_at_once && sbx != NULL) {
        barchan_sandbox_destroy(sbx);
        sbx = NULL;
    }
}

static void on_done(barchan_exec *exec, barchan_exec_result *result, void *ud)
{
    struct stream *s = ud;
    ck_assert_ptr_eq(exec, s->exec);
    ck_assert_int_eq(s->done, 0);
    s->done = 1;
    s->result = *result;
    memset(result, 0, sizeof *result);
}

static int is_done(void *ud)
{
    return ((struct stream *)ud)->done;
}

static void start(struct stream *s, barchan_exec_options *options)
{
    barchan_error err;
    options->streaming = 1;
    options->on_output = on_output;
    options->ud = s;
    int rc = barchan_sandbox_exec_start(&s->exec, sbx, options, on_done, s, &err);
    ck_assert_msg(rc == 0, "%s", err.message);
}

static int says_something(void *ud)
{
    return ((const struct stream *)ud)->out_len > 0;
}

START_TEST(output_comes_as_it_is_written)
{
    struct stream *s = calloc(1, sizeof *s);
    start(s, OPTIONS(.command = "echo one; echo e >&2; until [ -e go ]; do sleep 0.01; done; "
                                "echo two"));
    ck_assert(wait_until(says_something, s, 20000));
    ck_assert_int_eq(s->done, 0);
    file_put_text("go", "");
    ck_assert(wait_until(is_done, s, 20000));
    ck_assert_str_eq(s->out, "one\ntwo\n");
    ck_assert_uint_eq(s->err_len, 2);
    ck_assert_int_eq(s->result.exit_code, 0);
    ck_assert_uint_eq(s->result.out.len, 0);
    ck_assert_ptr_nonnull(s->result.out.data);
    barchan_exec_result_clear(&s->result);
    free(s);
}
END_TEST

START_TEST(large_output_is_complete)
{
    struct stream *s = calloc(1, sizeof *s);
    start(s, OPTIONS(.command = "head -c 100000000 /dev/zero; head -c 50000000 /dev/zero >&2"));
    ck_assert(wait_until(is_done, s, 60000));
    ck_assert_uint_eq(s->bytes, 150000000);
    ck_assert_uint_eq(s->err_len, 50000000);
    barchan_exec_result_clear(&s->result);
    free(s);
}
END_TEST

static void on_drain(barchan_exec *exec, void *ud)
{
    struct stream *s = ud;
    static const char chunk[100000];
    while (s->to_write > 0) {
        size_t len = s->to_write < sizeof chunk ? s->to_write : sizeof chunk;
        int n = barchan_exec_write(exec, chunk, len, NULL);
        ck_assert_int_ge(n, 0);
        if (n == 0) return;
        s->to_write -= (size_t)n;
    }
    barchan_exec_close_input(exec, NULL);
}

/* A million writes of one byte, half a million of none in between, and input that nobody reads. */
START_TEST(small_writes_are_complete)
{
    struct stream *s = calloc(1, sizeof *s);
    s->to_write = 2000000;
    start(s, OPTIONS(.argv = ARGV("python3", "-c",
                                  "import os\n"
                                  "for i in range(500000):\n"
                                  "  os.write(1, b'a'); os.write(1, b'b'); os.write(1, b'')"),
                     .input_streaming = 1, .on_drain = on_drain));
    on_drain(s->exec, s);
    ck_assert(wait_until(is_done, s, 60000));
    ck_assert_uint_eq(s->bytes, 1000000);
    ck_assert_int_eq(s->result.exit_code, 0);
    ck_assert_uint_gt(s->to_write, 1000000); /* the window and no more */
    barchan_exec_result_clear(&s->result);
    free(s);
}
END_TEST

static int64_t progress(void)
{
    char *end;
    barchan_exec_result r = sh("cat progress");
    long value = strtol(r.out.data, &end, 10);
    barchan_exec_result_clear(&r);
    return value;
}

START_TEST(a_paused_reader_stops_the_writer)
{
    struct stream *s = calloc(1, sizeof *s);
    s->pause_at_once = 1;
    start(s, OPTIONS(.command = "i=0; while [ $i -lt 200 ]; do head -c 10000 /dev/zero; "
                                "i=$((i+1)); echo $i > progress; done"));
    /* The window (256 KiB) and the pipe (64 KiB) fill up; nothing else is taken. */
    int64_t deadline = monotonic_ms() + 20000, before = -1, now = progress();
    while ((now < 20 || now != before) && monotonic_ms() < deadline) {
        for (int i = 0; i < 10; i++) {
            barchan_runtime_pump(rt, 20, NULL);
        }
        before = now;
        now = progress();
    }
    ck_assert_int_ge(now, 20);
    ck_assert_int_le(now, 40);
    ck_assert_uint_eq(s->calls, 1);
    s->pause_at_once = 0;
    barchan_exec_resume(s->exec);
    ck_assert_uint_eq(s->calls, 1); /* never inside the call */
    ck_assert(wait_until(is_done, s, 20000));
    ck_assert_uint_eq(s->bytes, 2000000);
    barchan_exec_result_clear(&s->result);
    free(s);
}
END_TEST

START_TEST(an_end_waits_for_a_paused_reader)
{
    struct stream *s = calloc(1, sizeof *s);
    s->pause_at_once = 1;
    start(s, OPTIONS(.command = "echo one; sleep 0.1; echo two"));
    ck_assert(wait_until(says_something, s, 20000));
    for (int i = 0; i < 20; i++) {
        barchan_runtime_pump(rt, 20, NULL);
    }
    ck_assert_int_eq(s->done, 0);
    ck_assert_str_eq(s->out, "one\n");
    s->pause_at_once = 0;
    barchan_exec_resume(s->exec);
    ck_assert(wait_until(is_done, s, 20000));
    ck_assert_str_eq(s->out, "one\ntwo\n");
    barchan_exec_result_clear(&s->result);
    free(s);
}
END_TEST

START_TEST(a_pause_longer_than_the_timeout)
{
    struct stream *s = calloc(1, sizeof *s);
    s->pause_at_once = 1;
    start(s, OPTIONS(.command = "head -c 1000000 /dev/zero", .timeout_ms = 1000, .grace_ms = 1));
    for (int i = 0; i < 75; i++) {
        barchan_runtime_pump(rt, 100, NULL);
    }
    ck_assert_int_eq(s->done, 0);
    s->pause_at_once = 0;
    barchan_exec_resume(s->exec);
    ck_assert(wait_until(is_done, s, 20000));
    /* It could not write all in time; what it wrote is there. */
    ck_assert_int_eq(s->result.reason, BARCHAN_EXEC_TIMEOUT);
    ck_assert_uint_ge(s->bytes, 250000);
    barchan_exec_result_clear(&s->result);
    sh_says("echo fine", "fine\n");
    free(s);
}
END_TEST

START_TEST(input_by_stream)
{
    struct stream *s = calloc(1, sizeof *s);
    barchan_error err;
    s->to_write = 30000000;
    start(s, OPTIONS(.command = "sleep 0.2; wc -c", .input_streaming = 1, .on_drain = on_drain));
    on_drain(s->exec, s);
    ck_assert_uint_gt(s->to_write, 29000000); /* not more than the window at once */
    ck_assert(wait_until(is_done, s, 30000));
    ck_assert_str_eq(s->out, "30000000\n");
    barchan_exec_result_clear(&s->result);
    memset(s, 0, sizeof *s);
    /* A command that has closed its input: the rest is taken and dropped. */
    s->to_write = 5000000;
    start(s, OPTIONS(.command = "exec <&-; sleep 0.2; echo end", .input_streaming = 1,
                     .on_drain = on_drain));
    on_drain(s->exec, s);
    ck_assert(wait_until(is_done, s, 30000));
    ck_assert_str_eq(s->out, "end\n");
    barchan_exec_result_clear(&s->result);
    /* Without streaming, writing is an error that says so. */
    memset(s, 0, sizeof *s);
    start(s, OPTIONS(.command = "cat"));
    ck_assert_int_eq(barchan_exec_write(s->exec, "x", 1, &err), BARCHAN_EINVAL);
    ck_assert(wait_until(is_done, s, 20000));
    barchan_exec_result_clear(&s->result);
    free(s);
}
END_TEST

START_TEST(cancelling)
{
    struct stream *s = calloc(1, sizeof *s);
    s->cancel_at_once = 1;
    start(s, OPTIONS(.command = "trap '' TERM; echo x; sleep 100"));
    ck_assert(wait_until(is_done, s, 20000));
    ck_assert_int_eq(s->result.reason, BARCHAN_EXEC_CANCELLED);
    ck_assert_str_eq(s->out, "x\n");
    barchan_exec_result_clear(&s->result);
    barchan_cancel *token;
    ck_assert_int_eq(barchan_cancel_create(&token, NULL), 0);
    memset(s, 0, sizeof *s);
    start(s, OPTIONS(.command = "sleep 100", .cancel = token));
    barchan_runtime_pump(rt, 50, NULL);
    barchan_cancel_trigger(token);
    ck_assert(wait_until(is_done, s, 20000));
    ck_assert_int_eq(s->result.reason, BARCHAN_EXEC_CANCELLED);
    barchan_exec_result_clear(&s->result);
    /* One that was triggered before. */
    memset(s, 0, sizeof *s);
    start(s, OPTIONS(.command = "sleep 100", .cancel = token));
    ck_assert(wait_until(is_done, s, 20000));
    ck_assert_int_eq(s->result.reason, BARCHAN_EXEC_CANCELLED);
    barchan_exec_result_clear(&s->result);
    barchan_cancel_release(token);
    free(s);
}
END_TEST

START_TEST(signalling)
{
    struct stream *s = calloc(1, sizeof *s);
    start(s, OPTIONS(.command = "trap 'echo usr1; exit 3' USR1; echo ready; "
                                "while :; do sleep 0.01; done"));
    ck_assert(wait_until(says_something, s, 20000));
    ck_assert_int_eq(barchan_exec_signal(s->exec, 10, NULL), 0);
    ck_assert(wait_until(is_done, s, 20000));
    ck_assert_str_eq(s->out, "ready\nusr1\n");
    ck_assert_int_eq(s->result.exit_code, 3);
    barchan_exec_result_clear(&s->result);
    free(s);
}
END_TEST

START_TEST(destroyed_inside_a_callback)
{
    struct stream *s = calloc(1, sizeof *s);
    s->destroy_at_once = 1;
    start(s, OPTIONS(.command = "while :; do echo x; done"));
    ck_assert(wait_until(is_done, s, 20000));
    ck_assert_int_eq(s->result.reason, BARCHAN_EXEC_LOST);
    barchan_exec_result_clear(&s->result);
    free(s);
}
END_TEST

static void wait_inside(barchan_exec *exec, barchan_stream which, const char *data, size_t len,
                        void *ud)
{
    barchan_exec_result r;
    barchan_error err;
    int rc = barchan_sandbox_exec(sbx, OPTIONS(.command = "true"), &r, &err);
    (void)exec, (void)which, (void)data, (void)len;
    *(int *)ud = rc;
    ck_assert_int_eq(barchan_file_write(sbx, "x", "", 0, &err), BARCHAN_EBUSY);
}

START_TEST(waiting_inside_a_callback_is_refused)
{
    int code = 0;
    barchan_exec_result r =
        run(OPTIONS(.command = "echo x", .streaming = 1, .on_output = wait_inside, .ud = &code));
    ck_assert_int_eq(code, BARCHAN_EBUSY);
    ck_assert_int_eq(r.exit_code, 0);
    barchan_exec_result_clear(&r);
    sh_says("echo fine", "fine\n");
}
END_TEST

START_TEST(options_that_cannot_work)
{
    barchan_error err;
    barchan_exec_result r;
    ck_assert_int_eq(
        barchan_sandbox_exec(sbx, OPTIONS(.command = "true", .streaming = 1), &r, &err),
        BARCHAN_EINVAL);
    ck_assert_ptr_nonnull(strstr(err.message, "on_output"));
    ck_assert_int_eq(
        barchan_sandbox_exec(sbx, OPTIONS(.command = "cat", .input_streaming = 1), &r, &err),
        BARCHAN_EINVAL);
    ck_assert_ptr_nonnull(strstr(err.message, "input_streaming"));
}
END_TEST

/* The reported end stands, although its last output was delivered after the sandbox's end. */
START_TEST(a_reported_end_outlives_the_sandbox)
{
    struct stream *s = calloc(1, sizeof *s);
    s->pause_at_once = 1;
    start(s, OPTIONS(.command = "echo one; sleep 0.1; echo two; exit 3"));
    sh_says("while pgrep sleep > /dev/null; do sleep 0.01; done; echo", "\n");
    barchan_sandbox_info info = {.struct_size = sizeof info};
    int64_t deadline = monotonic_ms() + 500;
    while (monotonic_ms() < deadline) { /* until the end has certainly come */
        barchan_runtime_pump(rt, 20, NULL);
    }
    barchan_sandbox_terminate(sbx);
    ck_assert_int_eq(barchan_sandbox_status(sbx, &info, NULL), 0);
    ck_assert_int_eq(info.running, 0);
    ck_assert(wait_until(is_done, s, 20000));
    ck_assert_str_eq(s->out, "one\ntwo\n");
    if (s->result.reason == BARCHAN_EXEC_EXITED) ck_assert_int_eq(s->result.exit_code, 3);
    barchan_exec_result_clear(&s->result);
    free(s);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sandbox_stream");
    TCase *tc = tcase_create("stream");
    tcase_set_timeout(tc, 100);
    tcase_add_checked_fixture(tc, setup_sandbox, teardown);
    tcase_add_test(tc, output_comes_as_it_is_written);
    tcase_add_test(tc, large_output_is_complete);
    tcase_add_test(tc, small_writes_are_complete);
    tcase_add_test(tc, a_paused_reader_stops_the_writer);
    tcase_add_test(tc, an_end_waits_for_a_paused_reader);
    tcase_add_test(tc, a_pause_longer_than_the_timeout);
    tcase_add_test(tc, input_by_stream);
    tcase_add_test(tc, cancelling);
    tcase_add_test(tc, signalling);
    tcase_add_test(tc, destroyed_inside_a_callback);
    tcase_add_test(tc, waiting_inside_a_callback_is_refused);
    tcase_add_test(tc, options_that_cannot_work);
    tcase_add_test(tc, a_reported_end_outlives_the_sandbox);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
