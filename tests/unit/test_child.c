/* Child processes under every kind of host: SIGCHLD default, ignored, reaped elsewhere, all
 * signals blocked. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "runtime/child.h"
#include "suite.h"

static barchan_runtime *rt;
static barchan_error err;
static int ended, status_seen;

static void setup(void)
{
    ck_assert_int_eq(barchan_runtime_create(&rt, NULL, &err), 0);
    ended = 0;
}

static void teardown(void)
{
    barchan_runtime_destroy(rt);
}

static void on_exit_seen(bc_child *child, int status, void *ud)
{
    (void)child;
    (void)ud;
    status_seen = status;
    ended = 1;
}

static bc_child *spawn_shell(const char *script, int out_fd)
{
    bc_child *child = NULL;
    int program = open("/bin/sh", O_RDONLY | O_CLOEXEC);
    const char *argv[] = {"sh", "-c", script, NULL};
    const char *envp[] = {"PATH=/usr/bin:/bin", "ONLY=this", NULL};
    int fds[] = {-1, out_fd, -1};
    bc_child_options options = {program, argv, envp, fds, 3};
    ck_assert_int_eq(bc_child_spawn(&child, rt, &options, on_exit_seen, NULL, &err), 0);
    close(program);
    return child;
}

static void read_all(int fd, char *text, size_t size)
{
    size_t used = 0;
    ssize_t n;
    while (used + 1 < size && (n = read(fd, text + used, size - 1 - used)) > 0)
        used += (size_t)n;
    text[used] = '\0';
}

START_TEST(the_status_arrives)
{
    bc_child *child = spawn_shell("exit 7", -1);
    ck_assert_int_eq(bc_runtime_wait(rt, &ended, &err), 0);
    ck_assert(WIFEXITED(status_seen) && WEXITSTATUS(status_seen) == 7);
    bc_child_close(child);
}
END_TEST

START_TEST(a_signal_is_told_from_an_exit)
{
    bc_child *child = spawn_shell("sleep 100", -1);
    bc_child_kill(child, SIGTERM);
    ck_assert_int_eq(bc_runtime_wait(rt, &ended, &err), 0);
    ck_assert(WIFSIGNALED(status_seen) && WTERMSIG(status_seen) == SIGTERM);
    bc_child_close(child);
}
END_TEST

START_TEST(death_is_seen_with_sigchld_ignored)
{
    signal(SIGCHLD, SIG_IGN);
    bc_child *child = spawn_shell("exit 7", -1);
    ck_assert_int_eq(bc_runtime_wait(rt, &ended, &err), 0);
    ck_assert_int_eq(status_seen, -1);
    bc_child_close(child);
}
END_TEST

static void greedy_reaper(int sig)
{
    int saved = errno;
    (void)sig;
    while (waitpid(-1, NULL, WNOHANG) > 0) {}
    errno = saved;
}

START_TEST(death_is_seen_beside_a_reaper_of_the_hosts)
{
    signal(SIGCHLD, greedy_reaper);
    bc_child *child = spawn_shell("exit 7", -1);
    ck_assert_int_eq(bc_runtime_wait(rt, &ended, &err), 0);
    bc_child_close(child);
}
END_TEST

START_TEST(the_child_starts_with_signals_unblocked_and_default)
{
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    signal(SIGPIPE, SIG_IGN);
    int fds[2];
    char text[256];
    ck_assert_int_eq(pipe2(fds, O_CLOEXEC), 0);
    bc_child *child = spawn_shell("grep -E 'Sig(Blk|Ign)' /proc/self/status", fds[1]);
    close(fds[1]);
    read_all(fds[0], text, sizeof text);
    close(fds[0]);
    ck_assert_str_eq(text, "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
    bc_child_close(child);
}
END_TEST

START_TEST(nothing_is_inherited_but_what_is_given)
{
    int leaks[50], fds[2];
    char text[512];
    for (int i = 0; i < 50; i++)
        leaks[i] = open("/", O_RDONLY | O_DIRECTORY); /* no CLOEXEC */
    setenv("HOST_SECRET", "leaks", 1);
    ck_assert_int_eq(pipe2(fds, O_CLOEXEC), 0);
    bc_child *child = spawn_shell("ls /proc/$$/fd; env", fds[1]);
    close(fds[1]);
    read_all(fds[0], text, sizeof text);
    close(fds[0]);
    for (int i = 0; i < 50; i++)
        close(leaks[i]);
    ck_assert_ptr_nonnull(strstr(text, "0\n1\n2\n"));
    ck_assert_ptr_null(strstr(text, "2\n3\n"));
    ck_assert_ptr_null(strstr(text, "HOST_SECRET"));
    ck_assert_ptr_nonnull(strstr(text, "ONLY=this"));
    bc_child_close(child);
}
END_TEST

START_TEST(a_failed_exec_is_an_error_and_leaves_no_child)
{
    bc_child *child = (void *)1;
    int program = open("/etc/passwd", O_RDONLY | O_CLOEXEC);
    const char *argv[] = {"x", NULL}, *envp[] = {NULL};
    int fds[] = {-1, -1, -1};
    bc_child_options options = {program, argv, envp, fds, 3};
    ck_assert_int_eq(bc_child_spawn(&child, rt, &options, on_exit_seen, NULL, &err),
                     BARCHAN_EPERMISSION);
    ck_assert_ptr_null(child);
    ck_assert_int_eq(err.os_error, EACCES);
    ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1);
    ck_assert_int_eq(errno, ECHILD);
    close(program);
}
END_TEST

START_TEST(close_kills_and_reaps)
{
    bc_child *child = spawn_shell("sleep 100", -1);
    bc_child_close(child);
    ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1);
    ck_assert_int_eq(errno, ECHILD);
    ck_assert_int_eq(ended, 0);
}
END_TEST

SUITE_MAIN("child", setup, teardown, the_status_arrives, a_signal_is_told_from_an_exit,
           death_is_seen_with_sigchld_ignored, death_is_seen_beside_a_reaper_of_the_hosts,
           the_child_starts_with_signals_unblocked_and_default,
           nothing_is_inherited_but_what_is_given, a_failed_exec_is_an_error_and_leaves_no_child,
           close_kills_and_reaps)
