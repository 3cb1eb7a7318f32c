/* Folders and files of the host in a sandbox: what is shown, what is not, and what is refused. */
#include "host_dir.h"
#include "sandbox_support.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static void setup(void)
{
    setup_runtime();
    host_dir_make();
    folder("data", 0700);
    put("data/private", "secret\n", 0600);
    put("outside", "outside\n", 0644);
}

static void end(void)
{
    teardown();
    host_dir_remove();
}

START_TEST(read_only)
{
    const barchan_mount mounts[] = {{at("data"), "/mnt/deep/data", BARCHAN_MOUNT_READ_ONLY},
                                    {at("outside"), "/workspace/one.txt", BARCHAN_MOUNT_READ_ONLY}};
    shows(mounts, 2);
    sh_says("cat /mnt/deep/data/private one.txt; ls /mnt /workspace", /* its owner's, and so ours */
            "secret\noutside\n/mnt:\ndeep\n\n/workspace:\none.txt\n");
    sh_says("for f in /mnt/deep/data/new /mnt/deep/data/private one.txt; do"
            " (echo x >> $f) 2>/dev/null && echo wrote $f; done; rm -f /mnt/deep/data/private "
            "2>/dev/null;"
            " chmod 777 /mnt/deep/data 2>/dev/null; cat /mnt/deep/data/private",
            "secret\n");
    sh_says(
        "mount -o remount,rw /mnt/deep/data 2>/dev/null; umount one.txt 2>/dev/null; cat one.txt",
        "outside\n");
    sh_says("echo y > beside; cat beside; ls /mnt/deep/data/..", "y\ndata\n");
    ck_assert_ptr_nonnull(strstr(status_of(sbx).layers, "\"mounts\":\"2 of the host read-only, 0"));
    ck_assert_int_eq(access(at("data/new"), F_OK), -1);
}
END_TEST

START_TEST(read_write)
{
    const barchan_mount mounts[] = {{at("data"), "/workspace", BARCHAN_MOUNT_READ_WRITE}};
    struct stat st;
    shows(mounts, 1);
    sh_says(
        "echo more >> private; mkdir sub; echo x > sub/new; mv sub/new sub/moved; stat -c %u sub",
        "1000\n");
    barchan_bytes bytes;
    ck_assert_int_eq(barchan_file_read(sbx, "private", &bytes, NULL),
                     0); /* and by file operations */
    ck_assert_str_eq(bytes.data, "secret\nmore\n");
    barchan_bytes_clear(&bytes);
    ck_assert_int_eq(barchan_file_write(sbx, "written", "w", 1, NULL), 0);
    ck_assert_int_eq(stat(at("data/sub/moved"), &st), 0);
    ck_assert_int_eq(st.st_uid, is_root() ? OWNER : geteuid());
    ck_assert_int_eq(access(at("data/written"), F_OK), 0);
    sh_says("ln -s ../outside link; cat link 2>/dev/null || echo none", "none\n");
    sh_says("ls .. | grep -c outside || true", "0\n");
    /* A second sandbox has it too, and the first's end leaves it there. */
    barchan_sandbox_destroy(sbx);
    sbx = NULL;
    shows(mounts, 1);
    sh_says("cat sub/moved", "x\n");
}
END_TEST

START_TEST(others_files)
{
    const barchan_mount mounts[] = {{at("data"), "/workspace", BARCHAN_MOUNT_READ_WRITE}};
    if (!is_root() && skip("only root has others' files to show")) return;
    ck_assert_int_eq(mkdir(at("data/roots"), 0700), 0); /* of neither owner */
    shows(mounts, 1);
    sh_says("stat -c %U roots; (echo x > roots/f) 2>/dev/null || echo no", "nobody\nno\n");
    barchan_error err = {0};
    ck_assert_int_eq(chown(at("data"), 0, 0), 0);
    ck_assert_int_eq(create_with(mounts, 1, &err), BARCHAN_EPERMISSION);
    ck_assert_ptr_nonnull(strstr(err.message, "it belongs to root"));
    const barchan_mount readable[] = {{at("data"), "/mnt/d", BARCHAN_MOUNT_READ_ONLY}};
    shows(readable, 1);
}
END_TEST

/* A mount over /workspace hides the storage there: what is used is still the sandbox's own. */
START_TEST(usage_below_a_mount)
{
    const barchan_mount mounts[] = {{at("data"), "/workspace", BARCHAN_MOUNT_READ_WRITE}};
    barchan_usage u = {.struct_size = sizeof u};
    barchan_error err = {0};
    barchan_sandbox_destroy(sbx);
    ck_assert_msg(barchan_sandbox_create(&sbx, rt,
                                         PROFILE(.mounts = mounts, .mount_count = 1,
                                                 .limits = {.memory_bytes = 64 << 20}),
                                         &err) == 0,
                  "%s", err.message);
    sh_says("head -c 8000000 /dev/zero > /tmp/own; head -c 99 /dev/zero > on_the_host;"
            " sleep 0.3; echo fine",
            "fine\n");
    ck_assert_int_eq(barchan_sandbox_usage(sbx, &u, NULL), 0);
    ck_assert_uint_ge(u.disk_bytes, 8000000);
    ck_assert_uint_lt(u.disk_bytes, 9000000);
}
END_TEST

static void refused(const char *source, const char *target, int code, const char *words)
{
    const barchan_mount mounts[] = {{source, target, BARCHAN_MOUNT_READ_ONLY}};
    barchan_error err = {0};
    int rc = create_with(mounts, 1, &err);
    ck_assert_msg(rc == code, "%s at %s: %d, %s", source, target, rc, err.message);
    ck_assert_msg(strstr(err.message, words) != NULL, "%s", err.message);
}

START_TEST(what_is_refused)
{
    static const char *const own[] = {"/",    "/proc",     "/proc/self", "/sys",
                                      "/dev", "/dev/null", "/usr/.."};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
        refused(own[i], "/mnt/x", BARCHAN_EINVAL, own[i]);
    }
    refused(is_root() ? "/run" : "/tmp", "/mnt/x", BARCHAN_EINVAL, "Barchan's own state");
    ck_assert_int_eq(symlink("/proc", at("link")), 0);
    refused(at("link"), "/mnt/x", BARCHAN_EINVAL, "the kernel's");
    refused(at("missing"), "/mnt/x", BARCHAN_ENOTFOUND, "missing");
    refused("data", "/mnt/x", BARCHAN_EINVAL, "absolute");
    ck_assert_int_eq(mkfifo(at("fifo"), 0600), 0);
    refused(at("fifo"), "/mnt/x", BARCHAN_EINVAL, "only folders and regular files");
    static const char *const targets[] = {
        "/usr/x",  "/mnt",     "/etc/passwd", "/workspace/../etc", "workspace", "/mnt//x", "/",
        "/mnt/x/", "/mnt/./x", "/tmp",        "/home/other",       "/proc/x"};
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
        refused(at("data"), targets[i], BARCHAN_EINVAL, "must be /workspace");
    }
    const barchan_mount nested[] = {{at("data"), "/mnt/a", BARCHAN_MOUNT_READ_ONLY},
                                    {at("data"), "/mnt/a/b", BARCHAN_MOUNT_READ_ONLY}};
    barchan_error err = {0};
    ck_assert_int_eq(create_with(nested, 2, &err), BARCHAN_EINVAL);
    ck_assert_ptr_nonnull(strstr(err.message, "within the other"));
    ck_assert_int_eq(create_with(nested, 17, &err), BARCHAN_EINVAL);
    shows(nested, 1); /* a refusal leaves nothing that the next would meet */
    sh_says("cat /mnt/a/private", "secret\n");
}
END_TEST

/* What the host mounts below a source later is not seen, and can be unmounted; what was there when
 * the sandbox was made is shown. */
START_TEST(mounts_of_the_host)
{
    const barchan_mount mounts[] = {{at("data"), "/workspace", BARCHAN_MOUNT_READ_WRITE}};
    if (!is_root() && skip("only root mounts")) return;
    /* In a group of mounts, as most of a host's are, or nobody would hear of others. */
    ck_assert_int_eq(mount(at("data"), at("data"), NULL, MS_BIND, NULL), 0);
    ck_assert_int_eq(mount(NULL, at("data"), NULL, MS_SHARED, NULL), 0);
    /* Of a file system that can map owners, which tmpfs cannot before Linux 6.3. */
    ck_assert_int_eq(mkdir(at("other"), 0755), 0);
    ck_assert_int_eq(mkdir(at("data/before"), 0755), 0);
    ck_assert_int_eq(mkdir(at("data/after"), 0755), 0);
    give(at("data/after"));
    ck_assert_int_eq(mount(at("other"), at("data/before"), NULL, MS_BIND, NULL), 0);
    ck_assert_int_eq(mkdir(at("data/before/mounted"), 0755), 0);
    shows(mounts, 1);
    int count = count_mounts();
    ck_assert_int_eq(mount("t", at("data/after"), "tmpfs", 0, "mode=0755"), 0);
    ck_assert_int_eq(mkdir(at("data/after/mounted"), 0755), 0);
    sh_says("ls before after; (mkdir after/here && echo made)",
            "after:\n\nbefore:\nmounted\nmade\n");
    ck_assert_int_eq(count_mounts(), count + 1);
    ck_assert_int_eq(umount(at("data/after")), 0);
    ck_assert_int_eq(access(at("data/after/here"), F_OK), 0); /* made below what was mounted */
    ck_assert_int_eq(umount2(at("data/before"), MNT_DETACH), 0);
    sh_says("ls before", "mounted\n");
    ck_assert_int_eq(umount2(at("data"), MNT_DETACH), 0);
}
END_TEST

START_TEST(sockets)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(mkdir(at("data/sub"), 0755), 0);
    snprintf(name.sun_path, sizeof name.sun_path, "%s", at("data/sub/agent.sock"));
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&name, sizeof name), 0);
    give(at("data/sub"));
    refused(at("data"), "/mnt/x", BARCHAN_EINVAL, "agent.sock");
    refused(at("data/sub/agent.sock"), "/mnt/x", BARCHAN_EINVAL, "only folders and regular files");
    close(fd);
    ck_assert_int_eq(unlink(at("data/sub/agent.sock")), 0);
    const barchan_mount mounts[] = {{at("data"), "/mnt/x", BARCHAN_MOUNT_READ_ONLY}};
    shows(mounts, 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sandbox_mounts");
    const TTest *const tests[] = {
        read_only,       read_write,         others_files, usage_below_a_mount,
        what_is_refused, mounts_of_the_host, sockets,      NULL};
    add_tests(suite, "mounts", setup, end, tests);
    return run_suite(suite);
}
