/* Removing a tree of any depth with a bounded number of descriptors: what lies deeper than the
 * bound is first moved up next to the tree's root. No link is followed. */
#include "file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_LEVELS 64

struct removal {
    int top; /* the directory that is being removed */
    unsigned moved;
    struct file_result *result;
};

static int empty_dir(struct removal *removal, int dir, int level);

/* Moves a directory from deep below to the top, where a later round finds it. */
static int lift(struct removal *removal, int dir, const char *name)
{
    char to[32];
    snprintf(to, sizeof to, ".barchan-rm-%u", removal->moved++);
    return renameat(dir, name, removal->top, to);
}

static int remove_one(struct removal *removal, int dir, const char *name, int level)
{
    if (unlinkat(dir, name, 0) == 0 || errno == ENOENT) return 0;
    if (errno != EISDIR && errno != EPERM) return file_fail_os(removal->result, errno);
    if (unlinkat(dir, name, AT_REMOVEDIR) == 0) return 0;
    if (errno != ENOTEMPTY && errno != EEXIST) return file_fail_os(removal->result, errno);
    if (level >= MAX_LEVELS) {
        return lift(removal, dir, name) < 0 ? file_fail_os(removal->result, errno) : 0;
    }
    int child = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (child < 0) return file_fail_os(removal->result, errno);
    if (empty_dir(removal, child, level + 1) < 0) return -1;
    return unlinkat(dir, name, AT_REMOVEDIR) < 0 ? file_fail_os(removal->result, errno) : 0;
}

/* Takes `dir`. */
static int empty_dir(struct removal *removal, int dir, int level)
{
    DIR *stream = fdopendir(dir);
    int rc = 0;
    if (stream == NULL) {
        rc = file_fail_os(removal->result, errno);
        close(dir);
        return rc;
    }
    struct dirent *entry;
    while (rc == 0 && (entry = readdir(stream)) != NULL) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        rc = remove_one(removal, dirfd(stream), entry->d_name, level);
    }
    closedir(stream);
    return rc;
}

static int remove_tree(const char *path, struct file_result *result)
{
    struct removal removal = {.result = result};
    /* Asks first whether the directory itself may go: what is in it must not be lost for nothing.
     */
    if (rmdir(path) == 0) return 0;
    if (errno != ENOTEMPTY && errno != EEXIST) return file_fail_os(result, errno);
    removal.top = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (removal.top < 0) return file_fail_os(result, errno);
    unsigned moved;
    do { /* again while something was moved up, or a directory changed while it was read */
        moved = removal.moved;
        int dir = openat(removal.top, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (dir < 0) return file_fail_os(result, errno);
        if (empty_dir(&removal, dir, 0) < 0) return -1;
    } while (removal.moved != moved);
    close(removal.top);
    return rmdir(path) < 0 ? file_fail_os(result, errno) : 0;
}

/* A path that ends in "." or ".." names a directory by where it is seen from: removing it could
 * only empty it, or a parent that nobody meant. */
static bool ends_in_dots(const char *path)
{
    size_t len = strlen(path);
    while (len > 0 && path[len - 1] == '/') {
        len--;
    }
    size_t end = len;
    while (len > 0 && path[len - 1] != '/') {
        len--;
    }
    return (end - len == 1 && path[len] == '.') ||
           (end - len == 2 && path[len] == '.' && path[len + 1] == '.');
}

int file_remove(const struct file_request *request, struct file_result *result)
{
    struct stat st;
    if (ends_in_dots(request->path)) {
        return file_fail(result, BC_WIRE_EINVAL, "a path that ends in . or .. is not removed");
    }
    if (lstat(request->path, &st) < 0) return file_fail_os(result, errno);
    if (!S_ISDIR(st.st_mode)) {
        return unlink(request->path) < 0 ? file_fail_os(result, errno) : 0;
    }
    if (request->flags & BC_FILE_RECURSIVE) return remove_tree(request->path, result);
    return rmdir(request->path) < 0 ? file_fail_os(result, errno) : 0;
}
