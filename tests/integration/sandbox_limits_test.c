/* Limits: each is reached, told, and survived; and nothing of the groups that hold them is left. */
#include "sandbox_support.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

static void limited(const barchan_limits *limits)
{
    barchan_error err = {0};
    barchan_profile profile = {.struct_size = sizeof profile, .limits = *limits};
    barchan_sandbox_destroy(sbx);
    ck_assert_msg(barchan_sandbox_create(&sbx, rt, &profile, &err) == 0, "%s", err.message);
}
#define LIMITED(...) limited(&(barchan_limits){__VA_ARGS__})

/* How it ends; the next command works. */
static barchan_exec_result ends(const char *command, barchan_exec_reason reason)
{
    barchan_exec_result r = sh(command);
    ck_assert_msg(r.reason == reason, "%s: %s, code %d, signal %d, out: %.200s, err: %.200s",
                  command, barchan_exec_reason_name(r.reason), r.exit_code, r.term_signal,
                  r.out.data, r.err_out.data);
    barchan_bytes_clear(&r.out);
    barchan_bytes_clear(&r.err_out);
    sh_says("echo next", "next\n");
    return r;
}

static void layer_says(const char *layer, const char *how)
{
    char needle[128];
    snprintf(needle, sizeof needle, "\"%s\":\"%s", layer, how);
    const char *layers = status_of(sbx).layers;
    ck_assert_msg(strstr(layers, needle) != NULL, "%s in %s", needle, layers);
}

static const char big_string[] = "python3 -c \"x = 'a' * 300000000\"";

START_TEST(memory)
{
    ends(big_string, BARCHAN_EXEC_EXITED); /* the oracle */
    LIMITED(.memory_bytes = 64 << 20);
    layer_says("memory",
               has_groups() ? "67108864 bytes, by cgroup" : "67108864 bytes, by process 1");
    layer_says("storage", "a private tmpfs of 33554432 bytes");
    barchan_exec_result r = ends(big_string, BARCHAN_EXEC_OOM);
    ck_assert(r.term_signal == SIGKILL || r.exit_code == 128 + SIGKILL);
    ends("python3 -c \"x = 'a' * 1000000\"", BARCHAN_EXEC_EXITED);
}
END_TEST

START_TEST(memory_of_many_processes)
{
    static const char many[] = "for i in 1 2 3 4 5 6; do"
                               "  python3 -c \"x = 'a' * 30000000; import time; time.sleep(5)\" &"
                               " done; for i in 1 2 3 4 5 6; do wait -n || exit 3; done";
    LIMITED(.memory_bytes = 96 << 20);
    const char *const argv[] = {"bash", "-c", many, NULL};
    barchan_exec_result r = run(OPTIONS(.argv = argv));
    ck_assert_int_eq(r.reason, BARCHAN_EXEC_OOM);
    barchan_exec_result_clear(&r);
    sh_says("echo next", "next\n");
}
END_TEST

START_TEST(processes)
{
    static const char forks[] =
        "for i in $(seq 60); do sleep 20 & done; kill $(jobs -p); wait; exit 0";
    ends(forks, BARCHAN_EXEC_EXITED);
    LIMITED(.pids = 40);
    layer_says("processes",
               has_groups() ? "at most 40, by cgroup" : "at most 40, by a resource limit");
    ends(forks, BARCHAN_EXEC_PIDS);
    ends("for i in $(seq 20); do sleep 0.1 & done; wait", BARCHAN_EXEC_EXITED);
    /* A command that copes with it has not failed. */
    ends("(for i in $(seq 60); do sleep 0.1 & done; wait) 2>&1; exit 0", BARCHAN_EXEC_EXITED);
    /* A storm of them leaves the sandbox, and this test, in good health. */
    barchan_exec_result r = run(OPTIONS(.command = "b() { b | b & b; }; b 2>/dev/null",
                                        .timeout_ms = 1000, .grace_ms = -1));
    barchan_exec_result_clear(&r);
    sh_says("echo next", "next\n");
}
END_TEST

START_TEST(disk_and_files)
{
    LIMITED(.disk_bytes = 4 << 20);
    barchan_exec_result r = ends("head -c 5000000 /dev/zero > f", BARCHAN_EXEC_DISK_FULL);
    ck_assert_int_eq(r.exit_code, 1);
    ends("false", BARCHAN_EXEC_EXITED); /* not because the disk is full */
    ends("head -c 5000000 /dev/zero > f || true", BARCHAN_EXEC_EXITED);
    ends("rm f; head -c 3000000 /dev/zero > f", BARCHAN_EXEC_EXITED);
    LIMITED(.files = 50);
    layer_says("storage", "a private tmpfs of 1073741824 bytes and 50 files");
    ends("for i in $(seq 50); do : > f$i || exit 1; done", BARCHAN_EXEC_EXITED);
    sh_says("rm f*", "");
    ends("for i in $(seq 51); do : > f$i || exit 1; done", BARCHAN_EXEC_DISK_FULL);
}
END_TEST

/* What happens to a command is not told of one that only ran at the same time. */
START_TEST(bystanders)
{
    static const char *const culprits[] = {
        "exec python3 -c \"x = 'a' * 300000000; print(len(x))\"",
        "for i in $(seq 60); do sleep 20 & done; kill $(jobs -p); wait; exit 1",
        "head -c 9000000 /dev/zero > f"};
    LIMITED(.memory_bytes = 96 << 20, .pids = 40, .disk_bytes = 4 << 20);
    for (size_t i = 0; i < sizeof culprits / sizeof *culprits; i++) {
        struct ended e = {0};
        ck_assert_int_eq(
            barchan_sandbox_exec_start(
                NULL, sbx, OPTIONS(.command = "until [ -e /tmp/go ]; do sleep 0.05; done; exit 3"),
                note_end, &e, NULL),
            0);
        barchan_exec_result r = run(OPTIONS(.command = culprits[i]));
        if (i == 0) ck_assert_int_eq(r.reason, BARCHAN_EXEC_OOM); /* it was killed itself */
        if (i == 1) ck_assert_ptr_nonnull(strstr(r.err_out.data, "fork"));
        if (i == 2) ck_assert_ptr_nonnull(strstr(r.err_out.data, "No space left"));
        barchan_exec_result_clear(&r);
        sh_says(": > /tmp/go", "");
        ck_assert(wait_until(exec_ended, &e, 20000));
        /* Its own sleep may have found no room for a process, which a shell ends with 2. */
        int its_own = e.result.exit_code == 3 || (i == 1 && e.result.exit_code == 2);
        ck_assert_msg(e.result.reason == BARCHAN_EXEC_EXITED && its_own,
                      "%s: the other is %s, %d, signal %d", culprits[i],
                      barchan_exec_reason_name(e.result.reason), e.result.exit_code,
                      e.result.term_signal);
        barchan_exec_result_clear(&e.result);
        sh_says("rm -rf /tmp/go f", "");
    }
}
END_TEST

START_TEST(open_files)
{
    static const char count[] =
        "python3 -c \"\nimport os\nn = 3\ntry:\n  while True: os.dup(0); n += 1\n"
        "except OSError as e: print(n, e.errno)\n\"";
    sh_says(count, "1024 24\n");
    LIMITED(.open_files = 64);
    sh_says(count, "64 24\n");
    sh_says("ulimit -Hn; ulimit -n 65 2>/dev/null || echo no", "64\nno\n");
}
END_TEST

START_TEST(output)
{
    LIMITED(.output_bytes = 100000);
    ends("yes", BARCHAN_EXEC_OUTPUT);
    ends("yes | head -c 100000", BARCHAN_EXEC_EXITED);
    for (int i = 0; i < 60; i++) { /* at the moment of its end, too */
        ends("yes | head -c 100001", BARCHAN_EXEC_OUTPUT);
    }
    ends("yes | head -c 60000; yes | head -c 60000 >&2; sleep 10", BARCHAN_EXEC_OUTPUT);
    barchan_exec_result r = run(OPTIONS(.command = "yes", .out_limit_bytes = 10));
    ck_assert_int_eq(r.reason, BARCHAN_EXEC_OUTPUT);
    ck_assert_uint_le(r.out.len, 10);
    barchan_exec_result_clear(&r);
    r = sh("printf %60000d 0 >&2; yes");
    ck_assert_int_eq(r.reason, BARCHAN_EXEC_OUTPUT);
    ck_assert_uint_eq(r.out.len + r.err_out.len, 100000); /* and not what else was in the pipe */
    barchan_exec_result_clear(&r);
}
END_TEST

/* And soon: the resource limit that the kernel holds for each single process has a second more. */
static void ends_for_its_processor_time(const char *command)
{
    barchan_exec_result r = ends(command, BARCHAN_EXEC_CPU_TIME);
    ck_assert_msg(r.usage.user_us + r.usage.system_us < 1500000, "%s: %lld us", command,
                  (long long)(r.usage.user_us + r.usage.system_us));
}

START_TEST(processor_time)
{
    LIMITED(.cpu_ms = 500);
    layer_says("cpu_time", "500 ms a command");
    ends_for_its_processor_time("while :; do :; done");
    /* Many that stay below it each, and one after the other. */
    ends_for_its_processor_time(
        "for i in 1 2 3 4; do (i=0; while :; do i=$((i+1)); done) & done; wait");
    ends_for_its_processor_time("while :; do /bin/true; done");
    ends("sleep 0.8", BARCHAN_EXEC_EXITED);
}
END_TEST

/* One that takes no notice of the kernel's warning. */
START_TEST(processor_time_without_notice)
{
    LIMITED(.cpu_ms = 500);
    ends("exec python3 -c \"import signal; signal.signal(signal.SIGXCPU, signal.SIG_IGN)\n"
         "while True: pass\"",
         BARCHAN_EXEC_CPU_TIME);
    ends("trap : XCPU; while :; do :; done", BARCHAN_EXEC_CPU_TIME);
}
END_TEST

START_TEST(processor_time_without_waiting)
{
    /* Children whose parent does not wait for them are counted by a control group only. */
    if (!has_groups() && skip("only root has control groups, where there are any")) return;
    LIMITED(.cpu_ms = 500);
    ends("exec perl -e '$SIG{CHLD} = \"IGNORE\"; while (1) { my $p = fork; "
         "if ($p == 0) { my $t = (times)[0]; 1 while (times)[0] - $t < 0.05; exit } "
         "select undef, undef, undef, 0.06 }'",
         BARCHAN_EXEC_CPU_TIME);
}
END_TEST

START_TEST(wall)
{
    LIMITED(.wall_ms = 2000);
    barchan_exec_result r = run(OPTIONS(.command = "sleep 100", .timeout_ms = -1));
    ck_assert_int_eq(r.reason, BARCHAN_EXEC_TIMEOUT);
    barchan_exec_result_clear(&r);
    ends("sleep 0.01", BARCHAN_EXEC_EXITED);
}
END_TEST

START_TEST(processors)
{
    barchan_error err = {0};
    const barchan_limits limits = {.cpus_milli = 100};
    barchan_sandbox_destroy(sbx);
    if (has_groups()) {
        ck_assert_int_eq(barchan_sandbox_create(&sbx, rt, PROFILE(.limits = limits), NULL), 0);
        layer_says("cpus", "0.100, by cgroup");
        barchan_exec_result r = sh("i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done");
        ck_assert_int_eq(r.reason, BARCHAN_EXEC_EXITED);
        /* The kernel gives a tenth of a processor, however fast the machine is. */
        int64_t used = r.usage.user_us + r.usage.system_us;
        ck_assert_int_gt(used, 100000);
        ck_assert_int_gt(r.usage.wall_us, used * 4);
        barchan_exec_result_clear(&r);
        return;
    }
    ck_assert_int_eq(barchan_sandbox_create(&sbx, rt, PROFILE(.limits = limits), &err),
                     BARCHAN_EUNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(err.message, "the limit 'cpus'"));
    ck_assert_ptr_nonnull(strstr(err.message, "Delegate=yes"));
    const barchan_profile accepted = {
        .struct_size = sizeof accepted, .limits = limits, .best_effort = 1};
    ck_assert_int_eq(barchan_sandbox_create(&sbx, rt, &accepted, &err), 0);
    layer_says("cpus", "missing: ");
}
END_TEST

START_TEST(two_limits_and_two_sandboxes)
{
    barchan_sandbox *first;
    LIMITED(.pids = 20, .memory_bytes = 64 << 20);
    first = sbx;
    sbx = NULL;
    LIMITED(.pids = 200);
    ends(big_string, BARCHAN_EXEC_EXITED);
    ends("for i in $(seq 60); do sleep 0.1 & done; wait; exit 0", BARCHAN_EXEC_EXITED);
    sbx = first;
    ends(big_string, BARCHAN_EXEC_OOM);
    ends("for i in $(seq 60); do sleep 0.1 & done; wait; exit 0", BARCHAN_EXEC_PIDS);
}
END_TEST

static void refused(const barchan_limits *limits, const char *words)
{
    barchan_sandbox *none;
    barchan_error err = {0};
    ck_assert_int_eq(barchan_sandbox_create(&none, rt, PROFILE(.limits = *limits), &err),
                     BARCHAN_EINVAL);
    ck_assert_msg(strstr(err.message, words) != NULL, "%s", err.message);
}

START_TEST(limits_are_checked)
{
    refused(&(barchan_limits){.memory_bytes = 1000}, "memory: 1000 bytes given; the least");
    refused(&(barchan_limits){.pids = 2000}, "pids: 2000 given; the most is 1024");
    refused(&(barchan_limits){.open_files = 3}, "open_files: 3 given");
    refused(&(barchan_limits){.cpus_milli = 1}, "cpus: 1 thousandths given");
    refused(&(barchan_limits){.cpu_ms = -1}, "negative");
    refused(&(barchan_limits){.memory_bytes = 64 << 20, .disk_bytes = 64 << 20}, "disk must");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sandbox_limits");
    const TTest *const tests[] = {memory,
                                  memory_of_many_processes,
                                  processes,
                                  disk_and_files,
                                  bystanders,
                                  open_files,
                                  output,
                                  processor_time,
                                  processor_time_without_notice,
                                  processor_time_without_waiting,
                                  wall,
                                  processors,
                                  two_limits_and_two_sandboxes,
                                  limits_are_checked,
                                  NULL};
    add_tests(suite, "limits", setup_sandbox, teardown, tests);
    return run_suite(suite);
}
