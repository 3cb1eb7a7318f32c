/* Every failure names its operation and says what failed, whatever the reason: no handle, no
 * struct_size, a sandbox that has ended. */
#include "sandbox_support.h"

#include <string.h>

static barchan_error err;

#define FAILS(operation, status, call)                                                  \
    do {                                                                                \
        memset(&err, 0x55, sizeof err);                                                 \
        int code = (call);                                                              \
        ck_assert_msg(code == (status), "%s: %d: %s", #call, code, err.message);        \
        ck_assert_msg(strcmp(err.where, operation) == 0, "%s: '%s'", #call, err.where); \
        ck_assert_str_ne(err.message, "");                                              \
    } while (0)

static void on_exec(barchan_exec *exec, barchan_exec_result *result, void *ud)
{
    (void)exec, (void)result, (void)ud;
}

static void on_done(const barchan_error *why, void *ud)
{
    barchan_error *kept = ud;
    if (kept != NULL && why != NULL) *kept = *why;
}

static void on_list(barchan_process_list *list, const barchan_error *why, void *ud)
{
    (void)list;
    on_done(why, ud);
}

static void on_usage(const barchan_usage *usage, const barchan_error *why, void *ud)
{
    (void)usage;
    on_done(why, ud);
}

static void on_logs(const barchan_logs *logs, const barchan_error *why, void *ud)
{
    (void)logs;
    on_done(why, ud);
}

START_TEST(without_a_handle)
{
    const int inval = BARCHAN_EINVAL;
    barchan_exec_result result;
    barchan_file_result file;
    barchan_process_chunk chunk;
    barchan_sandbox *made;
    FAILS("runtime.create", inval, barchan_runtime_create(NULL, NULL, &err));
    FAILS("runtime.pump", inval, barchan_runtime_pump(NULL, 0, &err));
    FAILS("runtime.fd", inval, barchan_runtime_fd(NULL, &err));
    FAILS("runtime.post", inval, barchan_runtime_post(rt, NULL, NULL, &err));
    FAILS("cancel.create", inval, barchan_cancel_create(NULL, &err));
    FAILS("sandbox.create", inval, barchan_sandbox_create(NULL, rt, NULL, &err));
    FAILS("sandbox.create", inval, barchan_sandbox_create(&made, NULL, NULL, &err));
    FAILS("sandbox.connect", inval, barchan_sandbox_connect(&made, rt, "x", &err));
    FAILS("sandbox.status", inval, barchan_sandbox_status(NULL, NULL, &err));
    FAILS("sandbox.extend", inval, barchan_sandbox_extend(NULL, 1, &err));
    FAILS("sandbox.pause", inval, barchan_sandbox_pause(NULL, &err));
    FAILS("sandbox.resume", inval, barchan_sandbox_resume_start(NULL, on_done, NULL, &err));
    FAILS("sandbox.usage", inval, barchan_sandbox_usage(NULL, NULL, &err));
    FAILS("sandbox.usage", inval, barchan_sandbox_usage_start(NULL, on_usage, NULL, &err));
    FAILS("sandbox.exec", inval, barchan_sandbox_exec(NULL, OPTIONS(), &result, &err));
    FAILS("sandbox.exec", inval, barchan_sandbox_exec(NULL, OPTIONS(), NULL, &err));
    FAILS("sandbox.spawn", inval, barchan_sandbox_spawn(NULL, NULL, NULL, NULL, NULL, &err));
    FAILS("exec.signal", inval, barchan_exec_signal(NULL, 1, &err));
    FAILS("exec.resize", inval, barchan_exec_resize(NULL, 1, 1, &err));
    FAILS("exec.write", inval, barchan_exec_write(NULL, "", 0, &err));
    FAILS("exec.close_input", inval, barchan_exec_close_input(NULL, &err));
    FAILS("process.read", inval, barchan_process_read(NULL, 1, 0, NULL, 0, &chunk, &err));
    FAILS("process.wait", inval, barchan_process_wait(NULL, 0, &err));
    FAILS("sandbox.processes", inval, barchan_sandbox_processes(NULL, NULL, &err));
    FAILS("sandbox.processes", inval, barchan_sandbox_processes_start(NULL, on_list, NULL, &err));
    FAILS("sandbox.file", inval, barchan_sandbox_file(NULL, REQUEST(), &file, &err));
    FAILS("sandbox.file", inval, barchan_file_read(NULL, "x", NULL, &err));
    FAILS("sandbox.file", inval, barchan_file_mkdir(NULL, "x", &err));
    FAILS("sandbox.apply", inval, barchan_sandbox_apply_changes(NULL, "/", NULL, NULL, &err));
    FAILS("sandbox.snapshot", inval, barchan_sandbox_snapshot(NULL, "x", NULL, NULL, &err));
    FAILS("sandbox.fork", inval, barchan_sandbox_fork(NULL, &made, 1, NULL, &err));
    FAILS("template.info", inval, barchan_template_info(rt, NULL, NULL, &err));
    FAILS("template.list", inval, barchan_template_list(rt, NULL, &err));
    FAILS("template.remove", inval, barchan_template_remove(rt, NULL, &err));
    FAILS("sandbox.hold", inval, barchan_sandbox_hold(NULL, on_done, NULL, &err));
    FAILS("sandbox.logs", inval, barchan_sandbox_logs_start(NULL, 0, on_logs, NULL, &err));
    FAILS("detached.ids", inval, barchan_detached_ids(rt, NULL, &err));
    FAILS("detached.create", inval, barchan_detached_create_start(rt, NULL, NULL, NULL, &err));
    FAILS("sandbox.set_network", inval,
          barchan_sandbox_set_network(NULL, BARCHAN_NETWORK_OPEN, NULL, &err));
    FAILS("sandbox.network", inval, barchan_sandbox_network(NULL, NULL, &err));
    FAILS("sandbox.network", inval, barchan_sandbox_network_start(NULL, NULL, NULL, &err));
    FAILS("sandbox.set_secret", inval, barchan_sandbox_set_secret(NULL, "A", "", 0, &err));
    FAILS("network.describe", inval,
          barchan_network_describe(BARCHAN_NETWORK_OPEN, NULL, NULL, &err));
    FAILS("model.create", inval, barchan_model_create(NULL, rt, NULL, &err));
    FAILS("model.complete", inval, barchan_model_complete(NULL, "", 0, NULL, NULL, &err));
    FAILS("tools.render", inval, barchan_tools_render("x", "[]", 2, NULL, &err));
    FAILS("doctor", inval, barchan_doctor(rt, NULL, &err));
}
END_TEST

START_TEST(without_a_size)
{
    const barchan_exec_options options = {.command = "true"};
    const barchan_file_request request = {.path = "x"};
    const barchan_profile profile = {.lease_ms = 1000};
    const barchan_snapshot_options snapshot = {.replace = 1};
    const barchan_fork_options fork = {.timeout_ms = 1};
    const barchan_apply_options apply = {.dry_run = 1};
    const barchan_model_options model = {.provider = "replay"};
    barchan_exec_result result;
    barchan_process *process;
    barchan_sandbox *made;
    barchan_model *other;
    const int inval = BARCHAN_EINVAL;
    FAILS("sandbox.exec", inval, barchan_sandbox_exec(sbx, &options, &result, &err));
    ck_assert_str_eq(err.message, "exec: struct_size is 0; set it to sizeof the struct");
    FAILS("sandbox.exec", inval,
          barchan_sandbox_exec_start(NULL, sbx, &options, on_exec, NULL, &err));
    FAILS("sandbox.spawn", inval, barchan_sandbox_spawn(&process, sbx, &options, NULL, NULL, &err));
    FAILS("sandbox.file", inval, barchan_sandbox_file(sbx, &request, NULL, &err));
    FAILS("sandbox.create", inval, barchan_sandbox_create(&made, rt, &profile, &err));
    FAILS("sandbox.snapshot", inval, barchan_sandbox_snapshot(sbx, "x", &snapshot, NULL, &err));
    FAILS("sandbox.fork", inval, barchan_sandbox_fork(sbx, &made, 1, &fork, &err));
    FAILS("sandbox.apply", inval, barchan_sandbox_apply_changes(sbx, "/", &apply, NULL, &err));
    FAILS("model.create", inval, barchan_model_create(&other, rt, &model, &err));
}
END_TEST

START_TEST(after_the_end)
{
    barchan_exec_result result;
    barchan_process *process;
    const int closed = BARCHAN_ECLOSED;
    barchan_sandbox_terminate(sbx);
    FAILS("sandbox.exec", closed, barchan_sandbox_exec(sbx, OPTIONS(), &result, &err));
    ck_assert_str_eq(err.message, "exec: the sandbox has ended: terminated");
    FAILS("sandbox.exec", closed,
          barchan_sandbox_exec_start(NULL, sbx, OPTIONS(), on_exec, NULL, &err));
    ck_assert_str_eq(err.message, "exec: the sandbox has ended: terminated");
    FAILS("sandbox.spawn", closed,
          barchan_sandbox_spawn(&process, sbx, OPTIONS(), NULL, NULL, &err));
    FAILS("sandbox.file", closed, barchan_file_write(sbx, "x", "", 0, &err));
    FAILS("sandbox.extend", closed, barchan_sandbox_extend(sbx, 1, &err));
    FAILS("sandbox.pause", closed, barchan_sandbox_pause_start(sbx, on_done, NULL, &err));
    FAILS("sandbox.resume", closed, barchan_sandbox_resume(sbx, &err));
    FAILS("sandbox.processes", closed, barchan_sandbox_processes_start(sbx, on_list, NULL, &err));
    FAILS("sandbox.snapshot", closed, barchan_sandbox_snapshot(sbx, "x", NULL, NULL, &err));
    FAILS("sandbox.hold", closed, barchan_sandbox_hold(sbx, on_done, NULL, &err));
}
END_TEST

/* What fails later says so as well: here because the sandbox ends before it answers. */
START_TEST(later)
{
    static barchan_error told[3];
    memset(told, 0, sizeof told);
    ck_assert_int_eq(barchan_sandbox_pause_start(sbx, on_done, &told[0], &err), 0);
    ck_assert_int_eq(barchan_sandbox_processes_start(sbx, on_list, &told[1], &err), 0);
    ck_assert_int_eq(barchan_sandbox_resume_start(sbx, on_done, &told[2], &err), 0);
    barchan_sandbox_terminate(sbx);
    barchan_runtime_pump(rt, 0, &err);
    ck_assert_str_eq(told[0].where, "sandbox.pause");
    ck_assert_str_eq(told[1].where, "sandbox.processes");
    ck_assert_str_eq(told[2].where, "sandbox.resume");
    ck_assert_int_eq(told[2].code, BARCHAN_ELOST);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("errors");
    const TTest *const none[] = {without_a_handle, NULL};
    const TTest *const some[] = {without_a_size, after_the_end, later, NULL};
    add_tests(suite, "none", setup_runtime, teardown, none);
    add_tests(suite, "some", setup_sandbox, teardown, some);
    return run_suite(suite);
}
