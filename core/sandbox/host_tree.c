#include "host_tree.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "base/cleanup.h"

int bc_host_tree_open(bc_host_tree *tree, const char *path)
{
    struct stat st;
    *tree = (bc_host_tree){.fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    if (tree->fd < 0 || fstat(tree->fd, &st) < 0) {
        int os_error = errno;
        bc_host_tree_close(tree);
        return -os_error;
    }
    tree->dev = st.st_dev;
    tree->ino = st.st_ino;
    return 0;
}

void bc_host_tree_close(bc_host_tree *tree)
{
    if (tree->fd >= 0) close(tree->fd);
    tree->fd = -1;
}

int bc_host_tree_is_same(const bc_host_tree *a, const bc_host_tree *b)
{
    return a->fd >= 0 && b->fd >= 0 && a->dev == b->dev && a->ino == b->ino;
}

/* One part after the other: none may be a link, and none is "..". */
static int walk(const bc_host_tree *tree, const char *path)
{
    char part[NAME_MAX + 1];
    int fd = openat(tree->fd, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    while (fd >= 0 && *path != '\0') {
        size_t len = strcspn(path, "/");
        if (len > NAME_MAX) {
            close(fd);
            return -ENAMETOOLONG;
        }
        memcpy(part, path, len);
        part[len] = '\0';
        int next = openat(fd, part, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        int os_error = errno;
        close(fd);
        errno = os_error;
        fd = next;
        path += len + (path[len] == '/');
    }
    return fd < 0 ? -errno : fd;
}

static int open_beneath(bc_host_tree *tree, const char *path)
{
    const struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
                                 .resolve =
                                     RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};
    if (!tree->no_openat2) {
        int fd = (int)syscall(SYS_openat2, tree->fd, path, &how, sizeof how);
        if (fd >= 0) return fd;
        if (errno != ENOSYS && errno != EPERM) return -errno;
        tree->no_openat2 = errno == ENOSYS; /* a filter may say EPERM, and so may a file system */
    }
    return walk(tree, path);
}

static int is_plain(const char *path)
{
    for (;;) {
        size_t len = strcspn(path, "/");
        if (len == 0 || (len <= 2 && strncmp(path, "..", len) == 0)) return 0;
        if (path[len] == '\0') return 1;
        path += len + 1;
    }
}

int bc_host_tree_parent(bc_host_tree *tree, const char *path, const char **name)
{
    char folder[PATH_MAX];
    if (!is_plain(path)) return -EINVAL;
    const char *slash = strrchr(path, '/');
    *name = slash == NULL ? path : slash + 1;
    size_t len = slash == NULL ? 0 : (size_t)(slash - path);
    if (len >= sizeof folder || strlen(*name) > NAME_MAX) return -ENAMETOOLONG;
    memcpy(folder, path, len);
    folder[len] = '\0';
    if (len > 0) return open_beneath(tree, folder);
    int fd = openat(tree->fd, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

int bc_host_tree_open_file(bc_host_tree *tree, const char *path)
{
    const char *name;
    cleanup_close int parent = bc_host_tree_parent(tree, path, &name);
    if (parent < 0) return -1;
    return openat(parent, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

int bc_host_tree_stat(bc_host_tree *tree, const char *path, struct stat *st, int *parent_missing)
{
    const char *name;
    cleanup_close int parent = bc_host_tree_parent(tree, path, &name);
    *parent_missing = parent == -ENOENT;
    if (parent < 0) return parent;
    return fstatat(parent, name, st, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}
