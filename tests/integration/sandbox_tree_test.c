/* Whole trees of processes: how they are ended, what is left of them, and several at a time. */
#include "sandbox_support.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- storms ---- */

START_TEST(a_fork_storm_is_ended)
{
    barchan_exec_result r = run(OPTIONS(.command = "f() { setsid sh -c 'sleep 0.02; true' & }; "
                                                   "while :; do f; f; f; f; sleep 0.01; done",
                                        .timeout_ms = 400, .grace_ms = 200));
    ck_assert_int_eq(r.reason, BARCHAN_EXEC_TIMEOUT);
    barchan_exec_result_clear(&r);
    sh_says("ps -e -o comm= | grep -vE '^(barchan-guest|sh|ps|grep|wc)$' | wc -l", "0\n");
}
END_TEST

START_TEST(a_fork_bomb_is_ended)
{
    int64_t began = monotonic_ms();
    barchan_exec_result r =
        run(OPTIONS(.command = "b() { b | b & }; b; sleep 100", .timeout_ms = 500, .grace_ms = -1));
    ck_assert_int_lt(monotonic_ms() - began, 20000);
    barchan_exec_result_clear(&r);
    sh_says("echo alive", "alive\n");
}
END_TEST

START_TEST(ten_thousand_orphans)
{
    /* The C compiler is not everywhere; python forks quickly enough. */
    barchan_exec_result r =
        run(OPTIONS(.command = "command -v python3 >/dev/null || exit 9; python3 -c '\n"
                               "import os\n"
                               "for i in range(100):\n"
                               "    if os.fork() == 0:\n"
                               "        for k in range(100):\n"
                               "            if os.fork() == 0: os._exit(0)\n"
                               "        os._exit(0)\n"
                               "    assert os.wait()[1] == 0\n"
                               "print(\"made\")'",
                    .timeout_ms = 120000));
    if (r.exit_code == 9) {
        printf("ten_thousand_orphans: skipped, no python3\n");
    } else {
        ck_assert_str_eq(r.out.data, "made\n");
    }
    barchan_exec_result_clear(&r);
    sh_says("ps -e -o stat= | grep -c Z || true", "0\n");
}
END_TEST

/* ---- what is left behind ---- */

START_TEST(detached_processes_live_on)
{
    barchan_exec_result r =
        run(OPTIONS(.command =
                        "(while :; do echo tick; echo x >> ticks; sleep 0.05; done) & echo started",
                    .detach = 1));
    ck_assert_int_eq(r.exit_code, 0);
    ck_assert_ptr_nonnull(strstr(r.out.data, "started\n"));
    ck_assert_int_eq(r.left_running, 0);
    barchan_exec_result_clear(&r);
    /* Its output has nobody to go to, and does not stop or kill it. */
    sh_says("while [ ! -s ticks ]; do sleep 0.01; done; a=$(wc -l < ticks); "
            "while [ $(wc -l < ticks) -le $a ]; do sleep 0.01; done; echo grew",
            "grew\n");
}
END_TEST

START_TEST(a_detached_writer_does_not_keep_the_sandbox_busy)
{
    barchan_exec_result r =
        run(OPTIONS(.command = "yes & yes >&2 & echo started", .detach = 1, .timeout_ms = 20000));
    ck_assert_int_eq(r.reason, BARCHAN_EXEC_EXITED);
    barchan_exec_result_clear(&r);
    sh_says("pkill yes; echo fine", "fine\n");
}
END_TEST

START_TEST(a_detached_writer_that_has_filled_its_cap)
{
    /* More is waiting at the command's end than credit lets pass at once, and more comes. */
    barchan_exec_result r =
        run(OPTIONS(.command = "touch rounds; while :; do head -c 100000 /dev/zero; "
                               "echo x >> rounds; done & "
                               "until [ $(wc -l < rounds) -ge 40 ]; do sleep 0.01; done",
                    .detach = 1));
    ck_assert_int_eq(r.reason, BARCHAN_EXEC_EXITED);
    ck_assert_uint_le(r.out.len, 1 << 20);
    ck_assert_uint_gt(r.out.dropped, 0);
    barchan_exec_result_clear(&r);
    sh_says("echo fine", "fine\n");
}
END_TEST

START_TEST(a_killed_supervisor_is_no_escape)
{
    /* As an ordinary user commands share the supervisor's user id and can kill it. */
    barchan_exec_result r =
        run(OPTIONS(.command = "setsid sleep 100 & kill -9 $PPID; kill -9 -1; sleep 1; exit 5",
                    .timeout_ms = 10000));
    ck_assert(r.reason == BARCHAN_EXEC_SIGNALED || r.exit_code == 5);
    barchan_exec_result_clear(&r);
    sh_says("while ps -e -o comm= | grep -q sleep; do :; done; echo gone", "gone\n");
}
END_TEST

/* ---- several at a time ---- */

struct pending {
    int done, count;
    barchan_exec_result results[256];
};

static void on_done(barchan_exec *exec, barchan_exec_result *result, void *ud)
{
    struct pending *pending = ud;
    (void)exec;
    pending->results[pending->done++] = *result;
    memset(result, 0, sizeof *result);
}

static int all_done(void *ud)
{
    const struct pending *pending = ud;
    return pending->done == pending->count;
}

static int one_done(void *ud)
{
    return ((const struct pending *)ud)->done > 0;
}

START_TEST(concurrent_commands)
{
    struct pending pending = {.count = 40};
    barchan_error err;
    for (int i = 0; i < pending.count; i++) {
        /* Each leaves something behind that is killed, while the others go on. */
        int rc = barchan_sandbox_exec_start(
            NULL, sbx,
            OPTIONS(.command = "sleep 50 & sleep 0.2; echo fine; exit 11", .timeout_ms = 30000),
            on_done, &pending, &err);
        ck_assert_msg(rc == 0, "%s", err.message);
    }
    ck_assert_int_eq(pending.done, 0); /* never inside the starting call */
    barchan_sandbox_info info = {.struct_size = sizeof info};
    ck_assert_int_eq(barchan_sandbox_status(sbx, &info, &err), 0);
    ck_assert_int_eq(info.running, 40);
    ck_assert(wait_until(all_done, &pending, 60000));
    for (int i = 0; i < pending.count; i++) {
        ck_assert_int_eq(pending.results[i].exit_code, 11);
        ck_assert_str_eq(pending.results[i].out.data, "fine\n");
        ck_assert_int_eq(pending.results[i].left_running, 1);
        barchan_exec_result_clear(&pending.results[i]);
    }
}
END_TEST

START_TEST(a_timeout_spares_the_neighbours)
{
    struct pending pending = {.count = 2};
    barchan_error err;
    ck_assert_int_eq(barchan_sandbox_exec_start(
                         NULL, sbx,
                         OPTIONS(.command = "until [ -e go ]; do sleep 0.01; done; echo fine"),
                         on_done, &pending, &err),
                     0);
    ck_assert_int_eq(barchan_sandbox_exec_start(
                         NULL, sbx,
                         OPTIONS(.command = "sleep 100", .timeout_ms = 100, .grace_ms = -1),
                         on_done, &pending, &err),
                     0);
    ck_assert(wait_until(one_done, &pending, 20000));
    file_put_text("go", "");
    ck_assert(wait_until(all_done, &pending, 20000));
    ck_assert_int_eq(pending.results[0].reason, BARCHAN_EXEC_TIMEOUT);
    ck_assert_int_eq(pending.results[1].reason, BARCHAN_EXEC_EXITED);
    ck_assert_str_eq(pending.results[1].out.data, "fine\n");
    barchan_exec_result_clear(&pending.results[0]);
    barchan_exec_result_clear(&pending.results[1]);
}
END_TEST

START_TEST(as_many_as_there_are_streams)
{
    static struct pending pending;
    static barchan_exec *execs[256];
    barchan_error err;
    pending = (struct pending){.count = 256};
    for (int i = 0; i < pending.count; i++) {
        int rc = barchan_sandbox_exec_start(&execs[i], sbx,
                                            OPTIONS(.argv = ARGV("cat"), .input_streaming = 1),
                                            on_done, &pending, &err);
        ck_assert_msg(rc == 0, "%d: %s", i, err.message);
    }
    ck_assert_int_eq(
        barchan_sandbox_exec_start(NULL, sbx, OPTIONS(.command = "true"), on_done, &pending, &err),
        BARCHAN_ELIMIT);
    for (int i = 0; i < pending.count; i++) {
        ck_assert_int_eq(barchan_exec_write(execs[i], "hello\n", 6, &err), 6);
        ck_assert_int_eq(barchan_exec_close_input(execs[i], &err), 0);
    }
    ck_assert(wait_until(all_done, &pending, 60000));
    for (int i = 0; i < pending.count; i++) {
        ck_assert_int_eq(pending.results[i].reason, BARCHAN_EXEC_EXITED);
        ck_assert_str_eq(pending.results[i].out.data, "hello\n");
        barchan_exec_result_clear(&pending.results[i]);
    }
    sh_says("ulimit -n", "1024\n");
}
END_TEST

START_TEST(too_many_detached_are_refused)
{
    int started = 0;
    for (;;) {
        barchan_exec_result r = run(OPTIONS(.command = "sleep 1000 & exit 0", .detach = 1));
        barchan_exec_reason reason = r.reason;
        int spawn_errno = r.spawn_errno;
        barchan_exec_result_clear(&r);
        if (reason == BARCHAN_EXEC_SPAWN_FAILED) {
            ck_assert_int_eq(spawn_errno, EAGAIN);
            break;
        }
        ck_assert_int_eq(reason, BARCHAN_EXEC_EXITED);
        ck_assert_int_lt(++started, 300);
    }
    ck_assert_int_eq(started, 256);
    sh_says("echo alive", "alive\n"); /* they take no place of others */
    barchan_exec_result r = sh("pkill sleep");
    barchan_exec_result_clear(&r);
    /* Their places are free again, as soon as they are gone. */
    int64_t deadline = monotonic_ms() + 20000;
    barchan_exec_reason reason;
    do {
        r = run(OPTIONS(.command = "true", .detach = 1));
        reason = r.reason;
        barchan_exec_result_clear(&r);
    } while (reason != BARCHAN_EXEC_EXITED && monotonic_ms() < deadline);
    ck_assert_int_eq(reason, BARCHAN_EXEC_EXITED);
}
END_TEST

/* Forks as quickly as it can, each child in a session of its own, none of them stopped by
 * SIGTERM; 9 where there is no python3. */
#define STORM                                                      \
    "command -v python3 >/dev/null || exit 9; exec python3 -c '\n" \
    "import os,signal,time\n"                                      \
    "signal.signal(15, signal.SIG_IGN)\n"                          \
    "end = time.time() + 60\n"                                     \
    "n = 0\n"                                                      \
    "while time.time() < end:\n"                                   \
    "    try:\n"                                                   \
    "        if os.fork() == 0:\n"                                 \
    "            os.setsid()\n"                                    \
    "            if os.fork(): os._exit(0)\n"                      \
    "        else:\n"                                              \
    "            try: os.wait()\n"                                 \
    "            except OSError: pass\n"                           \
    "            if n > 40: time.sleep(0.0005)\n"                  \
    "        n += 1\n"                                             \
    "    except OSError: time.sleep(0.001)\n'"

START_TEST(a_storm_of_sessions_is_ended)
{
    barchan_exec_result r = run(OPTIONS(.command = STORM, .timeout_ms = 1500, .grace_ms = 300));
    if (r.exit_code == 9) {
        printf("a_storm_of_sessions_is_ended: skipped, no python3\n");
    } else {
        ck_assert_int_eq(r.reason, BARCHAN_EXEC_TIMEOUT);
        sh_says("pgrep -c python3 || true", "0\n"); /* at once, not soon */
    }
    barchan_exec_result_clear(&r);
}
END_TEST

/* A thread's child is a child of the process. When the time was over before it had begun, there is
 * another round with more. */
START_TEST(children_of_threads_are_asked_to_end)
{
    barchan_exec_result r = {0};
    int asked = 0;
    sh_says("echo 'trap \"echo asked > asked; exit\" TERM; "
            "while :; do sleep 0.01; done' > child",
            "");
    for (int limit_ms = 1000; !asked && r.exit_code != 9 && limit_ms < 30000; limit_ms *= 3) {
        barchan_exec_result_clear(&r);
        r = run(OPTIONS(.command = "command -v python3 >/dev/null || exit 9; exec python3 -c '\n"
                                   "import os,signal,subprocess,threading,time\n"
                                   "signal.signal(15, lambda *a: None)\n"
                                   "run = lambda: subprocess.call([\"sh\", \"child\"])\n"
                                   "threading.Thread(target=run).start()\n"
                                   "while not os.path.exists(\"asked\"): time.sleep(0.05)'",
                        .timeout_ms = limit_ms, .grace_ms = 5000));
        asked = barchan_file_exists(sbx, "asked", NULL) == 1;
    }
    if (r.exit_code == 9) {
        printf("children_of_threads_are_asked_to_end: skipped, no python3\n");
    } else {
        ck_assert(asked);
        ck_assert_int_eq(r.reason, BARCHAN_EXEC_TIMEOUT);
        sh_says("cat asked", "asked\n");
    }
    barchan_exec_result_clear(&r);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sandbox_tree");
    const TTest *const tests[] = {a_fork_storm_is_ended,
                                  a_fork_bomb_is_ended,
                                  ten_thousand_orphans,
                                  detached_processes_live_on,
                                  a_detached_writer_does_not_keep_the_sandbox_busy,
                                  a_detached_writer_that_has_filled_its_cap,
                                  a_killed_supervisor_is_no_escape,
                                  concurrent_commands,
                                  a_timeout_spares_the_neighbours,
                                  as_many_as_there_are_streams,
                                  too_many_detached_are_refused,
                                  a_storm_of_sessions_is_ended,
                                  children_of_threads_are_asked_to_end,
                                  NULL};
    add_tests(suite, "tree", setup_sandbox, teardown, tests);
    return run_suite(suite);
}
