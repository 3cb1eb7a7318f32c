/*
 * Every step of a sandbox's set-up is refused once, by a seccomp filter of the host's that answers
 * one system call with an error. Then either no sandbox is made, for a reason that names the step,
 * or one that is what it says: with the layers of an undisturbed one it has its posture, too.
 * Whatever happens, nothing stays behind.
 */
#include "sandbox_support.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/prctl.h>
#include <linux/seccomp.h>
#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum who { ANYBODY, ROOT, USER };
#define ANY (-1)
#define PROC_FLAGS (MS_NOSUID | MS_NODEV | MS_NOEXEC)

struct row {
    const char *name;
    long nr;
    int arg; /* refused when this argument is `value`; ANY: always */
    uint32_t value;
    int error;
    const char *step;  /* what the failure must say; NULL: any of what is said at the top */
    enum who who;      /* whose set-up has the step */
    const char *layer; /* missing by best effort; NULL: that fails as well */
};

static const struct row rows[] = {
    /* the host's part */
    {"memfd_create", SYS_memfd_create, ANY, 0, ENOSYS, "create a file in memory", ANYBODY, NULL},
    {"seals", SYS_fcntl, 1, F_ADD_SEALS, EPERM, "seal the guest program", ANYBODY, NULL},
    {"pidfd_open", SYS_pidfd_open, ANY, 0, ENOSYS, "open a pidfd of this process", ANYBODY, NULL},
    {"socketpair", SYS_socketpair, ANY, 0, EMFILE, "create a socket pair", ANYBODY, NULL},
    {"clone", SYS_clone, 0, CLONE_VM | CLONE_VFORK | CLONE_PIDFD | SIGCHLD, EAGAIN,
     "start a process", ANYBODY, NULL},
    {"execveat", SYS_execveat, ANY, 0, EACCES, "start a process", ANYBODY, NULL},
    {"timerfd_create", SYS_timerfd_create, ANY, 0, EMFILE, "create a timer", ANYBODY, NULL},
    {"pipe2", SYS_pipe2, ANY, 0, EMFILE, NULL, ANYBODY, NULL},
    {"eventfd2", SYS_eventfd2, ANY, 0, EMFILE, NULL, ANYBODY, NULL},
    /* the launcher */
    {"ambient", SYS_prctl, 0, PR_CAP_AMBIENT, EINVAL, NULL, ANYBODY, NULL},
    {"setsid", SYS_setsid, ANY, 0, EPERM, NULL, ANYBODY, NULL},
    {"umask", SYS_umask, ANY, 0, EPERM, NULL, ANYBODY, NULL},
    {"flock", SYS_flock, ANY, 0, ENOLCK, "lock a range of ids", ROOT, NULL},
    {"user namespace", SYS_unshare, 0, CLONE_NEWUSER, EPERM, "create a user namespace", USER, NULL},
    {"host's descriptors", SYS_close_range, 2, 0, ENOSYS, "what the host left open", ANYBODY, NULL},
    {"setgroups file", SYS_write, 2, 4, EPERM, "write /proc/self/setgroups", USER, NULL},
    {"mount namespace", SYS_unshare, 0, CLONE_NEWNS, ENOSPC, "create a mount namespace", ANYBODY,
     NULL},
    {"slave", SYS_mount, 3, MS_REC | MS_SLAVE, EPERM, "make the mounts private", ANYBODY, NULL},
    {"private", SYS_mount, 3, MS_REC | MS_PRIVATE, EPERM, "make the mounts private", ANYBODY, NULL},
    {"open_tree", SYS_open_tree, ANY, 0, ENOSYS, "clone the mounts of /proc", ANYBODY, NULL},
    {"move_mount", SYS_move_mount, ANY, 0, EPERM, "attach /proc", ANYBODY, NULL},
    {"mount_setattr", SYS_mount_setattr, ANY, 0, ENOSYS, "read-only", ANYBODY, NULL},
    {"pivot_root", SYS_pivot_root, ANY, 0, EPERM, "change the launcher's root", ANYBODY, NULL},
    {"umount2", SYS_umount2, ANY, 0, EPERM, "leave the host's mounts", ANYBODY, NULL},
    {"network namespace", SYS_unshare, 0, CLONE_NEWNET, ENOSPC, "create a network namespace",
     ANYBODY, NULL},
    {"socket", SYS_socket, 0, AF_INET, EAFNOSUPPORT, "a socket for the loopback", ANYBODY, NULL},
    {"loopback", SYS_ioctl, 1, 0x8914, EPERM, "bring up the loopback interface", ANYBODY, NULL},
    {"setns", SYS_setns, ANY, 0, EPERM, "enter the host's mounts", ANYBODY, NULL},
    {"clone3", SYS_clone3, ANY, 0, ENOSYS, "clone the sandbox's namespaces", ANYBODY, NULL},
    {"mkdirat", SYS_mkdirat, ANY, 0, EACCES, NULL, ANYBODY, NULL},
    {"openat2", SYS_openat2, ANY, 0, ENOSYS, NULL, ANYBODY, NULL},
    /* the sandbox: who it is */
    {"close_range", SYS_close_range, ANY, 0, ENOSYS, "start a process", ANYBODY, NULL},
    {"oom score", SYS_write, 2, 3, EACCES, "write /proc/self/oom_score_adj", ANYBODY, NULL},
    {"id range", SYS_write, 2, 18, EPERM, "write uid_map", ROOT, NULL},
    {"one id", SYS_write, 2, 8, EPERM, NULL, USER, NULL},
    {"go ahead", SYS_write, 2, 1, EPIPE, "start the sandbox", ROOT, NULL},
    {"setresuid", SYS_setresuid, 0, 0, EAGAIN, "take the sandbox's user id", ROOT, NULL},
    {"setresgid", SYS_setresgid, 0, 0, EPERM, "take the sandbox's user id", ROOT, NULL},
    {"setgroups", SYS_setgroups, ANY, 0, EPERM, "take the sandbox's user id", ROOT, NULL},
    {"sethostname", SYS_sethostname, ANY, 0, EPERM, "set the host name", ANYBODY, NULL},
    {"setdomainname", SYS_setdomainname, ANY, 0, EPERM, "set the domain name", ANYBODY, NULL},
    /* its files */
    {"bind", SYS_mount, 3, MS_BIND, EPERM, "bind ", ANYBODY, NULL},
    {"template", SYS_mount, 3, MS_BIND | MS_REC, EPERM, "mount the template", ANYBODY, NULL},
    {"storage", SYS_mount, 3, MS_NOSUID | MS_NODEV, EPERM, "mount", ANYBODY, NULL},
    {"proc", SYS_mount, 3, PROC_FLAGS, EPERM, "mount proc", ANYBODY, "proc"},
    {"nested", SYS_write, 2, 1, EPERM, "write /proc/sys/user/max_user_namespaces", USER,
     "nested_user_namespaces"},
    {"sysctls", SYS_mount, 3, MS_BIND | MS_REMOUNT | MS_RDONLY | PROC_FLAGS, EPERM,
     "make /proc/sys read-only", ANYBODY, NULL},
    {"devpts", SYS_mount, 3, MS_NOSUID | MS_NOEXEC, EPERM, "mount devpts", ANYBODY, "terminals"},
    {"getcwd", SYS_getcwd, ANY, 0, ENOENT, "the working directory is outside", ANYBODY, NULL},
    {"dup3", SYS_dup3, ANY, 0, EBUSY, "start a process", ANYBODY, NULL},
    /* its rights */
    {"limits", SYS_prlimit64, 1, RLIMIT_CORE, EPERM, "set resource limits", ANYBODY, NULL},
    {"securebits", SYS_prctl, 0, PR_SET_SECUREBITS, EPERM, "set the securebits", ANYBODY, NULL},
    {"no_new_privs", SYS_prctl, 0, PR_SET_NO_NEW_PRIVS, EINVAL, "no_new_privs", ANYBODY, NULL},
    {"capset", SYS_capset, ANY, 0, EPERM, "drop capabilities", ANYBODY, NULL},
    {"dumpable", SYS_prctl, 0, PR_SET_DUMPABLE, EINVAL, "make process 1 unreadable", ANYBODY, NULL},
    {"no landlock", SYS_landlock_create_ruleset, ANY, 0, ENOSYS, NULL, ANYBODY, NULL},
    {"landlock rule", SYS_landlock_add_rule, ANY, 0, EPERM, "by Landlock", ANYBODY, "landlock"},
    {"landlock", SYS_landlock_restrict_self, ANY, 0, EPERM, "by Landlock", ANYBODY, "landlock"},
    {"seccomp", SYS_seccomp, 0, SECCOMP_SET_MODE_FILTER, EINVAL, "install the seccomp filter",
     ANYBODY, "seccomp"},
    {"death signal", SYS_prctl, 0, PR_SET_PDEATHSIG, EINVAL, "set the death signal", ANYBODY, NULL},
    {"signalfd4", SYS_signalfd4, ANY, 0, ENOSYS, "watch for signals", ANYBODY, NULL},
    /* its first command, and its end */
    {"command's descriptors", SYS_close_range, 0, 3, ENOSYS, NULL, ANYBODY, NULL},
    {"command's uid", SYS_setresuid, 0, 1000, EAGAIN, NULL, ANYBODY, NULL},
    {"command's gid", SYS_setresgid, 0, 1000, EPERM, NULL, ANYBODY, NULL},
    {"subreaper", SYS_prctl, 0, PR_SET_CHILD_SUBREAPER, EINVAL, NULL, ANYBODY, NULL},
    {"pidfd_send_signal", SYS_pidfd_send_signal, ANY, 0, ENOSYS, NULL, ANYBODY, NULL},
};

/* ---- the posture, by the words of the sandbox and as it is ---- */

static char told[8192], posture[16384]; /* of an undisturbed sandbox */

static const char look[] =
    "grep -E '^(Uid|Gid|Groups|Cap...|NoNewPrivs|Seccomp):' /proc/self/status; hostname; ulimit "
    "-nc;"
    "ls /proc/self/fd | wc -l; cut -d' ' -f5,6 /proc/self/mountinfo; ls / /proc/acpi; pwd;"
    "grep -c : /proc/net/dev; unshare -U true && echo nested; cat /proc/self/uid_map | wc -l;"
    "(echo 1 > /proc/sys/vm/drop_caches) && echo written; cat /proc/sys/user/max_user_namespaces;"
    "cat /proc/1/oom_score_adj";

/* Process 1 of the only sandbox. */
static int process_1(void)
{
    char path[64];
    int pid = 0, launcher = first_child();
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", launcher, launcher);
    FILE *file = fopen(path, "re");
    if (file == NULL || fscanf(file, "%d", &pid) != 1) pid = 0;
    if (file != NULL) fclose(file);
    return pid;
}

/* What process 1 holds open; only root may look. */
static int descriptors(void)
{
    char path[64];
    int count = 0;
    snprintf(path, sizeof path, "/proc/%d/fd", process_1());
    DIR *dir = opendir(path);
    while (dir != NULL && readdir(dir) != NULL) {
        count++;
    }
    if (dir != NULL) closedir(dir);
    return count;
}

/* -1: the command could not be started. */
static int read_posture(char *text, size_t cap)
{
    barchan_exec_result r = {0};
    barchan_error err = {0};
    int fds = is_root() ? descriptors() : 0;
    if (barchan_sandbox_exec(sbx, OPTIONS(.command = look), &r, &err) < 0 ||
        r.reason == BARCHAN_EXEC_SPAWN_FAILED) {
        snprintf(text, cap, "%s%d", err.message, r.spawn_errno);
        barchan_exec_result_clear(&r);
        return -1;
    }
    snprintf(text, cap, "descriptors: %d\n%s\n%s", fds, r.out.data, r.err_out.data);
    barchan_exec_result_clear(&r);
    return 0;
}

/* ---- one row, in a host of its own ---- */

static const barchan_mount shown = {"/usr/share", "/mnt/share", BARCHAN_MOUNT_READ_ONLY};
#define ASKED .limits = {.memory_bytes = 256 << 20, .pids = 100}, .mounts = &shown, .mount_count = 1
static const struct row *current;
static int best_effort;

__attribute__((format(printf, 1, 2))) static _Noreturn void wrong(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    printf("%s%s: ", current->name, best_effort ? ", best effort" : "");
    vprintf(format, args);
    printf("\n");
    fflush(stdout);
    va_end(args);
    _exit(1);
}

static void refuse(const struct row *row)
{
    unsigned argument = (unsigned)offsetof(struct seccomp_data, args) + 8u * (unsigned)row->arg;
    unsigned char skip = row->arg == ANY ? 1 : 3;
    struct sock_filter filter[6];
    unsigned short n = 0;
    filter[n++] =
        (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    filter[n++] =
        (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)row->nr, 0, skip);
    if (row->arg != ANY) {
        filter[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, argument);
        filter[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, row->value, 0, 1);
    }
    filter[n++] =
        (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)row->error);
    filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    const struct sock_fprog program = {.len = n, .filter = filter};
    if (!is_root()) prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0) wrong("no filter");
}

static int applies(const struct row *row)
{
    int landlock = row->layer != NULL && strcmp(row->layer, "landlock") == 0;
    if (landlock && strstr(told, "\"landlock\":\"not in") != NULL) return 0;
    return row->step != NULL;
}

static void check_failure(const struct row *row, const barchan_error *err)
{
    if (err->code >= 0 || err->message[0] == '\0') wrong("no reason is given");
    /* "process 1 died" tells nobody what to do. */
    if (strstr(err->message, "died") != NULL) wrong("no step is named: %s", err->message);
    if (!applies(row)) return;
    if (strstr(err->message, row->step) == NULL) wrong("not by '%s': %s", row->step, err->message);
    if (err->os_error != 0 && err->os_error != row->error) wrong("error %d", err->os_error);
    if (best_effort && row->layer != NULL) wrong("best effort fails: %s", err->message);
}

static void check_sandbox(const struct row *row)
{
    static char now[sizeof posture];
    char missing[96];
    const char *layers = status_of(sbx).layers;
    if (applies(row) && (!best_effort || row->layer == NULL)) wrong("it was made: %s", layers);
    if (!best_effort && strstr(layers, "\"missing") != NULL) wrong("incomplete: %s", layers);
    snprintf(missing, sizeof missing, "\"%s\":\"missing", row->layer == NULL ? "" : row->layer);
    if (applies(row) && strstr(layers, missing) == NULL) wrong("not told: %s", layers);
    int same = strcmp(layers, told) == 0;
    if (read_posture(now, sizeof now) < 0) return; /* nothing ran: that is no weaker */
    size_t i = 0;
    while (now[i] != '\0' && now[i] == posture[i]) {
        i++;
    }
    if (same && now[i] != posture[i]) {
        wrong("another posture, untold: …%.80s… not …%.80s…", now + i, posture + i);
    }
}

static void check_nothing_is_left(int fds, int mounts)
{
    int64_t deadline = monotonic_ms() + 20000;
    while (count_children() > 0 && monotonic_ms() < deadline) {
        while (waitpid(-1, NULL, WNOHANG) > 0) {}
        usleep(2000);
    }
    if (count_children() != 0) wrong("%d children are left", count_children());
    if (count_fds() != fds) wrong("%d descriptors, not %d", count_fds(), fds);
    if (count_mounts() != mounts) wrong("%d mounts, not %d", count_mounts(), mounts);
}

static _Noreturn void be_refused(const struct row *row)
{
    barchan_error err = {0};
    setup_runtime(); /* has libuv open what it keeps */
    barchan_runtime_destroy(rt);
    int fds = count_fds(), mounts = count_mounts();
    refuse(row);
    if (barchan_runtime_create(&rt, NULL, &err) < 0) {
        if (err.message[0] == '\0' || applies(row)) wrong("no runtime: %s", err.message);
        /* libuv loses the epoll descriptor of a loop that it cannot set up. */
        if (strstr(err.message, "create an event loop") != NULL) fds++;
    } else {
        if (barchan_sandbox_create(&sbx, rt, PROFILE(.best_effort = best_effort, ASKED), &err) <
            0) {
            check_failure(row, &err);
        } else {
            check_sandbox(row);
        }
        barchan_runtime_destroy(rt);
    }
    check_nothing_is_left(fds, mounts);
    _exit(0);
}

static int row_fails(const struct row *row)
{
    int status;
    if (row->who != ANYBODY && (row->who == ROOT) != (is_root() != 0)) return 0;
    current = row;
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        alarm(60); /* a row that hangs is a failure as well */
        be_refused(row);
    }
    waitpid(pid, &status, 0);
    if (WIFSIGNALED(status)) printf("%s: signal %d\n", row->name, WTERMSIG(status));
    return status != 0;
}

static void take_baseline(void)
{
    setup_runtime();
    ck_assert_int_eq(barchan_sandbox_create(&sbx, rt, PROFILE(ASKED), NULL), 0);
    snprintf(told, sizeof told, "%s", status_of(sbx).layers);
    ck_assert_int_eq(read_posture(posture, sizeof posture), 0);
    teardown();
}

static void refuse_each(void)
{
    int failed = 0;
    take_baseline();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        failed += row_fails(&rows[i]);
    }
    /* Process 1 closes what is above its own, which are more or fewer by the groups there are. */
    for (uint32_t first = 6; first < 24; first++) {
        const struct row row = {
            "process 1's descriptors", SYS_close_range, 0, first, ENOSYS, NULL, ANYBODY, NULL};
        failed += row_fails(&row);
    }
    ck_assert_msg(failed == 0, "%d rows", failed);
}

START_TEST(a_refused_step_is_named)
{
    best_effort = 0;
    refuse_each();
}
END_TEST

START_TEST(by_best_effort_what_is_missing_is_told)
{
    best_effort = 1;
    refuse_each();
}
END_TEST

/* ---- the end of a lease ---- */

static _Noreturn void be_unpausable(const struct row *row)
{
    struct ended e = {0};
    setup_runtime();
    refuse(row);
    if (barchan_sandbox_create(
            &sbx, rt, PROFILE(.lease_ms = 1000, .on_lease_end = BARCHAN_LEASE_PAUSE), NULL) < 0 ||
        barchan_sandbox_exec_start(NULL, sbx, OPTIONS(.command = "while :; do :; done"), note_end,
                                   &e, NULL) < 0) {
        wrong("no sandbox");
    }
    if (!wait_until(has_ended, sbx, 20000)) wrong("it runs on, its lease over");
    if (status_of(sbx).end_reason != BARCHAN_END_LEASE_EXPIRED) wrong("for another reason");
    barchan_runtime_destroy(rt);
    _exit(0);
}

START_TEST(what_cannot_be_paused_ends_with_its_lease)
{
    const struct row row = {"stop signal", SYS_kill, 1, SIGSTOP, EPERM, NULL, ANYBODY, NULL};
    int status;
    take_baseline();
    if (strstr(told, "\"pause\":\"by the freezer") != NULL) {
        printf("what_cannot_be_paused_ends_with_its_lease: skipped, a freezer needs no signal\n");
        return;
    }
    current = &row;
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) be_unpausable(&row);
    waitpid(pid, &status, 0);
    ck_assert_int_eq(status, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sandbox_setup");
    const TTest *const tests[] = {a_refused_step_is_named, by_best_effort_what_is_missing_is_told,
                                  what_cannot_be_paused_ends_with_its_lease, NULL};
    add_tests(suite, "setup", NULL, NULL, tests);
    return run_suite(suite);
}
