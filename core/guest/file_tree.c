#include "file_listing.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- entries, as list and stat report them ---- */

static uint32_t type_of(mode_t mode)
{
    switch (mode & S_IFMT) {
    case S_IFREG: return 1;
    case S_IFDIR: return 2;
    case S_IFLNK: return 3;
    case S_IFIFO: return 4;
    case S_IFSOCK: return 5;
    default: return 6;
    }
}

int listing_flush(struct listing *listing)
{
    if (file_write_all(FILE_OUT_FD, listing->buffer, listing->out.len) < 0) {
        return file_fail_os(listing->result, errno);
    }
    listing->written += listing->out.len;
    listing->out.len = 0;
    return 0;
}

bool listing_has_room(struct listing *listing)
{
    if (listing->count < BC_FILE_MAX_ENTRIES &&
        listing->written + sizeof listing->buffer <= BC_FILE_MAX_RECORD_BYTES) {
        return true;
    }
    listing->result->truncated = 1;
    listing->full = true;
    return false;
}

size_t listing_name(struct listing *listing, size_t path_len, const char *name)
{
    size_t name_len = strlen(name);
    if (path_len + name_len + 1 > BC_FILE_MAX_ENTRY_PATH) {
        listing->result->truncated = 1;
        return 0;
    }
    memcpy(listing->path + path_len, name, name_len + 1);
    return path_len + name_len;
}

/* A file's owner may set any time; those that milliseconds cannot hold are the last that they can.
 */
static int64_t to_ms(const struct timespec *time)
{
    const int64_t most = INT64_MAX / 1000 - 1;
    int64_t s = time->tv_sec;
    if (s > most) return INT64_MAX;
    if (s < -most) return INT64_MIN;
    return s * 1000 + time->tv_nsec / 1000000;
}

int listing_add(struct listing *listing, int dir, const char *name, const char *path,
                const struct stat *st)
{
    char target[PATH_MAX];
    ssize_t target_len = S_ISLNK(st->st_mode) ? readlinkat(dir, name, target, sizeof target) : 0;
    if (target_len < 0) target_len = 0;
    if (listing->out.len > BC_FRAME_MAX_DATA && listing_flush(listing) < 0) return -1;
    bc_wire_writer *out = &listing->out;
    if (listing->change != 0) bc_wire_put_u32(out, listing->change);
    bc_wire_put_u32(out, type_of(st->st_mode));
    bc_wire_put_u32(out, st->st_mode & 07777);
    bc_wire_put_u64(out, (uint64_t)st->st_size);
    bc_wire_put_u64(out, (uint64_t)to_ms(&st->st_mtim));
    bc_wire_put_string(out, path, strlen(path));
    bc_wire_put_string(out, target, (size_t)target_len);
    listing->count++;
    return 0;
}

static int list_below(struct listing *listing, int dir, size_t path_len, uint32_t depth);

static int list_one(struct listing *listing, int dir, const char *name, size_t path_len,
                    uint32_t depth)
{
    struct stat st;
    size_t len = listing_name(listing, path_len, name);
    if (len == 0 || !listing_has_room(listing)) return 0; /* left out; the others are not */
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0) return 0; /* it has just gone */
    if (listing_add(listing, dir, name, listing->path, &st) < 0) return -1;
    if (!S_ISDIR(st.st_mode) || depth <= 1) return 0;
    int child = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (child < 0) return 0; /* listed, but not ours to enter */
    listing->path[len] = '/';
    return list_below(listing, child, len + 1, depth - 1);
}

/* Takes `dir`. */
static int list_below(struct listing *listing, int dir, size_t path_len, uint32_t depth)
{
    DIR *stream = fdopendir(dir);
    int rc = 0;
    if (stream == NULL) {
        rc = file_fail_os(listing->result, errno);
        close(dir);
        return rc;
    }
    struct dirent *entry;
    while (rc == 0 && !listing->full && (entry = readdir(stream)) != NULL) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        rc = list_one(listing, dirfd(stream), entry->d_name, path_len, depth);
    }
    closedir(stream);
    return rc;
}

struct listing *listing_new(struct file_result *result)
{
    static struct listing listing;
    listing.out = (bc_wire_writer){.data = listing.buffer, .cap = sizeof listing.buffer};
    listing.result = result;
    return &listing;
}

int file_list(const struct file_request *request, struct file_result *result)
{
    struct listing *listing = listing_new(result);
    int dir = open(request->path, O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC);
    if (dir < 0) return file_fail_os(result, errno);
    uint32_t depth = request->depth == 0 ? 1 : request->depth;
    if (list_below(listing, dir, 0, depth) < 0) return -1;
    return listing_flush(listing);
}

int file_stat(const struct file_request *request, struct file_result *result)
{
    struct listing *listing = listing_new(result);
    struct stat st;
    if (lstat(request->path, &st) < 0) return file_fail_os(result, errno);
    result->size = (uint64_t)st.st_size;
    if (listing_add(listing, AT_FDCWD, request->path, request->path, &st) < 0) return -1;
    return listing_flush(listing);
}

/* ---- changes ---- */

int file_mkdir(const struct file_request *request, struct file_result *result)
{
    mode_t mode = request->mode == 0 ? 0755 : (mode_t)(request->mode & 07777);
    struct stat st;
    if (file_make_parents(request->path, result) < 0) return -1;
    if (mkdir(request->path, mode) == 0) {
        chmod(request->path, mode); /* whatever the umask took */
        return 0;
    }
    int os_error = errno;
    if (stat(request->path, &st) == 0) {
        return S_ISDIR(st.st_mode) ? 0 : file_fail_os(result, EEXIST);
    }
    return file_fail_os(result, os_error);
}

int file_rename(const struct file_request *request, struct file_result *result)
{
    if (request->new_path[0] == '\0') return file_fail_os(result, ENOENT);
    return rename(request->path, request->new_path) < 0 ? file_fail_os(result, errno) : 0;
}
