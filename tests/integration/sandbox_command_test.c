/* A guest behind a program: what it is told, what it refuses, how it ends. That it works otherwise
 * as on this machine is for the tests that are built both ways. */
#include "network_support.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "sandbox/command.h"

static int created_code;
static barchan_error created_error;

static int create_by(const char *program, const char *const *argv, const barchan_profile *profile)
{
    static const char *const envp[] = {"PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", NULL};
    const bc_command command = {.program = program, .argv = argv, .envp = envp};
    bc_outcome outcome = {0};
    barchan_error err = {0};
    sbx = NULL;
    int rc = bc_command_create(&sbx, rt, profile, &command, bc_created_note, &outcome, &err);
    if (rc == 0) rc = bc_created_wait(&sbx, &outcome, &err);
    created_error = err;
    created_code = rc;
    return rc;
}

/* A word of computer.sh. */
static int create_in(const char *word, const barchan_profile *profile)
{
    const char *const argv[] = {"sh", COMPUTER, GUEST_PATH, word, NULL};
    return create_by("/bin/sh", argv, profile);
}

static void made(int rc)
{
    ck_assert_msg(rc == 0, "%s", created_error.message);
}

static void refused(int rc, int code, const char *words)
{
    ck_assert_msg(rc == code, "%d: %s", rc, created_error.message);
    ck_assert_msg(strstr(created_error.message, words) != NULL, "'%s' is missing in: %s", words,
                  created_error.message);
}

static void holds(const char *words)
{
    ck_assert_msg(strstr(status_of(sbx).layers, words) != NULL, "'%s' is missing in: %s", words,
                  status_of(sbx).layers);
}

static barchan_network_rules usual_rules(void)
{
    static const char *const hosts[] = {"served.example=127.0.0.1", NULL};
    return (barchan_network_rules){.struct_size = sizeof(barchan_network_rules),
                                   .allow = entries("served.example:@", "127.0.0.1:@", NULL),
                                   .hosts = hosts};
}

#define WITH_NETWORK(rules) PROFILE(.network = BARCHAN_NETWORK_ALLOW, .network_rules = &(rules))

/* ---- where it is ---- */

START_TEST(it_says_who_isolates)
{
    made(create_in("", NULL));
    holds("\"isolation\":\"by whoever started the guest\"");
    holds("\"network\":\"off: nothing but a loopback interface\"");
    holds("\"seccomp\":\"allow-list");
    holds("\"capabilities\":\"none for commands\"");
    holds("with process 1 of the computer");
    sh_says("id -u; grep CapEff /proc/self/status | tr -d '\\t'; "
            "grep -c Seccomp:.2 /proc/self/status",
            "1000\nCapEff:0000000000000000\n1\n");
}
END_TEST

START_TEST(by_pipes)
{
    barchan_network_rules rules = usual_rules();
    made(create_in("pipes", WITH_NETWORK(rules)));
    talk_says("served.example", net_port(server), GET("served.example"), "served by the world");
    sh_says("head -c 3000000 /dev/zero | wc -c", "3000000\n");
    barchan_exec_result r = run(OPTIONS(.command = "head -c 300000 /dev/zero"));
    ck_assert_uint_eq(r.out.len, 300000);
    barchan_exec_result_clear(&r);
}
END_TEST

START_TEST(it_makes_namespaces_where_it_is_not_the_first)
{
    barchan_network_rules rules = usual_rules();
    made(create_in("late", WITH_NETWORK(rules)));
    holds("with a process namespace of the guest's own");
    talk_says("served.example", net_port(server), GET("served.example"), "served by the world");
    sh_says("readlink /proc/1/exe >/dev/null 2>&1; cat /proc/1/comm; set -- /proc/[0-9]*; echo $#",
            "barchan-guest\n3\n"); /* the supervisor, the shell */
    /* What its maker had hidden in /proc is hidden in the new one. */
    sh_says("grep ' /proc/sys ' /proc/self/mountinfo | grep -c ' ro,'; ls /proc/bus | wc -l; "
            "cat /proc/keys | wc -l",
            "1\n0\n0\n");
}
END_TEST

START_TEST(without_the_right_to_mount)
{
    barchan_network_rules rules = usual_rules();
    made(create_in("bare", WITH_NETWORK(rules)));
    talk_says("served.example", net_port(server), GET("served.example"), "served by the world");
    sh_says("cat /etc/resolv.conf", "nameserver 198.18.0.1\n");
}
END_TEST

START_TEST(usual_programs_reach_what_they_may)
{
    char command[1024];
    barchan_network_rules rules = usual_rules();
    made(create_in("", WITH_NETWORK(rules)));
    snprintf(command, sizeof command, "curl -s http://served.example:%d/ || echo $?",
             net_port(server));
    sh_says(command, "served by the world\n");
    snprintf(command, sizeof command,
             "python3 -c 'import urllib.request as u; "
             "print(u.urlopen(\"http://served.example:%d/\").read().decode(), end=\"\")'",
             net_port(server));
    sh_says(command, "served by the world\n");
    snprintf(command, sizeof command, "curl -s -o /dev/null -w '%%{http_code}\n' other.example:%d",
             net_port(server));
    sh_says(command, "403\n");
    barchan_exec_result r = sh("curl -sS https://other.example/");
    ck_assert_msg(r.exit_code != 0 && strstr(r.err_out.data, "alert access denied") != NULL, "%s",
                  r.err_out.data);
    was_denied(&r, "other.example", 443, "not in the allow-list");
    snprintf(command, sizeof command, "curl -s served.example:%d; echo $?", net_port(server) - 1);
    sh_says(command, "7\n"); /* it could not connect */
    barchan_network_usage usage;
    ck_assert_int_eq(barchan_sandbox_network(sbx, &usage, NULL), 0);
    ck_assert_uint_eq(usage.count, 2);
    ck_assert_str_eq(usage.hosts[0].host, "served.example");
    ck_assert_uint_eq(usage.hosts[0].connections, 2);
    ck_assert_uint_gt(usage.hosts[0].bytes_received, 20);
    barchan_network_usage_clear(&usage);
}
END_TEST

/* ---- what it cannot do is refused ---- */

START_TEST(without_a_right_there_is_no_network)
{
    barchan_network_rules rules = usual_rules();
    refused(create_in("weak", WITH_NETWORK(rules)), BARCHAN_EPERMISSION, "CAP_NET_ADMIN");
    barchan_sandbox_destroy(sbx);
    made(create_in("weak", NULL));
    holds("off: nothing but a loopback interface");
    barchan_sandbox_destroy(sbx);
    made(create_in("weak", PROFILE(.network = BARCHAN_NETWORK_ALLOW, .network_rules = &rules,
                                   .best_effort = 1)));
    holds("\"network\":\"missing: ");
    sh_says("echo yes", "yes\n");
}
END_TEST

START_TEST(a_way_around_is_closed)
{
    made(create_in("open", NULL));
    sh_says("tail -n +3 /proc/net/dev | tr -d ' ' | cut -d: -f1", "lo\n");
}
END_TEST

START_TEST(a_way_around_that_stays_is_refused)
{
    barchan_network_rules rules = usual_rules();
    refused(create_in("leaky", NULL), BARCHAN_EUNSUPPORTED, "interface 'leak' leads out");
    barchan_sandbox_destroy(sbx);
    refused(create_in("leaky", WITH_NETWORK(rules)), BARCHAN_EUNSUPPORTED, "--network none");
    barchan_sandbox_destroy(sbx);
    made(create_in("leaky", PROFILE(.best_effort = 1)));
    holds("\"network\":\"missing: the network interface 'leak' leads out");
}
END_TEST

START_TEST(what_others_hold_is_refused)
{
    static const struct {
        barchan_limits limits;
        const char *words;
    } cases[] = {
        {{.cpus_milli = 500}, "the limit 'cpus'"},
        {{.disk_bytes = 64 << 20}, "the limits of the storage"},
        {{.files = 1000}, "the limits of the storage"},
    };
    const barchan_mount mount = {.source = "/usr", .target = "/mnt/x"};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        refused(create_in("", PROFILE(.limits = cases[i].limits)), BARCHAN_EUNSUPPORTED,
                cases[i].words);
        barchan_sandbox_destroy(sbx);
        made(create_in("", PROFILE(.limits = cases[i].limits, .best_effort = 1)));
        holds("missing");
        barchan_sandbox_destroy(sbx);
    }
    refused(create_in("", PROFILE(.mounts = &mount, .mount_count = 1)), BARCHAN_EUNSUPPORTED,
            "mounts");
    barchan_sandbox_destroy(sbx);
    refused(create_in("", PROFILE(.template_name = "/usr")), BARCHAN_EUNSUPPORTED, "a template");
}
END_TEST

START_TEST(limits_that_process_1_holds)
{
    const barchan_limits limits = {.memory_bytes = 64 << 20, .pids = 50, .output_bytes = 100000};
    made(create_in("", PROFILE(.limits = limits)));
    barchan_exec_result r = sh("python3 -c 'x = b\"x\" * (256 << 20); import time; time.sleep(5)'");
    ck_assert_int_eq(r.reason, BARCHAN_EXEC_OOM);
    barchan_exec_result_clear(&r);
    r = sh("yes | head -c 300000");
    ck_assert_int_eq(r.reason, BARCHAN_EXEC_OUTPUT);
    barchan_exec_result_clear(&r);
}
END_TEST

/* ---- programs that lead nowhere ---- */

START_TEST(a_program_that_is_not_there)
{
    static const char *const argv[] = {"no-such-program", NULL};
    refused(create_by("no-such-program", argv, NULL), BARCHAN_ENOTFOUND, "no-such-program");
    ck_assert_int_eq(count_children(), 0);
}
END_TEST

START_TEST(a_program_that_fails_is_quoted)
{
    static const char *const argv[] = {
        "sh", "-c", "echo 'first line' >&2; printf 'no such \\033[31mimage\\n\\n' >&2; exit 125",
        NULL};
    refused(create_by("sh", argv, NULL), BARCHAN_ELOST,
            "'sh', which leads to the guest, exited with status 125: no such ?[31mimage");
}
END_TEST

START_TEST(words_without_end_are_bounded)
{
    static const char *const argv[] = {
        "sh", "-c", "head -c 3000000 /dev/zero >&2; printf 'the %0900d end' 7 >&2; kill -9 $$",
        NULL};
    refused(create_by("sh", argv, NULL), BARCHAN_ELOST, "was killed by signal 9: ");
    ck_assert_uint_lt(strlen(created_error.message), sizeof created_error.message);
}
END_TEST

START_TEST(another_program_is_no_guest)
{
    static const char *const argv[] = {"cat", NULL}; /* gives back what it is told */
    refused(create_by("cat", argv, NULL), BARCHAN_EPROTOCOL, "broke the rules of its channel");
}
END_TEST

START_TEST(a_silent_program_is_waited_for_in_vain)
{
    static const char *const argv[] = {"sleep", "100", NULL};
    int64_t began = monotonic_ms();
    refused(create_by("sleep", argv, PROFILE(.timeout_ms = 200)), BARCHAN_ETIMEDOUT,
            "not ready in time");
    barchan_sandbox_destroy(sbx);
    sbx = NULL;
    barchan_runtime_destroy(rt);
    ck_assert_int_eq(count_children(), 0);
    ck_assert_int_lt(monotonic_ms() - began, 5000);
    ck_assert_int_eq(barchan_runtime_create(&rt, NULL, NULL), 0);
}
END_TEST

/* ---- ends ---- */

/* What lost its parent is ours, as it would be init's, to bury. */
static int nobody_is_left(void *ud)
{
    (void)ud;
    while (waitpid(-1, NULL, WNOHANG) > 0) {}
    return count_descendants((int)getpid()) == 0;
}

static int none_is_open(void *ud)
{
    (void)ud;
    return net_open(server) == 0;
}

/* While bytes go both ways; whoever of them is killed, everything is gone. */
static void killed_in_the_middle(const char *word, int generation)
{
    struct ended ended = {0};
    barchan_network_rules rules = usual_rules();
    serve_kind(NET_ECHO);
    rules = usual_rules();
    made(create_in(word, WITH_NETWORK(rules)));
    char command[512];
    snprintf(command, sizeof command,
             "setsid sleep 1000 & bash -c 'exec 3<>/dev/tcp/served.example/%d; cat /dev/zero >&3 & "
             "cat <&3 >/dev/null'",
             net_port(server));
    ck_assert_int_eq(
        barchan_sandbox_exec_start(NULL, sbx, OPTIONS(.command = command), note_end, &ended, NULL),
        0);
    while (net_received(server) < 10000000) {
        barchan_runtime_pump(rt, 20, NULL);
    }
    int pid = (int)getpid();
    for (int i = 0; i < generation; i++) {
        pid = child_of(pid);
    }
    ck_assert_int_gt(pid, 0);
    kill(pid, SIGKILL);
    ck_assert(wait_until(has_ended, sbx, 20000));
    ck_assert_int_eq(status_of(sbx).end_reason, BARCHAN_END_CRASHED);
    ck_assert(wait_until(exec_ended, &ended, 20000));
    /* Where its connection goes first it may come to its own end. */
    ck_assert(ended.result.reason == BARCHAN_EXEC_LOST ||
              ended.result.reason == BARCHAN_EXEC_EXITED);
    ck_assert(wait_until(nobody_is_left, NULL, 20000));
    ck_assert(wait_until(none_is_open, NULL, 20000));
}

START_TEST(a_killed_guest_leaves_nothing)
{
    killed_in_the_middle("", 2);
}
END_TEST

START_TEST(a_killed_program_leaves_nothing)
{
    killed_in_the_middle("", 1);
}
END_TEST

START_TEST(a_killed_guest_in_its_own_namespaces_leaves_nothing)
{
    killed_in_the_middle("late", _i);
}
END_TEST

START_TEST(it_ends_with_its_input)
{
    made(create_in(_i == 0 ? "" : "late", NULL));
    barchan_exec_result r =
        run(OPTIONS(.command = "setsid sleep 1000 & sleep 1000", .detach = 1, .timeout_ms = 300));
    barchan_exec_result_clear(&r);
    int64_t began = monotonic_ms();
    barchan_sandbox_destroy(sbx);
    sbx = NULL;
    ck_assert(wait_until(nobody_is_left, NULL, 20000));
    ck_assert_int_lt(monotonic_ms() - began, 1000); /* by itself, not because it was killed */
}
END_TEST

START_TEST(the_lease_is_kept)
{
    made(create_in("", PROFILE(.lease_ms = 600)));
    ck_assert(wait_until(has_ended, sbx, 5000));
    ck_assert_int_eq(status_of(sbx).end_reason, BARCHAN_END_LEASE_EXPIRED);
}
END_TEST

/* A guest that does not end itself: the library does. */
START_TEST(the_lease_is_kept_for_it)
{
    made(create_in("", PROFILE(.lease_ms = 1500)));
    int guest = child_of(child_of((int)getpid()));
    kill(guest, SIGSTOP);
    int64_t began = monotonic_ms();
    ck_assert(wait_until(has_ended, sbx, 20000));
    ck_assert_int_eq(status_of(sbx).end_reason, BARCHAN_END_LEASE_EXPIRED);
    ck_assert_int_lt(monotonic_ms() - began, 6000);
    ck_assert(wait_until(nobody_is_left, NULL, 20000));
}
END_TEST

START_TEST(pause_extend_and_snapshot_questions)
{
    barchan_error err = {0};
    made(create_in("", NULL));
    ck_assert_msg(barchan_sandbox_pause(sbx, &err) == 0, "%s", err.message);
    ck_assert_msg(barchan_sandbox_resume(sbx, &err) == 0, "%s", err.message);
    ck_assert_int_eq(barchan_sandbox_extend(sbx, 60000, &err), 0);
    barchan_usage usage = {.struct_size = sizeof usage};
    ck_assert_int_eq(barchan_sandbox_usage(sbx, &usage, &err), 0);
    sh_says("echo yes", "yes\n");
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {it_says_who_isolates,
                                  by_pipes,
                                  it_makes_namespaces_where_it_is_not_the_first,
                                  without_the_right_to_mount,
                                  usual_programs_reach_what_they_may,
                                  without_a_right_there_is_no_network,
                                  a_way_around_is_closed,
                                  a_way_around_that_stays_is_refused,
                                  what_others_hold_is_refused,
                                  limits_that_process_1_holds,
                                  a_program_that_is_not_there,
                                  a_program_that_fails_is_quoted,
                                  words_without_end_are_bounded,
                                  another_program_is_no_guest,
                                  a_silent_program_is_waited_for_in_vain,
                                  a_killed_guest_leaves_nothing,
                                  a_killed_program_leaves_nothing,
                                  the_lease_is_kept,
                                  the_lease_is_kept_for_it,
                                  pause_extend_and_snapshot_questions,
                                  NULL};
    Suite *suite = suite_create("command");
    add_tests(suite, "command", setup_network, teardown_network, tests);
    TCase *both = tcase_create("both");
    tcase_set_timeout(both, 60);
    tcase_add_checked_fixture(both, setup_network, teardown_network);
    tcase_add_loop_test(both, it_ends_with_its_input, 0, 2);
    tcase_add_loop_test(both, a_killed_guest_in_its_own_namespaces_leaves_nothing, 1, 5);
    suite_add_tcase(suite, both);
    return run_suite(suite);
}
