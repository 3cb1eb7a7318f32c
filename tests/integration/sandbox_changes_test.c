/* What commands have changed in a copy-on-write mount. */
#include "host_dir.h"
#include "sandbox_support.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define COW BARCHAN_MOUNT_COPY_ON_WRITE

static void setup(void)
{
    setup_runtime();
    host_dir_make();
    folder("data", 0755);
    put("data/a", "alpha\n", 0644);
    put("data/keep", "keep\n", 0644);
    folder("data/sub", 0755);
    put("data/sub/b", "beta\n", 0644);
    put("data/sub/c", "gamma\n", 0644);
    folder("data/sub/deep", 0755);
    put("data/sub/deep/d", "delta\n", 0644);
    ck_assert_int_eq(symlink("a", at("data/link")), 0);
    give(at("data/link"));
    const barchan_mount mounts[] = {{at("data"), "/workspace", COW}};
    shows(mounts, 1);
}

static void end(void)
{
    teardown();
    host_dir_remove();
}

static barchan_file_result changes_of(const char *target)
{
    barchan_file_result result;
    barchan_error err = {0};
    ck_assert_msg(barchan_file_changes(sbx, target, &result, &err) == 0, "%s", err.message);
    return result;
}

/* One line a change: kind, type, path. */
static void changes_are(const char *expected)
{
    static const char kinds[] = "?AMD", types[] = "?fdlpsx";
    char text[4096] = "";
    size_t len = 0;
    barchan_file_result result = changes_of(NULL);
    ck_assert_int_eq(result.truncated, 0);
    for (size_t i = 0; i < result.entry_count; i++) {
        const barchan_file_info *info = &result.entries[i];
        len += (size_t)snprintf(text + len, sizeof text - len, "%c%c %s\n", kinds[info->change],
                                types[info->type], info->path);
    }
    barchan_file_result_clear(&result);
    ck_assert_str_eq(text, expected);
}

START_TEST(nothing)
{
    changes_are("");
    sh_says(
        "cat a link sub/b > /dev/null; : >> a; touch -d @0 sub/b; chmod 600 keep; chmod 644 keep;"
        " chown 1000:1000 sub; touch sub",
        "");
    changes_are("");
    sh_says("echo x > a; echo alpha > a; rm sub/c; echo gamma > sub/c", "");
    changes_are("");
}
END_TEST

START_TEST(each_kind)
{
    sh_says("echo more >> a; echo n > new; mkdir -p made/deep; echo x > made/deep/x; rm sub/b;"
            "ln -sf keep link; ln -s /etc/passwd out; chmod 755 keep; mkfifo pipe",
            "");
    changes_are("Mf a\nMf keep\nMl link\nAd made\nAd made/deep\nAf made/deep/x\nAf new\nAl out\n"
                "Ap pipe\nDf sub/b\n");
    barchan_file_result result = changes_of("/workspace");
    const barchan_file_info *a = &result.entries[0], *out = &result.entries[7];
    ck_assert_uint_eq(a->size, 11);
    ck_assert_uint_eq(a->mode, 0644);
    ck_assert_str_eq(out->link_target, "/etc/passwd");
    ck_assert_uint_eq(result.entries[9].size, 5); /* as it was */
    barchan_file_result_clear(&result);
}
END_TEST

START_TEST(folders)
{
    sh_says("rm -r sub", "");
    changes_are("Dd sub\nDf sub/b\nDf sub/c\nDd sub/deep\nDf sub/deep/d\n");
    sh_says("mkdir sub; echo beta > sub/b; echo new > sub/n", "");
    changes_are("Df sub/c\nDd sub/deep\nDf sub/deep/d\nAf sub/n\n");
    sh_says("chmod 700 sub; mkdir sub/deep", "");
    changes_are("Md sub\nDf sub/c\nDf sub/deep/d\nAf sub/n\n");
    sh_says("rm -r sub; echo file > sub", "");
    changes_are("Mf sub\nDf sub/b\nDf sub/c\nDd sub/deep\nDf sub/deep/d\n");
    sh_says("rm a; mkdir a; echo x > a/x", "");
    changes_are("Md a\nAf a/x\nMf sub\nDf sub/b\nDf sub/c\nDd sub/deep\nDf sub/deep/d\n");
}
END_TEST

START_TEST(moved)
{
    sh_says("mv sub/b sub/deep/d . && mv a sub/b", "");
    changes_are("Df a\nAf b\nAf d\nMf sub/b\nDf sub/deep/d\n");
    sh_says("mv sub other", "");
    changes_are(
        "Df a\nAf b\nAf d\nAd other\nAf other/b\nAf other/c\nAd other/deep\nDd sub\nDf sub/b\n"
        "Df sub/c\nDd sub/deep\nDf sub/deep/d\n");
}
END_TEST

/* The same size and time as before: contents decide. */
START_TEST(a_hidden_change)
{
    sh_says("cp -p a /tmp/was; echo ALPHA > a; touch -r /tmp/was a", "");
    changes_are("Mf a\n");
}
END_TEST

START_TEST(what_cannot_be_seen)
{
    sh_says("mkdir closed; echo x > closed/x; chmod 0 closed", "");
    barchan_file_result result = changes_of(NULL);
    ck_assert_int_eq(result.entry_count, 1);
    ck_assert_int_eq(result.truncated, 1);
    barchan_file_result_clear(&result);
    sh_says("chmod 700 closed; for i in $(seq 200); do mkdir d && cd d; done", "");
    result = changes_of(NULL);
    ck_assert_int_eq(result.truncated, 1);
    ck_assert_int_gt((int)result.entry_count, 100);
    barchan_file_result_clear(&result);
}
END_TEST

START_TEST(targets)
{
    barchan_file_result result;
    barchan_error err = {0};
    ck_assert_int_eq(barchan_file_changes(sbx, "/mnt/x", &result, &err), BARCHAN_EINVAL);
    ck_assert_ptr_nonnull(strstr(err.message, "no copy-on-write mount has '/mnt/x'"));
    const barchan_mount two[] = {{at("data"), "/mnt/a", COW}, {at("data"), "/mnt/b", COW}};
    shows(two, 2);
    ck_assert_int_eq(barchan_file_changes(sbx, NULL, &result, &err), BARCHAN_EINVAL);
    ck_assert_ptr_nonnull(strstr(err.message, "name the target of one"));
    sh_says("echo x > /mnt/b/x; echo y > y", "");
    result = changes_of("/mnt/a");
    ck_assert_uint_eq(result.entry_count, 0);
    result = changes_of("/mnt/b");
    ck_assert_uint_eq(result.entry_count, 1);
    barchan_file_result_clear(&result);
    const barchan_mount read[] = {{at("data"), "/workspace", BARCHAN_MOUNT_READ_ONLY}};
    shows(read, 1);
    ck_assert_int_eq(barchan_file_changes(sbx, NULL, &result, &err), BARCHAN_EINVAL);
    ck_assert_int_eq(barchan_file_changes(sbx, "/workspace", &result, &err), BARCHAN_EINVAL);
}
END_TEST

START_TEST(of_the_storage)
{
    const barchan_mount mounts[] = {{at("data"), "/workspace/data", BARCHAN_MOUNT_READ_ONLY}};
    shows(NULL, 0);
    changes_are("");
    sh_says("mkdir d; echo x > d/x; echo y > y", "");
    changes_are("Ad d\nAf d/x\nAf y\n");
    shows(mounts, 1);
    sh_says("echo y > y", "");
    changes_are("Af y\n");
}
END_TEST

static int done_count;

static void on_changes(barchan_file_result *result, const barchan_error *err, void *ud)
{
    ck_assert_ptr_null(err);
    ck_assert_uint_eq(result->entry_count, 5000);
    ck_assert_ptr_eq(ud, &done_count);
    done_count++;
}

static int is_done(void *ud)
{
    return *(int *)ud > 0;
}

START_TEST(many_and_later)
{
    barchan_error err = {0};
    sh_says(
        "i=0; while [ $i -lt 5000 ]; do : > a-rather-long-name-of-a-file-$i; i=$((i + 1)); done",
        "");
    ck_assert_int_eq(barchan_sandbox_file_start(NULL, sbx, REQUEST(.op = BARCHAN_FILE_CHANGES),
                                                on_changes, &done_count, &err),
                     0);
    ck_assert(wait_until(is_done, &done_count, 20000));
    /* While everything stands still, too. */
    ck_assert_int_eq(barchan_sandbox_pause(sbx, &err), 0);
    barchan_file_result result = changes_of(NULL);
    ck_assert_uint_eq(result.entry_count, 5000);
    barchan_file_result_clear(&result);
}
END_TEST

int main(void)
{
    if (!copies_work()) return 77;
    Suite *suite = suite_create("sandbox_changes");
    const TTest *const tests[] = {
        nothing, each_kind,      folders,        moved, a_hidden_change, what_cannot_be_seen,
        targets, of_the_storage, many_and_later, NULL};
    add_tests(suite, "changes", setup, end, tests);
    return run_suite(suite);
}
