#include <string.h>
#include <barchan/apply.h>
#include <barchan/exec.h>
#include <barchan/files.h>
#include <barchan/model.h>
#include <barchan/network.h>
#include <barchan/sandbox.h>
#include <barchan/secret.h>
#include "base/options.h"
#include "suite.h"

/* What a library and a host of different versions call the same struct. */
struct known {
    size_t struct_size;
    int64_t first, second;
};
struct newer {
    struct known known;
    int64_t third, fourth;
};

static int copy(struct known *to, const void *from)
{
    barchan_error err;
    memset(to, 0x55, sizeof *to);
    return bc_options_copy(to, sizeof *to, from, &err);
}

START_TEST(none_is_all_defaults)
{
    struct known to;
    ck_assert_int_eq(copy(&to, NULL), 0);
    ck_assert(to.first == 0 && to.second == 0);
}
END_TEST

START_TEST(an_older_host_leaves_the_rest_at_its_default)
{
    struct known to, from = {offsetof(struct known, second), 1, 2};
    ck_assert_int_eq(copy(&to, &from), 0);
    ck_assert(to.first == 1 && to.second == 0);
}
END_TEST

START_TEST(a_newer_host_may_ask_for_nothing_new)
{
    struct known to;
    struct newer from = {{sizeof from, 1, 2}, 0, 0};
    ck_assert_int_eq(copy(&to, &from), 0);
    ck_assert(to.first == 1 && to.second == 2);
    from.third = 1;
    ck_assert_int_eq(copy(&to, &from), BARCHAN_EUNSUPPORTED);
}
END_TEST

START_TEST(a_size_that_nobody_set_is_refused)
{
    static const size_t sizes[] = {0, 1, sizeof(size_t) - 1, sizeof(size_t) + 4, 4097, SIZE_MAX};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct known to, from = {sizes[i], 1, 2};
        ck_assert_int_eq(copy(&to, &from), BARCHAN_EINVAL);
        ck_assert(to.first == 0 && to.second == 0);
    }
}
END_TEST

#define ENDS_WITH(type, member) \
    ck_assert_uint_eq(offsetof(type, member) + sizeof(((type *)0)->member), sizeof(type))

START_TEST(no_struct_ends_with_padding)
{
    ENDS_WITH(barchan_runtime_options, guest_path);
    ENDS_WITH(barchan_profile, secret_count);
    ENDS_WITH(barchan_secret, on_guest_authorization);
    ENDS_WITH(barchan_exec_options, backlog_bytes);
    ENDS_WITH(barchan_file_request, cancel);
    ENDS_WITH(barchan_model_options, recorded_extra);
    ENDS_WITH(barchan_complete_options, cancel);
    ENDS_WITH(barchan_apply_options, cancel);
    ENDS_WITH(barchan_network_rules, max_connections);
}
END_TEST

#define IS_INT(type, member) ck_assert(_Generic(((type *)0)->member, int : 1, default : 0))

START_TEST(flags_of_a_command_are_of_one_type)
{
    IS_INT(barchan_exec_options, input_streaming);
    IS_INT(barchan_exec_options, network_off);
    IS_INT(barchan_exec_options, detach);
    IS_INT(barchan_exec_options, streaming);
}
END_TEST

UNIT_MAIN("options", none_is_all_defaults, an_older_host_leaves_the_rest_at_its_default,
          a_newer_host_may_ask_for_nothing_new, a_size_that_nobody_set_is_refused,
          no_struct_ends_with_padding, flags_of_a_command_are_of_one_type)
