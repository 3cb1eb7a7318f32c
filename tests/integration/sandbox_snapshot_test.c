/* Templates that are made of a sandbox's files, and sandboxes that begin from them. */
#include "snapshot_support.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

START_TEST(files_come_back)
{
    sh_says(
        "echo text > file; mkdir -p deep/er; echo more > deep/er/file; ln -s ../file deep/link;"
        "ln file hard; echo home > ~/home; echo tmp > /tmp/tmp; echo var > /var/tmp/var;"
        "chmod 640 file; chmod 4755 deep/er/file; chmod 500 deep/er;"
        "touch -d '2001-02-03 04:05:06.789' file; touch -hd '2002-02-03 04:05:06' deep/link;"
        "touch -d '2003-02-03 04:05:06' deep; : > empty; echo no > /run/no; echo no > /dev/shm/no",
        "");
    snapshot("base");
    sh_says("cat file", "text\n"); /* it lives on */
    begin_from("base");
    ck_assert_str_eq(status_of(sbx).template_name, "base");
    ck_assert_ptr_nonnull(strstr(status_of(sbx).layers, "4 trees of a snapshot"));
    sh_says("cat file hard deep/er/file deep/link ~/home /tmp/tmp /var/tmp/var; ls /run /dev/shm",
            "text\ntext\nmore\ntext\nhome\ntmp\nvar\n/dev/shm:\n\n/run:\n");
    sh_says("stat -c '%n %a %U %h %.9Y' file; stat -c '%a %U' deep/er deep/er/file empty /tmp;"
            "readlink deep/link; stat -c %Y deep/link deep; [ file -ef hard ] && echo same",
            "file 640 user 2 981173106.789000000\n500 user\n755 user\n644 user\n1777 user\n"
            "../file\n1012709106\n1044245106\nsame\n");
    sh_says(
        "echo new >> file; rm ~/home; chmod 700 deep/er; rm -r deep; mv /tmp/tmp .; ls -A . ~ /tmp",
        ".:\nempty\nfile\nhard\ntmp\n\n/home/user:\n\n/tmp:\n");
    begin_from("base"); /* nobody else has seen it */
    sh_says("cat file ~/home deep/er/file", "text\nhome\nmore\n");
}
END_TEST

START_TEST(info_and_lists)
{
    barchan_template info;
    barchan_error err = {0};
    const barchan_snapshot_options noted = {.struct_size = sizeof noted, .note = "pip install x"};
    sh_says("echo text > file; mkfifo fifo; truncate -s 1M hole", "");
    ck_assert_int_eq(barchan_sandbox_snapshot(sbx, "one", &noted, &info, &err), 0);
    ck_assert_str_eq(info.name, "one");
    ck_assert_str_eq(info.base, "host");
    ck_assert_str_eq(info.note, "pip install x");
    ck_assert_uint_eq(info.entries, 6); /* the four places */
    ck_assert_uint_eq(info.bytes, 5);
    ck_assert_uint_eq(info.left_out, 1);
    ck_assert_int_gt(info.created_ms, 1700000000000);
    barchan_template_clear(&info);
    info = info_of("one");
    ck_assert_str_eq(info.note, "pip install x");
    ck_assert_uint_eq(info.left_out, 1);
    barchan_template_clear(&info);
    snapshot("another");
    barchan_templates all;
    ck_assert_int_eq(barchan_template_list(rt, &all, &err), 0);
    ck_assert_uint_eq(all.count, 2);
    ck_assert_uint_eq(all.removed, 0);
    ck_assert_str_eq(all.list[0].name, "another");
    ck_assert_str_eq(all.list[1].name, "one");
    barchan_templates_clear(&all);
    begin_from("one");
    sh_says("stat -c '%s %b' hole; ls", "1048576 0\nfile\nhole\n");
    ck_assert_int_eq(barchan_template_remove(rt, "another", &err), 0);
    ck_assert_int_eq(barchan_template_remove(rt, "another", &err), BARCHAN_ENOTFOUND);
    ck_assert_msg(strstr(err.message, "unknown template 'another': there are: one;") != NULL, "%s",
                  err.message);
    ck_assert_int_eq(count_folders(), 1);
}
END_TEST

static int is_there(void *ud)
{
    return barchan_file_exists(sbx, ud, NULL) == 1;
}

START_TEST(what_runs_is_named)
{
    barchan_error err = {0};
    barchan_exec *exec;
    struct ended ended = {0};
    ck_assert_int_eq(barchan_sandbox_exec_start(
                         &exec, sbx, OPTIONS(.command = "sleep 100 & sleep 200 & : > ready; wait"),
                         note_end, &ended, &err),
                     0);
    ck_assert(wait_until(is_there, (void *)"ready", 10000));
    ck_assert_int_eq(barchan_sandbox_snapshot(sbx, "busy", NULL, NULL, &err), BARCHAN_EBUSY);
    ck_assert_msg(strncmp(err.message, "snapshot: 3 processes run: ", 27) == 0, "%s", err.message);
    ck_assert_int_eq(err.retryable, 1);
    ck_assert_msg(strstr(err.message, " /bin/sh -c sleep 100") != NULL, "%s", err.message);
    ck_assert(is_removed("busy"));
    ck_assert_int_eq(count_folders(), 0);
    barchan_exec_cancel(exec);
    ck_assert(wait_until(exec_ended, &ended, 10000));
    sh_says("echo yes > file", "");
    snapshot("busy");
    ck_assert_int_eq(count_folders(), 1);
}
END_TEST

struct taken {
    int count, code;
};

static void note_taken(const barchan_template *info, const barchan_error *err, void *ud)
{
    struct taken *taken = ud;
    taken->count++;
    taken->code = err == NULL ? 0 : err->code;
    ck_assert(info != NULL || err != NULL);
}

static int is_taken(void *ud)
{
    return ((struct taken *)ud)->count;
}

START_TEST(nothing_begins_meanwhile)
{
    struct taken taken = {0};
    barchan_snapshot_call *call;
    barchan_error err = {0};
    sh_says("head -c 30000000 /dev/urandom > big", "");
    ck_assert_int_eq(
        barchan_sandbox_snapshot_start(&call, sbx, "big", NULL, note_taken, &taken, &err), 0);
    barchan_exec_result result;
    ck_assert_int_eq(barchan_sandbox_exec(sbx, OPTIONS(.command = "true"), &result, &err),
                     BARCHAN_EBUSY);
    ck_assert_int_eq(barchan_file_write(sbx, "x", "y", 1, &err), BARCHAN_EBUSY);
    ck_assert_int_eq(barchan_file_remove(sbx, "big", 0, &err), BARCHAN_EBUSY);
    ck_assert_int_eq(err.retryable, 1);
    ck_assert_int_eq(barchan_sandbox_snapshot(sbx, "two", NULL, NULL, &err), BARCHAN_EBUSY);
    ck_assert_int_eq(err.retryable, 1);
    ck_assert(wait_until(is_taken, &taken, 20000));
    ck_assert_int_eq(taken.code, 0);
    ck_assert_int_eq(barchan_file_write(sbx, "x", "y", 1, &err), 0);
    taken = (struct taken){0};
    ck_assert_int_eq(
        barchan_sandbox_snapshot_start(&call, sbx, "big2", NULL, note_taken, &taken, &err), 0);
    barchan_snapshot_cancel(call);
    ck_assert(wait_until(is_taken, &taken, 20000));
    ck_assert_int_eq(taken.code, BARCHAN_ECANCELLED);
    ck_assert(is_removed("big2"));
    ck_assert_int_eq(count_folders(), 1);
    sh_says("cat x", "y");
}
END_TEST

START_TEST(names)
{
    static const char *const wrong[] = {"", "host", ".x", "A", "a/b", "..", "-a", "a b"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        snapshot_fails(wrong[i], BARCHAN_EINVAL, "is no name for a template");
    }
    char name[70];
    memset(name, 'a', sizeof name);
    name[65] = '\0';
    snapshot_fails(name, BARCHAN_EINVAL, "is no name");
    name[64] = '\0';
    snapshot(name);
    snapshot("0.x_y-z");
    snapshot_fails("0.x_y-z", BARCHAN_EEXISTS, "already");
    barchan_sandbox *none;
    barchan_error err = {0};
    ck_assert_int_eq(barchan_sandbox_create(&none, rt, PROFILE(.template_name = "nope"), &err),
                     BARCHAN_ENOTFOUND);
    ck_assert_msg(strstr(err.message, "unknown template 'nope': there are: 0.x_y-z, ") != NULL,
                  "%s", err.message);
    ck_assert_ptr_nonnull(strstr(err.message, "barchan template build"));
}
END_TEST

START_TEST(in_use)
{
    barchan_error err = {0};
    const barchan_snapshot_options replace = {.struct_size = sizeof replace, .replace = 1};
    sh_says("echo 1 > file", "");
    snapshot("used");
    barchan_sandbox *user, *source = sbx;
    ck_assert_int_eq(barchan_sandbox_create(&user, rt, PROFILE(.template_name = "used"), &err), 0);
    ck_assert_int_eq(barchan_template_remove(rt, "used", &err), BARCHAN_EBUSY);
    ck_assert_msg(strstr(err.message, "in use by 1 sandbox") != NULL, "%s", err.message);
    ck_assert_int_eq(err.retryable, 1);
    sh_says("echo 2 > file", "");
    ck_assert_int_eq(barchan_sandbox_snapshot(sbx, "used", &replace, NULL, &err), 0);
    ck_assert_int_eq(count_folders(), 2);
    sbx = user;
    sh_says("cat file", "1\n"); /* it keeps what it has */
    end_sandbox();
    ck_assert_int_eq(count_folders(), 1);
    sbx = source;
    begin_from("used");
    sh_says("cat file", "2\n");
    end_sandbox();
    ck_assert_int_eq(barchan_template_remove(rt, "used", &err), 0);
    barchan_templates all;
    ck_assert_int_eq(barchan_template_list(rt, &all, &err), 0);
    ck_assert_uint_eq(all.count, 0);
    barchan_templates_clear(&all);
    ck_assert_int_eq(count_folders(), 0);
}
END_TEST

static int can_be_removed(void *name)
{
    barchan_error err = {0};
    int rc = barchan_template_remove(rt, name, &err);
    ck_assert_msg(rc == 0 || (rc == BARCHAN_EBUSY && err.retryable), "%d, %s", rc, err.message);
    return rc == 0;
}

START_TEST(it_is_let_go_of_when_the_sandbox_is_gone)
{
    snapshot("first");
    snapshot("second");
    begin_from("first");
    barchan_sandbox_terminate(sbx);
    barchan_usage usage = {.struct_size = sizeof usage};
    ck_assert_int_eq(barchan_sandbox_usage(sbx, &usage, NULL), 0); /* waits for that */
    ck_assert_int_eq(barchan_template_remove(rt, "first", NULL), 0);
    begin_from("second");
    barchan_sandbox_destroy(sbx);
    sbx = NULL;
    ck_assert(wait_until(can_be_removed, (void *)"second", 10000)); /* who asks again hears it */
}
END_TEST

/* Each holds all of those before it. */
START_TEST(from_one_another)
{
    sh_says("echo 1 > one; echo 1 > changed; echo 1 > gone", "");
    snapshot("first");
    begin_from("first");
    sh_says("echo 2 > two; echo 2 > changed; rm gone; mkdir dir; echo x > dir/x", "");
    snapshot("second");
    begin_from("second");
    sh_says("echo 3 > three; rm -r dir; mkdir dir; echo y > dir/y", "");
    snapshot("third");
    barchan_error err = {0};
    ck_assert_int_eq(barchan_template_remove(rt, "first", &err), 0);
    begin_from("third");
    ck_assert_int_eq(barchan_template_remove(rt, "second", &err), 0);
    sh_says("cat one two three changed; ls . dir",
            "1\n2\n3\n2\n.:\nchanged\ndir\none\nthree\ntwo\n\ndir:\ny\n");
    sh_says("grep -c ' - overlay ' /proc/self/mountinfo; grep -c 'lowerdir=[^,]*:' "
            "/proc/self/mountinfo; true",
            "4\n0\n");
    barchan_template info = info_of("third");
    ck_assert_str_eq(info.base, "host");
    barchan_template_clear(&info);
}
END_TEST

START_TEST(changes_since)
{
    barchan_file_result list;
    barchan_error err = {0};
    sh_says("echo 1 > kept; echo 1 > changed; echo 1 > gone", "");
    snapshot("before");
    begin_from("before");
    sh_says("echo 2 > changed; rm gone; echo 2 > new", "");
    ck_assert_int_eq(barchan_file_changes(sbx, NULL, &list, &err), 0);
    ck_assert_uint_eq(list.entry_count, 3);
    ck_assert_str_eq(list.entries[0].path, "changed");
    ck_assert_int_eq(list.entries[0].change, BARCHAN_FILE_MODIFIED);
    ck_assert_int_eq(list.entries[1].change, BARCHAN_FILE_DELETED);
    ck_assert_int_eq(list.entries[2].change, BARCHAN_FILE_ADDED);
    barchan_file_result_clear(&list);
}
END_TEST

START_TEST(with_mounts)
{
    folder("data", 0755);
    put("data/a", "alpha\n", 0644);
    const barchan_mount mounts[] = {{at("data"), "/workspace/data", BARCHAN_MOUNT_COPY_ON_WRITE},
                                    {at("data"), "/tmp/x/y", BARCHAN_MOUNT_READ_ONLY}};
    const barchan_mount over[] = {{at("data"), "/workspace", BARCHAN_MOUNT_COPY_ON_WRITE}};
    begin_with(PROFILE(.mounts = mounts, .mount_count = 2));
    sh_says("echo own > own; echo b > data/b; ls data", "a\nb\n");
    snapshot("mounted");
    begin_with(PROFILE(.template_name = "mounted", .mounts = mounts, .mount_count = 2));
    sh_says("cat own; ls data /tmp/x/y", "own\n/tmp/x/y:\na\n\ndata:\na\n");
    begin_from("mounted"); /* what was mounted is not in it */
    sh_says("ls -A . /tmp/x", ".:\nown\n\n/tmp/x:\n");
    begin_with(PROFILE(.template_name = "mounted", .mounts = over, .mount_count = 1));
    sh_says("ls; echo c > c; echo h > ~/h", "a\n");
    snapshot("over");
    begin_from("over");
    sh_says("ls . ~", ".:\n\n/home/user:\nh\n");
}
END_TEST

/* A link in a template, in the place of a mount, leads nowhere. */
START_TEST(links_in_the_way)
{
    barchan_error err = {0};
    folder("data", 0755);
    const barchan_mount mounts[] = {{at("data"), "/workspace/link/x", BARCHAN_MOUNT_READ_ONLY}};
    const barchan_mount at_link[] = {{at("data"), "/workspace/link", BARCHAN_MOUNT_READ_ONLY}};
    sh_says("ln -s / link", "");
    snapshot("linked");
    end_sandbox();
    ck_assert_int_eq(
        barchan_sandbox_create(
            &sbx, rt, PROFILE(.template_name = "linked", .mounts = mounts, .mount_count = 1), &err),
        BARCHAN_EINVAL);
    ck_assert_msg(strstr(err.message, "the template has something else than a folder") != NULL,
                  "%s", err.message);
    ck_assert_int_eq(barchan_sandbox_create(
                         &sbx, rt,
                         PROFILE(.template_name = "linked", .mounts = at_link, .mount_count = 1),
                         &err),
                     BARCHAN_EINVAL);
    begin_from("linked");
    sh_says("readlink link", "/\n");
}
END_TEST

START_TEST(what_cannot_be_read)
{
    sh_says("mkdir d; echo x > d/closed; chmod 0 d/closed", "");
    snapshot_fails("closed", BARCHAN_EPERMISSION, "/workspace/d/closed");
    sh_says("chmod 600 d/closed; chmod 300 d", "");
    snapshot_fails("closed", BARCHAN_EPERMISSION, "/workspace/d");
    sh_says("chmod 700 d; i=0; while [ $i -lt 130 ]; do mkdir e; cd e; i=$((i+1)); done", "");
    snapshot_fails("closed", BARCHAN_ELIMIT, "too deep");
    sh_says("rm -r e; i=0; while [ $i -lt 128 ]; do mkdir e; cd e; i=$((i+1)); done; echo x > x",
            "");
    snapshot("deep");
    ck_assert_int_eq(count_folders(), 1);
    begin_from("deep");
    sh_says("find . -name x -exec cat {} +", "x\n");
}
END_TEST

START_TEST(limits_hold)
{
    sh_says(
        "head -c 3000000 /dev/zero > big; i=0; while [ $i -lt 200 ]; do : > f$i; i=$((i+1)); done",
        "");
    snapshot("full");
    const barchan_profile *small =
        PROFILE(.template_name = "full", .limits = {.disk_bytes = 1 << 20, .files = 60});
    begin_with(small);
    sh_says("ls | wc -l; head -c 2000000 /dev/zero > more 2>/dev/null || echo full; rm more;"
            "(echo x >> big) 2>/dev/null || echo full; echo small > small; cat small",
            "201\nfull\nfull\nsmall\n");
    sh_says(
        "for i in $(seq 70); do (: > n$i) 2>/dev/null || { echo stopped; break; }; done; rm -f n*",
        "stopped\n");
    snapshot("again"); /* what it began with counts on top of its limits */
    ck_assert_int_eq(count_folders(), 2);
}
END_TEST

START_TEST(every_byte_in_a_name)
{
    sh_says("python3 - <<'EOF'\n"
            "import os\n"
            "for i in range(1, 256):\n"
            "    if i in (46, 47): continue\n"
            "    open(bytes([i]), 'wb').write(bytes([i]))\n"
            "    os.symlink(bytes([i]), b'l' + bytes([i]))\n"
            "open(b'n' * 255, 'w').close()\n"
            "EOF\n",
            "");
    snapshot("names");
    begin_from("names");
    sh_says("python3 - <<'EOF'\n"
            "import os\n"
            "for i in range(1, 256):\n"
            "    if i in (46, 47): continue\n"
            "    assert open(b'l' + bytes([i]), 'rb').read() == bytes([i]), i\n"
            "print(len(os.listdir(b'.')))\n"
            "EOF\n",
            "507\n");
}
END_TEST

START_TEST(ten_thousand_files)
{
    sh_says("mkdir d; cd d; for i in $(seq 100); do mkdir $i; done;"
            "seq 10000 | while read n; do echo $n > $((n % 100 + 1))/$n; done",
            "");
    int64_t begin = monotonic_ms();
    snapshot("many");
    int64_t taken = monotonic_ms();
    begin_from("many");
    int64_t ready = monotonic_ms();
    printf("snapshot of 10,000 files: %d ms; begun from in %d ms\n", (int)(taken - begin),
           (int)(ready - taken));
    sh_says("find d -type f | wc -l; cat d/1/10000 d/43/42", "10000\n10000\n42\n");
    barchan_template info = info_of("many");
    ck_assert_uint_eq(info.entries, 4 + 1 + 100 + 10000);
    barchan_template_clear(&info);
}
END_TEST

/* Each of two that build one name has its own folder; the first gets the name. */
START_TEST(two_of_one_name)
{
    struct taken taken[2] = {{0}, {0}};
    barchan_sandbox *other;
    barchan_error err = {0};
    ck_assert_int_eq(barchan_sandbox_create(&other, rt, NULL, &err), 0);
    sh_says("echo 1 > file", "");
    ck_assert_int_eq(
        barchan_sandbox_snapshot_start(NULL, sbx, "same", NULL, note_taken, &taken[0], &err), 0);
    ck_assert_int_eq(
        barchan_sandbox_snapshot_start(NULL, other, "same", NULL, note_taken, &taken[1], &err), 0);
    ck_assert(wait_until(is_taken, &taken[0], 20000) && wait_until(is_taken, &taken[1], 20000));
    int failed = taken[1].code != 0;
    ck_assert_int_eq(taken[failed].code, BARCHAN_EEXISTS);
    ck_assert_int_eq(taken[!failed].code, 0);
    ck_assert_int_eq(count_folders(), 1);
    barchan_sandbox_destroy(other);
}
END_TEST

int main(void)
{
    if (!copies_work()) return 77;
    Suite *suite = suite_create("sandbox_snapshot");
    const TTest *const tests[] = {files_come_back,
                                  info_and_lists,
                                  what_runs_is_named,
                                  nothing_begins_meanwhile,
                                  names,
                                  in_use,
                                  it_is_let_go_of_when_the_sandbox_is_gone,
                                  from_one_another,
                                  changes_since,
                                  with_mounts,
                                  links_in_the_way,
                                  what_cannot_be_read,
                                  limits_hold,
                                  every_byte_in_a_name,
                                  ten_thousand_files,
                                  two_of_one_name,
                                  NULL};
    add_tests(suite, "snapshot", setup_templates, teardown_templates, tests);
    return run_suite(suite);
}
