/* Detached sandboxes: a holder in a process of its own, and those who connect to it. */
#include "detached_support.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

START_TEST(commands_and_files)
{
    sh_says("echo $((6 * 7)); pwd; echo $HOME", "42\n/workspace\n/home/user\n");
    file_put_text("kept.txt", "text");
    barchan_exec_result r =
        run(OPTIONS(.command = "cat; echo e >&2; exit 3", .input = "in", .input_len = 2));
    ck_assert_int_eq(r.exit_code, 3);
    ck_assert_str_eq(r.out.data, "in");
    ck_assert_str_eq(r.err_out.data, "e\n");
    barchan_exec_result_clear(&r);
    r = run(OPTIONS(.argv = ARGV("/no/such")));
    ck_assert_int_eq(r.reason, BARCHAN_EXEC_SPAWN_FAILED);
    ck_assert_int_eq(r.spawn_errno, ENOENT);
    barchan_exec_result_clear(&r);
    barchan_sandbox_destroy(sbx);
    sbx = connect_to(holder.id); /* it lived on, and what is in it */
    file_contains("kept.txt", "text");
    file_fails(REQUEST(.op = BARCHAN_FILE_READ, .path = "none"), BARCHAN_ENOTFOUND);
}
END_TEST

START_TEST(much_output_and_input)
{
    size_t len = 3 << 20;
    char *input = malloc(len);
    memset(input, 'x', len);
    barchan_exec_result r =
        run(OPTIONS(.command = "cat; head -c 2000000 /dev/zero >&2", .input = input,
                    .input_len = len, .out_limit_bytes = 16 << 20, .err_limit_bytes = 1000));
    ck_assert_uint_eq(r.out.len, len);
    ck_assert(memcmp(r.out.data, input, len) == 0);
    ck_assert_uint_eq(r.err_out.len, 1000);
    ck_assert_uint_eq(r.err_out.dropped, 1999000);
    barchan_exec_result_clear(&r);
    free(input);
}
END_TEST

START_TEST(what_the_profile_says)
{
    const char *const env[] = {"GREETING=hello", NULL};
    struct holder other =
        start_holder(PROFILE(.env = env, .limits = {.wall_ms = 300}, .lease_ms = 500000));
    barchan_sandbox *first = sbx;
    sbx = connect_to(other.id);
    sh_says("echo $GREETING", "hello\n");
    barchan_exec_result r = run(OPTIONS(.command = "sleep 100"));
    ck_assert_int_eq(r.reason, BARCHAN_EXEC_TIMEOUT);
    ck_assert_int_lt(r.usage.wall_us, 10000000);
    barchan_exec_result_clear(&r);
    barchan_sandbox_info info = status_of(sbx);
    ck_assert_str_eq(info.id, other.id);
    ck_assert_str_eq(info.template_name, "host");
    ck_assert_ptr_nonnull(strstr(info.layers, "\"seccomp\""));
    ck_assert_int_gt(info.lease_left_ms, 400000);
    ck_assert_int_le(info.lease_left_ms, 500000);
    barchan_sandbox_terminate(sbx);
    barchan_sandbox_destroy(sbx);
    ck_assert_int_eq(holder_gone(&other), 0);
    ck_assert(!is_listed(other.id));
    sbx = first;
}
END_TEST

START_TEST(ids_and_lists)
{
    barchan_sandbox *none;
    barchan_error err = {0};
    const char *const wrong[] = {"",
                                 "sbx-",
                                 "../sbx-0123456789abcdef",
                                 "sbx-0123456789abcde/",
                                 "sbx-0123456789ABCDEF",
                                 "sbx-0123456789abcdef0",
                                 NULL};
    ck_assert(is_listed(holder.id));
    for (int i = 0; wrong[i] != NULL; i++) {
        ck_assert_int_eq(barchan_sandbox_connect(&none, rt, wrong[i], &err), BARCHAN_EINVAL);
        ck_assert_ptr_null(none);
    }
    ck_assert_int_eq(barchan_sandbox_connect(&none, rt, NULL, &err), BARCHAN_EINVAL);
    ck_assert_int_eq(barchan_sandbox_connect(&none, rt, "sbx-0123456789abcdef", &err),
                     BARCHAN_ENOTFOUND);
    ck_assert_ptr_nonnull(strstr(err.message, "barchan sandbox list"));
    ck_assert_str_eq(err.where, "sandbox.connect");
}
END_TEST

START_TEST(names_are_private)
{
    struct stat st;
    char path[320];
    ck_assert_int_eq(stat(held_directory, &st), 0);
    ck_assert_uint_eq(st.st_mode & 07777, 0700);
    ck_assert_uint_eq(st.st_uid, geteuid());
    snprintf(path, sizeof path, "%s/%s.sock", held_directory, holder.id);
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert(S_ISSOCK(st.st_mode));
    ck_assert_uint_eq(st.st_mode & 07777, 0600);
}
END_TEST

START_TEST(several_at_a_time)
{
    enum { COUNT = 8 };
    barchan_sandbox *all[COUNT], *first = sbx;
    struct ended e[COUNT] = {{0}};
    for (int i = 0; i < COUNT; i++) {
        all[i] = connect_to(holder.id);
        ck_assert_int_eq(barchan_sandbox_exec_start(NULL, all[i],
                                                    OPTIONS(.command = "echo x >> f; sleep 0.1"),
                                                    note_end, &e[i], NULL),
                         0);
    }
    for (int i = 0; i < COUNT; i++) {
        ck_assert(wait_until(exec_ended, &e[i], 20000));
        ck_assert_int_eq(e[i].result.exit_code, 0);
        barchan_sandbox_destroy(all[i]);
    }
    sbx = first;
    sh_says("wc -l < f", "8\n");
}
END_TEST

static int is_gone(void *ud)
{
    barchan_file_result result;
    (void)ud;
    int rc =
        barchan_sandbox_file(sbx, REQUEST(.op = BARCHAN_FILE_STAT, .path = "alive"), &result, NULL);
    if (rc == 0) barchan_file_result_clear(&result);
    if (rc == 0) sh_says("rm -f alive; sleep 0.3", "");
    return rc == BARCHAN_ENOTFOUND;
}

#define ALIVE "while :; do echo x > alive; sleep 0.02; done"

static void start_alive(barchan_sandbox *of, int detach)
{
    static struct ended e;
    ck_assert_int_eq(barchan_sandbox_exec_start(
                         NULL, of, OPTIONS(.command = ALIVE, .timeout_ms = -1, .detach = detach),
                         note_end, &e, NULL),
                     0);
    barchan_exec_result r;
    ck_assert_int_eq(
        barchan_sandbox_exec(of, OPTIONS(.command = "until test -e alive; do :; done"), &r, NULL),
        0);
    barchan_exec_result_clear(&r);
}

START_TEST(commands_of_one_who_leaves)
{
    barchan_sandbox *other = connect_to(holder.id);
    start_alive(other, 0);
    ck_assert_int_eq(status_of(sbx).running, 0); /* not asked since */
    barchan_usage u = {.struct_size = sizeof u};
    ck_assert_int_eq(barchan_sandbox_usage(sbx, &u, NULL), 0);
    ck_assert_int_eq(status_of(sbx).running, 1);
    barchan_sandbox_destroy(other);
    ck_assert_msg(wait_until(is_gone, NULL, 20000), "it was not cancelled");
}
END_TEST

START_TEST(detached_commands_live_on)
{
    barchan_sandbox *other = connect_to(holder.id);
    start_alive(other, 1);
    barchan_sandbox_destroy(other);
    for (int i = 0; i < 3; i++) {
        sh_says("rm -f alive; until test -e alive; do sleep 0.01; done", "");
    }
}
END_TEST

START_TEST(ending_it)
{
    struct ended e = {0};
    barchan_sandbox *other = connect_to(holder.id);
    ck_assert_int_eq(
        barchan_sandbox_exec_start(NULL, sbx, OPTIONS(.command = "sleep 100"), note_end, &e, NULL),
        0);
    barchan_sandbox_terminate(other);
    ck_assert_int_eq(status_of(other).end_reason, BARCHAN_END_TERMINATED);
    barchan_usage u = {.struct_size = sizeof u};
    ck_assert_int_eq(barchan_sandbox_usage(other, &u, NULL), 0); /* waits until it is gone */
    ck_assert(!is_listed(holder.id));
    ck_assert(wait_until(exec_ended, &e, 20000));
    ck_assert_int_eq(e.result.reason, BARCHAN_EXEC_LOST);
    ck_assert(wait_until(has_ended, sbx, 20000));
    ck_assert_int_eq(status_of(sbx).end_reason, BARCHAN_END_TERMINATED);
    ck_assert_int_eq(holder_gone(&holder), 0);
}
END_TEST

START_TEST(its_lease_is_its_own)
{
    struct holder brief = start_holder(PROFILE(.lease_ms = 1500));
    barchan_sandbox *first = sbx;
    sbx = connect_to(brief.id);
    barchan_sandbox_destroy(sbx);
    sbx = connect_to(brief.id);
    ck_assert_int_le(status_of(sbx).lease_left_ms, 1500);
    ck_assert(wait_until(has_ended, sbx, 20000));
    ck_assert_int_eq(status_of(sbx).end_reason, BARCHAN_END_LEASE_EXPIRED);
    barchan_sandbox_destroy(sbx);
    ck_assert_int_eq(holder_gone(&brief), 0);
    sbx = first;
}
END_TEST

START_TEST(more_lease_and_pauses)
{
    barchan_error err = {0};
    barchan_sandbox *other = connect_to(holder.id);
    int64_t left = status_of(sbx).lease_left_ms;
    ck_assert_msg(barchan_sandbox_extend(other, 60000, &err) == 0, "%s", err.message);
    ck_assert_msg(barchan_sandbox_pause(other, &err) == 0, "%s", err.message);
    barchan_usage u = {.struct_size = sizeof u};
    ck_assert_int_eq(barchan_sandbox_usage(sbx, &u, NULL), 0);
    ck_assert_int_eq(status_of(sbx).state, BARCHAN_SANDBOX_PAUSED);
    ck_assert_int_gt(status_of(sbx).lease_left_ms, left + 30000);
    ck_assert_int_le(status_of(sbx).lease_left_ms, left + 61000); /* by two clock readings */
    barchan_exec_result r;
    ck_assert_int_eq(barchan_sandbox_exec(sbx, OPTIONS(.command = "true"), &r, &err),
                     BARCHAN_EBUSY);
    ck_assert_ptr_nonnull(strstr(err.message, "resume it first"));
    barchan_sandbox *third = connect_to(holder.id);
    ck_assert_int_eq(status_of(third).state, BARCHAN_SANDBOX_PAUSED);
    ck_assert_int_eq(barchan_sandbox_resume(third, &err), 0);
    barchan_sandbox_destroy(third);
    barchan_sandbox_destroy(other);
    ck_assert_int_eq(barchan_sandbox_usage(sbx, &u, NULL), 0);
    sh_says("echo on", "on\n");
}
END_TEST

START_TEST(usage_is_of_all)
{
    barchan_sandbox *other = connect_to(holder.id);
    barchan_exec_result r;
    ck_assert_int_eq(
        barchan_sandbox_exec(other, OPTIONS(.command = "cat", .input = "12345", .input_len = 5), &r,
                             NULL),
        0);
    barchan_exec_result_clear(&r);
    barchan_usage u = {.struct_size = sizeof u};
    ck_assert_int_eq(barchan_sandbox_usage(sbx, &u, NULL), 0);
    ck_assert_uint_eq(u.execs, 1);
    ck_assert_uint_eq(u.bytes_in, 5);
    ck_assert_uint_eq(u.bytes_out, 5);
    ck_assert_int_gt(u.wall_us, 0);
    barchan_sandbox_destroy(other);
}
END_TEST

struct log {
    int done;
    char text[4000];
    uint64_t next, dropped;
    size_t count;
};

static void on_logs(const barchan_logs *logs, const barchan_error *err, void *ud)
{
    struct log *log = ud;
    log->done = 1;
    ck_assert_msg(err == NULL, "%s", err == NULL ? "" : err->message);
    log->count = logs->count;
    log->next = logs->next;
    log->dropped = logs->dropped;
    for (size_t i = 0; i < logs->count; i++) {
        const barchan_log_entry *e = &logs->entries[i];
        size_t at = strlen(log->text);
        snprintf(log->text + at, sizeof log->text - at, "%u %d %.*s|", e->command, (int)e->stream,
                 (int)(e->len < 20 ? e->len : 20), e->data);
    }
}

static int logs_came(void *ud)
{
    return ((struct log *)ud)->done;
}

static struct log logs_from(uint64_t cursor)
{
    struct log log = {0};
    barchan_error err = {0};
    ck_assert_msg(barchan_sandbox_logs_start(sbx, cursor, on_logs, &log, &err) == 0, "%s",
                  err.message);
    ck_assert(wait_until(logs_came, &log, 20000));
    return log;
}

/* A question that waits is answered when something comes. */
START_TEST(what_is_printed_is_followed)
{
    struct log log = {0};
    barchan_error err = {0};
    barchan_exec_result r;
    barchan_sandbox *other = connect_to(holder.id);
    ck_assert_msg(barchan_sandbox_logs_follow_start(other, 0, on_logs, &log, &err) == 0, "%s",
                  err.message);
    barchan_runtime_pump(rt, 100, NULL);
    ck_assert(!log.done);
    ck_assert_int_eq(barchan_sandbox_exec(sbx, OPTIONS(.command = "echo one"), &r, NULL), 0);
    barchan_exec_result_clear(&r);
    ck_assert(wait_until(logs_came, &log, 20000));
    ck_assert_str_eq(log.text, "1 1 one\n|");
    barchan_sandbox_destroy(other);
}
END_TEST

START_TEST(what_was_printed)
{
    barchan_sandbox *other = connect_to(holder.id), *own;
    barchan_error err = {0};
    sh_says("echo one", "one\n");
    barchan_exec_result r;
    ck_assert_int_eq(barchan_sandbox_exec(other, OPTIONS(.command = "echo two >&2"), &r, NULL), 0);
    barchan_exec_result_clear(&r);
    struct log log = logs_from(0);
    ck_assert_str_eq(log.text, "1 1 one\n|2 2 two\n|");
    ck_assert_uint_eq(log.next, 8);
    ck_assert_uint_eq(log.dropped, 0);
    log = logs_from(2);
    ck_assert_str_eq(log.text, "1 1 e\n|2 2 two\n|");
    ck_assert_uint_eq(logs_from(8).count, 0);
    ck_assert_uint_eq(logs_from(1000).count, 0);
    r = run(OPTIONS(.command = "head -c 3000000 /dev/zero", .out_limit_bytes = 4 << 20));
    barchan_exec_result_clear(&r);
    log = logs_from(0);
    ck_assert_uint_gt(log.dropped, 1900000); /* 1 MiB is kept */
    ck_assert_uint_lt(log.dropped, 2000000);
    uint64_t total = log.dropped;
    for (uint64_t cursor = 0; log.count > 0; log = logs_from(cursor)) {
        total += log.next - cursor - log.dropped;
        cursor = log.next;
    }
    ck_assert_uint_eq(total, 3000008);
    ck_assert_int_eq(barchan_sandbox_create(&own, rt, NULL, &err), 0);
    ck_assert_int_eq(barchan_sandbox_logs_start(own, 0, on_logs, &log, &err), BARCHAN_EUNSUPPORTED);
    barchan_sandbox_destroy(own);
    barchan_sandbox_destroy(other);
}
END_TEST

static int has_process(void *ud)
{
    barchan_process_list list;
    ck_assert_int_eq(barchan_sandbox_processes(ud, &list, NULL), 0);
    size_t count = list.count;
    barchan_process_list_clear(&list);
    return count > 0;
}

START_TEST(processes_and_their_commands)
{
    struct ended e = {0};
    barchan_exec *exec;
    barchan_sandbox *other = connect_to(holder.id);
    sh_says("true", ""); /* so that the numbers of both sides differ */
    ck_assert_int_eq(barchan_sandbox_exec_start(&exec, other, OPTIONS(.command = "exec sleep 99"),
                                                note_end, &e, NULL),
                     0);
    barchan_process_list list;
    ck_assert(wait_until(has_process, other, 20000));
    ck_assert_int_eq(barchan_sandbox_processes(other, &list, NULL), 0);
    ck_assert_uint_ge(list.count, 1);
    ck_assert_uint_eq(list.processes[0].exec_id, barchan_exec_id(exec));
    barchan_process_list_clear(&list);
    ck_assert_int_eq(barchan_sandbox_processes(sbx, &list, NULL), 0);
    ck_assert_uint_ge(list.count, 1);
    ck_assert_uint_eq(list.processes[0].exec_id, 0);
    barchan_process_list_clear(&list);
    barchan_exec_cancel(exec);
    ck_assert(wait_until(exec_ended, &e, 20000));
    ck_assert_int_eq(e.result.reason, BARCHAN_EXEC_CANCELLED);
    barchan_sandbox_destroy(other);
}
END_TEST

START_TEST(not_twice_and_not_of_others)
{
    barchan_error err = {0};
    ck_assert_int_eq(barchan_sandbox_hold(sbx, NULL, NULL, &err), BARCHAN_EINVAL);
    barchan_sandbox *own;
    ck_assert_int_eq(barchan_sandbox_create(&own, rt, NULL, &err), 0);
    ck_assert_msg(barchan_sandbox_hold(own, NULL, NULL, &err) == 0, "%s", err.message);
    ck_assert_int_eq(barchan_sandbox_hold(own, NULL, NULL, &err), BARCHAN_EBUSY);
    ck_assert(is_listed(status_of(own).id));
    barchan_sandbox_destroy(own); /* its last clients are told later */
    ck_assert_int_eq(barchan_sandbox_hold(NULL, NULL, NULL, &err), BARCHAN_EINVAL);
}
END_TEST

START_TEST(its_own_client)
{
    barchan_error err = {0};
    barchan_sandbox *own, *first = sbx;
    ck_assert_int_eq(barchan_sandbox_create(&own, rt, NULL, &err), 0);
    ck_assert_int_eq(barchan_sandbox_hold(own, NULL, NULL, &err), 0);
    sbx = connect_to(status_of(own).id);
    sh_says("echo self", "self\n");
    barchan_sandbox_destroy(own);
    ck_assert(wait_until(has_ended, sbx, 20000));
    ck_assert_int_eq(status_of(sbx).end_reason, BARCHAN_END_TERMINATED);
    barchan_sandbox_destroy(sbx);
    ck_assert_int_eq(barchan_sandbox_create(&own, rt, NULL, &err), 0);
    ck_assert_int_eq(barchan_sandbox_hold(own, NULL, NULL, &err), 0);
    sbx = first; /* the runtime ends with a hold on it */
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sandbox_detached");
    const TTest *const tests[] = {commands_and_files,
                                  much_output_and_input,
                                  what_the_profile_says,
                                  ids_and_lists,
                                  names_are_private,
                                  several_at_a_time,
                                  commands_of_one_who_leaves,
                                  detached_commands_live_on,
                                  ending_it,
                                  its_lease_is_its_own,
                                  more_lease_and_pauses,
                                  usage_is_of_all,
                                  what_is_printed_is_followed,
                                  what_was_printed,
                                  processes_and_their_commands,
                                  not_twice_and_not_of_others,
                                  its_own_client,
                                  NULL};
    add_tests(suite, "detached", setup_connected, teardown_connected, tests);
    return run_suite(suite);
}
