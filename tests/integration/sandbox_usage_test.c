/* What a sandbox has used: by the kernel's count where there is one, else by what can be seen. */
#include "sandbox_support.h"

#include <string.h>

/* A fifth of a second of processor time, whatever the machine. */
#define BURN "perl -e '1 while (times)[0] < 0.2'"
#define BURNT_US 190000
#define UNTIL_BURNT "until [ -e burnt ]; do sleep 0.02; done"

static barchan_usage usage(void)
{
    barchan_usage u = {.struct_size = sizeof u};
    barchan_error err = {0};
    ck_assert_msg(barchan_sandbox_usage(sbx, &u, &err) == 0, "%s", err.message);
    return u;
}

static int64_t cpu_us(void)
{
    barchan_usage u = usage();
    return u.user_us + u.system_us;
}

static barchan_exec_result ran(const barchan_exec_options *options)
{
    barchan_exec_result r = run(options);
    ck_assert_int_eq(r.reason, BARCHAN_EXEC_EXITED);
    barchan_bytes_clear(&r.out);
    barchan_bytes_clear(&r.err_out);
    return r;
}

/* Both of the sandbox and of the command. */
static void burns(const char *command, int64_t least_us)
{
    int64_t before = cpu_us();
    barchan_exec_result r = ran(OPTIONS(.command = command));
    int64_t used = cpu_us() - before, told = r.usage.user_us + r.usage.system_us;
    ck_assert_msg(used >= least_us, "%s: the sandbox used %lld us", command, (long long)used);
    ck_assert_msg(told >= least_us, "%s: the command used %lld us", command, (long long)told);
    ck_assert_int_le(told, r.usage.wall_us * 2 + 100000); /* not more than two processors give */
}

START_TEST(processor_time)
{
    ck_assert_uint_eq(usage().execs, 0);
    ck_assert_int_eq(usage().cpu_counted, has_groups());
    burns(BURN, BURNT_US);
    burns(BURN "; " BURN, 2 * BURNT_US);         /* waited for */
    burns("(" BURN " & wait) & wait", BURNT_US); /* grandchildren */
    burns("(setsid sh -c \"" BURN "; touch burnt\" &) ; " UNTIL_BURNT, BURNT_US); /* an orphan */
    burns("python3 -c \"import threading, time\n"
          "def burn():\n  while time.thread_time() < 0.2: pass\n"
          "t = [threading.Thread(target=burn) for _ in range(2)]\n"
          "[x.start() for x in t]; [x.join() for x in t]\"",
          2 * BURNT_US);
    ck_assert_uint_eq(usage().execs, 5);
}
END_TEST

START_TEST(processor_time_of_what_is_left)
{
    int64_t before = cpu_us();
    barchan_exec_result r =
        ran(OPTIONS(.command = "(" BURN "; touch burnt; perl -e '1 while 1') & " UNTIL_BURNT));
    ck_assert_int_eq(r.left_running, 1);
    ck_assert_int_gt(cpu_us() - before, BURNT_US);
    ck_assert_int_gt(r.usage.user_us, BURNT_US); /* it was killed, and counted */
    before = cpu_us();
    ran(OPTIONS(.command = "perl -e '1 while 1' & echo x", .detach = 1));
    int64_t deadline = monotonic_ms() + 20000;
    while (cpu_us() - before < BURNT_US && monotonic_ms() < deadline) {
        barchan_runtime_pump(rt, 20, NULL);
    }
    ck_assert_int_ge(cpu_us() - before, BURNT_US); /* it lives, and is counted */
}
END_TEST

START_TEST(processor_time_that_nobody_waits_for)
{
    if (!has_groups() && skip("not seen without a group, and cpu_counted says so")) return;
    int64_t before = cpu_us();
    ran(OPTIONS(.command = "exec perl -e '$SIG{CHLD} = \"IGNORE\"; for (1..4) { "
                           "if ($p = fork) { push @p, $p } else { 1 while (times)[0] < 0.1; exit } "
                           "} select undef, undef, undef, 0.01 while grep { kill 0, $_ } @p'"));
    ck_assert_int_ge(cpu_us() - before, 4 * 90000);
}
END_TEST

START_TEST(the_last_count)
{
    ran(OPTIONS(.command = "perl -e '1 while 1' & echo x", .detach = 1));
    int64_t deadline = monotonic_ms() + 20000;
    while (cpu_us() < BURNT_US && monotonic_ms() < deadline) {
        barchan_runtime_pump(rt, 20, NULL);
    }
    int64_t before = cpu_us();
    barchan_runtime_pump(rt, 300, NULL);
    barchan_sandbox_terminate(sbx);
    barchan_usage last = usage();
    ck_assert_int_ge(last.user_us + last.system_us, before);
    ck_assert_uint_eq(last.memory_bytes, 0);
    ck_assert_uint_eq(last.execs, 1);
    ck_assert_int_eq(last.wall_us, usage().wall_us); /* it stands still */
    ck_assert_int_eq(cpu_us(), last.user_us + last.system_us);
}
END_TEST

static void holds_memory(const char *python, uint64_t least)
{
    barchan_exec *exec;
    const char *const argv[] = {"python3", "-c", python, NULL};
    struct ended e = {0};
    ck_assert_int_eq(
        barchan_sandbox_exec_start(&exec, sbx, OPTIONS(.argv = argv), note_end, &e, NULL), 0);
    int64_t deadline = monotonic_ms() + 20000;
    barchan_usage u = usage();
    while (u.memory_bytes < least && monotonic_ms() < deadline) {
        barchan_runtime_pump(rt, 20, NULL);
        u = usage();
    }
    ck_assert_uint_ge(u.memory_bytes, least);
    double before = u.memory_byte_seconds;
    barchan_runtime_pump(rt, 300, NULL);
    ck_assert(usage().memory_byte_seconds > before);
    barchan_exec_cancel(exec);
    ck_assert(wait_until(exec_ended, &e, 20000));
    u = usage();
    ck_assert_uint_lt(u.memory_bytes, least);
    ck_assert_uint_ge(u.memory_peak_bytes, least);
}

START_TEST(memory)
{
    static const char fifty[] = "x = 'a' * 50000000\nimport time\ntime.sleep(100)";
    ck_assert_uint_lt(usage().memory_bytes, 40000000);
    ck_assert_int_eq(usage().memory_counted, 0);
    holds_memory(fifty, 50000000);
    barchan_sandbox_destroy(sbx);
    const barchan_limits limits = {.memory_bytes = 256 << 20};
    ck_assert_int_eq(barchan_sandbox_create(&sbx, rt, PROFILE(.limits = limits), NULL), 0);
    ck_assert_int_eq(usage().memory_counted, has_groups());
    holds_memory(fifty, 50000000);
}
END_TEST

START_TEST(disk)
{
    uint64_t before = usage().disk_bytes;
    sh_says("head -c 3000000 /dev/zero > f", "");
    ck_assert_uint_ge(usage().disk_bytes, before + 3000000);
    ck_assert_uint_lt(usage().disk_bytes, before + 3100000);
    sh_says("rm f", "");
    ck_assert_uint_eq(usage().disk_bytes, before);
}
END_TEST

START_TEST(bytes)
{
    static char data[100000];
    ran(OPTIONS(.command = "cat", .input = data, .input_len = 1000));
    ck_assert_uint_eq(usage().bytes_in, 1000);
    ck_assert_uint_eq(usage().bytes_out, 1000);
    ck_assert_int_eq(barchan_file_write(sbx, "f", data, sizeof data, NULL), 0);
    ck_assert_uint_eq(usage().bytes_in, 101000);
    barchan_bytes read;
    ck_assert_int_eq(barchan_file_read(sbx, "f", &read, NULL), 0);
    barchan_bytes_clear(&read);
    ran(OPTIONS(.command = "echo abc >&2; head -c 100000 /dev/zero", .out_limit_bytes = 500));
    ck_assert_uint_eq(usage().bytes_out, 1000 + 100000 + 4 + 500);
}
END_TEST

struct told {
    int calls, code;
};

static void on_usage(const barchan_usage *u, const barchan_error *err, void *ud)
{
    struct told *told = ud;
    told->calls++;
    told->code = u == NULL ? err->code : 0;
}

static int is_told(void *ud)
{
    return ((struct told *)ud)->calls > 0;
}

START_TEST(told_once_whatever_happens)
{
    struct told told = {0}, again = {0};
    ck_assert_int_eq(barchan_sandbox_usage_start(sbx, on_usage, &told, NULL), 0);
    ck_assert_int_eq(told.calls, 0);
    barchan_sandbox_terminate(sbx);
    ck_assert_int_eq(barchan_sandbox_usage_start(sbx, on_usage, &again, NULL), 0);
    barchan_sandbox_destroy(sbx);
    sbx = NULL;
    ck_assert(wait_until(is_told, &told, 20000));
    ck_assert(wait_until(is_told, &again, 20000));
    barchan_runtime_pump(rt, 50, NULL);
    ck_assert_int_eq(told.calls + again.calls, 2);
    ck_assert_int_eq(told.code, 0);
    ck_assert_int_eq(again.code, 0);
    barchan_error err;
    barchan_usage small = {.struct_size = 1};
    ck_assert_int_eq(barchan_sandbox_usage(NULL, &small, &err), BARCHAN_EINVAL);
    ck_assert_int_eq(barchan_sandbox_create(&sbx, rt, NULL, NULL), 0);
    ck_assert_int_eq(barchan_sandbox_usage(sbx, &small, &err), BARCHAN_EINVAL);
    /* The runtime's end tells, too. */
    told = (struct told){0};
    ck_assert_int_eq(barchan_sandbox_usage_start(sbx, on_usage, &told, NULL), 0);
    barchan_runtime_destroy(rt);
    ck_assert_int_eq(told.calls, 1);
    ck_assert_int_eq(barchan_runtime_create(&rt, NULL, NULL), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sandbox_usage");
    const TTest *const tests[] = {processor_time,
                                  processor_time_of_what_is_left,
                                  processor_time_that_nobody_waits_for,
                                  the_last_count,
                                  memory,
                                  disk,
                                  bytes,
                                  told_once_whatever_happens,
                                  NULL};
    add_tests(suite, "usage", setup_sandbox, teardown, tests);
    return run_suite(suite);
}
