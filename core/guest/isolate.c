/* From clone to process 1: identity, files, host name, loopback, rights; then the main loop. */
#include "isolate.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <signal.h>
#include <unistd.h>
#include "files.h"
#include "init.h"

void layer_holds(struct layers *layers, const char *name, const char *format, ...)
{
    if (layers->count == BC_FRAME_MAX_LAYERS) return;
    uint32_t i = layers->count++;
    layers->row[i].name = name;
    va_list args;
    va_start(args, format);
    vsnprintf(layers->row[i].how, sizeof layers->row[i].how, format, args);
    va_end(args);
}

int layer_missing(struct layers *layers, const struct plan *plan, const char *name,
                  const struct failure *why)
{
    if (!plan->best_effort) return -1;
    layer_holds(layers, name, "missing: %s", why->message);
    return 0;
}

#define KEPT (4 + GROUP_FILES + (int)NETWORK_MAX_FDS)

/* Descriptors from 3 on are all that process 1 has of the launcher's. */
static int keep_descriptors(struct plan *plan, struct failure *why)
{
    int *kept[KEPT] = {&plan->channel_fd, &plan->alive_fd, &plan->sync_fd, &plan->lock_fd};
    int given = 4;
    for (int i = 0; i < GROUP_FILES; i++) {
        kept[given++] = &plan->groups.files[i];
    }
    for (unsigned i = 0; i < plan->sockets.count; i++) {
        kept[given++] = &plan->sockets.fds[i];
    }
    /* First above the range, so that no move overwrites another's source. */
    int count = 0;
    for (int i = 0; i < given; i++) {
        if (*kept[i] < 0) continue;
        int copy = fcntl(*kept[i], F_DUPFD_CLOEXEC, 3 + KEPT);
        if (copy < 0) return fail_os(why, errno, "keep process 1's descriptors");
        *kept[i] = copy;
        kept[count++] = kept[i];
    }
    for (int i = 0; i < count; i++) {
        int moved = dup3(*kept[i], 3 + i, O_CLOEXEC);
        if (moved < 0) return fail_os(why, errno, "keep process 1's descriptors");
        *kept[i] = moved;
    }
    /* Or process 1 would hold the host's mounts and its neighbours. */
    if (syscall(SYS_close_range, 3 + count, ~0U, 0) < 0) {
        return fail_os(why, errno, "close the launcher's descriptors");
    }
    return 0;
}

static int wait_for_ids(const struct plan *plan, struct failure *why)
{
    char byte;
    ssize_t n;
    do {
        n = read(plan->sync_fd, &byte, 1);
    } while (n < 0 && errno == EINTR);
    close(plan->sync_fd);
    if (n != 1) _exit(1); /* the launcher has said why */
    /* From here process 1 is the sandbox's root, an ordinary user of the machine. */
    if (syscall(SYS_setresgid, 0, 0, 0) < 0 || syscall(SYS_setresuid, 0, 0, 0) < 0 ||
        syscall(SYS_setgroups, 0, NULL) < 0) {
        return fail_os(why, errno, "take the sandbox's user id");
    }
    return 0;
}

static int map_one_id(struct failure *why)
{
    if (write_file("/proc/self/setgroups", "deny") < 0 && errno != EACCES && errno != EPERM) {
        return fail_os(why, errno, "write /proc/self/setgroups");
    }
    if (write_file("/proc/self/uid_map", "1000 0 1") < 0) {
        return fail_os(why, errno, "map the user id");
    }
    if (write_file("/proc/self/gid_map", "1000 0 1") < 0) {
        return fail_os(why, errno, "map the group id");
    }
    return 0;
}

static int take_identity(const struct plan *plan, struct layers *layers, struct failure *why)
{
    if (plan->privileged) {
        if (wait_for_ids(plan, why) < 0) return -1;
        layer_holds(layers, "user_namespace", "a range of ids of its own; commands are uid %d",
                    SANDBOX_UID);
        return 0;
    }
    if (map_one_id(why) < 0) return -1;
    layer_holds(layers, "user_namespace", "one id; commands are uid %d", SANDBOX_UID);
    return 0;
}

/* The standard descriptors still name the host's /dev/null. */
static int replace_standard_fds(struct failure *why)
{
    int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (fd < 0) return fail_os(why, errno, "open /dev/null");
    for (int i = 0; i < 3; i++) {
        if (dup2(fd, i) < 0) return fail_os(why, errno, "dup2");
    }
    close(fd);
    return 0;
}

static int set_up(struct plan *plan, struct layers *layers, struct failure *why)
{
    if (keep_descriptors(plan, why) < 0) return -1;
    prctl(PR_SET_NAME, "barchan-guest");
    /* Raising is always allowed; when memory is short, sandboxes go before the host's programs. */
    if (raise_oom_score("self") < 0) {
        return fail_os(why, errno, "write /proc/self/oom_score_adj");
    }
    if (take_identity(plan, layers, why) < 0) return -1;
    layer_holds(layers, "namespaces", "mount, pid, net, ipc, uts, cgroup");
    if (sethostname("sandbox", 7) < 0) return fail_os(why, errno, "set the host name");
    if (setdomainname("", 0) < 0) return fail_os(why, errno, "set the domain name");
    if (plan->network.port_count == 0) {
        layer_holds(layers, "network", "off: only a loopback interface of its own");
    } else {
        layer_holds(layers, "network",
                    "decided by the library: hosts by name and %u ranges, at %u ports%s",
                    plan->network.range_count, plan->network.port_count,
                    plan->carry ? ", carried by process 1" : "");
    }
    if (isolate_root(plan, layers, why) < 0 || replace_standard_fds(why) < 0) return -1;
    return isolate_rights(plan, layers, why);
}

/* The death signal is set last, because changes of identity clear it; a launcher that died
 * before is seen by its pipe. */
static int tie_to_launcher(const struct plan *plan, struct failure *why)
{
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0) return fail_os(why, errno, "set the death signal");
    struct pollfd pfd = {.fd = plan->alive_fd};
    if (poll(&pfd, 1, 0) != 0) return fail_status(why, BC_WIRE_ELOST, "the launcher is gone");
    return 0;
}

_Noreturn void isolate_and_run(const struct plan *given)
{
    struct plan plan = *given;
    struct layers layers = {0};
    struct failure why = {0};
    if (set_up(&plan, &layers, &why) < 0 || tie_to_launcher(&plan, &why) < 0) {
        failure_send(plan.channel_fd, BC_FRAME_FAILED, 0, &why);
        _exit(1);
    }
    init_main(&plan, &layers);
}
