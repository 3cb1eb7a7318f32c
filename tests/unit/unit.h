/* What every unit test's main does. */
#ifndef TESTS_UNIT_H
#define TESTS_UNIT_H

#include <check.h>
#include <string.h>

static inline int unit_run(const char *name, const TTest *const *tests, size_t count)
{
    Suite *suite = suite_create(name);
    TCase *tc = tcase_create("all");
    tcase_set_timeout(tc, 60);
    for (size_t i = 0; i < count; i++)
        tcase_add_test(tc, tests[i]);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}

/* For loops of many thousands: ck_assert notes each passing of it. */
#define REQUIRE(condition)                                \
    do {                                                  \
        if (!(condition)) ck_abort_msg("%s", #condition); \
    } while (0)

#define UNIT_MAIN(name, ...)                                        \
    int main(void)                                                  \
    {                                                               \
        const TTest *const tests[] = {__VA_ARGS__};                 \
        return unit_run(name, tests, sizeof tests / sizeof *tests); \
    }

#endif
