#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/xattr.h>
#include <unistd.h>
#include "base/cleanup.h"
#include "doctor.h"

/* The registry's (core/guest/slots.c): 4,095 ranges of 65,536 ids. */
#define FIRST_ID 0x70000000ul
#define LAST_ID (FIRST_ID + 4095ul * 65536 - 1)

/* A small file as one line; false when it cannot be read. */
static int read_line(const char *path, char *text, size_t cap)
{
    cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t n = fd < 0 ? -1 : read(fd, text, cap - 1);
    if (n < 0) return 0;
    text[n] = '\0';
    text[strcspn(text, "\n")] = '\0';
    return 1;
}

static int line_is(const char *path, const char *expected)
{
    char text[64];
    return read_line(path, text, sizeof text) && strcmp(text, expected) == 0;
}

static int file_contains(const char *path, const char *word)
{
    char text[16384];
    cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (n < 0) return 0;
    text[n] = '\0';
    return strstr(text, word) != NULL;
}

static void probe_kernel(bc_buf *json)
{
    struct utsname name;
    char detail[256];
    if (uname(&name) < 0) return;
    char *end;
    long major = strtol(name.release, &end, 10);
    long minor = *end == '.' ? strtol(end + 1, NULL, 10) : 0;
    snprintf(detail, sizeof detail, "Linux %.64s, %.32s", name.release, name.machine);
    int new_enough = major > 6 || (major == 6 && minor >= 1);
    bc_doctor_add(json, "kernel", new_enough ? "ok" : "missing", detail,
                  new_enough ? "" : "Linux 6.1 or newer is supported");
}

static void probe_user_namespaces(bc_buf *json)
{
    static const char *const name = "user_namespaces";
    char detail[128], max[32] = "?";
    if (access("/proc/self/ns/user", F_OK) < 0) {
        bc_doctor_add(json, name, "missing", "the kernel has none",
                      "use a kernel with CONFIG_USER_NS");
    } else if (line_is("/proc/sys/user/max_user_namespaces", "0")) {
        bc_doctor_add(json, name, "missing", "user.max_user_namespaces is 0",
                      "sysctl -w user.max_user_namespaces=10000");
    } else if (line_is("/proc/sys/kernel/unprivileged_userns_clone", "0") && geteuid() != 0) {
        bc_doctor_add(json, name, "missing", "kernel.unprivileged_userns_clone is 0",
                      "sysctl -w kernel.unprivileged_userns_clone=1, or run as root");
    } else {
        read_line("/proc/sys/user/max_user_namespaces", max, sizeof max);
        snprintf(detail, sizeof detail, "at most %s", max);
        bc_doctor_add(json, name, "ok", detail, "");
    }
}

static void probe_apparmor(bc_buf *json)
{
    static const char *const path = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns";
    if (line_is(path, "1")) {
        bc_doctor_add(json, "apparmor", geteuid() == 0 ? "info" : "missing",
                      "unprivileged user namespaces are restricted "
                      "(kernel.apparmor_restrict_unprivileged_userns=1)",
                      "install the guest program and an AppArmor profile for it that allows "
                      "userns, and set guest_path; or set the sysctl to 0");
    } else {
        bc_doctor_add(json, "apparmor", "ok", "does not restrict user namespaces", "");
    }
}

/* The caller's own v2 cgroup, when it may make groups in it. */
static int delegated(char *path, size_t cap)
{
    char text[4096], *line;
    cleanup_close int fd = open("/proc/self/cgroup", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (n < 0) return 0;
    text[n] = '\0';
    line = strncmp(text, "0::", 3) == 0 ? text : strstr(text, "\n0::");
    if (line == NULL) return 0;
    line += *line == '\n' ? 4 : 3;
    line[strcspn(line, "\n")] = '\0';
    const char *root = access("/sys/fs/cgroup/cgroup.controllers", F_OK) == 0
                           ? "/sys/fs/cgroup"
                           : "/sys/fs/cgroup/unified";
    snprintf(path, cap, "%s%s", root, line);
    return access(path, W_OK) == 0;
}

static void probe_cgroups(bc_buf *json)
{
    char path[4200];
    int v2 = access("/sys/fs/cgroup/cgroup.controllers", F_OK) == 0;
    int hybrid = access("/sys/fs/cgroup/unified/cgroup.controllers", F_OK) == 0;
    int v1 = access("/sys/fs/cgroup/memory", F_OK) == 0;
    const char *kind = v2 ? "version 2" : hybrid ? "versions 1 and 2" : v1 ? "version 1" : NULL;
    if (kind == NULL) {
        bc_doctor_add(json, "cgroups", "info", "none is mounted",
                      "mount cgroup2 at /sys/fs/cgroup; without it process 1 watches the limits");
        return;
    }
    bc_doctor_add(json, "cgroups", "ok", kind, "");
    if (delegated(path, sizeof path)) {
        bc_doctor_add(json, "cgroup_delegation", "ok", path, "");
    } else {
        bc_doctor_add(json, "cgroup_delegation", "info", "this process may not make groups",
                      "start it by: systemd-run --user --scope -p Delegate=yes …");
    }
}

static void probe_landlock(bc_buf *json)
{
    char detail[64];
    long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, 1 /* its version */);
    if (abi < 0) {
        bc_doctor_add(json, "landlock", "info", strerror(errno),
                      "add landlock to the lsm= kernel parameter");
        return;
    }
    snprintf(detail, sizeof detail, "ABI %ld", abi);
    bc_doctor_add(json, "landlock", "ok", detail, "");
}

static void probe_seccomp(bc_buf *json)
{
    if (file_contains("/proc/sys/kernel/seccomp/actions_avail", "kill_process")) {
        bc_doctor_add(json, "seccomp", "ok", "filters", "");
    } else {
        bc_doctor_add(json, "seccomp", "missing", "no filters",
                      "use a kernel with CONFIG_SECCOMP_FILTER");
    }
}

static void probe_overlay(bc_buf *json)
{
    if (file_contains("/proc/filesystems", "\toverlay\n")) {
        bc_doctor_add(json, "overlay", "ok", "available", "");
    } else {
        bc_doctor_add(json, "overlay", "info", "not loaded",
                      "modprobe overlay; needed for template directories and copy-on-write mounts");
    }
}

/* What copy-on-write mounts need of the storage: a memfd is of the same file system. */
static void probe_copy_on_write(bc_buf *json)
{
    cleanup_close int fd = memfd_create("barchan-probe", MFD_CLOEXEC);
    if (fd >= 0 && fsetxattr(fd, "user.barchan", "", 0, 0) == 0) {
        bc_doctor_add(json, "copy_on_write", "ok", "tmpfs has user attributes", "");
    } else {
        bc_doctor_add(json, "copy_on_write", "info", "tmpfs has no user attributes",
                      "for copy-on-write mounts: Linux 6.6 or newer with CONFIG_TMPFS_XATTR");
    }
}

/* Whether this user namespace has the ids of the registry at all. */
static int has_ranges(void)
{
    FILE *file = fopen("/proc/self/uid_map", "re");
    if (file == NULL) return 1; /* the sandbox itself will tell */
    unsigned long inside, outside, count;
    int found = 0;
    while (fscanf(file, "%lu %lu %lu", &inside, &outside, &count) == 3) {
        if (inside <= FIRST_ID && inside + count > LAST_ID) found = 1;
    }
    fclose(file);
    return found;
}

static void probe_ids(bc_buf *json)
{
    char map[256];
    if (geteuid() == 0 && !has_ranges()) {
        bc_doctor_add(json, "user_ids", "missing",
                      "the root of this user namespace has no ids to give to sandboxes",
                      "run as an ordinary user, or map the ids from 1879048192 to 2147418111");
    } else if (geteuid() == 0) {
        bc_doctor_add(json, "user_ids", "ok",
                      "a range per sandbox, from 1879048192 on (registry /run/barchan/ids)", "");
    } else if (read_line("/proc/self/uid_map", map, sizeof map)) {
        bc_doctor_add(json, "user_ids", "info",
                      "one id: commands and process 1 of a sandbox share it",
                      "run as root for a range of ids per sandbox");
    }
}

static void probe_memfd(bc_buf *json)
{
    if (line_is("/proc/sys/vm/memfd_noexec", "2")) {
        bc_doctor_add(json, "memfd", "missing", "vm.memfd_noexec is 2",
                      "install the guest program and set guest_path");
    }
}

void bc_doctor_probe_host(bc_buf *json)
{
    probe_kernel(json);
    probe_user_namespaces(json);
    probe_apparmor(json);
    probe_cgroups(json);
    probe_landlock(json);
    probe_seccomp(json);
    probe_overlay(json);
    probe_copy_on_write(json);
    probe_ids(json);
    probe_memfd(json);
}
