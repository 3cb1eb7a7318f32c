#include "host_files.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void bc_free_names(char **names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(names[i]);
    }
    free(names);
}

static int compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int read_names(DIR *dir, const char *path, char **names, size_t *count, barchan_error *err)
{
    for (;;) {
        errno = 0;
        struct dirent *entry = readdir(dir);
        if (entry == NULL && errno != 0) {
            return bc_error_set_os(err, errno, "read the directory '%s'", path);
        }
        if (entry == NULL) return 0;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        if (*count >= BC_LIST_DIR_MAX) {
            return bc_error_set(err, BARCHAN_ELIMIT, "the directory '%s' has over %d entries", path,
                                BC_LIST_DIR_MAX);
        }
        names[*count] = strdup(entry->d_name);
        if (names[*count] == NULL) return bc_error_nomem(err);
        ++*count;
    }
}

int bc_list_dir(const char *path, char ***names, size_t *count, barchan_error *err)
{
    *names = NULL;
    *count = 0;
    DIR *dir = opendir(path);
    if (dir == NULL) return bc_error_set_os(err, errno, "open the directory '%s'", path);
    char **list = calloc(BC_LIST_DIR_MAX, sizeof *list);
    size_t n = 0;
    int rc = list == NULL ? bc_error_nomem(err) : read_names(dir, path, list, &n, err);
    closedir(dir);
    if (rc < 0) {
        bc_free_names(list, n);
        return rc;
    }
    qsort(list, n, sizeof *list, compare);
    *names = list;
    *count = n;
    return 0;
}

int bc_is_terminal(int fd)
{
    return isatty(fd);
}
