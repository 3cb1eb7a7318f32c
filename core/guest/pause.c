/*
 * Standing still: every process of the sandbox is frozen, process 1 is not, so that it keeps the
 * lease and answers. A control group's freezer is not seen from inside. Without one the processes
 * are stopped by signal, all at once: that is seen by parents that ask for it, and continuing
 * wakes those, too, that had stopped by themselves.
 */
#include "census.h"
#include "init.h"

#include <errno.h>

/* How long to look whether all of them stand still. */
#define FREEZE_LIMIT_US 3000000

static struct census census;

static bool has_freezer(const struct init *init)
{
    return init->group_files[GROUP_FREEZE] >= 0 && init->group_files[GROUP_EVENTS] >= 0;
}

static bool park(const struct init *init, int pid)
{
    char digits[12];
    int n = (int)sizeof digits;
    for (; pid > 0; pid /= 10) {
        digits[--n] = (char)('0' + pid % 10);
    }
    size_t len = sizeof digits - (size_t)n;
    return sys_write(init->group_files[GROUP_PARK], digits + n, len) == (long)len;
}

/* Process 1 and its helpers leave the group of the commands, which enter it by themselves from
 * now on: first those that are just being started. */
static bool step_aside(struct init *init)
{
    if (init->apart) return true;
    for (unsigned i = 0; i < init->job_count; i++) {
        struct job *job = init->jobs[i];
        if (job->reaper == NULL) continue;
        __atomic_store_n(&job->reaper->command.enter, init->group_files + GROUP_ENTER,
                         __ATOMIC_RELEASE);
    }
    for (unsigned i = 0; i < init->job_count; i++) {
        if (init->jobs[i]->pid != 0) park(init, init->jobs[i]->pid); /* it may have just ended */
    }
    init->apart = park(init, 1);
    return init->apart;
}

static void stop_all(struct init *init)
{
    if (has_freezer(init)) {
        sys_write(init->group_files[GROUP_FREEZE], "1", 1);
        return;
    }
    sys_kill(-1, SIGSTOP);
    for (unsigned i = 0; i < init->job_count; i++) { /* the file operations go on */
        const struct job *job = init->jobs[i];
        if (job->kind == JOB_FILE && job->pid != 0) sys_kill(job->pid, SIGCONT);
    }
}

static void continue_all(struct init *init)
{
    if (has_freezer(init)) {
        sys_write(init->group_files[GROUP_FREEZE], "0", 1);
    } else {
        sys_kill(-1, SIGCONT);
    }
}

static bool stand_still(struct init *init)
{
    if (has_freezer(init)) return meter_is_frozen(init);
    if (!census_take(init, &census, CENSUS_MAX)) return true; /* nobody can be asked */
    for (int i = 0; i < census.count; i++) {
        const struct person *person = &census.of[i];
        bool works = person->job >= 0 && init->jobs[person->job]->kind == JOB_FILE;
        /* A supervisor that waits for its command to start sleeps in the kernel. */
        bool stopped = strchr("TtZXD", person->state) != NULL;
        if (!works && !stopped) return false;
    }
    return true;
}

static void tell_state(struct init *init)
{
    unsigned char bytes[4];
    bc_put_u32(bytes, init->paused);
    send_frame(init, BC_FRAME_STATE, 0, bytes, sizeof bytes);
}

void pause_start(struct init *init, uint32_t stream)
{
    if (init->pausing) { /* one at a time */
        if (stream != 0) ask_answer(init, stream, BC_WIRE_EBUSY, "it is being paused already");
        return;
    }
    if (init->paused) {
        if (stream != 0) ask_answer(init, stream, 0, "");
        return;
    }
    if (has_freezer(init) && !step_aside(init)) {
        if (stream == 0) init_end(init, BC_ENDING_LEASE);
        ask_answer(init, stream, BC_WIRE_EPERMISSION, "cannot leave the group");
        return;
    }
    init->pausing = true;
    init->paused = true;
    init->pause_stream = stream;
    init->paused_us = sys_boot_us();
    stop_all(init);
}

static void resume(struct init *init)
{
    int64_t rest_us = sys_boot_us() - init->paused_us;
    continue_all(init);
    init->paused = init->pausing = false;
    for (unsigned i = 0; i < init->job_count; i++) {
        if (init->jobs[i]->deadline_us != 0) init->jobs[i]->deadline_us += rest_us;
    }
    init->armed_us = 0;
}

/* The time is over of a sandbox that is paused then, and nobody has given it more. */
static bool lease_is_over(const struct init *init)
{
    return init->pause_at_lease_end && init->lease_end_us == NEVER_US;
}

void pause_step(struct init *init)
{
    if (!init->pausing) return;
    if (stand_still(init)) {
        init->pausing = false;
        if (init->pause_stream != 0) ask_answer(init, init->pause_stream, 0, "");
        if (init->pause_stream == 0) tell_state(init);
    } else if (sys_boot_us() - init->paused_us > FREEZE_LIMIT_US) {
        if (lease_is_over(init)) init_end(init, BC_ENDING_LEASE);
        resume(init);
        if (init->pause_stream == 0)
            return; /* nobody asked, and the lease was extended meanwhile */
        ask_answer(init, init->pause_stream, BC_WIRE_ETIMEDOUT, "a process does not stand still");
    }
}

void pause_end(struct init *init, uint32_t stream)
{
    if (init->pausing) {
        ask_answer(init, stream, BC_WIRE_EBUSY, "it is just being paused");
        return;
    }
    if (lease_is_over(init)) {
        ask_answer(init, stream, BC_WIRE_ELIMIT, "the lease is over: extend it first");
        return;
    }
    if (init->paused) resume(init);
    ask_answer(init, stream, 0, "");
}
