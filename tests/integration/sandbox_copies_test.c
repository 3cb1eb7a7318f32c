/* Folders of the host copy-on-write: commands write as they like, the host's folder never changes.
 */
#include "host_dir.h"
#include "sandbox_support.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include <unistd.h>

#define COW BARCHAN_MOUNT_COPY_ON_WRITE

static void setup(void)
{
    setup_runtime();
    host_dir_make();
    folder("data", 0755);
    put("data/a", "alpha\n", 0644);
    put("data/private", "secret\n", 0600);
    folder("data/sub", 0755);
    put("data/sub/b", "beta\n", 0644);
    put("data/sub/c", "gamma\n", 0755);
}

static void end(void)
{
    teardown();
    host_dir_remove();
}

/* Everything of the folder that could change: names, rights, sizes, times, contents. */
static void describe(char text[4096])
{
    char command[512];
    snprintf(command, sizeof command,
             "cd %s && find . -printf '%%p %%M %%U %%s %%T@ %%C@ %%n %%l\\n' | sort; "
             "find . -type f -exec cat {} +",
             at("data"));
    FILE *out = popen(command, "r");
    ck_assert_ptr_nonnull(out);
    text[fread(text, 1, 4095, out)] = '\0';
    ck_assert_int_eq(pclose(out), 0);
}

START_TEST(the_host_does_not_change)
{
    const barchan_mount mounts[] = {{at("data"), "/workspace", COW}};
    char before[4096], after[4096];
    describe(before);
    shows(mounts, 1);
    sh_says("cat a private sub/b; stat -c '%u %a' . private sub/c",
            "alpha\nsecret\nbeta\n1000 755\n1000 600\n1000 755\n");
    sh_says("echo more >> a; cat a; rm private; ls; echo new > new; mkdir deep; echo x > deep/x;"
            " ln -s /etc/passwd link; ln a hard; chmod 4777 sub/b; cat sub/b; touch -d @0 sub/c",
            "alpha\nmore\na\nsub\nbeta\n");
    sh_says("rm -r sub && mkdir sub && ls sub && echo y > sub/b && cat sub/b", "y\n");
    sh_says("mv sub gone && ls gone && rm -r gone && ls", "b\na\ndeep\nhard\nlink\nnew\n");
    barchan_bytes bytes; /* and by file operations */
    ck_assert_int_eq(barchan_file_write(sbx, "a", "written", 7, NULL), 0);
    ck_assert_int_eq(barchan_file_read(sbx, "a", &bytes, NULL), 0);
    ck_assert_str_eq(bytes.data, "written");
    barchan_bytes_clear(&bytes);
    describe(after);
    ck_assert_str_eq(before, after);
    /* Another sandbox sees nothing of it. */
    shows(mounts, 1);
    sh_says("ls; cat a", "a\nprivate\nsub\nalpha\n");
}
END_TEST

START_TEST(two_of_one_folder)
{
    const barchan_mount mounts[] = {{at("data"), "/mnt/one", COW},
                                    {at("data"), "/workspace/two", COW},
                                    {at("data"), "/mnt/read", BARCHAN_MOUNT_READ_ONLY}};
    shows(mounts, 3);
    sh_says("echo 1 > /mnt/one/a; echo 2 > two/a; cat /mnt/one/a two/a /mnt/read/a",
            "1\n2\nalpha\n");
    ck_assert_ptr_nonnull(
        strstr(status_of(sbx).layers, "1 of the host read-only, 0 writable, 2 c"));
    ck_assert_ptr_nonnull(strstr(status_of(sbx).layers, "\"copy_on_write\""));
}
END_TEST

START_TEST(renamed_folders)
{
    const barchan_mount mounts[] = {{at("data"), "/workspace", COW}};
    shows(mounts, 1);
    sh_says("mv sub moved && cat moved/b && ls", "beta\na\nmoved\nprivate\n");
    sh_says("mv a b && mkdir a && mv b a/ && cat a/b && mv private sub && cat sub",
            "alpha\nsecret\n");
}
END_TEST

START_TEST(limits)
{
    const barchan_mount mounts[] = {{at("data"), "/workspace", COW}};
    barchan_error err = {0};
    ck_assert_int_eq(barchan_sandbox_create(&sbx, rt,
                                            PROFILE(.mounts = mounts, .mount_count = 1,
                                                    .limits = {.disk_bytes = 4 << 20, .files = 50}),
                                            &err),
                     0);
    sh_says("head -c 6000000 /dev/zero > big 2>/dev/null || echo full; rm -f big; echo ok",
            "full\nok\n");
    sh_says(
        "for i in $(seq 60); do (: > f$i) 2>/dev/null || { echo stopped; break; }; done; rm -f f*",
        "stopped\n");
    sh_says(
        "for i in $(seq 49); do : > f$i || echo stopped at $i; done; rm -f f*; echo x > a; cat a",
        "x\n");
}
END_TEST

START_TEST(others_files)
{
    const barchan_mount mounts[] = {{at("data"), "/workspace", COW}};
    if (!is_root() && skip("only root has others' files to show")) return;
    put("data/roots", "root's\n", 0666);
    folder("data/place", 0777);
    ck_assert_int_eq(chown(at("data/roots"), 0, 0), 0);
    ck_assert_int_eq(chown(at("data/place"), 0, 0), 0);
    shows(mounts, 1);
    sh_says("cat roots; (echo x >> roots) 2>/dev/null || echo no; (: > place/x) 2>/dev/null || "
            "echo no; cat roots",
            "root's\nno\nno\nroot's\n");
    ck_assert_ptr_nonnull(strstr(status_of(sbx).layers, "2 names of other owners"));
    /* What is wholly root's can be shown: nothing is written as root. */
    ck_assert_int_eq(chown(at("data"), 0, 0), 0);
    shows(mounts, 1);
    sh_says("echo x > roots; rm -r place; cat roots; (echo x >> a) 2>/dev/null || echo no",
            "x\nno\n");
    host_has("data/roots", "root's\n");
}
END_TEST

START_TEST(a_folder_of_another_user)
{
    const barchan_mount mounts[] = {{"/usr/share/misc", "/mnt/misc", COW}};
    if (is_root() && skip("all of it is root's own")) return;
    if (access("/usr/share/misc", F_OK) < 0 && skip("no /usr/share/misc")) return;
    shows(mounts, 1);
    ck_assert_ptr_nonnull(
        strstr(status_of(sbx).layers, " names of other owners cannot be changed"));
    ck_assert_ptr_null(strstr(status_of(sbx).layers, "; 0 names"));
    sh_says("cd /mnt/misc; f=$(ls | head -n 1); (echo x >> $f) 2>/dev/null || echo no", "no\n");
}
END_TEST

static size_t host_attributes(const char *name, char names[1024])
{
    ssize_t n = listxattr(at(name), names, 1024);
    ck_assert_int_ge(n, 0);
    return (size_t)n;
}

static void host_attributes_are(const char *name, const char *before, size_t before_len)
{
    char names[1024];
    ck_assert_uint_eq(host_attributes(name, names), before_len);
    ck_assert(memcmp(names, before, before_len) == 0);
}

/* G016: what steers an overlay is not followed where the folder has it, and what commands set does
 * nothing, least of all to the folder. */
START_TEST(attributes)
{
    static const struct {
        const char *path, *name, *value;
    } steering[] = {{"data/sub", "user.overlay.redirect", "/etc"},
                    {"data/sub", "user.overlay.opaque", "y"},
                    {"data/private", "user.overlay.redirect", "/etc/passwd"},
                    {"data/private", "user.overlay.metacopy", ""}};
    const barchan_mount mounts[] = {{at("data"), "/workspace", COW}};
    const char *steer = "import os\n"
                        "os.mkdir('d')\n"
                        "for name in ('redirect', 'opaque', 'metacopy', 'whiteout', 'origin'):\n"
                        "  for space in ('user', 'trusted'):\n"
                        "    for path in ('d', 'sub', 'a'):\n"
                        "      try: os.setxattr(path, space + '.overlay.' + name, b'/etc')\n"
                        "      except OSError as e: pass\n"
                        "print(sorted(os.listdir('sub')), open('a').read())\n";
    for (size_t i = 0; i < sizeof steering / sizeof *steering; i++) {
        const char *value = steering[i].value;
        if (setxattr(at(steering[i].path), steering[i].name, value, strlen(value), 0) == 0)
            continue;
        ck_assert_int_eq(errno, ENOTSUP);
        if (skip("this file system has no user attributes")) return;
    }
    char of_sub[1024], of_a[1024];
    size_t of_sub_len = host_attributes("data/sub", of_sub),
           of_a_len = host_attributes("data/a", of_a);
    shows(mounts, 1);
    if (barchan_file_exists(sbx, "/usr/bin/python3", NULL) != 1 && skip("no python3")) return;
    barchan_exec_result r = run(OPTIONS(.argv = ARGV("/usr/bin/python3", "-c", steer)));
    ck_assert_msg(r.exit_code == 0, "%s", r.err_out.data);
    ck_assert_str_eq(r.out.data, "['b', 'c'] alpha\n\n");
    barchan_exec_result_clear(&r);
    host_attributes_are("data/sub", of_sub, of_sub_len);
    host_attributes_are("data/a", of_a, of_a_len);
    /* What says that its contents are elsewhere is refused by the kernel, not looked for. */
    sh_says("ls sub; cat private 2>/dev/null || echo refused", "b\nc\nrefused\n");
    sh_says("rm -r sub; mkdir sub; ls sub; rm a; ls; mknod a c 0 0 2>/dev/null || echo no device",
            "d\nsub\nno device\n");
    host_has("data/private", "secret\n");
    host_has("data/a", "alpha\n");
}
END_TEST

static void refused(const char *source, int code, const char *words)
{
    const barchan_mount mounts[] = {{source, "/mnt/x", COW}};
    barchan_error err = {0};
    int rc = create_with(mounts, 1, &err);
    ck_assert_msg(rc == code, "%s: %d, %s", source, rc, err.message);
    ck_assert_msg(strstr(err.message, words) != NULL, "%s", err.message);
}

START_TEST(what_is_refused)
{
    refused(at("data/a"), BARCHAN_EINVAL, "copy-on-write is for folders");
    refused("/proc", BARCHAN_EINVAL, "the kernel's");
    refused(at("none"), BARCHAN_ENOTFOUND, "none");
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    snprintf(name.sun_path, sizeof name.sun_path, "%s", at("data/agent.sock"));
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&name, sizeof name), 0);
    refused(at("data"), BARCHAN_EINVAL, "agent.sock");
    close(fd);
    ck_assert_int_eq(unlink(at("data/agent.sock")), 0);
    const barchan_mount unknown[] = {{at("data"), "/mnt/x", (barchan_mount_mode)3}};
    barchan_error err = {0};
    ck_assert_int_eq(create_with(unknown, 1, &err), BARCHAN_EINVAL);
    ck_assert_ptr_nonnull(strstr(err.message, "unknown mode 3"));
    const barchan_mount mounts[] = {{at("data"), "/mnt/x", COW}};
    shows(mounts, 1);
}
END_TEST

/* What is mounted below the folder would be missing in it: said, not hidden. */
START_TEST(a_mount_below)
{
    if (!is_root() && skip("only root mounts")) return;
    if (mount("t", at("data/sub"), "tmpfs", 0, NULL) < 0) {
        ck_assert_int_eq(errno, EPERM);
        if (skip("this root may not mount")) return;
    }
    refused(at("data"), BARCHAN_EINVAL, "another file system is mounted in it, at 'sub'");
    ck_assert_int_eq(umount2(at("data/sub"), MNT_DETACH), 0);
}
END_TEST

int main(void)
{
    if (!copies_work()) return 77;
    Suite *suite = suite_create("sandbox_copies");
    const TTest *const tests[] = {
        the_host_does_not_change, two_of_one_folder, renamed_folders, limits,        others_files,
        a_folder_of_another_user, attributes,        what_is_refused, a_mount_below, NULL};
    add_tests(suite, "copies", setup, end, tests);
    return run_suite(suite);
}
