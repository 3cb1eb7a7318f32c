/*
 * The program `barchan`: an engine that runs the embedded script barchan/cli. Commands, options and
 * texts are in scripts/barchan/cli; here are only the process's own matters: signals, standard
 * output, the exit code.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>
#include <barchan/engine.h>

enum { EXIT_BARCHAN_FAILED = 125 };

static barchan_cancel *cancel; /* for as long as there may be signals */
static volatile sig_atomic_t signal_seen;

/* Time for work that was cancelled to end in an orderly way. */
enum { SECONDS_TO_END = 3 };

/* The first signal cancels the work; the second ends the program, and so does the alarm when a
 * script does not come to a wait. Sandboxes die with the program. That nobody reads what is written
 * is told at each write, and counts once. */
static void on_signal(int number)
{
    if (number == SIGPIPE && signal_seen != 0) return;
    signal_seen = number;
    barchan_cancel_trigger(cancel);
    if (number != SIGPIPE) signal(number, SIG_DFL);
    alarm(SECONDS_TO_END);
}

static void on_alarm(int number)
{
    (void)number;
    signal(signal_seen, SIG_DFL);
    raise(signal_seen);
}

/* Programs started with closed descriptors would find their own files under those numbers. */
static void open_standard_descriptors(void)
{
    for (int fd = 0; fd <= 2; fd++) {
        if (fcntl(fd, F_GETFD) >= 0) continue;
        /* The lowest free number is this one. The wrong direction makes use of it an error. */
        if (open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY) != fd) _exit(EXIT_BARCHAN_FAILED);
    }
}

static int is_holder(int argc, char **argv)
{
    return argc == 3 && strcmp(argv[1], "sandbox") == 0 && strcmp(argv[2], "hold") == 0;
}

/* The holder of a detached sandbox belongs to nobody: not to its parent, whose child has ended, nor
 * to a session, terminal or folder. Before there is any thread or runtime. */
static void become_holder(void)
{
    pid_t pid = fork();
    if (pid != 0) _exit(pid < 0 ? EXIT_BARCHAN_FAILED : 0);
    if (setsid() < 0 || chdir("/") < 0) _exit(EXIT_BARCHAN_FAILED);
    prctl(PR_SET_NAME, "barchan");
    signal(SIGPIPE, SIG_IGN); /* whoever asked for it may be gone: its end is to be in order */
}

static void catch_signal(int number)
{
    struct sigaction old, action = {.sa_handler = on_signal};
    sigaction(number, NULL, &old);
    if (old.sa_handler == SIG_IGN) return; /* nohup, a shell's background job */
    sigaction(number, &action, NULL);
}

static int print_failed; /* errno */

static void on_print(const char *text, size_t len, void *ud)
{
    (void)ud;
    if (fwrite(text, 1, len, stdout) != len || fflush(stdout) != 0) print_failed = errno;
}

static void on_log(barchan_log_level level, const char *message, void *ud)
{
    (void)level;
    (void)ud;
    if (signal_seen == SIGPIPE) return; /* nobody reads this program any more */
    fprintf(stderr, "barchan: %s\n", message);
}

static int complain(const barchan_error *err)
{
    int is_by_signal = err->code == BARCHAN_ECANCELLED || signal_seen == SIGPIPE;
    if (is_by_signal && signal_seen != 0) return 128 + signal_seen;
    fprintf(stderr, "barchan: %s\n", err->message);
    return EXIT_BARCHAN_FAILED;
}

/* Runs the command line; the script's main returns the exit code. */
static int run(barchan_runtime *rt, const char *const *argv, barchan_error *err)
{
    barchan_engine *engine;
    barchan_engine_options options = {.struct_size = sizeof options,
                                      .library = BARCHAN_LIBRARY_FULL,
                                      .script_dirs = (const char *const[]){".", NULL},
                                      .on_print = on_print,
                                      .argv = argv};
    char *result = NULL;
    int rc = barchan_engine_create(&engine, rt, &options, err);
    if (rc < 0) return rc;
    rc = barchan_engine_call(engine, "barchan.cli:main", NULL, cancel, &result, err);
    if (rc == 0) rc = (int)(strtol(result, NULL, 10) & 0xFF);
    barchan_free(result);
    barchan_engine_destroy(engine);
    return rc;
}

int main(int argc, char **argv)
{
    barchan_runtime *rt;
    barchan_error err;
    open_standard_descriptors();
    if (is_holder(argc, argv)) become_holder();
    barchan_runtime_options options = {.struct_size = sizeof options,
                                       .on_log = on_log,
                                       .log_level = BARCHAN_LOG_WARN,
                                       .guest_path = getenv("BARCHAN_GUEST")};
    if (barchan_cancel_create(&cancel, &err) < 0) return complain(&err);
    signal(SIGXFSZ, SIG_IGN); /* a failed write says why */
    signal(SIGALRM, on_alarm);
    catch_signal(SIGINT);
    catch_signal(SIGTERM);
    catch_signal(SIGHUP);
    catch_signal(SIGPIPE);
    if (barchan_runtime_create(&rt, &options, &err) < 0) return complain(&err);
    int code = run(rt, (const char *const *)argv, &err);
    barchan_runtime_destroy(rt);
    if (code < 0) code = complain(&err);
    if (signal_seen != 0) code = 128 + signal_seen;
    if (fflush(stdout) != 0 && print_failed == 0) print_failed = errno;
    if (print_failed != 0 && code == 0) {
        fprintf(stderr, "barchan: cannot write standard output: %s\n", strerror(print_failed));
        code = EXIT_BARCHAN_FAILED;
    }
    return code;
}
