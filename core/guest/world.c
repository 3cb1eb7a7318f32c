/*
 * The launcher's own place: outside the host's session, unprivileged users in a user namespace of
 * their own, and in a mount namespace with only what sandboxes are made from. A sandbox begins
 * with a copy of that namespace, so what is not in it cannot be seen from inside by any mistake.
 */
#include "launcher.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <linux/capability.h>
#include <unistd.h>
#include "files.h"

/* The launcher's root is built on a directory that every host has and that nothing looked up
 * during the building needs. */
#define BUILD_AT "/proc"

bool has_capability(int capability)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {0};
    if (syscall(SYS_capget, &header, data) < 0) return false;
    return data[capability / 32].effective & 1u << capability % 32;
}

/* Why user namespaces do not work here: the switch that turned them off, and what to do. */
void explain_user_namespaces(struct failure *why)
{
    static const struct {
        const char *path, *when, *hint;
    } switches[] = {
        {"/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1",
         "kernel.apparmor_restrict_unprivileged_userns=1: install an AppArmor profile for the "
         "guest program, or set it to 0; 'barchan doctor' tells more"},
        {"/proc/sys/kernel/unprivileged_userns_clone", "0",
         "set kernel.unprivileged_userns_clone=1"},
        {"/proc/sys/user/max_user_namespaces", "0", "raise user.max_user_namespaces"},
    };
    char value[32];
    for (size_t i = 0; i < sizeof switches / sizeof *switches; i++) {
        if (read_file(switches[i].path, value, sizeof value) < 0) continue;
        if (strcmp(value, switches[i].when) == 0) {
            fail_hint(why, switches[i].hint);
            return;
        }
    }
    fail_hint(why, "unprivileged user namespaces are not allowed here; in a container, its "
                   "seccomp profile may forbid them");
}

static int map_self(uid_t uid, gid_t gid, struct failure *why)
{
    char text[64];
    if (write_file("/proc/self/setgroups", "deny") < 0 && errno != ENOENT) {
        return fail_os(why, errno, "write /proc/self/setgroups");
    }
    snprintf(text, sizeof text, "0 %u 1", (unsigned)uid);
    if (write_file("/proc/self/uid_map", text) < 0) return fail_os(why, errno, "map the user id");
    snprintf(text, sizeof text, "0 %u 1", (unsigned)gid);
    if (write_file("/proc/self/gid_map", text) < 0) return fail_os(why, errno, "map the group id");
    return 0;
}

/* Root without the rights to make namespaces (a container's) becomes an ordinary user first: a
 * sandbox must never run as real root. */
static int leave_root(struct world *world, struct failure *why)
{
    static struct slot slot; /* held until the launcher ends */
    if (slots_open(world, why) < 0 || slot_take(world, &slot, why) < 0) return -1;
    if (syscall(SYS_setgroups, 0, NULL) < 0 ||
        syscall(SYS_setresgid, slot.base, slot.base, slot.base) < 0 ||
        syscall(SYS_setresuid, slot.base, slot.base, slot.base) < 0) {
        fail_os(why, errno, "become an ordinary user");
        return fail_hint(why, "root needs CAP_SETUID and CAP_SETGID, or be no root to begin with");
    }
    prctl(PR_SET_DUMPABLE, 1); /* or /proc/self would belong to root */
    return 0;
}

static int enter_user_namespace(struct world *world, struct failure *why)
{
    if (geteuid() == 0 && leave_root(world, why) < 0) return -1;
    uid_t uid = geteuid();
    gid_t gid = getegid();
    if (unshare(CLONE_NEWUSER) < 0) {
        fail_os(why, errno, "create a user namespace");
        explain_user_namespaces(why);
        return -1;
    }
    if (map_self(uid, gid, why) < 0) {
        explain_user_namespaces(why);
        return -1;
    }
    world->mode = "unprivileged, one user id";
    return 0;
}

static int enter_mount_namespaces(struct world *world, struct failure *why)
{
    if (unshare(CLONE_NEWNS) < 0) {
        fail_os(why, errno, "create a mount namespace");
        if (!world->privileged) explain_user_namespaces(why);
        return -1;
    }
    /* A slave, so that what the host unmounts is not kept alive here. */
    if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0) {
        fail_os(why, errno, "make the mounts private");
        if (!world->privileged) explain_user_namespaces(why);
        return -1;
    }
    world->host_mounts_fd = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
    if (world->host_mounts_fd < 0) return fail_os(why, errno, "open /proc/self/ns/mnt");
    if (unshare(CLONE_NEWNS) < 0) return fail_os(why, errno, "create a second mount namespace");
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0) {
        return fail_os(why, errno, "make the mounts private");
    }
    return 0;
}

static int build_root(struct failure *why)
{
    /* A sandbox may mount its own /proc only where an unmasked one is in sight: keep it. */
    int proc = clone_tree("/proc");
    if (proc < 0) return fail_os(why, errno, "clone the mounts of /proc");
    if (template_host_build(BUILD_AT, why) < 0) {
        close(proc);
        return -1;
    }
    static const char *const dirs[] = {"/proc", WORLD_NEW_ROOT, WORLD_STORE, WORLD_EMPTY,
                                       WORLD_MOUNTS};
    char path[256];
    for (size_t i = 0; i < sizeof dirs / sizeof *dirs; i++) {
        snprintf(path, sizeof path, BUILD_AT "%s", dirs[i]);
        if (make_dirs(path) < 0) return fail_os(why, errno, "create %s", path);
    }
    /* It is shared by all sandboxes, so nobody may write there. */
    if (mount(BUILD_AT WORLD_EMPTY, BUILD_AT WORLD_EMPTY, NULL, MS_BIND, NULL) < 0 ||
        protect_tree(BUILD_AT WORLD_EMPTY, 0) < 0) {
        return fail_os(why, errno, "make %s read-only", WORLD_EMPTY);
    }
    if (attach_tree(proc, BUILD_AT "/proc") < 0) return fail_os(why, errno, "attach /proc");
    if (chdir(BUILD_AT) < 0 || syscall(SYS_pivot_root, ".", ".") < 0) {
        return fail_os(why, errno, "change the launcher's root");
    }
    if (umount2(".", MNT_DETACH) < 0) return fail_os(why, errno, "leave the host's mounts");
    if (chdir("/") < 0) return fail_os(why, errno, "chdir /");
    return 0;
}

/* What the host was started with must not decide what a sandbox can do. A hard limit that the host
 * has lowered is as high as an ordinary user gets. */
static void set_limits(void)
{
    static const struct {
        int resource;
        rlim_t soft, hard;
    } limits[] = {
        {RLIMIT_CPU, RLIM_INFINITY, RLIM_INFINITY},
        {RLIMIT_FSIZE, RLIM_INFINITY, RLIM_INFINITY},
        {RLIMIT_DATA, RLIM_INFINITY, RLIM_INFINITY},
        {RLIMIT_AS, RLIM_INFINITY, RLIM_INFINITY},
        {RLIMIT_RTTIME, RLIM_INFINITY, RLIM_INFINITY},
        {RLIMIT_STACK, 8u << 20, RLIM_INFINITY},
        {RLIMIT_MEMLOCK, 8u << 20, 8u << 20}, /* the kernel's default */
        {RLIMIT_RTPRIO, 0, 0},
        {RLIMIT_NICE, 0, 0},
        {RLIMIT_NOFILE, RLIM_INFINITY, RLIM_INFINITY}, /* a pidfd and a lock per sandbox */
    };
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        __rlimit_resource_t resource = (__rlimit_resource_t)limits[i].resource;
        struct rlimit limit = {.rlim_cur = limits[i].soft, .rlim_max = limits[i].hard};
        struct rlimit old;
        if (setrlimit(resource, &limit) == 0 || getrlimit(resource, &old) < 0) continue;
        if (limit.rlim_max > old.rlim_max) limit.rlim_max = old.rlim_max;
        if (limit.rlim_cur > limit.rlim_max) limit.rlim_cur = limit.rlim_max;
        setrlimit(resource, &limit);
    }
}

int world_enter(struct world *world, struct failure *why)
{
    *world = (struct world){.host_mounts_fd = -1, .own_mounts_fd = -1, .slots_fd = -1};
    groups_init(&world->groups);
    set_limits();
    setsid();
    /* A session is a scheduling group, and a thousand sessions of a storm of forks would leave this
     * one a thousandth of the processor to end them with. Only root may ask for more. */
    (void)write_file("/proc/self/autogroup", "-10");
    umask(022);
    if (chdir("/") < 0) return fail_os(why, errno, "chdir /");
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    world->privileged = geteuid() == 0 && has_capability(CAP_SYS_ADMIN) &&
                        has_capability(CAP_SETUID) && has_capability(CAP_SETGID);
    world->mode = "privileged, a range of user ids per sandbox";
    /* Root that becomes an ordinary user would lose its rights over them on the way. */
    if (world->privileged || geteuid() != 0) groups_open(&world->groups);
    if (world->privileged ? slots_open(world, why) : enter_user_namespace(world, why)) return -1;
    if (enter_mount_namespaces(world, why) < 0 || build_root(why) < 0) return -1;
    world->own_mounts_fd = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
    if (world->own_mounts_fd < 0) return fail_os(why, errno, "open /proc/self/ns/mnt");
    return 0;
}
