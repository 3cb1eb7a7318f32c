/*
 * The guest on a computer that somebody else has made, started by whatever reaches it: `docker run
 * -i`, `ssh`. The channel is its standard input and output, pipes or a socket. It must be process
 * 1 of a process namespace, so that everything in it ends with it, however it ends: where it is
 * not, it makes one.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "files.h"
#include "found.h"
#include "init.h"

/* ---- the beginning of the channel ---- */

static bool read_whole(int fd, unsigned char *to, size_t len)
{
    while (len > 0) {
        ssize_t n = read(fd, to, len);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        to += n;
        len -= (size_t)n;
    }
    return true;
}

/* Not a byte more than one frame of this type. */
static bool read_frame(int fd, uint32_t type, unsigned char *bytes, size_t cap, bc_frame *frame)
{
    if (!read_whole(fd, bytes, BC_FRAME_HEADER)) return false;
    uint32_t length = bc_get_u32(bytes);
    if (bc_get_u32(bytes + 4) != type || length > cap - BC_FRAME_HEADER) return false;
    *frame = (bc_frame){.type = type, .length = length, .payload = bytes + BC_FRAME_HEADER};
    return read_whole(fd, bytes + BC_FRAME_HEADER, length);
}

static _Noreturn void reject(const char *words)
{
    fprintf(stderr, "barchan-guest: %s\n", words);
    _exit(2);
}

static void read_plan(struct plan *plan)
{
    static unsigned char bytes[BC_CONTROL_MAX_START + BC_FRAME_HEADER];
    bc_frame frame;
    if (!read_frame(0, BC_FRAME_HELLO, bytes, sizeof bytes, &frame) || frame.length != 8) {
        reject("standard input is no channel; started by Barchan, not by hand");
    }
    if (bc_get_u32(frame.payload) != BC_FRAME_VERSION) reject("the library is of another version");
    if (!read_frame(0, BC_FRAME_BEGIN, bytes, sizeof bytes, &frame) || !plan_read(plan, &frame)) {
        reject("the library did not say what to begin with");
    }
    plan->found = plan->carry = true;
}

/* The channel away from where commands have theirs. */
static void take_channel(struct plan *plan)
{
    plan->channel_fd = fcntl(0, F_DUPFD_CLOEXEC, 3);
    plan->out_fd = fcntl(1, F_DUPFD_CLOEXEC, 3);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (plan->channel_fd < 0 || plan->out_fd < 0 || null < 0)
        reject("no descriptors, or /dev/null");
    for (int i = 0; i < 3; i++) {
        dup2(null, i);
    }
    close(null);
}

/* ---- a process namespace ---- */

#define OWN_NAMESPACES (CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC)

/* By an ordinary user, with the right that a user namespace gives. */
static int unshare_as_user(struct failure *why)
{
    char text[64];
    unsigned uid = geteuid(), gid = getegid();
    if (unshare(CLONE_NEWUSER | OWN_NAMESPACES) < 0) {
        fail_os(why, errno,
                "the guest is not process 1 here, and cannot make namespaces in which "
                "it is");
        explain_user_namespaces(why);
        return -1;
    }
    snprintf(text, sizeof text, "%d %u 1", SANDBOX_UID, uid);
    if (write_file("/proc/self/uid_map", text) < 0) return fail_os(why, errno, "map the user id");
    if (write_file("/proc/self/setgroups", "deny") < 0) {
        return fail_os(why, errno, "write /proc/self/setgroups");
    }
    snprintf(text, sizeof text, "%d %u 1", SANDBOX_UID, gid);
    return write_file("/proc/self/gid_map", text) < 0 ? fail_os(why, errno, "map the group id") : 0;
}

/* Outside stays what was started, to end with process 1, which watches it by a pipe. */
static _Noreturn void wait_outside(const struct plan *plan, pid_t child)
{
    int status = 0;
    close(plan->channel_fd);
    close(plan->out_fd);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}

/* Whoever made the computer may have hidden parts of its /proc, which are in the way of nothing in
 * a new one; and commands may be root here, which owns what is closed by its mode. */
static int mask_all(struct failure *why)
{
    static const char *const roots[] = {"/proc/kcore", "/proc/kmsg", "/proc/timer_list",
                                        "/proc/sysrq-trigger"};
    for (size_t i = 0; i < sizeof roots / sizeof *roots; i++) {
        if (mount("/dev/null", roots[i], NULL, MS_BIND, NULL) < 0 && errno != ENOENT) {
            return fail_os(why, errno, "hide %s", roots[i]);
        }
    }
    return chdir("/") < 0 ? fail_os(why, errno, "enter /") : proc_mask(NULL, why);
}

static int show_own_processes(struct failure *why)
{
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0) {
        return fail_os(why, errno, "make the mounts private");
    }
    if (mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0) {
        return fail_os(why, errno, "mount proc");
    }
    return mask_all(why);
}

/* Returns as process 1. */
static int become_first(struct plan *plan, struct layers *layers, struct failure *why)
{
    int alive[2];
    if (getpid() == 1) {
        layer_holds(layers, "processes_end", "with process 1 of the computer, which is the guest");
        return 0;
    }
    if (unshare(OWN_NAMESPACES) < 0 && unshare_as_user(why) < 0) return -1;
    if (pipe2(alive, O_CLOEXEC) < 0) return fail_os(why, errno, "pipe");
    pid_t child = fork();
    if (child < 0) return fail_os(why, errno, "fork");
    if (child > 0) wait_outside(plan, child);
    close(alive[1]);
    plan->alive_fd = alive[0];
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0) return fail_os(why, errno, "set the death signal");
    layer_holds(layers, "processes_end", "with a process namespace of the guest's own");
    return show_own_processes(why);
}

_Noreturn void stdio_main(void)
{
    static struct plan plan;
    struct layers layers = {0};
    struct failure why = {0};
    prctl(PR_SET_NAME, "barchan-guest");
    read_plan(&plan);
    if (syscall(SYS_close_range, 3, ~0U, 0) < 0) reject("cannot close what was left open");
    take_channel(&plan);
    setsid();
    umask(022);
    if (become_first(&plan, &layers, &why) < 0 || found_set_up(&plan, &layers, &why) < 0) {
        failure_send(plan.out_fd, BC_FRAME_FAILED, 0, &why);
        _exit(1);
    }
    init_main(&plan, &layers);
}
