/* What is started without waiting and reports through a callback, and the small functions beside
 * it. */
#include <stdio.h>
#include <string.h>
#include "sandbox_support.h"

struct report {
    int count, code;
    char text[64];
};

static int reported(void *ud)
{
    return ((struct report *)ud)->count > 0;
}

static void note(struct report *report, const barchan_error *err, const char *text)
{
    report->count++;
    report->code = err != NULL ? err->code : 0;
    snprintf(report->text, sizeof report->text, "%s", text != NULL ? text : "");
}

static void on_doctor(const char *json, const barchan_error *err, void *ud)
{
    note(ud, err, json);
}

static void on_done(const barchan_error *err, void *ud)
{
    note(ud, err, NULL);
}

static void on_file(barchan_file_result *result, const barchan_error *err, void *ud)
{
    note(ud, err, result != NULL ? result->data.data : NULL);
}

START_TEST(the_doctor_reports_later)
{
    struct report report = {0};
    barchan_error err;
    ck_assert_int_eq(barchan_doctor_start(rt, on_doctor, &report, &err), 0);
    ck_assert_int_eq(report.count, 0);
    ck_assert(wait_until(reported, &report, 20000));
    ck_assert_int_eq(report.code, 0);
    ck_assert_int_eq(report.text[0], '[');
}
END_TEST

static void on_list(barchan_process_list *list, const barchan_error *err, void *ud)
{
    note(ud, err, list != NULL && list->total > 0 ? "some" : NULL);
}

START_TEST(the_processes_are_told_later)
{
    struct report report = {0};
    barchan_error err;
    barchan_exec_options options = {
        .struct_size = sizeof options, .command = "sleep 60 >/dev/null 2>&1 &", .detach = 1};
    barchan_exec_result r = run(&options);
    barchan_exec_result_clear(&r);
    ck_assert_int_eq(barchan_sandbox_processes_start(sbx, on_list, &report, &err), 0);
    ck_assert(wait_until(reported, &report, 20000));
    ck_assert_int_eq(report.code, 0);
    ck_assert_str_eq(report.text, "some");
}
END_TEST

START_TEST(a_pause_is_started_and_ended)
{
    struct report paused = {0}, resumed = {0};
    barchan_error err;
    ck_assert_int_eq(barchan_sandbox_pause_start(sbx, on_done, &paused, &err), 0);
    ck_assert(wait_until(reported, &paused, 20000));
    ck_assert_int_eq(paused.code, 0);
    ck_assert_str_eq(barchan_sandbox_state_name(status_of(sbx).state), "paused");
    ck_assert_int_eq(barchan_sandbox_resume_start(sbx, on_done, &resumed, &err), 0);
    ck_assert(wait_until(reported, &resumed, 20000));
    ck_assert_int_eq(resumed.code, 0);
    ck_assert_str_eq(barchan_sandbox_state_name(status_of(sbx).state), "ready");
    sh_says("echo on", "on\n");
}
END_TEST

/* A source that has nothing at first. */
struct late_source {
    int asked;
};

static long give_late(void *buffer, size_t capacity, void *ud)
{
    struct late_source *source = ud;
    ck_assert_uint_ge(capacity, 4);
    source->asked++;
    if (source->asked == 1) return BARCHAN_FILE_LATER;
    if (source->asked > 2) return 0;
    memcpy(buffer, "late", 4);
    return 4;
}

static int was_asked(void *ud)
{
    return ((struct late_source *)ud)->asked > 0;
}

START_TEST(a_write_goes_on_when_its_source_has_more)
{
    struct late_source source = {0};
    struct report report = {0};
    barchan_error err;
    barchan_file_call *call;
    barchan_file_request write = {.struct_size = sizeof write,
                                  .op = BARCHAN_FILE_WRITE,
                                  .path = "new/late.txt",
                                  .source = give_late,
                                  .ud = &source};
    ck_assert_int_eq(barchan_file_mkdir(sbx, "new", &err), 0);
    ck_assert_int_eq(barchan_sandbox_file_start(&call, sbx, &write, on_file, &report, &err), 0);
    ck_assert(wait_until(was_asked, &source, 20000));
    barchan_file_resume(call);
    ck_assert(wait_until(reported, &report, 20000));
    ck_assert_int_eq(report.code, 0);
    sh_says("cat new/late.txt", "late");
}
END_TEST

START_TEST(a_write_that_is_cancelled_leaves_nothing)
{
    struct late_source source = {0};
    struct report report = {0};
    barchan_error err;
    barchan_file_call *call;
    barchan_file_request write = {.struct_size = sizeof write,
                                  .op = BARCHAN_FILE_WRITE,
                                  .path = "never.txt",
                                  .source = give_late,
                                  .ud = &source};
    ck_assert_int_eq(barchan_sandbox_file_start(&call, sbx, &write, on_file, &report, &err), 0);
    ck_assert(wait_until(was_asked, &source, 20000));
    barchan_file_cancel(call);
    ck_assert(wait_until(reported, &report, 20000));
    ck_assert_int_eq(report.code, BARCHAN_ECANCELLED);
    ck_assert_int_eq(barchan_file_exists(sbx, "never.txt", &err), 0);
}
END_TEST

START_TEST(names_and_tokens)
{
    barchan_error err;
    barchan_cancel *cancel;
    ck_assert_int_eq(barchan_version()[0], '0');
    ck_assert_str_eq(barchan_end_reason_name(status_of(sbx).end_reason), "none");
    ck_assert_int_eq(barchan_cancel_create(&cancel, &err), 0);
    ck_assert_ptr_eq(barchan_cancel_retain(cancel), cancel);
    barchan_cancel_release(cancel);
    barchan_cancel_trigger(cancel); /* the other reference is still there */
    ck_assert_int_eq(barchan_cancel_triggered(cancel), 1);
    barchan_cancel_release(cancel);
    ck_assert_ptr_null(barchan_cancel_retain(NULL));
}
END_TEST

int main(void)
{
    const TTest *with_sandbox[] = {the_doctor_reports_later,
                                   the_processes_are_told_later,
                                   a_pause_is_started_and_ended,
                                   a_write_goes_on_when_its_source_has_more,
                                   a_write_that_is_cancelled_leaves_nothing,
                                   names_and_tokens,
                                   NULL};
    Suite *suite = suite_create("started");
    add_tests(suite, "sandbox", setup_sandbox, teardown, with_sandbox);
    return run_suite(suite);
}
