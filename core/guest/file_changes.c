/*
 * What commands have changed in a copy-on-write mount: its upper layer, compared with the lower
 * one. The upper layer says that something is gone by a device 0/0, and that a folder hides the one
 * below it by an attribute. Contents decide: what was copied up and is as it was is no change.
 *
 * It runs with the command's rights, so it may fail to look into a folder; then the list says that
 * it is not complete.
 */
#include "file_listing.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

/* Each takes two descriptors and two streams. */
#define MAX_LEVELS 128

struct comparison {
    struct listing *listing;
    dev_t dev;  /* what is mounted elsewhere is no part of it */
    bool hides; /* the folder it is in, or one above, hides the lower one */
};

static bool is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static int incomplete(struct comparison *c)
{
    c->listing->result->truncated = 1;
    return 0;
}

static int open_folder(int dir, const char *name)
{
    return openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
}

static int report(struct comparison *c, uint32_t change, int dir, const char *name,
                  const struct stat *st)
{
    if (!listing_has_room(c->listing)) return 0;
    c->listing->change = change;
    return listing_add(c->listing, dir, name, c->listing->path, st);
}

/* ---- sameness ---- */

static bool same_bytes(int a, int b)
{
    static char bytes[2][BC_FRAME_MAX_DATA];
    for (;;) {
        ssize_t n = read(a, bytes[0], sizeof bytes[0]);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return n == 0 && read(b, bytes[1], 1) == 0;
        for (ssize_t at = 0, m; at < n; at += m) {
            m = read(b, bytes[1] + at, (size_t)(n - at));
            if (m <= 0) return false;
        }
        if (memcmp(bytes[0], bytes[1], (size_t)n) != 0) return false;
    }
}

static bool same_file(int upper, int lower, const char *name)
{
    const int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
    int a = openat(upper, name, flags), b = openat(lower, name, flags);
    bool same = a >= 0 && b >= 0 && same_bytes(a, b);
    if (a >= 0) close(a);
    if (b >= 0) close(b);
    return same;
}

static bool same_link(int upper, int lower, const char *name)
{
    char a[PATH_MAX], b[PATH_MAX];
    ssize_t n = readlinkat(upper, name, a, sizeof a), m = readlinkat(lower, name, b, sizeof b);
    return n >= 0 && n == m && memcmp(a, b, (size_t)n) == 0;
}

static bool is_same(int upper, int lower, const char *name, const struct stat *u,
                    const struct stat *l)
{
    if (u->st_mode != l->st_mode) return false;
    if (S_ISLNK(u->st_mode)) return same_link(upper, lower, name);
    if (!S_ISREG(u->st_mode)) return true;
    return u->st_size == l->st_size && same_file(upper, lower, name);
}

/* ---- what is gone ---- */

static int gone_below(struct comparison *c, int parent, const char *name, size_t path_len,
                      int level);

static int gone(struct comparison *c, int lower, const char *name, size_t path_len, int level)
{
    struct stat st;
    size_t len = listing_name(c->listing, path_len, name);
    if (len == 0 || fstatat(lower, name, &st, AT_SYMLINK_NOFOLLOW) < 0) return 0;
    if (report(c, BC_FILE_DELETED, lower, name, &st) < 0) return -1;
    return S_ISDIR(st.st_mode) ? gone_below(c, lower, name, len, level) : 0;
}

/* All that is in a folder of the lower layer, without itself. */
static int gone_below(struct comparison *c, int parent, const char *name, size_t path_len,
                      int level)
{
    int fd = level == 0 ? -1 : open_folder(parent, name);
    DIR *stream = fd < 0 ? NULL : fdopendir(fd);
    if (stream == NULL) {
        if (fd >= 0) close(fd);
        return incomplete(c);
    }
    int rc = 0;
    struct dirent *entry;
    c->listing->path[path_len] = '/';
    while (rc == 0 && !c->listing->full && (entry = readdir(stream)) != NULL) {
        if (is_dots(entry->d_name)) continue;
        rc = gone(c, fd, entry->d_name, path_len + 1, level - 1);
    }
    closedir(stream);
    c->listing->path[path_len] = '\0';
    return rc;
}

/* ---- what is there ---- */

static int compare_folder(struct comparison *c, int upper, int lower, size_t path_len, int level);

static int compare_subfolder(struct comparison *c, int upper, int lower, const char *name,
                             size_t path_len, int level)
{
    int above = level == 0 ? -1 : open_folder(upper, name);
    int below = lower < 0 || above < 0 ? -1 : open_folder(lower, name);
    if (above < 0 || (lower >= 0 && below < 0)) {
        if (above >= 0) close(above);
        return incomplete(c);
    }
    c->listing->path[path_len] = '/';
    int rc = compare_folder(c, above, below, path_len + 1, level - 1);
    c->listing->path[path_len] = '\0';
    return rc;
}

/* `lower` is -1 where the lower layer has no such folder. */
static int compare_name(struct comparison *c, int upper, int lower, const char *name,
                        size_t path_len, int level)
{
    struct stat u, l = {0};
    size_t len = listing_name(c->listing, path_len, name);
    if (len == 0 || fstatat(upper, name, &u, AT_SYMLINK_NOFOLLOW) < 0) return 0; /* just gone */
    if (u.st_dev != c->dev) return 0;
    bool was = lower >= 0 && fstatat(lower, name, &l, AT_SYMLINK_NOFOLLOW) == 0;
    if (S_ISCHR(u.st_mode) && u.st_rdev == 0) {
        return was ? gone(c, lower, name, path_len, level) : 0;
    }
    bool both = was && S_ISDIR(u.st_mode) && S_ISDIR(l.st_mode);
    if (was && S_ISDIR(l.st_mode) && !both && gone_below(c, lower, name, len, level) < 0) return -1;
    bool same = was && is_same(upper, lower, name, &u, &l);
    if (!same && report(c, was ? BC_FILE_MODIFIED : BC_FILE_ADDED, upper, name, &u) < 0) return -1;
    if (!S_ISDIR(u.st_mode)) return 0;
    return compare_subfolder(c, upper, both ? lower : -1, name, len, level);
}

/* A folder that was made where one had been removed; what is in it has no such mark. */
static bool is_opaque(int upper)
{
    char value[2];
    return fgetxattr(upper, "user.overlay.opaque", value, sizeof value) == 1 && value[0] == 'y';
}

static int compare_hidden(struct comparison *c, int upper, int lower, size_t path_len, int level)
{
    struct stat st;
    int fd = open_folder(lower, "."), rc = 0;
    DIR *stream = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *entry;
    while (stream != NULL && rc == 0 && !c->listing->full && (entry = readdir(stream)) != NULL) {
        if (is_dots(entry->d_name)) continue;
        if (fstatat(upper, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0) continue;
        rc = gone(c, lower, entry->d_name, path_len, level);
    }
    if (stream == NULL) incomplete(c);
    if (stream != NULL) closedir(stream);
    return rc;
}

/* Takes both. */
static int compare_folder(struct comparison *c, int upper, int lower, size_t path_len, int level)
{
    DIR *stream = fdopendir(upper);
    int rc = 0;
    bool hides_above = c->hides;
    c->hides = hides_above || is_opaque(upper);
    struct dirent *entry;
    while (stream != NULL && rc == 0 && !c->listing->full && (entry = readdir(stream)) != NULL) {
        if (is_dots(entry->d_name)) continue;
        rc = compare_name(c, upper, lower, entry->d_name, path_len, level);
    }
    if (stream == NULL) rc = file_fail_os(c->listing->result, errno);
    if (rc == 0 && c->hides && lower >= 0) rc = compare_hidden(c, upper, lower, path_len, level);
    c->hides = hides_above;
    if (stream != NULL) closedir(stream);
    if (stream == NULL) close(upper);
    if (lower >= 0) close(lower);
    return rc;
}

int file_changes(const struct file_request *request, struct file_result *result)
{
    struct comparison c = {.listing = listing_new(result)};
    struct stat st;
    bool layered = request->upper_fd >= 0;
    int upper = layered ? open_folder(FILE_UPPER_FD, ".") : open_folder(AT_FDCWD, request->path);
    if (upper < 0 || fstat(upper, &st) < 0) return file_fail_os(result, errno);
    c.dev = st.st_dev;
    int lower = layered ? open_folder(FILE_LOWER_FD, ".") : -1;
    if (layered && lower < 0) return file_fail_os(result, errno);
    if (compare_folder(&c, upper, lower, 0, MAX_LEVELS) < 0) return -1;
    return listing_flush(c.listing);
}
