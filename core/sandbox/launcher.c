#include "launcher.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "base/cleanup.h"
#include "base/limits.h"
#include "guest_image.h"
#include "runtime/child.h"
#include "templates.h"

struct bc_launcher {
    bc_room *room;
    bc_child *child;
    bc_watch *watch;
    int control_fd;
    char mode[96];
    barchan_error error; /* code 0: none; why no sandbox can be made */
};

const char *bc_launcher_mode(const bc_launcher *launcher)
{
    return launcher->mode;
}

/* ---- from the launcher ---- */

static barchan_sandbox *find(bc_launcher *launcher, uint32_t tag)
{
    for (barchan_sandbox *sbx = launcher->room->sandboxes; sbx != NULL; sbx = sbx->next) {
        if (sbx->tag != 0 && sbx->tag == tag && sbx->backend_held) return sbx;
    }
    return NULL;
}

static void on_message(bc_launcher *launcher, const bc_frame *message)
{
    bc_wire_reader in = bc_wire_read(message);
    if (message->type == BC_CONTROL_READY) {
        const char *mode = bc_wire_string(&in, sizeof launcher->mode - 1);
        memcpy(launcher->mode, mode, strlen(mode) + 1);
    } else if (message->type == BC_CONTROL_FAILED) {
        if (bc_read_failure(&in, &launcher->error) < 0) {
            bc_error_set(&launcher->error, BARCHAN_EPROTOCOL, "the launcher failed");
        }
    } else if (message->type == BC_CONTROL_ENDED) {
        uint32_t status = bc_wire_u32(&in), ending = bc_wire_u32(&in), counted = bc_wire_u32(&in);
        uint64_t user_us = bc_wire_u64(&in), system_us = bc_wire_u64(&in);
        barchan_sandbox *sbx = find(launcher, message->stream);
        (void)status;
        if (sbx == NULL || !bc_wire_done(&in)) return;
        if (counted) bc_usage_ended(sbx, user_us, system_us);
        bc_sandbox_gone(sbx, ending, NULL);
    }
}

/* The sockets of a sandbox's network; those of one that has ended are closed. */
static void on_listeners(bc_launcher *launcher, uint32_t tag, int *fds, size_t count)
{
    barchan_error why;
    barchan_sandbox *sbx = find(launcher, tag);
    if (sbx == NULL || sbx->egress == NULL || sbx->state == BARCHAN_SANDBOX_ENDED) return;
    if (bc_egress_listen(sbx->egress, fds, count, &why) < 0) {
        bc_sandbox_end(sbx, BARCHAN_END_CREATE_FAILED, &why);
    }
}

#define MAX_FDS (1u + BC_FRAME_MAX_PORTS)

static size_t take_fds(struct msghdr *msg, int *fds)
{
    struct cmsghdr *head = CMSG_FIRSTHDR(msg);
    if (head == NULL || head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS) return 0;
    size_t count = (head->cmsg_len - CMSG_LEN(0)) / sizeof *fds;
    memcpy(fds, CMSG_DATA(head), count * sizeof *fds);
    return count;
}

static ssize_t receive(const bc_launcher *launcher, unsigned char *bytes, size_t cap, int *fds,
                       size_t *count)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(MAX_FDS * sizeof(int))];
    } control;
    struct iovec iov = {.iov_base = bytes, .iov_len = cap};
    struct msghdr msg = {.msg_iov = &iov,
                         .msg_iovlen = 1,
                         .msg_control = control.bytes,
                         .msg_controllen = sizeof control.bytes};
    ssize_t n = recvmsg(launcher->control_fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    *count = n < 0 ? 0 : take_fds(&msg, fds);
    return n;
}

/* 1: there may be more, 0: nothing now, -1: the launcher closed. */
static int read_message(bc_launcher *launcher)
{
    unsigned char bytes[1024];
    int fds[MAX_FDS];
    size_t count;
    ssize_t n = receive(launcher, bytes, sizeof bytes, fds, &count);
    if (n < 0) return errno == EINTR ? 1 : errno == EAGAIN ? 0 : -1;
    if (n < (ssize_t)BC_FRAME_HEADER) return -1;
    bc_frame message = {.length = bc_get_u32(bytes),
                        .type = bc_get_u32(bytes + 4),
                        .stream = bc_get_u32(bytes + 8),
                        .payload = bytes + BC_FRAME_HEADER};
    if (message.length != (size_t)n - BC_FRAME_HEADER) return -1;
    if (message.type == BC_CONTROL_LISTENERS) {
        on_listeners(launcher, message.stream, fds, count);
    } else {
        on_message(launcher, &message);
    }
    for (size_t i = 0; i < count; i++) {
        if (fds[i] >= 0) close(fds[i]);
    }
    return 1;
}

static void on_control(void *ud, unsigned events)
{
    bc_launcher *launcher = ud;
    int rc = 1;
    while (rc > 0) {
        rc = read_message(launcher);
    }
    /* A closed socket is followed by the exit, which is acted upon. */
    if (rc < 0) {
        bc_watch_set(launcher->watch, 0, NULL);
    } else if (events & BC_WRITABLE) {
        bc_launcher_serve(launcher);
    }
}

static barchan_sandbox *next_lost(bc_room *room)
{
    barchan_sandbox *sbx = room->sandboxes;
    while (sbx != NULL && !sbx->launcher_lost) {
        sbx = sbx->next;
    }
    return sbx;
}

/* Reports the death of every sandbox that was alive under the launcher. Callbacks may destroy any
 * sandbox and make new ones, under a new launcher: hence the marks, and the search from the head.
 */
static void lose_sandboxes(bc_room *room, const barchan_error *why)
{
    barchan_sandbox *sbx;
    for (sbx = room->sandboxes; sbx != NULL; sbx = sbx->next) {
        sbx->launcher_lost = sbx->tag != 0 && sbx->backend_held;
    }
    while ((sbx = next_lost(room)) != NULL) {
        sbx->launcher_lost = 0;
        bc_sandbox_gone(sbx, BC_ENDING_UNKNOWN, why);
    }
}

/* With the launcher all its sandboxes are dead: they die by its death signal. */
static void on_exit_of_launcher(bc_child *child, int status, void *ud)
{
    bc_launcher *launcher = ud;
    bc_room *room = launcher->room;
    (void)child, (void)status;
    while (read_message(launcher) > 0) {}
    if (launcher->error.code == 0) {
        bc_error_set(&launcher->error, BARCHAN_ELOST, "the launcher process died");
    }
    barchan_error why = launcher->error;
    room->launcher = NULL;
    lose_sandboxes(room, &why);
    bc_launcher_close(launcher);
}

/* ---- to the launcher ---- */

static int send_message(bc_launcher *launcher, uint32_t type, uint32_t tag, const bc_buf *payload,
                        int fd)
{
    unsigned char header[BC_FRAME_HEADER];
    bc_frame_put_header(header, type, tag, (uint32_t)payload->len);
    struct iovec iov[] = {{.iov_base = header, .iov_len = sizeof header},
                          {.iov_base = bc_buf_data(payload), .iov_len = payload->len}};
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct msghdr msg = {.msg_iov = iov, .msg_iovlen = 2};
    if (fd >= 0) {
        msg.msg_control = control.bytes;
        msg.msg_controllen = sizeof control.bytes;
        struct cmsghdr *head = CMSG_FIRSTHDR(&msg);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(sizeof fd);
        memcpy(CMSG_DATA(head), &fd, sizeof fd);
    }
    ssize_t n;
    do {
        n = sendmsg(launcher->control_fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
    } while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : 0;
}

static int send_start(bc_launcher *launcher, barchan_sandbox *sbx)
{
    bc_buf payload cleanup_buf;
    bc_buf_init(&payload, BC_CONTROL_MAX_START);
    if (bc_start_put(sbx, &payload) < 0) return -ENOMEM;
    return send_message(launcher, BC_CONTROL_START, sbx->tag, &payload, sbx->guest_fd);
}

/* Returns 0 when nothing is left to send for the sandbox, else -EAGAIN. Another failure means
 * that the launcher is dying; its exit settles everything. */
static int serve(bc_launcher *launcher, barchan_sandbox *sbx)
{
    if (sbx->guest_fd >= 0) {
        if (send_start(launcher, sbx) == -EAGAIN) return -EAGAIN;
        close(steal_fd(&sbx->guest_fd));
    }
    if (sbx->want_extend) {
        bc_buf payload cleanup_buf;
        bc_buf_init(&payload, 8);
        bc_put_wire_u64(&payload, (uint64_t)bc_lease_left_ms(sbx));
        if (send_message(launcher, BC_CONTROL_EXTEND, sbx->tag, &payload, -1) == -EAGAIN) {
            return -EAGAIN;
        }
        sbx->want_extend = 0;
    }
    if (sbx->want_kill) {
        bc_buf empty = {0};
        int rc = send_message(launcher, BC_CONTROL_KILL, sbx->tag, &empty, -1);
        if (rc == -EAGAIN) return rc;
        sbx->want_kill = 0;
    }
    return 0;
}

void bc_launcher_serve(bc_launcher *launcher)
{
    int rc = 0;
    for (barchan_sandbox *sbx = launcher->room->sandboxes; sbx != NULL; sbx = sbx->next) {
        if (sbx->tag != 0) rc |= serve(launcher, sbx);
    }
    bc_watch_set(launcher->watch, BC_READABLE | (rc < 0 ? BC_WRITABLE : 0), NULL);
}

/* ---- the process ---- */

static int spawn(bc_launcher *launcher, int control_fd, barchan_error *err)
{
    barchan_runtime *rt = launcher->room->rt;
    cleanup_close int program = bc_guest_image_open(bc_runtime_options(rt)->guest_path, err);
    if (program < 0) return program;
    cleanup_close int host = pidfd_open(getpid(), 0);
    if (host < 0) return bc_error_set_os(err, errno, "open a pidfd of this process");
    const char *const argv[] = {"barchan-guest", "launcher", NULL};
    const char *const envp[] = {NULL};
    const int fds[] = {-1, -1, -1, control_fd, host};
    const bc_child_options options = {
        .program_fd = program, .argv = argv, .envp = envp, .fds = fds, .fd_count = 5};
    return bc_child_spawn(&launcher->child, rt, &options, on_exit_of_launcher, launcher, err);
}

static int open_launcher(bc_launcher *launcher, barchan_error *err)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) {
        return bc_error_set_os(err, errno, "create a socket pair");
    }
    launcher->control_fd = pair[0];
    cleanup_close int theirs = pair[1];
    int rc = bc_watch_open(&launcher->watch, launcher->room->rt, launcher->control_fd, on_control,
                           launcher, err);
    if (rc == 0) rc = bc_watch_set(launcher->watch, BC_READABLE, err);
    if (rc == 0) rc = spawn(launcher, theirs, err);
    return rc;
}

int bc_launcher_ensure(bc_room *room, barchan_error *err)
{
    if (room->launcher != NULL) return 0;
    bc_launcher *launcher = calloc(1, sizeof *launcher);
    if (launcher == NULL) return bc_error_nomem(err);
    launcher->room = room;
    launcher->control_fd = -1;
    int rc = open_launcher(launcher, err);
    if (rc < 0) {
        bc_launcher_close(launcher);
        bc_error_context(err, "start the launcher");
        return rc;
    }
    room->launcher = launcher;
    return 0;
}

/* With its socket closed it ends by itself, in a millisecond or two, and cleans up; killed, it
 * would leave lock files behind. */
static void let_end(bc_launcher *launcher)
{
    shutdown(launcher->control_fd, SHUT_RDWR);
    struct pollfd pfd = {.fd = bc_child_pidfd(launcher->child), .events = POLLIN};
    poll(&pfd, 1, BC_LAUNCHER_END_MS);
}

void bc_launcher_close(bc_launcher *launcher)
{
    if (launcher == NULL) return;
    if (launcher->child != NULL) let_end(launcher);
    bc_child_close(launcher->child);
    bc_watch_close(launcher->watch);
    if (launcher->control_fd >= 0) close(launcher->control_fd);
    free(launcher);
}
