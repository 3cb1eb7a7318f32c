/* Mounts, files and namespaces. See probe.h. */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/bpf.h>
#include <linux/capability.h>
#include <linux/io_uring.h>
#include <linux/perf_event.h>
#include <net/if.h>
#include <netinet/in.h>
#include <arpa/inet.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/personality.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probe.h"

/* ---- mounts and the view of files ---- */

static int mount_tmpfs(void)
{
    return answer(mount("t", "/tmp", "tmpfs", 0, NULL));
}
static int mount_proc(void)
{
    return answer(mount("p", "/tmp", "proc", 0, NULL));
}
static int mount_bind(void)
{
    return answer(mount("/usr", "/tmp", NULL, MS_BIND | MS_REC, NULL));
}
static int mount_overlay(void)
{
    return answer(mount("o", "/tmp", "overlay", 0, "lowerdir=/usr/bin:/usr/lib"));
}
static int remount_writable(void)
{
    int rc = answer(mount(NULL, "/usr", NULL, MS_REMOUNT | MS_BIND, NULL));
    if (rc != -EINVAL) return rc;
    mount("/usr", "/usr", NULL, MS_BIND, NULL); /* outside it is no mount of its own */
    return answer(mount(NULL, "/usr", NULL, MS_REMOUNT | MS_BIND, NULL));
}
static int unmount(void)
{
    int rc = answer(umount2("/proc", MNT_DETACH));
    if (rc != -EINVAL) return rc;
    mount("t", "/tmp", "tmpfs", 0, NULL); /* outside what others have mounted may be locked */
    return answer(umount2("/tmp", MNT_DETACH));
}
static int new_root(void)
{
    mount("t", "/tmp", "tmpfs", 0, NULL);
    mkdir("/tmp/r", 0755);
    mount("/tmp/r", "/tmp/r", NULL, MS_BIND, NULL);
    return answer(chdir("/tmp/r") < 0 ? -1 : syscall(SYS_pivot_root, ".", "."));
}
static int change_root(void)
{
    return answer(chroot("/tmp"));
}
static int fs_open(void)
{
    return answer(syscall(SYS_fsopen, "tmpfs", 0));
}
static int tree_clone(void)
{
    return answer(syscall(SYS_open_tree, AT_FDCWD, "/usr", OPEN_TREE_CLONE));
}
static int attributes(void)
{
    struct mount_attr attr = {.attr_clr = MOUNT_ATTR_NOEXEC};
    int rc = answer(syscall(SYS_mount_setattr, AT_FDCWD, "/tmp", 0, &attr, sizeof attr));
    if (rc != -EINVAL) return rc;
    mount("t", "/tmp", "tmpfs", 0, NULL); /* outside it is no mount of its own */
    return answer(syscall(SYS_mount_setattr, AT_FDCWD, "/tmp", 0, &attr, sizeof attr));
}
static int device_node(void)
{
    int result = answer(mknod("/tmp/probe-mem", S_IFCHR | 0600, makedev(1, 1)));
    unlink("/tmp/probe-mem");
    return result;
}
/* Which everybody may make, and overlays take for a removed file. */
static int empty_device(void)
{
    int result = answer(mknod("/tmp/probe-empty", S_IFCHR | 0600, 0));
    unlink("/tmp/probe-empty");
    return result;
}
static int write_usr(void)
{
    int result = can_open("/usr/probe-file", O_WRONLY | O_CREAT);
    unlink("/usr/probe-file");
    return result;
}
static int write_root(void)
{
    int result = can_open("/probe-file", O_WRONLY | O_CREAT);
    unlink("/probe-file");
    return result;
}
static int write_passwd(void)
{
    return can_open("/etc/passwd", O_WRONLY);
}
static int host_file(void)
{
    return can_open(parameter("file"), O_RDONLY);
}
static int host_home(void)
{
    return answer(access(parameter("home"), F_OK));
}
static int real_shadow(void)
{
    return answer(access("/etc/shadow", F_OK));
}
static int sys_dir(void)
{
    return answer(access("/sys/kernel", F_OK));
}
static int handle(void)
{
    char bytes[sizeof(struct file_handle) + 128];
    struct file_handle *h = (struct file_handle *)bytes;
    int id;
    h->handle_bytes = 128;
    return answer(name_to_handle_at(AT_FDCWD, "/usr", h, &id, 0));
}
static int handle_open(void)
{
    char bytes[sizeof(struct file_handle) + 8] = {0};
    struct file_handle *h = (struct file_handle *)bytes;
    h->handle_bytes = 8;
    return answer_or(open_by_handle_at(AT_FDCWD, h, O_RDONLY), ESTALE);
}

/* ---- namespaces ---- */

static int unshare_user(void)
{
    return answer(unshare(CLONE_NEWUSER));
}
static int unshare_mount(void)
{
    return answer(unshare(CLONE_NEWNS));
}
static int unshare_pid(void)
{
    return answer(unshare(CLONE_NEWPID));
}
static int unshare_net(void)
{
    return answer(unshare(CLONE_NEWNET));
}
static int unshare_ipc(void)
{
    return answer(unshare(CLONE_NEWIPC));
}
static int unshare_uts(void)
{
    return answer(unshare(CLONE_NEWUTS));
}
static int unshare_cgroup(void)
{
    return answer(unshare(CLONE_NEWCGROUP));
}
static int clone_user(void)
{
    long pid = syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);
    if (pid == 0) _exit(0);
    return answer(pid);
}
static int clone_three(void)
{
    uint64_t args[11] = {CLONE_NEWUSER, 0, 0, 0, SIGCHLD};
    long pid = syscall(SYS_clone3, args, sizeof args);
    if (pid == 0) _exit(0);
    return answer(pid);
}
static int set_namespace(void)
{
    int fd = open("/proc/self/ns/uts", O_RDONLY);
    return fd < 0 ? -errno : answer(setns(fd, 0));
}
static int host_name(void)
{
    return unshare(CLONE_NEWUTS), answer(sethostname("probe", 5));
}

const struct probe probes_files[] = {
    PROBE(mount_tmpfs, DENIED),   PROBE(mount_proc, DENIED),       PROBE(mount_bind, DENIED),
    PROBE(mount_overlay, DENIED), PROBE(remount_writable, DENIED), PROBE(unmount, DENIED),
    PROBE(new_root, DENIED),      PROBE(change_root, DENIED),      PROBE(fs_open, DENIED),
    PROBE(tree_clone, DENIED),    PROBE(attributes, DENIED),       PROBE(device_node, DENIED),
    PROBE(empty_device, DENIED),  PROBE(write_usr, DENIED),        PROBE(write_root, DENIED),
    PROBE(write_passwd, DENIED),  PROBE(host_file, DENIED),        PROBE(host_home, DENIED),
    PROBE(real_shadow, DENIED),   PROBE(sys_dir, DENIED),          PROBE(handle, DENIED),
    PROBE(handle_open, DENIED),   PROBE(unshare_user, DENIED),     PROBE(unshare_mount, DENIED),
    PROBE(unshare_pid, DENIED),   PROBE(unshare_net, DENIED),      PROBE(unshare_ipc, DENIED),
    PROBE(unshare_uts, DENIED),   PROBE(unshare_cgroup, DENIED),   PROBE(clone_user, DENIED),
    PROBE(clone_three, DENIED),   PROBE(set_namespace, DENIED),    PROBE(host_name, DENIED),
    {NULL, NULL, DENIED},
};
