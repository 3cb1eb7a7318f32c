#include "command.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/cleanup.h"
#include "base/limits.h"
#include "runtime/child.h"

/* The program while it runs. */
struct bc_command_run {
    barchan_sandbox *sbx;
    bc_child *child;
    bc_timer *patience; /* until it is killed: it ends when its input does */
    bc_timer *lease;    /* the guest keeps it; this is for when it cannot */
    int ends;           /* it was asked to */
    uint32_t ending;    /* bc_ending: why it was killed */
    char name[64];
    int words_fd; /* its standard error */
    bc_watch *words_watch;
    char words[BC_COMMAND_WORDS_BYTES + 1]; /* the last of it */
    size_t words_len;
};

void bc_command_run_free(struct bc_command_run *run)
{
    if (run == NULL) return;
    bc_child_close(run->child);
    bc_timer_close(run->patience);
    bc_timer_close(run->lease);
    bc_watch_close(run->words_watch);
    if (run->words_fd >= 0) close(run->words_fd);
    free(run);
}

/* ---- what it says ---- */

static void keep_words(struct bc_command_run *run, const char *data, size_t len)
{
    if (len > BC_COMMAND_WORDS_BYTES) {
        data += len - BC_COMMAND_WORDS_BYTES;
        len = BC_COMMAND_WORDS_BYTES;
    }
    size_t room = BC_COMMAND_WORDS_BYTES - run->words_len;
    if (len > room) {
        run->words_len -= len - room;
        memmove(run->words, run->words + (len - room), run->words_len);
    }
    memcpy(run->words + run->words_len, data, len);
    run->words_len += len;
}

static void on_words(void *ud, unsigned events)
{
    struct bc_command_run *run = ud;
    char chunk[4096];
    (void)events;
    for (int i = 0; i < BC_COMMAND_WORDS_READS; i++) {
        ssize_t n = read(run->words_fd, chunk, sizeof chunk);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && errno == EAGAIN) return;
        if (n <= 0) {
            bc_watch_set(run->words_watch, 0, NULL);
            return;
        }
        keep_words(run, chunk, (size_t)n);
    }
}

/* Its last line that is not empty, which mostly says what was wrong; the text is a stranger's. */
static const char *last_line(struct bc_command_run *run)
{
    char *text = run->words;
    for (size_t i = 0; i < run->words_len; i++) {
        if (text[i] == '\0') text[i] = '?';
    }
    while (run->words_len > 0 && strchr("\r\n \t", text[run->words_len - 1]) != NULL) {
        run->words_len--;
    }
    text[run->words_len] = '\0';
    char *line = strrchr(text, '\n');
    return line == NULL ? text : line + 1;
}

/* ---- its end ---- */

static void on_exit_of_program(bc_child *child, int status, void *ud)
{
    struct bc_command_run *run = ud;
    char how[64] = "ended", words[BC_COMMAND_WORDS_BYTES + 1];
    barchan_error why;
    (void)child;
    on_words(run, BC_READABLE);
    bc_printable(words, sizeof words, last_line(run));
    if (status >= 0 && WIFEXITED(status)) {
        snprintf(how, sizeof how, "exited with status %d", WEXITSTATUS(status));
    } else if (status >= 0 && WIFSIGNALED(status)) {
        snprintf(how, sizeof how, "was killed by signal %d", WTERMSIG(status));
    }
    bc_error_set(&why, BARCHAN_ELOST, "'%s', which leads to the guest, %s%s%.*s", run->name, how,
                 words[0] == '\0' ? "" : ": ", BC_COMMAND_MAX_WORDS, words);
    barchan_sandbox *sbx = run->sbx;
    uint32_t ending = run->ending;
    sbx->command = NULL;
    bc_sandbox_gone(sbx, ending, &why);
    bc_command_run_free(run);
}

static void on_patience(void *ud)
{
    struct bc_command_run *run = ud;
    bc_child_kill(run->child, SIGKILL);
}

static void on_lease(void *ud)
{
    struct bc_command_run *run = ud;
    run->ending = BC_ENDING_LEASE;
    bc_child_kill(run->child, SIGKILL);
}

static void set_lease(barchan_sandbox *sbx)
{
    if (sbx->pause_at_lease_end) return; /* process 1 pauses it then */
    bc_timer_set(sbx->command->lease, bc_lease_left_ms(sbx) + BC_COMMAND_LEASE_MARGIN_MS);
}

/* The channel is closed or about to be, and with its input everything of the guest ends by
 * itself, and the program says why it did. */
static void kill_sandbox(barchan_sandbox *sbx)
{
    struct bc_command_run *run = sbx->command;
    if (run == NULL || run->ends) return;
    run->ends = 1;
    bc_timer_set(run->patience, BC_COMMAND_END_MS);
}

/* ---- its beginning ---- */

static int open_program(const bc_command *command, barchan_error *err)
{
    char path[4096];
    const char *dir = command->path == NULL ? "/usr/local/bin:/usr/bin:/bin" : command->path;
    if (strchr(command->program, '/') != NULL) dir = "";
    for (;; dir++) {
        int len = (int)strcspn(dir, ":");
        int n =
            snprintf(path, sizeof path, "%.*s%s%s", len, dir, len > 0 ? "/" : "", command->program);
        int fd = n < 0 || (size_t)n >= sizeof path ? -1 : open(path, O_PATH | O_CLOEXEC);
        if (fd >= 0 && faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) == 0) return fd;
        if (fd >= 0) close(fd);
        dir += len;
        if (*dir == '\0') break;
    }
    return bc_error_set(err, BARCHAN_ENOTFOUND, "the program '%.200s' is not there",
                        command->program);
}

static int spawn(struct bc_command_run *run, const bc_command *command, int channel, int words,
                 barchan_error *err)
{
    cleanup_close int program = open_program(command, err);
    if (program < 0) return program;
    const int fds[] = {channel, channel, words};
    const bc_child_options options = {.program_fd = program,
                                      .argv = command->argv,
                                      .envp = command->envp,
                                      .fds = fds,
                                      .fd_count = 3};
    return bc_child_spawn(&run->child, run->sbx->rt, &options, on_exit_of_program, run, err);
}

static int open_words(struct bc_command_run *run, int *theirs, barchan_error *err)
{
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) < 0) return bc_error_set_os(err, errno, "create a pipe");
    run->words_fd = fds[0];
    *theirs = fds[1];
    barchan_runtime *rt = run->sbx->rt;
    int rc = bc_watch_open(&run->words_watch, rt, fds[0], on_words, run, err);
    return rc < 0 ? rc : bc_watch_set(run->words_watch, BC_READABLE, err);
}

static int start(barchan_sandbox *sbx, int *channel_fd, barchan_error *err)
{
    const bc_command *command = sbx->backend_options;
    int pair[2];
    cleanup_close int words = -1;
    struct bc_command_run *run = calloc(1, sizeof *run);
    if (run == NULL) return bc_error_nomem(err);
    sbx->command = run;
    run->sbx = sbx;
    run->words_fd = -1;
    bc_printable(run->name, sizeof run->name, command->argv[0]);
    int rc = open_words(run, &words, err);
    if (rc == 0) rc = bc_timer_open(&run->patience, sbx->rt, on_patience, run, err);
    if (rc == 0) rc = bc_timer_open(&run->lease, sbx->rt, on_lease, run, err);
    if (rc < 0) return rc;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0) {
        return bc_error_set_os(err, errno, "create a socket pair");
    }
    rc = spawn(run, command, pair[1], words, err);
    close(pair[1]);
    if (rc < 0) {
        close(pair[0]);
        return rc;
    }
    set_lease(sbx);
    *channel_fd = pair[0];
    return 0;
}

static const bc_backend backend_command = {
    .name = "command",
    .start = start,
    .kill = kill_sandbox,
    .extend = set_lease,
    .carries_network = 1,
    .tells_begin = 1,
};

int bc_command_create(barchan_sandbox **out, barchan_runtime *rt, const barchan_profile *profile,
                      const bc_command *command, barchan_sandbox_created_fn done, void *ud,
                      barchan_error *err)
{
    return bc_sandbox_open_with(out, rt, profile, &backend_command, NULL, command, done, ud, err);
}
