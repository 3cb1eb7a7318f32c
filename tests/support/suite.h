/* What the main of a libcheck program does: one suite, one fixture, each test a process of its own.
 */
#ifndef TESTS_SUITE_H
#define TESTS_SUITE_H

#include <check.h>
#include <string.h>

/* Longer than any test takes under a sanitizer on a slow machine. */
#define SUITE_TIMEOUT_SECONDS 60

/* Runs it; the exit code of the program. */
static inline int suite_end(Suite *suite)
{
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}

static inline int suite_run(const char *name, void (*before)(void), void (*after)(void),
                            const TTest *const *tests, size_t count)
{
    Suite *suite = suite_create(name);
    TCase *tc = tcase_create("all");
    tcase_set_timeout(tc, SUITE_TIMEOUT_SECONDS);
    tcase_add_checked_fixture(tc, before, after);
    for (size_t i = 0; i < count; i++)
        tcase_add_test(tc, tests[i]);
    suite_add_tcase(suite, tc);
    return suite_end(suite);
}

/* For loops of many thousands: ck_assert notes each passing of it. */
#define REQUIRE(condition)                                \
    do {                                                  \
        if (!(condition)) ck_abort_msg("%s", #condition); \
    } while (0)

/* SUITE_MAIN(name, setup, teardown, tests...): setup and teardown run around each test; or NULL. */
#define SUITE_MAIN(name, setup, teardown, ...)                                        \
    int main(void)                                                                    \
    {                                                                                 \
        const TTest *const tests[] = {__VA_ARGS__};                                   \
        return suite_run(name, setup, teardown, tests, sizeof tests / sizeof *tests); \
    }

#define UNIT_MAIN(name, ...) SUITE_MAIN(name, NULL, NULL, __VA_ARGS__)

#endif
