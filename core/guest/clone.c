/* From the launcher to the process that sets a sandbox up. */
#include "launcher.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "files.h"

static int map_ids(pid_t pid, const struct slot *slot, struct failure *why)
{
    static const char *const maps[] = {"uid_map", "gid_map"};
    char path[64], text[64];
    snprintf(text, sizeof text, "0 %u %u", slot->base, SLOT_IDS);
    for (size_t i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, maps[i]);
        if (write_file(path, text) < 0) return fail_os(why, errno, "write %s", maps[i]);
    }
    snprintf(text, sizeof text, "%d", (int)pid);
    raise_oom_score(text); /* it does so itself, too; from here it stays */
    return 0;
}

static pid_t clone_process(int *pidfd, int group_fd)
{
    struct clone_args args = {
        .flags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS |
                 CLONE_NEWCGROUP | CLONE_PIDFD, /* and the network namespace we stand in */
        .pidfd = (uint64_t)(uintptr_t)pidfd,
        .exit_signal = SIGCHLD,
    };
    if (group_fd >= 0) {
        args.flags |= CLONE_INTO_CGROUP;
        args.cgroup = (uint64_t)group_fd;
    }
    return (pid_t)syscall(SYS_clone3, &args, sizeof args);
}

static int clone_failed(struct failure *why, int os_error)
{
    fail_os(why, os_error, "clone the sandbox's namespaces");
    if (os_error == ENOSPC || os_error == EUSERS) {
        fail_hint(why, "a limit on namespaces: see /proc/sys/user/max_*_namespaces");
    } else if (os_error == EPERM) {
        fail_hint(why, "user namespaces may be forbidden here: run 'barchan doctor'");
    }
    return -1;
}

int clone_sandbox(struct world *world, struct child *child, struct plan *plan, struct failure *why)
{
    int sync[2] = {-1, -1};
    if (network_prepare(world, why) < 0) return -1;
    if (plan->privileged && pipe2(sync, O_CLOEXEC) < 0) return fail_os(why, errno, "pipe");
    child->pid = clone_process(&child->pidfd, plan->groups.into_fd);
    if (child->pid == 0) {
        plan->sync_fd = sync[0];
        plan->lock_fd = child->slot.lock_fd;
        isolate_and_run(plan);
    }
    int os_error = errno;
    world->network_fresh = world->network_given_up = false;
    int rc = child->pid < 0 ? clone_failed(why, os_error) : 0;
    if (rc == 0 && plan->privileged) rc = map_ids(child->pid, &child->slot, why);
    if (rc == 0 && plan->privileged && write(sync[1], "", 1) != 1) {
        rc = fail_os(why, errno, "start the sandbox");
    }
    /* Without the byte the child ends; why, is said here. */
    if (rc < 0 && child->pid > 0) failure_send(plan->channel_fd, BC_FRAME_FAILED, 0, why);
    if (sync[0] >= 0) close(sync[0]); /* after the write, which must not find a broken pipe */
    if (sync[1] >= 0) close(sync[1]);
    return child->pid < 0 ? -1 : 0;
}
