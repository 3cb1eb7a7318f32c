/*
 * What commands have changed in a copy-on-write mount. Only what is in its upper layer can be
 * changed; that is compared with the lower one, and what the lower one has and commands do not see
 * is gone. Contents decide: what was copied up and is as it was is no change.
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
#include <unistd.h>

/* Each takes three descriptors and a stream. */
#define MAX_LEVELS 128

struct comparison {
    struct listing *listing;
    dev_t dev;         /* what is mounted elsewhere is no part of it */
    uint64_t mount_id; /* of the merged view; where something is mounted in it, the upper layer has
                          but a place for that */
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

/* One folder in the layers; -1: it has none of it. */
struct layers {
    int upper, lower, merged;
};

static int compare_folder(struct comparison *c, struct layers in, size_t path_len, int level);

static void close_layers(struct layers in)
{
    if (in.upper >= 0) close(in.upper);
    if (in.lower >= 0) close(in.lower);
    if (in.merged >= 0) close(in.merged);
}

static int compare_subfolder(struct comparison *c, struct layers in, bool both, const char *name,
                             size_t path_len, int level)
{
    struct layers sub = {.upper = level == 0 ? -1 : open_folder(in.upper, name),
                         .lower = both ? open_folder(in.lower, name) : -1,
                         .merged = in.merged >= 0 ? open_folder(in.merged, name) : -1};
    if (sub.upper < 0 || (both && (sub.lower < 0 || sub.merged < 0))) {
        close_layers(sub);
        return incomplete(c);
    }
    c->listing->path[path_len] = '/';
    int rc = compare_folder(c, sub, path_len + 1, level - 1);
    c->listing->path[path_len] = '\0';
    return rc;
}

static bool is_mounted_on(const struct comparison *c, int merged, const char *name)
{
    struct statx st;
    return merged >= 0 &&
           statx(merged, name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, STATX_MNT_ID, &st) == 0 &&
           st.stx_mnt_id != c->mount_id;
}

static int compare_name(struct comparison *c, struct layers in, const char *name, size_t path_len,
                        int level)
{
    struct stat u, l = {0};
    size_t len = listing_name(c->listing, path_len, name);
    if (len == 0 || fstatat(in.upper, name, &u, AT_SYMLINK_NOFOLLOW) < 0) return 0; /* just gone */
    if (u.st_dev != c->dev || is_mounted_on(c, in.merged, name)) return 0;
    if (S_ISCHR(u.st_mode) && u.st_rdev == 0) return 0; /* what is gone is found below */
    bool was = in.lower >= 0 && fstatat(in.lower, name, &l, AT_SYMLINK_NOFOLLOW) == 0;
    bool both = was && S_ISDIR(u.st_mode) && S_ISDIR(l.st_mode);
    if (was && S_ISDIR(l.st_mode) && !both && gone_below(c, in.lower, name, len, level) < 0) {
        return -1;
    }
    bool same = was && is_same(in.upper, in.lower, name, &u, &l);
    uint32_t change = was ? BC_FILE_MODIFIED : BC_FILE_ADDED;
    if (!same && report(c, change, in.upper, name, &u) < 0) return -1;
    return S_ISDIR(u.st_mode) ? compare_subfolder(c, in, both, name, len, level) : 0;
}

/* What the lower layer has and commands do not see. */
static int find_gone(struct comparison *c, struct layers in, size_t path_len, int level)
{
    struct stat st;
    int fd = open_folder(in.lower, "."), rc = 0;
    DIR *stream = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *entry;
    if (stream == NULL) {
        if (fd >= 0) close(fd);
        return incomplete(c);
    }
    while (rc == 0 && !c->listing->full && (entry = readdir(stream)) != NULL) {
        if (is_dots(entry->d_name)) continue;
        if (fstatat(in.merged, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0) continue;
        if (errno != ENOENT) {
            incomplete(c);
        } else {
            rc = gone(c, in.lower, entry->d_name, path_len, level);
        }
    }
    closedir(stream);
    return rc;
}

/* Takes them. */
static int compare_folder(struct comparison *c, struct layers in, size_t path_len, int level)
{
    int fd = open_folder(in.upper, "."), rc = 0;
    DIR *stream = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *entry;
    while (stream != NULL && rc == 0 && !c->listing->full && (entry = readdir(stream)) != NULL) {
        if (!is_dots(entry->d_name)) rc = compare_name(c, in, entry->d_name, path_len, level);
    }
    if (stream == NULL) rc = file_fail_os(c->listing->result, errno);
    if (stream != NULL) closedir(stream);
    if (stream == NULL && fd >= 0) close(fd);
    if (rc == 0 && in.lower >= 0) rc = find_gone(c, in, path_len, level);
    close_layers(in);
    return rc;
}

int file_changes(const struct file_request *request, struct file_result *result)
{
    struct comparison c = {.listing = listing_new(result)};
    struct layers top = {.upper = -1, .lower = -1, .merged = -1};
    struct stat st;
    if (request->layers[0] < 0) {
        top.upper = open_folder(AT_FDCWD, request->path);
    } else {
        top.lower = open_folder(FILE_LOWER_FD, ".");
        top.merged = open_folder(FILE_MERGED_FD, ".");
        if (top.lower < 0 || top.merged < 0) return file_fail_os(result, errno);
        top.upper = open_folder(FILE_UPPER_FD, ".");
    }
    if (top.upper < 0 || fstat(top.upper, &st) < 0) return file_fail_os(result, errno);
    c.dev = st.st_dev;
    struct statx merged = {0};
    if (top.merged >= 0 && statx(top.merged, "", AT_EMPTY_PATH, STATX_MNT_ID, &merged) < 0) {
        return file_fail_os(result, errno);
    }
    c.mount_id = merged.stx_mnt_id;
    if (compare_folder(&c, top, 0, MAX_LEVELS) < 0) return -1;
    return listing_flush(c.listing);
}
