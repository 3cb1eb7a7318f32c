/*
 * A template directory: shown read-only under a thin layer of our own files (mount points, /dev,
 * a few files of /etc), by an overlay without an upper layer. It is mounted once per launcher and
 * shared by its sandboxes. The directory's own links decide nothing: where we put a directory,
 * ours hides them.
 */
#include "launcher.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "files.h"
#include "template.h"

#define RAW "/raw"
#define SKELETON "/skeleton"    /* our layer while it is made; the overlay keeps it alive */
#define MAX_ACCOUNTS (1u << 20) /* of a passwd file; real ones have a few KiB */

struct known {
    char *path;
    dev_t dev;
    ino_t ino;
};

static struct known known[LAUNCHER_MAX_TEMPLATES];
static unsigned known_count;

/* The machine's own trees are no root file systems for a sandbox: what would be seen is the host,
 * or nothing that works. NULL: none of them. */
static const char *own_tree(const char *path, const struct stat *st)
{
    static const char *const trees[] = {"/", "/proc", "/sys", "/dev"};
    char real[PATH_MAX];
    struct stat tree;
    for (size_t i = 0; i < sizeof trees / sizeof *trees; i++) {
        if (stat(trees[i], &tree) == 0 && tree.st_dev == st->st_dev && tree.st_ino == st->st_ino) {
            return trees[i];
        }
    }
    if (realpath(path, real) == NULL) return NULL;
    for (size_t i = 1; i < sizeof trees / sizeof *trees; i++) {
        size_t len = strlen(trees[i]);
        if (strncmp(real, trees[i], len) == 0 && real[len] == '/') return trees[i];
    }
    return NULL;
}

/* A detached copy of the directory's mounts, made where the host's files are. */
static int fetch(const struct world *world, const char *path, struct stat *st, struct failure *why)
{
    if (setns(world->host_mounts_fd, CLONE_NEWNS) < 0) {
        return fail_os(why, errno, "enter the host's mounts");
    }
    int rc = stat(path, st), fd = -1;
    if (rc == 0 && !S_ISDIR(st->st_mode)) {
        errno = ENOTDIR;
        rc = -1;
    }
    const char *own = rc == 0 ? own_tree(path, st) : NULL;
    if (rc == 0 && own == NULL) fd = clone_tree(path);
    int os_error = errno;
    if (setns(world->own_mounts_fd, CLONE_NEWNS) < 0) _exit(1); /* nothing would be right here */
    if (own != NULL) {
        return fail_status(why, BC_WIRE_EINVAL,
                           "template %s: it is, or is in, the host's own %s; use the template "
                           "\"host\", or a directory with a root file system of its own",
                           path, own);
    }
    return fd < 0 ? fail_os(why, os_error, "template %s", path) : fd;
}

/* A file of the template's /etc. No link leads out of the template; where openat2 is refused, none
 * is followed at all. */
static int open_in_etc(const char *name)
{
    struct open_how how = {.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK,
                           .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
    char path[NAME_MAX];
    snprintf(path, sizeof path, "etc/%s", name);
    int root = open(RAW, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int fd = (int)syscall(SYS_openat2, root, path, &how, sizeof how);
    if (fd < 0 && (errno == ENOSYS || errno == EPERM)) {
        int etc = openat(root, "etc", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        fd = openat(etc, name, (int)how.flags | O_NOFOLLOW);
        if (etc >= 0) close(etc);
    }
    if (root >= 0) close(root);
    return fd;
}

/* As text; "" when there is none. NULL without memory. */
static char *read_in_etc(const char *name)
{
    char *text = calloc(1, MAX_ACCOUNTS);
    int fd = open_in_etc(name);
    size_t len = 0;
    ssize_t n = 1;
    struct stat st;
    if (text == NULL || fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) n = 0;
    while (n > 0 && len + 1 < MAX_ACCOUNTS) {
        n = read(fd, text + len, MAX_ACCOUNTS - 1 - len);
        if (n > 0) len += (size_t)n;
    }
    if (fd >= 0) close(fd);
    return text;
}

/* "name:x:id:…" of ours wins over the template's line of the same name or id. */
static bool is_ours(const char *line, size_t len)
{
    return (len >= 5 && strncmp(line, "user:", 5) == 0) || memmem(line, len, ":1000:", 6) != NULL;
}

/* The template's accounts, with the sandbox's user put in. */
static int merge_accounts(const char *skeleton, const char *name, const char *ours,
                          struct failure *why)
{
    char path[PATH_MAX];
    char *text = read_in_etc(name);
    if (text == NULL) return fail_os(why, ENOMEM, "read /etc/%s of the template", name);
    snprintf(path, sizeof path, "%s/etc/%s", skeleton, name);
    FILE *out = fopen(path, "wxe");
    int rc = out == NULL ? -1 : 0;
    if (rc == 0) fputs(ours, out);
    for (char *line = text; rc == 0 && *line != '\0';) {
        size_t len = strcspn(line, "\n");
        if (!is_ours(line, len) && len > 0) fprintf(out, "%.*s\n", (int)len, line);
        line += line[len] == '\0' ? len : len + 1;
    }
    if (out != NULL && fclose(out) != 0) rc = -1;
    free(text);
    return rc < 0 ? fail_os(why, errno, "write /etc/%s", name) : 0;
}

/* What our layer has: places to mount on, and files that must say what holds in a sandbox. */
static int make_skeleton(const char *skeleton, struct failure *why)
{
    char path[PATH_MAX];
    if (template_make_dirs(skeleton, why) < 0) return -1;
    for (const struct template_file *file = template_etc_files; file->path != NULL; file++) {
        snprintf(path, sizeof path, "%s%s", skeleton, file->path);
        if (create_file(path, file->text) < 0) return fail_os(why, errno, "write %s", file->path);
    }
    if (merge_accounts(skeleton, "passwd", TEMPLATE_PASSWD_USER, why) < 0) return -1;
    return merge_accounts(skeleton, "group", TEMPLATE_GROUP_USER, why);
}

/* The device nodes, from the template that has them. They stand in a directory of our own,
 * mounted over whatever the template has there. */
static int mount_dev(const char *mounted, struct failure *why)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/dev", mounted);
    int fd = clone_tree(WORLD_HOST_TEMPLATE "/dev");
    if (fd < 0) return fail_os(why, errno, "clone /dev");
    return attach_tree(fd, path) < 0 ? fail_os(why, errno, "attach /dev") : 0;
}

static int mount_overlay(const char *skeleton, const char *mounted, struct failure *why)
{
    char options[256];
    /* No attribute of the template redirects anything. */
    snprintf(options, sizeof options, "lowerdir=%s:" RAW ",redirect_dir=nofollow,metacopy=off",
             skeleton);
    if (mount("overlay", mounted, "overlay", MS_RDONLY | MS_NOSUID | MS_NODEV, options) < 0) {
        fail_os(why, errno, "mount an overlay of the template");
        return fail_hint(why, "template directories need overlayfs: modprobe overlay");
    }
    return 0;
}

static int build_in(const char *mounted, struct failure *why)
{
    if (make_skeleton(SKELETON, why) < 0 || mount_overlay(SKELETON, mounted, why) < 0) return -1;
    if (mount_dev(mounted, why) < 0) return -1;
    if (protect_tree(mounted, 1) < 0) return fail_os(why, errno, "make the template read-only");
    return 0;
}

/* A failure leaves nothing that the next template would meet. */
static int build(const char *mounted, struct failure *why)
{
    if (make_dirs(SKELETON) < 0 || make_dirs(mounted) < 0) {
        return fail_os(why, errno, "create the template's place");
    }
    if (mount("tmpfs", SKELETON, "tmpfs", MS_NOSUID | MS_NODEV, "mode=755,size=4m") < 0) {
        return fail_os(why, errno, "mount a place for the template's files");
    }
    int rc = build_in(mounted, why);
    umount2(SKELETON, MNT_DETACH);
    if (rc < 0) umount2(mounted, MNT_DETACH);
    return rc;
}

static int find(const char *path, const struct stat *st)
{
    for (unsigned i = 0; i < known_count; i++) {
        const struct known *k = &known[i];
        if (k->dev == st->st_dev && k->ino == st->st_ino && strcmp(k->path, path) == 0) {
            return (int)i;
        }
    }
    return -1;
}

int template_dir_open(const struct world *world, const char *path, char *mounted, size_t cap,
                      struct failure *why)
{
    struct stat st;
    int tree = fetch(world, path, &st, why);
    if (tree < 0) return -1;
    int number = find(path, &st);
    if (number >= 0) {
        close(tree);
        snprintf(mounted, cap, WORLD_TEMPLATES "/%d", number);
        return 0;
    }
    if (known_count == LAUNCHER_MAX_TEMPLATES) {
        close(tree);
        return fail_status(why, BC_WIRE_ELIMIT, "more than %d template directories",
                           LAUNCHER_MAX_TEMPLATES);
    }
    snprintf(mounted, cap, WORLD_TEMPLATES "/%u", known_count);
    if (make_dirs(RAW) < 0 || attach_tree(tree, RAW) < 0) {
        return fail_os(why, errno, "attach the template %s", path);
    }
    int rc = build(mounted, why);
    umount2(RAW, MNT_DETACH);
    if (rc < 0) return -1;
    known[known_count].path = strdup(path);
    if (known[known_count].path == NULL) {
        umount2(mounted, MNT_DETACH);
        return fail_os(why, ENOMEM, "keep the template");
    }
    known[known_count].dev = st.st_dev;
    known[known_count++].ino = st.st_ino;
    return 0;
}
