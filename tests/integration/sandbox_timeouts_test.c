/* Commands that do not end in time: the whole tree is gone, the output so far is there. */
#include "sandbox_support.h"

#include <string.h>

/* Again with more time when a busy machine had not come to the first output. */
static void times_out(const char *command, const char *output)
{
    barchan_exec_result r = {0};
    int begun = 0;
    for (int limit_ms = 400; !begun && limit_ms < 20000; limit_ms *= 3) {
        barchan_exec_result_clear(&r);
        int64_t began = monotonic_ms();
        r = run(OPTIONS(.command = command, .timeout_ms = limit_ms, .grace_ms = 200));
        int64_t took = monotonic_ms() - began;
        ck_assert_msg(r.reason == BARCHAN_EXEC_TIMEOUT, "%s: %s", command,
                      barchan_exec_reason_name(r.reason));
        ck_assert_int_eq(r.exit_code, -1);
        ck_assert_int_ge(took, limit_ms - 10);    /* never early */
        ck_assert_int_lt(took, limit_ms + 10000); /* nor left to the library, which waits longer */
        begun = strncmp(r.out.data, output, strlen(output)) == 0;
    }
    ck_assert_msg(begun, "%s: %s", command, r.out.data);
    barchan_exec_result_clear(&r);
    /* Nothing but this shell's own processes and process 1. */
    sh_says("ps -e -o comm= | grep -vE '^(barchan-guest|sh|ps|grep|wc)$' | wc -l", "0\n");
}

START_TEST(timeouts)
{
    times_out("echo begun; while :; do :; done", "begun\n");
    times_out("echo begun; sleep 100", "begun\n");
    times_out("trap '' TERM; echo begun; while :; do sleep 0.1; done", "begun\n");
    times_out("echo begun; kill -STOP $$", "begun\n");
    times_out("echo begun; (setsid sh -c 'trap \"\" TERM; sleep 100' &); sleep 100", "begun\n");
    times_out("trap 'echo asked; exit 0' TERM; while :; do sleep 0.01; done", "asked\n");
    /* In the hands of a tracer that does nothing; and waiting for a child of vfork, which no
     * ordinary signal interrupts. */
    times_out("python3 -c \""
              "import ctypes, os, time\n"
              "if os.fork() == 0: ctypes.CDLL(None).ptrace(0, 0, 0, 0); os.kill(os.getpid(), 19)\n"
              "print('begun', flush=True); time.sleep(100)\"",
              "begun\n");
    times_out("python3 -c \""
              "import ctypes, time\n"
              "print('begun', flush=True)\n"
              "if ctypes.CDLL(None).vfork() == 0: time.sleep(100)\"",
              "begun\n");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sandbox_timeouts");
    const TTest *const tests[] = {timeouts, NULL};
    add_tests(suite, "timeouts", setup_sandbox, teardown, tests);
    return run_suite(suite);
}
