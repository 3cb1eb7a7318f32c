/*
 * The launcher's loop: START clones a sandbox, KILL ends one, deaths and leases are reported.
 * It ends, and its sandboxes with it, when the control socket or the host process is gone: the
 * socket alone would not tell as long as a forked child of the host keeps it open.
 */
#include "launcher.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "files.h"

/* Process 1 ends its sandbox when the lease is over; the launcher does it this much later, should
 * process 1 not be able to. */
#define LEASE_MARGIN_MS 500
#define SHUTDOWN_WAIT_MS 2000
/* How often a group that could not be removed yet is tried again; its last processes are dying. */
#define GROUPS_ROUND_MS 5
/* At the end: less than the library waits for that (BC_LAUNCHER_END_MS). */
#define GROUPS_WAIT_MS 300
/* After this long without a request the next sandbox's network is made. */
#define IDLE_MS 20

/* The end of a sandbox, for the library. */
struct report {
    uint32_t tag, status, ending;
    uint32_t counted; /* the times are the kernel's count */
    uint64_t user_us, system_us;
};

struct launcher {
    int control_fd, host_pidfd, timer_fd;
    int alive_read_fd, alive_write_fd; /* every sandbox watches the reading end */
    int64_t armed_ms;                  /* what the timer is set to; 0: off */
    struct world world;
    struct child *children;
    struct pollfd *polled;
    unsigned count, capacity;
    /* Not taken by the socket yet. No request is read meanwhile, so there are never more than the
     * sandboxes that there were, and one that could not start. */
    struct report *unreported;
    unsigned unreported_count;
};

static int64_t now_ms(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_BOOTTIME, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* Never waits: a host that reads nothing must not keep the launcher from seeing it die. */
static int send_control(const struct launcher *l, uint32_t type, uint32_t tag,
                        const bc_wire_writer *payload)
{
    unsigned char message[BC_FRAME_HEADER + 128];
    bc_wire_writer out = {.data = message, .len = BC_FRAME_HEADER, .cap = sizeof message};
    bc_wire_put(&out, payload->data, payload->len);
    bc_frame_put_header(message, type, tag, (uint32_t)payload->len);
    return (int)send(l->control_fd, message, out.len, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* ---- starting ---- */

static int grow(struct launcher *l)
{
    unsigned capacity = l->capacity == 0 ? 16 : l->capacity * 2;
    struct child *children = realloc(l->children, capacity * sizeof *children);
    if (children != NULL) l->children = children;
    struct pollfd *polled = realloc(l->polled, (capacity + 3) * sizeof *polled);
    if (polled != NULL) l->polled = polled;
    struct report *unreported = realloc(l->unreported, (capacity + 1) * sizeof *unreported);
    if (unreported != NULL) l->unreported = unreported;
    if (children == NULL || polled == NULL || unreported == NULL) return -1;
    l->capacity = capacity;
    return 0;
}

static void set_lease(struct child *child, int64_t ms, bool pause)
{
    child->lease_end_ms = pause ? 0 : now_ms() + ms + LEASE_MARGIN_MS;
}

/* The sockets go to the library before anything runs that could connect to them. */
static int send_listeners(const struct launcher *l, uint32_t tag, struct network_sockets *sockets,
                          struct failure *why)
{
    unsigned char header[BC_FRAME_HEADER];
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof sockets->fds)];
    } control = {0};
    struct iovec iov = {.iov_base = header, .iov_len = sizeof header};
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.bytes};
    size_t bytes = sockets->count * sizeof *sockets->fds;
    msg.msg_controllen = CMSG_SPACE(bytes);
    struct cmsghdr *head = CMSG_FIRSTHDR(&msg);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(bytes);
    memcpy(CMSG_DATA(head), sockets->fds, bytes);
    bc_frame_put_header(header, BC_CONTROL_LISTENERS, tag, 0);
    ssize_t n = sendmsg(l->control_fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
    return n < 0 ? fail_os(why, errno, "hand over the sandbox's network") : 0;
}

/* Opens the ways out, for the library or, in the plan, for process 1. */
static int give_network(struct launcher *l, struct plan *plan, struct failure *why)
{
    if (plan->network.port_count == 0) return 0;
    if (network_open(&l->world, &plan->network, &plan->sockets, why) < 0) return -1;
    if (plan->carry) return 0;
    int rc = send_listeners(l, plan->tag, &plan->sockets, why);
    network_close(&plan->sockets);
    return rc;
}

static int clone_with_mounts(struct launcher *l, struct child *child, struct plan *plan,
                             struct failure *why)
{
    unsigned user = plan->privileged ? child->slot.base + SANDBOX_UID : 0;
    if (mounts_open(&l->world, &plan->mounts, user, why) < 0) return -1;
    int rc = give_network(l, plan, why);
    if (rc == 0) rc = clone_sandbox(&l->world, child, plan, why);
    /* One that has ways out is for nobody else. */
    if (rc < 0 && plan->network.port_count > 0) l->world.network_fresh = false;
    mounts_close(&plan->mounts); /* the sandbox has its copy */
    network_close(&plan->sockets);
    return rc;
}

static int start(struct launcher *l, struct plan *plan, struct failure *why)
{
    char mounted[64] = WORLD_HOST_TEMPLATE;
    if (l->count == LAUNCHER_MAX_SANDBOXES || (l->count == l->capacity && grow(l) < 0)) {
        return fail_status(why, BC_WIRE_ELIMIT, "at most %d sandboxes of one runtime at a time",
                           LAUNCHER_MAX_SANDBOXES);
    }
    if (strcmp(plan->template_name, "host") != 0 &&
        template_dir_open(&l->world, plan->template_name, mounted, sizeof mounted, why) < 0) {
        return -1;
    }
    plan->template_at = mounted;
    plan->privileged = l->world.privileged;
    struct child child = {.tag = plan->tag, .pidfd = -1, .slot.lock_fd = -1};
    child.oom_kills = groups_oom_kills(&l->world.groups);
    set_lease(&child, plan->lease_ms, plan->pause_at_lease_end);
    struct groups *groups = &l->world.groups;
    if (groups_make(groups, plan->tag, &plan->limits, plan->best_effort, &plan->groups, why) < 0) {
        return -1;
    }
    int rc = plan->privileged ? slot_take(&l->world, &child.slot, why) : 0;
    plan->alive_fd = l->alive_read_fd;
    if (rc == 0) rc = clone_with_mounts(l, &child, plan, why);
    groups_let_go(&plan->groups);
    if (rc < 0) {
        slot_give_back(&l->world, &child.slot);
        groups_remove(groups, plan->tag);
        return -1;
    }
    l->children[l->count++] = child;
    return 0;
}

/* ---- reports ---- */

static int send_report(const struct launcher *l, const struct report *report)
{
    unsigned char bytes[28];
    bc_wire_writer payload = {.data = bytes, .cap = sizeof bytes};
    bc_wire_put_u32(&payload, report->status);
    bc_wire_put_u32(&payload, report->ending);
    bc_wire_put_u32(&payload, report->counted);
    bc_wire_put_u64(&payload, report->user_us);
    bc_wire_put_u64(&payload, report->system_us);
    return send_control(l, BC_CONTROL_ENDED, report->tag, &payload);
}

/* Sends what waits, in order. A failure other than a full socket means that the library is gone. */
static void send_reports(struct launcher *l)
{
    unsigned sent = 0;
    while (sent < l->unreported_count) {
        if (send_report(l, &l->unreported[sent]) < 0 && errno == EAGAIN) break;
        sent++;
    }
    l->unreported_count -= sent;
    memmove(l->unreported, l->unreported + sent, l->unreported_count * sizeof *l->unreported);
}

static void report_ended(struct launcher *l, uint32_t tag, uint32_t status, uint32_t ending)
{
    struct report *report = &l->unreported[l->unreported_count++];
    *report = (struct report){.tag = tag, .status = status, .ending = ending};
    report->counted = groups_read_cpu(&l->world.groups, tag, &report->user_us, &report->system_us);
    if (l->unreported_count == 1) send_reports(l);
}

/* ---- requests ---- */

static void on_start(struct launcher *l, const bc_frame *frame, int channel_fd)
{
    struct plan plan;
    struct failure why = {0};
    if (!plan_read(&plan, frame) || channel_fd < 0) { /* no room for the descriptor, say */
        report_ended(l, plan.tag, 0, BC_ENDING_UNKNOWN);
        return;
    }
    plan.channel_fd = channel_fd;
    if (start(l, &plan, &why) < 0) {
        failure_send(channel_fd, BC_FRAME_FAILED, 0, &why);
        report_ended(l, plan.tag, 0, BC_ENDING_UNKNOWN);
    }
}

static void kill_child(struct child *child, uint32_t ending)
{
    if (child->ending == BC_ENDING_UNKNOWN) child->ending = ending;
    syscall(SYS_pidfd_send_signal, child->pidfd, SIGKILL, NULL, 0);
}

static void on_extend(struct child *child, const bc_frame *frame)
{
    bc_wire_reader in = bc_wire_read(frame);
    int64_t ms = (int64_t)bc_wire_u64(&in);
    if (bc_wire_done(&in)) set_lease(child, ms, child->lease_end_ms == 0);
}

/* One message with at most one descriptor; -1: the library is gone. */
static int on_control(struct launcher *l)
{
    static unsigned char message[BC_CONTROL_MAX_START];
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec iov = {.iov_base = message, .iov_len = sizeof message};
    struct msghdr msg = {.msg_iov = &iov,
                         .msg_iovlen = 1,
                         .msg_control = control.bytes,
                         .msg_controllen = sizeof control.bytes};
    ssize_t n = recvmsg(l->control_fd, &msg, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    if (n < 0) return errno == EINTR || errno == EAGAIN ? 0 : -1;
    if (n == 0) return -1;
    int fd = -1;
    struct cmsghdr *head = CMSG_FIRSTHDR(&msg);
    if (head != NULL && head->cmsg_type == SCM_RIGHTS) memcpy(&fd, CMSG_DATA(head), sizeof fd);
    bc_frame frame = {.length = bc_get_u32(message),
                      .type = bc_get_u32(message + 4),
                      .stream = bc_get_u32(message + 8),
                      .payload = message + BC_FRAME_HEADER};
    if (n >= (ssize_t)BC_FRAME_HEADER && frame.length == (size_t)n - BC_FRAME_HEADER) {
        if (frame.type == BC_CONTROL_START) on_start(l, &frame, fd);
        for (unsigned i = 0; i < l->count; i++) {
            struct child *child = &l->children[i];
            if (child->tag != frame.stream) continue;
            if (frame.type == BC_CONTROL_KILL) kill_child(child, BC_ENDING_KILLED);
            if (frame.type == BC_CONTROL_EXTEND) on_extend(child, &frame);
        }
    }
    if (fd >= 0) close(fd);
    return 0;
}

/* ---- deaths and leases ---- */

static void bury(struct launcher *l, unsigned i)
{
    struct child *child = &l->children[i];
    int status = 0;
    if (waitpid(child->pid, &status, WNOHANG | __WALL) != child->pid) return;
    slot_give_back(&l->world, &child->slot);
    /* The library sees the channel end and asks for the kill, often before this is known. */
    bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    if (killed && child->ending != BC_ENDING_LEASE &&
        groups_oom_kills(&l->world.groups) > child->oom_kills) {
        child->ending = BC_ENDING_OOM;
    }
    report_ended(l, child->tag, (uint32_t)status, child->ending);
    groups_remove(&l->world.groups, child->tag);
    close(child->pidfd);
    l->children[i] = l->children[--l->count];
}

static void check_leases(struct launcher *l)
{
    int64_t now = now_ms(), next = 0;
    for (unsigned i = 0; i < l->count; i++) {
        struct child *child = &l->children[i];
        if (child->ending != BC_ENDING_UNKNOWN || child->lease_end_ms == 0) continue;
        if (child->lease_end_ms <= now) {
            kill_child(child, BC_ENDING_LEASE);
        } else if (next == 0 || child->lease_end_ms < next) {
            next = child->lease_end_ms;
        }
    }
    /* Being woken early costs little; setting the timer for every sandbox would cost more. */
    if (next == 0 || (l->armed_ms > now && l->armed_ms <= next)) return;
    struct itimerspec spec = {.it_value = {next / 1000, next % 1000 * 1000000}};
    timerfd_settime(l->timer_fd, TFD_TIMER_ABSTIME, &spec, NULL);
    l->armed_ms = next;
}

/* Kills all sandboxes and waits for them, bounded; then the exit ends whatever is left by the
 * death signal. */
static _Noreturn void shut_down(struct launcher *l)
{
    for (unsigned i = 0; i < l->count; i++) {
        kill_child(&l->children[i], BC_ENDING_KILLED);
    }
    int64_t deadline = now_ms() + SHUTDOWN_WAIT_MS;
    while (l->count > 0 && now_ms() < deadline) {
        struct pollfd pfd = {.fd = l->children[0].pidfd, .events = POLLIN};
        poll(&pfd, 1, 100);
        bury(l, 0);
    }
    slots_close(&l->world);
    int64_t patience = now_ms() + GROUPS_WAIT_MS;
    while (!groups_close(&l->world.groups) && now_ms() < patience) {
        poll(NULL, 0, GROUPS_ROUND_MS);
    }
    _exit(0);
}

/* Nobody waits for the launcher now: the next sandbox will find its network ready. */
static void prepare_next(struct launcher *l)
{
    struct failure why; /* the next start tries again, and reports it */
    if (network_prepare(&l->world, &why) < 0) l->world.network_given_up = true;
}

static void wait_and_handle(struct launcher *l)
{
    short wanted = l->unreported_count > 0 ? POLLOUT : POLLIN;
    l->polled[0] = (struct pollfd){.fd = l->control_fd, .events = wanted};
    l->polled[1] = (struct pollfd){.fd = l->host_pidfd, .events = POLLIN};
    l->polled[2] = (struct pollfd){.fd = l->timer_fd, .events = POLLIN};
    for (unsigned i = 0; i < l->count; i++) {
        l->polled[3 + i] = (struct pollfd){.fd = l->children[i].pidfd, .events = POLLIN};
    }
    unsigned count = l->count;
    bool prepared = l->world.network_fresh || l->world.network_given_up;
    int patience = groups_settle(&l->world.groups) ? -1 : GROUPS_ROUND_MS;
    int ready = poll(l->polled, count + 3, prepared ? patience : IDLE_MS);
    if (ready < 0) return;
    if (ready == 0 && !prepared) prepare_next(l);
    if (l->polled[1].revents != 0 || l->polled[0].revents & POLLHUP) shut_down(l);
    /* Backwards, because burying moves the last one into the gap. */
    for (unsigned i = count; i-- > 0;) {
        if (l->polled[3 + i].revents != 0) bury(l, i);
    }
    if (l->polled[0].revents & POLLOUT) send_reports(l);
    if (l->polled[0].revents & POLLIN && on_control(l) < 0) shut_down(l);
    uint64_t expirations;
    if (l->polled[2].revents != 0) (void)!read(l->timer_fd, &expirations, sizeof expirations);
    check_leases(l);
}

static int open_launcher(struct launcher *l, struct failure *why)
{
    int alive[2];
    if (syscall(SYS_close_range, 5, ~0U, 0) < 0) {
        return fail_os(why, errno, "close what the host left open");
    }
    l->timer_fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    if (l->timer_fd < 0) return fail_os(why, errno, "create a timer");
    if (pipe2(alive, O_CLOEXEC) < 0) return fail_os(why, errno, "pipe");
    l->alive_read_fd = alive[0];
    l->alive_write_fd = alive[1];
    if (grow(l) < 0) return fail_os(why, ENOMEM, "start the launcher");
    if (world_enter(&l->world, why) < 0) return -1;
    return network_prepare(&l->world, why);
}

_Noreturn void launcher_main(int control_fd, int host_pidfd)
{
    static struct launcher l;
    struct failure why = {0};
    l.control_fd = control_fd;
    l.host_pidfd = host_pidfd;
    prctl(PR_SET_NAME, "barchan-launch");
    fcntl(control_fd, F_SETFD, FD_CLOEXEC);
    fcntl(host_pidfd, F_SETFD, FD_CLOEXEC);
    if (open_launcher(&l, &why) < 0) {
        failure_send(control_fd, BC_CONTROL_FAILED, 0, &why);
        _exit(1);
    }
    unsigned char text[128];
    bc_wire_writer payload = {.data = text, .cap = sizeof text};
    bc_wire_put_string(&payload, l.world.mode, strlen(l.world.mode));
    send_control(&l, BC_CONTROL_READY, 0, &payload);
    for (;;) {
        wait_and_handle(&l);
    }
}
