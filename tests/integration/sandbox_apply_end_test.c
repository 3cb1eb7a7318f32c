/* Changes that are applied while others change the folder, and until they are given up. */
#include "apply_support.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* A folder of the host that others may write to becomes a link to elsewhere and back, all the time:
 * nothing gets there. Both happen: files that are written, and links that are met. */
START_TEST(a_race)
{
    char sub[512], other[512], command[256];
    shows(NULL, 0);
    ck_assert_int_eq(symlink("../outside", at("data/other")), 0);
    snprintf(sub, sizeof sub, "%s", at("data/sub"));
    snprintf(other, sizeof other, "%s", at("data/other"));
    pid_t pid = fork();
    while (pid == 0) {
        renameat2(AT_FDCWD, sub, AT_FDCWD, other, RENAME_EXCHANGE);
    }
    int64_t until = monotonic_ms() + 2000;
    size_t written = 0, met = 0;
    for (unsigned round = 0; monotonic_ms() < until || (written * met == 0 && round < 500);
         round++) {
        snprintf(command, sizeof command,
                 "rm -rf *; mkdir sub; for i in 1 2 3 4 5 6 7 8; do echo x > sub/n%u-$i; done",
                 round);
        sh_says(command, "");
        ck_assert_int_eq(apply("data", APPLY(.on_conflict = BARCHAN_ON_CONFLICT_SKIP)), 0);
        for (size_t i = 1; i < result.entry_count; i++) {
            *(result.entries[i].outcome == BARCHAN_APPLY_APPLIED ? &written : &met) += 1;
        }
    }
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    snprintf(command, sizeof command, "ls -A %s | grep -q .", at("outside"));
    ck_assert_int_ne(system(command), 0);
    ck_assert_uint_gt(written, 0);
    ck_assert_uint_gt(met, 0);
}
END_TEST

static int ended, ended_code;

static void on_end(barchan_apply_result *given, const barchan_error *why, void *ud)
{
    (void)ud;
    ck_assert_int_eq(given == NULL, why != NULL);
    ended++;
    ended_code = why == NULL ? 0 : why->code;
}

static int has_ended_once(void *ud)
{
    return *(int *)ud == 1;
}

static int has_begun(void *ud)
{
    char command[256];
    (void)ud;
    snprintf(command, sizeof command, "find %s -name '.barchan-*' | grep -q .", at("data"));
    return system(command) == 0;
}

/* Given up half-way by a token, by the call's handle, by the sandbox's end. */
START_TEST(giving_up)
{
    barchan_apply_call *call;
    barchan_cancel *token;
    sh_says("head -c 300000000 /dev/zero > big", "");
    ck_assert_int_eq(barchan_cancel_create(&token, &err), 0);
    for (int i = 0; i < 3; i++) {
        ended = 0;
        ck_assert_int_eq(barchan_sandbox_apply_changes_start(
                             &call, sbx, at("data"), APPLY(.cancel = token), on_end, NULL, &err),
                         0);
        ck_assert(wait_until(has_begun, NULL, 10000));
        if (i == 0) barchan_apply_cancel(call);
        if (i == 1) barchan_cancel_trigger(token);
        if (i == 1) barchan_cancel_release(token);
        if (i == 1) ck_assert_int_eq(barchan_cancel_create(&token, &err), 0);
        if (i == 2) barchan_sandbox_terminate(sbx);
        ck_assert(wait_until(has_ended_once, &ended, 10000));
        ck_assert_int_eq(ended_code, i == 2 ? BARCHAN_ELOST : BARCHAN_ECANCELLED);
        nothing_temporary();
        host_has("data/big", NULL);
    }
    barchan_cancel_release(token);
}
END_TEST

int main(void)
{
    if (!copies_work()) return 77;
    Suite *suite = suite_create("sandbox_apply_end");
    const TTest *const tests[] = {a_race, giving_up, NULL};
    add_tests(suite, "apply_end", begin_apply, end_apply, tests);
    return run_suite(suite);
}
