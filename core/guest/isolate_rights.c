/* Taking rights away, in the only order that works: what needs a right is done before it goes. */
#include "isolate.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/securebits.h>
#include <linux/seccomp.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "landlock.h"
#include "seccomp_filter.h" /* generated */

/* Stops a fork bomb: counted per user of this user namespace, so per sandbox. */
#define MAX_PROCESSES 1024
#define MAX_OPEN_FILES 65536

static int set_limit(int resource, rlim_t soft, rlim_t hard)
{
    struct rlimit old;
    if (getrlimit((__rlimit_resource_t)resource, &old) < 0) return -1;
    struct rlimit limit = {.rlim_cur = soft, .rlim_max = hard};
    if (limit.rlim_max > old.rlim_max) limit.rlim_max = old.rlim_max;
    if (limit.rlim_cur > limit.rlim_max) limit.rlim_cur = limit.rlim_max;
    return setrlimit((__rlimit_resource_t)resource, &limit);
}

/* What holds each limit, in words. */
static void tell_limits(const struct plan *plan, struct layers *layers)
{
    const bc_limits *l = &plan->limits;
    const struct sandbox_groups *g = &plan->groups;
    if (g->memory == BY_NOTHING) {
        layer_holds(layers, "memory", "not limited, but for the storage");
    } else if (g->memory == BY_WATCH) {
        layer_holds(layers, "memory",
                    "%llu bytes, by %s: processes and storage, not what pipes and sockets hold; "
                    "may be passed for a moment",
                    (unsigned long long)l->memory_bytes, held_by_name(g->memory));
    } else {
        layer_holds(layers, "memory", "%llu bytes, by %s", (unsigned long long)l->memory_bytes,
                    held_by_name(g->memory));
    }
    if (g->pids == BY_NOTHING) {
        layer_holds(layers, "processes", "at most %d, by a resource limit", MAX_PROCESSES);
    } else {
        layer_holds(layers, "processes", "at most %u, by %s", l->pids, held_by_name(g->pids));
    }
    if (l->cpus_milli == 0) {
        layer_holds(layers, "cpus", "not limited");
    } else if (g->cpus == BY_NOTHING) {
        layer_holds(layers, "cpus",
                    "missing: needs control groups: run as root, or in a delegated "
                    "group of version 2");
    } else {
        layer_holds(layers, "cpus", "%u.%03u, by %s", l->cpus_milli / 1000, l->cpus_milli % 1000,
                    held_by_name(g->cpus));
    }
    bool frozen = g->files[GROUP_FREEZE] >= 0 && g->files[GROUP_EVENTS] >= 0;
    layer_holds(layers, "pause", "%s",
                frozen ? "by the freezer of cgroup version 2"
                       : "by stop signals, which processes can see");
    bool counted = g->files[GROUP_CPU_STAT] >= 0;
    layer_holds(layers, "accounting", "%s",
                counted ? "processor time by cgroup version 2"
                        : "processor time of processes that were waited for");
    if (l->cpu_us > 0) {
        layer_holds(layers, "cpu_time", "%llu ms a command, by a resource limit and %s",
                    (unsigned long long)l->cpu_us / 1000, held_by_name(BY_WATCH));
    }
}

static int set_limits(const struct plan *plan, struct layers *layers, struct failure *why)
{
    /* 1, not 0: the kernel gives a core_pattern that is a pipe whatever is not exactly 1. */
    if (set_limit(RLIMIT_CORE, 1, 1) < 0 ||
        set_limit(RLIMIT_NPROC, MAX_PROCESSES, MAX_PROCESSES) < 0 ||
        set_limit(RLIMIT_NOFILE, MAX_OPEN_FILES, MAX_OPEN_FILES) < 0) {
        return fail_os(why, errno, "set resource limits");
    }
    tell_limits(plan, layers);
    return 0;
}

/* Process 1 keeps what it needs to run and to end commands of another user; commands have
 * nothing, because changing from uid 0 to another drops everything. */
static int drop_capabilities(const struct plan *plan, struct layers *layers, struct failure *why)
{
    const unsigned long locked = SECBIT_NOROOT | SECBIT_NOROOT_LOCKED |
                                 SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_KEEP_CAPS_LOCKED |
                                 SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;
    /* Whoever has made the computer may have taken the right to; then there is nothing to lock that
     * no_new_privs does not. */
    if (prctl(PR_SET_SECUREBITS, locked) < 0 && !(plan->found && errno == EPERM)) {
        return fail_os(why, errno, "set the securebits");
    }
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0) return fail_os(why, errno, "no_new_privs");
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {0};
    if (plan->privileged) {
        data[0].effective = data[0].permitted =
            1u << CAP_KILL | 1u << CAP_SETUID | 1u << CAP_SETGID;
    }
    if (syscall(SYS_capset, &header, data) < 0) return fail_os(why, errno, "drop capabilities");
    layer_holds(layers, "capabilities", "none for commands");
    layer_holds(layers, "no_new_privs", "on");
    return 0;
}

/* A kernel without it has the other walls: its absence is told, and is no failure. */
static int add_landlock(const struct plan *plan, struct layers *layers, struct failure *why)
{
    static const struct landlock_place fixed[] = {
        {"/tmp", LANDLOCK_TREE},  {"/var/tmp", LANDLOCK_TREE},   {"/dev/shm", LANDLOCK_TREE},
        {"/run", LANDLOCK_TREE},  {"/home/user", LANDLOCK_TREE}, {"/workspace", LANDLOCK_TREE},
        {"/dev", LANDLOCK_FILES}, {"/proc", LANDLOCK_FILES},
    };
    struct landlock_place
        places[sizeof fixed / sizeof *fixed + BC_FRAME_MAX_MOUNTS + BC_PACK_PLACES];
    size_t count = sizeof fixed / sizeof *fixed;
    memcpy(places, fixed, sizeof fixed);
    for (unsigned i = 0; i < plan->mounts.count; i++) {
        const struct mount_request *m = &plan->mounts.of[i];
        if (m->mode == BC_MOUNT_READ_ONLY) continue;
        places[count++] = (struct landlock_place){
            .path = m->target, .what = m->is_file ? LANDLOCK_FILES : LANDLOCK_TREE};
    }
    int version = landlock_version();
    if (version < 1) {
        layer_holds(layers, "landlock", "not in this kernel: %s", strerror(errno));
        return 0;
    }
    if (landlock_confine(version, places, count) < 0) {
        fail_os(why, errno, "restrict writing by Landlock");
        return layer_missing(layers, plan, "landlock", why);
    }
    layer_holds(layers, "landlock", "version %d: writing only in the storage and writable mounts%s",
                version, version >= 6 ? ", sockets and signals only inside" : "");
    return 0;
}

static int install_filter(const struct plan *plan, struct layers *layers, struct failure *why)
{
    const struct sock_fprog program = {
        .len = sizeof guest_filter / sizeof *guest_filter,
        .filter = (struct sock_filter *)guest_filter,
    };
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0) {
        fail_os(why, errno, "install the seccomp filter");
        fail_hint(why, "the kernel needs CONFIG_SECCOMP_FILTER");
        return layer_missing(layers, plan, "seccomp", why);
    }
    layer_holds(layers, "seccomp", "allow-list, %u instructions", (unsigned)program.len);
    return 0;
}

int isolate_rights(const struct plan *plan, struct layers *layers, struct failure *why)
{
    if (set_limits(plan, layers, why) < 0) return -1;
    /* While folders that commands have closed to others can be passed. Where to write is not for us
     * to say on a computer that somebody else has made. */
    if (!plan->found && add_landlock(plan, layers, why) < 0) return -1;
    if (drop_capabilities(plan, layers, why) < 0) return -1;
    /* After the ids were mapped: writing the map needs a dumpable process. */
    if (prctl(PR_SET_DUMPABLE, 0) < 0) return fail_os(why, errno, "make process 1 unreadable");
    return install_filter(plan, layers, why);
}
