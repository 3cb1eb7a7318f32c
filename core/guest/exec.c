/* Commands as jobs of process 1. */
#include "init.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/ioctl.h>

struct exec_request {
    uint32_t flags;
    int64_t timeout_ms, grace_ms;
    uint64_t out_limit, err_limit;
    uint32_t columns, rows;
    const char *cwd;
    const char **argv, **envp;
};

/* Reads a list of strings into an array with `before` free places in front and NULL behind. */
static const char **read_strings(bc_wire_reader *in, unsigned before, const char ***owner)
{
    uint32_t count = bc_wire_u32(in);
    if (count > BC_FRAME_MAX_STRINGS) in->bad = 1;
    const char **list = in->bad ? NULL : calloc(count + before + 1, sizeof *list);
    if (list == NULL) {
        in->bad = 1;
        return NULL;
    }
    for (uint32_t i = 0; i < count; i++) {
        list[before + i] = bc_wire_string(in, BC_FRAME_MAX_TO_GUEST);
    }
    *owner = list;
    return list + before;
}

static bool read_request(struct exec_request *request, bc_wire_reader *in, struct job *job)
{
    request->flags = bc_wire_u32(in);
    request->timeout_ms = (int64_t)bc_wire_u64(in);
    request->grace_ms = (int64_t)bc_wire_u64(in);
    request->out_limit = bc_wire_u64(in);
    request->err_limit = bc_wire_u64(in);
    request->columns = bc_wire_u32(in);
    request->rows = bc_wire_u32(in);
    request->cwd = bc_wire_string(in, BC_FRAME_MAX_PATH - 1);
    request->argv = read_strings(in, 2, &job->lists[0]);
    request->envp = read_strings(in, 0, &job->lists[1]);
    return bc_wire_done(in) && request->argv[0] != NULL &&
           request->out_limit <= BC_FRAME_MAX_OUTPUT_LIMIT &&
           request->err_limit <= BC_FRAME_MAX_OUTPUT_LIMIT;
}

static long open_pipe(int *ours, int *theirs, int our_end)
{
    int fds[2];
    long rc = sys_pipe2(fds, O_CLOEXEC);
    if (rc < 0) return rc;
    *ours = fds[our_end];
    *theirs = fds[1 - our_end];
    return sys_fcntl(*ours, F_SETFL, O_NONBLOCK | (our_end == 1 ? O_WRONLY : O_RDONLY));
}

static long open_terminal(struct job *job, const struct exec_request *request, int fds[3])
{
    int unlocked = 0;
    int ours =
        (int)sys_openat(AT_FDCWD, "/dev/pts/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK, 0);
    if (ours < 0) return ours;
    job->in_fd = ours;
    job->terminal = true;
    long rc = SYS3(SYS_ioctl, ours, TIOCSPTLCK, &unlocked);
    if (rc >= 0) rc = exec_resize(job, request->columns, request->rows);
    if (rc >= 0) rc = SYS3(SYS_ioctl, ours, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (rc < 0) return rc;
    fds[0] = (int)rc;
    for (int i = 1; i < 3 && rc >= 0; i++) {
        rc = sys_fcntl(fds[0], F_DUPFD_CLOEXEC, 3);
        fds[i] = rc < 0 ? -1 : (int)rc;
    }
    if (rc >= 0) rc = sys_fcntl(ours, F_DUPFD_CLOEXEC, 3);
    if (rc < 0) return rc;
    output_open(&job->out, (int)rc, BC_FRAME_OUT, request->out_limit,
                !(request->flags & BC_EXEC_STREAMING));
    return 0;
}

long exec_resize(const struct job *job, uint32_t columns, uint32_t rows)
{
    const struct winsize size = {.ws_col = (unsigned short)columns, .ws_row = (unsigned short)rows};
    if (!job->terminal || job->in_fd < 0) return 0;
    return SYS3(SYS_ioctl, job->in_fd, TIOCSWINSZ, &size);
}

/* The three descriptors of the command; the job has the other ends. */
static long open_streams(struct job *job, const struct exec_request *request, int fds[3])
{
    bool capped = !(request->flags & BC_EXEC_STREAMING);
    int ours;
    long rc;
    if (request->flags & BC_EXEC_PTY) return open_terminal(job, request, fds);
    if (request->flags & BC_EXEC_INPUT) {
        rc = open_pipe(&job->in_fd, &fds[0], 1);
    } else {
        rc = sys_openat(AT_FDCWD, "/dev/null", O_RDONLY | O_CLOEXEC, 0);
        if (rc >= 0) fds[0] = (int)rc;
    }
    if (rc < 0) return rc;
    rc = open_pipe(&ours, &fds[1], 0);
    if (rc < 0) return rc;
    output_open(&job->out, ours, BC_FRAME_OUT, request->out_limit, capped);
    rc = open_pipe(&ours, &fds[2], 0);
    if (rc < 0) return rc;
    output_open(&job->err, ours, BC_FRAME_ERR, request->err_limit, capped);
    return 0;
}

/* Where process 1 and the supervisors are the same user as the commands, they count as well. */
static uint32_t process_limit(const struct init *init)
{
    uint32_t ours = init->privileged ? 0 : init->job_count + 1;
    return init->pids_by == BY_RLIMIT ? init->limits.pids + ours : 0;
}

static void start(struct init *init, struct job *job, const struct exec_request *request)
{
    int fds[3] = {-1, -1, -1};
    struct reaper *reaper = init->spare != NULL ? init->spare : reaper_new();
    init->spare = NULL;
    if (reaper == NULL) init_die(init, "out of memory");
    memset(reaper, 0, offsetof(struct reaper, tree));
    job->reaper = reaper;
    reaper->command = (struct command){
        .argv = request->argv,
        .envp = request->envp,
        .cwd = request->cwd,
        .change_user = init->privileged,
        .detach = job->detach,
        .terminal = request->flags & BC_EXEC_PTY,
        .network_off = request->flags & BC_EXEC_NETWORK_OFF,
        .enter = init->apart ? init->group_files + GROUP_ENTER : NULL,
        .open_files = init->limits.open_files,
        .processes = process_limit(init),
        .cpu_seconds = (init->limits.cpu_us + 999999) / 1000000,
    };
    exec_note_start(init, job);
    long rc = open_streams(job, request, fds);
    memcpy(reaper->command.fds, fds, sizeof fds);
    if (rc >= 0) rc = reaper_start(reaper);
    for (int i = 0; i < 3; i++) {
        if (fds[i] >= 0) sys_close(fds[i]);
    }
    if (rc < 0) {
        reaper->spawn_errno = (int)-rc;
        job_died(init, job, 0);
        return;
    }
    job->pid = (int)rc;
}

/* The answer to a command that cannot even become a job. */
static void refuse(struct init *init, uint32_t stream)
{
    unsigned char bytes[BC_EXIT_BYTES];
    bc_wire_writer out = {.data = bytes, .cap = sizeof bytes};
    bc_wire_put_exit(&out, &(bc_exit){.reason = BC_EXIT_SPAWN_FAILED, .spawn_errno = EAGAIN});
    send_frame(init, BC_FRAME_EXIT, stream, bytes, out.len);
}

void exec_start(struct init *init, const bc_frame *frame)
{
    bool detach = frame->length >= 4 && (bc_get_u32(frame->payload) & BC_EXEC_DETACH) != 0;
    bool full = detach && job_count_detached(init) >= MAX_DETACHED;
    bool still = init->paused || quiet_is_packing(init);
    struct job *job = full || still ? NULL : job_new(init, JOB_EXEC, frame->stream);
    if (job == NULL) {
        refuse(init, frame->stream);
        return;
    }
    /* The strings must outlive the channel's buffer: the command's process reads them. */
    job->request = malloc(frame->length + 1);
    if (job->request == NULL) init_die(init, "out of memory");
    memcpy(job->request, frame->payload, frame->length);
    bc_frame copy = {.length = frame->length, .payload = job->request};
    bc_wire_reader in = bc_wire_read(&copy);
    struct exec_request request = {0};
    if (!read_request(&request, &in, job)) init_die(init, "malformed exec request");
    job->detach = detach;
    job->grace_ms = request.grace_ms;
    if (request.timeout_ms > 0) job->deadline_us = job->started_us + us_of_ms(request.timeout_ms);
    start(init, job, &request);
}

void exec_stop(struct job *job, int sig)
{
    if (job->pid == 0) return;
    __atomic_store_n(&job->reaper->stop, sig, __ATOMIC_RELEASE);
    sys_kill(job->pid, SIGUSR1);
    sys_kill(job->pid, SIGCONT); /* a pause without a freezer has stopped it, too */
}
