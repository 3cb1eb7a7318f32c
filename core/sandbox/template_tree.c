#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "templates.h"

/* As deep as a template is, and its own folder and places. */
#define MAX_LEVELS (BC_PACK_MAX_LEVELS + 8)

static int remove_entry(int dir_fd, const char *name, unsigned levels);

/* Takes `fd`. */
static int remove_inside(int fd, unsigned levels)
{
    DIR *dir = fdopendir(fd);
    if (dir == NULL) {
        int rc = -errno;
        close(fd);
        return rc;
    }
    int rc = 0;
    const struct dirent *entry;
    while ((entry = readdir(dir)) != NULL) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        int one = remove_entry(fd, entry->d_name, levels);
        if (one < 0 && rc == 0) rc = one; /* the others go all the same */
    }
    closedir(dir);
    return rc;
}

static int remove_entry(int dir_fd, const char *name, unsigned levels)
{
    if (unlinkat(dir_fd, name, 0) == 0) return 0;
    if (errno == ENOENT) return 0;
    if (errno != EISDIR && errno != EPERM && errno != EACCES) return -errno;
    if (levels == 0) return -ELOOP;
    int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 && errno == EACCES) {
        struct stat st;
        if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(st.st_mode)) {
            return -EACCES;
        }
        fchmodat(dir_fd, name, 0700, 0);
        fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    }
    if (fd < 0) return -errno;
    fchmod(fd, 0700); /* or nothing could be taken out of it */
    int rc = remove_inside(fd, levels - 1);
    if (rc < 0) return rc;
    return unlinkat(dir_fd, name, AT_REMOVEDIR) < 0 && errno != ENOENT ? -errno : 0;
}

int bc_tree_remove(int dir_fd, const char *name)
{
    return remove_entry(dir_fd, name, MAX_LEVELS);
}
