#include "init.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include "carry.h"

/* While strays are being killed, or processes come to a stand: how soon to look again. */
#define ROUND_NS 2000000
/* Deaths taken note of in one turn; more than there are jobs, so that this is never the rule. */
#define REAP_AT_ONCE 1024

_Noreturn void init_die(struct init *init, const char *why)
{
    (void)init;
    (void)why; /* for the reader of the code and for debuggers: there is nobody left to tell */
    sys_exit(1);
}

/* ---- the channel ---- */

static void send_ready(struct init *init, const struct layers *layers)
{
    unsigned char payload[BC_FRAME_MAX_LAYERS * 256];
    bc_wire_writer out = {.data = payload, .cap = sizeof payload};
    bc_wire_put_u32(&out, BC_FRAME_VERSION);
    bc_wire_put_u32(&out, 0);
    bc_wire_put_u32(&out, layers->count);
    for (uint32_t i = 0; i < layers->count; i++) {
        bc_wire_put_string(&out, layers->row[i].name, strlen(layers->row[i].name));
        bc_wire_put_string(&out, layers->row[i].how, strlen(layers->row[i].how));
    }
    send_frame(init, BC_FRAME_READY, 0, payload, out.len);
}

static void on_credit(struct init *init, struct job *job, const bc_frame *frame)
{
    if (frame->length != 5) init_die(init, "malformed credit");
    struct output *output = frame->payload[0] == BC_FRAME_OUT ? &job->out : &job->err;
    uint32_t bytes = bc_get_u32(frame->payload + 1);
    if (bytes > BC_FRAME_WINDOW - output->credit) init_die(init, "too much credit");
    output->credit += bytes;
}

static void on_signal_request(struct init *init, struct job *job, const bc_frame *frame)
{
    if (frame->length != 4) init_die(init, "malformed signal");
    uint32_t sig = bc_get_u32(frame->payload);
    if (sig == 0 || sig > 64) init_die(init, "no such signal");
    if (job->kind != JOB_EXEC || job->pid == 0) return;
    __atomic_store_n(&job->reaper->signal_main, (int)sig, __ATOMIC_RELEASE);
    sys_kill(job->pid, SIGUSR1);
}

static void on_resize(struct init *init, struct job *job, const bc_frame *frame)
{
    if (frame->length != 8) init_die(init, "malformed size");
    exec_resize(job, bc_get_u32(frame->payload), bc_get_u32(frame->payload + 4));
}

static void on_hello(struct init *init, const bc_frame *frame)
{
    if (frame->length != 8 || bc_get_u32(frame->payload) != BC_FRAME_VERSION) {
        init_die(init, "a library of another version");
    }
}

static void on_frame(struct init *init, const bc_frame *frame)
{
    if (frame->stream & BC_FRAME_CARRIED) {
        carry_frame(init, frame);
        return;
    }
    if (frame->stream != 0) init->busy_us = sys_boot_us();
    if (frame->type == BC_FRAME_HELLO) {
        on_hello(init, frame);
        return;
    }
    if (frame->type == BC_FRAME_EXEC) {
        exec_start(init, frame);
        return;
    }
    if (frame->type == BC_FRAME_FILE) {
        file_start(init, frame);
        return;
    }
    if (frame->type == BC_FRAME_ASK) {
        ask_start(init, frame);
        return;
    }
    struct job *job = job_find(init, frame->stream);
    if (job == NULL || job->stage == JOB_DETACHED) return; /* it has just ended */
    switch (frame->type) {
    case BC_FRAME_INPUT: job_input(init, job, frame->payload, frame->length); break;
    case BC_FRAME_INPUT_END: job_input_end(init, job); break;
    case BC_FRAME_CREDIT: on_credit(init, job, frame); break;
    case BC_FRAME_SIGNAL: on_signal_request(init, job, frame); break;
    case BC_FRAME_CANCEL: job_cancel(job); break;
    case BC_FRAME_RESIZE: on_resize(init, job, frame); break;
    default: break;
    }
}

static void read_channel(struct init *init)
{
    unsigned char *room = queue_room(&init->in, BC_FRAME_MAX_DATA + BC_FRAME_HEADER);
    if (room == NULL) init_die(init, "out of memory");
    long n = sys_read(init->channel_fd, room, BC_FRAME_MAX_DATA + BC_FRAME_HEADER);
    if (n == -EINTR || n == -EAGAIN) return;
    if (n <= 0) init_die(init, "the library is gone");
    init->in.len += (size_t)n;
    bc_frame frame;
    int64_t size;
    while ((size = bc_frame_parse(&frame, init->in.data + init->in.start, init->in.len,
                                  bc_frame_max_to_guest)) > 0) {
        on_frame(init, &frame);
        queue_drop(&init->in, (size_t)size);
    }
    if (size < 0) init_die(init, "malformed frame");
}

/* ---- deaths ---- */

static bool is_job(void *ud, int pid)
{
    const struct init *init = ud;
    for (unsigned i = 0; i < init->job_count; i++) {
        if (init->jobs[i]->pid == pid) return true;
    }
    return false;
}

/* Process 1 has children that are no jobs only when a supervisor was killed, by a command of its
 * own user or because it took too long: what it supervised must not live on. Repeated by every turn
 * until none is left. */
static void kill_strays(struct init *init)
{
    char *stack_top = init->probe_stack + sizeof init->probe_stack;
    init->strays = reaper_kill_tree(&init->tree, stack_top, is_job, init) > 0;
}

/* As many as one turn has time for; with strays, every turn calls it. */
static void reap(struct init *init)
{
    for (int i = 0; i < REAP_AT_ONCE; i++) {
        int status;
        long pid = sys_wait4(-1, &status, WNOHANG | __WALL, NULL);
        if (pid == -EINTR) continue;
        if (pid <= 0) return;
        struct job *job = NULL;
        for (unsigned k = 0; k < init->job_count && job == NULL; k++) {
            if (init->jobs[k]->pid == pid) job = init->jobs[k];
        }
        if (job == NULL && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) {
            init->strays_killed++;
        }
        if (job == NULL || WIFSIGNALED(status)) init->strays = true;
        if (job != NULL) job_died(init, job, status);
    }
    init->strays = true; /* or at least more deaths */
}

/* ---- time ---- */

_Noreturn void init_end(struct init *init, uint32_t why)
{
    unsigned char bytes[4];
    bc_put_u32(bytes, why);
    send_frame(init, BC_FRAME_ENDING, 0, bytes, sizeof bytes);
    send_flush(init);
    sys_exit(0);
}

/* A detached command does not keep the sandbox from being idle; a pause is meant to last. */
static int64_t idle_end(const struct init *init)
{
    if (init->idle_us == 0 || init->paused) return NEVER_US;
    for (unsigned i = 0; i < init->job_count; i++) {
        if (init->jobs[i]->stage != JOB_DETACHED) return NEVER_US;
    }
    return init->busy_us + init->idle_us;
}

static void note_business(struct init *init)
{
    if (init->idle_us == 0) return;
    bool busy = init->paused;
    for (unsigned i = 0; i < init->job_count && !busy; i++) {
        busy = init->jobs[i]->stage != JOB_DETACHED;
    }
    if (busy) init->busy_us = sys_boot_us();
}

static void on_time(struct init *init)
{
    int64_t now = sys_boot_us();
    if (init->lease_end_us <= now && init->pause_at_lease_end) {
        init->lease_end_us = NEVER_US;
        pause_start(init, 0);
    }
    if (init->lease_end_us <= now) init_end(init, BC_ENDING_LEASE);
    if (idle_end(init) <= now) init_end(init, BC_ENDING_IDLE);
    if (init->paused) return; /* time stands still for the commands */
    for (unsigned i = 0; i < init->job_count; i++) {
        job_deadline(init, init->jobs[i], now);
    }
    if (init->look_us != 0 && init->look_us <= now) {
        watch_look(init);
        init->look_us = 0;
    }
}

/* The timer may be early (its job has ended before), never late. */
static void arm_timer(struct init *init)
{
    int64_t next = init->lease_end_us, idle = idle_end(init);
    if (idle < next) next = idle;
    int64_t interval = init->look_us == 0 && !init->paused ? watch_interval(init) : 0;
    if (interval != 0) init->look_us = sys_boot_us() + interval;
    if (init->look_us != 0 && init->look_us < next) next = init->look_us;
    int64_t breath = init->carry == NULL ? 0 : init->carry->breath_us;
    if (breath != 0 && breath < next) next = breath;
    for (unsigned i = 0; i < init->job_count && !init->paused; i++) {
        int64_t deadline = init->jobs[i]->deadline_us;
        if (deadline != 0 && deadline < next) next = deadline;
    }
    if (init->armed_us != 0 && init->armed_us <= next) return;
    struct itimerspec spec = {.it_value = {next / 1000000, next % 1000000 * 1000}};
    SYS4(SYS_timerfd_settime, init->timer_fd, TFD_TIMER_ABSTIME, &spec, NULL);
    init->armed_us = next;
}

/* ---- the loop ---- */

static void watch(struct watch_list *list, struct job *job, int what, int fd, short events)
{
    if (fd < 0) return;
    list->fds[list->count] = (struct pollfd){.fd = fd, .events = events};
    list->of[list->count++] = (struct watched){.job = job, .what = what};
}

static void watch_jobs(struct init *init, struct watch_list *list)
{
    for (unsigned i = 0; i < init->job_count; i++) {
        struct job *job = init->jobs[i];
        if (job->in.len > 0 || job->in_ended) watch(list, job, WATCH_IN, job->in_fd, POLLOUT);
        if (output_wants_read(init, &job->out)) watch(list, job, WATCH_OUT, job->out.fd, POLLIN);
        if (output_wants_read(init, &job->err)) watch(list, job, WATCH_ERR, job->err.fd, POLLIN);
        watch(list, job, WATCH_RESULT, job->result_fd, POLLIN);
    }
}

static void serve(struct init *init, const struct watch_list *list)
{
    for (unsigned i = FIXED_FDS; i < list->count; i++) {
        if (list->fds[i].revents == 0) continue;
        struct job *job = list->of[i].job;
        switch (list->of[i].what) {
        case WATCH_IN: job_write_input(init, job); break;
        case WATCH_OUT: output_read(init, job, &job->out, false); break;
        case WATCH_ERR: output_read(init, job, &job->err, false); break;
        case WATCH_RESULT: job_read_result(job); break;
        default: carry_serve(init, &list->fds[i], &list->of[i]); break;
        }
    }
}

static void step_jobs(struct init *init)
{
    for (unsigned i = init->job_count; i-- > 0;) { /* a job that is over is freed */
        job_step(init, init->jobs[i]);
    }
}

static void drain_fd(int fd)
{
    unsigned char bytes[1024];
    while (sys_read(fd, bytes, sizeof bytes) > 0) {}
}

static void turn(struct init *init)
{
    struct watch_list *list = &init->watched;
    struct pollfd *polled = list->fds;
    int waiting_fd = init->out.len > 0 ? init->out_fd : -1;
    polled[0] = (struct pollfd){.fd = init->channel_fd, .events = POLLIN};
    polled[1] = (struct pollfd){.fd = init->alive_fd, .events = 0};
    polled[2] = (struct pollfd){.fd = init->signal_fd, .events = POLLIN};
    polled[3] = (struct pollfd){.fd = init->timer_fd, .events = POLLIN};
    polled[4] = (struct pollfd){.fd = waiting_fd, .events = POLLOUT};
    arm_timer(init);
    list->count = FIXED_FDS;
    watch_jobs(init, list);
    if (init->carry != NULL) carry_watch(init, list);
    bool soon = init->strays || init->pausing;
    long rc = sys_poll(polled, list->count, soon ? ROUND_NS : -1);
    if (rc == -EINTR) return;
    if (rc < 0) init_die(init, "cannot wait"); /* deaf, it would be of no use */
    if (polled[1].revents != 0) init_die(init, "the launcher is gone");
    serve(init, list);
    if (polled[0].revents != 0) read_channel(init);
    if (polled[3].revents != 0) {
        drain_fd(init->timer_fd);
        init->armed_us = 0;
        on_time(init);
    }
    if (polled[2].revents != 0) drain_fd(init->signal_fd);
    if (polled[2].revents != 0 || init->strays) reap(init);
    if (init->strays) kill_strays(init);
    pause_step(init);
    note_business(init);
    step_jobs(init);
    send_flush(init);
}

_Noreturn void init_main(const struct plan *plan, const struct layers *layers)
{
    static struct init init;
    const sys_sigset all = ~(sys_sigset)0;
    const sys_sigset handled = SYS_SIGSET_OF(SIGCHLD) | SYS_SIGSET_OF(SIGUSR1);
    init.channel_fd = plan->channel_fd;
    init.out_fd = plan->out_fd < 0 ? plan->channel_fd : plan->out_fd;
    init.alive_fd = plan->alive_fd;
    init.privileged = plan->privileged;
    init.limits = plan->limits;
    init.mounts = &plan->mounts;
    init.memory_by = plan->groups.memory;
    init.pids_by = plan->groups.pids;
    init.apart = plan->groups.apart;
    memcpy(init.group_files, plan->groups.files, sizeof init.group_files);
    init.busy_us = sys_boot_us();
    init.lease_end_us = init.busy_us + plan->lease_ms * 1000;
    init.idle_us = plan->idle_ms * 1000;
    init.pause_at_lease_end = plan->pause_at_lease_end;
    init.usage.sampled_us = sys_boot_us();
    sys_sigprocmask(SIG_SETMASK, &all);
    init.signal_fd = (int)sys_signalfd(&handled, O_CLOEXEC | O_NONBLOCK);
    init.timer_fd = (int)SYS2(SYS_timerfd_create, CLOCK_BOOTTIME, O_CLOEXEC | O_NONBLOCK);
    if (plan->sockets.count > 0) init.carry = carry_new(plan);
    bool lacks_memory = plan->sockets.count > 0 && init.carry == NULL;
    if (init.signal_fd < 0 || init.timer_fd < 0 || lacks_memory) {
        struct failure why = {0};
        int lacking = init.signal_fd < 0 ? init.signal_fd : init.timer_fd;
        fail_os(&why, lacks_memory ? ENOMEM : -lacking, "watch for signals, time and connections");
        failure_send(init.out_fd, BC_FRAME_FAILED, 0, &why);
        init_die(&init, "no descriptors");
    }
    sys_fcntl(init.channel_fd, F_SETFL, O_NONBLOCK);
    sys_fcntl(init.out_fd, F_SETFL, O_NONBLOCK);
    send_ready(&init, layers);
    send_flush(&init);
    for (;;) {
        turn(&init);
    }
}
