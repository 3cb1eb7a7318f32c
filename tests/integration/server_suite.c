#include "server_suite.h"

#include <stdio.h>

enum { SKIPPED = 77, TIMEOUT_S = 60 };

peer server;
barchan_runtime *rt;
const char *const byte_server[] = {"python3", BYTE_SERVER, NULL};

void server_suite_set_up(void)
{
    ck_assert_int_eq(barchan_runtime_create(&rt, NULL, NULL), 0);
}

void server_suite_tear_down(void)
{
    barchan_runtime_destroy(rt);
    rt = NULL;
}

int server_suite_run(const char *name, const char *const *serve, const TTest *const *tests,
                     int rounds)
{
    if (peer_start(&server, serve) < 0) {
        printf("SKIP %s or what it needs is not there\n", serve[0]);
        return SKIPPED;
    }
    Suite *suite = suite_create(name);
    TCase *tc = tcase_create("all");
    tcase_add_checked_fixture(tc, server_suite_set_up, server_suite_tear_down);
    tcase_set_timeout(tc, TIMEOUT_S);
    for (; *tests != NULL; tests++)
        tcase_add_loop_test(tc, *tests, 0, rounds);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_set_fork_status(runner, CK_NOFORK);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    peer_stop(&server);
    return failed == 0 ? 0 : 1;
}
