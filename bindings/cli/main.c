/*
 * The program `barchan`: an engine that runs the embedded script barchan/cli. Commands, options and
 * texts are in scripts/barchan/cli; here are only the process's own matters: signals, standard
 * output, the exit code.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <barchan/engine.h>

enum { EXIT_BARCHAN_FAILED = 125 };

static barchan_cancel *cancel;
static volatile sig_atomic_t signal_seen;

/* The first signal cancels the work, which ends in an orderly way; the second ends the program. */
static void on_signal(int number)
{
    signal_seen = number;
    barchan_cancel_trigger(cancel);
    signal(number, SIG_DFL);
}

static void catch_signal(int number)
{
    struct sigaction old, action = {.sa_handler = on_signal};
    sigaction(number, NULL, &old);
    if (old.sa_handler == SIG_IGN) return; /* nohup, a shell's background job */
    sigaction(number, &action, NULL);
}

static void on_print(const char *text, size_t len, void *ud)
{
    (void)ud;
    fwrite(text, 1, len, stdout);
    fflush(stdout);
}

static void on_log(barchan_log_level level, const char *message, void *ud)
{
    (void)level;
    (void)ud;
    fprintf(stderr, "barchan: %s\n", message);
}

static int complain(const barchan_error *err)
{
    if (err->code == BARCHAN_ECANCELLED && signal_seen != 0) return 128 + signal_seen;
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
    (void)argc;
    barchan_runtime_options options = {.struct_size = sizeof options,
                                       .on_log = on_log,
                                       .log_level = BARCHAN_LOG_WARN,
                                       .guest_path = getenv("BARCHAN_GUEST")};
    if (barchan_cancel_create(&cancel, &err) < 0) return complain(&err);
    catch_signal(SIGINT);
    catch_signal(SIGTERM);
    catch_signal(SIGHUP);
    if (barchan_runtime_create(&rt, &options, &err) < 0) return complain(&err);
    int code = run(rt, (const char *const *)argv, &err);
    barchan_runtime_destroy(rt);
    if (code < 0) code = complain(&err);
    if (signal_seen != 0) code = 128 + signal_seen;
    barchan_cancel_release(cancel);
    if (fflush(stdout) != 0 && code == 0) code = EXIT_BARCHAN_FAILED;
    return code;
}
