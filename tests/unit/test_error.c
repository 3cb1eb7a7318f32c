#include <errno.h>
#include "base/error.h"
#include "suite.h"

START_TEST(every_field_is_filled)
{
    barchan_error err;
    memset(&err, 0x55, sizeof err);
    ck_assert_int_eq(bc_error_set(&err, BARCHAN_EINVAL, "bad %s", "thing"), BARCHAN_EINVAL);
    ck_assert_int_eq(err.code, BARCHAN_EINVAL);
    ck_assert_int_eq(err.os_error, 0);
    ck_assert_int_eq(err.http_status, 0);
    ck_assert_int_eq(err.retryable, 0);
    ck_assert_int_eq(err.retry_after_ms, -1);
    ck_assert_str_eq(err.where, "");
    ck_assert_str_eq(err.provider_code, "");
    ck_assert_str_eq(err.request_id, "");
    ck_assert_str_eq(err.message, "bad thing");
    ck_assert_int_eq(bc_error_set(NULL, BARCHAN_EIO, "x"), BARCHAN_EIO);
    ck_assert_int_eq(bc_error_set_os(NULL, ENOENT, "x"), BARCHAN_ENOTFOUND);
    bc_error_where(NULL, "x");
}
END_TEST

START_TEST(context_goes_in_front_and_where_stays_inner)
{
    barchan_error err;
    bc_error_set_os(&err, EACCES, "mount %s", "overlay");
    ck_assert_int_eq(err.os_error, EACCES);
    ck_assert_int_eq(err.code, BARCHAN_EPERMISSION);
    bc_error_context(&err, "create %s", "sandbox");
    ck_assert_int_eq(err.code, BARCHAN_EPERMISSION);
    ck_assert_str_eq(err.message, "create sandbox: mount overlay: Permission denied");
    bc_error_where(&err, "inner");
    bc_error_where(&err, "outer");
    ck_assert_str_eq(err.where, "inner");
}
END_TEST

static int operation(int fails, barchan_error *err)
{
    BC_OPERATION("outer");
    if (fails == 2) {
        bc_error_set(err, BARCHAN_EIO, "no");
        bc_error_where(err, "inner");
        return BARCHAN_EIO;
    }
    return fails ? bc_error_set(err, BARCHAN_EIO, "no") : 0;
}

START_TEST(an_operation_gives_its_name)
{
    barchan_error err, before;
    memset(&err, 0x55, sizeof err);
    before = err;
    ck_assert_int_eq(operation(0, &err), 0);
    ck_assert_mem_eq(&err, &before, sizeof err); /* success never touches it */
    ck_assert_int_eq(operation(1, &err), BARCHAN_EIO);
    ck_assert_str_eq(err.where, "outer");
    ck_assert_str_eq(err.message, "no");
    ck_assert_int_eq(operation(2, &err), BARCHAN_EIO);
    ck_assert_str_eq(err.where, "inner");
    ck_assert_int_eq(operation(1, NULL), BARCHAN_EIO);
}
END_TEST

START_TEST(what_is_busy_may_be_tried_again)
{
    barchan_error err;
    memset(&err, 0x55, sizeof err);
    ck_assert_int_eq(bc_error_busy(&err, "%d run", 2), BARCHAN_EBUSY);
    ck_assert_int_eq(err.code, BARCHAN_EBUSY);
    ck_assert_int_eq(err.retryable, 1);
    ck_assert_int_eq(err.retry_after_ms, -1);
    ck_assert_str_eq(err.where, "");
    ck_assert_str_eq(err.message, "2 run");
    ck_assert_int_eq(bc_error_busy(NULL, "x"), BARCHAN_EBUSY);
}
END_TEST

START_TEST(long_messages_are_cut_not_overrun)
{
    barchan_error err;
    char text[2000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    bc_error_set(&err, BARCHAN_EIO, "%s", text);
    ck_assert_uint_eq(strlen(err.message), sizeof err.message - 1);
    bc_error_set_os(&err, EIO, "%s", text);
    ck_assert_uint_eq(strlen(err.message), sizeof err.message - 1);
    bc_error_context(&err, "%s", text);
    ck_assert_uint_eq(strlen(err.message), sizeof err.message - 1);
    bc_error_where(&err, text);
    ck_assert_uint_eq(strlen(err.where), sizeof err.where - 1);
}
END_TEST

START_TEST(every_status_has_its_own_name)
{
    for (int code = 0; code >= BARCHAN_ECONFLICT; code--) {
        const char *name = barchan_status_name(code);
        ck_assert_str_ne(name, "unknown");
        for (int other = code + 1; other <= 0; other++) {
            ck_assert_str_ne(name, barchan_status_name(other));
        }
    }
    ck_assert_str_eq(barchan_status_name(BARCHAN_EINVAL), "invalid_argument");
    ck_assert_str_eq(barchan_status_name(BARCHAN_ECONTEXT), "context_window");
    ck_assert_str_eq(barchan_status_name(BARCHAN_ECONFLICT), "conflict");
    ck_assert_str_eq(barchan_status_name(BARCHAN_ECONFLICT - 1), "unknown");
    ck_assert_str_eq(barchan_status_name(1), "unknown");
    ck_assert_str_eq(barchan_status_name(-2147483647 - 1), "unknown");
}
END_TEST

UNIT_MAIN("error", every_field_is_filled, context_goes_in_front_and_where_stays_inner,
          an_operation_gives_its_name, what_is_busy_may_be_tried_again,
          long_messages_are_cut_not_overrun, every_status_has_its_own_name)
