#include "apply_support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

barchan_apply_result result;
barchan_error err;

void begin_apply(void)
{
    setup_runtime();
    host_dir_make();
    folder("data", 0755);
    put("data/a", "alpha\n", 0644);
    put("data/b", "beta\n", 0640);
    put("data/c", "gamma\n", 0644);
    folder("data/sub", 0755);
    put("data/sub/d", "delta\n", 0644);
    put("data/sub/e", "epsilon\n", 0644);
    folder("outside", 0777);
    const barchan_mount mounts[] = {{at("data"), "/workspace", COW}};
    shows(mounts, 1);
}

void nothing_temporary(void)
{
    char command[256];
    snprintf(command, sizeof command, "! find %s -name '.barchan-*' | grep .", at("."));
    ck_assert_int_eq(system(command), 0);
}

void end_apply(void)
{
    barchan_apply_result_clear(&result);
    nothing_temporary();
    teardown();
    host_dir_remove();
}

int apply(const char *dest, const barchan_apply_options *options)
{
    barchan_apply_result_clear(&result);
    err = (barchan_error){0};
    return barchan_sandbox_apply_changes(sbx, at(dest), options, &result, &err);
}

void applies(const char *dest, const barchan_apply_options *options, size_t done)
{
    int rc = apply(dest, options);
    ck_assert_msg(rc == 0, "%s", err.message);
    ck_assert_uint_eq(result.applied, done);
}

void refuses(const char *dest, const barchan_apply_options *options, int code, const char *words)
{
    int rc = apply(dest, options);
    ck_assert_msg(rc == code && strstr(err.message, words) != NULL, "%d: %s", rc, err.message);
}
