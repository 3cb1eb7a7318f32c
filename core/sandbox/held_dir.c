#include "held_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include "base/cleanup.h"
#include "base/limits.h"
#include "launcher.h"

#define ID_LEN 20
/* Connections that the holder has not accepted yet: commands of one user, started at once. */
#define BACKLOG 64
#define LOCK_TRIES 8

int bc_held_id_is_valid(const char *id)
{
    return id != NULL && strlen(id) == ID_LEN && strncmp(id, "sbx-", 4) == 0 &&
           strspn(id + 4, "0123456789abcdef") == ID_LEN - 4;
}

/* ---- the directory ---- */

int bc_own_dir_open(int dir, const char *name, mode_t mode, const char *shown, const char *variable,
                    barchan_error *err)
{
    struct stat st;
    if (mkdirat(dir, name, mode) < 0 && errno != EEXIST) {
        return bc_error_set_os(err, errno, "make the directory %s/%s", shown, name);
    }
    int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0) {
        int rc = bc_error_set_os(err, errno, "open the directory %s/%s", shown, name);
        if (fd >= 0) close(fd);
        return rc;
    }
    if (st.st_uid == geteuid() && (st.st_mode & 022) == 0) return fd;
    close(fd);
    return bc_error_set(err, BARCHAN_EPERMISSION,
                        "%s/%s is not this user's alone: remove it, or set %s to a "
                        "directory that only you can write to",
                        shown, name, variable);
}

/* Where the state of this user's programs is; `name` is that of Barchan's part of it. */
static int open_base(char *shown, size_t cap, char *name, size_t name_cap, barchan_error *err)
{
    const char *runtime = geteuid() == 0 ? "/run" : secure_getenv("XDG_RUNTIME_DIR");
    int given = runtime != NULL && runtime[0] == '/';
    if (given) {
        snprintf(shown, cap, "%s", runtime);
    } else {
        snprintf(shown, cap, "/run/user/%u", (unsigned)geteuid());
    }
    snprintf(name, name_cap, "barchan");
    int fd = open(shown, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 && !given) { /* nobody logged in: a directory that others cannot take part in */
        snprintf(shown, cap, "/tmp");
        snprintf(name, name_cap, "barchan-%u", (unsigned)geteuid());
        fd = open(shown, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    }
    return fd >= 0 ? fd : bc_error_set_os(err, errno, "open the directory %s", shown);
}

static int open_dir(barchan_error *err)
{
    char shown[256], name[32], ours[300];
    cleanup_close int base = open_base(shown, sizeof shown, name, sizeof name, err);
    if (base < 0) return base;
    /* As root others may pass through: the registries of the launcher lie beside it. */
    static const char variable[] = "XDG_RUNTIME_DIR";
    cleanup_close int barchan =
        bc_own_dir_open(base, name, geteuid() == 0 ? 0755 : 0700, shown, variable, err);
    if (barchan < 0) return barchan;
    snprintf(ours, sizeof ours, "%s/%s", shown, name);
    int fd = bc_own_dir_open(barchan, "sandboxes", 0700, ours, variable, err);
    if (fd >= 0) fchmod(fd, 0700);
    return fd;
}

static void name_of(char *name, size_t cap, const char *id, const char *ending)
{
    snprintf(name, cap, "%.*s.%s", ID_LEN, id, ending);
}

/* By the directory's descriptor: its path may be longer than an address, and may change. */
static struct sockaddr_un address_of(int dir, const char *id)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/%.*s.sock", dir, ID_LEN,
             id);
    return address;
}

/* ---- locks ---- */

/* 1: it is ours and still the file of this name; 0: somebody lives who has it; negative: errno. */
static int take_lock(int dir, const char *name, int flags, int lock, int *fd)
{
    struct stat st;
    *fd = openat(dir, name, flags | O_RDWR | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (*fd < 0) return -errno;
    if (flock(*fd, lock) == 0 && fstat(*fd, &st) == 0 && st.st_nlink > 0) return 1;
    close(steal_fd(fd));
    return 0;
}

/* Whoever tidies up may have the lock for a moment, and then have removed the file just made. */
static int lock_new(int dir, const char *name, int *fd, barchan_error *err)
{
    int rc = 0;
    for (int i = 0; i < LOCK_TRIES && rc == 0; i++) {
        rc = take_lock(dir, name, O_CREAT, LOCK_EX, fd);
    }
    if (rc == 1) return 0;
    return bc_error_set_os(err, rc == 0 ? EBUSY : -rc, "lock %s", name);
}

/* Of holders that have died: both names go while the lock keeps others out. */
static int remove_stale(int dir, const char *id, const char *lock)
{
    int fd;
    char sock[32];
    if (take_lock(dir, lock, 0, LOCK_EX | LOCK_NB, &fd) != 1) return 0;
    name_of(sock, sizeof sock, id, "sock");
    unlinkat(dir, sock, 0);
    unlinkat(dir, lock, 0);
    close(fd);
    return 1;
}

/* ---- for holders ---- */

static int listen_at(int dir, const char *id, barchan_error *err)
{
    struct sockaddr_un address = address_of(dir, id);
    cleanup_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return bc_error_set_os(err, errno, "create a socket");
    /* Before it has a name: there is no moment in which others could connect. */
    if (fchmod(fd, 0600) < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) < 0 ||
        listen(fd, BACKLOG) < 0) {
        return bc_error_set_os(err, errno, "make the socket of %s", id);
    }
    return steal_fd(&fd);
}

int bc_held_publish(const char *id, int *dir_fd, int *lock_fd, int *listen_fd, barchan_error *err)
{
    char lock[32];
    cleanup_close int dir = open_dir(err);
    if (dir < 0) return dir;
    name_of(lock, sizeof lock, id, "lock");
    cleanup_close int locked = -1;
    int rc = lock_new(dir, lock, &locked, err);
    if (rc < 0) return rc;
    *listen_fd = listen_at(dir, id, err);
    if (*listen_fd < 0) {
        unlinkat(dir, lock, 0);
        return *listen_fd;
    }
    *lock_fd = steal_fd(&locked);
    *dir_fd = steal_fd(&dir);
    return 0;
}

void bc_held_retract(int dir, const char *id)
{
    char lock[32], sock[32];
    name_of(sock, sizeof sock, id, "sock");
    name_of(lock, sizeof lock, id, "lock");
    unlinkat(dir, sock, 0);
    unlinkat(dir, lock, 0);
}

/* ---- for those who connect ---- */

/* A command of an ordinary user's sandbox has the user's id, too, but stands in a namespace of its
 * own. Who cannot be looked at is not of ours. */
static int stands_in_our_namespace(pid_t pid)
{
    char path[64], own[64] = "", its[64] = "";
    snprintf(path, sizeof path, "/proc/%d/ns/user", (int)pid);
    return readlink("/proc/self/ns/user", own, sizeof own - 1) > 0 &&
           readlink(path, its, sizeof its - 1) > 0 && strcmp(own, its) == 0;
}

int bc_held_peer_is_own(int fd)
{
    struct ucred peer;
    socklen_t len = sizeof peer;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 && peer.uid == geteuid() &&
           stands_in_our_namespace(peer.pid);
}

int bc_path_is_at_or_below(const char *path, const char *tree)
{
    size_t len = strlen(tree);
    return strncmp(path, tree, len) == 0 && (path[len] == '/' || path[len] == '\0');
}

int bc_held_is_in(const char *path)
{
    char shown[256], name[32], base[PATH_MAX], source[PATH_MAX];
    int fd = open_base(shown, sizeof shown, name, sizeof name, NULL);
    if (fd < 0) return 0;
    close(fd);
    if (realpath(path, source) == NULL || realpath(shown, base) == NULL) return 0;
    size_t len = strlen(base);
    if (len + strlen(name) + 2 > sizeof base) return 0;
    snprintf(base + len, sizeof base - len, "/%s", name);
    return bc_path_is_at_or_below(base, source) || bc_path_is_at_or_below(source, base);
}

int bc_held_connect(const char *id, int *fd, barchan_error *err)
{
    *fd = -1;
    if (!bc_held_id_is_valid(id)) {
        return bc_error_set(err, BARCHAN_EINVAL,
                            "'%.40s' is no id of a sandbox: sbx- and 16 hexadecimal digits",
                            id == NULL ? "" : id);
    }
    cleanup_close int dir = open_dir(err);
    if (dir < 0) return dir;
    struct sockaddr_un address = address_of(dir, id);
    cleanup_close int sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (sock < 0) return bc_error_set_os(err, errno, "create a socket");
    if (connect(sock, (struct sockaddr *)&address, sizeof address) < 0) {
        if (errno == EAGAIN) {
            return bc_error_busy(err, "its holder does not answer: try again later");
        }
        if (errno != ENOENT && errno != ECONNREFUSED) {
            return bc_error_set_os(err, errno, "connect");
        }
        return bc_error_set(err, BARCHAN_ENOTFOUND,
                            "there is no detached sandbox %s of this user: it may have been ended, "
                            "or its lease or idle time is over, and its logs are gone with it; "
                            "'barchan sandbox list' shows those that live",
                            id);
    }
    if (!bc_held_peer_is_own(sock)) {
        return bc_error_set(err, BARCHAN_EPERMISSION, "its holder is another user's");
    }
    *fd = steal_fd(&sock);
    return 0;
}

/* ---- the list ---- */

void barchan_detached_list_clear(barchan_detached_list *list)
{
    if (list == NULL) return;
    for (size_t i = 0; i < list->count; i++) {
        free(list->ids[i]);
    }
    free(list->ids);
    *list = (barchan_detached_list){0};
}

static int add_id(barchan_detached_list *list, const char *id)
{
    char **ids = realloc(list->ids, (list->count + 1) * sizeof *ids);
    if (ids == NULL) return BARCHAN_ENOMEM;
    list->ids = ids;
    list->ids[list->count] = strdup(id);
    if (list->ids[list->count] == NULL) return BARCHAN_ENOMEM;
    list->count++;
    return 0;
}

static int look_at(int dir, const char *name, barchan_detached_list *list)
{
    char id[ID_LEN + 1];
    const char *dot = strchr(name, '.');
    if (dot == NULL || dot - name != ID_LEN) return 0;
    memcpy(id, name, ID_LEN);
    id[ID_LEN] = '\0';
    if (!bc_held_id_is_valid(id)) return 0;
    if (strcmp(dot, ".lock") == 0) {
        if (!remove_stale(dir, id, name)) return add_id(list, id);
        list->removed++;
    } else if (strcmp(dot, ".sock") == 0) { /* alone only if its lock was removed by hand */
        char lock[32];
        name_of(lock, sizeof lock, id, "lock");
        if (faccessat(dir, lock, F_OK, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT) {
            unlinkat(dir, name, 0);
        }
    }
    return 0;
}

static int compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

int barchan_detached_ids(barchan_runtime *rt, barchan_detached_list *list, barchan_error *err)
{
    BC_OPERATION("detached.ids");
    if (list == NULL) return bc_error_set(err, BARCHAN_EINVAL, "list is NULL");
    *list = (barchan_detached_list){0};
    int rc = bc_runtime_check(rt, err);
    if (rc < 0) return rc;
    int fd = open_dir(err);
    if (fd < 0) return fd;
    DIR *dir = fdopendir(fd);
    if (dir == NULL) {
        close(fd);
        return bc_error_nomem(err);
    }
    const struct dirent *entry;
    while (rc == 0 && (entry = readdir(dir)) != NULL) {
        rc = look_at(fd, entry->d_name, list);
    }
    closedir(dir);
    if (rc < 0) {
        barchan_detached_list_clear(list);
        return bc_error_nomem(err);
    }
    if (list->count > 1) qsort(list->ids, list->count, sizeof *list->ids, compare);
    bc_room *room = list->removed == 0 ? NULL : bc_sandbox_room(rt);
    if (room != NULL) bc_launcher_ensure(room, NULL); /* it sweeps its registries as it starts */
    return 0;
}
