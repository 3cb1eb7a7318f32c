/*
 * Starting a holder: the program `barchan sandbox hold`. It reads a profile from its standard
 * input, the number of its bytes and a newline first; writes one line of JSON, {"id": …} or
 * {"error": …, "code": …}, when the sandbox is ready; and goes on if one more byte follows: whoever
 * wanted the sandbox has its id then. It leaves this process's session and children by itself; the
 * process started here ends as soon as it has.
 */
#include <barchan/detached.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/cleanup.h"
#include "base/json_view.h"
#include "base/limits.h"
#include "held_dir.h"
#include "holder.h"
#include "internal.h"
#include "runtime/child.h"

extern char **environ;

#define MAX_ENV 64

struct start {
    bc_resident resident;
    barchan_runtime *rt;
    bc_child *child;
    int fd; /* a socket: the profile goes out, the answer comes in */
    bc_watch *watch;
    bc_timer *timer;
    bc_buf profile, answer;
    bc_detached_made_fn made;
    void *ud;
};

/* ---- the claim ---- */

void bc_claim_drop(int claim_fd)
{
    close(claim_fd);
}

static void put_in_context(barchan_error *err)
{
    bc_error_context(err, "create a detached sandbox");
    bc_error_where(err, "detached.create");
}

int bc_claim_keep(int claim_fd, barchan_error *err)
{
    bool told = send(claim_fd, "+", 1, MSG_NOSIGNAL | MSG_DONTWAIT) == 1;
    close(claim_fd);
    if (told) return 0;
    bc_error_set(err, BARCHAN_ELOST, "its holder has ended");
    put_in_context(err);
    return BARCHAN_ELOST;
}

/* ---- the end ---- */

static void finish(struct start *start, const char *id, const barchan_error *why)
{
    bc_detached_made_fn made = start->made;
    void *ud = start->ud;
    int claim_fd = id == NULL ? -1 : start->fd;
    barchan_error err;
    if (id != NULL) start->fd = -1;
    if (why != NULL) {
        err = *why;
        put_in_context(&err);
    }
    bc_resident_remove(&start->resident);
    bc_watch_close(start->watch);
    bc_timer_close(start->timer);
    bc_child_close(start->child);
    if (start->fd >= 0) close(start->fd);
    bc_buf_clear(&start->profile);
    bc_buf_clear(&start->answer);
    free(start);
    if (made != NULL) made(id, claim_fd, why == NULL ? NULL : &err, ud);
}

static int code_of(const char *name)
{
    for (int code = BARCHAN_EINVAL; code >= BARCHAN_ENOTEMPTY; code--) {
        if (name != NULL && strcmp(barchan_status_name(code), name) == 0) return code;
    }
    return BARCHAN_ELOST;
}

static void read_answer(struct start *start)
{
    barchan_error why;
    json_t *answer cleanup_json = NULL;
    bc_json_view(&answer, bc_buf_data(&start->answer), start->answer.len, 0, NULL);
    const char *id = bc_json_get_string(answer, "id", NULL);
    const char *words = bc_json_get_string(answer, "error", NULL);
    if (bc_held_id_is_valid(id)) {
        finish(start, id, NULL);
        return;
    }
    if (words != NULL) {
        bc_error_set(&why, code_of(bc_json_get_string(answer, "code", NULL)), "%s", words);
    } else {
        bc_error_set(&why, BARCHAN_ELOST,
                     "its holder ended without an answer; is the program "
                     "barchan of this version?");
    }
    finish(start, NULL, &why);
}

/* ---- the talk ---- */

/* 0, or -1 when the holder is gone or has said what it had to. */
static int take(struct start *start)
{
    for (;;) {
        char *room = bc_buf_reserve(&start->answer, 1024);
        if (room == NULL) return -1;
        ssize_t n = recv(start->fd, room, 1024, MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
        if (n <= 0) return -1;
        bc_buf_commit(&start->answer, (size_t)n);
        if (memchr(bc_buf_data(&start->answer), '\n', start->answer.len) != NULL) return -1;
    }
}

static void give(struct start *start)
{
    while (start->profile.len > 0) {
        ssize_t n = send(start->fd, bc_buf_data(&start->profile), start->profile.len,
                         MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && errno == EAGAIN) return;
        if (n < 0) break; /* the answer, or its end, says why */
        bc_buf_consume(&start->profile, (size_t)n);
    }
    bc_buf_reset(&start->profile);
    bc_watch_set(start->watch, BC_READABLE, NULL);
}

static void on_ready(void *ud, unsigned events)
{
    struct start *start = ud;
    if ((events & BC_WRITABLE) != 0 && start->profile.len > 0) give(start);
    if ((events & (BC_READABLE | BC_HANGUP)) != 0 && take(start) < 0) read_answer(start);
}

static void on_late(void *ud)
{
    barchan_error why;
    bc_error_set(&why, BARCHAN_ETIMEDOUT, "it was not ready in time");
    finish(ud, NULL, &why); /* the holder finds that nobody listens, and ends */
}

static void end_resident(bc_resident *resident)
{
    barchan_error why;
    bc_error_set(&why, BARCHAN_ECANCELLED, "the runtime ended");
    finish(owner_of(resident, struct start, resident), NULL, &why);
}

/* It has gone its own way; the answer comes from its child. */
static void on_exit_of_child(bc_child *child, int status, void *ud)
{
    (void)child, (void)status, (void)ud;
}

/* ---- the program ---- */

/* An open program called `barchan` in the first directory of PATH that has one. */
static int find_in_path(void)
{
    const char *path = getenv("PATH");
    char file[512];
    while (path != NULL && *path != '\0') {
        size_t len = strcspn(path, ":");
        if (path[0] == '/' && len < sizeof file - sizeof "/barchan") {
            snprintf(file, sizeof file, "%.*s/barchan", (int)len, path);
            if (access(file, X_OK) == 0) return open(file, O_RDONLY | O_CLOEXEC);
        }
        path += len + (path[len] == ':');
    }
    errno = ENOENT;
    return -1;
}

/* Also after an update has replaced its file. */
static int is_this_program(void)
{
    char path[512];
    ssize_t len = readlink("/proc/self/exe", path, sizeof path - 1);
    if (len <= 0) return 0;
    path[len] = '\0';
    const char *name = strrchr(path, '/');
    return name != NULL &&
           (strcmp(name, "/barchan") == 0 || strcmp(name, "/barchan (deleted)") == 0);
}

static int open_program(const char *given, barchan_error *err)
{
    const char *program = given != NULL ? given : secure_getenv("BARCHAN_PROGRAM");
    if (program == NULL && is_this_program()) program = "/proc/self/exe";
    int fd = program == NULL ? find_in_path() : open(program, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) return fd;
    if (program != NULL) return bc_error_set_os(err, errno, "open the program %s", program);
    return bc_error_set(err, BARCHAN_ENOTFOUND,
                        "the program barchan, which holds it, is not in PATH; BARCHAN_PROGRAM says "
                        "where it is");
}

/* What makes a holder find the same place and the same library; no key, nothing else. */
static int is_for_holder(const char *pair)
{
    static const char *const names[] = {
        "XDG_RUNTIME_DIR=", "XDG_DATA_HOME=",  "HOME=",         "LD_LIBRARY_PATH=",
        "ASAN_OPTIONS=",    "UBSAN_OPTIONS=",  "LSAN_OPTIONS=", "TSAN_OPTIONS=",
        "BARCHAN_GUEST=",   "BARCHAN_SCRIPTS="};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strncmp(pair, names[i], strlen(names[i])) == 0) return 1;
    }
    return 0;
}

static int spawn(struct start *start, int program_fd, int theirs, barchan_error *err)
{
    static const char *const argv[] = {"barchan", "sandbox", "hold", NULL};
    const char *envp[MAX_ENV];
    const int fds[] = {theirs, theirs, -1};
    size_t count = 0;
    for (char **env = environ; env != NULL && *env != NULL && count < MAX_ENV - 1; env++) {
        if (is_for_holder(*env)) envp[count++] = *env;
    }
    envp[count] = NULL;
    const bc_child_options options = {
        .program_fd = program_fd, .argv = argv, .envp = envp, .fds = fds, .fd_count = 3};
    return bc_child_spawn(&start->child, start->rt, &options, on_exit_of_child, start, err);
}

static int open_start(struct start *start, const barchan_detached_options *options,
                      barchan_error *err)
{
    int pair[2];
    const char *profile = options->profile_json == NULL ? "{}" : options->profile_json;
    cleanup_close int program = open_program(options->program, err);
    if (program < 0) return program;
    if (bc_buf_appendf(&start->profile, "%zu\n%s", strlen(profile), profile) < 0) {
        return bc_error_set(err, BARCHAN_ELIMIT, "the profile is too long");
    }
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0) {
        return bc_error_set_os(err, errno, "create a socket pair");
    }
    start->fd = pair[0];
    cleanup_close int theirs = pair[1];
    int rc = bc_watch_open(&start->watch, start->rt, start->fd, on_ready, start, err);
    if (rc == 0) rc = bc_watch_set(start->watch, BC_READABLE | BC_WRITABLE, err);
    if (rc == 0) rc = bc_timer_open(&start->timer, start->rt, on_late, start, err);
    if (rc == 0) rc = spawn(start, program, theirs, err);
    if (rc == 0) {
        int64_t ms = options->timeout_ms == 0 ? BC_SANDBOX_DEFAULT_CREATE_MS : options->timeout_ms;
        bc_timer_set(start->timer, ms);
    }
    return rc;
}

int bc_detached_create_start(barchan_runtime *rt, const barchan_detached_options *given,
                             bc_detached_made_fn made, void *ud, barchan_error *err)
{
    barchan_detached_options options;
    int rc = bc_runtime_check(rt, err);
    if (rc == 0) rc = bc_options_copy(&options, sizeof options, given, err);
    if (rc == 0 && options.timeout_ms < 0) {
        rc = bc_error_set(err, BARCHAN_EINVAL, "timeout_ms is negative");
    }
    struct start *start = rc < 0 ? NULL : calloc(1, sizeof *start);
    if (rc == 0 && start == NULL) rc = bc_error_nomem(err);
    if (rc == 0) {
        start->rt = rt;
        start->fd = -1;
        bc_buf_init(&start->profile, BC_FRAME_MAX_TO_GUEST);
        bc_buf_init(&start->answer, BC_HOLD_MAX_ANSWER_BYTES);
        rc = open_start(start, &options, err);
        bc_resident_add(rt, &start->resident, end_resident);
        if (rc < 0) finish(start, NULL, NULL);
    }
    if (rc < 0) {
        put_in_context(err);
        return rc;
    }
    start->made = made;
    start->ud = ud;
    return 0;
}

/* ---- for whoever keeps it at once ---- */

struct asked {
    barchan_detached_fn done;
    void *ud;
};

static void keep_it(const char *id, int claim_fd, const barchan_error *err, void *ud)
{
    struct asked asked = *(struct asked *)ud;
    barchan_error lost;
    free(ud);
    if (id != NULL && bc_claim_keep(claim_fd, &lost) < 0) {
        id = NULL;
        err = &lost;
    }
    asked.done(id, err, asked.ud);
}

int barchan_detached_create_start(barchan_runtime *rt, const barchan_detached_options *options,
                                  barchan_detached_fn done, void *ud, barchan_error *err)
{
    BC_OPERATION("detached.create");
    struct asked *asked = malloc(sizeof *asked);
    int rc = asked == NULL ? bc_error_nomem(err) : 0;
    if (rc == 0 && done == NULL) rc = bc_error_set(err, BARCHAN_EINVAL, "done is NULL");
    if (rc < 0) {
        put_in_context(err);
    } else {
        *asked = (struct asked){done, ud};
        rc = bc_detached_create_start(rt, options, keep_it, asked, err);
    }
    if (rc < 0) free(asked);
    return rc;
}
