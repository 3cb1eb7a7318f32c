/* One change, done on the host: under a temporary name next to its place, which it then takes. What
 * it displaces is looked at once more before it is removed, so that a change that somebody made in
 * between is put back. */
#include "apply.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>
#include "base/cleanup.h"

static int conflict(struct change *change, const char *why)
{
    change->outcome = BARCHAN_APPLY_CONFLICT;
    change->why = why;
    return BARCHAN_ECONFLICT;
}

static int fail(barchan_apply_call *call, const struct change *change, int os_error,
                const char *what)
{
    char name[128];
    return bc_error_set_os(&call->error, os_error, "%s '%s'", what,
                           bc_printable(name, sizeof name, change->info.path));
}

static const char *name_of(const struct change *change)
{
    const char *slash = strrchr(change->info.path, '/');
    return slash == NULL ? change->info.path : slash + 1;
}

/* The folder it goes to, when it is still as it was when it was checked. */
static int open_place(barchan_apply_call *call, struct change *change)
{
    struct seen now;
    const char *name;
    int fd = bc_host_tree_parent(&call->dest, change->info.path, &name);
    if (fd == -ENOENT || fd == -ENOTDIR || fd == -ELOOP) {
        return conflict(change, "the folder it belongs to is not on the host");
    }
    if (fd < 0) return fail(call, change, -fd, "open the folder of");
    int rc = bc_apply_look_in(fd, name, &now);
    if (rc < 0) {
        close(fd);
        return fail(call, change, -rc, "look at");
    }
    int overwrite = call->on_conflict == BARCHAN_ON_CONFLICT_OVERWRITE;
    if (overwrite && !S_ISDIR(now.mode) && !S_ISDIR(change->seen.mode)) change->seen = now;
    if (bc_apply_is_as_seen(&change->seen, &now)) return fd;
    close(fd);
    return conflict(change, "it was changed on the host meanwhile");
}

static int make_temporary(barchan_apply_call *call)
{
    uint64_t random;
    if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random) {
        return bc_error_set(&call->error, BARCHAN_EIO, "no random numbers");
    }
    snprintf(call->temporary, sizeof call->temporary, ".barchan-%016llx",
             (unsigned long long)random);
    return 0;
}

/* ---- taking a place ---- */

/* Renaming has changed its ctime, and nothing else. */
static int is_displaced(const struct seen *seen, int parent, const char *name)
{
    struct stat st;
    return fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_dev == seen->dev &&
           st.st_ino == seen->ino && st.st_size == seen->size &&
           st.st_mtim.tv_sec == seen->mtime.tv_sec && st.st_mtim.tv_nsec == seen->mtime.tv_nsec;
}

/* The file system has no such renaming; some say so by EPERM. */
static int lacks_renameat2(int os_error)
{
    return os_error == EINVAL || os_error == ENOSYS || os_error == EPERM;
}

static int is_made_here(const barchan_apply_call *call, int parent)
{
    struct stat st;
    return fstatat(parent, call->temporary, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
           st.st_dev == call->made_dev && st.st_ino == call->made_ino;
}

/* What somebody has made meanwhile stands under the temporary name: back to its own, or it stays
 * where it is, and the error says where. */
static int put_back(barchan_apply_call *call, struct change *change, int parent)
{
    char name[128];
    const char *own = name_of(change);
    if (renameat2(parent, call->temporary, parent, own, RENAME_NOREPLACE) == 0 ||
        (linkat(parent, call->temporary, parent, own, 0) == 0 &&
         unlinkat(parent, call->temporary, 0) == 0)) {
        return conflict(change, "it was changed on the host meanwhile");
    }
    bc_error_set_os(
        &call->error, errno,
        "'%s' was changed on the host meanwhile, and what it was then stands as '%s' in "
        "its folder; put back",
        bc_printable(name, sizeof name, change->info.path), call->temporary);
    call->temporary[0] = '\0'; /* nobody removes it */
    return call->error.code;
}

static int take_free_place(barchan_apply_call *call, struct change *change, int parent)
{
    const char *name = name_of(change);
    int rc = renameat2(parent, call->temporary, parent, name, RENAME_NOREPLACE);
    if (rc < 0 && lacks_renameat2(errno)) {
        rc = linkat(parent, call->temporary, parent, name, 0);
        if (rc == 0) unlinkat(parent, call->temporary, 0);
    }
    if (rc == 0) return 0;
    if (errno == EEXIST) return conflict(change, "there is one on the host meanwhile");
    return fail(call, change, errno, "write");
}

static int take_place(barchan_apply_call *call, struct change *change, int parent)
{
    const char *name = name_of(change);
    if (change->late) {
        if (unlinkat(parent, name, AT_REMOVEDIR) < 0 && errno != ENOENT) {
            if (errno == ENOTEMPTY || errno == EEXIST || errno == ENOTDIR) {
                return conflict(change, "there is more in the folder on the host");
            }
            return fail(call, change, errno, "remove the folder");
        }
        change->seen = (struct seen){0};
    }
    if (!change->seen.present) return take_free_place(call, change, parent);
    if (renameat2(parent, call->temporary, parent, name, RENAME_EXCHANGE) < 0) {
        if (errno == ENOENT) return conflict(change, "it was removed on the host meanwhile");
        if (!lacks_renameat2(errno)) return fail(call, change, errno, "write");
        if (!is_displaced(&change->seen, parent, name)) {
            return conflict(change, "it was changed on the host meanwhile");
        }
        return renameat(parent, call->temporary, parent, name) < 0
                   ? fail(call, change, errno, "write")
                   : 0;
    }
    if (is_displaced(&change->seen, parent, call->temporary)) {
        return unlinkat(parent, call->temporary, 0) < 0
                   ? fail(call, change, errno, "remove what was replaced,")
                   : 0;
    }
    if (renameat2(parent, call->temporary, parent, name, RENAME_EXCHANGE) < 0) {
        return put_back(call, change, parent);
    }
    if (!is_made_here(call, parent)) return put_back(call, change, parent); /* a second one's */
    return conflict(change, "it was changed on the host meanwhile");
}

static void drop_temporary(const barchan_apply_call *call, int parent)
{
    if (call->temporary[0] != '\0') unlinkat(parent, call->temporary, 0);
}

/* As root, to the owner of what it replaces, or of the folder it is in; by descriptor, for a name
 * may have become another's. */
static int give_owner(const struct change *change, int parent, int fd)
{
    struct stat st;
    uid_t uid = change->seen.uid;
    gid_t gid = change->seen.gid;
    if (geteuid() != 0) return 0;
    if (!change->seen.present) {
        if (fstat(parent, &st) < 0) return -1;
        uid = st.st_uid;
        gid = st.st_gid;
    }
    return fchown(fd, uid, gid);
}

/* A folder that was just made, and is still what stands there: nobody else's, and empty. */
static int open_new_folder(int parent, const char *name)
{
    struct stat st;
    cleanup_close int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0) return -1;
    DIR *dir = st.st_uid == geteuid() ? fdopendir(dup(fd)) : NULL;
    int names = dir == NULL ? 3 : 0;
    while (names < 3 && readdir(dir) != NULL) {
        names++;
    }
    if (dir != NULL) closedir(dir);
    if (names <= 2) return steal_fd(&fd); /* . and .. */
    errno = EBUSY;
    return -1;
}

/* ---- what is to go ---- */

/* Set aside first: what goes is what was looked at. */
static int remove_file(barchan_apply_call *call, struct change *change, int parent)
{
    const char *name = name_of(change);
    int rc = make_temporary(call);
    if (rc < 0) return rc;
    rc = renameat2(parent, name, parent, call->temporary, RENAME_NOREPLACE);
    if (rc < 0 && lacks_renameat2(errno)) rc = renameat(parent, name, parent, call->temporary);
    if (rc < 0) return errno == ENOENT ? 0 : fail(call, change, errno, "remove");
    if (is_displaced(&change->seen, parent, call->temporary)) {
        return unlinkat(parent, call->temporary, 0) < 0 ? fail(call, change, errno, "remove") : 0;
    }
    return put_back(call, change, parent);
}

int bc_apply_remove(barchan_apply_call *call, struct change *change)
{
    if (!change->seen.present) return 0;
    cleanup_close int parent = open_place(call, change);
    if (parent < 0) return parent;
    if (!change->seen.present) return 0;
    if (!S_ISDIR(change->seen.mode)) return remove_file(call, change, parent);
    if (unlinkat(parent, name_of(change), AT_REMOVEDIR) == 0 || errno == ENOENT) return 0;
    if (errno == ENOTEMPTY || errno == EEXIST) {
        return conflict(change, "there is more in the folder on the host");
    }
    return fail(call, change, errno, "remove the folder");
}

/* ---- folders and links ---- */

int bc_apply_folder(barchan_apply_call *call, struct change *change)
{
    cleanup_close int parent = open_place(call, change);
    if (parent < 0) return parent;
    if (change->seen.present && S_ISDIR(change->seen.mode)) return 0; /* it keeps its rights */
    if (change->seen.present) {
        int rc = remove_file(call, change, parent);
        if (rc < 0) return rc;
        change->seen = (struct seen){0};
    }
    if (mkdirat(parent, name_of(change), (change->info.mode & 0777) | 0700) < 0) {
        if (errno == EEXIST) return conflict(change, "there is one on the host meanwhile");
        return fail(call, change, errno, "make the folder");
    }
    if (geteuid() != 0) return 0;
    cleanup_close int made = open_new_folder(parent, name_of(change));
    if (made < 0 || give_owner(change, parent, made) < 0) {
        return fail(call, change, errno, "give away the folder");
    }
    return 0;
}

static int finish_link(barchan_apply_call *call, struct change *change, int parent)
{
    struct stat st;
    if (fstatat(parent, call->temporary, &st, AT_SYMLINK_NOFOLLOW) < 0) {
        return fail(call, change, errno, "make the link");
    }
    call->made_dev = st.st_dev;
    call->made_ino = st.st_ino;
    int rc = take_place(call, change, parent);
    if (rc == 0 && fstatat(parent, name_of(change), &st, AT_SYMLINK_NOFOLLOW) == 0) {
        bc_apply_remember(call->sbx, &st);
    }
    return rc;
}

int bc_apply_link(barchan_apply_call *call, struct change *change)
{
    cleanup_close int parent = open_place(call, change);
    if (parent < 0) return parent;
    int rc = make_temporary(call);
    if (rc < 0) return rc;
    if (symlinkat(change->info.link_target, parent, call->temporary) < 0) {
        return fail(call, change, errno, "make the link");
    }
    rc = finish_link(call, change, parent);
    if (rc < 0) drop_temporary(call, parent);
    return rc;
}

/* ---- files ---- */

int bc_apply_file_begin(barchan_apply_call *call, struct change *change)
{
    const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC;
    int parent = open_place(call, change);
    if (parent < 0) return parent;
    int rc = make_temporary(call);
    if (rc < 0) {
        close(parent);
        return rc;
    }
    /* In the place of a file it has that one's rights in the end, and nobody else's until then. */
    int replaces = change->seen.present && S_ISREG(change->seen.mode);
    mode_t mode = replaces ? 0600 : change->info.mode & 0777;
    struct stat st;
    call->out_fd = openat(parent, call->temporary, flags, mode);
    if (call->out_fd >= 0 && fstat(call->out_fd, &st) == 0) {
        call->made_dev = st.st_dev;
        call->made_ino = st.st_ino;
    }
    if (call->out_fd < 0) {
        rc = fail(call, change, errno, "write");
        close(parent);
        return rc;
    }
    call->parent_fd = parent;
    return 0;
}

int bc_apply_file_write(barchan_apply_call *call, const void *data, size_t len)
{
    if (len > call->max_bytes - call->bytes) {
        return bc_error_set(&call->error, BARCHAN_ELIMIT,
                            "the files are larger than max_bytes, %llu bytes, together",
                            (unsigned long long)call->max_bytes);
    }
    call->bytes += len;
    for (size_t at = 0; at < len;) {
        ssize_t n = write(call->out_fd, (const char *)data + at, len - at);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return bc_error_set_os(&call->error, errno, "write");
        at += (size_t)n;
    }
    return 0;
}

static void close_file(barchan_apply_call *call)
{
    if (call->out_fd >= 0) close(call->out_fd);
    if (call->parent_fd >= 0) close(call->parent_fd);
    call->out_fd = call->parent_fd = -1;
}

void bc_apply_file_abort(barchan_apply_call *call)
{
    if (call->parent_fd >= 0) drop_temporary(call, call->parent_fd);
    close_file(call);
}

/* Those of the file that was there, but for whether it may be run. */
static int set_rights(const struct change *change, int fd)
{
    if (!change->seen.present || !S_ISREG(change->seen.mode)) return 0;
    mode_t mode = change->seen.mode & 0777;
    if (!(change->info.mode & 0100)) mode &= ~(mode_t)0111;
    if (change->info.mode & 0100 && !(mode & 0100)) mode |= (mode & 0444) >> 2;
    return fchmod(fd, mode);
}

int bc_apply_file_end(barchan_apply_call *call, struct change *change)
{
    struct stat st;
    int rc = 0;
    if (give_owner(change, call->parent_fd, call->out_fd) < 0 ||
        set_rights(change, call->out_fd) < 0) {
        rc = fail(call, change, errno, "set the owner and rights of");
    }
    /* What it replaces must not be gone before it is on the disk, should the power fail. */
    if (rc == 0 && change->seen.present && fdatasync(call->out_fd) < 0) {
        rc = fail(call, change, errno, "write");
    }
    if (rc == 0) rc = take_place(call, change, call->parent_fd);
    if (rc < 0) {
        bc_apply_file_abort(call);
        return rc;
    }
    if (fstat(call->out_fd, &st) == 0) bc_apply_remember(call->sbx, &st);
    close_file(call);
    return 0;
}
