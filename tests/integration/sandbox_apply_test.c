/* Changes of a copy-on-write mount, applied to folders of the host. */
#include "apply_support.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void left(size_t count)
{
    barchan_file_result list;
    ck_assert_int_eq(barchan_file_changes(sbx, NULL, &list, NULL), 0);
    ck_assert_uint_eq(list.entry_count, count);
    barchan_file_result_clear(&list);
}

START_TEST(to_the_source)
{
    sh_says("echo more >> a; rm b; echo new > n; mkdir -p m/deep; echo x > m/deep/x; rm -r sub;"
            "mkdir sub; echo DELTA > sub/d",
            "");
    host_has("data/a", "alpha\n");
    applies("data", NULL, 8);
    ck_assert_uint_eq(result.conflicts + result.skipped, 0);
    ck_assert_uint_eq(result.bytes, 11 + 4 + 2 + 6);
    host_has("data/a", "alpha\nmore\n");
    host_has("data/b", NULL);
    host_has("data/c", "gamma\n");
    host_has("data/n", "new\n");
    host_has("data/m/deep/x", "x\n");
    host_has("data/sub/d", "DELTA\n");
    host_has("data/sub/e", NULL);
    left(0);
    applies("data", NULL, 0);
    /* What this call has written is no conflict the next time. */
    sh_says("echo again >> a; echo again >> n; rm m/deep/x; rmdir m/deep; cat a",
            "alpha\nmore\nagain\n");
    applies("data", NULL, 4);
    host_has("data/a", "alpha\nmore\nagain\n");
    host_has("data/n", "new\nagain\n");
    host_has("data/m/deep", NULL);
    left(0);
    /* But what somebody else writes then is one. */
    put("data/n", "theirs\n", 0644);
    sh_says("echo mine > n", "");
    refuses("data", NULL, BARCHAN_ECONFLICT, "'n': it was changed on the host");
    host_has("data/n", "theirs\n");
}
END_TEST

START_TEST(types)
{
    sh_says("rm -r sub; echo file > sub; rm a; mkdir a; echo in > a/in", "");
    applies("data", NULL, 5);
    host_has("data/sub", "file\n");
    host_has("data/a/in", "in\n");
    left(0);
}
END_TEST

START_TEST(conflicts)
{
    sh_says("echo mine > a; echo mine > new; echo mine > sub/d; rm c; echo fine > fine; rm b", "");
    put("data/a", "theirs\n", 0644);
    put("data/new", "theirs\n", 0644);
    put("data/c", "theirs\n", 0644);
    ck_assert_int_eq(unlink(at("data/sub/d")), 0);
    refuses("data", NULL, BARCHAN_ECONFLICT,
            "'a': it was changed on the host (conflicts: 3); nothing was applied");
    host_has("data/fine", NULL);
    host_has("data/b", "beta\n");
    applies("data", APPLY(.dry_run = 1), 3);
    ck_assert_uint_eq(result.conflicts, 3);
    host_has("data/fine", NULL);
    applies("data", APPLY(.on_conflict = BARCHAN_ON_CONFLICT_SKIP), 3);
    ck_assert_uint_eq(result.conflicts, 3);
    ck_assert_str_eq(result.entries[0].path, "a");
    ck_assert_int_eq(result.entries[0].outcome, BARCHAN_APPLY_CONFLICT);
    host_has("data/a", "theirs\n");
    host_has("data/new", "theirs\n");
    host_has("data/c", "theirs\n");
    host_has("data/fine", "fine\n");
    host_has("data/b", NULL);
    host_has("data/sub/d", "mine\n"); /* removed by somebody: nothing of theirs is lost */
    applies("data", APPLY(.on_conflict = BARCHAN_ON_CONFLICT_OVERWRITE), 3);
    host_has("data/a", "mine\n");
    host_has("data/new", "mine\n");
    host_has("data/c", NULL);
    left(0);
}
END_TEST

START_TEST(more_in_a_folder)
{
    static const barchan_on_conflict ways[] = {BARCHAN_ON_CONFLICT_REFUSE, BARCHAN_ON_CONFLICT_SKIP,
                                               BARCHAN_ON_CONFLICT_OVERWRITE};
    sh_says("rm -r sub; echo x > x", "");
    put("data/sub/theirs", "theirs\n", 0644);
    for (size_t i = 0; i < 3; i++) {
        /* The list is made from what the folder holds now: theirs is in it, and newer. */
        if (i == 0) {
            refuses("data", NULL, BARCHAN_ECONFLICT, "'sub/theirs': it was changed on the host");
        } else {
            ck_assert_int_eq(apply("data", APPLY(.on_conflict = ways[i])), 0);
        }
        if (i < 2) host_has("data/sub/theirs", "theirs\n");
    }
    host_has("data/sub", NULL); /* they were told to overwrite */
}
END_TEST

/* What a dry run says is what happens: a folder in which something stays does not go. */
START_TEST(a_kept_name_keeps_its_folder)
{
    sh_says("rm -r sub; rm c; mkdir c; touch c/x", "");
    put("data/sub/d", "theirs\n", 0644);
    for (int dry = 1; dry >= 0; dry--) {
        ck_assert_int_eq(
            apply("data", APPLY(.dry_run = dry, .on_conflict = BARCHAN_ON_CONFLICT_SKIP)), 0);
        size_t kept = 0;
        for (size_t i = 0; i < result.entry_count; i++) {
            const barchan_apply_entry *entry = &result.entries[i];
            int stays = strcmp(entry->path, "sub") == 0 || strcmp(entry->path, "sub/d") == 0;
            ck_assert_int_eq(entry->outcome == BARCHAN_APPLY_CONFLICT, stays);
            kept += (size_t)stays;
        }
        ck_assert_uint_eq(kept, 2);
        ck_assert_uint_eq(result.conflicts, 2);
    }
    host_has("data/sub/d", "theirs\n");
    host_has("data/sub/e", NULL);
    host_has("data/c/x", "");
}
END_TEST

/* In how many dispatches this process had the file open. */
static int rounds_with_it, no_more_rounds;

static void look_for_it(barchan_runtime *runtime, void *ud)
{
    char link[64], target[256];
    for (int fd = 3; fd < 64; fd++) {
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        ssize_t n = readlink(link, target, sizeof target - 1);
        if (n < 0) continue;
        target[n] = '\0';
        rounds_with_it += strstr(target, "/copy/large") != NULL;
    }
    if (!no_more_rounds) barchan_runtime_post(runtime, look_for_it, ud, NULL);
}

/* A comparison of large files lets the loop go on. */
START_TEST(large_files_are_compared_in_parts)
{
    const int64_t size = 64 << 20;
    put("data/large", "", 0644);
    ck_assert_int_eq(truncate(at("data/large"), size), 0);
    folder("copy", 0755);
    put("copy/large", "", 0644);
    ck_assert_int_eq(truncate(at("copy/large"), size), 0);
    const barchan_mount mounts[] = {{at("data"), "/workspace", COW}};
    shows(mounts, 1);
    sh_says("rm large", "");
    ck_assert_int_eq(barchan_runtime_post(rt, look_for_it, NULL, NULL), 0);
    applies("copy", APPLY(.paths = ARGV("large")), 1);
    host_has("copy/large", NULL);
    no_more_rounds = 1;
    ck_assert_int_gt(rounds_with_it, 15); /* a turn of the loop for each four MiB at least */
}
END_TEST

START_TEST(to_another_folder)
{
    char command[512];
    sh_says("echo mine > a; rm b; echo new > new; echo mine > sub/d", "");
    snprintf(command, sizeof command, "cp -a %s %s", at("data"), at("copy"));
    ck_assert_int_eq(system(command), 0);
    put("copy/sub/d", "theirs\n", 0644);
    refuses("copy", NULL, BARCHAN_ECONFLICT, "'sub/d': it was changed on the host (conflicts: 1)");
    put("copy/sub/d", "delta\n", 0644); /* as in the source: it counts what is in it */
    applies("copy", NULL, 4);
    host_has("copy/a", "mine\n");
    host_has("copy/b", NULL);
    host_has("copy/new", "new\n");
    host_has("data/a", "alpha\n");
    left(4);
    /* To an empty one: what was there before is missing. */
    folder("empty", 0755);
    refuses("empty", NULL, BARCHAN_ECONFLICT, "'a': it was removed on the host");
    applies("empty", APPLY(.on_conflict = BARCHAN_ON_CONFLICT_OVERWRITE), 3);
    host_has("empty/a", "mine\n");
    ck_assert_str_eq(result.entries[3].why, "the folder it belongs to is not on the host");
    /* A source that has changed says nothing of what was there. */
    put("data/c", "theirs\n", 0644);
    put("copy/c", "theirs\n", 0644);
    sh_says("echo mine > c", "");
    refuses("copy", NULL, BARCHAN_ECONFLICT, "'c': it was changed on the host (conflicts: 1)");
}
END_TEST

START_TEST(links_and_odd_files)
{
    sh_says("mkfifo pipe; ln -s /etc/passwd out; ln -s a in; ln -s ../sub/d sub/up; echo x > x;"
            "ln x hard; cp /bin/true suid; chmod 6755 suid",
            "");
    applies("data", NULL, 3);
    ck_assert_uint_eq(result.skipped, 4);
    struct stat st;
    ck_assert_int_eq(stat(at("data/suid"), &st), 0);
    ck_assert_int_eq(st.st_mode & 07777, 0755);
    ck_assert_int_eq(lstat(at("data/in"), &st), -1);
    applies("data", APPLY(.links = 1), 3); /* suid, too, whose rights are other than asked for */
    ck_assert_uint_eq(result.skipped, 2);
    host_has("data/in", "alpha\n");
    host_has("data/sub/up", "delta\n");
    ck_assert_int_eq(lstat(at("data/pipe"), &st), -1);
    ck_assert_int_eq(lstat(at("data/out"), &st), -1);
    sh_says("rm in; ln -s b in", "");
    applies("data", APPLY(.links = 1), 2);
    host_has("data/in", "beta\n");
}
END_TEST

START_TEST(rights_and_owners)
{
    struct stat st;
    sh_says("echo more >> a; chmod 777 a; echo more >> b; chmod 600 sub/d; echo s > s; chmod 600 s;"
            "mkdir m; chmod 700 m; echo x > m/x",
            "");
    ck_assert_int_eq(link(at("data/b"), at("hard")), 0);
    put("data/b", "beta\n", 0640); /* its ctime is new, and now it is known why */
    applies("data", APPLY(.on_conflict = BARCHAN_ON_CONFLICT_OVERWRITE), 6);
    static const struct {
        const char *name;
        mode_t mode;
    } expected[] = {{"data/a", 0755}, {"data/b", 0640}, {"data/sub/d", 0644},
                    {"data/s", 0600}, {"data/m", 0700}, {"data/m/x", 0644}};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        ck_assert_int_eq(stat(at(expected[i].name), &st), 0);
        ck_assert_msg((st.st_mode & 07777) == expected[i].mode, "%s: %o", expected[i].name,
                      st.st_mode);
        ck_assert_int_eq(st.st_uid, is_root() ? OWNER : geteuid());
    }
    host_has("hard", "beta\n"); /* the other name keeps the old bytes */
    host_has("data/b", "beta\nmore\n");
}
END_TEST

START_TEST(a_part)
{
    sh_says(
        "echo mine > a; echo mine > sub/d; mkdir -p m/deep/er; echo x > m/deep/er/x; echo y > m/y",
        "");
    applies("data", APPLY(.paths = ARGV("sub", "m/deep/er/x")), 5);
    host_has("data/a", "alpha\n");
    host_has("data/sub/d", "mine\n");
    host_has("data/m/deep/er/x", "x\n");
    host_has("data/m/y", NULL);
    left(2);
    applies("data", APPLY(.paths = ARGV("none", "su")), 0);
    refuses("data", APPLY(.paths = ARGV("/a")), BARCHAN_EINVAL, "must be relative");
}
END_TEST

START_TEST(of_the_storage)
{
    shows(NULL, 0);
    folder("dest", 0755);
    sh_says("mkdir d; echo x > d/x; echo y > y", "");
    applies("dest", NULL, 3);
    host_has("dest/d/x", "x\n");
    sh_says("echo z > y", "");
    applies("dest", NULL, 3);
    host_has("dest/y", "z\n");
}
END_TEST

START_TEST(what_is_refused)
{
    sh_says("echo 0123456789 > a; truncate -s 1T huge", "");
    refuses("none", NULL, BARCHAN_ENOTFOUND, "none': open the folder");
    refuses("data/a", NULL, BARCHAN_ENOTDIR, "open the folder");
    refuses("data", APPLY(.target = "/mnt/x"), BARCHAN_EINVAL, "no copy-on-write mount");
    refuses("data", APPLY(.on_conflict = (barchan_on_conflict)7), BARCHAN_EINVAL, "on_conflict 7");
    refuses("data", APPLY(.max_bytes = 5), BARCHAN_ELIMIT, "max_bytes");
    host_has("data/a", "alpha\n");
    refuses("data", APPLY(.max_bytes = 1 << 20), BARCHAN_ELIMIT, "(1 of 2 are applied)");
    host_has("data/huge", NULL);
    sh_says("mkdir closed; chmod 0 closed", "");
    refuses("data", NULL, BARCHAN_ELIMIT, "not complete");
    ck_assert_int_eq(barchan_sandbox_apply_changes(sbx, NULL, NULL, NULL, &err), BARCHAN_EINVAL);
    barchan_sandbox_terminate(sbx);
    refuses("data", NULL, BARCHAN_ECLOSED, "");
}
END_TEST

int main(void)
{
    if (!copies_work()) return 77;
    Suite *suite = suite_create("sandbox_apply");
    const TTest *const tests[] = {to_the_source,
                                  types,
                                  conflicts,
                                  more_in_a_folder,
                                  a_kept_name_keeps_its_folder,
                                  large_files_are_compared_in_parts,
                                  to_another_folder,
                                  links_and_odd_files,
                                  rights_and_owners,
                                  a_part,
                                  of_the_storage,
                                  what_is_refused,
                                  NULL};
    add_tests(suite, "apply", begin_apply, end_apply, tests);
    return run_suite(suite);
}
