/*
 * The sandbox's file system: the template, shared and read-only; one tmpfs of limited size for
 * everything writable; a fresh /proc with the parts hidden that tell about the host.
 */
#include "isolate.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "files.h"

struct writable {
    const char *name, *target;
    mode_t mode;
    bool owned; /* by the sandbox's user */
};

/* The kernel has 4096 for all; a sandbox with as many programs as it may run needs fewer. */
#define MAX_TERMINALS 64
/* The root of the storage and the directories below. */
#define OWN_FILES 7
static const struct writable writables[] = {
    {"tmp", "tmp", 01777, false},      {"var_tmp", "var/tmp", 01777, false},
    {"shm", "dev/shm", 01777, false},  {"run", "run", 0755, true},
    {"home", "home/user", 0755, true}, {"workspace", "workspace", 0755, true},
};

static unsigned count_mounts(const struct plan *plan, uint32_t mode)
{
    unsigned count = 0;
    for (unsigned i = 0; i < plan->mounts.count; i++) {
        if (plan->mounts.of[i].mode == mode) count++;
    }
    return count;
}

/* Runs in WORLD_NEW_ROOT; the storage itself is mounted outside it. */
static int mount_storage(const struct plan *plan, struct layers *layers, struct failure *why)
{
    char text[96];
    /* As many files as fit with a page each, because the kernel's memory for them is not counted
     * in the size. */
    unsigned long long size = plan->limits.disk_bytes, files = size / 4096 + 1024;
    unsigned own = OWN_FILES + COPY_OWN_FILES * (count_mounts(plan, BC_MOUNT_COPY_ON_WRITE) +
                                                 count_mounts(plan, BC_MOUNT_TEMPLATE));
    if (plan->limits.files != 0) files = plan->limits.files + own;
    snprintf(text, sizeof text, "mode=755,size=%llu,nr_inodes=%llu", size, files);
    if (mount("tmpfs", WORLD_STORE, "tmpfs", MS_NOSUID | MS_NODEV, text) < 0) {
        return fail_os(why, errno, "mount the storage");
    }
    umask(0);
    for (size_t i = 0; i < sizeof writables / sizeof *writables; i++) {
        const struct writable *w = &writables[i];
        snprintf(text, sizeof text, WORLD_STORE "/%s", w->name);
        if (mkdir(text, w->mode) < 0) return fail_os(why, errno, "create /%s", w->target);
        if (w->owned && plan->privileged && chown(text, SANDBOX_UID, SANDBOX_UID) < 0) {
            return fail_os(why, errno, "chown /%s", w->target);
        }
        if (mount(text, w->target, NULL, MS_BIND, NULL) < 0) {
            return fail_os(why, errno, "mount /%s", w->target);
        }
    }
    umask(022);
    layer_holds(layers, "storage", "a private tmpfs of %llu bytes and %llu files", size,
                plan->limits.files != 0 ? plan->limits.files : files);
    return 0;
}

/* A place for targets below /mnt, where the template has nothing that could be written. */
static int mount_mnt(const struct plan *plan, struct failure *why)
{
    for (unsigned i = 0; i < plan->mounts.count; i++) {
        if (strncmp(plan->mounts.of[i].target, "/mnt/", 5) != 0) continue;
        if (mkdir(WORLD_STORE "/mnt", 0755) < 0) return fail_os(why, errno, "create /mnt");
        if (mount(WORLD_STORE "/mnt", "mnt", NULL, MS_BIND, NULL) < 0) {
            return fail_os(why, errno, "mount /mnt");
        }
        return 0;
    }
    return 0;
}

static int show_mounts(struct plan *plan, struct layers *layers, struct failure *why)
{
    if (plan->mounts.count == 0) return 0;
    if (mount_mnt(plan, why) < 0 || mounts_show(&plan->mounts, plan->privileged, why) < 0)
        return -1;
    unsigned trees = count_mounts(plan, BC_MOUNT_TEMPLATE);
    if (trees > 0) layer_holds(layers, "template", "%u trees of a snapshot, copy-on-write", trees);
    if (trees == plan->mounts.count) return 0;
    unsigned copies = count_mounts(plan, BC_MOUNT_COPY_ON_WRITE), others = 0;
    layer_holds(layers, "mounts", "%u of the host read-only, %u writable, %u copy-on-write",
                count_mounts(plan, BC_MOUNT_READ_ONLY), count_mounts(plan, BC_MOUNT_READ_WRITE),
                copies);
    for (unsigned i = 0; i < plan->mounts.count; i++) {
        others += plan->mounts.of[i].others;
    }
    if (copies > 0) {
        layer_holds(layers, "copy_on_write",
                    "changes stay in the storage; %u names of other owners cannot be changed",
                    others);
    }
    return 0;
}

/* What tells about the host, or reaches into it, and is open to everybody by its mode. What only
 * root may touch (kcore, kmsg, timer_list, sysrq-trigger, …) is closed by that: nobody in a sandbox
 * is root of the machine. Values below /proc/sys cannot be changed without capabilities;
 * read-only is a second lock. */
int proc_mask(const char *empty, struct failure *why)
{
    static const char *const files[] = {"proc/keys",          "proc/key-users",  "proc/kallsyms",
                                        "proc/sched_debug",   "proc/interrupts", "proc/cmdline",
                                        "proc/latency_stats", "proc/config.gz"};
    static const char *const dirs[] = {"proc/acpi", "proc/bus", "proc/driver",
                                       "proc/fs",   "proc/irq", "proc/scsi"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        if (mount("dev/null", files[i], NULL, MS_BIND, NULL) < 0 && errno != ENOENT) {
            return fail_os(why, errno, "hide /%s", files[i]);
        }
    }
    for (size_t i = 0; i < sizeof dirs / sizeof *dirs; i++) {
        int rc = empty != NULL ? mount(empty, dirs[i], NULL, MS_BIND, NULL)
                               : mount("empty", dirs[i], "tmpfs", MS_RDONLY, "size=4k,mode=555");
        if (rc < 0 && errno != ENOENT) {
            return fail_os(why, errno, "hide /%s", dirs[i]);
        }
    }
    if (mount("proc/sys", "proc/sys", NULL, MS_BIND, NULL) < 0 ||
        mount(NULL, "proc/sys", NULL,
              MS_BIND | MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0) {
        return fail_os(why, errno, "make /proc/sys read-only");
    }
    return 0;
}

/* Terminals of the sandbox's own; the host's are in another instance. */
static int mount_terminals(const struct plan *plan, struct layers *layers, struct failure *why)
{
    char text[96];
    snprintf(text, sizeof text, "uid=%d,gid=%d,mode=600,ptmxmode=666,max=%d", SANDBOX_UID,
             SANDBOX_UID, MAX_TERMINALS);
    if (mount("devpts", "dev/pts", "devpts", MS_NOSUID | MS_NOEXEC, text) < 0) {
        fail_os(why, errno, "mount devpts");
        return layer_missing(layers, plan, "terminals", why);
    }
    layer_holds(layers, "terminals", "at most %d, of its own", MAX_TERMINALS);
    return 0;
}

/* With no namespaces left to make, code in the sandbox cannot reach the parts of the kernel that
 * only a namespace's own root may use. The second lock behind the seccomp filter. */
static int forbid_nested(const struct plan *plan, struct layers *layers, struct failure *why)
{
    if (write_file("proc/sys/user/max_user_namespaces", "0") < 0) {
        fail_os(why, errno, "write /proc/sys/user/max_user_namespaces");
        return layer_missing(layers, plan, "nested_user_namespaces", why);
    }
    layer_holds(layers, "nested_user_namespaces", "off");
    return 0;
}

/* System V segments and queues outlive who made them: what one command has filled, the next would
 * pay for with a limit on memory that is used up. So a segment ends with the last process that has
 * it, and queues are few. Only root of the sandbox's ids may say so; where one id is all there is,
 * nobody is. */
#define FEW_QUEUES "64"                   /* of 16 KiB each: 1 MiB of messages */
#define FEW_SEMAPHORES "250 32000 32 128" /* what Linux had for everybody until 3.19 */

static void bound_queues(const struct plan *plan, struct layers *layers)
{
    if (plan->limits.memory_bytes == 0) return;
    if (write_file("proc/sys/kernel/shm_rmid_forced", "1") == 0 &&
        write_file("proc/sys/kernel/msgmni", FEW_QUEUES) == 0 &&
        write_file("proc/sys/kernel/sem", FEW_SEMAPHORES) == 0) {
        layer_holds(layers, "ipc", "segments end with their processes, queues are few");
    } else {
        layer_holds(layers, "ipc", "segments and queues stay until the sandbox ends");
    }
}

static int mount_proc(const struct plan *plan, struct layers *layers, struct failure *why)
{
    if (mount("proc", "proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0) {
        fail_os(why, errno, "mount proc");
        fail_hint(why, "is /proc partly hidden here, as in a container? Run the container with "
                       "an unmasked /proc, or accept a sandbox without /proc by best effort");
        return layer_missing(layers, plan, "proc", why);
    }
    bound_queues(plan, layers);
    if (forbid_nested(plan, layers, why) < 0 || proc_mask(WORLD_EMPTY, why) < 0) return -1;
    layer_holds(layers, "proc", "own processes only, host details hidden");
    return 0;
}

int isolate_root(struct plan *plan, struct layers *layers, struct failure *why)
{
    /* A copy, because the copied mount itself is locked by the user namespace and could not
     * become a root. */
    if (mount(plan->template_at, WORLD_NEW_ROOT, NULL, MS_BIND | MS_REC, NULL) < 0) {
        return fail_os(why, errno, "mount the template");
    }
    if (chdir(WORLD_NEW_ROOT) < 0) return fail_os(why, errno, "enter the template");
    if (mount_storage(plan, layers, why) < 0 || show_mounts(plan, layers, why) < 0 ||
        mount_proc(plan, layers, why) < 0 || mount_terminals(plan, layers, why) < 0) {
        return -1;
    }
    if (syscall(SYS_pivot_root, ".", ".") < 0) return fail_os(why, errno, "change the root");
    if (umount2(".", MNT_DETACH) < 0) return fail_os(why, errno, "leave the launcher's root");
    if (chdir("/workspace") < 0) {
        fail_os(why, errno, "enter /workspace");
        return fail_hint(why, "is a folder mounted there that you may not enter?");
    }
    char cwd[32];
    /* Anything else would mean a directory outside the root is in hand (CVE-2024-21626). */
    if (getcwd(cwd, sizeof cwd) == NULL || strcmp(cwd, "/workspace") != 0) {
        return fail_status(why, BC_WIRE_EPERMISSION, "the working directory is outside the root");
    }
    layer_holds(layers, "root", "template read-only, host's files not mounted");
    return 0;
}
