/* Commands in a sandbox: how they end, what comes back, what is gone afterwards. */
#include "sandbox_support.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- how a command ends ---- */

START_TEST(every_exit_code)
{
    for (int code = 0; code < 256; code++) {
        char command[32];
        snprintf(command, sizeof command, "exit %d", code);
        barchan_exec_result r = sh(command);
        ck_assert_int_eq(r.reason, BARCHAN_EXEC_EXITED);
        ck_assert_int_eq(r.exit_code, code);
        ck_assert_int_eq(r.term_signal, 0);
        barchan_exec_result_clear(&r);
    }
}
END_TEST

START_TEST(signals)
{
    const int numbers[] = {SIGHUP, SIGINT, SIGKILL, SIGSEGV, SIGTERM, SIGUSR1, SIGSYS, 40};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        char command[32];
        snprintf(command, sizeof command, "kill -%d $$; sleep 5", numbers[i]);
        barchan_exec_result r = sh(command);
        ck_assert_int_eq(r.reason, BARCHAN_EXEC_SIGNALED);
        ck_assert_int_eq(r.term_signal, numbers[i]);
        ck_assert_int_eq(r.exit_code, -1);
        barchan_exec_result_clear(&r);
    }
}
END_TEST

static void fails_to_start(const barchan_exec_options *options, int os_error, int cwd)
{
    barchan_exec_result r = run(options);
    ck_assert_int_eq(r.reason, BARCHAN_EXEC_SPAWN_FAILED);
    ck_assert_int_eq(r.spawn_errno, os_error);
    ck_assert_int_eq(r.spawn_cwd, cwd);
    ck_assert_int_eq(r.exit_code, -1);
    ck_assert_ptr_nonnull(r.out.data);
    barchan_exec_result_clear(&r);
}

START_TEST(failures_to_start)
{
    fails_to_start(OPTIONS(.argv = ARGV("no-such-program")), ENOENT, 0);
    fails_to_start(OPTIONS(.argv = ARGV("/no/such/program")), ENOENT, 0);
    fails_to_start(OPTIONS(.argv = ARGV("")), ENOENT, 0);
    fails_to_start(OPTIONS(.argv = ARGV("/etc/passwd")), EACCES, 0);
    fails_to_start(OPTIONS(.argv = ARGV("/etc")), EACCES, 0);
    fails_to_start(OPTIONS(.argv = ARGV("/etc/passwd/x")), ENOTDIR, 0);
    /* Links in a circle, a program for another processor, one whose interpreter is missing. */
    sh_says(
        "ln -s circle circle; printf '#!/no/such/sh\\n' > script; chmod 755 script; "
        "{ printf '\\177ELF\\2\\1\\1'; head -c 9 /dev/zero; printf '\\2\\0\\377\\0\\1\\0\\0\\0'; "
        "head -c 40 /dev/zero; } > other; chmod 755 other",
        "");
    fails_to_start(OPTIONS(.argv = ARGV("./circle")), ELOOP, 0);
    fails_to_start(OPTIONS(.argv = ARGV("./script")), ENOENT, 0);
    fails_to_start(OPTIONS(.argv = ARGV("./other")), ENOEXEC, 0);
    fails_to_start(OPTIONS(.argv = ARGV("true"), .cwd = "/missing"), ENOENT, 1);
    fails_to_start(OPTIONS(.argv = ARGV("true"), .cwd = "/etc/passwd"), ENOTDIR, 1);
}
END_TEST

START_TEST(too_many_arguments)
{
    size_t len = 3u << 20;
    char *large = malloc(len + 1);
    memset(large, 'x', len);
    large[len] = '\0';
    fails_to_start(OPTIONS(.argv = ARGV("true", large)), E2BIG, 0);
    char *larger = malloc(2 * len + 1); /* above what the channel takes */
    memset(larger, 'x', 2 * len);
    larger[2 * len] = '\0';
    fails_to_start(OPTIONS(.argv = ARGV("true", larger)), E2BIG, 0);
    large[100000] = '\0'; /* within the kernel's limit for one string */
    barchan_exec_result r = run(OPTIONS(.argv = ARGV("true", large)));
    ck_assert_int_eq(r.exit_code, 0);
    barchan_exec_result_clear(&r);
    free(large);
    free(larger);
}
END_TEST

START_TEST(script_without_interpreter_line)
{
    sh_says("echo 'echo ran \"$0\" \"$1\"' > s; chmod +x s", "");
    barchan_exec_result r = run(OPTIONS(.argv = ARGV("./s", "one")));
    ck_assert_int_eq(r.exit_code, 0);
    ck_assert_str_eq(r.out.data, "ran ./s one\n");
    barchan_exec_result_clear(&r);
    sh_says("printf '#!/no/such/interpreter\\n' > t; chmod +x t", "");
    fails_to_start(OPTIONS(.argv = ARGV("./t")), ENOENT, 0);
}
END_TEST

/* ---- what a command sees ---- */

START_TEST(environment_is_exact)
{
    sh_says("env | grep -v ^PWD= | sort", "BARCHAN=1\nHOME=/home/user\nLANG=C.UTF-8\n"
                                          "PATH=/usr/local/bin:/usr/bin:/bin\nTMPDIR=/tmp\n"
                                          "USER=user\n");
    const char *const env[] = {"MODE=fast", "LANG=de_DE", "EMPTY=", NULL};
    barchan_exec_result r =
        run(OPTIONS(.command = "echo \"$MODE $LANG [$EMPTY]\"; pwd", .env = env, .cwd = "/tmp"));
    ck_assert_str_eq(r.out.data, "fast de_DE []\n/tmp\n");
    barchan_exec_result_clear(&r);
}
END_TEST

START_TEST(descriptors_are_three)
{
    /* ls itself opens the directory as 3. */
    sh_says("ls /proc/self/fd | tr '\\n' ' '", "0 1 2 3 ");
    sh_says("umask; ulimit -c; pwd; hostname; id -u; id -un",
            "0022\n0\n/workspace\nsandbox\n1000\nuser\n");
}
END_TEST

/* ---- output ---- */

START_TEST(outputs_are_separate)
{
    barchan_exec_result r = sh("printf one; printf two >&2");
    ck_assert_str_eq(r.out.data, "one");
    ck_assert_str_eq(r.err_out.data, "two");
    ck_assert_uint_eq(r.out.dropped, 0);
    ck_assert_int_gt((int)r.usage.wall_us, 0);
    ck_assert_int_gt((int)(r.usage.max_rss_bytes >> 10), 100);
    barchan_exec_result_clear(&r);
}
END_TEST

START_TEST(bytes_are_exact)
{
    barchan_exec_result r = sh("printf 'a\\000b\\377\\033[31m\\n'");
    ck_assert_uint_eq(r.out.len, 10);
    ck_assert(memcmp(r.out.data, "a\0b\377\033[31m\n", 10) == 0);
    barchan_exec_result_clear(&r);
}
END_TEST

/* Prints the numbers 1, 2, … as fixed 8-byte lines: any kept byte tells where it came from. */
#define COUNT_LINES(n) "awk 'BEGIN { for (i = 1; i <= " #n "; i++) printf \"%07d\\n\", i }'"

START_TEST(caps_are_exact)
{
    const int64_t limits[] = {1, 7, 16, 1000, 100000, 799999, 800000, 800001};
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        barchan_exec_result r =
            run(OPTIONS(.command = COUNT_LINES(100000) "; exit 3", .out_limit_bytes = limits[i]));
        uint64_t kept = limits[i] < 800000 ? (uint64_t)limits[i] : 800000;
        ck_assert_int_eq(r.exit_code, 3);
        ck_assert_uint_eq(r.out.len, kept);
        ck_assert_uint_eq(r.out.dropped, 800000 - kept);
        if (r.out.dropped > 0) ck_assert_uint_eq(r.out.head_len, kept - kept / 2);
        size_t head = r.out.dropped > 0 ? r.out.head_len : kept;
        for (size_t at = 0; at < kept; at++) {
            size_t from = at < head ? at : at + r.out.dropped;
            char line[16];
            snprintf(line, sizeof line, "%07d\n", (int)(from / 8) + 1);
            ck_assert_int_eq(r.out.data[at], line[from % 8]);
        }
        barchan_exec_result_clear(&r);
    }
    barchan_exec_result r = run(OPTIONS(.command = COUNT_LINES(10), .out_limit_bytes = -1));
    ck_assert_uint_eq(r.out.len, 0);
    ck_assert_uint_eq(r.out.dropped, 80);
    barchan_exec_result_clear(&r);
}
END_TEST

START_TEST(caps_cut_between_characters)
{
    /* 600 bytes of a 3-byte character; 100 kept: 50 + 50, cut down to 48 + 48. */
    barchan_exec_result r =
        run(OPTIONS(.command = "for i in $(seq 200); do printf '\\342\\202\\254'; "
                               "done",
                    .out_limit_bytes = 100));
    ck_assert_uint_eq(r.out.len, 96);
    ck_assert_uint_eq(r.out.head_len, 48);
    ck_assert_uint_eq(r.out.dropped, 600 - 96);
    barchan_exec_result_clear(&r);
}
END_TEST

START_TEST(a_held_pipe_does_not_hang)
{
    int64_t began = monotonic_ms();
    barchan_exec_result r = sh("sleep 100 & setsid sleep 100 & echo done");
    ck_assert_int_lt(monotonic_ms() - began, 20000);
    ck_assert_str_eq(r.out.data, "done\n");
    ck_assert_int_eq(r.left_running, 2);
    barchan_exec_result_clear(&r);
    sh_says("ps -e -o comm= | grep -c sleep || true", "0\n");
}
END_TEST

START_TEST(closed_output_is_not_an_exit)
{
    barchan_exec_result r = sh("echo before; exec >&- 2>&-; sleep 0.3; exit 7");
    ck_assert_int_eq(r.exit_code, 7);
    ck_assert_str_eq(r.out.data, "before\n");
    ck_assert_int_ge((int)r.usage.wall_us, 300000);
    barchan_exec_result_clear(&r);
}
END_TEST

/* ---- input ---- */

START_TEST(input_is_given)
{
    sh_says("cat", "");
    barchan_exec_result r = run(OPTIONS(.command = "cat", .input = "a\0b", .input_len = 3));
    ck_assert_uint_eq(r.out.len, 3);
    ck_assert(memcmp(r.out.data, "a\0b", 3) == 0);
    barchan_exec_result_clear(&r);
    size_t len = 5u << 20;
    char *large = malloc(len);
    memset(large, 'z', len);
    r = run(OPTIONS(.command = "wc -c", .input = large, .input_len = len));
    ck_assert_str_eq(r.out.data, "5242880\n");
    barchan_exec_result_clear(&r);
    /* Never read, closed early, half read: nothing hangs, nobody is killed by SIGPIPE. */
    const char *const commands[] = {"exec 0<&-; sleep 0.2; exit 4", "exit 4", "head -c 10; exit 4"};
    for (size_t i = 0; i < 3; i++) {
        r = run(OPTIONS(.command = commands[i], .input = large, .input_len = len));
        ck_assert_int_eq(r.exit_code, 4);
        barchan_exec_result_clear(&r);
    }
    free(large);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sandbox_exec");
    const TTest *const tests[] = {every_exit_code,
                                  signals,
                                  failures_to_start,
                                  too_many_arguments,
                                  script_without_interpreter_line,
                                  environment_is_exact,
                                  descriptors_are_three,
                                  outputs_are_separate,
                                  bytes_are_exact,
                                  caps_are_exact,
                                  caps_cut_between_characters,
                                  a_held_pipe_does_not_hang,
                                  closed_output_is_not_an_exit,
                                  input_is_given,
                                  NULL};
    add_tests(suite, "exec", setup_sandbox, teardown, tests);
    return run_suite(suite);
}
