/* Hosts with their own ideas about signals and descriptors, without a right or a whole /proc. */
#include "sandbox_support.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/capability.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- hosts with their own ideas ---- */

static void *reap_everything(void *stop)
{
    while (!__atomic_load_n((int *)stop, __ATOMIC_ACQUIRE)) {
        while (waitpid(-1, NULL, WNOHANG | __WALL) > 0) {}
        usleep(500);
    }
    return NULL;
}

static void works(void)
{
    setup_sandbox();
    sh_says("echo fine", "fine\n");
    barchan_sandbox_destroy(sbx);
}

/* A child that nobody has to wait for is listed for a moment after its death was told. */
static int children_are_gone(void)
{
    for (int tries = 0; tries < 4000 && count_children() > 0; tries++) {
        usleep(5000);
    }
    return count_children() == 0;
}

START_TEST(a_host_that_ignores_sigchld)
{
    signal(SIGCHLD, SIG_IGN);
    works();
    barchan_runtime_destroy(rt);
    ck_assert(children_are_gone());
}
END_TEST

START_TEST(a_host_that_reaps_everything)
{
    int stop = 0;
    pthread_t thread;
    pthread_create(&thread, NULL, reap_everything, &stop);
    works();
    barchan_runtime_destroy(rt);
    __atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
    pthread_join(thread, NULL);
    ck_assert(children_are_gone());
}
END_TEST

START_TEST(a_host_that_blocks_all_signals)
{
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    signal(SIGTERM, SIG_IGN);
    setup_sandbox();
    /* Neither the mask nor ignored signals reach a command. */
    sh_says("grep -E 'SigBlk|SigIgn' /proc/self/status | tr -d '\\t'",
            "SigBlk:0000000000000000\nSigIgn:0000000000000000\n");
    teardown();
}
END_TEST

static void *create(void *ud)
{
    setup_sandbox();
    return ud;
}

/* The launcher dies with the host, not with the thread that started it. */
START_TEST(a_thread_that_ends_before_its_runtime)
{
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, create, NULL), 0);
    pthread_join(thread, NULL);
    sh_says("sleep 0.3; echo alive", "alive\n");
    ck_assert_int_eq(status_of(sbx).state, BARCHAN_SANDBOX_READY);
    teardown();
}
END_TEST

START_TEST(a_host_that_leaks)
{
    /* Descriptors without CLOEXEC, an environment, a umask, a working directory. */
    for (int i = 0; i < 50; i++) {
        ck_assert_int_ge(open("/", O_RDONLY), 0);
    }
    setenv("SECRET", "do-not-pass", 1);
    umask(0);
    ck_assert_int_eq(chdir("/tmp"), 0);
    setup_sandbox();
    sh_says("ls /proc/self/fd | wc -l; env | grep -c SECRET; umask; pwd",
            "4\n0\n0022\n/workspace\n");
    teardown();
}
END_TEST

/* ---- ids of the sandboxes of two processes ---- */

static unsigned host_uid_of_a_command(void)
{
    unsigned inside, outside = 0, count;
    barchan_exec_result r = sh("cat /proc/self/uid_map");
    ck_assert_int_eq(sscanf(r.out.data, "%u %u %u", &inside, &outside, &count), 3);
    barchan_exec_result_clear(&r);
    return outside;
}

START_TEST(no_two_sandboxes_share_ids)
{
    if (!is_root()) {
        printf("no_two_sandboxes_share_ids: skipped, an ordinary user has one id\n");
        return;
    }
    enum { HOSTS = 4, EACH = 5 };
    unsigned *ids = calloc(HOSTS * EACH, sizeof *ids);
    int go[2], back[2];
    ck_assert_int_eq(pipe(go) + pipe(back), 0);
    for (int h = 0; h < HOSTS; h++) {
        if (fork() != 0) continue;
        char byte;
        unsigned mine[EACH];
        setup_runtime();
        for (int i = 0; i < EACH; i++) {
            if (barchan_sandbox_create(&sbx, rt, NULL, NULL) < 0) _exit(1);
            mine[i] = host_uid_of_a_command();
        }
        (void)!write(back[1], mine, sizeof mine);
        (void)!read(go[0], &byte, 1); /* keeps them until all have theirs */
        barchan_runtime_destroy(rt);
        _exit(0);
    }
    for (int h = 0; h < HOSTS; h++) {
        ck_assert_int_eq(read(back[0], ids + h * EACH, EACH * sizeof *ids), EACH * sizeof *ids);
    }
    for (int i = 0; i < HOSTS * EACH; i++) {
        ck_assert_uint_ge(ids[i], 0x70000000u);
        for (int k = 0; k < i; k++) {
            ck_assert_uint_ne(ids[i], ids[k]);
        }
    }
    ck_assert_int_eq(write(go[1], "xxxx", HOSTS), HOSTS);
    while (wait(NULL) > 0) {}
    free(ids);
}
END_TEST

/* ---- the guest program from a file ---- */

static int create_with_guest(const char *path, barchan_error *err)
{
    const barchan_runtime_options options = {.struct_size = sizeof options, .guest_path = path};
    ck_assert_int_eq(barchan_runtime_create(&rt, &options, err), 0);
    int rc = barchan_sandbox_create(&sbx, rt, NULL, err);
    if (rc == 0) sh_says("echo fine", "fine\n");
    barchan_runtime_destroy(rt);
    return rc;
}

START_TEST(an_installed_guest)
{
    barchan_error err = {0};
    char copy[] = "/tmp/barchan-guest-XXXXXX", command[512];
    ck_assert_int_eq(create_with_guest(GUEST_PATH, &err), 0);
    int fd = mkstemp(copy);
    ck_assert_int_ge(fd, 0);
    close(fd);
    snprintf(command, sizeof command, "cat %s > %s; printf x >> %s", GUEST_PATH, copy, copy);
    pid_t pid = fork();
    if (pid == 0) execl("/bin/sh", "sh", "-c", command, NULL);
    waitpid(pid, NULL, 0);
    ck_assert_int_eq(create_with_guest(copy, &err), BARCHAN_EINVAL);
    ck_assert_ptr_nonnull(strstr(err.message, "is not the one of this library"));
    ck_assert_int_eq(create_with_guest("/no/such/guest", &err), BARCHAN_ENOTFOUND);
    unlink(copy);
}
END_TEST

/* Whoever has got hold of it writes once nobody runs it any more (CVE-2019-5736). */
START_TEST(the_program_is_sealed)
{
    char path[64];
    setup_sandbox();
    snprintf(path, sizeof path, "/proc/%d/exe", first_child());
    int held = open(path, O_RDONLY | O_CLOEXEC);
    barchan_runtime_destroy(rt);
    if (held < 0 && skip("the launcher's program is nobody's to open")) return;
    ck_assert(children_are_gone());
    snprintf(path, sizeof path, "/proc/self/fd/%d", held);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, "x", 1), -1);
    ck_assert_int_eq(errno, EPERM);
    ck_assert_int_eq(ftruncate(fd, 0), -1);
    close(fd);
    close(held);
}
END_TEST

/* ---- what is missing ---- */

static void write_text(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, text, strlen(text)), (int)strlen(text));
    close(fd);
}

/* As in a container: parts of /proc are covered. */
static void cover_proc(void)
{
    char map[32];
    unsigned uid = getuid(), gid = getgid();
    if (!is_root()) {
        ck_assert_int_eq(unshare(CLONE_NEWUSER), 0);
        write_text("/proc/self/setgroups", "deny");
        snprintf(map, sizeof map, "%u %u 1", uid, uid);
        write_text("/proc/self/uid_map", map);
        snprintf(map, sizeof map, "%u %u 1", gid, gid);
        write_text("/proc/self/gid_map", map);
    }
    ck_assert_int_eq(unshare(CLONE_NEWNS), 0);
    ck_assert_int_eq(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
    ck_assert_int_eq(mount("none", "/proc/irq", "tmpfs", 0, NULL), 0);
}

START_TEST(a_missing_layer_is_named)
{
    barchan_error err = {0};
    cover_proc();
    setup_runtime();
    ck_assert_int_eq(barchan_sandbox_create(&sbx, rt, NULL, &err), BARCHAN_EPERMISSION);
    ck_assert_msg(strstr(err.message, "create sandbox: mount proc: Operation not permitted") !=
                      NULL,
                  "%s", err.message);
    ck_assert_ptr_nonnull(strstr(err.message, "best effort")); /* the remedy */
    ck_assert_int_eq(err.os_error, 1);
    ck_assert_int_eq(barchan_sandbox_create(&sbx, rt, PROFILE(.best_effort = 1), &err), 0);
    barchan_sandbox_info info = {.struct_size = sizeof info};
    ck_assert_int_eq(barchan_sandbox_status(sbx, &info, NULL), 0);
    ck_assert_msg(strstr(info.layers, "\"proc\":\"missing: mount proc: Operation not permitted") !=
                      NULL,
                  "%s", info.layers);
    sh_says("echo fine; ls /proc", "fine\n");
    /* The tree of a command is found without /proc, too. */
    int64_t began = monotonic_ms();
    barchan_exec_result r =
        sh("sleep 100 & setsid sleep 100 & (sleep 100 & exec sleep 100) & echo done");
    ck_assert_int_lt(monotonic_ms() - began, 20000);
    ck_assert_str_eq(r.out.data, "done\n");
    ck_assert_int_ge(r.left_running, 3);
    barchan_exec_result_clear(&r);
    ck_assert_int_eq(barchan_file_write(sbx, "f", "x", 1, &err), 0);
    teardown();
}
END_TEST

/* Root as in a container: without the right to make namespaces. It must not become a sandbox
 * that runs as real root. */
START_TEST(root_without_rights)
{
    if (!is_root()) {
        printf("root_without_rights: skipped, not root\n");
        return;
    }
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2];
    ck_assert_int_eq(syscall(SYS_capget, &header, data), 0);
    ck_assert_int_eq(prctl(PR_CAPBSET_DROP, CAP_SYS_ADMIN, 0, 0, 0), 0);
    data[0].effective &= ~(1u << CAP_SYS_ADMIN);
    data[0].permitted &= ~(1u << CAP_SYS_ADMIN);
    ck_assert_int_eq(syscall(SYS_capset, &header, data), 0);
    setup_sandbox();
    sh_says("id -u", "1000\n");
    char path[64], line[256];
    snprintf(path, sizeof path, "/proc/%d/status", first_child());
    FILE *file = fopen(path, "re");
    unsigned uid = 0;
    while (fgets(line, sizeof line, file) != NULL) {
        if (sscanf(line, "Uid: %u", &uid) == 1) break;
    }
    fclose(file);
    ck_assert_uint_ge(uid, 0x70000000u); /* the launcher, and so everything below it */
    teardown();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sandbox_host");
    const TTest *const tests[] = {a_host_that_ignores_sigchld,
                                  a_host_that_reaps_everything,
                                  a_host_that_blocks_all_signals,
                                  a_thread_that_ends_before_its_runtime,
                                  a_host_that_leaks,
                                  no_two_sandboxes_share_ids,
                                  an_installed_guest,
                                  the_program_is_sealed,
                                  a_missing_layer_is_named,
                                  root_without_rights,
                                  NULL};
    add_tests(suite, "host", NULL, NULL, tests);
    return run_suite(suite);
}
