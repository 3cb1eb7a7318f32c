#include "templates.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "base/cleanup.h"
#include "base/limits.h"
#include "held_dir.h"

#define LOCK ".lock"
#define LOCK_STEP_MS 2
#define ID_DIGITS "0123456789abcdef"

/* ---- names ---- */

static int is_id(const char *id)
{
    return strlen(id) == BC_TEMPLATE_ID_LEN && strncmp(id, ".t-", 3) == 0 &&
           strspn(id + 3, ID_DIGITS) == BC_TEMPLATE_ID_LEN - 3;
}

static int is_name(const char *name)
{
    static const char first[] = "abcdefghijklmnopqrstuvwxyz0123456789";
    static const char all[] = "abcdefghijklmnopqrstuvwxyz0123456789._-";
    size_t len = strlen(name);
    return len > 0 && len <= 64 && strchr(first, name[0]) != NULL && strspn(name, all) == len &&
           strcmp(name, "host") != 0;
}

int bc_template_check_name(const char *name, barchan_error *err)
{
    if (name != NULL && is_name(name)) return 0;
    return bc_error_set(err, BARCHAN_EINVAL,
                        "'%.64s' is no name for a template: up to 64 of a-z, 0-9, '.', '_' and "
                        "'-', the first a letter or digit, and not \"host\"",
                        name == NULL ? "" : name);
}

int bc_template_id_of(int dir_fd, const char *name, char id[BC_TEMPLATE_ID_LEN + 1])
{
    char target[BC_TEMPLATE_ID_LEN + 2];
    ssize_t n = readlinkat(dir_fd, name, target, sizeof target - 1);
    if (n < 0) return -ENOENT;
    target[n] = '\0';
    if (!is_id(target)) return -ENOENT;
    memcpy(id, target, BC_TEMPLATE_ID_LEN + 1);
    return 0;
}

/* ---- the directory ---- */

/* $XDG_DATA_HOME, or what stands for it. */
static int find_data_home(char *path, size_t cap, barchan_error *err)
{
    const char *data = secure_getenv("XDG_DATA_HOME"), *home = secure_getenv("HOME");
    int n;
    if (data != NULL && data[0] == '/') {
        n = snprintf(path, cap, "%s", data);
    } else if (home != NULL && home[0] == '/') {
        n = snprintf(path, cap, "%s/.local/share", home);
    } else {
        return bc_error_set(err, BARCHAN_EUNSUPPORTED,
                            "there is no place for templates: set XDG_DATA_HOME or HOME");
    }
    if (n < 0 || (size_t)n + 64 > cap) return bc_error_set_os(err, ENAMETOOLONG, "XDG_DATA_HOME");
    return 0;
}

static void make_parents(char *path)
{
    for (char *at = strchr(path + 1, '/');; at = strchr(at + 1, '/')) {
        if (at != NULL) *at = '\0';
        mkdir(path, 0700); /* where it cannot, it is there, or the last is missed */
        if (at == NULL) return;
        *at = '/';
    }
}

/* Nobody else may put another directory in the place of ours: the launcher opens it by its path. */
static int check_owner(int fd, const char *path, barchan_error *err)
{
    struct stat st;
    if (fstat(fd, &st) == 0 && (st.st_uid == geteuid() || st.st_uid == 0) &&
        ((st.st_mode & 022) == 0 || (st.st_mode & S_ISVTX) != 0)) {
        return 0;
    }
    return bc_error_set(err, BARCHAN_EPERMISSION,
                        "%s: others can change it: set XDG_DATA_HOME to a directory that only you "
                        "can write to",
                        path);
}

int bc_templates_open(char *path, size_t cap, int make, barchan_error *err)
{
    static const char variable[] = "XDG_DATA_HOME";
    int rc = find_data_home(path, cap, err);
    if (rc < 0) return rc;
    if (make) make_parents(path);
    cleanup_close int base = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (base < 0 && (make || errno != ENOENT)) {
        return bc_error_set_os(err, errno, "open the directory %s", path);
    }
    if (!make &&
        (base < 0 || (faccessat(base, "barchan/templates", F_OK, 0) < 0 && errno == ENOENT))) {
        return bc_error_set(err, BARCHAN_ENOTFOUND, "there are no templates yet");
    }
    rc = check_owner(base, path, err);
    if (rc < 0) return rc;
    cleanup_close int barchan = bc_own_dir_open(base, "barchan", 0700, path, variable, err);
    if (barchan < 0) return barchan;
    size_t len = strlen(path);
    snprintf(path + len, cap - len, "/barchan");
    int fd = bc_own_dir_open(barchan, "templates", 0700, path, variable, err);
    snprintf(path + len, cap - len, "/barchan/templates");
    return fd;
}

int bc_templates_is_in(const char *path)
{
    char home[PATH_MAX], base[PATH_MAX], source[PATH_MAX];
    if (find_data_home(home, sizeof home, NULL) < 0 || realpath(path, source) == NULL) return 0;
    if (realpath(home, base) == NULL) return 0; /* what does not exist is not mounted */
    size_t len = strlen(base);
    if (len + sizeof "/barchan/templates" > sizeof base) return 0;
    memcpy(base + len, "/barchan/templates", sizeof "/barchan/templates");
    return bc_path_is_at_or_below(base, source) || bc_path_is_at_or_below(source, base);
}

/* Whoever has it does a few calls with it. */
int bc_templates_lock(int dir_fd, barchan_error *err)
{
    const struct timespec step = {.tv_nsec = LOCK_STEP_MS * 1000000L};
    cleanup_close int fd = openat(dir_fd, LOCK, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0) return bc_error_set_os(err, errno, "open the lock of the templates");
    for (int waited = 0; flock(fd, LOCK_EX | LOCK_NB) < 0; waited += LOCK_STEP_MS) {
        if (errno != EWOULDBLOCK && errno != EINTR) {
            return bc_error_set_os(err, errno, "lock the templates");
        }
        if (waited >= BC_TEMPLATE_LOCK_MS) {
            return bc_error_busy(err, "another program has the templates locked");
        }
        nanosleep(&step, NULL);
    }
    return steal_fd(&fd);
}

int bc_template_lock(int dir_fd, const char *id, int lock)
{
    cleanup_close int fd = openat(dir_fd, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || flock(fd, lock | LOCK_NB) < 0) return -errno;
    return steal_fd(&fd);
}

/* ---- errors ---- */

static int is_named(const struct dirent *entry)
{
    return is_name(entry->d_name);
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

int bc_template_not_found(int dir_fd, const char *name, barchan_error *err)
{
    char names[200] = "", id[BC_TEMPLATE_ID_LEN + 1];
    size_t len = 0;
    struct dirent **list = NULL;
    int full = 0, count = dir_fd < 0 ? 0 : scandirat(dir_fd, ".", &list, is_named, by_name);
    for (int i = 0; i < count && !full; i++) {
        const char *found = list[i]->d_name;
        if (bc_template_id_of(dir_fd, found, id) < 0) continue;
        full = len + strlen(found) + 8 > sizeof names;
        len += (size_t)snprintf(names + len, sizeof names - len, "%s%s", len > 0 ? ", " : "",
                                full ? "…" : found);
    }
    for (int i = 0; i < count; i++)
        free(list[i]);
    free(list);
    return bc_error_set(err, BARCHAN_ENOTFOUND,
                        "unknown template '%.64s': there %s%s; \"host\" and the path of a root "
                        "directory are others. 'barchan template build NAME --from host --run "
                        "COMMAND' makes one",
                        name, len > 0 ? "are: " : "is none yet", names);
}

/* Of the sandboxes that this process can see; the kernel tells no others. */
static int count_users(const struct stat *st)
{
    char line[160];
    unsigned major, minor;
    unsigned long long ino;
    int count = 0;
    FILE *file = fopen("/proc/locks", "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        if (sscanf(line, "%*d: FLOCK %*s READ %*d %x:%x:%llu", &major, &minor, &ino) != 3) continue;
        if (ino == st->st_ino) count++;
    }
    if (file != NULL) fclose(file);
    return count;
}

int bc_template_in_use(int dir_fd, const char *id, const char *name, barchan_error *err)
{
    struct stat st;
    int users = fstatat(dir_fd, id, &st, AT_SYMLINK_NOFOLLOW) == 0 ? count_users(&st) : 0;
    if (users == 0) {
        return bc_error_busy(err, "template '%s' is in use by a sandbox", name);
    }
    return bc_error_busy(err, "template '%s' is in use by %d sandbox%s", name, users,
                         users == 1 ? "" : "es");
}

/* ---- using one ---- */

static int use_id(bc_template_use *use, const char *path, barchan_error *err)
{
    barchan_template info = {0};
    int rc = bc_manifest_read(use->fd, &info, err);
    if (rc == 0) {
        use->base = steal_pointer(&info.base);
        use->entries = info.entries;
        use->bytes = info.bytes;
        size_t cap = strlen(path) + BC_TEMPLATE_ID_LEN + 2;
        use->path = malloc(cap);
        if (use->path == NULL) rc = bc_error_nomem(err);
        if (rc == 0) snprintf(use->path, cap, "%s/%s", path, use->id);
    }
    barchan_template_clear(&info);
    return rc;
}

int bc_template_use_open(bc_template_use *use, const char *name, barchan_error *err)
{
    char path[PATH_MAX];
    *use = (bc_template_use){.dir_fd = -1, .fd = -1};
    int rc = is_id(name) ? 0 : bc_template_check_name(name, err);
    if (rc < 0) return rc;
    cleanup_close int dir = bc_templates_open(path, sizeof path, 0, err);
    if (dir == BARCHAN_ENOTFOUND) return bc_template_not_found(-1, name, err);
    if (dir < 0) {
        bc_error_context(err, "template '%s'", name);
        return dir;
    }
    cleanup_close int lock = bc_templates_lock(dir, err);
    if (lock < 0) return lock;
    if (is_id(name)) {
        snprintf(use->id, sizeof use->id, "%s", name);
    } else if (bc_template_id_of(dir, name, use->id) < 0) {
        return bc_template_not_found(dir, name, err);
    }
    cleanup_close int fd = bc_template_lock(dir, use->id, LOCK_SH);
    if (fd == -ENOENT) return bc_template_not_found(dir, name, err);
    if (fd < 0) return bc_error_set_os(err, -fd, "use template '%s'", name);
    use->fd = fd;
    rc = use_id(use, path, err);
    use->fd = -1;
    if (rc < 0) {
        bc_error_context(err, "template '%s'", name);
        bc_template_release(use);
        return rc;
    }
    use->fd = steal_fd(&fd);
    use->dir_fd = steal_fd(&dir);
    return 0;
}

int bc_template_has_name(int dir_fd, const char *id)
{
    char target[BC_TEMPLATE_ID_LEN + 1];
    int found = 0, fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;
    while (dir != NULL && !found && (entry = readdir(dir)) != NULL) {
        if (entry->d_name[0] == '.') continue; /* a name that was about to be given is none */
        found = bc_template_id_of(dir_fd, entry->d_name, target) == 0 && strcmp(target, id) == 0;
    }
    if (dir == NULL) return 1; /* not known: it stays */
    closedir(dir);
    return found;
}

/* Under the lock nobody else can begin to use it. */
static void remove_unused(int dir_fd, int fd, const char *id)
{
    int lock = bc_templates_lock(dir_fd, NULL);
    int ours = lock >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0;
    if (lock >= 0) close(lock);
    if (ours) bc_tree_remove(dir_fd, id);
}

void bc_template_release(bc_template_use *use)
{
    if (use->path != NULL && use->fd >= 0) {
        if (!bc_template_has_name(use->dir_fd, use->id))
            remove_unused(use->dir_fd, use->fd, use->id);
        close(use->fd);
        close(use->dir_fd);
    }
    free(use->path);
    free(use->base);
    *use = (bc_template_use){0};
}

/* ---- making one ---- */

static int make_id(char id[BC_TEMPLATE_ID_LEN + 1], barchan_error *err)
{
    uint64_t random;
    if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random) {
        return bc_error_set(err, BARCHAN_EIO, "no random numbers");
    }
    snprintf(id, BC_TEMPLATE_ID_LEN + 1, ".t-%016llx", (unsigned long long)random);
    return 0;
}

int bc_template_begin(bc_template_build *build, barchan_error *err)
{
    char path[PATH_MAX];
    *build = (bc_template_build){.dir_fd = -1, .fd = -1};
    cleanup_close int dir = bc_templates_open(path, sizeof path, 1, err);
    if (dir < 0) return dir;
    bc_templates_sweep(dir);
    cleanup_close int lock = bc_templates_lock(dir, err);
    if (lock < 0) return lock;
    int rc = make_id(build->id, err);
    if (rc < 0) return rc;
    if (mkdirat(dir, build->id, 0700) < 0) return bc_error_set_os(err, errno, "make a template");
    build->fd = bc_template_lock(dir, build->id, LOCK_EX);
    if (build->fd < 0) {
        rc = bc_error_set_os(err, -build->fd, "lock the new template");
        build->fd = -1;
        unlinkat(dir, build->id, AT_REMOVEDIR);
        return rc;
    }
    build->dir_fd = steal_fd(&dir);
    return 0;
}

int bc_template_may_name(int dir_fd, const char *name, int replace, barchan_error *err)
{
    struct stat st;
    char id[BC_TEMPLATE_ID_LEN + 1];
    if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0) return 0;
    if (!replace) {
        return bc_error_set(err, BARCHAN_EEXISTS,
                            "there is a template '%s' already; replace it (the option 'replace'), "
                            "or take another name",
                            name);
    }
    if (bc_template_id_of(dir_fd, name, id) == 0) return 0;
    return bc_error_set(err, BARCHAN_EEXISTS, "'%s' is there, and no template", name);
}

/* The name leads to the new one from one moment to the next; the old one goes with its last user.
 */
static int give_name(bc_template_build *build, const char *name, int replace, barchan_error *err)
{
    char temporary[BC_TEMPLATE_ID_LEN + 1];
    int rc = bc_template_may_name(build->dir_fd, name, replace, err);
    if (rc < 0) return rc;
    snprintf(temporary, sizeof temporary, ".n-%s", build->id + 3);
    if (symlinkat(build->id, build->dir_fd, temporary) < 0 ||
        renameat(build->dir_fd, temporary, build->dir_fd, name) < 0) {
        rc = bc_error_set_os(err, errno, "name the template");
        unlinkat(build->dir_fd, temporary, 0);
        return rc;
    }
    return 0;
}

/* What had the name goes, unless somebody uses it; the lock is held. */
static void remove_replaced(int dir_fd, const char *id)
{
    cleanup_close int fd = id[0] == '\0' ? -1 : bc_template_lock(dir_fd, id, LOCK_EX);
    if (fd >= 0) bc_tree_remove(dir_fd, id);
}

int bc_template_publish(bc_template_build *build, const char *name, int replace, barchan_error *err)
{
    char before[BC_TEMPLATE_ID_LEN + 1] = "";
    cleanup_close int lock = bc_templates_lock(build->dir_fd, err);
    if (lock < 0) return lock;
    if (name != NULL && bc_template_id_of(build->dir_fd, name, before) < 0) before[0] = '\0';
    /* From one kind of lock to the other there is a gap, in which nobody else has the first. */
    if (flock(build->fd, LOCK_SH | LOCK_NB) < 0) {
        return bc_error_set_os(err, errno, "lock the new template");
    }
    int rc = name == NULL ? 0 : give_name(build, name, replace, err);
    if (rc == 0) remove_replaced(build->dir_fd, before);
    return rc;
}

void bc_template_end(bc_template_build *build)
{
    if (build->id[0] != '\0' && build->fd >= 0) {
        if (!bc_template_has_name(build->dir_fd, build->id)) {
            remove_unused(build->dir_fd, build->fd, build->id);
        }
        close(build->fd);
        close(build->dir_fd);
    }
    *build = (bc_template_build){.dir_fd = -1, .fd = -1};
}
