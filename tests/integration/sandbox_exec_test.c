/* Commands in a sandbox: how they end, what comes back. */
#include "sandbox_support.h"

#include <stdio.h>
#include <string.h>

START_TEST(exit_code)
{
    char command[32];
    snprintf(command, sizeof command, "exit %d", _i);
    barchan_exec_result r = sh(command);
    ck_assert_int_eq(r.reason, BARCHAN_EXEC_EXITED);
    ck_assert_int_eq(r.exit_code, _i);
    ck_assert_int_eq(r.term_signal, 0);
    barchan_exec_result_clear(&r);
}
END_TEST

START_TEST(outputs_are_separate)
{
    barchan_exec_result r = sh("printf one; printf two >&2");
    ck_assert_str_eq(r.out.data, "one");
    ck_assert_str_eq(r.err_out.data, "two");
    ck_assert_uint_eq(r.out.dropped, 0);
    barchan_exec_result_clear(&r);
}
END_TEST

START_TEST(environment_is_exact)
{
    sh_says("env | grep -v ^PWD= | sort", "BARCHAN=1\nHOME=/home/user\nLANG=C.UTF-8\n"
                                          "PATH=/usr/local/bin:/usr/bin:/bin\nTMPDIR=/tmp\n"
                                          "USER=user\n");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sandbox_exec");
    TCase *tc = tcase_create("basics");
    tcase_set_timeout(tc, 60);
    tcase_add_checked_fixture(tc, setup_sandbox, teardown);
    tcase_add_loop_test(tc, exit_code, 0, 3);
    tcase_add_test(tc, outputs_are_separate);
    tcase_add_test(tc, environment_is_exact);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
