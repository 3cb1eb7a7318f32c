/* Out of memory at every allocation: each call fails cleanly, or succeeds where the memory was not
 * needed, and nothing leaks (run under AddressSanitizer to see that). */
#include <stdio.h>
#include <stdlib.h>
#include "base/buf.h"
#include "egress/policy.h"
#include "egress/registries.h"
#include "egress/response_stream.h"
#include "egress/secret.h"
#include "failing_alloc.h"
#include "suite.h"

typedef int (*work_fn)(barchan_error *err);

/* Runs the work with its first, second, … allocation failing until it needs no more of them. */
static long torture(work_fn work)
{
    for (long at = 0;; at++) {
        barchan_error err = {.code = 0};
        failures = 0;
        countdown = at;
        int rc = work(&err);
        countdown = -1;
        if (failures == 0) {
            ck_assert_msg(rc == 0, "%d %s", rc, err.message);
            return at;
        }
        ck_assert_msg(rc == BARCHAN_ENOMEM, "allocation %ld: %d %s", at, rc, err.message);
    }
}

static int make_policy(barchan_error *err)
{
    static const char *const allow[] = {"example.com", "*.example.org:8443", "10.0.0.0/8", NULL};
    static const char *const deny[] = {"x.example", NULL};
    bc_policy *policy = NULL;
    int rc = bc_policy_create(&policy, BC_POLICY_LIST, allow, deny, err);
    REQUIRE((rc == 0) == (policy != NULL)); /* ck_assert allocates */
    if (rc < 0) return rc;
    bc_buf out;
    bc_buf_init(&out, 4096);
    rc = bc_policy_list(policy, &out);
    bc_buf_clear(&out);
    bc_policy_destroy(policy);
    return rc;
}

/* On this machine: whatever it has is read. */
static int read_machine(barchan_error *err)
{
    const bc_registries_options options = {.home = "/nonexistent"};
    bc_buf out;
    bc_buf_init(&out, 1 << 20);
    int rc = bc_registries_read(&options, &out, err);
    if (rc < 0) REQUIRE(err->code == BARCHAN_ENOMEM);
    bc_buf_clear(&out);
    return rc;
}

START_TEST(a_policy_fails_cleanly)
{
    ck_assert_int_ge(torture(make_policy), 4);
}
END_TEST

START_TEST(reading_registries_fails_cleanly)
{
    ck_assert_int_ge(torture(read_machine), 3);
}
END_TEST

static int use_secret(barchan_error *err)
{
    static const char *const hosts[] = {"a.example", NULL};
    static const char *const words[] = {"/a", NULL};
    static const char answer[] = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                                 "5\r\n01234\r\n0\r\n\r\n";
    const barchan_secret given = {.struct_size = sizeof given,
                                  .name = "A",
                                  .value = "0123456789abcdef",
                                  .value_len = 16,
                                  .hosts = hosts,
                                  .user = "u",
                                  .paths = words};
    bc_secret secret = {.name = NULL};
    bc_response_stream stream = {.why = NULL};
    bc_buf out;
    bc_buf_init(&out, 4096);
    int rc = bc_secret_read(&secret, &given, err);
    const bc_pattern_source source = {"0123456789abcdef", 16, 0, 1};
    bc_patterns *patterns = rc < 0 ? NULL : bc_patterns_create(&source, 1, true);
    if (rc == 0 && patterns == NULL) rc = BARCHAN_ENOMEM;
    if (rc == 0) rc = bc_response_init(&stream, patterns);
    bc_response_expect(&stream, false, false);
    if (rc == 0 && bc_response_feed(&stream, answer, strlen(answer), &out) < 0) rc = BARCHAN_ENOMEM;
    bc_response_clear(&stream);
    bc_patterns_unref(patterns);
    bc_secret_clear(&secret);
    bc_buf_clear(&out);
    return rc;
}

START_TEST(secrets_without_memory)
{
    ck_assert_int_gt(torture(use_secret), 5);
}
END_TEST

UNIT_MAIN("egress_alloc", a_policy_fails_cleanly, reading_registries_fails_cleanly,
          secrets_without_memory)
