/*
 * Runs the hostile program inside a sandbox and outside of one. A denial counts only when the
 * same action works outside (its oracle); the others are listed as having none on this machine.
 */
#include "sandbox_support.h"
#include "upload.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef PROBE_PATH
#error "PROBE_PATH is the probe program"
#endif

enum { PARAMETERS = 8 };
static char parameters[PARAMETERS][256];
static char canary_path[64];
static int listeners[2];
static pid_t canary_process;

/* ---- what must not be reached ---- */

static void make_canaries(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET};
    socklen_t len = sizeof at;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    listeners[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    ck_assert_int_eq(bind(listeners[0], (struct sockaddr *)&at, len), 0);
    ck_assert_int_eq(listen(listeners[0], 10), 0);
    getsockname(listeners[0], (struct sockaddr *)&at, &len);

    struct sockaddr_un named = {.sun_family = AF_UNIX};
    char name[64];
    int n = snprintf(name, sizeof name, "barchan-canary-%d", (int)getpid());
    memcpy(named.sun_path + 1, name, (size_t)n);
    listeners[1] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
    ck_assert_int_eq(bind(listeners[1], (struct sockaddr *)&named, len), 0);
    ck_assert_int_eq(listen(listeners[1], 10), 0);

    strcpy(canary_path, "/tmp/barchan-canary-XXXXXX");
    int fd = mkstemp(canary_path);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, "canary", 6), 6);
    close(fd);
    canary_process = fork();
    if (canary_process == 0) {
        for (;;) {
            pause();
        }
    }
    snprintf(parameters[0], 256, "file=%s", canary_path);
    snprintf(parameters[1], 256, "home=%s", is_root() ? "/root" : "/var/log");
    snprintf(parameters[2], 256, "port=%d", ntohs(at.sin_port));
    snprintf(parameters[3], 256, "abstract=%s", name);
    snprintf(parameters[4], 256, "pid=%d", (int)canary_process);
    struct stat st;
    ck_assert_int_eq(stat(canary_path, &st), 0);
    snprintf(parameters[5], 256, "dev=%llu", (unsigned long long)st.st_dev);
    snprintf(parameters[6], 256, "ino=%llu", (unsigned long long)st.st_ino);
}

static void drop_canaries(void)
{
    unlink(canary_path);
    kill(canary_process, SIGKILL);
    waitpid(canary_process, NULL, 0);
    close(listeners[0]);
    close(listeners[1]);
}

static int connections(int listener)
{
    int count = 0, fd;
    while ((fd = accept(listener, NULL, NULL)) >= 0) {
        close(fd);
        count++;
    }
    return count;
}

/* ---- running the probe ---- */

static void set_arguments(const char **argv, const char *program, const char *how)
{
    argv[0] = program;
    argv[1] = how;
    for (int i = 0; i < PARAMETERS; i++) {
        argv[2 + i] = parameters[i];
    }
    argv[2 + PARAMETERS] = NULL;
}

static barchan_exec_result probe_inside(void)
{
    const char *argv[3 + PARAMETERS];
    strcpy(parameters[7], "init=1");
    set_arguments(argv, "./probe", "run");
    return run(OPTIONS(.argv = argv, .timeout_ms = 120000));
}

static char *probe_outside(void)
{
    int fds[2];
    strcpy(parameters[7], "init=");
    ck_assert_int_eq(pipe(fds), 0);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(fds[1], 1);
        int null_fd = open("/dev/null", O_RDWR);
        dup2(null_fd, 0);
        const char *argv[3 + PARAMETERS];
        set_arguments(argv, "probe", "oracle");
        execv(PROBE_PATH, (char **)(uintptr_t)argv);
        _exit(127);
    }
    close(fds[1]);
    char *text = calloc(1, 65536);
    size_t len = 0;
    ssize_t n;
    while ((n = read(fds[0], text + len, 65535 - len)) > 0) {
        len += (size_t)n;
    }
    close(fds[0]);
    waitpid(pid, NULL, 0);
    /* What the probes left behind is adopted here; only the launcher and the canary stay. */
    for (int i = 0; i < 4000 && count_children() > 2; i++) {
        while (waitpid(-1, NULL, WNOHANG) > 0) {}
        usleep(5000);
    }
    return text;
}

/* The answer in the line of this row. */
static int find_answer(const char *text, const char *row, char *answer, size_t cap)
{
    size_t len = strlen(row);
    for (const char *line = text; line != NULL && *line != '\0';) {
        if (strncmp(line, row, len) == 0 && line[len] == ' ') {
            snprintf(answer, cap, "%.*s", (int)strcspn(line + len + 1, "\n"), line + len + 1);
            return 1;
        }
        line = strchr(line, '\n');
        if (line != NULL) line++;
    }
    return 0;
}

/* It had no time to find out. */
static int is_undecided(const char *answer)
{
    return strcmp(answer, "ETIME") == 0 || strcmp(answer, "signal 14") == 0;
}

START_TEST(every_probe)
{
    make_canaries();
    upload_probe();
    barchan_exec_result inside = probe_inside();
    ck_assert_msg(inside.exit_code == 0, "%s", inside.err_out.data);
    ck_assert_int_eq(connections(listeners[0]) + connections(listeners[1]), 0);
    ck_assert_int_eq(kill(canary_process, 0), 0);
    char *outside = probe_outside();
    ck_assert_int_eq(connections(listeners[0]) + connections(listeners[1]), 2);
    int denied = 0, works = 0, no_oracle = 0, broken = 0;
    char row[64], in[64], out[64];
    for (const char *line = inside.out.data; *line != '\0';) {
        snprintf(row, sizeof row, "%.*s", (int)strcspn(line, " "), line);
        ck_assert(find_answer(inside.out.data, row, in, sizeof in));
        ck_assert(find_answer(outside, row, out, sizeof out));
        int must_work = strncmp(row, "fine_", 5) == 0;
        if (must_work && strcmp(in, "ok") == 0) {
            works++;
        } else if (must_work || strcmp(in, "ok") == 0 || is_undecided(in)) {
            printf("BROKEN    %-22s inside: %s, outside: %s\n", row, in, out);
            broken++;
        } else if (strcmp(out, "ok") == 0) {
            denied++;
        } else {
            printf("no oracle %-22s inside: %s, outside: %s\n", row, in, out);
            no_oracle++;
        }
        line += strcspn(line, "\n");
        if (*line == '\n') line++;
    }
    printf("%d denied with an oracle, %d without one on this machine, %d that must work work\n",
           denied, no_oracle, works);
    fflush(stdout);
    ck_assert_int_eq(broken, 0);
    ck_assert_int_ge(works, 8);
    ck_assert_int_ge(denied, 40);
    free(outside);
    barchan_exec_result_clear(&inside);
    drop_canaries();
}
END_TEST

START_TEST(hidden_places)
{
    sh_says(
        "for d in /home /root /opt /srv /mnt /media /boot /sys /var; do ls -A $d 2>/dev/null; done",
        "user\ntmp\n");
    sh_says("ls /dev | tr '\\n' ' '",
            "fd full null ptmx pts random shm stderr stdin stdout tty urandom zero ");
    sh_says("ls /etc/ssh /etc/shadow /etc/ssl/private /etc/sudoers 2>/dev/null | wc -l", "0\n");
    sh_says("cat /etc/passwd | cut -d: -f1 | tr '\\n' ' '", "root user nobody ");
    sh_says("cat /proc/net/dev | grep -c : ; cat /proc/net/route | wc -l", "1\n1\n");
}
END_TEST

/* As sandboxes show them: root's have none; an ordinary user cannot drop its own, of which the
 * primary one is named and the others are nobody's. */
static const char *groups_line(void)
{
    static char line[1024];
    gid_t groups[64];
    int count = is_root() ? 0 : getgroups(64, groups);
    ck_assert_int_ge(count, 0);
    int len = snprintf(line, sizeof line, "Groups: ");
    for (int i = 0; i < count; i++) {
        len += snprintf(line + len, sizeof line - (size_t)len, "%d ",
                        groups[i] == getegid() ? 1000 : 65534);
    }
    snprintf(line + len, sizeof line - (size_t)len, "\n");
    return line;
}

/* This process's own, of which the sandbox's is one more: see without.c. */
static int count_filters(void)
{
    char line[128];
    int count = 0;
    FILE *file = fopen("/proc/self/status", "re");
    ck_assert_ptr_nonnull(file);
    while (fgets(line, sizeof line, file) != NULL &&
           sscanf(line, "Seccomp_filters: %d", &count) != 1) {}
    fclose(file);
    return count;
}

/* Every process of the sandbox but process 1 and the supervisors, which have a line of their own.
 */
START_TEST(posture)
{
    char expected[512];
    snprintf(expected, sizeof expected,
             "Uid: 1000 1000 1000 1000\nGid: 1000 1000 1000 1000\n"
             "CapInh: 0000000000000000\nCapPrm: 0000000000000000\nCapEff: 0000000000000000\n"
             "CapAmb: 0000000000000000\nNoNewPrivs: 1\nSeccomp: 2\nSeccomp_filters: %d\n",
             count_filters() + 1);
    sh_says("grep -h ^Groups /proc/self/status | tr -s ' \\t' ' '", groups_line());
    sh_says("grep -hE '^(Cap(Inh|Prm|Eff|Amb)|NoNewPrivs|Seccomp|Uid|Gid)' "
            "/proc/self/status | tr -s ' \\t' ' '",
            expected);
    sh_says("for p in /proc/[0-9]*; do grep -hE '^(NoNewPrivs|Seccomp):' $p/status; done | sort -u "
            "| tr -s '\\t' ' '",
            "NoNewPrivs: 1\nSeccomp: 2\n");
    /* CAP_KILL, CAP_SETGID, CAP_SETUID where commands are another user, else nothing. */
    sh_says("grep CapEff /proc/1/status | tr -s '\\t' ' '",
            is_root() ? "CapEff: 00000000000000e0\n" : "CapEff: 0000000000000000\n");
    sh_says("cat /proc/self/oom_score_adj; cat /proc/sys/user/max_user_namespaces; grep 'Max "
            "processes' /proc/self/limits | tr -s ' '",
            "800\n0\nMax processes 1024 1024 processes \n");
    sh_says("grep -E '^Max (core|realtime priority|nice)' /proc/self/limits | tr -s ' '",
            "Max core file size 1 1 bytes \n"
            "Max nice priority 0 0 \nMax realtime priority 0 0 \n");
    /* Elsewhere it can be lowered to what the host has. */
    if (is_root() && prctl(PR_CAPBSET_READ, CAP_SYS_RESOURCE, 0, 0, 0) == 1) {
        sh_says("echo 0 2>/dev/null > /proc/self/oom_score_adj; cat /proc/self/oom_score_adj",
                "800\n");
    }
    sh_says("wc -c < /proc/cmdline; wc -c < /proc/interrupts", "0\n0\n");
    /* What the kernel lets everybody make, and overlays take for a removed file. */
    sh_says("python3 -c 'import os; os.mknod(\"w\", 0o20600, 0)' 2>&1 | grep -c 'not permitted'",
            "1\n");
}
END_TEST

START_TEST(process_one_cannot_be_ended_from_inside)
{
    sh_says("for s in 1 2 3 9 10 11 15 17 19 20; do kill -$s 1; done 2>/dev/null; sleep 0.1; "
            "echo alive",
            "alive\n");
    barchan_exec_result r = run(OPTIONS(.command = "kill -9 -1", .timeout_ms = 10000));
    barchan_exec_result_clear(&r);
    sh_says("echo alive", "alive\n");
}
END_TEST

START_TEST(links_stay_inside)
{
    barchan_error err = {0};
    barchan_bytes bytes;
    sh_says(
        "ln -s /etc/shadow a; ln -s /proc/1/root/etc/passwd b; ln -s /proc/self/root/etc/passwd c; "
        "ln -s ../../../../../../etc/passwd d; ln -s /proc/self/exe e",
        "");
    ck_assert_int_eq(barchan_file_read(sbx, "a", &bytes, &err), BARCHAN_ENOTFOUND);
    ck_assert_int_eq(barchan_file_read(sbx, "b", &bytes, &err), BARCHAN_EPERMISSION);
    const char *const own[] = {"c", "d", "/../../etc/passwd"};
    for (size_t i = 0; i < 3; i++) {
        ck_assert_int_eq(barchan_file_read(sbx, own[i], &bytes, &err), 0);
        ck_assert_ptr_nonnull(strstr(bytes.data, "user:x:1000:")); /* the sandbox's own */
        barchan_bytes_clear(&bytes);
    }
    /* By a link in the middle, too, what is made is made with the command's rights. */
    sh_says("mkdir real; ln -s real middle", "");
    ck_assert_int_eq(barchan_file_write(sbx, "middle/new/f", "x", 1, &err), 0);
    sh_says("stat -c %U:%G real/new real/new/f", "user:user\nuser:user\n");
    /* The worker's own program; sealed, so it cannot be changed. */
    ck_assert_int_lt(barchan_file_write(sbx, "e", "x", 1, &err), 0);
    ck_assert_int_lt(barchan_file_write(sbx, "/proc/self/exe", "x", 1, &err), 0);
}
END_TEST

START_TEST(sandboxes_do_not_see_each_other)
{
    barchan_sandbox *first = sbx, *second;
    barchan_error err = {0};
    ck_assert_int_eq(barchan_sandbox_create(&second, rt, NULL, &err), 0);
    sh_says("echo secret > /tmp/mine; echo secret > /dev/shm/mine; echo secret > /workspace/mine; "
            "for d in /proc/acpi /proc/bus /proc/fs /etc /usr/bin /dev /; do "
            "touch $d/shared 2>/dev/null && echo wrote $d; done; true",
            "");
    sbx = second;
    sh_says("ls -A /tmp /dev/shm /workspace; ps -e | grep -c sleep || true",
            "/dev/shm:\n\n/tmp:\n\n/workspace:\n0\n");
    barchan_sandbox_destroy(second);
    sbx = first;
}
END_TEST

START_TEST(a_crash_leaves_no_core)
{
    barchan_exec_result r = sh("ulimit -c unlimited 2>/dev/null; kill -SEGV $$");
    ck_assert_int_eq(r.term_signal, SIGSEGV);
    barchan_exec_result_clear(&r);
    sh_says("ls -A", "");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("hostile");
    TCase *tc = tcase_create("hostile");
    tcase_set_timeout(tc, 150);
    tcase_add_checked_fixture(tc, setup_sandbox, teardown);
    tcase_add_test(tc, every_probe);
    tcase_add_test(tc, hidden_places);
    tcase_add_test(tc, posture);
    tcase_add_test(tc, process_one_cannot_be_ended_from_inside);
    tcase_add_test(tc, links_stay_inside);
    tcase_add_test(tc, sandboxes_do_not_see_each_other);
    tcase_add_test(tc, a_crash_leaves_no_core);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
