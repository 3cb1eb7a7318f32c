/* Commands that are held: read by cursor, written, signalled, listed; and terminals. */
#include "sandbox_support.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

static barchan_process *process;
static int news;

static void on_news(barchan_process *which, void *ud)
{
    (void)which;
    ++*(int *)ud;
}

static void spawn(const barchan_exec_options *options)
{
    barchan_error err = {0};
    barchan_process_destroy(process);
    news = 0;
    ck_assert_msg(barchan_sandbox_spawn(&process, sbx, options, on_news, &news, &err) == 0, "%s",
                  err.message);
}

static void setup(void)
{
    setup_sandbox();
    process = NULL;
}

static void end(void)
{
    barchan_process_destroy(process);
    teardown();
}

static const barchan_exec_result *result(void)
{
    ck_assert_int_eq(barchan_process_wait(process, 20000, NULL), 1);
    ck_assert_ptr_null(barchan_process_exec(process));
    return barchan_process_result(process);
}

static barchan_process_chunk read_at(barchan_stream stream, uint64_t cursor, char *buffer,
                                     size_t capacity)
{
    barchan_process_chunk chunk;
    barchan_error err = {0};
    memset(buffer, 0, capacity);
    ck_assert_msg(
        barchan_process_read(process, stream, cursor, buffer, capacity - 1, &chunk, &err) == 0,
        "%s", err.message);
    return chunk;
}

/* A condition: the output has these words. */
static int has_said(void *ud)
{
    char text[8192];
    read_at(BARCHAN_STREAM_OUT, 0, text, sizeof text);
    return strstr(text, ud) != NULL;
}

static void says(const char *words)
{
    char text[8192];
    if (wait_until(has_said, (void *)(uintptr_t)words, 20000)) return;
    read_at(BARCHAN_STREAM_OUT, 0, text, sizeof text);
    ck_abort_msg("'%s' is missing in: %s", words, text);
}

static void types(const char *text)
{
    barchan_error err = {0};
    ck_assert_msg(barchan_exec_write(barchan_process_exec(process), text, strlen(text), &err) ==
                      (int)strlen(text),
                  "%s", err.message);
}

START_TEST(reading_by_cursor)
{
    char text[64];
    spawn(OPTIONS(.command = "echo one; echo problem >&2; read x; echo got $x; exit 3"));
    says("one\n");
    ck_assert_int_gt(news, 0);
    barchan_process_chunk chunk = read_at(BARCHAN_STREAM_OUT, 0, text, sizeof text);
    ck_assert_str_eq(text, "one\n");
    ck_assert(chunk.next == 4 && chunk.dropped == 0 && !chunk.ended);
    chunk = read_at(BARCHAN_STREAM_OUT, 2, text, 2);
    ck_assert_str_eq(text, "e");
    ck_assert_uint_eq(chunk.next, 3);
    chunk = read_at(BARCHAN_STREAM_OUT, 4, text, sizeof text);
    ck_assert(chunk.len == 0 && chunk.next == 4 && !chunk.ended);
    ck_assert_int_eq(barchan_process_wait(process, 0, NULL), 0);
    types("it\n");
    ck_assert_int_eq(result()->exit_code, 3);
    chunk = read_at(BARCHAN_STREAM_OUT, 4, text, sizeof text);
    ck_assert_str_eq(text, "got it\n");
    ck_assert(chunk.ended);
    read_at(BARCHAN_STREAM_ERR, 0, text, sizeof text);
    ck_assert_str_eq(text, "problem\n");
    ck_assert_int_eq(barchan_process_read(process, BARCHAN_STREAM_OUT, 100, text, 10, &chunk, NULL),
                     BARCHAN_EINVAL);
}
END_TEST

START_TEST(the_backlog_is_bounded_and_exact)
{
    static char text[70000];
    spawn(OPTIONS(.command =
                      "i=0; while [ $i -lt 20000 ]; do printf '%09d\\n' $i; i=$((i+1)); done;"
                      " head -c 50000000 /dev/zero >&2; printf END >&2",
                  .backlog_bytes = 65536));
    ck_assert_int_eq(result()->exit_code, 0); /* nobody has read, and it was not held up */
    barchan_process_chunk chunk = read_at(BARCHAN_STREAM_OUT, 0, text, sizeof text);
    ck_assert_uint_eq(chunk.len, 65536);
    ck_assert_uint_eq(chunk.dropped, 200000 - 65536);
    ck_assert_uint_eq(chunk.next, 200000);
    ck_assert_str_eq(text + 65536 - 10, "000019999\n");
    ck_assert_int_eq(atoi(text + (10 - (200000 - 65536) % 10) % 10), (200000 - 65536 + 9) / 10);
    chunk = read_at(BARCHAN_STREAM_OUT, 150000, text, 11);
    ck_assert_str_eq(text, "000015000\n");
    ck_assert_uint_eq(chunk.dropped, 0);
    chunk = read_at(BARCHAN_STREAM_ERR, 50000000, text, sizeof text);
    ck_assert_str_eq(text, "END");
    ck_assert(chunk.ended);
}
END_TEST

START_TEST(input_signals_and_ends)
{
    char text[64];
    spawn(OPTIONS(.command = "cat; echo end"));
    types("hello\n");
    says("hello\n");
    ck_assert_int_eq(barchan_exec_close_input(barchan_process_exec(process), NULL), 0);
    ck_assert_int_eq(result()->exit_code, 0);
    says("end\n");
    spawn(OPTIONS(.command =
                      "trap 'echo caught; exit 7' USR1; echo ready; while :; do sleep 0.01; done"));
    says("ready");
    ck_assert_int_eq(barchan_exec_signal(barchan_process_exec(process), SIGUSR1, NULL), 0);
    ck_assert_int_eq(result()->exit_code, 7);
    says("caught");
    spawn(OPTIONS(.argv = ARGV("no-such-program")));
    ck_assert_int_eq(result()->reason, BARCHAN_EXEC_SPAWN_FAILED);
    ck_assert_int_eq(result()->spawn_errno, ENOENT);
    spawn(OPTIONS(.command = "cat", .input = "given", .input_len = 5));
    ck_assert_int_eq(result()->exit_code, 0);
    read_at(BARCHAN_STREAM_OUT, 0, text, sizeof text);
    ck_assert_str_eq(text, "given");
    spawn(OPTIONS(.command = "sleep 100", .timeout_ms = 100, .grace_ms = -1));
    ck_assert_int_eq(result()->reason, BARCHAN_EXEC_TIMEOUT);
}
END_TEST

START_TEST(options_that_do_not_fit)
{
    barchan_process *none;
    barchan_error err;
    ck_assert_int_eq(
        barchan_sandbox_spawn(&none, sbx, OPTIONS(.command = "x", .detach = 1), NULL, NULL, &err),
        BARCHAN_EINVAL);
    ck_assert_int_eq(barchan_sandbox_spawn(&none, sbx, OPTIONS(.command = "x", .pty_cols = 80),
                                           NULL, NULL, &err),
                     BARCHAN_EINVAL);
    ck_assert_ptr_nonnull(strstr(err.message, "pty_rows"));
    ck_assert_int_eq(barchan_sandbox_spawn(&none, sbx,
                                           OPTIONS(.command = "x", .backlog_bytes = 1u << 30), NULL,
                                           NULL, &err),
                     BARCHAN_ELIMIT);
    ck_assert_ptr_null(none);
}
END_TEST

static const barchan_process_info *find(const barchan_process_list *list, const char *command)
{
    for (size_t i = 0; i < list->count; i++) {
        if (strcmp(list->processes[i].command, command) == 0) return &list->processes[i];
    }
    return NULL;
}

START_TEST(processes_are_listed)
{
    barchan_process_list list;
    ck_assert_int_eq(barchan_sandbox_processes(sbx, &list, NULL), 0);
    ck_assert_uint_eq(list.total, 0);
    barchan_process_list_clear(&list);
    spawn(OPTIONS(.command = "sleep 1000 & sleep 2000 & echo ready; wait"));
    says("ready");
    int64_t deadline = monotonic_ms() + 20000;
    const barchan_process_info *sleeper = NULL;
    do { /* between fork and exec it has another name */
        ck_assert_int_eq(barchan_sandbox_processes(sbx, &list, NULL), 0);
        sleeper = find(&list, "sleep 2000");
        if (sleeper == NULL) barchan_process_list_clear(&list);
    } while (sleeper == NULL && monotonic_ms() < deadline);
    ck_assert_ptr_nonnull(sleeper);
    ck_assert_uint_eq(list.total, 3);
    ck_assert_uint_eq(list.count, 3);
    ck_assert_int_eq(sleeper->threads, 1);
    ck_assert_uint_eq(sleeper->exec_id, barchan_exec_id(barchan_process_exec(process)));
    const barchan_process_info *shell =
        find(&list, "/bin/sh -c sleep 1000 & sleep 2000 & echo ready; wait");
    ck_assert_ptr_nonnull(shell);
    ck_assert_int_eq(sleeper->parent, shell->pid);
    barchan_process_list_clear(&list);
    barchan_process_destroy(process); /* kills all of it */
    process = NULL;
    do {
        ck_assert_int_eq(barchan_sandbox_processes(sbx, &list, NULL), 0);
        barchan_process_list_clear(&list);
    } while (list.total > 0 && monotonic_ms() < deadline);
    ck_assert_uint_eq(list.total, 0);
}
END_TEST

START_TEST(more_processes_than_are_listed)
{
    barchan_process_list list = {0};
    spawn(OPTIONS(.command = "for i in $(seq 300); do sleep 1000 & done; echo ready; wait"));
    says("ready");
    ck_assert_int_eq(barchan_sandbox_processes(sbx, &list, NULL), 0);
    ck_assert_uint_eq(list.total, 301);
    ck_assert_uint_eq(list.count, 264);
    barchan_process_list_clear(&list);
}
END_TEST

/* ---- terminals ---- */

#define TERMINAL(...) OPTIONS(.pty_cols = 80, .pty_rows = 24, __VA_ARGS__)

START_TEST(a_terminal)
{
    spawn(TERMINAL(.command =
                       "tty; stty size; test -t 0 && test -t 1 && test -t 2 && echo all three;"
                       " echo error >&2; echo direct > /dev/tty; ls /dev/pts"));
    ck_assert_int_eq(result()->exit_code, 0);
    says("/dev/pts/0\r\n24 80\r\nall three\r\nerror\r\ndirect\r\n0  ptmx\r\n");
    char text[16];
    ck_assert_uint_eq(read_at(BARCHAN_STREAM_ERR, 0, text, sizeof text).next, 0);
    spawn(OPTIONS(.command = "tty; (: < /dev/tty) 2>&1; exit 4")); /* without one there is none */
    ck_assert_int_eq(result()->exit_code, 4);
    says("not a tty\n");
    says("No such device or address");
}
END_TEST

START_TEST(a_person_at_a_terminal)
{
    spawn(TERMINAL(.command = "trap 'stty size' WINCH; echo ready; while :; do sleep 0.01; done"));
    says("ready");
    barchan_error err = {0};
    ck_assert_int_eq(barchan_exec_resize(barchan_process_exec(process), 132, 50, &err), 0);
    says("50 132");
    ck_assert_int_eq(barchan_exec_resize(barchan_process_exec(process), 0, 50, &err),
                     BARCHAN_EINVAL);
    types("\003"); /* Ctrl-C */
    ck_assert_int_eq(result()->term_signal, SIGINT);
    spawn(TERMINAL(.command = "cat; echo end"));
    types("typed\n");
    says("typed\r\ntyped\r\n"); /* its echo, and what cat wrote */
    ck_assert_int_eq(barchan_exec_close_input(barchan_process_exec(process), NULL), 0);
    says("end");
    ck_assert_int_eq(result()->exit_code, 0);
    spawn(OPTIONS(.command = "sleep 100"));
    ck_assert_int_eq(barchan_exec_resize(barchan_process_exec(process), 80, 24, &err),
                     BARCHAN_EINVAL);
    ck_assert_ptr_nonnull(strstr(err.message, "no terminal"));
}
END_TEST

START_TEST(a_terminal_and_much_output)
{
    static char text[70000];
    spawn(TERMINAL(.command = "stty -onlcr; i=0; while [ $i -lt 20000 ]; do printf '%09d\\n' $i;"
                              " i=$((i+1)); done",
                   .backlog_bytes = 65536));
    ck_assert_int_eq(result()->exit_code, 0);
    barchan_process_chunk chunk = read_at(BARCHAN_STREAM_OUT, 0, text, sizeof text);
    ck_assert_uint_eq(chunk.next, 200000);
    ck_assert_str_eq(text + 65536 - 10, "000019999\n");
    barchan_exec_result r =
        run(TERMINAL(.command = "echo waited for; exit 5")); /* without a handle */
    ck_assert_int_eq(r.exit_code, 5);
    ck_assert_str_eq(r.out.data, "waited for\r\n");
    barchan_exec_result_clear(&r);
}
END_TEST

START_TEST(terminals_of_programs)
{
    sh_says("python3 -c 'import pty; pty.spawn([\"tty\"])'", "/dev/pts/0\r\n");
    sh_says("python3 -c '\nimport os\nn = 0\ntry:\n  while True: os.openpty(); n += 1\n"
            "except OSError as e: print(n, e.errno)\n'",
            "64 28\n");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sandbox_spawn");
    const TTest *const tests[] = {reading_by_cursor,
                                  the_backlog_is_bounded_and_exact,
                                  input_signals_and_ends,
                                  options_that_do_not_fit,
                                  processes_are_listed,
                                  more_processes_than_are_listed,
                                  a_terminal,
                                  a_person_at_a_terminal,
                                  a_terminal_and_much_output,
                                  terminals_of_programs,
                                  NULL};
    add_tests(suite, "spawn", setup, end, tests);
    return run_suite(suite);
}
