/*
 * The template "host": a small read-only root with this machine's /usr and what programs in it
 * need from /etc. Built once per launcher; sandboxes share it. The files in /etc are written or
 * copied here one by one; nothing else of the host's /etc is in sight.
 */
#include "launcher.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>
#include "files.h"
#include "template.h"

#define MAX_COPY (8u << 20) /* the largest is ld.so.cache, below 1 MiB on full desktops */

/* Directories of /etc that are shown as they are. */
static const char *const shown_dirs[] = {
    "/etc/alternatives",  /* awk, cc, java, … are links through it */
    "/etc/ssl/certs",     /* Debian, Ubuntu, SUSE */
    "/etc/pki/tls/certs", /* Fedora */
    "/etc/pki/ca-trust/extracted",
    "/etc/ca-certificates/extracted", /* Arch */
    "/etc/ld.so.conf.d",
};

static const char *const copied_files[] = {
    "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ssl/openssl.cnf", "/etc/ssl/cert.pem",
    "/etc/protocols",   "/etc/services",   "/etc/mime.types",      "/etc/timezone",
};

const struct template_file template_etc_files[] = {
    {"/etc/hosts", "127.0.0.1\tlocalhost sandbox\n::1\tlocalhost sandbox\n"},
    {"/etc/hostname", "sandbox\n"},
    {"/etc/resolv.conf", "# not reachable in a sandbox without a network\n"
                         "nameserver " BC_NETWORK_SERVICE_TEXT "\n"},
    {"/etc/nsswitch.conf", "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\n"
                           "networks: files\nprotocols: files\nservices: files\n"},
    {NULL, NULL},
};

static int place(const char *root, const char *path, char *full, size_t cap, struct failure *why)
{
    if ((size_t)snprintf(full, cap, "%s%s", root, path) >= cap) {
        return fail_os(why, ENAMETOOLONG, "%s%s", root, path);
    }
    return 0;
}

static int make_file(const char *root, const char *path, const char *text, struct failure *why)
{
    char full[PATH_MAX];
    if (place(root, path, full, sizeof full, why) < 0) return -1;
    return create_file(full, text) < 0 ? fail_os(why, errno, "write %s", full) : 0;
}

static int make_link(const char *root, const char *target, const char *path, struct failure *why)
{
    char full[PATH_MAX];
    if (place(root, path, full, sizeof full, why) < 0) return -1;
    return symlink(target, full) < 0 ? fail_os(why, errno, "link %s", full) : 0;
}

int template_show(const char *root, const char *path, bool required, struct failure *why)
{
    struct stat st;
    char full[PATH_MAX];
    if (stat(path, &st) < 0) return required ? fail_os(why, errno, "find %s", path) : 0;
    if (place(root, path, full, sizeof full, why) < 0) return -1;
    int fd = clone_tree(path);
    if (fd < 0) return fail_os(why, errno, "clone the mounts of %s", path);
    int rc;
    if (S_ISDIR(st.st_mode)) {
        rc = make_dirs(full);
    } else {
        rc = create_file(full, "");
    }
    if (rc < 0) {
        int os_error = errno;
        close(fd);
        return fail_os(why, os_error, "create %s", full);
    }
    if (attach_tree(fd, full) < 0) return fail_os(why, errno, "attach %s", full);
    if (protect_tree(full, !S_ISDIR(st.st_mode)) < 0) {
        return fail_os(why, errno, "make %s read-only", full);
    }
    return 0;
}

/* /bin, /lib, …: links into /usr where the host merged them, else directories of their own. */
static int show_top(const char *root, struct failure *why)
{
    static const char *const names[] = {"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char target[PATH_MAX];
        ssize_t n = readlink(names[i], target, sizeof target - 1);
        if (n < 0 && errno == ENOENT) continue;
        if (n < 0) { /* not a link */
            if (template_show(root, names[i], false, why) < 0) return -1;
            continue;
        }
        target[n] = '\0';
        if (strncmp(target, "usr/", 4) != 0 && strncmp(target, "/usr/", 5) != 0) {
            return fail_status(why, BC_WIRE_EUNSUPPORTED,
                               "%s is a link to %s; the template 'host' knows only links into "
                               "/usr; use a template directory",
                               names[i], target);
        }
        if (make_link(root, target, names[i], why) < 0) return -1;
    }
    return 0;
}

/* The zone file of /usr/share/zoneinfo, by the same link as on the host. */
static int show_time_zone(const char *root, struct failure *why)
{
    char target[PATH_MAX], full[PATH_MAX];
    ssize_t n = readlink("/etc/localtime", target, sizeof target - 1);
    if (n > 0) target[n] = '\0';
    if (n > 0 && strstr(target, "usr/share/zoneinfo/") != NULL) {
        return make_link(root, target, "/etc/localtime", why);
    }
    if (place(root, "/etc/localtime", full, sizeof full, why) < 0) return -1;
    if (copy_file("/etc/localtime", full, MAX_COPY) < 0) return fail_os(why, errno, "%s", full);
    return 0;
}

static int make_etc(const char *root, struct failure *why)
{
    char full[PATH_MAX];
    for (size_t i = 0; i < sizeof shown_dirs / sizeof *shown_dirs; i++) {
        if (template_show(root, shown_dirs[i], false, why) < 0) return -1;
    }
    for (size_t i = 0; i < sizeof copied_files / sizeof *copied_files; i++) {
        if (place(root, copied_files[i], full, sizeof full, why) < 0) return -1;
        if (copy_file(copied_files[i], full, MAX_COPY) < 0 && errno != ENOENT) {
            return fail_os(why, errno, "copy %s", copied_files[i]);
        }
    }
    for (const struct template_file *file = template_etc_files; file->path != NULL; file++) {
        if (make_file(root, file->path, file->text, why) < 0) return -1;
    }
    if (make_file(root, "/etc/passwd",
                  TEMPLATE_PASSWD_ROOT TEMPLATE_PASSWD_USER TEMPLATE_PASSWD_NOBODY, why) < 0 ||
        make_file(root, "/etc/group",
                  TEMPLATE_GROUP_ROOT TEMPLATE_GROUP_USER TEMPLATE_GROUP_NOGROUP, why) < 0 ||
        make_link(root, "/proc/mounts", "/etc/mtab", why) < 0 ||
        make_link(root, "../usr/lib/os-release", "/etc/os-release", why) < 0) {
        return -1;
    }
    return show_time_zone(root, why);
}

int template_make_dev(const char *root, struct failure *why)
{
    static const char *const nodes[] = {"/dev/null",   "/dev/zero",    "/dev/full",
                                        "/dev/random", "/dev/urandom", "/dev/tty"};
    static const char *const links[][2] = {{"/proc/self/fd", "/dev/fd"},
                                           {"/proc/self/fd/0", "/dev/stdin"},
                                           {"/proc/self/fd/1", "/dev/stdout"},
                                           {"/proc/self/fd/2", "/dev/stderr"},
                                           {"pts/ptmx", "/dev/ptmx"}};
    static const char *const dirs[] = {"/dev/shm", "/dev/pts"};
    char full[PATH_MAX];
    for (size_t i = 0; i < sizeof dirs / sizeof *dirs; i++) {
        if (place(root, dirs[i], full, sizeof full, why) < 0) return -1;
        if (make_dirs(full) < 0) return fail_os(why, errno, "create %s", full);
    }
    for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++) {
        if (template_show(root, nodes[i], true, why) < 0) return -1;
    }
    for (size_t i = 0; i < sizeof links / sizeof *links; i++) {
        if (make_link(root, links[i][0], links[i][1], why) < 0) return -1;
    }
    return 0;
}

int template_make_dirs(const char *root, struct failure *why)
{
    static const char *const dirs[] = {"/dev", "/etc",       "/proc",    "/tmp", "/home/user",
                                       "/run", "/workspace", "/var/tmp", "/mnt"};
    char full[PATH_MAX];
    for (size_t i = 0; i < sizeof dirs / sizeof *dirs; i++) {
        if (place(root, dirs[i], full, sizeof full, why) < 0) return -1;
        if (make_dirs(full) < 0) return fail_os(why, errno, "create %s", dirs[i]);
    }
    return 0;
}

int template_host_build(const char *target, struct failure *why)
{
    char root[PATH_MAX];
    if (mount("tmpfs", target, "tmpfs", MS_NOSUID, "mode=755,size=64m") < 0) {
        return fail_os(why, errno, "mount a tmpfs for the launcher's root");
    }
    if (place(target, WORLD_HOST_TEMPLATE, root, sizeof root, why) < 0) return -1;
    if (make_dirs(root) < 0) return fail_os(why, errno, "create %s", root);
    /* A mount of its own, so that it can be read-only while the launcher's root is not. */
    if (mount(root, root, NULL, MS_BIND, NULL) < 0) return fail_os(why, errno, "bind %s", root);
    if (template_make_dirs(root, why) < 0 || template_show(root, "/usr", true, why) < 0 ||
        show_top(root, why) < 0 || make_etc(root, why) < 0 || template_make_dev(root, why) < 0) {
        return -1;
    }
    if (protect_tree(root, 1) < 0) return fail_os(why, errno, "make %s read-only", root);
    return 0;
}
