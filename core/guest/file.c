/* File operations as jobs of process 1: it starts the worker and passes bytes on. */
#include "file.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include "init.h"

static bool read_request(struct file_request *request, bc_wire_reader *in)
{
    request->op = bc_wire_u32(in);
    request->flags = bc_wire_u32(in);
    request->mode = bc_wire_u32(in);
    request->depth = bc_wire_u32(in);
    request->offset = bc_wire_u64(in);
    request->limit = bc_wire_u64(in);
    request->path = bc_wire_string(in, BC_FRAME_MAX_PATH - 1);
    request->new_path = bc_wire_string(in, BC_FRAME_MAX_PATH - 1);
    return bc_wire_done(in) && request->op >= BC_FILE_OP_READ && request->op <= BC_FILE_OP_PACK;
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

/* In the worker: nothing of process 1 stays within reach. */
static _Noreturn void become_worker(const int theirs[3], const struct file_request *request,
                                    bool change_user)
{
    unsigned kept = 3;
    for (int i = 0; i < 3; i++) {
        sys_dup3(theirs[i], i, 0);
    }
    /* First above all, so that none overwrites another's source. */
    int copies[3];
    for (int i = 0; i < 3 && request->layers[0] >= 0; i++) {
        copies[i] = (int)sys_fcntl(request->layers[i], F_DUPFD_CLOEXEC, FILE_MERGED_FD + 1);
        if (copies[i] < 0) sys_exit(1);
    }
    for (int i = 0; i < 3 && request->layers[0] >= 0; i++) {
        sys_dup3(copies[i], FILE_LOWER_FD + i, O_CLOEXEC);
        kept = FILE_MERGED_FD + 1;
    }
    if (sys_close_range(kept, ~0U, 0) < 0) sys_exit(1);
    const sys_sigset none = 0;
    sys_sigprocmask(SIG_SETMASK, &none);
    file_worker(request, change_user);
}

static long open_streams(struct job *job, const struct file_request *request, int theirs[3])
{
    int ours = -1;
    bool writes = request->op == BC_FILE_OP_WRITE || request->op == BC_FILE_OP_APPEND;
    long rc;
    if (writes) {
        rc = open_pipe(&job->in_fd, &theirs[FILE_IN_FD], 1);
    } else {
        rc = sys_openat(AT_FDCWD, "/dev/null", O_RDONLY | O_CLOEXEC, 0);
        theirs[FILE_IN_FD] = rc < 0 ? -1 : (int)rc;
    }
    if (rc < 0) return rc;
    rc = open_pipe(&ours, &theirs[FILE_OUT_FD], 0);
    if (rc < 0) return rc;
    output_open(&job->out, ours, BC_FRAME_OUT, 0, false);
    return open_pipe(&job->result_fd, &theirs[FILE_RESULT_FD], 0);
}

/* The answer to an operation that cannot even become a job. */
static void refuse_with(struct init *init, uint32_t stream, const struct file_result *refused)
{
    unsigned char bytes[1024];
    bc_wire_writer out = {.data = bytes, .cap = sizeof bytes};
    file_encode_result(&out, refused);
    send_frame(init, BC_FRAME_FILE_DONE, stream, bytes, out.len);
}

static void refuse(struct init *init, uint32_t stream, uint32_t status, const char *words)
{
    refuse_with(init, stream, &(struct file_result){.status = status, .words = words});
}

static void set_result(struct job *job, const struct file_result *result)
{
    bc_wire_writer out = {.data = job->result, .cap = sizeof job->result};
    file_encode_result(&out, result);
    job->result_len = out.len;
}

/* The layers of the mount whose changes are asked for. The storage itself, where nothing is mounted
 * over it, has none: all that is in it is new. */
static bool find_layers(const struct init *init, struct file_request *request)
{
    for (unsigned i = init->mounts->count; i-- > 0;) { /* what hides a template's tree is first */
        const struct mount_request *m = &init->mounts->of[i];
        if (strcmp(m->target, request->path) != 0) continue;
        if (m->mode != BC_MOUNT_COPY_ON_WRITE && m->mode != BC_MOUNT_TEMPLATE) return false;
        request->layers[0] = m->lower_fd;
        request->layers[1] = m->upper_fd;
        request->layers[2] = m->merged_fd;
        return true;
    }
    return strcmp(request->path, "/workspace") == 0;
}

static uint32_t find_hidden(const struct init *init)
{
    uint32_t hidden = 0;
    for (unsigned i = 0; i < init->mounts->count; i++) {
        const struct mount_request *m = &init->mounts->of[i];
        for (unsigned k = 0; m->mode != BC_MOUNT_TEMPLATE && k < BC_PACK_PLACES; k++) {
            if (strcmp(m->target, bc_pack_place_of(k)->target) == 0) hidden |= 1u << k;
        }
    }
    return hidden;
}

/* A snapshot is taken when nothing else runs, and nothing that writes begins meanwhile. */
static bool may_run(struct init *init, struct file_request *request, uint32_t stream)
{
    char words[BC_FRAME_MAX_MESSAGE];
    struct file_result why = {.status = BC_WIRE_EBUSY, .words = "a snapshot is being taken"};
    bool packs = request->op == BC_FILE_OP_PACK;
    if (!packs && quiet_is_packing(init) && !quiet_may_run(request->op)) {
        refuse_with(init, stream, &why);
        return false;
    }
    if (!packs) return true;
    request->hidden_places = find_hidden(init);
    if (quiet_check(init, &why, words, sizeof words)) return true;
    refuse_with(init, stream, &why);
    return false;
}

void file_start(struct init *init, const bc_frame *frame)
{
    struct file_request request = {.layers = {-1, -1, -1}};
    bc_wire_reader in = bc_wire_read(frame);
    if (!read_request(&request, &in)) init_die(init, "malformed file request");
    if (request.op == BC_FILE_OP_CHANGES && !find_layers(init, &request)) {
        refuse(init, frame->stream, BC_WIRE_EINVAL, "no copy-on-write mount is there");
        return;
    }
    if (!may_run(init, &request, frame->stream)) return;
    struct job *job = job_new(init, JOB_FILE, frame->stream);
    if (job == NULL) {
        refuse(init, frame->stream, BC_WIRE_ELIMIT, "too many commands and file operations run");
        return;
    }
    job->packs = request.op == BC_FILE_OP_PACK;
    int theirs[3] = {-1, -1, -1};
    long rc = open_streams(job, &request, theirs);
    if (rc >= 0) rc = SYS5(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (rc == 0) become_worker(theirs, &request, init->privileged);
    for (int i = 0; i < 3; i++) {
        if (theirs[i] >= 0) sys_close(theirs[i]);
    }
    if (rc > 0) {
        job->pid = (int)rc;
        return;
    }
    struct file_result failed = {.os_error = (uint32_t)-rc,
                                 .words = "no process for the file operation: too many run"};
    set_result(job, &failed);
    job_died(init, job, 0);
}

void file_report(struct init *init, struct job *job)
{
    while (job->result_fd >= 0) {
        job_read_result(job);
    }
    if (job->result_len == 0) {
        struct file_result lost = {.status = BC_WIRE_ELOST, .words = "its worker was killed"};
        if (job->cause != BC_EXIT_EXITED) {
            lost = (struct file_result){.status = BC_WIRE_ECANCELLED, .words = "cancelled"};
        }
        set_result(job, &lost);
    }
    send_frame(init, BC_FRAME_FILE_DONE, job->stream, job->result, job->result_len);
}
