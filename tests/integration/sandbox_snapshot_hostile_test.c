/* Who runs although it does not look so, and who changes templates on the disk. */
#include "snapshot_support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static barchan_error err;

/* A command is in the way from the moment that it was asked for. */
START_TEST(a_command_that_has_just_begun)
{
    for (int i = 0; i < 20; i++) {
        struct ended ended = {0};
        barchan_exec *exec;
        ck_assert_int_eq(barchan_sandbox_exec_start(&exec, sbx, OPTIONS(.command = "sleep 100"),
                                                    note_end, &ended, &err),
                         0);
        ck_assert_int_eq(barchan_sandbox_snapshot(sbx, "early", NULL, NULL, &err), BARCHAN_EBUSY);
        barchan_exec_cancel(exec);
        ck_assert(wait_until(exec_ended, &ended, 10000));
    }
    snapshot("early");
}
END_TEST

/* The kernel shows it as a zombie, since its first thread has ended. */
START_TEST(a_process_whose_first_thread_has_ended)
{
    static const char code[] =
        "import ctypes, platform, threading, time\n"
        "threading.Thread(target=time.sleep, args=(100,)).start()\n"
        "ctypes.CDLL(None).syscall({'x86_64': 60, 'aarch64': 93}[platform.machine()], 0)\n";
    struct ended ended = {0};
    barchan_exec *exec;
    ck_assert_int_eq(barchan_sandbox_exec_start(&exec, sbx,
                                                OPTIONS(.argv = ARGV("python3", "-c", code)),
                                                note_end, &ended, &err),
                     0);
    /* As soon as it looks dead, and before. */
    for (int i = 0; i < 100; i++) {
        ck_assert_int_eq(barchan_sandbox_snapshot(sbx, "dead", NULL, NULL, &err), BARCHAN_EBUSY);
        usleep(10000);
    }
    ck_assert_msg(strstr(err.message, "1 process runs") != NULL, "%s", err.message);
    barchan_exec_cancel(exec);
    ck_assert(wait_until(exec_ended, &ended, 10000));
}
END_TEST

/* In the template's folder. */
static void shell(const char *command)
{
    char whole[1024];
    snprintf(whole, sizeof whole, "cd $XDG_DATA_HOME/barchan/templates/victim/ && %s", command);
    ck_assert_int_eq(system(whole), 0);
}

/* What stands in the place of a tree is not followed. */
START_TEST(a_link_in_the_place_of_a_tree)
{
    snapshot("victim");
    folder("secret", 0700);
    char command[512];
    snprintf(command, sizeof command, "mv home away && ln -s %s home", at("secret"));
    shell(command);
    barchan_sandbox *none;
    ck_assert_int_lt(barchan_sandbox_create(&none, rt, PROFILE(.template_name = "victim"), &err),
                     0);
    ck_assert_msg(strstr(err.message, "mount") != NULL, "%s", err.message);
    shell("rm home && mv away home");
    begin_from("victim");
    sh_says("echo fine", "fine\n");
}
END_TEST

/* Commands must not be given the templates of others to write. */
START_TEST(a_writable_mount_of_the_templates)
{
    snapshot("victim");
    const char *home = getenv("XDG_DATA_HOME");
    char inside[512];
    snprintf(inside, sizeof inside, "%s/barchan/templates", home);
    const char *const sources[] = {home, inside};
    for (size_t i = 0; i < 2; i++) {
        const barchan_mount mounts[] = {{sources[i], "/workspace", BARCHAN_MOUNT_READ_WRITE}};
        barchan_sandbox *none;
        ck_assert_int_eq(
            barchan_sandbox_create(&none, rt, PROFILE(.mounts = mounts, .mount_count = 1), &err),
            BARCHAN_EINVAL);
        ck_assert_msg(strstr(err.message, "templates are in it") != NULL, "%s", err.message);
    }
}
END_TEST

/* More than a template holds is a limit, and the sandbox lives on. */
START_TEST(a_file_beyond_all_bounds)
{
    sh_says("truncate -s 17T f || truncate -s 7T f; echo made", "made\n");
    int rc = barchan_sandbox_snapshot(sbx, "huge", NULL, NULL, &err);
    if (rc < 0) ck_assert_int_eq(rc, BARCHAN_ELIMIT);
    sh_says("rm f; echo alive", "alive\n");
    snapshot("huge");
}
END_TEST

/* What stands above a template's files is no change of them, and no command's. */
START_TEST(what_is_mounted_in_a_template)
{
    sh_says("mkdir closed; chmod 700 closed; echo a > file", "");
    snapshot("below");
    put("secret", "theirs\n", 0600);
    folder("shown", 0755);
    const barchan_mount mounts[] = {
        {at("secret"), "/workspace/key", BARCHAN_MOUNT_READ_ONLY},
        {at("shown"), "/workspace/closed/shown", BARCHAN_MOUNT_COPY_ON_WRITE}};
    begin_with(PROFILE(.template_name = "below", .mounts = mounts, .mount_count = 2));
    sh_says("cat key file; echo b > new; echo c > closed/shown/c", "theirs\na\n");
    barchan_file_result list;
    ck_assert_int_eq(barchan_file_changes(sbx, "/workspace", &list, &err), 0);
    ck_assert_uint_eq(list.entry_count, 1);
    ck_assert_str_eq(list.entries[0].path, "new");
    barchan_file_result_clear(&list);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("snapshot_hostile");
    const TTest *const tests[] = {a_command_that_has_just_begun,
                                  a_process_whose_first_thread_has_ended,
                                  a_link_in_the_place_of_a_tree,
                                  a_writable_mount_of_the_templates,
                                  a_file_beyond_all_bounds,
                                  what_is_mounted_in_a_template,
                                  NULL};
    add_tests(suite, "snapshot_hostile", setup_templates, teardown_templates, tests);
    return run_suite(suite);
}
