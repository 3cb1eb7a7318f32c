/*
 * Folders and files of the host that a sandbox shows. A source is looked up once, where the host's
 * files are; what is checked is what is mounted. It stands in the launcher's root for as long as
 * the sandbox takes to get its copy of that.
 */
#include "launcher.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "files.h"

/* ---- owners ---- */

static _Noreturn void wait_for_end(void)
{
    for (;;) {
        pause();
    }
}

static int write_map(pid_t pid, const char *file, unsigned from, unsigned to)
{
    char path[64], text[64];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, file);
    snprintf(text, sizeof text, "%u %u 1", from, to);
    return write_file(path, text);
}

/* A user namespace in which the source's owner is the sandbox's user: for the mount, not for any
 * process. */
static int owner_namespace(const struct stat *st, unsigned sandbox_id)
{
    pid_t pid = (pid_t)syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, NULL, NULL, NULL, NULL);
    if (pid < 0) return -1;
    if (pid == 0) wait_for_end();
    char path[64];
    int fd = -1;
    if (write_map(pid, "uid_map", st->st_uid, sandbox_id) == 0 &&
        write_map(pid, "gid_map", st->st_gid, sandbox_id) == 0) {
        snprintf(path, sizeof path, "/proc/%d/ns/user", (int)pid);
        fd = open(path, O_RDONLY | O_CLOEXEC);
    }
    int os_error = errno;
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    errno = os_error;
    return fd;
}

/* Rights of the mount; where a sandbox has ids of its own, its user owns what the owner of the
 * source owns. */
static int set_rights(int tree, const struct mount_request *m, const struct stat *st,
                      unsigned sandbox_id, struct failure *why)
{
    struct mount_attr attr = {.attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV,
                              .propagation = MS_PRIVATE};
    if (m->mode != BC_MOUNT_READ_WRITE) attr.attr_set |= MOUNT_ATTR_RDONLY;
    unsigned flags = AT_EMPTY_PATH | AT_RECURSIVE;
    if (mount_setattr(tree, "", flags, &attr, sizeof attr) < 0) {
        return fail_os(why, errno, "mount %s", m->source);
    }
    if (sandbox_id == 0) return 0;
    if (m->mode == BC_MOUNT_READ_WRITE && (st->st_uid == 0 || st->st_gid == 0)) {
        return fail_status(why, BC_WIRE_EPERMISSION,
                           "mount %s: it belongs to root, as whom commands would write; give it to "
                           "another user and group, or mount it read-only",
                           m->source);
    }
    struct mount_attr owners = {.attr_set = MOUNT_ATTR_IDMAP};
    int fd = owner_namespace(st, sandbox_id);
    if (fd < 0) return fail_os(why, errno, "mount %s: make a map of owners", m->source);
    owners.userns_fd = (uint64_t)fd;
    int rc = mount_setattr(tree, "", flags, &owners, sizeof owners);
    int os_error = errno;
    close(fd);
    if (rc == 0 || m->mode == BC_MOUNT_READ_ONLY)
        return 0; /* what everybody may read can be read without */
    fail_os(why, os_error, "mount %s: map its owners", m->source);
    return fail_hint(why, "its file system, or one mounted in it, cannot; mount it read-only");
}

/* ---- in the launcher ---- */

/* "…/.t-ID/home": neither is a link, and both are this user's. */
static int open_tree_of_template(const char *path)
{
    char folder[BC_FRAME_MAX_PATH];
    struct stat st;
    const char *slash = strrchr(path, '/');
    size_t len = (size_t)(slash - path);
    memcpy(folder, path, len); /* an absolute path of less than BC_FRAME_MAX_PATH */
    folder[len] = '\0';
    int parent = open(folder, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), fd = -1;
    if (parent >= 0 && fstat(parent, &st) == 0 && st.st_uid == geteuid()) {
        fd = openat(parent, slash + 1, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    } else if (parent >= 0) {
        errno = EPERM;
    }
    int os_error = errno;
    if (parent >= 0) close(parent);
    if (fd >= 0 && (fstat(fd, &st) < 0 || st.st_uid != geteuid())) {
        close(fd);
        fd = -1;
        os_error = EPERM;
    }
    errno = os_error;
    return fd;
}

static int open_source(const struct world *world, struct mount_request *m, bool map_owners,
                       struct stat *st, struct failure *why)
{
    if (setns(world->host_mounts_fd, CLONE_NEWNS) < 0) {
        return fail_os(why, errno, "enter the host's mounts");
    }
    int tree = -1, rc = 0;
    int fd = m->mode == BC_MOUNT_TEMPLATE ? open_tree_of_template(m->source)
                                          : open(m->source, O_PATH | O_CLOEXEC);
    if (fd < 0 || fstat(fd, st) < 0) rc = fail_os(why, errno, "mount %s", m->source);
    m->owner = map_owners ? st->st_uid : geteuid();
    m->group = map_owners ? st->st_gid : getegid();
    if (rc == 0 && m->mode != BC_MOUNT_TEMPLATE) rc = mount_check(m, fd, st, why);
    if (rc == 0) {
        tree =
            open_tree(fd, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE | AT_EMPTY_PATH);
        if (tree < 0) fail_os(why, errno, "mount %s", m->source);
    }
    if (fd >= 0) close(fd);
    if (setns(world->own_mounts_fd, CLONE_NEWNS) < 0) _exit(1); /* nothing would be right here */
    return tree;
}

static int attach(const struct world *world, struct mount_request *m, unsigned number,
                  unsigned sandbox_id, struct failure *why)
{
    char place[64];
    struct stat st;
    int tree = open_source(world, m, sandbox_id != 0, &st, why);
    if (tree < 0) return -1;
    m->is_file = !S_ISDIR(st.st_mode);
    m->rights = st.st_mode & 0777;
    /* The trees of a template are of the library's making: nothing in them is to be looked for. */
    if (m->mode == BC_MOUNT_TEMPLATE && m->is_file) {
        close(tree);
        return fail_os(why, ENOTDIR, "mount %s", m->source);
    }
    if (m->mode == BC_MOUNT_TEMPLATE && strstr(m->target, "tmp") != NULL) m->rights = 01777;
    snprintf(place, sizeof place, WORLD_MOUNTS "/%s%u", m->is_file ? "f" : "d", number);
    int made = m->is_file ? create_file(place, "") : make_dirs(place);
    if (made < 0 && errno != EEXIST) {
        close(tree);
        return fail_os(why, errno, "make a place for the mount");
    }
    if (set_rights(tree, m, &st, sandbox_id, why) < 0) {
        close(tree);
        return -1;
    }
    if (attach_tree(tree, place) < 0) return fail_os(why, errno, "mount %s", m->source);
    return 0;
}

int mounts_open(const struct world *world, struct mount_list *mounts, unsigned sandbox_id,
                struct failure *why)
{
    for (unsigned i = 0; i < mounts->count; i++) {
        if (attach(world, &mounts->of[i], i, sandbox_id, why) < 0) {
            mounts->count = i;
            mounts_close(mounts);
            return -1;
        }
    }
    return 0;
}

static void place_of(const struct mount_list *mounts, unsigned i, char place[64])
{
    snprintf(place, 64, WORLD_MOUNTS "/%s%u", mounts->of[i].is_file ? "f" : "d", i);
}

void mounts_close(const struct mount_list *mounts)
{
    char place[64];
    for (unsigned i = 0; i < mounts->count; i++) {
        place_of(mounts, i, place);
        umount2(place, MNT_DETACH);
    }
}

/* ---- in the sandbox, whose root-to-be is the working directory ---- */

/* What a template's tree has in the place of a target is of a sandbox's making: a link would lead
 * out of the root-to-be. Nobody is there yet who could change it after the look. */
static int check_present(const struct mount_request *m, const char *path, bool is_file,
                         struct failure *why)
{
    struct stat st;
    if (lstat(path, &st) < 0) return fail_os(why, errno, "mount at %s", m->target);
    if (is_file ? S_ISREG(st.st_mode) : S_ISDIR(st.st_mode)) return 0;
    return fail_status(why, BC_WIRE_EINVAL,
                       "mount at %s: the template has something else than a %s at /%s", m->target,
                       is_file ? "file" : "folder", path);
}

/* The parents of a place belong to the sandbox's user, as what else is in the storage. */
static int make_target(const struct mount_request *m, bool give, struct failure *why)
{
    char path[BC_FRAME_MAX_PATH];
    const char *target = m->target + 1;
    for (size_t i = 1; i <= strlen(target); i++) {
        bool last = target[i] == '\0';
        if (target[i] != '/' && !last) continue;
        memcpy(path, target, i);
        path[i] = '\0';
        int rc = last && m->is_file ? create_file(path, "") : mkdir(path, 0755);
        if (rc < 0 && errno == EEXIST) {
            if (check_present(m, path, last && m->is_file, why) < 0) return -1;
            continue;
        }
        if (rc == 0 && give) rc = chown(path, SANDBOX_UID, SANDBOX_UID);
        if (rc < 0) return fail_os(why, errno, "mount at %s", m->target);
    }
    return 0;
}

int mounts_show(struct mount_list *mounts, bool give, struct failure *why)
{
    char place[64];
    for (unsigned i = 0; i < mounts->count; i++) {
        struct mount_request *m = &mounts->of[i];
        if (make_target(m, give, why) < 0) return -1;
        place_of(mounts, i, place);
        if (m->mode == BC_MOUNT_COPY_ON_WRITE || m->mode == BC_MOUNT_TEMPLATE) {
            if (mount_copy_on_write(m, place, i, give, why) < 0) return -1;
        } else if (mount(place, m->target + 1, NULL, MS_BIND | MS_REC, NULL) < 0) {
            return fail_os(why, errno, "mount %s at %s", m->source, m->target);
        }
    }
    return 0;
}
