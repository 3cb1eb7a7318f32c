#include "host_tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/cleanup.h"
#include "base/limits.h"

/* Set-user-id and the like are not a sandbox's to give. */
#define PERMISSIONS 0777u

static bc_host_kind kind_of(mode_t mode)
{
    return S_ISREG(mode) ? BC_HOST_FILE : S_ISDIR(mode) ? BC_HOST_FOLDER : BC_HOST_OTHER;
}

int bc_host_stat(const char *path, bc_host_kind *kind, unsigned *mode, barchan_error *err)
{
    struct stat st;
    if (stat(path, &st) < 0) return bc_error_set_os(err, errno, "look at '%s'", path);
    *kind = kind_of(st.st_mode);
    *mode = st.st_mode & PERMISSIONS;
    return 0;
}

/* ---- reading ---- */

void bc_host_list_clear(bc_host_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        free(list->entries[i].path);
    }
    free(list->entries);
    *list = (bc_host_list){0};
}

static int add(bc_host_list *list, const char *path, bc_host_kind kind, mode_t mode,
               barchan_error *err)
{
    if (list->count >= BC_HOST_MAX_ENTRIES) {
        return bc_error_set(err, BARCHAN_ELIMIT, "more than %d entries", BC_HOST_MAX_ENTRIES);
    }
    if ((list->count & (list->count - 1)) == 0) { /* full at each power of two */
        size_t cap = list->count == 0 ? 1 : list->count * 2;
        bc_host_entry *entries = realloc(list->entries, cap * sizeof *entries);
        if (entries == NULL) return bc_error_nomem(err);
        list->entries = entries;
    }
    char *copy = strdup(path);
    if (copy == NULL) return bc_error_nomem(err);
    list->entries[list->count++] =
        (bc_host_entry){.path = copy, .kind = kind, .mode = mode & PERMISSIONS};
    return 0;
}

static int read_folder(bc_host_list *list, int fd, const char *prefix, int depth,
                       barchan_error *err);

static int read_entry(bc_host_list *list, int folder, const char *prefix, const char *name,
                      int depth, barchan_error *err)
{
    char path[PATH_MAX];
    struct stat st;
    const char *slash = prefix[0] == '\0' ? "" : "/";
    if (snprintf(path, sizeof path, "%s%s%s", prefix, slash, name) >= (int)sizeof path) {
        return bc_error_set_os(err, ENAMETOOLONG, "'%.64s…'", prefix);
    }
    if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
        return errno == ENOENT ? 0 : bc_error_set_os(err, errno, "look at '%s'", path);
    }
    int rc = add(list, path, kind_of(st.st_mode), st.st_mode, err);
    if (rc < 0 || !S_ISDIR(st.st_mode)) return rc;
    int fd = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) return bc_error_set_os(err, errno, "open '%s'", path);
    return read_folder(list, fd, path, depth + 1, err);
}

/* Takes the descriptor. */
static int read_folder(bc_host_list *list, int fd, const char *prefix, int depth,
                       barchan_error *err)
{
    DIR *dir = depth > BC_HOST_MAX_DEPTH ? NULL : fdopendir(fd);
    if (dir == NULL) {
        close(fd);
        if (depth <= BC_HOST_MAX_DEPTH) return bc_error_nomem(err);
        return bc_error_set(err, BARCHAN_ELIMIT, "more than %d levels", BC_HOST_MAX_DEPTH);
    }
    const struct dirent *entry;
    int rc = 0;
    while (rc == 0 && (entry = readdir(dir)) != NULL) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        rc = read_entry(list, fd, prefix, entry->d_name, depth, err);
    }
    closedir(dir);
    return rc;
}

int bc_host_list_read(bc_host_list *list, const char *path, barchan_error *err)
{
    *list = (bc_host_list){0};
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int rc = fd < 0 ? bc_error_set_os(err, errno, "open the folder '%s'", path)
                    : read_folder(list, fd, "", 0, err);
    if (rc < 0) bc_host_list_clear(list);
    return rc;
}

/* ---- writing ---- */

int bc_host_root_open(const char *path, barchan_error *err)
{
    if (mkdir(path, 0777) < 0 && errno != EEXIST) {
        return bc_error_set_os(err, errno, "make the folder '%s'", path);
    }
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd >= 0 ? fd : bc_error_set_os(err, errno, "open the folder '%s'", path);
}

/* The next word of a path below a root; 1: there is one, 0: the end, -1: no name of a file. */
static int next_word(const char **path, char *word, size_t cap)
{
    size_t len = strcspn(*path, "/");
    if (**path == '\0') return 0;
    if (len == 0 || len >= cap) return -1;
    memcpy(word, *path, len);
    word[len] = '\0';
    *path += len;
    if (**path == '/' && *++*path == '\0') return -1;
    return strcmp(word, ".") == 0 || strcmp(word, "..") == 0 ? -1 : 1;
}

static int bad_path(const char *path, barchan_error *err)
{
    return bc_error_set(err, BARCHAN_EINVAL, "'%.128s' is no path below a folder", path);
}

/* The folder that holds the last word of a path, every one on the way opened without links. */
static int open_parent(int root, const char *path, char *name, size_t cap, barchan_error *err)
{
    const char *rest = path;
    cleanup_close int fd = fcntl(root, F_DUPFD_CLOEXEC, 3);
    if (fd < 0) return bc_error_set_os(err, errno, "open '%s'", path);
    if (next_word(&rest, name, cap) != 1) return bad_path(path, err);
    while (*rest != '\0') {
        int next = openat(fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (next < 0) return bc_error_set_os(err, errno, "open the folder of '%s'", path);
        close(fd);
        fd = next;
        if (next_word(&rest, name, cap) != 1) return bad_path(path, err);
    }
    return steal_fd(&fd);
}

int bc_host_root_mkdir(int root_fd, const char *path, unsigned mode, barchan_error *err)
{
    char name[256];
    struct stat st;
    cleanup_close int folder = open_parent(root_fd, path, name, sizeof name, err);
    if (folder < 0) return folder;
    /* Whoever copies can write into it, whatever its bits were. */
    if (mkdirat(folder, name, (mode & PERMISSIONS) | 0700) == 0) return 0;
    if (errno != EEXIST) return bc_error_set_os(err, errno, "make the folder '%s'", path);
    if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode)) return 0;
    return bc_error_set(err, BARCHAN_ENOTDIR, "'%s' is there already, and no folder", path);
}

/* What the umask of this process takes away, as the kernel tells it: to set it, even for a moment,
 * would be seen by other threads. */
static unsigned current_umask(void)
{
    char line[128];
    unsigned mask = 077;
    FILE *file = fopen("/proc/self/status", "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        if (sscanf(line, "Umask: %o", &mask) == 1) break;
    }
    if (file != NULL) fclose(file);
    return mask;
}

/* A file that is replaced keeps its rights and owner; a device or FIFO is not replaced. */
static int keep_rights(bc_host_new_file *file, barchan_error *err)
{
    struct stat st;
    file->uid = (uid_t)-1;
    if (fstatat(file->folder_fd, file->name, &st, AT_SYMLINK_NOFOLLOW) < 0 || S_ISLNK(st.st_mode)) {
        file->mode &= ~current_umask();
        return 0;
    }
    if (!S_ISREG(st.st_mode)) {
        return bc_error_set(err, BARCHAN_ENOTREG, "'%s' is there already, and no file", file->name);
    }
    file->mode = st.st_mode & PERMISSIONS;
    if (geteuid() == 0) {
        file->uid = st.st_uid;
        file->gid = st.st_gid;
    }
    return 0;
}

int bc_host_new_file_open(bc_host_new_file *file, int root_fd, const char *path, unsigned mode,
                          barchan_error *err)
{
    uint64_t random;
    *file = (bc_host_new_file){.folder_fd = -1, .fd = -1, .mode = mode & PERMISSIONS};
    if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random) {
        return bc_error_set(err, BARCHAN_EIO, "no random numbers");
    }
    snprintf(file->temporary, sizeof file->temporary, ".barchan-%016llx",
             (unsigned long long)random);
    file->folder_fd = open_parent(root_fd, path, file->name, sizeof file->name, err);
    if (file->folder_fd < 0) return file->folder_fd;
    int rc = keep_rights(file, err);
    if (rc < 0) {
        bc_host_new_file_close(file);
        return rc;
    }
    file->fd = openat(file->folder_fd, file->temporary,
                      O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file->fd >= 0) return 0;
    rc = bc_error_set_os(err, errno, "create '%s'", path);
    bc_host_new_file_close(file);
    return rc;
}

int bc_host_new_file_write(bc_host_new_file *file, const void *data, size_t len, barchan_error *err)
{
    const char *at = data;
    while (len > 0) {
        ssize_t n = write(file->fd, at, len);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return bc_error_set_os(err, errno, "write '%s'", file->name);
        at += n;
        len -= (size_t)n;
    }
    return 0;
}

int bc_host_new_file_commit(bc_host_new_file *file, barchan_error *err)
{
    if ((file->uid != (uid_t)-1 && fchown(file->fd, file->uid, file->gid) < 0) ||
        fchmod(file->fd, file->mode) < 0 ||
        renameat(file->folder_fd, file->temporary, file->folder_fd, file->name) < 0) {
        return bc_error_set_os(err, errno, "write '%s'", file->name);
    }
    close(steal_fd(&file->fd)); /* it has its name: nothing to remove */
    return 0;
}

void bc_host_new_file_close(bc_host_new_file *file)
{
    if (file->fd >= 0) {
        unlinkat(file->folder_fd, file->temporary, 0);
        close(file->fd);
    }
    if (file->folder_fd >= 0) close(file->folder_fd);
    file->fd = file->folder_fd = -1;
}
