#include "snapshot_support.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

void setup_templates(void)
{
    setup_runtime();
    host_dir_make();
    ck_assert_int_eq(setenv("XDG_DATA_HOME", at("share"), 1), 0);
    begin_from("host");
}

void teardown_templates(void)
{
    teardown();
    host_dir_remove();
}

void snapshot(const char *name)
{
    barchan_error err = {0};
    int rc = barchan_sandbox_snapshot(sbx, name, NULL, NULL, &err);
    ck_assert_msg(rc == 0, "snapshot %s: %d, %s", name, rc, err.message);
}

void snapshot_fails(const char *name, int code, const char *words)
{
    barchan_error err = {0};
    int rc = barchan_sandbox_snapshot(sbx, name, NULL, NULL, &err);
    ck_assert_msg(rc == code, "snapshot %s: %d, %s", name, rc, err.message);
    ck_assert_msg(strstr(err.message, words) != NULL, "%s", err.message);
}

static int is_gone(void *ud)
{
    barchan_usage usage = {.struct_size = sizeof usage};
    (void)ud;
    return barchan_sandbox_usage(sbx, &usage, NULL) <= 0;
}

void end_sandbox(void)
{
    if (sbx == NULL) return;
    barchan_sandbox_terminate(sbx);
    ck_assert(wait_until(is_gone, NULL, 10000));
    barchan_sandbox_destroy(sbx);
    sbx = NULL;
}

void begin_with(const barchan_profile *profile)
{
    barchan_error err = {0};
    end_sandbox();
    int rc = barchan_sandbox_create(&sbx, rt, profile, &err);
    ck_assert_msg(rc == 0, "create: %d, %s", rc, err.message);
}

void begin_from(const char *template_name)
{
    begin_with(PROFILE(.template_name = template_name));
}

barchan_template info_of(const char *name)
{
    barchan_template info;
    barchan_error err = {0};
    int rc = barchan_template_info(rt, name, &info, &err);
    ck_assert_msg(rc == 0, "info %s: %d, %s", name, rc, err.message);
    return info;
}

int count_folders(void)
{
    int count = 0;
    DIR *dir = opendir(at("share/barchan/templates"));
    const struct dirent *entry;
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        if (strncmp(entry->d_name, ".t-", 3) == 0) count++;
    }
    if (dir != NULL) closedir(dir);
    return count;
}

int is_removed(const char *name)
{
    barchan_template info;
    return barchan_template_info(rt, name, &info, NULL) == BARCHAN_ENOTFOUND;
}
