/*
 * What of the host may be shown: no part of the kernel's trees or of Barchan's own state, nothing
 * through which commands could talk to a program, and for copy-on-write only what an overlay can
 * show. Looked at once, when the sandbox is made.
 */
#include "mounts.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Names that are looked at, and levels. A tree of sources has fewer; the launcher does nothing else
 * meanwhile. */
#define MAX_NAMES 1000000u
#define MAX_LEVELS 128

/* Whether one path is the other or lies below it. */
static bool is_within(const char *path, const char *tree)
{
    size_t len = strlen(tree);
    if (strcmp(tree, "/") == 0) return strcmp(path, "/") == 0;
    return strncmp(path, tree, len) == 0 && (path[len] == '/' || path[len] == '\0');
}

static const char *why_not(const char *path)
{
    static const char *const kernels[] = {"/", "/proc", "/sys", "/dev"};
    char state[64], fallback[64];
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
        if (is_within(path, kernels[i])) return "it is, or is in, the kernel's or the whole tree";
    }
    snprintf(state, sizeof state, "/run/user/%u/barchan", (unsigned)geteuid());
    snprintf(fallback, sizeof fallback, "/tmp/barchan-%u", (unsigned)geteuid());
    const char *const own[] = {"/run/barchan", state, fallback};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
        if (is_within(path, own[i]) || is_within(own[i], path)) {
            return "Barchan's own state is, or may come to be, in it: mount a folder below it";
        }
    }
    return NULL;
}

enum found { NOTHING = 0, SOCKET, MOUNT }; /* -1: with errno */

struct search {
    struct mount_request *m;
    bool copy; /* copy-on-write: mounts and owners count, too */
    uint64_t mount_id;
    unsigned names;
    char found[256];
};

static uint64_t mount_id_of(int fd)
{
    struct statx st;
    int rc = statx(fd, "", AT_EMPTY_PATH | AT_NO_AUTOMOUNT, STATX_MNT_ID, &st);
    return rc < 0 ? 0 : st.stx_mnt_id;
}

static int search_dir(int fd, struct search *search, int level);

/* Takes `fd`, a directory below the source. */
static int enter(int fd, const char *name, struct search *search, int level)
{
    if (!search->copy || mount_id_of(fd) == search->mount_id) {
        return search_dir(fd, search, level);
    }
    close(fd);
    snprintf(search->found, sizeof search->found, "%s", name);
    return MOUNT;
}

static int look_at(int parent, const char *name, int type, struct search *search, int level)
{
    struct stat st = {0};
    bool known = false;
    if (type == DT_UNKNOWN || search->copy) {
        known = fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
    }
    if (known) type = S_ISDIR(st.st_mode) ? DT_DIR : S_ISSOCK(st.st_mode) ? DT_SOCK : DT_REG;
    if (search->copy && known && (st.st_uid != search->m->owner || st.st_gid != search->m->group)) {
        search->m->others++;
    }
    if (++search->names > MAX_NAMES || level == 0) {
        errno = E2BIG;
        return -1;
    }
    if (type == DT_SOCK) {
        snprintf(search->found, sizeof search->found, "%s", name);
        return SOCKET;
    }
    if (type != DT_DIR) return NOTHING;
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return errno == EACCES || errno == ENOENT || errno == ENOTDIR ? NOTHING : -1;
    return enter(fd, name, search, level - 1);
}

/* Takes `fd`. */
static int search_dir(int fd, struct search *search, int level)
{
    DIR *dir = fdopendir(fd);
    if (dir == NULL) {
        close(fd);
        return -1;
    }
    int rc = NOTHING;
    struct dirent *entry;
    while (rc == NOTHING && (entry = readdir(dir)) != NULL) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        rc = look_at(fd, entry->d_name, entry->d_type, search, level);
    }
    int os_error = errno;
    closedir(dir);
    errno = os_error;
    return rc;
}

static int search_source(struct mount_request *m, int source, struct failure *why)
{
    struct search search = {.m = m, .copy = m->mode == BC_MOUNT_COPY_ON_WRITE};
    search.mount_id = mount_id_of(source);
    int fd = openat(source, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 && errno == EACCES) return 0; /* nor will anything in it be seen */
    int rc = fd < 0 ? -1 : search_dir(fd, &search, MAX_LEVELS);
    if (rc < 0 && errno == E2BIG) {
        return fail_status(why, BC_WIRE_ELIMIT,
                           "mount %s: too many names or levels to look for sockets", m->source);
    }
    if (rc < 0) return fail_os(why, errno, "mount %s: look for sockets", m->source);
    if (rc == SOCKET) {
        return fail_status(why, BC_WIRE_EINVAL,
                           "mount %s: there is a socket in it, '%s': commands could talk to a "
                           "program of the host",
                           m->source, search.found);
    }
    if (rc == MOUNT) {
        return fail_status(why, BC_WIRE_EINVAL,
                           "mount %s: another file system is mounted in it, at '%s', which "
                           "copy-on-write cannot show; mount it read-only, or without that",
                           m->source, search.found);
    }
    return 0;
}

int mount_check(struct mount_request *m, int fd, const struct stat *st, struct failure *why)
{
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof path - 1);
    if (n < 0) return fail_os(why, errno, "mount %s", m->source);
    path[n] = '\0';
    const char *reason = why_not(path);
    if (reason != NULL) {
        return fail_status(why, BC_WIRE_EINVAL, "mount %s: %s", m->source, reason);
    }
    if (!S_ISDIR(st->st_mode) && !S_ISREG(st->st_mode)) {
        return fail_status(why, BC_WIRE_EINVAL, "mount %s: only folders and regular files",
                           m->source);
    }
    if (m->mode == BC_MOUNT_COPY_ON_WRITE && !S_ISDIR(st->st_mode)) {
        return fail_status(why, BC_WIRE_EINVAL,
                           "mount %s: copy-on-write is for folders; mount the one it is in",
                           m->source);
    }
    if (S_ISREG(st->st_mode)) return 0;
    if (st->st_uid != m->owner || st->st_gid != m->group) m->others++;
    return search_source(m, fd, why);
}
