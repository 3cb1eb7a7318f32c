#include "script_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/cleanup.h"
#include "base/limits.h"

void bc_script_files_free(bc_script_file *files, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(files[i].name);
        free(files[i].text);
    }
    free(files);
}

/* ---- who could have written it ---- */

/* Others: anybody but root and this user. A sticky directory (/tmp) lets them add entries, not
 * change those of others. A group counts as this user's when it is the process's own. */
static int check_owner(const struct stat *st, const char *what, barchan_error *err)
{
    if (st->st_uid != 0 && st->st_uid != geteuid()) {
        return bc_error_set(err, BARCHAN_EPERMISSION,
                            "'%s' belongs to user %u, who could change it: only scripts of root "
                            "or of this user are loaded",
                            what, (unsigned)st->st_uid);
    }
    int sticky = S_ISDIR(st->st_mode) && (st->st_mode & S_ISVTX) != 0;
    int by_group = (st->st_mode & S_IWGRP) && st->st_gid != 0 && st->st_gid != getegid();
    if (!sticky && ((st->st_mode & S_IWOTH) || by_group)) {
        return bc_error_set(err, BARCHAN_EPERMISSION,
                            "'%s' can be written by others (mode %04o); run: chmod go-w '%s'", what,
                            (unsigned)(st->st_mode & 07777), what);
    }
    return 0;
}

/* Whoever can replace a directory on the way can replace what is in it. `real` becomes the path
 * without links, which nobody else can lead elsewhere any more. */
static int check_ancestors(const char *path, char real[PATH_MAX], barchan_error *err)
{
    char up[PATH_MAX];
    struct stat st;
    if (realpath(path, real) == NULL) return bc_error_set_os(err, errno, "find '%s'", path);
    memcpy(up, real, PATH_MAX);
    for (char *end = up + strlen(up);;) {
        if (stat(up, &st) < 0) return bc_error_set_os(err, errno, "look at '%s'", up);
        int rc = check_owner(&st, up, err);
        if (rc < 0 || strcmp(up, "/") == 0) return rc;
        while (end > up && *end != '/')
            end--;
        end[end == up ? 1 : 0] = '\0';
    }
}

/* ---- reading ---- */

static int is_script_name(const char *name)
{
    size_t len = strlen(name);
    return name[0] != '.' && len > 4 && strcmp(name + len - 4, ".lua") == 0;
}

static int read_text(int fd, size_t size, char **text, size_t *len, const char *path,
                     const char *name, barchan_error *err)
{
    cleanup_free char *data = malloc(size + 2); /* one more, to see that it is larger */
    size_t used = 0;
    if (data == NULL) return bc_error_nomem(err);
    while (used <= size) {
        ssize_t n = read(fd, data + used, size + 1 - used);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return bc_error_set_os(err, errno, "read '%s/%s'", path, name);
        if (n == 0) break;
        used += (size_t)n;
    }
    if (used > BC_SCRIPT_MAX_BYTES) {
        return bc_error_set(err, BARCHAN_ELIMIT, "'%s/%s' is larger than %zu KiB", path, name,
                            BC_SCRIPT_MAX_BYTES >> 10);
    }
    if (used > size) {
        return bc_error_busy(err, "'%s/%s' grew while it was read; read it again", path, name);
    }
    data[used] = '\0';
    *len = used;
    *text = steal_pointer(&data);
    return 0;
}

/* 1: read; 0: gone meanwhile. */
static int read_file(int dir, const char *path, const char *name, bc_script_file *file,
                     barchan_error *err)
{
    struct stat st;
    cleanup_close int fd =
        openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT) return 0;
    if (fd < 0 && errno == ELOOP) {
        return bc_error_set(err, BARCHAN_ELINK,
                            "'%s/%s' is a symbolic link; put the script itself there", path, name);
    }
    if (fd < 0) return bc_error_set_os(err, errno, "open '%s/%s'", path, name);
    if (fstat(fd, &st) < 0) return bc_error_set_os(err, errno, "look at '%s/%s'", path, name);
    if (!S_ISREG(st.st_mode)) {
        return bc_error_set(err, BARCHAN_ENOTREG, "'%s/%s' is not a file", path, name);
    }
    char full[PATH_MAX];
    snprintf(full, sizeof full, "%s/%s", path, name);
    int rc = check_owner(&st, full, err);
    if (rc < 0) return rc;
    size_t size =
        (uint64_t)st.st_size > BC_SCRIPT_MAX_BYTES ? BC_SCRIPT_MAX_BYTES : (size_t)st.st_size;
    rc = read_text(fd, size > 4096 ? size : 4096, &file->text, &file->len, path, name, err);
    if (rc < 0) return rc;
    file->name = strdup(name);
    return file->name == NULL ? bc_error_nomem(err) : 1;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const bc_script_file *)a)->name, ((const bc_script_file *)b)->name);
}

static int read_all(DIR *dir, const char *path, bc_script_file *files, size_t *count,
                    barchan_error *err)
{
    size_t total = 0;
    struct dirent *entry;
    while (errno = 0, (entry = readdir(dir)) != NULL) {
        if (!is_script_name(entry->d_name)) continue;
        if (*count >= BC_SCRIPT_MAX_FILES) {
            return bc_error_set(err, BARCHAN_ELIMIT, "'%s' has more than %d scripts", path,
                                BC_SCRIPT_MAX_FILES);
        }
        bc_script_file *file = &files[*count];
        int rc = read_file(dirfd(dir), path, entry->d_name, file, err);
        if (rc < 0) {
            free(file->text);
            return rc;
        }
        if (rc == 0) continue;
        ++*count;
        total += file->len;
        if (total > BC_SCRIPT_MAX_TOTAL_BYTES) {
            return bc_error_set(err, BARCHAN_ELIMIT, "the scripts of '%s' are over %zu MiB", path,
                                BC_SCRIPT_MAX_TOTAL_BYTES >> 20);
        }
    }
    if (errno != 0) return bc_error_set_os(err, errno, "list the directory '%s'", path);
    qsort(files, *count, sizeof *files, by_name);
    return 0;
}

int bc_script_dir_read(const char *path, bc_script_file **files, size_t *count, barchan_error *err)
{
    *files = NULL;
    *count = 0;
    char real[PATH_MAX];
    int rc = check_ancestors(path, real, err);
    if (rc < 0) return rc;
    DIR *dir = opendir(real);
    if (dir == NULL) return bc_error_set_os(err, errno, "open the directory '%s'", path);
    bc_script_file *list = calloc(BC_SCRIPT_MAX_FILES, sizeof *list);
    size_t n = 0;
    rc = list == NULL ? bc_error_nomem(err) : read_all(dir, path, list, &n, err);
    closedir(dir);
    if (rc < 0) {
        bc_script_files_free(list, n);
        return rc;
    }
    *files = list;
    *count = n;
    return 0;
}
