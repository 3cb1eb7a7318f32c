/* Deaths of the launcher, and what many lives leave behind: nothing. */
#include "sandbox_support.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- the launcher ---- */

static int only_launcher(void *ud)
{
    (void)ud;
    return count_descendants((int)getpid()) == 1;
}

START_TEST(a_dead_launcher)
{
    int launcher = first_child(), process_1 = child_of(launcher);
    ck_assert_int_gt(process_1, 0);
    ck_assert_int_eq(kill(launcher, SIGKILL), 0);
    /* Process 1 ends by itself, before the library hears of it and closes the channel. */
    int64_t deadline = monotonic_ms() + 20000;
    while (waitpid(process_1, NULL, WNOHANG) != process_1) {
        ck_assert_int_lt(monotonic_ms(), deadline);
        usleep(5000);
    }
    ck_assert(wait_until(has_ended, sbx, 20000));
    ck_assert_int_eq(status_of(sbx).end_reason, BARCHAN_END_CRASHED);
    barchan_sandbox_destroy(sbx);
    /* The orphaned guest is ours to reap here; elsewhere init does it. */
    while (waitpid(-1, NULL, 0) > 0) {}
    ck_assert_int_eq(barchan_sandbox_create(&sbx, rt, NULL, NULL), 0); /* a new one is started */
    sh_says("echo again", "again\n");
}
END_TEST

START_TEST(a_dead_launcher_and_ended_sandboxes)
{
    barchan_sandbox *ended = sbx;
    barchan_sandbox_terminate(ended);
    ck_assert(wait_until(only_launcher, NULL, 20000)); /* its end was reported … */
    ck_assert_int_eq(barchan_sandbox_create(&sbx, rt, NULL, NULL), 0); /* … before this */
    ck_assert_int_eq(kill(first_child(), SIGKILL), 0);
    ck_assert(wait_until(has_ended, sbx, 20000));
    ck_assert_int_eq(status_of(ended).end_reason, BARCHAN_END_TERMINATED);
    ck_assert_int_eq(status_of(sbx).end_reason, BARCHAN_END_CRASHED);
    barchan_sandbox_destroy(ended);
    barchan_sandbox_destroy(sbx);
    while (waitpid(-1, NULL, 0) > 0) {}
    ck_assert_int_eq(barchan_sandbox_create(&sbx, rt, NULL, NULL), 0);
}
END_TEST

/* Somebody keeps the process namespace by its file, so it stays when its processes have gone; no
 * process can be made in it any more. */
START_TEST(a_namespace_that_is_held)
{
    char path[64];
    struct stat st;
    snprintf(path, sizeof path, "/proc/%d/ns/pid", child_of(first_child()));
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 && skip("the namespaces of a sandbox are its own user's")) return;
    sh_says("(setsid sleep 100 > /dev/null 2>&1 &) ; echo left", "left\n");
    barchan_sandbox_terminate(sbx);
    ck_assert(wait_until(only_launcher, NULL, 20000));
    ck_assert_int_eq(status_of(sbx).end_reason, BARCHAN_END_TERMINATED);
    ck_assert_int_eq(fstat(fd, &st), 0);
    pid_t pid = fork();
    if (pid == 0) {
        if (setns(fd, CLONE_NEWPID) < 0) _exit(errno == ENOMEM ? 2 : 3);
        pid_t inside = fork();
        if (inside == 0) _exit(0);
        _exit(inside < 0 && errno == ENOMEM ? 1 : 4);
    }
    int status;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(WEXITSTATUS(status), 1);
    close(fd);
}
END_TEST

/* ---- census ---- */

static int count_slots(void)
{
    DIR *dir = opendir("/run/barchan/ids");
    int count = 0;
    if (dir == NULL) return 0;
    while (readdir(dir) != NULL) {
        count++;
    }
    closedir(dir);
    return count;
}

static int count_dir(const char *path)
{
    DIR *dir = opendir(path);
    int count = 0;
    if (dir == NULL) return 0;
    while (readdir(dir) != NULL) {
        count++;
    }
    closedir(dir);
    return count;
}

static int groups_found;
static char groups_prefix[64];

static int note_group(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    (void)at;
    if (type == FTW_D && strstr(path, groups_prefix) != NULL) groups_found++;
    return 0;
}

/* The groups of one launcher and of its sandboxes, in any hierarchy, and its entry in the registry.
 */
static int groups_of(int launcher)
{
    char registry[64];
    groups_found = 0;
    snprintf(groups_prefix, sizeof groups_prefix, "barchan-%d-", launcher);
    nftw("/sys/fs/cgroup", note_group, 16, FTW_PHYS);
    snprintf(registry, sizeof registry, is_root() ? "/run/barchan/groups" : "/run/user/%d",
             (int)geteuid());
    DIR *dir = opendir(registry);
    struct dirent *entry;
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        if (strncmp(entry->d_name, groups_prefix, strlen(groups_prefix)) == 0) groups_found++;
    }
    if (dir != NULL) closedir(dir);
    return groups_found;
}

static int no_groups_of(void *ud)
{
    return groups_of(*(int *)ud) == 0;
}

struct groups_left {
    int launcher, count;
};

static int as_many_groups(void *ud)
{
    const struct groups_left *left = ud;
    return groups_of(left->launcher) <= left->count;
}

START_TEST(two_hundred_cycles)
{
    barchan_sandbox_destroy(sbx);
    ck_assert(wait_until(only_launcher, NULL, 20000));
    int fds = count_fds(), mounts = count_mounts(), slots = count_slots(), tmp = count_dir("/tmp");
    int launcher = first_child(), launcher_fds;
    struct groups_left left = {launcher, groups_of(launcher)};
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/fd", launcher);
    launcher_fds = count_dir(path);
    for (int i = 0; i < 200; i++) {
        barchan_error err = {0};
        ck_assert_msg(barchan_sandbox_create(&sbx, rt, NULL, &err) == 0, "%s", err.message);
        sh_says("echo x > f; cat f; sleep 100 &", "x\n");
        if (i % 2 == 0) barchan_sandbox_terminate(sbx);
        barchan_sandbox_destroy(sbx);
    }
    ck_assert(wait_until(only_launcher, NULL, 20000));
    ck_assert_int_eq(first_child(), launcher);
    ck_assert_int_eq(count_fds(), fds);
    ck_assert_int_eq(count_mounts(), mounts);
    /* It keeps the locks of up to eight id ranges, and may be about to prepare a network; all else
     * it closes soon after a death. */
    int kept = 1 + (is_root() ? 8 : 0);
    int64_t deadline = monotonic_ms() + 20000;
    while (count_dir(path) > launcher_fds + kept && monotonic_ms() < deadline) {
        barchan_runtime_pump(rt, 10, NULL);
    }
    ck_assert_int_le(count_dir(path), launcher_fds + kept);
    /* Others on the machine may take and give back slots and files meanwhile. */
    ck_assert_int_le(count_slots(), slots + 8);
    ck_assert_int_le(count_dir("/tmp"), tmp + 8);
    ck_assert(wait_until(as_many_groups, &left, 20000));
}
END_TEST

/* ---- crashes and control groups ---- */

static const barchan_limits some_limits = {.memory_bytes = 64 << 20, .pids = 50, .cpu_ms = 100000};

static void make_limited(void)
{
    barchan_error err = {0};
    ck_assert_msg(barchan_sandbox_create(&sbx, rt, PROFILE(.limits = some_limits), &err) == 0, "%s",
                  err.message);
    barchan_exec_result r = run(OPTIONS(.command = "setsid sleep 1000 &", .detach = 1));
    barchan_exec_result_clear(&r);
}

START_TEST(groups_go_with_their_sandboxes)
{
    int launcher = first_child();
    barchan_sandbox_destroy(sbx);
    make_limited();
    int with_sandbox = groups_of(launcher);
    ck_assert_int_eq(has_groups(), with_sandbox > 0);
    barchan_sandbox_destroy(sbx);
    barchan_runtime_destroy(rt);
    ck_assert_int_eq(groups_of(launcher), 0);
    ck_assert_int_eq(barchan_runtime_create(&rt, NULL, NULL), 0);
}
END_TEST

START_TEST(a_dead_launchers_groups)
{
    int launcher = first_child();
    barchan_sandbox_destroy(sbx);
    make_limited();
    ck_assert_int_eq(has_groups(), groups_of(launcher) > 0);
    ck_assert_int_eq(kill(launcher, SIGKILL), 0);
    ck_assert(wait_until(has_ended, sbx, 20000));
    barchan_sandbox_destroy(sbx);
    while (waitpid(-1, NULL, 0) > 0) {}
    ck_assert_int_eq(barchan_sandbox_create(&sbx, rt, NULL, NULL), 0);
    ck_assert(wait_until(no_groups_of, &launcher, 20000));
    sh_says("echo alive", "alive\n");
}
END_TEST

/* A host of its own: tells its launcher, then dies, with or without it. That there were groups is
 * looked at before: afterwards any launcher of the machine may clean up. */
static int dying_host(int with_launcher)
{
    int fds[2], launcher = 0;
    ck_assert_int_eq(pipe(fds), 0);
    pid_t pid = fork();
    if (pid == 0) {
        barchan_runtime_create(&rt, NULL, NULL);
        make_limited();
        launcher = first_child();
        if (has_groups() != (groups_of(launcher) > 0)) _exit(1);
        if (write(fds[1], &launcher, sizeof launcher) != sizeof launcher) _exit(1);
        if (with_launcher) kill(launcher, SIGKILL);
        kill(getpid(), SIGKILL);
    }
    close(fds[1]);
    ck_assert_int_eq(read(fds[0], &launcher, sizeof launcher), sizeof launcher);
    close(fds[0]);
    return launcher;
}

static int nobody_left(void *ud)
{
    (void)ud;
    while (waitpid(-1, NULL, WNOHANG) > 0) {}
    return count_children() == 0;
}

START_TEST(the_lock_of_a_dead_range)
{
    if (!is_root() && skip("ordinary users have no ranges of ids")) return;
    static const char lock[] = "/run/barchan/ids/4094";
    int fd = open(lock, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) return; /* somebody holds this one */
    close(fd);
    barchan_sandbox_destroy(sbx);
    barchan_runtime_destroy(rt);
    ck_assert_int_eq(barchan_runtime_create(&rt, NULL, NULL), 0);
    ck_assert_int_eq(barchan_sandbox_create(&sbx, rt, NULL, NULL), 0);
    /* Nobody takes this range but a launcher whose own place it is, and then it is locked. */
    fd = open(lock, O_RDWR | O_CLOEXEC);
    ck_assert(fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0);
    if (fd >= 0) close(fd);
}
END_TEST

START_TEST(a_dead_host)
{
    barchan_runtime_destroy(rt);
    int alone = dying_host(0), both = dying_host(1);
    ck_assert_int_eq(barchan_runtime_create(&rt, NULL, NULL), 0);
    ck_assert(wait_until(nobody_left, NULL, 20000));
    ck_assert(wait_until(no_groups_of, &alone, 20000)); /* its launcher has cleaned up */
    ck_assert_int_eq(barchan_sandbox_create(&sbx, rt, NULL, NULL), 0);
    ck_assert(wait_until(no_groups_of, &both, 20000)); /* the next one has */
}
END_TEST

/* ---- a delegated group: an ordinary user's own ---- */

static void make_delegated(const char *path, uid_t uid)
{
    static const char *const files[] = {"", "/cgroup.procs", "/cgroup.subtree_control"};
    char name[128];
    ck_assert_int_eq(mkdir(path, 0755), 0);
    for (size_t i = 0; i < 3; i++) {
        snprintf(name, sizeof name, "%s%s", path, files[i]);
        ck_assert_int_eq(chown(name, uid, uid), 0);
    }
}

static int run_delegated(const char *group)
{
    char procs[128];
    snprintf(procs, sizeof procs, "%s/cgroup.procs", group);
    FILE *file = fopen(procs, "we");
    if (file == NULL || fputs("0", file) < 0 || fclose(file) != 0) return 10;
    if (setgid(65534) < 0 || setuid(65534) < 0) return 11;
    prctl(PR_SET_DUMPABLE, 1);
    if (barchan_runtime_create(&rt, NULL, NULL) < 0) return 12;
    if (barchan_sandbox_create(&sbx, rt, PROFILE(.limits = {.cpu_ms = 60000}), NULL) < 0) return 13;
    int counted = strstr(status_of(sbx).layers, "processor time by cgroup version 2") != NULL;
    barchan_exec_result r = sh("i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done");
    int64_t used = r.usage.user_us + r.usage.system_us;
    barchan_exec_result_clear(&r);
    barchan_runtime_destroy(rt);
    return !counted ? 14 : used < 10000 ? 15 : 0;
}

START_TEST(a_delegated_group)
{
    static const char *const roots[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};
    char path[64], host[80], controllers[96];
    int status, which = 0;
    if (!has_groups() && skip("only root makes groups, where there are any")) return;
    for (; which < 2; which++) {
        snprintf(controllers, sizeof controllers, "%s/cgroup.controllers", roots[which]);
        if (access(controllers, F_OK) == 0) break;
    }
    ck_assert_int_lt(which, 2);
    snprintf(path, sizeof path, "%s/barchan-test-%d", roots[which], (int)getpid());
    snprintf(host, sizeof host, "%s/host", path);
    make_delegated(path, 65534);
    make_delegated(host, 65534);
    pid_t pid = fork();
    if (pid == 0) _exit(run_delegated(host));
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    ck_assert_int_eq(rmdir(host), 0);
    ck_assert_int_eq(rmdir(path), 0); /* so nothing was left in it */
    /* Nor in the registry of a user who is not logged in. */
    if (access("/run/user/65534", F_OK) == 0) return;
    ck_assert_int_eq(rmdir("/tmp/barchan-65534/groups"), 0);
    rmdir("/tmp/barchan-65534/sandboxes"); /* of detached ones, which other tests make */
    rmdir("/tmp/barchan-65534");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sandbox_death");
    const TTest *const tests[] = {a_dead_launcher,
                                  a_dead_launcher_and_ended_sandboxes,
                                  a_namespace_that_is_held,
                                  two_hundred_cycles,
                                  groups_go_with_their_sandboxes,
                                  a_dead_launchers_groups,
                                  a_dead_host,
                                  the_lock_of_a_dead_range,
                                  a_delegated_group,
                                  NULL};
    add_tests(suite, "death", setup_sandbox, teardown, tests);
    return run_suite(suite);
}
