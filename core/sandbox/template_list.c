/* This user's templates: which there are, and removing them and what was left behind. */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>
#include "base/cleanup.h"
#include "base/limits.h"
#include "templates.h"

/* ---- the directory's entries ---- */

struct names {
    char **list;
    size_t count;
};

static void clear_names(struct names *names)
{
    for (size_t i = 0; i < names->count; i++) {
        free(names->list[i]);
    }
    free(names->list);
}
#define cleanup_names __attribute__((cleanup(clear_names)))

static int read_names(int dir_fd, struct names *names, barchan_error *err)
{
    int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (dir == NULL) {
        int rc = bc_error_set_os(err, errno, "read the directory of templates");
        if (fd >= 0) close(fd);
        return rc;
    }
    int rc = 0;
    const struct dirent *entry;
    while (rc == 0 && (entry = readdir(dir)) != NULL) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        if (names->count == BC_TEMPLATE_MAX_NAMES) {
            rc = bc_error_set(err, BARCHAN_ELIMIT, "more than %d templates", BC_TEMPLATE_MAX_NAMES);
            break;
        }
        char **list = realloc(names->list, (names->count + 1) * sizeof *list);
        if (list != NULL) names->list = list;
        char *copy = list == NULL ? NULL : strdup(entry->d_name);
        if (copy == NULL) {
            rc = bc_error_nomem(err);
        } else {
            names->list[names->count++] = copy;
        }
    }
    closedir(dir);
    return rc;
}

/* The folders that have a name. */
static void read_ids(int dir_fd, const struct names *names, struct names *ids)
{
    char id[BC_TEMPLATE_ID_LEN + 1];
    ids->list = calloc(names->count + 1, sizeof *ids->list);
    for (size_t i = 0; ids->list != NULL && i < names->count; i++) {
        if (names->list[i][0] == '.' || bc_template_id_of(dir_fd, names->list[i], id) < 0) continue;
        char *copy = strdup(id);
        if (copy != NULL) ids->list[ids->count++] = copy;
    }
}

static int has(const struct names *names, const char *name)
{
    for (size_t i = 0; i < names->count; i++) {
        if (strcmp(names->list[i], name) == 0) return 1;
    }
    return 0;
}

/* ---- what was left behind ---- */

/* What begins with a dot and may be one; looked at again under the lock, under which names are
 * given. A folder that nobody else has locked then is ours to remove. */
static size_t sweep_one(int dir_fd, const char *name)
{
    cleanup_close int lock = bc_templates_lock(dir_fd, NULL);
    if (lock < 0) return 0;
    if (strncmp(name, ".n-", 3) == 0) {
        unlinkat(dir_fd, name, 0);
        return 0;
    }
    if (bc_template_has_name(dir_fd, name)) return 0;
    cleanup_close int fd = bc_template_lock(dir_fd, name, LOCK_EX);
    close(steal_fd(&lock)); /* others need not wait for what may be many files */
    return fd >= 0 && bc_tree_remove(dir_fd, name) == 0;
}

size_t bc_templates_sweep(int dir_fd)
{
    struct names cleanup_names names = {0};
    struct names cleanup_names ids = {0};
    size_t removed = 0;
    if (read_names(dir_fd, &names, NULL) < 0) return 0;
    read_ids(dir_fd, &names, &ids);
    for (size_t i = 0; i < names.count; i++) {
        const char *name = names.list[i];
        int ours = strncmp(name, ".t-", 3) == 0 || strncmp(name, ".n-", 3) == 0;
        if (ours && strlen(name) == BC_TEMPLATE_ID_LEN && !has(&ids, name)) {
            removed += sweep_one(dir_fd, name);
        }
    }
    return removed;
}

/* ---- looking ---- */

static int read_info(int dir_fd, const char *name, barchan_template *info, barchan_error *err)
{
    char id[BC_TEMPLATE_ID_LEN + 1];
    *info = (barchan_template){0};
    if (bc_template_id_of(dir_fd, name, id) < 0) return bc_template_not_found(dir_fd, name, err);
    cleanup_close int fd = openat(dir_fd, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) return bc_template_not_found(dir_fd, name, err);
    int rc = bc_manifest_read(fd, info, err);
    if (rc < 0) {
        bc_error_context(err, "template '%s'", name);
        return rc;
    }
    info->name = strdup(name);
    if (info->name != NULL) return 0;
    barchan_template_clear(info);
    return bc_error_nomem(err);
}

static int open_directory(barchan_runtime *rt, const char *name, barchan_error *err)
{
    char path[PATH_MAX];
    int rc = bc_runtime_check(rt, err);
    if (rc == 0 && name != NULL) rc = bc_template_check_name(name, err);
    if (rc == 0) rc = bc_templates_open(path, sizeof path, 0, err);
    if (rc == BARCHAN_ENOTFOUND && name != NULL) rc = bc_template_not_found(-1, name, err);
    return rc;
}

int barchan_template_info(barchan_runtime *rt, const char *name, barchan_template *info,
                          barchan_error *err)
{
    BC_OPERATION("template.info");
    if (info == NULL || name == NULL) {
        return bc_error_set(err, BARCHAN_EINVAL, "name and info are needed");
    }
    *info = (barchan_template){0};
    cleanup_close int dir = open_directory(rt, name, err);
    return dir < 0 ? dir : read_info(dir, name, info, err);
}

void barchan_templates_clear(barchan_templates *templates)
{
    if (templates == NULL) return;
    for (size_t i = 0; i < templates->count; i++) {
        barchan_template_clear(&templates->list[i]);
    }
    free(templates->list);
    *templates = (barchan_templates){0};
}

static int compare(const void *a, const void *b)
{
    return strcmp(((const barchan_template *)a)->name, ((const barchan_template *)b)->name);
}

/* One that cannot be read, as it is being removed or is of another version, is not listed. */
static int fill(int dir_fd, const struct names *names, barchan_templates *templates,
                barchan_error *err)
{
    barchan_error why;
    templates->list = calloc(names->count + 1, sizeof *templates->list);
    if (templates->list == NULL) return bc_error_nomem(err);
    for (size_t i = 0; i < names->count; i++) {
        if (bc_template_check_name(names->list[i], NULL) < 0) continue;
        int rc = read_info(dir_fd, names->list[i], &templates->list[templates->count], &why);
        if (rc == BARCHAN_ENOMEM) return bc_error_nomem(err);
        if (rc == 0) templates->count++;
    }
    if (templates->count > 1) {
        qsort(templates->list, templates->count, sizeof *templates->list, compare);
    }
    return 0;
}

int barchan_template_list(barchan_runtime *rt, barchan_templates *templates, barchan_error *err)
{
    BC_OPERATION("template.list");
    struct names cleanup_names names = {0};
    if (templates == NULL) return bc_error_set(err, BARCHAN_EINVAL, "templates is NULL");
    *templates = (barchan_templates){0};
    barchan_error why;
    cleanup_close int dir = open_directory(rt, NULL, &why);
    if (dir == BARCHAN_ENOTFOUND) return 0; /* there are none yet */
    if (dir < 0 && err != NULL) *err = why;
    if (dir < 0) return dir;
    templates->removed = bc_templates_sweep(dir);
    int rc = read_names(dir, &names, err);
    if (rc == 0) rc = fill(dir, &names, templates, err);
    if (rc < 0) barchan_templates_clear(templates);
    return rc;
}

/* ---- removing ---- */

static int remove_named(int dir_fd, const char *name, barchan_error *err)
{
    char id[BC_TEMPLATE_ID_LEN + 1];
    cleanup_close int lock = bc_templates_lock(dir_fd, err);
    if (lock < 0) return lock;
    if (bc_template_id_of(dir_fd, name, id) < 0) return bc_template_not_found(dir_fd, name, err);
    cleanup_close int fd = bc_template_lock(dir_fd, id, LOCK_EX);
    if (fd == -EWOULDBLOCK) return bc_template_in_use(dir_fd, id, name, err);
    if (fd < 0 && fd != -ENOENT) return bc_error_set_os(err, -fd, "lock it");
    if (unlinkat(dir_fd, name, 0) < 0) return bc_error_set_os(err, errno, "remove its name");
    close(steal_fd(&lock));
    int rc = fd < 0 ? 0 : bc_tree_remove(dir_fd, id);
    return rc < 0 ? bc_error_set_os(err, -rc, "remove its files") : 0;
}

int barchan_template_remove(barchan_runtime *rt, const char *name, barchan_error *err)
{
    BC_OPERATION("template.remove");
    if (name == NULL) return bc_error_set(err, BARCHAN_EINVAL, "name is NULL");
    cleanup_close int dir = open_directory(rt, name, err);
    int rc = dir < 0 ? dir : remove_named(dir, name, err);
    if (rc < 0) {
        bc_error_context(err, "remove template");
    }
    return rc;
}
