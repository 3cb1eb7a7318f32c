#include "init.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/wait.h>

/* How long a killed tree may take to be gone before its supervisor is killed, too; below the
 * library's patience (BC_EXEC_PATIENCE_MS). */
#define KILL_LIMIT_US 4000000
/* How long a cancelled worker may take to tidy up. */
#define WORKER_LIMIT_US 500000
/* When a command has ended, its pipes hold at most this much (the kernel's limit for ordinary
 * users is 1 MiB). What comes beyond is from somebody who still writes, and is not waited for. */
#define DEAD_PIPE_BYTES (2u << 20)
/* Input credit is given back in steps of this size, not byte by byte. */
#define GRANT_STEP (64u << 10)

struct job *job_find(struct init *init, uint32_t stream)
{
    for (unsigned i = 0; i < init->job_count; i++) {
        if (init->jobs[i]->stream == stream) return init->jobs[i];
    }
    return NULL;
}

struct job *job_new(struct init *init, enum job_kind kind, uint32_t stream)
{
    if (stream == 0 || job_find(init, stream) != NULL) init_die(init, "stream used twice");
    if (init->job_count == MAX_JOBS) return NULL;
    struct job *job = calloc(1, sizeof *job);
    if (job == NULL) init_die(init, "out of memory");
    job->kind = kind;
    job->stream = stream;
    job->out.fd = job->err.fd = job->in_fd = job->result_fd = -1;
    job->started_us = sys_boot_us();
    init->jobs[init->job_count++] = job;
    return job;
}

unsigned job_count_detached(const struct init *init)
{
    unsigned count = 0;
    for (unsigned i = 0; i < init->job_count; i++) {
        if (init->jobs[i]->detach) count++;
    }
    return count;
}

static void job_free(struct init *init, struct job *job)
{
    for (unsigned i = 0; i < init->job_count; i++) {
        if (init->jobs[i] == job) init->jobs[i] = init->jobs[--init->job_count];
    }
    if (job->reaper != NULL) usage_add_ended(init, job);
    output_free(&job->out);
    output_free(&job->err);
    if (job->in_fd >= 0) sys_close(job->in_fd);
    if (job->result_fd >= 0) sys_close(job->result_fd);
    if (job->reaper != NULL && init->spare == NULL) {
        init->spare = job->reaper;
    } else if (job->reaper != NULL) {
        reaper_free(job->reaper);
    }
    queue_free(&job->in);
    free(job->request);
    free(job->lists[0]);
    free(job->lists[1]);
    free(job);
}

/* ---- input ---- */

static void grant(struct init *init, struct job *job, size_t consumed)
{
    unsigned char bytes[4];
    job->in_done += (uint32_t)consumed;
    if (job->in_done == 0 || (job->in_done < GRANT_STEP && job->in.len > 0)) return;
    bc_put_u32(bytes, job->in_done);
    send_frame(init, BC_FRAME_GRANT, job->stream, bytes, sizeof bytes);
    job->in_done = 0;
}

/* Nobody reads it: it is taken all the same, so that the sender is never stuck. */
static void drop_input(struct init *init, struct job *job)
{
    size_t len = job->in.len;
    queue_drop(&job->in, len);
    grant(init, job, len);
    if (job->in_fd >= 0) sys_close(job->in_fd);
    job->in_fd = -1;
}

void job_write_input(struct init *init, struct job *job)
{
    while (job->in_fd >= 0 && job->in.len > 0) {
        long n = sys_write(job->in_fd, job->in.data + job->in.start, job->in.len);
        if (n == -EINTR) continue;
        if (n == -EAGAIN) return;
        if (n < 0) {
            drop_input(init, job);
            return;
        }
        queue_drop(&job->in, (size_t)n);
        grant(init, job, (size_t)n);
    }
    if (!job->in_ended || job->in_fd < 0) return;
    if (job->terminal) { /* closing it would hang up; this is what a person types */
        if (sys_write(job->in_fd, "\4", 1) != -EAGAIN) job->in_ended = false;
        return;
    }
    sys_close(job->in_fd);
    job->in_fd = -1;
}

void job_input(struct init *init, struct job *job, const unsigned char *data, uint32_t len)
{
    if (job->in_ended || len > BC_FRAME_WINDOW - job->in.len) init_die(init, "input over credit");
    if (!queue_put(&job->in, data, len)) init_die(init, "out of memory");
    if (job->in_fd < 0) {
        drop_input(init, job);
    } else {
        job_write_input(init, job);
    }
}

void job_input_end(struct init *init, struct job *job)
{
    job->in_ended = true;
    job_write_input(init, job);
}

void job_read_result(struct job *job)
{
    size_t room = sizeof job->result - job->result_len;
    long n = sys_read(job->result_fd, job->result + job->result_len, room);
    if (n == -EINTR) return;
    if (n > 0) job->result_len += (size_t)n;
    if (n <= 0 || job->result_len == sizeof job->result) {
        sys_close(job->result_fd);
        job->result_fd = -1;
    }
}

/* ---- ends ---- */

static void kill_job(struct job *job)
{
    job->stage = JOB_KILLING;
    job->deadline_us = sys_boot_us() + KILL_LIMIT_US;
    if (job->kind == JOB_EXEC) {
        exec_stop(job, SIGKILL);
    } else {
        sys_kill(job->pid, SIGKILL);
    }
}

static bool main_has_ended(const struct job *job)
{
    return job->reaper != NULL && __atomic_load_n(&job->reaper->main_done, __ATOMIC_ACQUIRE);
}

static void discard_output(struct output *output)
{
    output->discard = true;
    free(output->tail);
    output->tail = NULL;
    output->tail_len = 0;
}

void job_cancel(struct job *job)
{
    if (job->stage == JOB_DETACHED) return;
    if (job->stage == JOB_DRAINING) { /* over, but nobody takes its output */
        discard_output(&job->out);
        discard_output(&job->err);
        return;
    }
    if (job->cause == BC_EXIT_EXITED && !main_has_ended(job)) job->cause = BC_EXIT_CANCELLED;
    if (job->kind == JOB_EXEC) {
        kill_job(job);
        return;
    }
    /* A worker may have a half-written file to remove: it is asked first. */
    sys_kill(job->pid, SIGTERM);
    job->stage = JOB_TERMINATING;
    job->deadline_us = sys_boot_us() + WORKER_LIMIT_US;
}

void job_over_limit(struct job *job, uint32_t cause)
{
    if (job->kind != JOB_EXEC || job->pid == 0) return;
    if (job->stage == JOB_DETACHED) { /* its result has been sent */
        exec_stop(job, SIGKILL);
    } else if (job->stage == JOB_RUNNING || job->stage == JOB_TERMINATING) {
        if (job->cause == BC_EXIT_EXITED && !main_has_ended(job)) job->cause = cause;
        kill_job(job);
    }
}

/* What comes at its end or after it was written before. */
uint64_t job_count_output(const struct init *init, struct job *job, uint64_t bytes)
{
    uint64_t limit = init->limits.output_bytes, before = job->written;
    if (job->kind != JOB_EXEC || job->stage == JOB_DETACHED) return bytes;
    job->written += bytes;
    if (limit == 0 || job->written <= limit) return bytes;
    if (job->cause == BC_EXIT_EXITED) job->cause = BC_EXIT_OUTPUT;
    job_over_limit(job, BC_EXIT_OUTPUT);
    return before < limit ? limit - before : 0;
}

void job_deadline(struct init *init, struct job *job, int64_t now_us)
{
    if (job->deadline_us == 0 || job->deadline_us > now_us) return;
    job->deadline_us = 0;
    switch (job->stage) {
    case JOB_RUNNING:
        if (!main_has_ended(job)) job->cause = BC_EXIT_TIMEOUT;
        if (job->grace_ms <= 0 || job->kind == JOB_FILE) {
            kill_job(job);
            break;
        }
        exec_stop(job, SIGTERM);
        job->stage = JOB_TERMINATING;
        job->deadline_us = now_us + us_of_ms(job->grace_ms);
        break;
    case JOB_TERMINATING: kill_job(job); break;
    case JOB_KILLING: sys_kill(job->pid, SIGKILL); break; /* the supervisor itself */
    case JOB_DRAINING:
    case JOB_DETACHED: break;
    }
    (void)init;
}

void job_died(struct init *init, struct job *job, int status)
{
    job->pid = 0;
    job->deadline_us = 0;
    if (job->stage == JOB_DETACHED) {
        job_free(init, job);
        return;
    }
    job->stage = JOB_DRAINING;
    job->orphaned = job->kind == JOB_EXEC && WIFSIGNALED(status);
    if (job->in_fd >= 0) drop_input(init, job);
}

/* Reads what is left, as far as credit goes. */
static bool drain(struct init *init, struct job *job, struct output *output)
{
    while (output_wants_read(init, output)) {
        output_read(init, job, output, true);
        if (output->fd >= 0 && output->read_dead > DEAD_PIPE_BYTES) {
            sys_close(output->fd);
            output->fd = -1;
        }
    }
    return output->fd < 0 && output_flush(init, job, output);
}

/* The command has ended but left something running that may live on: its output so far is the
 * result, what comes later is read and dropped, so that nobody is stopped by a full pipe. */
static void report_detached(struct init *init, struct job *job)
{
    job->stage = JOB_DETACHED;
    job->deadline_us = 0;
    exec_report(init, job);
    discard_output(&job->out);
    discard_output(&job->err);
    if (job->in_fd >= 0) drop_input(init, job);
}

/* For a detached command: takes what is in the pipe now, without waiting for its end. Once what was
 * kept begins to leave, nothing is added to it: that would be more than its cap. */
static bool take_present(struct init *init, struct job *job, struct output *output)
{
    while (!output->complete && output->fd >= 0 && output->read_dead <= DEAD_PIPE_BYTES) {
        if (!output_wants_read(init, output)) return false; /* no credit */
        struct pollfd pfd = {.fd = output->fd, .events = POLLIN};
        if (sys_poll(&pfd, 1, 0) <= 0) break;
        output_read(init, job, output, true);
    }
    output->complete = true;
    return output_flush(init, job, output);
}

void job_step(struct init *init, struct job *job)
{
    if (job->stage == JOB_DRAINING) {
        if (job->orphaned && init->strays) return;
        bool out_done = drain(init, job, &job->out);
        bool err_done = drain(init, job, &job->err);
        if (!out_done || !err_done) return;
        if (job->kind == JOB_EXEC) {
            exec_report(init, job);
        } else {
            file_report(init, job);
        }
        job_free(init, job);
    } else if (job->stage == JOB_RUNNING && job->detach && main_has_ended(job)) {
        bool out_done = take_present(init, job, &job->out);
        bool err_done = take_present(init, job, &job->err);
        if (out_done && err_done) report_detached(init, job);
    }
}
