/* How a command ended, and what it used. */
#include "init.h"

#include <sys/wait.h>

void exec_note_start(struct init *init, struct job *job)
{
    usage_sample_counted(init);
    job->oom_before = meter_oom_kills(init);
    job->pids_before = meter_pid_refusals(init) + init->pids_full;
    uint64_t used;
    if (!meter_storage(&used, &job->full_before)) job->full_before = false;
    for (unsigned i = 0; i < init->job_count; i++) {
        struct job *other = init->jobs[i];
        if (other != job && other->kind == JOB_EXEC) other->accompanied = job->accompanied = true;
    }
    job->cpu_known =
        init->apart && meter_cpu(init, &job->cpu_before.user_us, &job->cpu_before.system_us);
}

/* Killed by the kernel, or a shell that says so of its last command. */
static bool was_killed(int status)
{
    return (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) ||
           (WIFEXITED(status) && WEXITSTATUS(status) == 128 + SIGKILL);
}

/* A command that was refused something may cope with that. If it failed, the limit is the news. The
 * meters are of the whole sandbox: what they say may be about another that ran meanwhile. */
static uint32_t limit_behind(const struct init *init, const struct job *job, int status)
{
    uint64_t used;
    bool full = false;
    /* The command itself was one, too. */
    bool crowded =
        init->pids_by == BY_RLIMIT && (uint32_t)job->reaper->most_left + 1 >= init->limits.pids;
    bool may_be_its = !job->accompanied || was_killed(status);
    if (may_be_its && meter_oom_kills(init) > job->oom_before) return BC_EXIT_OOM;
    if (crowded) return BC_EXIT_PIDS;
    if (job->accompanied) return BC_EXIT_EXITED;
    if (meter_pid_refusals(init) + init->pids_full > job->pids_before) return BC_EXIT_PIDS;
    /* What fails on a disk that was full before says so itself, or has another reason. */
    if (!job->full_before && meter_storage(&used, &full) && full) return BC_EXIT_DISK_FULL;
    return BC_EXIT_EXITED;
}

bool exec_is_counted(const struct job *job)
{
    return job->cpu_known && !job->accompanied;
}

static void describe_end(const struct init *init, const struct job *job, bc_exit *e)
{
    const struct reaper *reaper = job->reaper;
    if (reaper->spawn_errno != 0) {
        e->reason = BC_EXIT_SPAWN_FAILED;
        e->spawn_errno = (uint32_t)reaper->spawn_errno;
        e->spawn_cwd = (uint32_t)reaper->spawn_cwd;
        return;
    }
    /* Without a status the supervisor was killed, and with it the command. */
    int status = reaper->main_done ? reaper->status : SIGKILL;
    if (WIFSIGNALED(status)) {
        e->reason = BC_EXIT_SIGNALED;
        e->term_signal = (uint32_t)WTERMSIG(status);
    } else {
        e->reason = BC_EXIT_EXITED;
        e->exit_code = (uint32_t)WEXITSTATUS(status);
    }
    if (job->cause != BC_EXIT_EXITED) {
        e->reason = job->cause;
    } else if (e->term_signal == SIGXCPU && init->limits.cpu_us > 0) {
        e->reason = BC_EXIT_CPU_TIME;
    } else if (status != 0) {
        uint32_t limit = limit_behind(init, job, status);
        if (limit != BC_EXIT_EXITED) e->reason = limit;
    }
}

/* What the supervisor has seen die; exact by the group's count when nothing else ran in it. */
static void describe_usage(const struct init *init, const struct job *job, bc_exit *e)
{
    const struct rusage *usage = &job->reaper->usage;
    e->user_us = us_of(usage->ru_utime);
    e->system_us = us_of(usage->ru_stime);
    e->max_rss_bytes = (uint64_t)usage->ru_maxrss * 1024;
    uint64_t user_us, system_us;
    if (exec_is_counted(job) && meter_cpu(init, &user_us, &system_us)) {
        e->user_us = user_us - job->cpu_before.user_us;
        e->system_us = system_us - job->cpu_before.system_us;
    }
}

void exec_report(struct init *init, struct job *job)
{
    const struct reaper *reaper = job->reaper;
    unsigned char bytes[BC_EXIT_BYTES];
    bc_wire_writer out = {.data = bytes, .cap = sizeof bytes};
    bc_exit e = {
        .left_running = (uint32_t)reaper->left_running + (job->orphaned ? init->strays_killed : 0),
        .out_dropped = job->out.dropped,
        .err_dropped = job->err.dropped,
    };
    if (job->orphaned) init->strays_killed = 0;
    usage_sample_counted(init);
    describe_end(init, job, &e);
    describe_usage(init, job, &e);
    int64_t ended_us = reaper->main_done ? reaper->ended_us : sys_boot_us();
    e.wall_us = (uint64_t)(ended_us - job->started_us);
    bc_wire_put_exit(&out, &e);
    send_frame(init, BC_FRAME_EXIT, job->stream, bytes, out.len);
}
